"""What the theorems on max-margin token selection suppose, as tests of an instance.

Also a loss that is not convex, and the constants and points of the cone around a locally optimal direction.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ....base.errors import InputError, refusal
from ....model.ragged import Bags, Index, Vector
from ...problems.geometry import misalignment
from ...problems.losses import Correlation, Exponential, Logistic, MarginLoss, Scaled, log_abs
from ...problems.problem import Problem
from ...problems.reading import Reading
from ...selection import Cone, LocalOptimum, cone, has_equal_scores, local_optimum, separable, tight_smoothness
from ...svm.problem import MarginProblem
from ...svm.solution import Solution
from ...svm.solver import solve, solved


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


CONVEX: tuple[MarginLoss, ...] = (Logistic(), Exponential(), Correlation())
LOSSES = (*CONVEX, Sigmoid())

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


def slopes(problem: Problem) -> Slopes:
    """On the margins that attention can give: between the lowest and the highest score.

    |loss'| of these losses rises up to one point (0 or minus infinity) and falls from there: its least value is at an
    end, its largest at the end or at 0.
    """
    low, high = float(problem.scores.min()), float(problem.scores.max())
    at = np.exp(problem.loss.log_abs_slope(np.array([low, high, min(max(low, 0.0), high)])))
    return Slopes(float(at.min()), float(at.max()), _CURVATURES[problem.loss.name](low))


def one_input(keys: Any, scores: Any, loss: MarginLoss = LOSSES[0]) -> Problem:
    return Problem.of(Bags.of([keys]), np.array(scores, np.float64), loss)


def falls(problem: Problem) -> bool | None:
    """Whether the loss falls strictly, with a bounded and Lipschitz slope; not decided for losses other than ours."""
    return True if problem.loss.name in _CURVATURES else None


def equal_scores(problem: Problem) -> bool:
    """Whether in each input one token is best and all others share one lower score."""
    try:
        return has_equal_scores(problem.keys, problem.scores)
    except InputError:  # two best tokens
        return False


def best_solution(problem: Problem, by: float = 1.0) -> Solution:
    """The max-margin problem of the tokens with the largest scores; NotSeparable if no direction lets them win."""
    return solve(leaning(best_rows(problem), by))


def best_rows(problem: Problem) -> MarginProblem:
    return MarginProblem.from_selection(problem.keys, problem.keys.argmax(problem.scores))


def can_win(problem: Problem) -> bool:
    """Whether some direction separates the tokens with the largest scores from the others."""
    return separable(problem.keys, problem.keys.argmax(problem.scores))


def is_separable(rows: MarginProblem) -> bool:
    """Whether some direction meets all the rows."""
    return solved(solve, rows) is not None


def leaning(rows: MarginProblem, by: float) -> MarginProblem:
    """The same rows, of which the first asks for so many times as much: its solution is another one, if that is tight.

    >>> leaning(MarginProblem.from_rows(np.eye(2)), 1.5).b.tolist()
    [1.5, 1.0]
    """
    return replace(rows, b=np.where(np.arange(len(rows)) == 0, by * rows.b, rows.b))


def is_clear(solution: Solution) -> bool:
    """Whether tight rows have multipliers and others have slack, clearly: else offsets and angles settle late."""
    return bool(((solution.lam > 0.05 * solution.lam.max()) | (solution.slack > 0.3)).all())


def settling_power(found: Solution, q: float = 2.0) -> float:
    """kappa: tight logits come to their law like exp(-kappa t), t the least margin; by the flow like time^-kappa.

    With W = t W_mm + x, dx/dt = -H^-1 sum_j lam_j d_j a_j for d_j = a_j'x, a_j without its part along the ties and H
    the second derivative of |W|_q^q / q: d falls by the least eigenvalue of M = A H^-1 A'diag(lam), beside M 1 = c 1.
    """
    on, ties = np.flatnonzero(found.lam > 1e-9 * found.lam.max()), found.problem.ties
    A, size = found.problem.rows(on), np.abs(found.p)
    A = A - A @ np.linalg.pinv(ties) @ ties if len(ties) else A
    M = A @ (np.maximum(size, 1e-6 * size.max()) ** (2 - q) * A).T * found.lam[on]
    return float(np.linalg.eigvals(M).real.min() / M.sum(axis=1).mean())


def settles(found: Solution, q: float = 2.0, power: float = 0.1) -> bool:
    """Whether offsets and angles settle soon."""
    return is_clear(found) and settling_power(found, q) > power


def step_limit(problem: Problem) -> float:
    """1/L, L the smoothness of the loss in p from keys and scores."""
    bounds = slopes(problem)
    return 1 / tight_smoothness(problem.keys, problem.scores, bounds.curvature, bounds.largest)


def widths(keys: Bags) -> Vector:
    """(n,) the longest k_it - k_iu of each input."""
    return np.array([np.linalg.norm(x[:, None] - x, axis=2).max() for x in (keys[i] for i in range(len(keys)))])


def along(problem: Problem, p: Vector, q: Vector) -> Scaled:
    """-q'grad L(p), a number that may be below any float."""
    (down,) = problem.descent(problem.read((p,)), (p,))
    return Scaled(np.asarray(down.array @ q), down.log_scale)


