"""Max-margin token selection by gradient descent: that p stays with W, that the loss falls, and where p goes.

Far out the steps eta |grad| of a descent are tiny: the sum of their squares is at most 2 eta (L - L*). There it goes
along the gradient flow, which is followed here in its stead: |p| = 1e6 would take exp(1e6) steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ....model.ragged import Bags, Vector
from ...descent.steps import Plain
from ...problems.geometry import misalignment
from ...problems.heads import Head, Linear, Quadratic, Tanh
from ...problems.losses import Correlation, Exponential, Logistic, MarginLoss
from ...problems.problem import Problem
from ...selection import smoothness, tight_smoothness
from ..claim import Counter, Hypothesis, claim
from ..instances import FAR, descent_steps, flow_path, gaps_along, one_bag, three_bags, two_limits
from .assumptions import (
    LOSSES,
    Local,
    best_solution,
    can_win,
    draw_equal_scores,
    draw_small,
    near,
    off_digits,
    one_input,
    slopes,
    step_limit,
    widths,
)
from .lemmas import EQUAL, FALLS, FEASIBLE, LOCAL, NEIGHBOURS, PAPER, Keyed, crowded

# Lemma 1: training p and training W ----------------------------------------------------------------------------------


def _draw_head(rng: np.random.Generator, d: int) -> Head:
    v = rng.normal(size=d)
    return (Linear(v), Quadratic(v, 0.3), Tanh(v))[rng.integers(3)]


ANALYTIC: tuple[tuple[MarginLoss, Callable[[Any], Any]], ...] = (
    (Logistic(), lambda x: np.log1p(np.exp(-x))),
    (Exponential(), lambda x: np.exp(-x)),
    (Correlation(), lambda x: -x),
)


@dataclass(frozen=True, eq=False)
class Twins:
    """GD on p by given steps, and GD on W by `share` times these steps."""

    problem: Problem  # in p, as a matrix of one column
    analytic: Callable[[Any], Any]  # its loss
    u: Vector
    p: Vector
    W: Vector
    steps: Vector
    share: float

    def gradient_p(self, p: Vector) -> Vector:
        """As descent has it."""
        at = (p[:, None],)
        return -self.problem.descent(self.problem.read(at), at)[0].plain[:, 0]

    def gradient_W(self, W: Vector) -> Vector:
        """Without any formula: L(W + ih) has the imaginary part h L'(W)."""
        moved = W + 1e-30j * np.eye(W.size).reshape(W.size, *W.shape)
        labels, head, values = self.problem.labels, self.problem.head, self.problem.values
        X = values.rows.reshape(len(values), -1, values.dim)
        s = np.exp(np.einsum("ntd,kmd,m->knt", X, moved, self.u))
        s /= s.sum(axis=2, keepdims=True)
        pooled = np.einsum("knt,ntd->knd", s, X)
        margins = labels * head.value(pooled.reshape(-1, values.dim)).reshape(pooled.shape[:2])
        return self.analytic(margins).mean(axis=1).imag.reshape(W.shape) / 1e-30


def _draw_twins(rng: np.random.Generator) -> Twins:
    n, T, d, m = rng.integers([1, 2, 1, 1], [6, 7, 5, 5])
    u, p = rng.normal(size=m), rng.normal(size=d)
    loss, analytic = ANALYTIC[rng.integers(len(ANALYTIC))]
    X, Y, steps = rng.normal(size=(n, T, d)), rng.choice([-1.0, 1.0], n), rng.uniform(0.0, 0.5, 40)
    problem = Problem.under(Bags.of(X), np.ones((n, 1)), Y, _draw_head(rng, d), loss)
    return Twins(problem, analytic, u, p, np.outer(u, p) / (u @ u), steps, 1 / float(u @ u))


SHARE = Hypothesis[Twins](
    "steps on W are those on p over |u|^2", lambda twins: bool(np.isclose(twins.share * (twins.u @ twins.u), 1))
)
BEGIN = Hypothesis[Twins](
    "W begins at u p'/|u|^2", lambda twins: bool(np.allclose(twins.W, np.outer(twins.u, twins.p) / (twins.u @ twins.u)))
)


def _twins_with(**changes: Any) -> Twins:
    return replace(_draw_twins(np.random.default_rng(1)), **changes)


