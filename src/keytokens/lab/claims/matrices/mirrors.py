"""Two follow-ups: token selection by mirror descent in the norms |.|_q, and how fast self-attention is trained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ....model.ragged import Index, Vector
from ....training.loop import run
from ...descent.steps import Descent, DescentState, MirrorDescent, Normalised, Plain, Step
from ...problems.geometry import bregman, conjugate, divergence, mirror, misalignment, norm
from ...problems.problem import Problem
from ...problems.reading import Blocks
from ...svm.lq import solve_lq
from ...svm.problem import MarginProblem
from ...svm.sets import label_svm
from ...svm.solution import Solution
from ...svm.solver import solved
from ..claim import Counter, Hypothesis, claim
from ..instances import (
    Race,
    as_one_long_p,
    central_differences,
    cross_spheres,
    flow_path,
    joint,
    on_the_best,
    race_of,
    self_attention,
    two_inputs,
)
from ..max_margin.assumptions import best_solution, can_win, equal_scores, is_separable, step_limit
from ..max_margin.cones import CLEAR, ON_THE_WAY, RULES, Rate, off_the_law
from ..max_margin.lemmas import EQUAL, FALLS, FEASIBLE
from ..rates import log_attention_gap

MIRROR = "Optimizing Attention with Mirror Descent (arXiv:2410.14581), abstract"
RATES = "Implicit Bias and Fast Convergence Rates for Self-attention (arXiv:2402.05738), abstract"


def _draw_exponent(rng: np.random.Generator) -> float:
    return float(rng.choice([1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0]))


# The divergence, and one step ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Three:
    """Three points, some entries 0."""

    points: Vector  # (3, d)
    q: float


def _draw_three(rng: np.random.Generator) -> Three:
    points = rng.normal(size=(3, int(rng.integers(1, 8)))) * 10 ** rng.uniform(-2, 2)
    return Three(points * (rng.random(points.shape) < 0.9), _draw_exponent(rng))


@claim(
    "fu.bregman",
    says="The divergence of |.|_q^q / q is never negative, half the squared distance for q = 2, and obeys the identity "
    "of three points, D(a, b) + D(b, c) - D(a, c) = <phi'(c) - phi'(b), a - b>.",
    source="keytokens",
    tolerance=1e-12,
    draw=_draw_three,
    seeds=60,
)
def _three_points(x: Three) -> float:
    """D(a, b) + D(b, c) - D(a, c) = <phi'(c) - phi'(b), a - b>, beside the sizes of the terms; no D below 0."""
    a, b, c = x.points
    terms = [bregman(a, b, x.q), bregman(b, c, x.q), -bregman(a, c, x.q)]
    products = (mirror(c, x.q) - mirror(b, x.q)) * (a - b)
    size = np.abs(terms).sum() + np.abs(products).sum()
    half_square = np.sum((a - b) ** 2) / 2
    return float(
        max(
            abs(sum(terms) - products.sum()) / (size or 1.0),
            -min(terms[0], terms[1], -terms[2]),
            abs(bregman(a, b, 2.0) - half_square) / (half_square or 1.0),
        )
    )


@dataclass(frozen=True, eq=False)
class OneStep:
    """A point, a step length, and other points."""

    problem: Problem
    q: float
    W: Vector
    eta: float
    others: Vector  # (m, d, e)


def _draw_step(rng: np.random.Generator) -> OneStep:
    n, T, d = rng.integers([1, 2, 2], [4, 5, 5])
    problem = cross_spheres(rng, int(n), int(T), int(d))
    W, others = rng.normal(size=(d, d)), rng.normal(size=(5, d, d))
    return OneStep(problem, _draw_exponent(rng), W, float(rng.uniform(0.1, 2.0)), others)


@claim(
    "fu.mirror-step",
    says="A step of mirror descent is the minimiser of eta <gradient, W> + D(W, W_0): every other W is above it by "
    "exactly D(W, W_1). For q = 2 it is a step of gradient descent.",
    source="keytokens",
    tolerance=1e-7,  # of the differences
    draw=_draw_step,
    seeds=30,
)
def _from_the_best(x: OneStep) -> float:
    """J(W) = eta <g, W> + D(W, W_0) is least at the step W_1: J(W) - J(W_1) = D(W, W_1); g by differences."""
    after = run(MirrorDescent(x.problem, Plain(x.eta), q=x.q), x.W, 1).state.p
    g = central_differences(lambda W: x.problem.read((W,)).value, x.W)

    def objective(W: Vector) -> float:
        return float(x.eta * np.vdot(g, W)) + bregman(W, x.W, x.q)

    above = [objective(W) - objective(after) for W in x.others]
    apart = [bregman(W, after, x.q) for W in x.others]
    worst = max(abs(a - b) / (1 + b) for a, b in zip(above, apart, strict=True))
    if x.q == 2:
        worst = max(worst, float(np.abs(after - run(Descent(x.problem, Plain(x.eta)), x.W, 1).state.p).max()))
    return worst


# The max-margin problem ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LqProblem:
    """Rows A p >= 1, and points to compare with."""

    A: Vector
    q: float
    points: Vector  # (m, d)


def _draw_lq(rng: np.random.Generator) -> LqProblem:
    m, d = rng.integers([1, 2], [12, 9])
    w = rng.normal(size=d)
    A = rng.normal(size=(m, d))
    A *= np.sign(A @ w)[:, None]  # so that w separates
    return LqProblem(A, _draw_exponent(rng), w + 0.3 * rng.normal(size=(20, d)))


SEPARABLE = Hypothesis[LqProblem]("some direction separates", lambda x: is_separable(MarginProblem.from_rows(x.A)))


@claim(
    "fu.lq-svm",
    says="Where some direction separates, the least norm |p|_q with A p >= 1 is the largest lam'1 / |A'lam|_r over "
    "lam >= 0, 1/q + 1/r = 1, and sign(p) |p|^(q-1) is in proportion to A'lam, a sum of tight rows.",
    source="keytokens",
    tolerance=1e-8,
    hypotheses=(SEPARABLE,),
    draw=_draw_lq,
    seeds=60,
    counters=(
        Counter(
            "a row and its opposite", SEPARABLE.says, lambda: LqProblem(np.array([[1.0], [-1.0]]), 3.0, np.ones((1, 1)))
        ),
    ),
)
def _duality(x: LqProblem) -> float:
    """The bound from below is reached, by a point whose mirror is a sum of tight rows; no feasible point beats it."""
    found = solved(solve_lq, MarginProblem.from_rows(x.A), x.q)
    if found is None:
        return np.inf
    margins = x.A @ x.points.T  # (m, points)
    scaled = [point / least for point, least in zip(x.points, margins.min(axis=0), strict=True) if least > 0]
    beaten = max((1 - norm(point, x.q) / found.bound for point in scaled), default=-np.inf)
    pull = x.A.T @ found.lam
    turned = misalignment(mirror(pull, conjugate(x.q)), found.p)
    slack = float(found.lam @ np.abs(x.A @ found.p - 1)) / float(found.lam.sum())
    return max(abs(norm(found.p, x.q) / found.bound - 1), beaten, turned, slack, 1 - float((x.A @ found.p).min()))


# Where mirror descent goes -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class MirrorRun:
    """A run in the norm of q, and the norm in which its limit is looked for."""

    problem: Problem
    q: float
    start: Vector
    measured: float

    @cached_property
    def end(self) -> DescentState:
        return run(MirrorDescent(self.problem, _pace(self.q), q=self.q), self.start, 350).state


def _pace(q: float) -> Step:
    """Steps that grow, as far as the mirror can be long: |W| grows like the root q - 1 of their sum."""
    return Normalised(lambda t: min(30.0 if q < 2.5 else 1000.0, 0.1 * 1.05**t))


def _draw_mirror_run(rng: np.random.Generator, exponents: tuple[float, ...] = (1.5, 1.75, 2.0, 2.5, 3.0)) -> MirrorRun:
    while True:
        problem, q = cross_spheres(rng, 2, 3, 3), float(rng.choice(exponents))
        x = MirrorRun(problem, q, rng.normal(size=(3, 3)), q)
        if _saturated(x) and _locally_optimal(x):
            return x


def _saturated(x: MirrorRun) -> bool:
    return log_attention_gap(x.end.reading) < np.log(1e-6)


def _locally_optimal(x: MirrorRun) -> bool:
    """Whether the selected tokens have better scores than those on the margin, clearly; the margin clear as well."""
    reading = x.end.reading
    found = solve_lq(MarginProblem.from_selection(x.problem.keys, reading.selection), x.q)
    starts, scores = x.problem.values.starts, x.problem.scores
    gaps = [scores[reading.selected[i]] - scores[starts[i] + t] for i, t in found.support_tokens]
    clear = (found.lam > 0.05 * found.lam.max()) | (found.slack > 0.1)
    return bool(min(gaps) > 0.05 and clear.all())


OWN_NORM = Hypothesis[MirrorRun]("the max-margin problem has the norm of the descent", lambda x: x.measured == x.q)
ON_ONE_TOKEN = Hypothesis[MirrorRun]("attention ends on one token of each input", _saturated)
LOCALLY = Hypothesis[MirrorRun]("the selected tokens have better scores than those on the margin", _locally_optimal)


@claim(
    "fu.mirror-direction",
    says="Mirror descent with the potential |W|_q^q / q turns to the matrix of least norm |W|_q that puts the selected "
    "tokens above the others: another direction for each q.",
    source=MIRROR,
    tolerance=1e-3,  # at a finite norm
    hypotheses=(OWN_NORM, ON_ONE_TOKEN, LOCALLY),
    draw=_draw_mirror_run,
    seeds=20,
    counters=(
        Counter(
            "q = 1.5 beside the matrix of q = 3",
            OWN_NORM.says,
            lambda: replace(_draw_mirror_run(np.random.default_rng(0), (1.5,)), measured=3.0),
        ),
    ),
    notes="Steps are normalised by the dual norm and grow; the abstract's rate is not tested.",
)
def _off_the_direction(x: MirrorRun) -> float:
    """Divergence to the max-margin matrix, in the norm that is measured, of the tokens that the run selects."""
    end = x.end
    found = solve_lq(MarginProblem.from_selection(x.problem.keys, end.reading.selection), x.measured)
    return divergence(found.p, end.p.ravel(), x.q)


# Head and attention --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class JointTarget:
    """The max-margin problems of what a joint run has selected: of the attention, and of the labels."""

    attention: Solution
    head: Solution
    q: float

    def divergences(self, blocks: Blocks) -> tuple[float, float]:
        """Of W and of v."""
        v, W = blocks
        return self._divergence(self.attention, W), self._divergence(self.head, v)

    def _divergence(self, target: Solution, point: Vector) -> float:
        """Bregman divergence from the direction of a point to that of a solution; 0 for a solution at 0."""
        return divergence(target.p, np.ravel(point), self.q) if target.p.any() else 0.0


def joint_target(problem: Problem, selection: Sequence[int] | Index, q: float) -> JointTarget:
    """min |W|_q with the selected tokens 1 above the others, min |v|_q with their labels right by 1."""
    features = problem.values.rows[problem.values.chosen(selection, "joint_target")]
    return JointTarget(
        solve_lq(MarginProblem.from_selection(problem.keys, selection), q),
        solve_lq(MarginProblem.from_rows(problem.labels[:, None] * features), q),
        q,
    )


@dataclass(frozen=True, eq=False)
class JointRun:
    """Joint training from (v, W), what it should select."""

    problem: Problem
    q: float
    start: Blocks
    selection: tuple[int, ...]


def _joint_end(x: JointRun) -> DescentState:
    pace = Normalised(lambda t: 0.1 if t < 100 else min(20.0, 0.1 * 1.02 ** (t - 100)))
    return run(MirrorDescent(x.problem, pace, q=x.q), x.start, 600).state


def _two(q: float, *selection: int) -> JointRun:
    return JointRun(two_inputs(), q, (np.zeros(2), np.zeros((2, 2))), selection)


def _all_support(x: JointRun) -> bool:
    rows = x.problem.values.rows[x.problem.values.chosen(x.selection)]
    return len(label_svm(rows, x.problem.labels).support) == len(x.selection)


def _slack_label() -> JointRun:
    """Three inputs whose third has a label margin to spare; the query is the number 1, so W is a vector."""
    data = joint((0.5, 1.5))
    problem = Problem.cross_joint(data.values, np.ones((3, 1)), data.labels)
    return JointRun(problem, 2.0, (np.array([-1.0, 0.0]), np.array([[0.0], [-1.0]])), (1, 1, 1))


SUPPORT = Hypothesis[JointRun]("every input is a support vector of the labels", _all_support)


@claim(
    "fu.mirror-joint",
    says="Mirror descent on head and attention together: on two inputs of the plane it selects tokens that depend on "
    "q, and both W and v turn to the max-margin solutions, in |.|_q, of these tokens.",
    source=MIRROR + ", for regularisation paths; the selections are those of its published code",
    tolerance=2e-3,  # at a finite norm
    hypotheses=(SUPPORT,),
    known=(lambda: _two(1.75, 1, 0), lambda: _two(2.0, 1, 0), lambda: _two(3.0, 0, 0)),
    counters=(Counter("an input with a label margin to spare", SUPPORT.says, _slack_label),),
    notes="Without the hypothesis W goes to the relaxed direction, as p does in mm.thm6.",
)
def _off_both(x: JointRun) -> float:
    """The larger of the divergences of W and v; infinite if other tokens are selected."""
    end = _joint_end(x)
    if tuple(end.reading.selection.tolist()) != x.selection:
        return np.inf
    return max(joint_target(x.problem, x.selection, x.q).divergences(end.blocks))


# Rates of self-attention ---------------------------------------------------------------------------------------------


def _draw_rate(rng: np.random.Generator) -> Rate:
    make = RULES[rng.integers(len(RULES))]
    while True:
        problem = as_one_long_p(self_attention(rng, int(rng.integers(1, 3)), 3, 3))
        solution = best_solution(problem)
        begin = 0.5 * solution.norm * rng.normal(size=problem.keys.dim)
        x = make(problem, flow_path(problem, begin, 200 * solution.norm)[-1].p, solution)
        if CLEAR.holds(x) and ON_THE_WAY.holds(x):
            return x


@claim(
    "fu.rates",
    says="In self-attention, where the query is a token, |W| grows as p does: like log t by gradient descent, like t "
    "by normalised and by capped Polyak steps, like t^(1/4) by normalised steps t^(-3/4); the angle falls like 1/|W|.",
    source="keytokens",
    tolerance=0.05,  # of fitted slopes
    hypotheses=(FALLS, EQUAL, FEASIBLE, CLEAR, ON_THE_WAY),
    draw=_draw_rate,
    seeds=20,
)
def _off_the_law(x: Rate) -> float:
    return off_the_law(x)


def _draw_race(rng: np.random.Generator) -> Race:
    while True:
        race = race_of(rng, int(rng.integers(1, 4)), int(rng.integers(3, 5)), 5)
        if on_the_best(race):
            return race


ONE_BEST = Hypothesis[Race](
    "in each input one token is best and the others share one score", lambda x: equal_scores(x.long)
)
CAN_WIN = Hypothesis[Race]("the best tokens can be separated", lambda x: can_win(x.long))
SHORT_STEP = Hypothesis[Race](
    "the step of gradient descent is at most 1/L", lambda x: x.eta <= step_limit(x.long) * (1 + 1e-12)
)
TO_THE_BEST = Hypothesis[Race]("the fast runs select the best tokens", on_the_best)


@claim(
    "fu.faster",
    says="In self-attention normalised and Polyak steps turn W to the max-margin matrix faster than gradient descent, "
    "and attention to the best tokens faster.",
    source=RATES,
    tolerance=0.0,
    hypotheses=(ONE_BEST, CAN_WIN, SHORT_STEP, TO_THE_BEST),
    draw=_draw_race,
    seeds=20,
    counters=(
        Counter("Polyak steps to other tokens", TO_THE_BEST.says, lambda: race_of(np.random.default_rng(36), 3, 4, 3)),
    ),
    notes="The abstract speaks of data settings in which all runs have one limit; here that is tested on each run.",
)
def _not_ahead(x: Race) -> float:
    """Of the fast rules beside gradient descent: the share of 1 - cos, and that of log(1 - attention) turned round."""
    target = best_solution(x.long).p
    away = [misalignment(state.p, target) for state in x.ends]
    gap = [log_attention_gap(state.reading) for state in x.ends]
    return max(max(away[k] / away[0], gap[0] / gap[k]) for k in (1, 2)) - 1
