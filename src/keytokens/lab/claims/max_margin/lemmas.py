"""Max-margin token selection, point by point: feasibility, the key lemma, and what the gradient does everywhere."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import lambertw

from ....model.ragged import Bags, Vector
from ...problems.losses import Correlation, Logistic, MarginLoss, Scaled
from ...problems.problem import Problem
from ...problems.scores import scores_of
from ...selection import separating_witness
from ...svm.solver import solve, solved
from ..claim import Counter, Hypothesis, claim
from ..instances import one_bag, two_limits
from .assumptions import (
    Local,
    along,
    best_rows,
    best_solution,
    can_win,
    compared,
    draw_equal_scores,
    draw_small,
    equal_scores,
    falls,
    log_missed,
    near,
    off_digits,
    one_input,
    slopes,
)

PAPER = "Max-Margin Token Selection, "


# Lemma 2: the best tokens can win ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Keyed:
    """Values with labels, a head v and a key matrix W: keys W x_it, scores Y_i v'x_it."""

    values: Bags
    labels: Vector
    v: Vector
    W: Vector
    loss: MarginLoss

    @cached_property
    def problem(self) -> Problem:
        keys = self.values.with_rows(self.values.rows @ self.W.T)
        return Problem.of(keys, scores_of(self.labels, self.values, self.v), self.loss)

    @property
    def gap(self) -> float:
        """The least distance of a best score from another of its input."""
        keys, scores = self.problem.keys, self.problem.scores
        best = keys.chosen(keys.argmax(scores))
        return float(np.delete(keys.spread(scores[best]) - scores, best).min())


def _keyed(values: Any, W: Any, v: Any, labels: Any = 1.0) -> Keyed:
    bags = Bags.of(values)
    return Keyed(bags, labels * np.ones(len(bags)), np.asarray(v, np.float64), W, Logistic())


def _draw_keyed(rng: np.random.Generator) -> Keyed:
    n, T, d, m = rng.integers([1, 2, 2, 1], [5, 6, 6, 6])
    W = rng.normal(size=(m, d))
    return _keyed(rng.normal(size=(n, T, d)), W, W.T @ rng.normal(size=m))


def _reaches(x: Keyed) -> bool:
    p = np.linalg.lstsq(x.W.T, x.v, rcond=None)[0]
    return bool(np.linalg.norm(x.W.T @ p - x.v) <= 1e-9 * np.linalg.norm(x.v))


LABELS = Hypothesis[Keyed]("all labels are +1", lambda x: bool((x.labels == 1).all()))
STRICT = Hypothesis[Keyed]("each input has one best token", lambda x: x.gap > 0)
RANGE = Hypothesis[Keyed]("v is in the range of W'", _reaches)

PAIR = [[0.0, 1.0], [0.0, 0.0]]


@claim(
    "mm.lemma2",
    says="With labels +1, one best token an input and v in the range of W', the best tokens can be separated: "
    "(W')^+ v has the least score gap as its least margin, so no unit vector needs to have less than gap/|(W')^+ v|, "
    "and the max-margin solution is no longer than |(W')^+ v|/gap.",
    source=PAPER + "Lemma 2",
    tolerance=1e-9,  # rounding of a pseudo-inverse
    constant="the least margin of (W')^+ v",
    hypotheses=(LABELS, STRICT, RANGE),
    draw=_draw_keyed,
    seeds=100,
    counters=(
        Counter(
            "one bag with either label",
            LABELS.says,
            lambda: _keyed([PAIR, PAIR], np.eye(2), [0, 1], np.array([1.0, -1.0])),
        ),
        Counter(
            "a best token between two that tie with it",
            STRICT.says,
            lambda: _keyed([[[0.0, 1.0], [1.0, 1.0], [-1.0, 1.0]]], np.eye(2), [0, 1]),
        ),
        Counter("keys that do not see the score", RANGE.says, lambda: _keyed([PAIR], np.diag([1.0, 0.0]), [0, 1])),
    ),
)
def _feasibility(x: Keyed, by: float = 1.0) -> float:
    """How far the least margin of (W')^+ v is from the gap; how much more |p_mm| gap is than |(W')^+ v|; the witness.

    A best token that cannot win has margin 0 at best, in place of 1.
    """
    rows, p = best_rows(x.problem), np.linalg.pinv(x.W.T) @ x.v
    shortest, size = solved(solve, rows), float(np.linalg.norm(p))
    off = abs(float(rows.times(p).min()) - by * x.gap) / (size + x.gap)
    if shortest is None:
        return max(off, 1.0)
    witness = separating_witness(x.values, x.W, x.v)
    return max(off, shortest.norm * x.gap / size - 1, float(np.linalg.norm(witness * x.gap - p)) / size)


