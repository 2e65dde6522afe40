"""Max-margin token selection by gradient descent: that p stays with W, that the loss falls, and where p goes.

Far out the steps eta |grad| of a descent are tiny: the sum of their squares is at most 2 eta (L - L*). There it goes
along the gradient flow, which is followed here in its stead: |p| = 1e6 would take exp(1e6) steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....model.ragged import Bags, Vector
from ...descent.steps import Plain
from ...problems.geometry import misalignment
from ...problems.losses import Correlation, Exponential, Logistic, MarginLoss
from ...problems.problem import Problem
from ...problems.scores import scores_of
from ...selection import smoothness, tight_smoothness
from ...svm.solution import Solution
from ..claim import Counter, Hypothesis, claim
from ..instances import FAR, descent_steps, flow_path, gaps_along, longest_difference, one_bag, three_bags, two_limits
from .assumptions import LOSSES, Local, best_solution, can_win, draw_equal_scores, draw_local, near, slopes, step_limit
from .lemmas import EQUAL, FALLS, FEASIBLE, LOCAL, NEIGHBOURS, PAPER, entropy_gap

# Lemma 1: training p and training W ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Head:
    """A differentiable psi: value and gradient on rows; the value is analytic, so that it takes complex numbers."""

    value: Callable[[Any], Any]
    gradient: Callable[[Vector], Vector]


def _draw_head(rng: np.random.Generator, d: int) -> Head:
    v, V = rng.normal(size=d), rng.normal(size=(d, 4)) / np.sqrt(d)
    a = rng.normal(size=4)
    heads = (
        Head(lambda r: r @ v, lambda r: np.broadcast_to(v, r.shape)),
        Head(lambda r: r @ v - 0.3 * (r * r).sum(axis=-1), lambda r: v - 0.6 * r),
        Head(lambda r: np.tanh(r @ V) @ a, lambda r: (a / np.cosh(r @ V) ** 2) @ V.T),
    )
    return heads[rng.integers(len(heads))]


ANALYTIC: tuple[tuple[MarginLoss, Callable[[Any], Any]], ...] = (
    (Logistic(), lambda x: np.log1p(np.exp(-x))),
    (Exponential(), lambda x: np.exp(-x)),
    (Correlation(), lambda x: -x),
)


@dataclass(frozen=True, eq=False)
class Twins:
    """GD on p by given steps, and GD on W by `share` times these steps."""

    X: Vector  # (n, T, d)
    Y: Vector
    head: Head
    loss: MarginLoss
    analytic: Callable[[Any], Any]  # the same loss
    u: Vector
    p: Vector
    W: Vector
    steps: Vector
    share: float

    def gradient_p(self, p: Vector) -> Vector:
        """By the formula: mean of loss' X'(diag(s) - ss')gamma, gamma = Y X grad psi."""
        s = np.exp(self.X @ p)
        s /= s.sum(axis=1, keepdims=True)
        r = np.einsum("nt,ntd->nd", s, self.X)
        gamma = self.Y[:, None] * np.einsum("ntd,nd->nt", self.X, self.head.gradient(r))
        pull = s * (gamma - (s * gamma).sum(axis=1, keepdims=True))
        slope = self.loss.slope(self.Y * self.head.value(r))
        return np.einsum("n,nt,ntd->d", slope, pull, self.X) / len(self.Y)

    def gradient_W(self, W: Vector) -> Vector:
        """Without any formula: L(W + ih) has the imaginary part h L'(W)."""
        moved = W + 1e-30j * np.eye(W.size).reshape(W.size, *W.shape)
        s = np.exp(np.einsum("ntd,kmd,m->knt", self.X, moved, self.u))
        s /= s.sum(axis=2, keepdims=True)
        margins = self.Y * self.head.value(np.einsum("knt,ntd->knd", s, self.X))
        return self.analytic(margins).mean(axis=1).imag.reshape(W.shape) / 1e-30


def _draw_twins(rng: np.random.Generator) -> Twins:
    n, T, d, m = rng.integers([1, 2, 1, 1], [6, 7, 5, 5])
    u, p = rng.normal(size=m), rng.normal(size=d)
    loss, analytic = ANALYTIC[rng.integers(len(ANALYTIC))]
    X, Y, steps = rng.normal(size=(n, T, d)), rng.choice([-1.0, 1.0], n), rng.uniform(0.0, 0.5, 40)
    return Twins(X, Y, _draw_head(rng, d), loss, analytic, u, p, np.outer(u, p) / (u @ u), steps, 1 / float(u @ u))


SHARE = Hypothesis[Twins](
    "steps on W are those on p over |u|^2", lambda twins: bool(np.isclose(twins.share * (twins.u @ twins.u), 1))
)
BEGIN = Hypothesis[Twins](
    "W begins at u p'/|u|^2", lambda twins: bool(np.allclose(twins.W, np.outer(twins.u, twins.p) / (twins.u @ twins.u)))
)


def _twins_with(**changes: Any) -> Twins:
    twins = _draw_twins(np.random.default_rng(1))
    return Twins(**{**vars(twins), **changes})


@claim(
    "mm.lemma1",
    says="Descent on p, and descent on W with the query u fixed and steps divided by |u|^2, stay one path, "
    "W(t) = u p(t)'/|u|^2, for any steps, loss and differentiable head.",
    source=PAPER + "Lemma 1",
    tolerance=1e-7,  # rounding, which a long step can magnify
    hypotheses=(SHARE, BEGIN),
    draw=_draw_twins,
    seeds=60,
    counters=(
        Counter("the same steps on both", SHARE.says, lambda: _twins_with(share=1.0)),
        Counter("W at 0", BEGIN.says, lambda: _twins_with(W=0 * _twins_with().W)),
    ),
)
def _apart(twins: Twins) -> float:
    """max over t of |W(t) - u p(t)'/|u|^2| |u| / (1 + |p(t)|)."""
    p, W, u = twins.p, twins.W, twins.u
    worst = 0.0
    for eta in twins.steps:
        p, W = p - eta * twins.gradient_p(p), W - eta * twins.share * twins.gradient_W(W)
        apart = np.linalg.norm(W - np.outer(u, p) / (u @ u)) * np.linalg.norm(u) / (1 + np.linalg.norm(p))
        worst = max(worst, float(apart))
    return worst


# Lemma 6: smoothness and descent -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Smooth:
    """Values, labels, head and key matrix; a run by steps `eta`, and pairs of points where gradients are compared."""

    values: Bags
    labels: Vector
    v: Vector
    W: Vector
    loss: MarginLoss
    start: Vector
    eta: float
    pairs: Vector  # (m, 2, d)
    expected: tuple[float, ...] = ()  # both constants of the logistic loss with |loss'| <= 1, if they are known

    @property
    def problem(self) -> Problem:
        keys = self.values.with_rows(self.values.rows @ self.W.T)
        return Problem.of(keys, scores_of(self.labels, self.values, self.v), self.loss)

    @property
    def constants(self) -> tuple[float, float]:
        """L_p, and the smaller one from keys and scores."""
        problem = self.problem
        bounds = slopes(problem)
        return (
            smoothness(self.values, self.v, self.W, bounds.curvature, bounds.largest),
            tight_smoothness(problem.keys, problem.scores, bounds.curvature, bounds.largest),
        )


def _draw_smooth(rng: np.random.Generator, over: float = 0.0) -> Smooth:
    """Steps up to 1/L_p, or `over` times as long."""
    n, T, d, m = rng.integers([1, 2, 1, 1], [5, 6, 5, 5])
    values, labels = Bags.of(rng.normal(size=(n, T, d))), rng.choice([-1.0, 1.0], n)
    v, W, loss = rng.normal(size=d), rng.normal(size=(m, d)), LOSSES[rng.integers(len(LOSSES))]
    start = rng.normal(size=m)
    pairs = start + np.cumsum(rng.normal(size=(12, 2, m)) * 10 ** rng.uniform(-4, 1, (12, 2, 1)), axis=1)
    still = Smooth(values, labels, v, W, loss, start, 0.0, pairs)
    eta = (over or rng.uniform(0.3, 1.0)) / still.constants[0]
    return Smooth(values, labels, v, W, loss, start, eta, pairs)


def _figure_smooth(problem: Problem, *expected: float) -> Smooth:
    """Keys (x1, x2) and score x3 of values x: W = diag(1, 1, 0), v = (0, 0, 1)."""
    values = problem.keys.with_rows(np.column_stack([problem.keys.rows, problem.scores]))
    pairs = np.random.default_rng(0).normal(size=(20, 2, 3))
    v, W, labels = np.array([0.0, 0.0, 1.0]), np.diag([1.0, 1.0, 0.0]), np.ones(len(values))
    return Smooth(values, labels, v, W, problem.loss, np.zeros(3), 1 / expected[0] - 1e-4, pairs, expected)


def _wrong_constants(x: Smooth) -> float:
    found = (smoothness(x.values, x.v, x.W), tight_smoothness(x.problem.keys, x.problem.scores))
    pairs = zip(found, x.expected, strict=False)
    return max((abs(a / b - 1) - 2e-4 for a, b in pairs), default=-np.inf)  # four digits


def _lipschitz(problem: Problem, p: Vector, q: Vector) -> float:
    """|grad L(p) - grad L(q)| / |p - q|."""
    at_p, at_q = (problem.descent(problem.read((x,)), (x,))[0].plain for x in (p, q))
    return float(np.linalg.norm(at_p - at_q) / np.linalg.norm(p - q))


SHORT = Hypothesis[Smooth]("steps are at most 1/L_p", lambda x: x.eta <= (1 + 1e-12) / x.constants[0])


@claim(
    "mm.lemma6",
    says="The gradient in p is L_p-Lipschitz, also with the smaller constant from keys and scores; a step eta <= 1/L_p "
    "lowers the loss by eta/2 |grad|^2 at least, so the |grad|^2 sum to at most 2/eta (L(p(0)) - L*).",
    source=PAPER + "Lemma 6",
    tolerance=1e-9,  # rounding of quotients, down to |p - q| = 1e-4
    hypotheses=(FALLS, SHORT),
    draw=_draw_smooth,
    seeds=40,
    known=(lambda: _figure_smooth(one_bag(0.0), 15.274, 4.960), lambda: _figure_smooth(three_bags(), 61.80)),
    counters=(Counter("steps of 1000/L_p", SHORT.says, lambda: _draw_smooth(np.random.default_rng(3), over=1000.0)),),
)
def _roughness(x: Smooth) -> float:
    """The worst of: a Lipschitz constant that is too small, too small a descent, too large a sum of |grad|^2."""
    problem, (loose, tight) = x.problem, x.constants
    seen = descent_steps(problem, Plain(x.eta), x.start, 40)
    gaps = gaps_along(problem, seen)
    squares = np.exp([2 * state.log_sizes[0] for state in seen])
    falls_short = (np.diff(gaps) + x.eta / 2 * squares[:-1]) / gaps[:-1]
    least = problem.loss.value(problem.keys.max(problem.scores)).mean()
    miscounted = np.abs(gaps - [state.reading.value - least for state in seen]) / (1 + np.abs(least))
    return max(
        _wrong_constants(x),
        float(miscounted.max()) - 1e-12,
        tight / loose - 1,
        max(_lipschitz(problem, p, q) for p, q in x.pairs) / tight - 1,
        float(falls_short.max(initial=-np.inf)),
        float(x.eta / 2 * squares.sum() / gaps[0] - 1),
    )


# Theorem 2: from any start -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class GlobalRun:
    problem: Problem
    start: Vector
    eta: float
    directed: bool  # whether a direction is claimed, or the growth of the norm alone


def _draw_global(rng: np.random.Generator) -> GlobalRun:
    n, T, d = rng.integers([1, 2, 2], [4, 5, 5])
    n = 1 if rng.random() < 0.5 else n
    problem = draw_equal_scores(rng, n, T, max(d, n * (T - 1) // 2 + 1))
    start = rng.normal(size=problem.keys.dim) * rng.choice([0.0, 0.3, 2.0])
    return GlobalRun(problem, start, step_limit(problem) * rng.uniform(0.5, 1.0), bool(n == 1))


def norm_bound(x: GlobalRun, solution: Solution, steps: int) -> float:
    """A norm that some p(t), t <= steps, exceeds; it grows without bound, like the logarithm of the steps.

    While |p| <= R the logit of s_best is within D R + log(T - 1), D the longest k_best - k_t, so each step moves p
    along p_mm by at least eta m(R) = eta Theta min|loss'| min gap s_best (1 - s_best): steps * eta m(R) <= R + |p(0)|.
    """
    keys, scores, longest = x.problem.keys, x.problem.scores, longest_difference(x.problem)
    best = keys.chosen(keys.argmax(scores))
    others = np.delete(keys.spread(scores[best]) - scores, best)
    most = slopes(x.problem).least * float(others.min()) * solution.margin * x.eta * steps
    begin = float(np.linalg.norm(x.start))

    def spare(R: float) -> float:
        logit = longest * R + np.log(keys.sizes.max() - 1)
        return most * float(np.exp(-np.logaddexp(0, logit) - np.logaddexp(0, -logit))) - R - begin

    low, high = 0.0, most  # s (1 - s) < 1
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if spare(middle) > 0 else (low, middle)
    return max(low, begin)


def direction_bound(x: GlobalRun, solution: Solution, gap: float) -> Callable[[Vector], Vector]:
    """For one input: |p| (1 - cos(p, p_mm)) is at most this function of |p| along all the run; it grows like log|p|.

    With w of the steepness lemma, p_mm'dp/|p_mm| >= f(|p|) p'dp/|p|, f(r) = r/(r + w/Theta). Summed along the run, F
    the integral of f: p_mm'(p - p(0))/|p_mm| >= F(|p|) - F(|p(0)|) - (3 Theta/2w) sum |dp|^2, where the last sum is at
    most 2 eta (L(p(0)) - L*). Any larger w serves as well.
    """
    width = max(entropy_gap(int(x.problem.keys.sizes.max())), 0.5) / solution.margin

    def lost(r: Any) -> Any:
        return width * np.log1p(r / width)  # r - F(r)

    begin = float(np.linalg.norm(x.start))
    offset = begin - lost(begin) - float(x.start @ solution.p) / solution.norm + 3 * x.eta * gap / width
    return lambda r: lost(r) + offset


SMALL = Hypothesis[Any]("steps are at most 1/L", lambda x: x.eta <= step_limit(x.problem) * (1 + 1e-12))
ALONE = Hypothesis[GlobalRun](
    "there is one input, where a direction is claimed", lambda x: not x.directed or len(x.problem.keys) == 1
)


def _global_run(problem: Problem, start: list[float]) -> GlobalRun:
    return GlobalRun(problem, np.array(start), step_limit(problem), directed=True)


@claim(
    "mm.thm2",
    says="Where all tokens but the best share one score, descent with steps up to 1/L goes to infinity from any start; "
    "with one input, in the direction of p_mm. Checked: 100 steps lower the loss, pass a norm that grows like log t, "
    "and keep |p| (1 - cos) below a bound that grows like log|p|; the flow from there on reaches |p| = 1e6, with one "
    "input at 1 - cos < 1e-8.",
    source=PAPER + "Theorem 2",
    tolerance=1e-6,  # rounding: the norm at the end, gradients far out
    hypotheses=(FALLS, EQUAL, FEASIBLE, SMALL, ALONE),
    draw=_draw_global,
    seeds=24,
    counters=(
        Counter("three scores", EQUAL.says, lambda: _global_run(one_bag(0.0), [0.0, -1.0])),
        Counter(
            "a best token between two others",
            FEASIBLE.says,
            lambda: _global_run(Problem.of(Bags.of([[[0.0], [1.0], [-1.0]]]), np.eye(3)[0]), [0.5]),
        ),
        Counter("two inputs", ALONE.says, lambda: _global_run(two_limits(), [5.0, 0.0])),
    ),
    notes="Both bounds are ours, with explicit constants; the theorem is about the limit.",
)
def _global_excess(x: GlobalRun) -> float:
    """The worst of: the loss rises, the norm is below its bound or the flow ends early, the direction is off."""
    seen = descent_steps(x.problem, Plain(x.eta), x.start, 100)
    path = flow_path(x.problem, seen[-1].p, FAR)
    stays = float(np.log(FAR / max(path[-1].norm, 1e-9)))
    if not can_win(x.problem):
        return stays
    solution = best_solution(x.problem)
    gaps = gaps_along(x.problem, seen)
    rises = float((np.diff(gaps) / gaps[:-1]).max(initial=-np.inf))
    short = norm_bound(x, solution, len(seen) - 1) / max(state.norm for state in seen) - 1
    if not x.directed:
        return max(stays, rises, short)
    points = np.array([state.p for state in (*seen, *path)])
    norms = np.linalg.norm(points, axis=1)
    lost = norms - points @ solution.p / solution.norm
    beyond = float((lost - direction_bound(x, solution, float(gaps[0]))(norms)).max())
    return max(stays, rises, short, beyond, misalignment(path[-1].p, solution.p) / 1e-8 - 1)


# Theorem 3: from a cone ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LocalRun(Local):
    start: Vector


def _draw_local_run(rng: np.random.Generator) -> LocalRun:
    n, T, d = rng.integers([1, 2, 3], [4, 4, 6])
    local = draw_local(rng, n, T, d)
    start = near(rng, local.direction, local.cone.mu * rng.choice([1.0, rng.random()]), local.descent_radius)
    return LocalRun(local.problem, local.selection, start)


def _starts_inside(x: LocalRun) -> bool | None:
    """Not decided where there is no cone."""
    return x.holds_in_cone(x.start, x.descent_radius) if x.is_locally_optimal else None


STARTS_INSIDE = Hypothesis[LocalRun]("the start lies in the cone", _starts_inside)


def _crowded() -> LocalRun:
    """The second input is ahead by 1.001, no neighbour, but its other token scores 1e4 times as much."""
    keys = Bags.of([[[1.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [-1.001, 0.0]]])
    problem = Problem.of(keys, np.array([1.0, 0.0, 0.0, 1e4]), Correlation())
    local = Local(problem, np.array([0, 0]))
    return LocalRun(problem, local.selection, np.array([local.descent_radius, 0.0]))


def _along(third: float, degrees: float, size: float) -> LocalRun:
    angle = np.radians(degrees)
    return LocalRun(one_bag(third), np.array([1]), size * np.array([np.cos(angle), np.sin(angle)]))


@claim(
    "mm.thm3",
    says="From any start in the cone around a locally optimal direction, far enough out, descent with steps up to 1/L "
    "stays in the cone, its norm grows, and its direction tends to that direction. Checked: 10 steps of descent and "
    "the flow from there to 1e3 times the norm, where 1 - cos is below a thousandth of the cone's width.",
    source=PAPER + "Theorem 3",
    tolerance=1e-6,  # rounding: the norm at the end, the edge of the cone
    hypotheses=(FALLS, LOCAL, NEIGHBOURS, STARTS_INSIDE),
    draw=_draw_local_run,
    seeds=24,
    known=(lambda: _along(0.0, 1.0, 300.0),),
    notes="That each input has a token on the margin is our condition: the radius does not see the other inputs.",
    counters=(
        Counter("a tie with the neighbour", LOCAL.says, lambda: _along(0.9, 0.0, 300.0)),
        Counter("a second input without neighbours and with a high score behind", NEIGHBOURS.says, _crowded),
        Counter("eight degrees off the axis", STARTS_INSIDE.says, lambda: _along(0.0, 8.0, 300.0)),
    ),
)
def _local_excess(x: LocalRun) -> float:
    """The worst of: the run leaves the cone or falls back, it does not get far, it is off the direction there."""
    seen = descent_steps(x.problem, Plain(step_limit(x.problem)), x.start, 10)
    far = 1e3 * float(np.linalg.norm(x.start))
    seen += flow_path(x.problem, seen[-1].p, far, growth=30.0)
    off = np.array([misalignment(state.p, x.direction) for state in seen])
    norms = np.array([state.norm for state in seen])
    width = x.cone.mu if x.is_locally_optimal else 1.0
    backwards = 1 - (norms[1:] / norms[:-1]).min()
    return float(max(np.log(far / norms[-1]), off.max() / width - 1, backwards, 1e3 * off[-1] / width - 1))
