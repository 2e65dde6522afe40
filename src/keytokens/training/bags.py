"""From bags and labels to weights: the sum of the losses plus ridge penalties, by L-BFGS.

Mean and maximum of the features, with weights of their own, stand beside the attention where that helps: both are
trained alone, and mixed by what they say of bags that were held out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from ..base.progress import progress
from ..model.features import FARTHEST, FeatureMap
from ..model.losses import loss_for
from ..model.pooling import Beside, Shape, Weights, objective_of
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


# Beside attention -----------------------------------------------------------------------------------------------------

BESIDE_PENALTY = 0.07  # of weights of features of mean squared length 1
FOLDS = 5
GAIN = 2.0  # nats of the held-out loss: what two more weights must bring, and a little
HOLD = 4.0  # what holds the shares where they begin: at a half each, or at the attention alone

Scores = Callable[[Bags], Array]  # (m, n) of bags


def fit_beside(bags: Bags, codes: NDArray[np.intp], weight: Array, n_classes: int) -> tuple[Beside, Array]:
    """Weights of mean and maximum of features, and the intercepts (m,): a logistic regression with a ridge."""
    pooled = Beside.pool(bags)
    rows = Bags(pooled, np.arange(len(bags) + 1))  # one instance a bag: its attention is 1
    phi, features = FeatureMap.learn(rows, weight, "linear", limit=FARTHEST)  # linear in the pools
    shape = Shape.of(features.shape[1], n_classes, "linear", 0)
    training = Training(shape, BESIDE_PENALTY, 1.0, 500, 1e-4)
    start = first_weights(shape, codes, weight, 1, None)
    best, _ = training.best(rows.with_rows(features), codes, weight, n_classes, start)
    w = Weights.unpack(best.state.theta, *shape)
    slopes = w.V * phi.transform[0, 0] / phi.scale
    return Beside(*np.split(slopes, 2, axis=1)), w.e - w.V @ phi.centre - slopes @ phi.mean


def folds_of(bags: Bags, codes: NDArray[np.intp], weight: Array) -> NDArray[np.intp] | None:
    """(n,) a fold for each bag, -1 for one without weight; None if a class has one bag only.

    By contents: equal bags share a fold, so a bag of weight 2 is two bags, and the order of bags does not matter.
    """
    names = np.array(
        [hashlib.blake2b(bag.tobytes(), digest_size=8).hexdigest() for bag in map(bags.__getitem__, range(len(bags)))]
    )
    found = np.full(len(bags), -1)
    for code in range(codes.max() + 1):
        own = np.flatnonzero((codes == code) & (weight > 0))
        different, place = np.unique(names[own], return_inverse=True)
        if len(different) < 2:
            return None
        found[own] = place % FOLDS
    return found


def mixture(
    fit: Callable[[NDArray[np.bool_]], tuple[Scores, Scores]],
    bags: Bags,
    codes: NDArray[np.intp],
    weight: Array,
    n_classes: int,
) -> tuple[float, float]:
    """How much of attention, and of what stands beside it: none, unless both together are better on held-out bags.

    `fit` gives the two kinds of scores, from the bags that it is told to see.
    """
    folds = folds_of(bags, codes, weight)
    if folds is None:
        return 1.0, 0.0
    held = np.zeros((2, 1 if n_classes == 2 else n_classes, len(bags)))
    for fold in np.unique(folds[folds >= 0]):
        here = np.flatnonzero(folds == fold)
        for kind, scores in enumerate(fit((folds >= 0) & (folds != fold))):
            held[kind][:, here] = scores(bags.some(here))
    loss = loss_for(n_classes)

    def best(centre: Array) -> tuple[float, Array]:
        """The least held-out loss and the shares for it, near a centre; what is not in it stays out."""

        def objective(share: Array) -> tuple[float, Array]:
            scores = np.tensordot(share, held, 1)
            slope = np.tensordot(held, weight * loss.slope(scores, codes), 2)
            away = share - centre
            return float(weight @ loss.value(scores, codes) + HOLD / 2 * away @ away), slope + HOLD * away

        bounds = [(0.0, None if middle else 0.0) for middle in centre]
        share = minimize(objective, centre, jac=True, bounds=bounds, method="L-BFGS-B").x
        return float(weight @ loss.value(np.tensordot(share, held, 1), codes)), share

    (alone, one), (both, two) = best(np.array([1.0, 0.0])), best(np.array([0.5, 0.5]))
    share = two if both < alone - GAIN else one
    return float(share[0]), float(share[1])