# Lemma 3: one token against all others --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Probe:
    """One input with keys (T, d) and scores, at p, probed along q, seen from the token `first`."""

    keys: Vector
    scores: Vector
    p: Vector
    q: Vector
    first: int
    constant: float = 2.0  # of the bound, times Gamma A (1 - s_1)^2


def _draw_probe(rng: np.random.Generator) -> Probe:
    T, d = rng.integers([2, 1], [8, 6])
    keys, scores, p, q = (rng.normal(size=shape) for shape in ((T, d), T, d, d))
    # some inputs have two kinds of tokens only, where the bound is nearly attained
    if rng.random() < 0.3:
        keys, scores = np.where(np.arange(T)[:, None] == 0, q, -q), (np.arange(T) == 0) + 0.01 * scores
    return Probe(keys, scores, p * 10 ** rng.uniform(-1, 0.5), q, int(rng.integers(T)))


def _attained(constant: float = 2.0) -> Probe:
    """All other keys are opposite, all other scores equal."""
    keys = np.array([[1.0, 0.0], [-1.0, 0.0], [-1.0, 0.0]])
    return Probe(keys, np.eye(3)[0], np.array([0.7, 0.3]), np.array([2.0, 0.0]), 0, constant)


TWICE = Hypothesis[Probe]("the constant is at least 2", lambda probe: probe.constant >= 2)


@claim(
    "mm.lemma3",
    says="Seen from any token, a'S'gamma is sum_t (a_1 - a_t) s_t (gamma_1 - gamma_t) up to 2 Gamma A (1 - s_1)^2, "
    "with Gamma the spread of the scores and A = max|k| |q|.",
    source=PAPER + "Lemma 3",
    tolerance=1e-12,  # rounding, beside the first-order term Gamma A (1 - s_1)
    constant="2",
    hypotheses=(TWICE,),
    draw=_draw_probe,
    seeds=200,
    known=(_attained,),
    counters=(Counter("1.9 in place of 2", TWICE.says, lambda: _attained(1.9)),),
    notes="The difference is (sum_t s_t (a_1 - a_t)) (sum_t s_t (gamma_1 - gamma_t)): the bound holds seen from any "
    "token, and the known instance attains it.",
)
def _key_lemma(probe: Probe, by: float = 1.0) -> float:
    """(|a'S'gamma - sum_t (a_1 - a_t) s_t (gamma_1 - gamma_t)| - c Gamma A (1 - s_1)^2) / (Gamma A (1 - s_1))."""
    problem = one_input(probe.keys, probe.scores, Correlation())
    covariance = float(along(problem, probe.p, probe.q).plain)  # of the loss -x, minus the gradient is K'S'gamma
    attention = problem.read((probe.p,)).attention
    missed = float(np.delete(attention, probe.first).sum())
    a = probe.keys @ probe.q
    against_first = float((a[probe.first] - a) * attention @ (probe.scores[probe.first] - probe.scores))
    size = float(np.ptp(probe.scores) * np.linalg.norm(probe.keys, axis=1).max() * np.linalg.norm(probe.q))
    return (abs(covariance - against_first) - probe.constant / by * size * missed**2) / (size * missed)


