"""What the theorems on max-margin token selection suppose, as tests of an instance; and a loss that is not convex."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..core.bags import Bags, Index, Vector
from ..core.margin_losses import Correlation, Exponential, Logistic, MarginLoss, Scaled, log_abs
from ..core.selection_loss import Reading, SelectionProblem
from ..errors import InputError, NotSeparable
from ..selection import has_equal_scores, tight_smoothness
from ..svm import MarginProblem, MarginSolution, solve

__all__ = [
    "LOSSES",
    "Sigmoid",
    "Slopes",
    "along",
    "best_solution",
    "can_win",
    "draw_equal_scores",
    "equal_scores",
    "falls",
    "is_separable",
    "log_missed",
    "slopes",
    "step_limit",
]


@dataclass(frozen=True)
class Sigmoid:
    """loss(x) = 1/(1 + exp(x)): strictly decreasing, bounded, not convex; the theorems ask for no more."""

    name: str = "sigmoid"

    def value(self, x: Vector) -> Vector:
        return np.exp(-np.logaddexp(0, x))

    def slope(self, x: Vector) -> Vector:
        return -np.exp(self.log_abs_slope(x))

    def log_abs_slope(self, x: Vector) -> Vector:
        return -np.logaddexp(0, x) - np.logaddexp(0, -x)

    def log_value(self, x: Vector) -> Vector:
        return -np.logaddexp(0, x)

    def change(self, x: Vector, sign: Vector, log_delta: Vector) -> tuple[Vector, Vector]:
        # 1/(1 + e^(x+d)) - 1/(1 + e^x) = -(e^d - 1) e^x / (1 + e^(x+d)) / (1 + e^x)
        delta = sign * np.exp(log_delta)
        log_expm1 = np.where(np.abs(delta) < 1e-8, log_delta + delta / 2, log_abs(np.expm1(delta)))
        return -sign, log_expm1 + x - np.logaddexp(0, x + delta) - np.logaddexp(0, x)


LOSSES: tuple[MarginLoss, ...] = (Logistic(), Exponential(), Correlation(), Sigmoid())

# The Lipschitz constant of loss' on margins of at least `low`.
_CURVATURES: dict[str, Callable[[float], float]] = {
    "logistic": lambda low: 0.25,
    "exponential": lambda low: float(np.exp(-low)),
    "correlation": lambda low: 0.0,
    "sigmoid": lambda low: 1 / (6 * np.sqrt(3)),
}


@dataclass(frozen=True)
class Slopes:
    """|loss'| on an interval of margins lies between `least` and `largest`; loss' is `curvature`-Lipschitz there."""

    least: float
    largest: float
    curvature: float


def slopes(problem: SelectionProblem) -> Slopes:
    """On the margins that attention can give: between the lowest and the highest score.

    |loss'| of these losses rises up to one point (0 or minus infinity) and falls from there: its least value is at an
    end, its largest at the end or at 0.
    """
    low, high = float(problem.scores.min()), float(problem.scores.max())
    at = np.exp(problem.loss.log_abs_slope(np.array([low, high, min(max(low, 0.0), high)])))
    return Slopes(float(at.min()), float(at.max()), _CURVATURES[problem.loss.name](low))


def falls(problem: SelectionProblem) -> bool | None:
    """Whether the loss falls strictly, with a bounded and Lipschitz slope; not decided for losses other than ours."""
    return True if problem.loss.name in _CURVATURES else None


def equal_scores(problem: SelectionProblem) -> bool:
    """Whether in each input one token is best and all others share one lower score."""
    try:
        return has_equal_scores(problem.keys, problem.scores)
    except InputError:  # two best tokens
        return False


def best_solution(problem: SelectionProblem) -> MarginSolution:
    """The max-margin problem of the tokens with the largest scores; NotSeparable if no direction lets them win."""
    return solve(_best_rows(problem))


def can_win(problem: SelectionProblem) -> bool:
    """Whether some direction separates the tokens with the largest scores from the others."""
    return is_separable(_best_rows(problem))


def _best_rows(problem: SelectionProblem) -> MarginProblem:
    return MarginProblem.from_selection(problem.keys, problem.keys.argmax(problem.scores))


def is_separable(rows: MarginProblem) -> bool:
    """Whether some direction meets all the rows."""
    try:
        solve(rows)
    except NotSeparable:
        return False
    return True


def step_limit(problem: SelectionProblem) -> float:
    """1/L, L the smoothness of the loss in p from keys and scores."""
    bounds = slopes(problem)
    return 1 / tight_smoothness(problem.keys, problem.scores, bounds.curvature, bounds.largest)


def along(problem: SelectionProblem, p: Vector, q: Vector) -> Scaled:
    """-q'grad L(p), a number that may be below any float."""
    (down,) = problem.descent(problem.read((p,)), (p,))
    return Scaled(np.asarray(down.array @ q), down.log_scale)


def log_missed(reading: Reading, rows: Index) -> Vector:
    """(n,) log(1 - s_row) of one token a bag: the logarithm of the sum of the others."""
    others = reading.log_attention.copy()
    others[rows] = -np.inf
    top = reading.bags.max(others)
    return np.log(reading.bags.sum(np.exp(others - reading.bags.spread(top)))) + top


def draw_equal_scores(rng: np.random.Generator, n: int, T: int, d: int) -> SelectionProblem:
    """Random keys, any of the losses; in each input one best token, which can win, and others of one score."""
    best = rng.integers(T, size=n)
    low, gap = rng.normal(size=(n, 1)), rng.uniform(0.1, 2.0, (n, 1))
    scores = np.where(np.arange(T) == best[:, None], low + gap, low).ravel()
    loss = LOSSES[rng.integers(len(LOSSES))]
    while True:
        problem = SelectionProblem(Bags.of(rng.normal(size=(n, T, d))), scores, loss)
        if can_win(problem):
            return problem
