"""What descent owes to the loss, the start and the steps: an offset, the limit, the pace."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ....model.ragged import Bags, Vector
from ...descent.steps import Normalised, Plain, Polyak, Step, power
from ...problems.geometry import misalignment
from ...problems.losses import Correlation, Exponential, Logistic, MarginLoss
from ...problems.problem import Problem
from ...svm.solution import Solution
from ..claim import Counter, Hypothesis, claim
from ..instances import FAR, descent_steps, flow_path, longest_difference, two_limits, two_scores
from .assumptions import LOSSES, Local, best_solution, draw_equal_scores
from .lemmas import EQUAL, FALLS, FEASIBLE, PAPER

# Fig 5: the loss decides an offset -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Drift:
    """Two inputs with good tokens at (1, 1) of score C and at (1, -1) of score 1, each beside a token 0 of score 0."""

    C: float
    loss: MarginLoss
    start: Vector

    @property
    def problem(self) -> Problem:
        return two_scores(self.C, self.loss)


def _draw_drift(rng: np.random.Generator) -> Drift:
    return Drift(float(10 ** rng.uniform(-1, 1)), LOSSES[rng.integers(len(LOSSES))], rng.normal(size=2))


POSITIVE = Hypothesis[Drift]("both good tokens score more than 0", lambda x: x.C > 0)
EXPERIMENT = [(C, loss) for C in (1.0, 2.0, 5.0, 10.0, 100.0) for loss in (Correlation(), Logistic(), Exponential())]


def _from_zero(C: float, loss: MarginLoss) -> Callable[[], Drift]:
    return lambda: Drift(C, loss, np.zeros(2))


@claim(
    "mm.loss-drift",
    says="On the two inputs of the experiment the direction tends to (1, 0) for every loss, but p_2 tends to "
    "0.5 log(C |loss'(C)| / |loss'(1)|): with C > 1 up, to the high score, for -x, down for logistic and exponential.",
    source="keytokens, after " + PAPER + "Fig 5",
    tolerance=1e-4,  # of an offset, along a path that is followed with long steps
    hypotheses=(FALLS, POSITIVE),
    draw=_draw_drift,
    seeds=10,
    known=tuple(_from_zero(C, loss) for C, loss in EXPERIMENT),
    counters=(Counter("C = -1", POSITIVE.says, lambda: Drift(-1.0, Logistic(), np.zeros(2))),),
)
def _offset(x: Drift) -> float:
    """| p_2 - 0.5 log(C |loss'(C)| / |loss'(1)|) | at |p| = 1000."""
    p = flow_path(x.problem, x.start, 1e3)[-1].p
    log_slopes = x.loss.log_abs_slope(np.array([x.C, 1.0]))
    return float(abs(p[1] - 0.5 * (np.log(abs(x.C)) + log_slopes[0] - log_slopes[1]))) + float(p[0] < 0)


# Fig 8: two limits ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TwoLimits:
    """Keys (1, 0), 0 and (-a, b), 0, the first token of each input the better; two starts."""

    problem: Problem
    to_best: Vector
    to_other: Vector

    @property
    def best(self) -> Local:
        return Local(self.problem, np.array([0, 0]))

    @property
    def other(self) -> Local:
        return Local(self.problem, np.array([0, 1]))


def _draw_two_limits(rng: np.random.Generator) -> TwoLimits:
    a, b = rng.uniform([1.5, 0.5], [3.0, 2.0])
    return _two_limits(float(a), float(b), rng.uniform(0.5, 2.0, 2), LOSSES[rng.integers(len(LOSSES))])


def _two_limits(a: float, b: float, gaps: Vector, loss: MarginLoss) -> TwoLimits:
    """Starts twenty times as long as the max-margin directions."""
    scores = np.array([gaps[0], 0.0, gaps[1], 0.0])
    problem = Problem.of(Bags.of([[[1, 0], [0, 0]], [[-a, b], [0, 0]]]), scores, loss)
    starts = (20 * Local(problem, np.array(selection)).direction for selection in ([0, 0], [0, 1]))
    return TwoLimits(problem, *starts)


BOTH = Hypothesis[TwoLimits](
    "both selections are locally optimal", lambda x: x.best.is_locally_optimal and x.other.is_locally_optimal
)


def _pair(to_best: tuple[float, float], to_other: tuple[float, float]) -> Callable[[], TwoLimits]:
    return lambda: TwoLimits(two_limits(), np.array(to_best), np.array(to_other))


@claim(
    "mm.tightness",
    says="With two inputs the direction of the limit depends on the start, though all tokens but the best share one "
    "score: one start goes to the best tokens' max-margin direction, another to that of a selection whose second "
    "token is not the best but has no neighbour.",
    source=PAPER + "Fig 8",
    tolerance=1e-9,  # 1 - cos at |p| = 1e6
    hypotheses=(FALLS, EQUAL, BOTH),
    draw=_draw_two_limits,
    seeds=16,
    known=(
        _pair((0, 0), (2, 0)),
        _pair((0, 1), (5, 0)),
        _pair((0, 2), (2, 0)),
        _pair((0, 5), (5, 0)),
        _pair((-1, 0), (2, 0)),
        _pair((0, -1), (5, 0)),
    ),
    counters=(
        Counter(
            "a second token whose neighbour is better", BOTH.says, lambda: _two_limits(0.5, 1.0, np.ones(2), Logistic())
        ),
    ),
    notes="The figure's coordinates are not printed; these are ours.",
)
def _both_reached(x: TwoLimits) -> float:
    pairs = ((x.to_best, x.best), (x.to_other, x.other))
    return max(misalignment(flow_path(x.problem, start, FAR)[-1].p, limit.direction) for start, limit in pairs)


# How fast ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Rate:
    """A run from a start on the way to the limit, by a rule whose norm should grow by `pace` per unit of the clock."""

    problem: Problem
    start: Vector
    rule: Step
    clock: Callable[[Vector], Vector]
    pace: float


def _plain_rate(problem: Problem, start: Vector, solution: Solution) -> Rate:
    """L - L* falls by eta ((L - L*)/|p_mm|)^2 a step: L - L* = |p_mm|^2 / (eta (t + t0)).

    Steps such that t0 = 50, or more where eta times the curvature, at most D^2 (L - L*), would exceed 1.
    """
    gap = float(problem.gap(problem.read((start,))).plain)
    t0 = max(50.0, (longest_difference(problem) * solution.norm) ** 2)
    return Rate(problem, start, Plain(solution.norm**2 / (t0 * gap)), lambda t: np.log(t + t0), solution.norm)


def _normalised_rate(problem: Problem, start: Vector, solution: Solution) -> Rate:
    eta = _short(problem, solution)
    return Rate(problem, start, Normalised(eta), lambda t: t, eta)


def _decaying_rate(problem: Problem, start: Vector, solution: Solution) -> Rate:
    eta = 2 * _short(problem, solution)
    return Rate(problem, start, Normalised(power(eta, 0.75)), lambda t: 4 * t**0.25, eta)


def _polyak_rate(problem: Problem, start: Vector, solution: Solution) -> Rate:
    """|grad| <= D (L - L*) far out, so a cap below 1/D is always reached."""
    cap = 0.7 * _short(problem, solution)
    return Rate(problem, start, Polyak(cap), lambda t: t, cap)


def _short(problem: Problem, solution: Solution) -> float:
    """1/(D^2 |p_mm|): steps that do not zigzag.

    |grad| >= (L - L*)/|p_mm| and no curvature is above D^2 (L - L*), so the unit gradient turns by no more than
    D^2 |p_mm| per unit of length.
    """
    return 1 / (longest_difference(problem) ** 2 * solution.norm)


RULES = (_plain_rate, _normalised_rate, _decaying_rate, _polyak_rate)


def _draw_rate(rng: np.random.Generator) -> Rate:
    make = RULES[rng.integers(len(RULES))]
    while True:
        n, T = rng.integers([1, 2], [4, 4])
        problem = draw_equal_scores(rng, n, T, n * (T - 1) + 1)
        solution = best_solution(problem)
        if not _clear(problem):
            continue
        begin = 0.5 * solution.norm * rng.normal(size=problem.keys.dim)
        start = flow_path(problem, begin, 200 * solution.norm)[-1].p
        if _on_the_way(problem, start):
            return make(problem, start, solution)


def _clear(problem: Problem) -> bool:
    """Whether multipliers and slacks are not both nearly zero: else offsets and angles settle late."""
    solution = best_solution(problem)
    return bool(((solution.lam > 0.05 * solution.lam.max()) | (solution.slack > 0.3)).all())


def _on_the_way(problem: Problem, start: Vector) -> bool:
    """Whether the best tokens have nearly all attention."""
    reading = problem.read((start,))
    return bool(np.array_equal(reading.selected, reading.best) and reading.attention[reading.best].min() > 1 - 1e-3)


def _degenerate() -> Rate:
    """Rows (1, 0) and (1, 1) are tight at p_mm = (1, 0), which needs the first only: p_2 grows like log|p|."""
    problem = Problem.of(Bags.of([[[0, 0], [-1, 0], [-1, -1]]]), np.eye(3)[0])
    solution = best_solution(problem)
    return _normalised_rate(problem, flow_path(problem, np.zeros(2), 20.0)[-1].p, solution)


CLEAR = Hypothesis[Rate]("tight rows have multipliers, others have slack", lambda x: _clear(x.problem))
ON_THE_WAY = Hypothesis[Rate](
    "the run begins where the best tokens have won", lambda x: _on_the_way(x.problem, x.start)
)


@claim(
    "mm.rates",
    says="Late in a run |p| grows like |p_mm| log t by gradient descent, like eta t by normalised steps eta, like "
    "4 eta t^(1/4) by normalised steps eta t^(-3/4), like c t by Polyak steps with a small cap c; the angle to p_mm "
    "falls like 1/|p|.",
    source="keytokens",
    tolerance=0.05,  # of fitted slopes
    hypotheses=(FALLS, EQUAL, FEASIBLE, CLEAR, ON_THE_WAY),
    draw=_draw_rate,
    seeds=24,
    counters=(Counter("a tight row without a multiplier", CLEAR.says, _degenerate),),
)
def off_the_law(x: Rate) -> float:
    """By how much the fitted pace of the norm, relatively, and the fitted power of the angle, -1, are wrong."""
    solution = best_solution(x.problem)
    late = descent_steps(x.problem, x.rule, x.start, 160)[40:]
    t = np.array([state.t for state in late], np.float64)
    norms = np.array([state.norm for state in late])
    angles = np.sqrt([2 * misalignment(state.p, solution.p) for state in late])
    pace = np.polyfit(x.clock(t), norms, 1)[0]
    power_of_angle = np.polyfit(np.log(norms), np.log(angles), 1)[0]
    return float(max(abs(pace / x.pace - 1), abs(power_of_angle + 1)))
