"""From bags of features and labels to weights: the sum of the losses plus ridge penalties, by L-BFGS."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base.progress import progress
from ..model.losses import loss_for
from ..model.pooling import Shape, Weights, objective_of
from ..model.ragged import Bags
from .lbfgs import LBFGS, LBFGSState
from .loop import Outcome, run

Array = NDArray[np.float64]


def first_weights(shape: Shape, codes: NDArray[np.intp], weight: Array, n_starts: int, seed: Any) -> list[Weights]:
    """Where the runs begin: no attention and no values but the prior odds; then random attention."""
    D, h, m = shape
    odds = _prior_odds(codes, weight, m or h)
    starts = []
    for number in range(n_starts):
        q = seed.standard_normal(D) if number else np.zeros(D)
        if m == 0:
            starts.append(Weights(q, np.zeros((h, D)), odds, np.zeros((0, h)), np.zeros(0)))
        else:
            U = seed.standard_normal((m, h)) / np.sqrt(h)
            starts.append(Weights(q, seed.standard_normal((h, D)), np.zeros(h), U, odds))
    return starts


def _prior_odds(codes: NDArray[np.intp], weight: Array, n_scores: int) -> Array:
    """The scores that give each class its share of the weight."""
    n_classes = max(n_scores, 2)
    total = np.log(np.maximum(np.bincount(codes, weight, n_classes), 1e-300))
    return np.asarray(total[1:] - total[0] if n_scores == 1 else total - total.mean())


@dataclass(frozen=True)
class Training:
    """What is minimised, and when to stop."""

    shape: Shape
    value_penalty: float
    attention_penalty: float
    max_iter: int
    tol: float
    verbose: int = 0

    @property
    def penalties(self) -> Weights:
        D, h, m = self.shape
        lv, lq = self.value_penalty, self.attention_penalty
        return Weights(np.full(D, lq), np.full((h, D), lv), np.zeros(h), np.full((m, h), lv), np.zeros(m))

    def best(
        self, bags: Bags, codes: NDArray[np.intp], weight: Array, n_classes: int, starts: list[Weights]
    ) -> tuple[Outcome[LBFGSState], list[float]]:
        """The best of the runs, and how its objective fell."""
        objective = objective_of(bags, codes, weight, loss_for(n_classes), self.shape, self.penalties)
        curvature = self.penalties.pack() + 0.25 * weight.sum() * _mean_squares(self.shape)
        method = LBFGS(objective, 1 / curvature, memory=10, tolerance=self.tol)
        runs = []
        # what overflows is seen in the value, and the status says so
        with progress(self.verbose) as tick, np.errstate(over="ignore", invalid="ignore"):
            for start in starts:
                history: list[float] = []

                def watch(state: LBFGSState, history: list[float] = history) -> None:
                    history.append(state.value)
                    tick(state.value)

                runs.append((run(method, start.pack(), self.max_iter, watch), history))
        return min(runs, key=lambda one: np.nan_to_num(one[0].state.value, nan=np.inf))


def _mean_squares(shape: Shape) -> Array:
    """What each parameter is multiplied by, squared, in the mean: phi has mean squared length 1."""
    D, h, m = shape
    each = np.full(D, 1 / D)
    return Weights(each, np.tile(each, (h, 1)), np.ones(h), np.ones((m, h)), np.ones(m)).pack()