# Lemma 4: the gradient is against the max-margin direction everywhere -----------------------------------------------


@dataclass(frozen=True, eq=False)
class Places:
    """A problem, and places p to look at."""

    problem: Problem
    points: Vector  # (m, d)
    pi: float = 0.0  # of Lemma 5


def _draw_places(rng: np.random.Generator) -> Places:
    n, T, d = rng.integers([1, 2, 6], [5, 6, 9])
    problem = draw_equal_scores(rng, n, T, d)
    solution = best_solution(problem)
    ways = np.vstack([rng.normal(size=(8, d)), solution.p, -solution.p])
    return Places(problem, ways * 10 ** rng.uniform(-2, 6, (10, 1)) / np.linalg.norm(ways, axis=1, keepdims=True))


def _bound_on_slope(problem: Problem, direction: Vector, p: Vector) -> Scaled:
    """The mean over inputs of |loss'| (least a_best - a_t) (score gap) s_best (1 - s_best), a number of any size."""
    keys, reading = problem.keys, problem.read((p,))
    others = np.ones(len(keys.rows), np.bool_)
    others[reading.best] = False
    a = keys.rows @ direction
    ahead, gap = (-keys.max(np.where(others, x - keys.spread(x[reading.best]), -np.inf)) for x in (a, problem.scores))
    log_slopes = problem.loss.log_abs_slope(reading.margins)
    each = np.log(ahead * gap) + log_slopes + reading.log_attention[reading.best] + log_missed(reading, reading.best)
    return Scaled.total(np.ones(len(keys)), each - np.log(len(keys)))


EQUAL = Hypothesis[Any]("in each input all tokens but the best share one score", lambda x: equal_scores(x.problem))
FEASIBLE = Hypothesis[Any]("the best tokens can be separated", lambda x: can_win(x.problem))
FALLS = Hypothesis[Any]("the loss falls strictly, with a bounded Lipschitz slope", lambda x: falls(x.problem))


@claim(
    "mm.lemma4",
    says="Where all tokens but the best share one score, p_mm'grad L(p) < 0 at every p, near or far: at least the mean "
    "over inputs of |loss'| times the least margin times the score gap times s_best (1 - s_best).",
    source=PAPER + "Lemma 4",
    tolerance=1e-8,  # rounding: 1e-16 of logarithms up to 1e7, and their exponentials are compared
    constant="the bound: it is attained by one input of two tokens",
    hypotheses=(FALLS, EQUAL, FEASIBLE),
    draw=_draw_places,
    seeds=60,
    known=(lambda: Places(one_input([[1], [0]], [1, 0]), np.array([[3.0]])),),
    counters=(
        Counter(
            "three scores, far along the locally optimal direction",
            EQUAL.says,
            lambda: Places(one_bag(0.0), np.array([[20.0, 0.0]])),
        ),
    ),
)
def _correlation(places: Places, by: float = 1.0) -> float:
    """The bound minus -p_mm'grad, beside the larger of the two, at the worst place."""
    problem, direction = places.problem, best_solution(places.problem).p
    return max(
        compared(_bound_on_slope(problem, by * direction, p), along(problem, p, direction)) for p in places.points
    )


# Lemma 5: with one input the max-margin direction is as steep as any -------------------------------------------------


def entropy_gap(T: int) -> float:
    """w: the largest possible mean of x_t - min x under weights exp(-x_t), t = 2, ..., T; w exp(w) = (T - 2)/e.

    At the maximum one x_t is 0 and all others are 1 + w.
    """
    return float(lambertw((T - 2) / np.e).real)


def _steep_radius(x: Places) -> float:
    return entropy_gap(int(x.problem.keys.sizes.max())) / (x.pi * best_solution(x.problem).margin)