def compared(x: Scaled, y: Scaled) -> float:
    """(x - y) / max(|x|, |y|), a number in [-2, 2] whatever the scales; 0 if both are 0.

    >>> round(compared(Scaled(np.array(1.0), -2000.0), Scaled(np.array(3.0), -2000.0)), 9)  # 1/3 - 1
    -0.666666667
    """
    top = max(x.log, y.log)
    if top == -math.inf:
        return 0.0
    return x.sign * math.exp(x.log - top) - y.sign * math.exp(y.log - top)


def log_missed(reading: Reading, rows: Index) -> Vector:
    """(n,) log(1 - s_row) of one token a bag: the logarithm of the sum of the others."""
    others = reading.log_attention.copy()
    others[rows] = -np.inf
    top = reading.bags.max(others)
    return np.log(reading.bags.sum(np.exp(others - reading.bags.spread(top)))) + top


def log_attention_gap(reading: Reading) -> float:
    """log of the largest 1 - s over the bags, s the attention on a bag's selected token; exact however small."""
    return float(log_missed(reading, reading.selected).max())


def draw_equal_scores(rng: np.random.Generator, n: int, T: int, d: int) -> Problem:
    """Random keys, any of the losses; in each input one best token, which can win, and others of one score."""
    best = rng.integers(T, size=n)
    low, gap = rng.normal(size=(n, 1)), rng.uniform(0.1, 2.0, (n, 1))
    scores = np.where(np.arange(T) == best[:, None], low + gap, low).ravel()
    loss = LOSSES[rng.integers(len(LOSSES))]
    while True:
        problem = Problem.of(Bags.of(rng.normal(size=(n, T, d))), scores, loss)
        if can_win(problem):
            return problem