@claim(
    "mm.lemma1",
    says="Descent on p, and descent on W with the query u fixed and steps divided by |u|^2, stay one path, "
    "W(t) = u p(t)'/|u|^2, for any steps, loss and differentiable head.",
    source=PAPER + "Lemma 1",
    tolerance=1e-7,  # rounding, which a long step can magnify
    constant="1 in W = 1 u p'/|u|^2",
    hypotheses=(SHARE, BEGIN),
    draw=_draw_twins,
    seeds=60,
    counters=(
        Counter("the same steps on both", SHARE.says, lambda: _twins_with(share=1.0)),
        Counter("W at 0", BEGIN.says, lambda: _twins_with(W=0 * _twins_with().W)),
    ),
)
def _apart(twins: Twins, by: float = 1.0) -> float:
    """max over t of |W(t) - u p(t)'/|u|^2| |u| / (1 + |p(t)|)."""
    p, W, u = twins.p, twins.W, twins.u
    worst = 0.0
    for eta in twins.steps:
        p, W = p - eta * twins.gradient_p(p), W - eta * twins.share * twins.gradient_W(W)
        apart = np.linalg.norm(W - by * np.outer(u, p) / (u @ u)) * np.linalg.norm(u) / (1 + np.linalg.norm(p))
        worst = max(worst, float(apart))
    return worst


# Lemma 6: smoothness and descent -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Smooth(Keyed):
    """A run by steps `eta`, and pairs of points where gradients are compared."""

    start: Vector
    eta: float
    pairs: Vector  # (m, 2, d)
    expected: tuple[float, ...] = ()  # both constants of the logistic loss with |loss'| <= 1, if they are known

    @cached_property
    def constants(self) -> tuple[float, float, float]:
        """L_p, the smaller one from keys and scores, and ours."""
        problem = self.problem
        bounds = slopes(problem)
        return (
            smoothness(self.values, self.v, self.W, bounds.curvature, bounds.largest),
            tight_smoothness(problem.keys, problem.scores, bounds.curvature, bounds.largest),
            sharp_smoothness(problem),
        )


def sharp_smoothness(problem: Problem) -> float:
    """The mean of M0 (D G/4)^2 + M1 D^2 G/(6 sqrt 3), D the width of the keys of an input, G that of its scores.

    With u = k'x, |x| = 1, the second derivative along x is loss'' cov(u, gamma)^2 + loss' E (u - Eu)^2 (gamma - Egamma)
    under the attention. A covariance is at most D G/4, with half the attention at each end. The third moment is at most
    G E max(0, w - Ew), w = (u - Eu)^2, the largest with attention s and 1 - s at the ends: D^2 G s (1 - s)(1 - 2s).
    """
    bounds, keys, scores = slopes(problem), problem.keys, problem.scores
    D, G = widths(keys), keys.max(scores) + keys.max(-scores)
    return float(np.mean(bounds.curvature * (D * G / 4) ** 2 + bounds.largest * D**2 * G / (6 * np.sqrt(3))))


def _steepest() -> Smooth:
    """Two inputs whose pulls along (1, 0) cancel where both curvatures are the largest: at s = 1/2 + 1/sqrt 12.

    Nearly all of the step, of length 1/L, is along (1, 0), and so short that the curvature stays.
    """
    p = np.array([1e-3, np.log((np.sqrt(3) + 1) / (np.sqrt(3) - 1)) * 1e6])
    values = Bags.of([[[1.0, 1e-6, 1.0], [0.0, 0.0, 0.0]], [[-1.0, 1e-6, 1.0], [0.0, 0.0, 0.0]]])
    W, v, labels = np.eye(2, 3), np.array([0.0, 0.0, 1.0]), np.ones(2)
    still = Smooth(values, labels, v, W, Correlation(), p, 0.0, np.array([[p, p * [-1, 1]]]))
    return replace(still, eta=1 / still.constants[2])


def _draw_smooth(rng: np.random.Generator, over: float = 0.0) -> Smooth:
    """Steps up to 1/L, or `over` times as long."""
    n, T, d, m = rng.integers([1, 2, 1, 1], [5, 6, 5, 5])
    values, labels = Bags.of(rng.normal(size=(n, T, d))), rng.choice([-1.0, 1.0], n)
    v, W, loss = rng.normal(size=d), rng.normal(size=(m, d)), LOSSES[rng.integers(len(LOSSES))]
    start = rng.normal(size=m)
    pairs = start + np.cumsum(rng.normal(size=(12, 2, m)) * 10 ** rng.uniform(-4, 1, (12, 2, 1)), axis=1)
    still = Smooth(values, labels, v, W, loss, start, 0.0, pairs)
    eta = (over or rng.uniform(0.3, 1.0)) / still.constants[2]
    return Smooth(values, labels, v, W, loss, start, eta, pairs)