def _draw_steepness(rng: np.random.Generator) -> Places:
    T, d = rng.integers([2, 3], [8, 6])
    problem, pi = draw_equal_scores(rng, 1, T, d), float(10 ** rng.uniform(-2, 0.5))
    solution = best_solution(problem)
    radius = max(_steep_radius(Places(problem, np.zeros((0, d)), pi)), 1e-3)
    away = [near(rng, solution.p, mu, radius) for mu in 10 ** rng.uniform(-6, 0, 6)]
    ways = np.vstack([rng.normal(size=(4, d)), away])
    sizes = radius * np.maximum(1, 10 ** rng.uniform(-1, 3, (10, 1)))
    return Places(problem, ways * sizes / np.linalg.norm(ways, axis=1, keepdims=True), pi)


def _nearly_attained(share: float = 1.0) -> Places:
    """Keys 0, (-1, 0) and, four times, (-1, -1e4): at the radius, turned by (1 + w)/(1e4 radius), nothing is left over.

    `share` of the radius: below 1 the inequality fails.
    """
    T, pi, wide = 6, 0.1, 1e4
    w = entropy_gap(T)
    radius = share * w / pi
    turn = (1 + w) / radius / wide
    points = radius * np.array([[np.cos(turn), np.sin(turn)]])
    return Places(one_input([[0, 0], [-1, 0], *[[-1, -wide]] * (T - 2)], np.eye(T)[0]), points, pi)


ONE = Hypothesis[Any]("there is one input", lambda x: len(x.problem.keys) == 1)
FAR = Hypothesis[Places](
    "|p| is at least w/(pi Theta)",
    lambda x: bool((np.linalg.norm(x.points, axis=1) >= _steep_radius(x) * (1 - 1e-12)).all()),
)


@claim(
    "mm.lemma5",
    says="One input, all tokens but the best with one score: from |p| = w/(pi Theta) on, where w exp(w) = (T - 2)/e, "
    "the descent along p_mm is at least 1/(1 + pi) of that along p.",
    source="keytokens, after " + PAPER + "Lemma 5",
    tolerance=1e-8,  # rounding of unit vectors far out
    constant="pi",
    hypotheses=(ONE, FALLS, EQUAL, FEASIBLE, FAR),
    draw=_draw_steepness,
    seeds=60,
    known=(_nearly_attained,),
    counters=(
        Counter(
            "two inputs, along the locally optimal direction",
            ONE.says,
            lambda: Places(two_limits(), np.array([[20.0, 0.0]]), 0.5),
        ),
        Counter(
            "three scores, along the locally optimal direction",
            EQUAL.says,
            lambda: Places(one_bag(0.0), np.array([[50.0, 0.0]]), 0.5),
        ),
        Counter("nine tenths of the radius", FAR.says, lambda: _nearly_attained(0.9)),
    ),
    notes="The statement is reconstructed from its use in the proof of Theorem 2; the radius is ours, and sharp.",
)
def _steepness(x: Places, by: float = 1.0) -> float:
    """(slope along p) / (slope along p_mm) / (1 + pi) - 1, at the worst place."""
    solution = best_solution(x.problem)
    worst = -np.inf
    for p in x.points:
        (down,) = x.problem.descent(x.problem.read((p,)), (p,))
        ours, theirs = (float(down.unit @ way / np.linalg.norm(way)) for way in (solution.p, p))
        worst = max(worst, theirs / ours / (1 + x.pi / by) - 1 if ours > 0 else np.inf)
    return worst


# Lemma 7: the cone around a locally optimal direction -----------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class InCone(Local):
    """Points p and probes q of the cone, and the constants if they are known."""

    points: Vector  # (m, d)
    probes: Vector  # (m, d), as long as p_mm
    expected: tuple[float, ...] = ()  # Theta, delta, A, mu, R


