"""The loss of attention on bags, and its gradients in the log domain: exact however far the softmax has saturated.

n inputs with labels Y_i = +-1, tokens x_it (values) and k_it (keys, tied to the values or not):
gamma_it = Y_i v'x_it          scores                 s_i = softmax(a_i)           attention, a_it = k_it'p
L = (1/n) sum_i loss(s_i'gamma_i)                     -dL/da_it = (1/n) |loss'_i| s_it (gamma_it - s_i'gamma_i)

When one token m of a bag holds nearly all attention, gamma_it - s_i'gamma_i loses its digits and s_it underflows. So
everything is taken relative to m: gamma_t - s'gamma = (gamma_t - gamma_m) - sum_u s_u (gamma_u - gamma_m), each term as
a sign and a logarithm, and sum_t s_t (gamma_t - s'gamma) k_t = sum_t s_t (gamma_t - s'gamma) (k_t - k_m).

The trained parameters are a tuple of blocks, those of the scores first, those of the attention last.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...model.ragged import Bags, Index, Vector, log_softmax
from .losses import MarginLoss, Scaled, log_abs

Blocks = tuple[Vector, ...]


@dataclass(frozen=True, eq=False)
class Reading:
    """What the attention does at one point: logits and scores of all tokens, and all that follows from them.

    >>> from keytokens.lab.problems.losses import Correlation
    >>> reading = Reading(Bags.of([[[1.0], [0.0]]]), np.array([900.0, 0.0]), np.array([1.0, 0.0]), Correlation())
    >>> reading.selection.tolist(), reading.excess(reading.selected).log  # L - L_inf = s_2 = exp(-900)
    ([0], -900.0)
    """

    bags: Bags
    logits: Vector  # (N,)
    scores: Vector  # (N,)
    loss: MarginLoss

    @cached_property
    def log_attention(self) -> Vector:
        return log_softmax(self.bags, self.logits)

    @cached_property
    def attention(self) -> Vector:
        return np.exp(self.log_attention)

    @cached_property
    def selected(self) -> Index:
        """(n,) rows of the tokens with most attention, the first where several tie."""
        return self.bags.starts[:-1] + self.bags.argmax(self.logits)

    @property
    def selection(self) -> Index:
        """(n,) the selected tokens as indices within their bags."""
        return self.selected - self.bags.starts[:-1]

    @property
    def best(self) -> Index:
        """(n,) rows of the tokens with the largest score."""
        return self.bags.starts[:-1] + self.bags.argmax(self.scores)

    def _shortfall(self, reference: Index) -> tuple[Vector, Vector, Vector]:
        """gamma_t - gamma_ref, and s'gamma - gamma_ref as a factor and a log scale of each bag."""
        above = self.scores - self.bags.spread(self.scores[reference])
        log_size = self.log_attention + log_abs(above)
        top = self.bags.max(log_size)
        top = np.where(np.isfinite(top), top, 0.0)
        return above, self.bags.sum(np.sign(above) * np.exp(log_size - self.bags.spread(top))), top

    @cached_property
    def _about_selected(self) -> tuple[Vector, Vector, Vector]:
        return self._shortfall(self.selected)

    @property
    def _tied(self) -> Vector:
        """How far tokens that tie with the selected one are above it all the same, in the units of the shortfall."""
        return np.zeros(())

    @cached_property
    def margins(self) -> Vector:
        """(n,) s_i'gamma_i."""
        _, factor, top = self._about_selected
        return self.scores[self.selected] + factor * np.exp(top)

    @property
    def value(self) -> float:
        """L."""
        return float(np.mean(self.loss.value(self.margins)))

    def excess(self, reference: Index) -> Scaled:
        """L minus the loss with all attention on the reference tokens (rows); positive or negative, any size."""
        _, factor, top = self._shortfall(reference)
        sign, log_size = self.loss.change(self.scores[reference], np.sign(factor), top + log_abs(factor))
        return Scaled.total(sign, log_size - np.log(len(self.bags)))

    @cached_property
    def pull(self) -> Scaled:
        """(N,) -dL/da for every token but the selected ones, where 0 stands for minus the sum of the bag's others."""
        above, factor, top = self._about_selected
        spread = self.bags.spread
        centred = above - spread(factor * np.exp(top))
        # a token that ties with the selected score: 0 - sum_u s_u (gamma_u - gamma_m), which may have underflowed
        ties, tied = above == 0, self._tied - spread(factor)
        sign = np.where(ties, np.sign(tied), np.sign(centred))
        log_size = np.where(ties, spread(top) + log_abs(tied), log_abs(centred)) + self.log_attention
        log_size = log_size + spread(self.loss.log_abs_slope(self.margins))
        log_size[self.selected] = -np.inf
        largest = float(log_size.max())
        if largest == -np.inf:
            return Scaled(np.zeros_like(above), 0.0)
        return Scaled(sign * np.exp(log_size - largest) / len(self.bags), largest)

    def pulled(self, vectors: Bags) -> Scaled:
        """sum_it pull_it (x_it - x_im), one vector: minus the gradient in p if the vectors are the keys."""
        away = vectors.rows - vectors.spread(vectors.rows[self.selected])
        return Scaled(self.pull.array @ away, self.pull.log_scale)

    def token_pulls(self, tokens: NDArray[Any], size: int) -> Scaled:
        """(size,) the pull on each token of a vocabulary, where the rows of the bags are such tokens."""
        gained = np.bincount(tokens, self.pull.array, size)
        lost = np.bincount(tokens[self.selected], self.bags.sum(self.pull.array), size)
        return Scaled(np.asarray(gained - lost, np.float64), self.pull.log_scale)

    def head_descent(self, labels: Vector, values: Bags) -> Scaled:
        """-dL/dv = (1/n) sum_i |loss'_i| Y_i X_i's_i, where the scores are those of a head v."""
        log_slope = self.loss.log_abs_slope(self.margins)
        top = float(log_slope.max())
        weights = np.exp(log_slope - top) * labels / len(labels)
        return Scaled(weights @ values.sum(self.attention[:, None] * values.rows), top)

    @property
    def mean_loss(self) -> Scaled:
        """L itself: L - L* where a trained head can make the loss vanish."""
        log_losses = self.loss.log_value(self.margins)
        return Scaled.total(np.ones(len(log_losses)), log_losses - np.log(len(log_losses)))
