"""The loss of attention on bags, and its gradients in the log domain: exact however far the softmax has saturated.

n inputs with labels Y_i = +-1, tokens x_it (values) and k_it (keys, tied to the values or not):
gamma_it = Y_i v'x_it          scores                 s_i = softmax(a_i)           attention, a_it = k_it'p
L = (1/n) sum_i loss(s_i'gamma_i)                     -dL/da_it = (1/n) |loss'_i| s_it (gamma_it - s_i'gamma_i)

When one token m of a bag holds nearly all attention, gamma_it - s_i'gamma_i loses its digits and s_it underflows. So
everything is taken relative to m: gamma_t - s'gamma = (gamma_t - gamma_m) - sum_u s_u (gamma_u - gamma_m), each term as
a sign and a logarithm, and sum_t s_t (gamma_t - s'gamma) k_t = sum_t s_t (gamma_t - s'gamma) (k_t - k_m).

A problem holds data and loss; the trained parameters are a tuple of blocks, the parameter of the attention last:
SelectionProblem (p,)      MatrixProblem (W,)      JointProblem (v, p)      VocabularyProblem (p,)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ...base.checks import array_of, floats
from ...base.errors import refusal
from ...model.ragged import Bags, Index, Vector, log_softmax
from .losses import Logistic, MarginLoss, Scaled, check_loss, log_abs

Blocks = tuple[Vector, ...]

_LOGISTIC = Logistic()


# One look at a point -------------------------------------------------------------------------------------------------


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

    def pulled_tokens(self, tokens: NDArray[Any], vectors: Vector) -> Scaled:
        """The same where the rows of the bags are tokens of a vocabulary, and the vectors are those of all tokens."""
        gained = np.bincount(tokens, self.pull.array, len(vectors))
        lost = np.bincount(tokens[self.selected], self.bags.sum(self.pull.array), len(vectors))
        return Scaled((gained - lost) @ vectors, self.pull.log_scale)

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


# Problems: what is trained -------------------------------------------------------------------------------------------


class Problem(Protocol):
    """Data, loss, and which parameters are trained."""

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Of the trained blocks."""

    def read(self, blocks: Blocks) -> Reading: ...

    def descent(self, reading: Reading, blocks: Blocks) -> tuple[Scaled, ...]:
        """Minus the gradient, block by block; `blocks` are those that were read."""

    def gap(self, reading: Reading) -> Scaled:
        """L - L*, L* the infimum over all attentions (and over v where v is trained and the data can be fitted)."""

    @property
    def span(self) -> Vector | None:
        """Orthonormal rows whose span holds every gradient of a single block; None for no smaller space."""


def scores_of(labels: Any, values: Any, v: Any) -> Vector:
    """(N,) gamma_it = Y_i v'x_it; values in any form that `Bags.of` reads.

    >>> scores_of([-1], [[[1.0, 2.0], [0.0, 3.0]]], [0.0, 1.0]).tolist()
    [-2.0, -3.0]
    """
    bags = Bags.of(values, "scores_of", "values")
    return signed_scores(labels_of("scores_of", labels, len(bags)), bags, array_of("scores_of", "v", v, (bags.dim,)))


def signed_scores(labels: Vector, values: Bags, v: Vector) -> Vector:
    """`scores_of` what has been checked."""
    return values.spread(labels) * (values.rows @ v)