def _with_points(rng: np.random.Generator, local: Local, expected: tuple[float, ...] = ()) -> InCone:
    """The axis, the edge and in between, from the radius outwards."""
    found, axis = local.cone, local.direction
    shares = np.concatenate([[0, 1, 1, 1], rng.uniform(0, 1, 2)])
    sizes = found.radius * np.concatenate([[1, 1, 1], 10 ** rng.uniform(0, 3, 3)])
    points = [near(rng, axis, found.mu * share, size) for share, size in zip(shares, sizes, strict=True)]
    probes = [near(rng, axis, found.mu * share, 1 / found.margin) for share in shares[::-1]]
    return InCone(local.problem, local.selection, np.array(points), np.array(probes), expected)


def _figure_1b(scale: float = 1.0) -> InCone:
    """Theta, delta, A, mu and R for the data of the figure; longer keys make Theta larger, p shorter."""
    problem = one_bag(0.0)
    keys = problem.keys.with_rows(scale * problem.keys.rows)
    local = Local(Problem.of(keys, problem.scores), np.array([1]))
    return _with_points(np.random.default_rng(0), local, (scale, 0.05, 1.00499, 3.094e-4, 107.36 / scale))


def _two_bags() -> InCone:
    """The bag of the figure and another with a smaller gap, fewer tokens and all of them neighbours."""
    keys = Bags.of([[[-0.1, 1], [1, 0], [0, 0]], [[-0.5, 0], [0.5, 0]]])
    local = Local(Problem.of(keys, np.array([0.7, 0.6, -0.3, 0.1, 0.5])), np.array([1, 1]))
    return _with_points(np.random.default_rng(0), local, (1.0, 0.05, 1.00499, 3.094e-4, 123.575))


def _across(wider: float = 1.0) -> InCone:
    """Two inputs of opposite keys whose rows (2, 200) and (2, -200) are nearly across p_mm = (1/2, 0).

    At one edge of the cone a neighbour's margin is as small as can be, at the other as large: 1/2 and 3/2, or nearly.
    The points lie at one edge, far out, so that one input has nearly all of Q; `wider`: of a cone with so much more mu.
    """
    keys = Bags.of([[[1.0, 100.0], [-1.0, -100.0]], [[1.0, -100.0], [-1.0, 100.0]]])
    local = Local(Problem.of(keys, np.array([1.0, 0.0, 1.0, 0.0]), Correlation()), np.array([0, 0]))
    mu, size = wider * local.cone.mu, 3 * local.cone.radius
    edges = [np.array([1 - mu, side * np.sqrt(mu * (2 - mu))]) for side in (1.0, -1.0)]
    return InCone(local.problem, local.selection, size * np.array(edges[:1]), np.array(edges) / local.cone.margin)


def _opposite() -> InCone:
    """Two opposite keys: no token but neighbours, delta is infinite; R = log 64."""
    local = Local(one_input([[1, 0], [-1, 0]], [1, 0]), np.array([0]))
    return _with_points(np.random.default_rng(0), local, (2.0, np.inf, 0.5, 0.125, float(np.log(64))))


def _outside_bounds(x: InCone, p: Vector, by: float) -> float:
    """Logarithms: c Q <= -q'grad <= C Q, |grad| <= G Q and Q <= mean of (T_i - 1) exp(-|p| Theta/2), our constants.

    Of the probes q, a neighbour's margin a_t'q is between 1/2 and 3/2; of p, others are |p| Theta delta further behind.
    """
    keys, reading, problem = x.problem.keys, x.problem.read((p,)), x.problem
    (down,) = problem.descent(reading, (p,))
    steep, spread = slopes(problem), float((keys.max(problem.scores) + keys.max(-problem.scores)).max())
    far, T = float(np.linalg.norm(p)) * x.cone.margin, int(keys.sizes.max())
    # of 1 - s_i: what is not on the neighbours, and 1 - s_i itself, which stands for the second order
    stray = T * (np.exp(-far * x.cone.delta) + np.exp(-far / 2))
    rest, least, most = 2 * x.cone.size * spread * stray, float(x.gaps.min()), float(x.gaps.max())
    low = by * steep.least * (1 - stray) * least / 2 - steep.largest * rest
    high = steep.largest * (1.5 / by * most + rest)
    log_Q = float(np.logaddexp.reduce(log_missed(reading, keys.chosen(x.selection))) - np.log(len(keys)))

    def beside(size: float) -> Scaled:
        return Scaled(np.asarray(size), log_Q)

    along_q = [Scaled(np.asarray(slope), down.log_scale) for slope in x.probes @ down.array]
    gradient = Scaled(np.asarray(np.linalg.norm(down.array)), down.log_scale)
    return max(
        *(compared(beside(low), slope) for slope in along_q),
        *(compared(slope, beside(high)) for slope in along_q),
        compared(gradient, beside(steep.largest * x.reach * (most + spread * stray))),
        log_Q - float(np.log(np.mean(keys.sizes - 1.0))) + far / 2,
    )


