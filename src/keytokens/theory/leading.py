"""The loss far out along a direction: which tokens decide its sign, and from which radius on they do.

E(p) = L(p) - L with all attention on a selection. For a token t with row a_t = k_selected - k_t and score gap g_t =
gamma_selected - gamma_t, the attention is s_t <= exp(-a_t'p), and s_t >= exp(-a_t'p) / T where the selection leads.
With low <= |loss'| <= high on the range of the scores,
(1/n) (low sum+ s_t g_t - high sum- s_t |g_t|) <= E(p) <= (1/n) (high sum+ s_t g_t - low sum- s_t |g_t|),
sum+ over positive and sum- over negative gaps. So the tokens nearest to the selected ones decide, once R is large.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..core.bags import Index, Vector
from ..core.margin_losses import Scaled
from ..core.selection_loss import SelectionProblem
from ..selection import ON_THE_MARGIN
from .assumptions import slopes

__all__ = ["View", "beyond", "compared", "unit"]


def unit(x: Vector) -> Vector:
    return np.asarray(x / np.linalg.norm(x), np.float64)


def beyond(begin: float) -> list[float]:
    """Radii at which "from this radius on" is tried."""
    return [begin, 3 * begin, 10 * begin]


def compared(x: Scaled, y: Scaled) -> float:
    """(x - y) / max(|x|, |y|), a number in [-2, 2] whatever the scales; 0 if both are 0.

    >>> round(compared(Scaled(np.array(1.0), -2000.0), Scaled(np.array(3.0), -2000.0)), 9)  # 1/3 - 1
    -0.666666667
    """
    top = max(x.log, y.log)
    if top == -math.inf:
        return 0.0
    return x.sign * math.exp(x.log - top) - y.sign * math.exp(y.log - top)


@dataclass(frozen=True, eq=False)
class View:
    """How far behind the selected tokens the others are, seen along a direction.

    Selected are given tokens, or those that lead; of tokens that tie for the lead, the best scored.
    """

    problem: SelectionProblem
    direction: Vector  # of length 1
    given: Index | None = None  # rows

    @cached_property
    def chosen(self) -> Index:
        """(n,) rows of the selected tokens."""
        if self.given is not None:
            return self.given
        keys, a = self.problem.keys, self.problem.keys.rows @ self.direction
        leads = a >= keys.spread(keys.max(a)) - 1e-12 * (1 + np.abs(a).max())
        return keys.starts[:-1] + keys.argmax(np.where(leads, self.problem.scores, -np.inf))

    @property
    def selection(self) -> Index:
        return self.chosen - self.problem.keys.starts[:-1]

    @cached_property
    def others(self) -> Index:
        return np.delete(np.arange(len(self.problem.scores)), self.chosen)

    @cached_property
    def rows(self) -> Vector:
        """(m, d) k_selected - k_t of all other tokens."""
        keys = self.problem.keys
        return keys.rows[self.chosen[keys.bag[self.others]]] - keys.rows[self.others]

    @cached_property
    def gaps(self) -> Vector:
        """(m,) gamma_selected - gamma_t."""
        scores = self.problem.scores
        return scores[self.chosen[self.problem.keys.bag[self.others]]] - scores[self.others]

    @cached_property
    def margins(self) -> Vector:
        return self.rows @ self.direction

    @property
    def margin(self) -> float:
        return float(self.margins.min())

    @cached_property
    def near(self) -> NDArray[np.bool_]:
        """(m,) the directional neighbours: tokens that attain the margin."""
        return self.margins <= self.margin + ON_THE_MARGIN * max(1.0, abs(self.margin))

    @property
    def step(self) -> float:
        """How much further the next tokens are behind; inf if all are neighbours."""
        return float(self.margins[~self.near].min(initial=math.inf)) - self.margin

    @property
    def least_gap(self) -> float:
        """The least |gap| of a neighbour that does not tie in score; of any token, if all neighbours tie."""
        gaps = np.abs(self.gaps)
        telling = self.near & (gaps > 0)
        return float(gaps[telling if telling.any() else gaps > 0].min())

    @property
    def reach(self) -> float:
        """The longest row: moving p by x changes no margin by more than x times this."""
        return float(np.linalg.norm(self.rows, axis=1).max())

    @property
    def log_everything(self) -> float:
        """log of what |E| cannot exceed beside exp(-(least margin) R): high (T - 1) (largest gap)."""
        tokens = int(self.problem.keys.sizes.max())
        return math.log(slopes(self.problem).largest * (tokens - 1) * float(np.abs(self.gaps).max()))

    @property
    def log_neighbour(self) -> float:
        """log of what one neighbour alone brings beside exp(-margin R): low (least gap) / (n T)."""
        keys = self.problem.keys
        return math.log(slopes(self.problem).least * self.least_gap / (len(keys) * int(keys.sizes.max())))

    def radius(self, rate: float) -> float:
        """From here on one neighbour outweighs four times everything that is smaller by exp(-rate R)."""
        return max(1.0, (math.log(4) + self.log_everything - self.log_neighbour) / rate)

    def change(self, p: Vector) -> Scaled:
        """E(p)."""
        return self.problem.read((p,)).excess(self.chosen)
