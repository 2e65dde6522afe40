"""A follow-up: token selection by mirror descent in the norms |.|_q."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ....model.ragged import Bags, Index, Vector
from ....training.loop import run
from ...descent.steps import DescentState, MirrorDescent, Normalised
from ...problems.geometry import divergence, misalignment, norm
from ...problems.problem import Problem
from ...problems.reading import Blocks
from ...svm.lq import solve_lq
from ...svm.problem import MarginProblem
from ...svm.solution import Solution
from ...svm.solver import solved
from ..claim import Counter, Hypothesis, claim
from ..instances import cross_spheres, joint, two_inputs
from ..max_margin.assumptions import leaning, log_attention_gap, settles, settling_power

MIRROR = "Optimizing Attention with Mirror Descent (arXiv:2410.14581), abstract"


# The max-margin problem ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LqProblem:
    """Rows A p >= 1 that some direction meets, the exponent of the norm and that of the bound, points to compare."""

    A: Vector
    q: float
    r: float
    points: Vector  # (m, d)


def _draw_lq(rng: np.random.Generator) -> LqProblem:
    m, d = rng.integers([1, 2], [12, 9])
    w = rng.normal(size=d)
    A = rng.normal(size=(m, d))
    A *= np.sign(A @ w)[:, None]  # so that w separates
    q = float(rng.choice([1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0]))
    return LqProblem(A, q, q / (q - 1), w + 0.3 * rng.normal(size=(20, d)))


CONJUGATE = Hypothesis[LqProblem]("1/q + 1/r = 1", lambda x: abs(1 / x.q + 1 / x.r - 1) < 1e-12)


@claim(
    "fu.lq-svm",
    says="The least norm |p|_q with A p >= 1 is the largest lam'1 / |A'lam|_r over lam >= 0, 1/q + 1/r = 1; there "
    "sign(p) |p|^(q-1) is in proportion to A'lam, a sum of tight rows.",
    source="keytokens",
    tolerance=1e-8,  # what the solver certifies
    constant="the bound",
    hypotheses=(CONJUGATE,),
    draw=_draw_lq,
    seeds=60,
    counters=(
        Counter(
            "r = q = 3", CONJUGATE.says, lambda: LqProblem(np.array([[1.0, 0.5], [0.2, 1.0]]), 3.0, 3.0, np.eye(2))
        ),
    ),
)
def _duality(x: LqProblem, by: float = 1.0) -> float:
    """The bound from below is reached, by a point whose mirror is a sum of tight rows; no feasible point beats it."""
    found = solve_lq(MarginProblem.from_rows(x.A), x.q)
    pull, size = x.A.T @ found.lam, float(np.sum(np.abs(found.p) ** x.q) ** (1 / x.q))
    bound = float(found.lam.sum() / np.sum(np.abs(pull) ** x.r) ** (1 / x.r))
    least = (x.A @ x.points.T).min(axis=0)
    beaten = max((1 - norm(p / a, x.q) / size for p, a in zip(x.points, least, strict=True) if a > 0), default=-np.inf)
    turned = misalignment(np.sign(found.p) * np.abs(found.p) ** (x.q - 1), pull)
    slack = float(found.lam @ np.abs(x.A @ found.p - 1)) / float(found.lam.sum())
    return max(
        abs(by * bound / size - 1), beaten, turned, slack, 1 - float((x.A @ found.p).min()), -float(found.lam.min())
    )


# Where mirror descent goes -------------------------------------------------------------------------------------------


STEPS, WIDTH = 520, 0.03


def _pace(t: int) -> float:
    """Steps that grow by 3% until t = 340, then shrink, so that they end without going to and fro."""
    return float(0.1 * (1 + WIDTH) ** min(t, 340) * 0.96 ** max(0, t - 340))


@dataclass(frozen=True, eq=False)
class MirrorRun:
    """A run in the norm of q, and the norm in which its limit is looked for."""

    problem: Problem
    q: float
    start: Vector
    measured: float

    @cached_property
    def end(self) -> DescentState:
        return run(MirrorDescent(self.problem, Normalised(_pace), q=self.q), self.start, STEPS).state

    def solution(self, q: float, by: float = 1.0) -> Solution:
        """The max-margin solution, in the norm of q, of what the run selects."""
        rows = MarginProblem.from_selection(self.problem.keys, self.end.reading.selection)
        return solve_lq(leaning(rows, by), q)


def _draw_mirror_run(rng: np.random.Generator, exponents: tuple[float, ...] = (1.5, 1.75, 2.0, 2.5, 3.0)) -> MirrorRun:
    while True:
        problem, q = cross_spheres(rng, 2, 3, 3), float(rng.choice(exponents))
        x = MirrorRun(problem, q, rng.normal(size=(3, 3)), q)
        if ON_ONE_TOKEN.holds(x) and LOCALLY.holds(x):
            return x


def _locally_optimal(x: MirrorRun) -> bool:
    """Whether the selected tokens have better scores than those on the margin, clearly; the margin clear as well."""
    found = x.solution(x.q)
    starts, scores = x.problem.values.starts, x.problem.scores
    gaps = [scores[x.end.reading.selected[i]] - scores[starts[i] + t] for i, t in found.support_tokens]
    return min(gaps) > 0.05 and settles(found, x.q) and found.norm < 4


def settled_divergence(q: float, margin: float, width: float = WIDTH) -> float:
    """What a run may be off when its logits have a least margin, with steps of at most a share of the mirror.

    The mirror y of W is the sum of the steps. Until the margin was 36, attention 2e-16, other tokens had a say: that
    part of y is (36/margin)^(q-1) of it, since |y| grows like |W|^(q-1); and y goes to and fro by a step. So y/|y| is
    off by e, both together. D(a, b) is the divergence of |.|_r^r / r of the mirrors, 1/q + 1/r = 1: at most
    2^(2-r)/r e^r for r <= 2, and about (r-1)/2 e^2 for r > 2.
    """
    r = q / (q - 1)
    e = (36 / margin) ** (q - 1) + width
    return float(2 ** (2 - r) / r * e**r if r <= 2 else (r - 1) / 2 * e**2)


OWN_NORM = Hypothesis[MirrorRun]("the max-margin problem has the norm of the descent", lambda x: x.measured == x.q)
ON_ONE_TOKEN = Hypothesis[MirrorRun](
    "attention ends on one token of each input", lambda x: log_attention_gap(x.end.reading) < np.log(1e-6)
)
LOCALLY = Hypothesis[MirrorRun](
    "the selected tokens have clearly better scores than those on the margin, and logits settle soon", _locally_optimal
)


@claim(
    "fu.mirror-direction",
    says="Mirror descent with the potential |W|_q^q / q turns to the matrix of least norm |W|_q that puts the selected "
    "tokens above the others: another direction for each q.",
    source=MIRROR,
    tolerance=0.0,  # beyond what is allowed at the margin where the run ends
    constant="the 1 by which each selected token is to stand above the others: of the first",
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
    notes="Steps are normalised by the dual norm, grow and shrink; the abstract's rate is not tested.",
)
def _off_the_direction(x: MirrorRun, by: float = 1.0) -> float:
    """Divergence to the max-margin matrix in the norm that is measured, less what the end of the run allows."""
    W, found = x.end.p.ravel(), x.solution(x.measured, by)
    return divergence(found.p, W, x.q) - settled_divergence(x.q, float(found.problem.times(W).min()))


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
        return divergence(self.attention.p, W.ravel(), self.q), divergence(self.head.p, v, self.q)


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
    """Joint training from (v, W); what it should select, where that is known."""

    problem: Problem
    q: float
    start: Blocks
    known: tuple[int, ...] | None = None

    @cached_property
    def end(self) -> DescentState:
        pace = Normalised(
            lambda t: 0.1 if t < 100 else min(20.0, 0.1 * (1 + WIDTH) ** (t - 100)) * 0.96 ** max(0, t - 360)
        )
        return run(MirrorDescent(self.problem, pace, q=self.q), self.start, 440).state

    @cached_property
    def selection(self) -> Index:
        return self.end.reading.selection

    @cached_property
    def target(self) -> JointTarget:
        return joint_target(self.problem, self.selection, self.q)


def _two(q: float, *selection: int) -> JointRun:
    return JointRun(two_inputs(), q, (np.zeros(2), np.zeros((2, 2))), selection)


def _draw_joint(rng: np.random.Generator) -> JointRun:
    """Tokens Y_i x_it of the two inputs about 100 degrees apart, so that both support the head."""
    while True:
        angle = rng.uniform(0, 2 * np.pi) + np.array([[0.0], [1.75]]) + 0.3 * rng.normal(size=(2, 3))
        length = np.array([[1.0], [-1.0]]) * rng.uniform(0.3, 2, (2, 3))
        x = Bags.of(np.stack([length * np.cos(angle), length * np.sin(angle)], axis=2))
        problem = Problem.cross_joint(x, x.rows[x.starts[:-1]], np.array([1.0, -1.0]))
        one = JointRun(problem, float(rng.choice([1.75, 2.0, 3.0])), (np.zeros(2), np.zeros((2, 2))))
        if SUPPORT.holds(one) and DECIDED.holds(one) and settling_power(one.target.attention, one.q) > 0.1:
            return one


def _all_support(x: JointRun) -> bool:
    found = solved(lambda: x.target.head)
    return found is not None and bool((found.lam > 1e-3 * found.lam.max()).all())


def _decided(x: JointRun) -> bool:
    """Saturated, on tokens that are clearly the best under the max-margin head; the margin clear."""
    scores = x.problem.labels.repeat(x.problem.values.sizes) * (x.problem.values.rows @ x.target.head.p)
    best = scores[x.problem.values.chosen(x.selection)]
    behind = np.delete(best.repeat(x.problem.values.sizes) - scores, x.problem.values.chosen(x.selection))
    return log_attention_gap(x.end.reading) < np.log(1e-6) and behind.min() > 0.1


def _slack_label() -> JointRun:
    """Three inputs whose third has a label margin to spare; the query is the number 1, so W is a vector."""
    data = joint((0.5, 1.5))
    problem = Problem.cross_joint(data.values, np.ones((3, 1)), data.labels)
    return JointRun(problem, 2.0, (np.array([-1.0, 0.0]), np.array([[0.0], [-1.0]])), (1, 1, 1))


SUPPORT = Hypothesis[JointRun]("every input is a support vector of the labels", _all_support)
DECIDED = Hypothesis[JointRun]("attention ends on one token of each input, the best under the limit of v", _decided)


@claim(
    "fu.mirror-joint",
    says="Mirror descent on head and attention together turns both W and v to the max-margin solutions, in |.|_q, of "
    "the selected tokens; on two published inputs of the plane these depend on q.",
    source=MIRROR + ", for regularisation paths; the selections are those of its published code",
    tolerance=0.0,  # beyond what is allowed at the margins where the run ends
    constant="the 1 by which each selected token is to stand above the others: of the first",
    hypotheses=(SUPPORT, DECIDED),
    draw=_draw_joint,
    seeds=20,
    known=(lambda: _two(1.75, 1, 0), lambda: _two(2.0, 1, 0), lambda: _two(3.0, 0, 0)),
    counters=(Counter("an input with a label margin to spare", SUPPORT.says, _slack_label),),
    notes="Without the hypothesis W goes to the relaxed direction, as p does in mm.thm6.",
)
def _off_both(x: JointRun, by: float = 1.0) -> float:
    """The larger of the divergences of W and v, less what the end of the run allows; 1 if other tokens are selected."""
    if x.known is not None and tuple(x.selection.tolist()) != x.known:
        return 1.0
    v, W = x.end.blocks
    margins = float(x.target.attention.problem.times(W.ravel()).min()), float(x.target.head.problem.times(v).min())
    lean = replace(x.target, attention=solve_lq(leaning(x.target.attention.problem, by), x.q))
    off = lean.divergences(x.end.blocks)
    return max(one - settled_divergence(x.q, margin) for one, margin in zip(off, margins, strict=True))