@dataclass(frozen=True, eq=False)
class SelectionProblem:
    """Train p, with keys and scores fixed: L(p) = (1/n) sum_i loss(gamma_i'softmax(K_i p)).

    Keys in any form that `Bags.of` reads, scores in any that `Bags.per_token` reads: so do the problems below.

    >>> problem = SelectionProblem([[[1.0, 0.0], [0.0, 0.0]]], [[1.0, 0.0]])
    >>> p = (np.array([5000.0, 0.0]),)
    >>> (down,) = problem.descent(problem.read(p), p)
    >>> down.unit.tolist(), round(down.log)  # exp(-5000) is no number, its direction is one
    ([1.0, 0.0], -5001)
    """

    keys: Bags
    scores: Vector
    loss: MarginLoss = _LOGISTIC

    def __post_init__(self) -> None:
        object.__setattr__(self, "keys", Bags.of(self.keys, "SelectionProblem"))
        object.__setattr__(self, "scores", read_scores("SelectionProblem", self.scores, self.keys))
        check_loss("SelectionProblem", self.loss)

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        return ((self.keys.dim,),)

    def read(self, blocks: Blocks) -> Reading:
        return Reading(self.keys, self.keys.rows @ blocks[-1], self.scores, self.loss)

    def descent(self, reading: Reading, blocks: Blocks) -> tuple[Scaled, ...]:
        return (reading.pulled(self.keys),)

    def gap(self, reading: Reading) -> Scaled:
        return reading.excess(reading.best)

    @cached_property
    def span(self) -> Vector | None:
        first = self.keys.rows[self.keys.starts[:-1]]
        return _row_space(self.keys.rows - self.keys.spread(first))


@dataclass(frozen=True, eq=False)
class MatrixProblem:
    """Train W with the query u fixed, keys k_it = W x_it: logits X_i W'u; the gradient is u times a vector."""

    values: Bags
    scores: Vector
    query: Vector
    loss: MarginLoss = _LOGISTIC

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", Bags.of(self.values, "MatrixProblem", "values"))
        object.__setattr__(self, "scores", read_scores("MatrixProblem", self.scores, self.values))
        check_loss("MatrixProblem", self.loss)
        query = floats(self.query)
        if query is None or query.ndim != 1 or not query.any():
            raise refusal("MatrixProblem", "query", "be a vector other than 0", self.query)
        object.__setattr__(self, "query", array_of("MatrixProblem", "query", query, (-1,)))

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        return ((len(self.query), self.values.dim),)

    def read(self, blocks: Blocks) -> Reading:
        return Reading(self.values, self.values.rows @ (self.query @ blocks[-1]), self.scores, self.loss)

    def descent(self, reading: Reading, blocks: Blocks) -> tuple[Scaled, ...]:
        pulled = reading.pulled(self.values)
        return (Scaled(np.outer(self.query, pulled.array), pulled.log_scale),)

    def gap(self, reading: Reading) -> Scaled:
        return reading.excess(reading.best)

    @cached_property
    def span(self) -> Vector | None:
        inner = SelectionProblem(self.values, self.scores).span
        rows = np.eye(self.values.dim) if inner is None else inner
        u = self.query / np.linalg.norm(self.query)
        return np.stack([np.outer(u, row).ravel() for row in rows])


@dataclass(frozen=True, eq=False)
class JointProblem:
    """Train the head v and p together: gamma_it = Y_i v'x_it moves with v; blocks (v, p)."""

    labels: Vector
    values: Bags
    keys: Bags
    loss: MarginLoss = _LOGISTIC

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", Bags.of(self.values, "JointProblem", "values"))
        object.__setattr__(self, "keys", Bags.of(self.keys, "JointProblem"))
        object.__setattr__(self, "labels", labels_of("JointProblem", self.labels, len(self.values)))
        check_loss("JointProblem", self.loss)
        if not np.array_equal(self.keys.starts, self.values.starts):
            rule = "have as many tokens in each bag as the values"
            raise refusal("JointProblem", "keys", rule, self.keys.sizes.tolist())

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        return ((self.values.dim,), (self.keys.dim,))

    def read(self, blocks: Blocks) -> Reading:
        v, p = blocks
        return Reading(self.values, self.keys.rows @ p, signed_scores(self.labels, self.values, v), self.loss)

    def descent(self, reading: Reading, blocks: Blocks) -> tuple[Scaled, ...]:
        return reading.head_descent(self.labels, self.values), reading.pulled(self.keys)

    def gap(self, reading: Reading) -> Scaled:
        return reading.mean_loss

    @property
    def span(self) -> Vector | None:
        return None


