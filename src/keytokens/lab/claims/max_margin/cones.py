"""What descent owes to the loss, the start and the steps: an offset, the limit, the pace."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ....model.ragged import Vector
from ...descent.steps import Normalised, Plain, Polyak, Step, power
from ...problems.losses import Logistic, MarginLoss
from ...problems.problem import Problem
from ...svm.solution import Solution
from ..claim import Counter, Hypothesis, claim
from ..instances import (
    as_one_long_p,
    descent_steps,
    flow_path,
    longest_difference,
    self_attention,
    two_scores,
)
from .assumptions import CONVEX, best_solution, draw_equal_scores, draw_small, is_clear, near, one_input, settles
from .descents import LocalRun
from .lemmas import EQUAL, FALLS, FEASIBLE, LOCAL, PAPER

# Where p stands beside the ray: Fig 5 and all others -----------------------------------------------------------------


def unsettled(solution: Solution, log_weights: Vector, p: Vector) -> float:
    """How far the logits a_j'p of rows with a multiplier are from t + log(weight_j/lam_j), the same t for all of them.

    Far out minus the gradient is sum_j weight_j exp(-a_j'p) a_j. It points along p_mm = sum_j lam_j a_j, for good,
    where weight_j exp(-a_j'p) is in proportion to lam_j.
    """
    tight = solution.lam > 1e-9 * solution.lam.max()
    off = (solution.problem.times(p) - log_weights)[tight] + np.log(solution.lam[tight])
    return float(np.ptp(off))


def _draw_settling(rng: np.random.Generator) -> LocalRun:
    while True:
        local = draw_small(rng)
        if settles(local.optimum.solution):
            start = near(rng, local.direction, local.cone.mu * rng.random(), local.descent_radius)
            return LocalRun(local.problem, local.selection, start)


def _two_scores(C: float, loss: MarginLoss) -> Callable[[], LocalRun]:
    """Fig 5: good tokens at (1, 1) of score C and at (1, -1) of score 1, each beside a token 0 of score 0."""
    return lambda: LocalRun(two_scores(C, loss), np.array([1, 1]), np.zeros(2))


def _degenerate_problem() -> Problem:
    """Rows (1, 0) and (1, 1) are tight at p_mm = (1, 0), which needs the first only: p_2 grows like log|p|."""
    return one_input([[0, 0], [-1, 0], [-1, -1]], np.eye(3)[0])


CLEARLY = Hypothesis[LocalRun](
    "tight rows have multipliers, others have slack", lambda x: x.judged is None or is_clear(x.optimum.solution)
)


@claim(
    "mm.loss-drift",
    says="Far out the logits of the tokens on the margin stand at t + log(|loss'_i| (score gap) / multiplier), one t "
    "for all: the loss and the scores decide an offset, which stays. With good tokens (1, 1) of score C and (1, -1) of "
    "score 1 p_2 tends to 0.5 log(C |loss'(C)| / |loss'(1)|): with C > 1 up for -x, down for logistic and exponential.",
    source="keytokens, after " + PAPER + "Fig 5",
    tolerance=1e-3,  # of logits, along a path that is followed with long steps; what is left falls like 1/|p|
    constant="the weight of the first token on the margin",
    hypotheses=(FALLS, LOCAL, CLEARLY),
    draw=_draw_settling,
    seeds=20,
    known=tuple(_two_scores(C, loss) for C in (1.0, 2.0, 5.0, 10.0, 100.0) for loss in CONVEX),
    counters=(
        Counter("the good token of one input is worse", LOCAL.says, _two_scores(-1.0, Logistic())),
        Counter(
            "a tight row without a multiplier",
            CLEARLY.says,
            lambda: LocalRun(_degenerate_problem(), np.array([0]), np.zeros(2)),
        ),
    ),
)
def _offset(x: LocalRun, by: float = 1.0) -> float:
    """The tight logits against their law, and how far they move against each other on the last part of the way.

    That is the flow from 30 to 100 times the norm of the start, or the same beside 10.
    """
    size, path = max(10.0, float(np.linalg.norm(x.start))), [x.start]
    for far in (10, 30, 100):
        path.append(flow_path(x.problem, path[-1], far * size)[-1].p)
    solution, (bag, token) = x.optimum.solution, x.optimum.solution.problem.names.T  # type: ignore[union-attr]
    keys, scores = x.problem.keys, x.problem.scores
    best = scores[keys.chosen(x.selection)][bag]
    log_weights = x.problem.loss.log_abs_slope(best) + np.log(np.abs(best - scores[keys.starts[bag] + token]))
    log_weights[np.flatnonzero(solution.slack < 1e-6)[0]] += np.log(by)
    moved = solution.problem.times(path[-1] - path[-2])[solution.slack < 1e-6]
    return max(unsettled(solution, log_weights, path[-1]), float(np.ptp(moved)))


# How fast ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Rate:
    """A run from a start on the way to the limit, by a rule whose norm should grow by `pace` per unit of the clock."""

    problem: Problem
    start: Vector
    rule: Step
    clock: Callable[[Vector], Vector]
    pace: float


def _rate(kind: int, problem: Problem, start: Vector, solution: Solution) -> Rate:
    """Gradient descent, normalised steps, those that shrink, Polyak steps: of lengths at which they do not zigzag.

    |grad| >= (L - L*)/|p_mm| and no curvature is above D^2 (L - L*), so the unit gradient turns by no more than
    D^2 |p_mm| per unit of length. |grad| <= D (L - L*) far out, so a Polyak cap below 1/D is always reached.

    By gradient descent L - L* falls by eta ((L - L*)/|p_mm|)^2 a step, so it is |p_mm|^2 / (eta (t + t0)): t0 = 50, or
    more where eta times the curvature would exceed 1.
    """
    D, size = longest_difference(problem), solution.norm
    short, t0 = 1 / (D**2 * size), max(50.0, (D * size) ** 2)
    gap = float(problem.gap(problem.read((start,))).plain)
    rules: tuple[tuple[Step, Callable[[Vector], Vector], float], ...] = (
        (Plain(size**2 / (t0 * gap)), lambda t: np.log(t + t0), size),
        (Normalised(short), lambda t: t, short),
        (Normalised(power(2 * short, 0.75)), lambda t: 4 * t**0.25, 2 * short),
        (Polyak(0.7 * short), lambda t: t, 0.7 * short),
    )
    return Rate(problem, start, *rules[kind])


def _draw_rate(rng: np.random.Generator) -> Rate:
    """Also self-attention: where the query is a token of the input, W is one long p."""
    kind = int(rng.integers(4))
    while True:
        n, T = rng.integers([1, 2], [4, 4]).tolist()
        if rng.integers(3):
            problem = draw_equal_scores(rng, n, T, n * (T - 1) + 1)
        else:
            problem = as_one_long_p(self_attention(rng, min(n, 2), 3, 3))
        solution = best_solution(problem)
        if not is_clear(solution):
            continue
        begin = 0.5 * solution.norm * rng.normal(size=problem.keys.dim)
        one = _rate(kind, problem, flow_path(problem, begin, 200 * solution.norm)[-1].p, solution)
        if ON_THE_WAY.holds(one):
            return one


def _on_the_way(x: Rate) -> bool:
    """Whether the best tokens have nearly all attention."""
    reading = x.problem.read((x.start,))
    return bool(np.array_equal(reading.selected, reading.best) and reading.attention[reading.best].min() > 1 - 1e-3)


def _degenerate() -> Rate:
    """From |p| = 8 by 160 short steps to 16: p_2, which grows like log|p|, gains a tenth of that."""
    problem = _degenerate_problem()
    return Rate(problem, flow_path(problem, np.zeros(2), 8.0)[-1].p, Normalised(0.05), lambda t: t, 0.05)


CLEAR = Hypothesis[Rate](CLEARLY.says, lambda x: is_clear(best_solution(x.problem)))
ON_THE_WAY = Hypothesis[Rate]("the run begins where the best tokens have won", _on_the_way)


@claim(
    "mm.rates",
    says="Late in a run p moves along p_mm, in self-attention as well: per unit of log t by |p_mm| by gradient "
    "descent, per step by eta by normalised steps, by c by Polyak steps with a small cap c, per unit of 4 t^(1/4) by "
    "eta by normalised steps eta t^(-3/4). So |p| grows like that, and the angle to p_mm falls like 1/|p|.",
    source="keytokens, after Implicit Bias and Fast Convergence Rates for Self-attention (arXiv:2402.05738), abstract",
    # Over 120 steps. What p has across p_mm differs between descent and flow by about a step, and a step goes to and
    # fro by less than its length: 2/120. The steps that plain descent has made before, 50 or more, count as 1/50.
    tolerance=0.05,
    constant="the pace",
    hypotheses=(FALLS, EQUAL, FEASIBLE, CLEAR, ON_THE_WAY),
    draw=_draw_rate,
    seeds=36,
    counters=(Counter("a tight row without a multiplier", CLEAR.says, _degenerate),),
)
def off_the_law(x: Rate, by: float = 1.0) -> float:
    """| (p - p before) / (pace times the clock in between) - p_mm/|p_mm| |."""
    solution = best_solution(x.problem)
    seen = descent_steps(x.problem, x.rule, x.start, 160)
    early, late = seen[40], seen[160]
    passed = float(np.diff(x.clock(np.array([early.t, late.t], np.float64)))[0])
    return float(np.linalg.norm((late.p - early.p) / (by * x.pace * passed) - solution.p / solution.norm))