def _figure_smooth(problem: Problem, *expected: float) -> Smooth:
    """Keys (x1, x2) and score x3 of values x: W = diag(1, 1, 0), v = (0, 0, 1)."""
    values = problem.keys.with_rows(np.column_stack([problem.keys.rows, problem.scores]))
    pairs = np.random.default_rng(0).normal(size=(20, 2, 3))
    v, W, labels = np.array([0.0, 0.0, 1.0]), np.diag([1.0, 1.0, 0.0]), np.ones(len(values))
    return Smooth(values, labels, v, W, problem.loss, np.zeros(3), 1 / expected[0] - 1e-4, pairs, expected)


def _lipschitz(problem: Problem, p: Vector, q: Vector) -> float:
    """|grad L(p) - grad L(q)| / |p - q|."""
    at_p, at_q = (problem.descent(problem.read((x,)), (x,))[0].plain for x in (p, q))
    return float(np.linalg.norm(at_p - at_q) / np.linalg.norm(p - q))


SHORT = Hypothesis[Smooth]("steps are at most 1/L", lambda x: x.eta <= (1 + 1e-12) / x.constants[2])


@claim(
    "mm.lemma6",
    says="The gradient in p is L_p-Lipschitz, also with the smaller constant from keys and scores, and with L, the "
    "mean of M0 (D G/4)^2 + M1 D^2 G/(6 sqrt 3), D and G the widths of an input's keys and scores; a step eta <= 1/L "
    "lowers the loss by eta/2 |grad|^2 at least.",
    source=PAPER + "Lemma 6",
    tolerance=1e-6,  # rounding of quotients, and curvature that changes along a short step
    constant="L",
    hypotheses=(FALLS, SHORT),
    draw=_draw_smooth,
    seeds=40,
    known=(lambda: _figure_smooth(one_bag(0.0), 15.274, 4.960), lambda: _figure_smooth(three_bags(), 61.80), _steepest),
    counters=(
        Counter(
            "steps of 1.1/L where L is attained", SHORT.says, lambda: replace(one := _steepest(), eta=1.1 * one.eta)
        ),
    ),
    notes="L is ours, and attained: hence so are Lipschitz constant and descent, which for L_p leave much room.",
)
def _roughness(x: Smooth, by: float = 1.0) -> float:
    """The worst of: a Lipschitz constant that is too small, constants in the wrong order, too small a descent."""
    problem, (loose, tight, sharp) = x.problem, x.constants
    seen = descent_steps(problem, Plain(x.eta), x.start, 40)
    gaps = gaps_along(problem, seen)
    squares = np.exp([2 * state.log_sizes[0] for state in seen])
    sizes = x.eta / 2 * squares[:-1]
    # beside the descent itself, unless the loss has no digits left for it
    falls_short = (np.diff(gaps) + sizes) / np.maximum(sizes, 1e-9 * gaps[:-1])
    least = problem.loss.value(problem.keys.max(problem.scores)).mean()
    miscounted = np.abs(gaps - [state.reading.value - least for state in seen]) / (1 + np.abs(least))
    return max(
        off_digits((smoothness(x.values, x.v, x.W), tight_smoothness(problem.keys, problem.scores)), x.expected),
        float(miscounted.max()) - 1e-12,
        tight / loose - 1,
        sharp / tight - 1,
        max(_lipschitz(problem, p, q) for p, q in x.pairs) / sharp * by - 1,
        float(falls_short.max(initial=-np.inf)),
    )


# Theorem 2: from any start -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class GlobalRun:
    problem: Problem
    start: Vector
    share: float = 1.0  # of 1/L
    directed: bool = True  # whether a direction is claimed, or the growth of the norm alone

    @property
    def eta(self) -> float:
        return self.share * step_limit(self.problem)