@dataclass(frozen=True, eq=False)
class VocabularyProblem:
    """Train p on documents given as counts C (n, V) over tokens with embeddings E (V, d) and a fixed head v.

    f_i = sum_s Q_s gam_s with gam = E v and Q_s in proportion to C_is exp(E_s'p): the logit of s in document i is
    E_s'p + log C_is.
    """

    embeddings: Vector
    counts: sparse.csr_matrix
    labels: Vector
    v: Vector
    loss: MarginLoss = _LOGISTIC

    def __post_init__(self) -> None:
        object.__setattr__(self, "embeddings", array_of("VocabularyProblem", "embeddings", self.embeddings, (-1, -1)))
        v = floats(self.v)
        if v is None or v.shape != self.embeddings.shape[1:]:
            rule = "be a vector with one number for each column of the embeddings"
            raise refusal("VocabularyProblem", "v", rule, self.v)
        object.__setattr__(self, "v", array_of("VocabularyProblem", "v", v, v.shape))
        check_loss("VocabularyProblem", self.loss)
        try:
            counts = sparse.csr_matrix(self.counts, dtype=np.float64)
        except (TypeError, ValueError):
            raise refusal("VocabularyProblem", "counts", "be a matrix of counts", self.counts) from None
        counts.eliminate_zeros()
        in_range = ((counts.data >= 0) & (counts.data < np.inf)).all()
        if counts.shape[1] != len(self.embeddings) or not in_range:
            rule = f"be counts of {len(self.embeddings)} tokens, one column a token"
            raise refusal("VocabularyProblem", "counts", rule, f"shape {counts.shape}")
        if not np.diff(counts.indptr).all():
            empty = f"row {int(np.argmin(np.diff(counts.indptr)))} empty"
            raise refusal("VocabularyProblem", "counts", "have a token in every row", empty, "leave the row out")
        object.__setattr__(self, "counts", counts)
        object.__setattr__(self, "labels", labels_of("VocabularyProblem", self.labels, counts.shape[0]))

    @cached_property
    def _bags(self) -> Bags:
        """Which stored counts make one document; the vectors stay in E."""
        return Bags(np.empty((self.counts.nnz, 0)), self.counts.indptr.astype(np.intp))

    @cached_property
    def _scores(self) -> Vector:
        return self._bags.spread(self.labels) * (self.embeddings @ self.v)[self.counts.indices]

    @cached_property
    def _log_counts(self) -> Vector:
        return np.log(self.counts.data)

    @cached_property
    def _centred(self) -> Vector:
        # the pulls of a bag sum to 0, so a common part of all embeddings would only cost digits
        return self.embeddings - self.embeddings.mean(axis=0)

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        return ((self.embeddings.shape[1],),)

    def read(self, blocks: Blocks) -> Reading:
        logits = (self.embeddings @ blocks[-1])[self.counts.indices] + self._log_counts
        return Reading(self._bags, logits, self._scores, self.loss)

    def descent(self, reading: Reading, blocks: Blocks) -> tuple[Scaled, ...]:
        return (reading.pulled_tokens(self.counts.indices, self._centred),)

    def gap(self, reading: Reading) -> Scaled:
        return reading.excess(reading.best)

    @cached_property
    def span(self) -> Vector | None:
        return _row_space(self._centred)


def _row_space(rows: Vector) -> Vector | None:
    """Orthonormal basis (r, d) of the row space; None where that is everything."""
    _, sizes, basis = np.linalg.svd(rows, full_matrices=False)
    rank = int((sizes > 1e-12 * sizes[0]).sum())
    return None if rank in (0, rows.shape[1]) else basis[:rank]


def read_scores(owner: str, scores: Any, bags: Bags) -> Vector:
    """(N,) one finite number a token, in any form that `Bags.per_token` reads."""
    return bags.per_token(scores, owner, advice="make them with scores_of(labels, values, v)")


def labels_of(owner: str, labels: Any, size: int) -> Vector:
    """(n,) checked: -1 or +1."""
    y = floats(labels)
    if y is None or y.shape != (size,) or not (np.abs(y) == 1).all():
        raise refusal(owner, "labels", f"be -1 or +1 for each of the {size} bags", labels)
    return y