@dataclass(frozen=True, eq=False)
class Local:
    """A problem and a selection, to be judged."""

    problem: Problem
    selection: Index

    @cached_property
    def judged(self) -> LocalOptimum | None:
        """None where no direction lets the selection win."""
        return solved(local_optimum, self.problem.keys, self.problem.scores, self.selection)

    @property
    def optimum(self) -> LocalOptimum:
        assert self.judged is not None
        return self.judged

    @property
    def direction(self) -> Vector:
        """p_mm of the selection, with its length."""
        return self.optimum.solution.p

    def leaning(self, by: float) -> Vector:
        """The direction of a problem whose first row asks for so many times as much."""
        return self.direction if by == 1 else solve(leaning(self.optimum.solution.problem, by)).p

    @property
    def is_locally_optimal(self) -> bool:
        return self.judged is not None and self.judged.holds

    @property
    def all_have_neighbours(self) -> bool:
        """Whether each input has a token on the margin."""
        return self.judged is not None and bool(self.problem.keys.sum(self.optimum.neighbours.astype(np.float64)).all())

    @cached_property
    def cone(self) -> Cone:
        return cone(self.problem.keys, self.problem.scores, self.optimum)

    def holds_in_cone(self, p: Vector, radius: float) -> bool:
        """Whether cos(p, p_mm) >= 1 - mu and |p| >= radius, up to rounding."""
        narrow = misalignment(p, self.direction) <= self.cone.mu * (1 + 1e-6)
        return narrow and float(np.linalg.norm(p)) >= radius * (1 - 1e-9)

    @cached_property
    def gaps(self) -> Vector:
        """How far each neighbour's score is below that of its selected token."""
        keys, scores = self.problem.keys, self.problem.scores
        return (keys.spread(scores[keys.chosen(self.selection)]) - scores)[self.optimum.neighbours]

    @property
    def reach(self) -> float:
        """The longest k_it - k_iu."""
        return float(widths(self.problem.keys).max())

    @property
    def descent_radius(self) -> float:
        """From here on steps up to 1/L never leave the cone: at least the radius of the cone.

        max(2, 1/delta)/Theta log((2 - mu) C3 T / mu), where C3 is the larger of two constants. One makes it the radius
        of the cone; the other, C2/L with C2 = (1 - mu) reach^2 C^2 / (Theta c), pays for the length of the steps: c and
        C are 1/8 the least and twice the largest |loss'| (score gap).
        """
        found, steep = self.cone, slopes(self.problem)
        c, C = steep.least * float(self.gaps.min()) / 8, 2 * steep.largest * float(self.gaps.max())
        steps = (1 - found.mu) * self.reach**2 * C**2 / (found.margin * c) * step_limit(self.problem)
        tokens = int(self.problem.keys.sizes.max())
        far = max(2.0, 1 / found.delta) / found.margin * math.log((2 - found.mu) * steps * tokens / found.mu)
        return max(found.radius, far)


def off_digits(found: Iterable[float], expected: Iterable[float]) -> float:
    """By how much numbers differ, beyond the rounding of those that are given with four digits."""
    pairs = zip(found, expected, strict=False)
    return max((abs(a / b - 1) - 2e-4 for a, b in pairs if a != b), default=-math.inf)


def near(rng: np.random.Generator, axis: Vector, mu: float, size: float) -> Vector:
    """A vector of a given size with cos(p, axis) = 1 - mu."""
    unit = axis / np.linalg.norm(axis)
    aside = rng.normal(size=len(axis))
    aside -= unit * (unit @ aside)
    length = np.linalg.norm(aside)
    if not length:  # in one dimension there is no other direction
        return size * unit
    return size * ((1 - mu) * unit + math.sqrt(mu * (2 - mu)) * aside / length)


def draw_small(rng: np.random.Generator) -> Local:
    n, T, d = rng.integers([1, 2, 3], [4, 4, 6]).tolist()
    return draw_local(rng, n, T, d)


def draw_local(rng: np.random.Generator, n: int, T: int, d: int) -> Local:
    """Random keys and a random selection with a neighbour in each input.

    It outscores its neighbours, by gaps of different sizes, but not always the other tokens.
    """
    if d < n:  # no more than d rows are tight
        raise refusal("draw_local", "d", f"be at least the number of inputs, {n}", d)
    loss = LOSSES[rng.integers(len(LOSSES))]
    while True:
        keys, selection = Bags.of(rng.normal(size=(n, T, d))), rng.integers(T, size=n)
        level = rng.normal(size=(n, 1))
        scores = (level + rng.normal(size=(n, T))).ravel()
        scores[keys.chosen(selection)] = level.ravel()
        found = Local(Problem.of(keys, scores, loss), selection)
        if not found.all_have_neighbours:
            continue
        neighbours = found.optimum.neighbours
        scores[neighbours] = keys.spread(level.ravel())[neighbours] - 10 ** rng.uniform(-1.5, 0.5, neighbours.sum())
        return Local(Problem.of(keys, scores, loss), selection)