def _draw_global(rng: np.random.Generator) -> GlobalRun:
    n, T, d = rng.integers([1, 2, 2], [4, 5, 5])
    n = 1 if rng.random() < 0.5 else n
    problem = draw_equal_scores(rng, n, T, max(d, n * (T - 1) // 2 + 1))
    start = rng.normal(size=problem.keys.dim) * rng.choice([0.0, 0.3, 2.0])
    return GlobalRun(problem, start, rng.uniform(0.5, 1.0), bool(n == 1))


SMALL = Hypothesis[GlobalRun]("steps are at most 1/L", lambda x: x.share <= 1)
ALONE = Hypothesis[GlobalRun](
    "there is one input, where a direction is claimed", lambda x: not x.directed or len(x.problem.keys) == 1
)


@claim(
    "mm.thm2",
    says="Where all tokens but the best share one score, descent with steps up to 1/L goes to infinity from any start; "
    "with one input, in the direction of p_mm. Checked: 100 steps lower the loss by eta/2 |grad|^2 each, and the flow "
    "from there on reaches |p| = 1e6; with one input the part across p_mm is bounded.",
    source=PAPER + "Theorem 2",
    # 1 - cos at |p| = 1e6: across p_mm there are at most 141. Logits there differ by log(1/multiplier): mm.loss-drift.
    tolerance=1e-8,
    constant="the 1 by which each selected token is to stand above the others: of the first",
    hypotheses=(FALLS, EQUAL, FEASIBLE, SMALL, ALONE),
    draw=_draw_global,
    seeds=24,
    counters=(
        Counter("three scores", EQUAL.says, lambda: GlobalRun(one_bag(0.0), np.array([0.0, -1.0]))),
        Counter(
            "a best token between two others",
            FEASIBLE.says,
            lambda: GlobalRun(one_input([[0], [1], [-1]], np.eye(3)[0]), np.array([0.5])),
        ),
        Counter("two inputs", ALONE.says, lambda: GlobalRun(two_limits(), np.array([5.0, 0.0]))),
    ),
)
def _global_excess(x: GlobalRun, by: float = 1.0) -> float:
    """The worst of: the loss falls too little, the flow ends early, the direction is off."""
    seen = descent_steps(x.problem, Plain(x.eta), x.start, 100)
    path = flow_path(x.problem, seen[-1].p, FAR)
    stays = float(np.log(FAR / max(path[-1].norm, 1e-9))) - 1e-9
    if not can_win(x.problem):
        return stays
    gaps = gaps_along(x.problem, seen)
    squares = np.exp([2 * state.log_sizes[0] for state in seen])
    short = float(((np.diff(gaps) + x.eta / 2 * squares[:-1]) / gaps[:-1]).max(initial=-np.inf))
    return max(stays, short, misalignment(path[-1].p, best_solution(x.problem, by).p) if x.directed else -np.inf)


# Theorem 3: from a cone ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LocalRun(Local):
    start: Vector


def _draw_local_run(rng: np.random.Generator) -> LocalRun:
    local = draw_small(rng)
    start = near(rng, local.direction, local.cone.mu * rng.choice([1.0, rng.random()]), local.descent_radius)
    return LocalRun(local.problem, local.selection, start)


STARTS_INSIDE = Hypothesis[LocalRun](  # not decided where there is no cone
    "the start lies in the cone",
    lambda x: x.holds_in_cone(x.start, x.descent_radius) if x.is_locally_optimal else None,
)


def _crowded() -> LocalRun:
    local = crowded(1e4)
    return LocalRun(local.problem, local.selection, np.array([local.descent_radius, 0.0]))


def _along(third: float, degrees: float, size: float) -> LocalRun:
    angle = np.radians(degrees)
    return LocalRun(one_bag(third), np.array([1]), size * np.array([np.cos(angle), np.sin(angle)]))


@claim(
    "mm.thm3",
    says="From any start in the cone around a locally optimal direction, far enough out, descent with steps up to 1/L "
    "stays in the cone, its norm grows, and its direction tends to that direction. Checked: 10 steps of descent and "
    "the flow from there to 1e3 times the norm, where 1 - cos is below a thousandth of the cone's width.",
    source=PAPER + "Theorem 3",
    # Rounding: the norm at the end, the edge of the cone. The thousandth: what p has across p_mm grows like log|p| at
    # most, so 1 - cos falls at least like 1/|p|.
    tolerance=1e-6,
    constant="the 1 by which each selected token is to stand above the others: of the first",
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
def _local_excess(x: LocalRun, by: float = 1.0) -> float:
    """The worst of: the run leaves the cone or falls back, it does not get far, it is off the direction there."""
    seen = descent_steps(x.problem, Plain(step_limit(x.problem)), x.start, 10)
    far = 1e3 * float(np.linalg.norm(x.start))
    seen += flow_path(x.problem, seen[-1].p, far, growth=30.0)
    target = x.leaning(by)
    off = np.array([misalignment(state.p, target) for state in seen])
    norms = np.array([state.norm for state in seen])
    width = x.cone.mu if x.is_locally_optimal else 1.0
    backwards = 1 - (norms[1:] / norms[:-1]).min()
    return float(max(np.log(far / norms[-1]), off.max() / width - 1, backwards, 1e3 * off[-1] / width - 1))