def _all_in_cone(x: InCone) -> bool | None:
    """Not decided where there is no cone."""
    if not x.is_locally_optimal:
        return None
    theta = x.cone.margin
    return all(x.holds_in_cone(p, x.cone.radius) for p in x.points) and all(
        x.holds_in_cone(q, 1 / theta) for q in x.probes
    )


def crowded(score: float) -> Local:
    """The second input is ahead by 1.001, no neighbour, but its other token has a high score."""
    keys = Bags.of([[[1.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [-1.001, 0.0]]])
    return Local(Problem.of(keys, np.array([1.0, 0.0, 0.0, score]), Correlation()), np.array([0, 0]))


def _turned(degrees: float) -> InCone:
    angle, inside = np.radians(degrees), _figure_1b()
    points = 1.01 * inside.cone.radius * np.array([[np.cos(angle), np.sin(angle)]])
    return InCone(inside.problem, inside.selection, points, inside.probes)


LOCAL = Hypothesis[Any]("the selection is locally optimal", lambda x: x.is_locally_optimal)
NEIGHBOURS = Hypothesis[Any]("each input has a token on the margin", lambda x: x.all_have_neighbours)
INSIDE = Hypothesis[InCone]("the points lie in the cone", _all_in_cone)


@claim(
    "mm.lemma7",
    says="In the cone of width mu and radius R around a locally optimal direction no point is stationary: for every q "
    "of the cone as long as p_mm, c Q <= -q'grad <= C Q with Q the mean attention off the selected tokens. Up to what "
    "falls like exp(-|p| Theta min(1/2, delta)), c is 1/2 the least and C 3/2 the largest |loss'| (score gap), |grad| "
    "is at most 2/3 max|k_t - k_u| C Q, and Q at most (T - 1) exp(-|p| Theta/2).",
    source=PAPER + "Lemma 7",
    tolerance=1e-9,  # rounding
    constant="1/2 and 3/2",
    hypotheses=(FALLS, LOCAL, NEIGHBOURS, INSIDE),
    draw=lambda rng: _with_points(rng, draw_small(rng)),
    seeds=40,
    known=(_figure_1b, lambda: _figure_1b(3.0), _two_bags, _opposite, _across),
    counters=(
        Counter("at the edge of a cone with mu larger by a twentieth", INSIDE.says, lambda: _across(1.05)),
        Counter(
            "a second input without neighbours and with a high score behind",
            NEIGHBOURS.says,
            lambda: _with_points(np.random.default_rng(0), crowded(100.0)),
        ),
        Counter("eight degrees off the axis", INSIDE.says, lambda: _turned(8.0)),
    ),
    notes="The paper has 1/8 and 2 for our 1/2 and 3/2, which are attained but for a hundredth. That each input has a "
    "neighbour is our condition, and a counter-instance shows that it is needed.",
)
def _cone_excess(x: InCone, by: float = 1.0) -> float:
    found = (x.cone.margin, x.cone.delta, x.cone.size, x.cone.mu, x.cone.radius)
    return max(off_digits(found, x.expected), *(_outside_bounds(x, p, by) for p in x.points))
