"""Regularisation paths with the head fixed: where the best p on growing balls and cones goes.

"For large R" is made explicit: the radius from which on the leading tokens decide is computed (`leading`), and so is
how far a minimum on a ball can be from its limit (`nearness`). These constants are ours, the statements the paper's.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ...core.bags import Bags, Index, Vector
from ...core.heads import HeadProblem, Linear, Quadratic, Tanh
from ...core.heads import Limit as Exact
from ...core.selection_loss import Correlation, Exponential, Logistic, MarginLoss, Scaled, SelectionProblem
from ...errors import InputError, NotSeparable
from ...paths import Decomposition, Falls, PathPoint, SetPoint, decomposition, regularisation_path, set_path
from ...paths import falls as falls_of
from ...selection import directional_neighbours, in_general_position
from ...svm import MarginProblem, solve, solve_set_valued
from .. import known
from ..assumptions import LOSSES, best_solution, falls
from ..claim import Claim, Counter, Hypothesis
from ..converse import ConeAround, keeps_away
from ..leading import View, beyond, compared, unit
from ..nearness import Limit

__all__ = ["CLAIMS"]


# --- Theorem 1: the path on balls ------------------------------------------------------------------------------------

NEAR, FAR, PROVED = 10.0, 1e4, 1e8  # radii, in units of |p_mm|


def _ball_problem(rng: np.random.Generator) -> SelectionProblem:
    """Up to three inputs with up to four tokens, scores of any sign; six or more dimensions, so mostly separable."""
    n, T, d = int(rng.integers(1, 4)), int(rng.integers(2, 5)), int(rng.integers(6, 9))
    keys = Bags.of(rng.normal(size=(n, T, d)))
    return SelectionProblem(keys, rng.normal(size=n * T), _loss(rng))


def _loss(rng: np.random.Generator) -> MarginLoss:
    return LOSSES[int(rng.integers(len(LOSSES)))]


def _off_proof(problem: SelectionProblem | HeadProblem, limit: Limit, path: Sequence[PathPoint]) -> float:
    """By how much the path leaves what is proved of every minimum; and what is not yet proved at the last radius.

    It is as near as proved, no higher than the ray of p_mm, no lower than any p can be; and log(L - L*) has rate 1.
    """
    size = limit.shortest.norm

    def log_gap(radius: float) -> float:
        """On the ray of p_mm."""
        return problem.gap(problem.read((radius * limit.shortest.p / size,))).log

    excesses = [limit.misalignment(at.p) - limit.proved_misalignment(at.radius, at.log_gap) for at in path]
    excesses += [(limit.log_floor(at.radius) - at.log_gap) / FAR for at in path]
    excesses += [(at.log_gap - log_gap(at.radius)) / FAR for at in path]
    end = PROVED * size
    rates = -limit.log_floor(end) / PROVED, -log_gap(end) / PROVED
    return max(*excesses, limit.proved_misalignment(end, log_gap(end)), *(abs(rate - 1) for rate in rates))


def _ball_path(problem: SelectionProblem) -> float:
    limit = Limit.of(problem)
    path = regularisation_path(problem, [NEAR * limit.shortest.norm, FAR * limit.shortest.norm], starts=2)
    away = limit.misalignment(path[-1].p)
    return max(away, _off_proof(problem, limit, path)) if limit.proves else away


def _in_space(problem: SelectionProblem) -> SelectionProblem:
    """A problem of the plane, put into three dimensions: nothing changes, and no angles have to be scanned."""
    rows = np.column_stack([problem.keys.rows, np.zeros(len(problem.scores))])
    return SelectionProblem(problem.keys.with_rows(rows), problem.scores, problem.loss)


def _two_winners() -> SelectionProblem:
    """Tokens (-1, 0, 0) and (2, 0, 0) tie for the best: the path takes the second, whose margin is larger."""
    keys = Bags.of([[[-1.0, 0.0, 0.0], [2.0, 0.0, 0.0], [0.0, 0.0, 0.0]]])
    return SelectionProblem(keys, np.array([1.0, 1.0, 0.0]))


def _strict(problem: SelectionProblem) -> bool:
    top = problem.scores == problem.keys.spread(problem.keys.max(problem.scores))
    return int(top.sum()) == len(problem.keys)


_FALLS: Hypothesis[SelectionProblem] = Hypothesis("the loss falls strictly and its slope is Lipschitz", falls)
_STRICT: Hypothesis[SelectionProblem] = Hypothesis("each input has one best token", _strict)
_CAN_WIN: Hypothesis[SelectionProblem] = Hypothesis(
    "the best tokens can be separated from the others", lambda problem: best_solution(problem) is not None
)


# --- Lemmas 8 and 9: two directions, one direction --------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TwoDirections:
    problem: SelectionProblem
    p: Vector
    q: Vector
    higher: bool  # whether the neighbour of q has a higher score than the selected token

    @cached_property
    def views(self) -> tuple[View, View]:
        return View(self.problem, self.p), View(self.problem, self.q)


def _two_directions(rng: np.random.Generator) -> TwoDirections:
    n, T, d = int(rng.integers(1, 4)), int(rng.integers(2, 5)), int(rng.integers(2, 6))
    keys = Bags.of(rng.normal(size=(n, T, d)))
    problem = SelectionProblem(keys, rng.normal(size=n * T), _loss(rng))
    while True:
        p = unit(rng.normal(size=d))
        q = unit(p + 0.3 * rng.normal(size=d))
        first, second = View(problem, p), View(problem, q)
        if np.array_equal(first.chosen, second.chosen) and abs(first.margin - second.margin) > 1e-2:
            break
    if second.margin > first.margin:
        first, second = second, first
    higher = bool(rng.integers(2))
    scores = problem.scores.copy()
    for view, sign in ((first, -1), (second, 1 if higher else -1)):  # the second has the last word
        near = view.others[view.near]
        size = 0.1 + np.abs(scores[near] - scores[view.chosen[keys.bag[near]]])
        scores[near] = scores[view.chosen[keys.bag[near]]] + sign * size
    moved = SelectionProblem(keys, scores, problem.loss)
    return TwoDirections(moved, first.direction, second.direction, higher)


def _neighbours_decide(pair: TwoDirections) -> bool:
    first, second = pair.views
    gaps = second.gaps[second.near]
    if pair.higher:
        return len(gaps) == 1 and bool(gaps[0] < 0)
    return bool((gaps > 0).all() and (first.gaps[first.near] > 0).all())


def _lower_loss(pair: TwoDirections) -> float:
    """E at R p against E at R q, relative to the larger: below 0 for the direction that should win."""
    first, second = pair.views
    lead = abs(first.margin - second.margin)
    begin = second.radius(min(second.step, lead))
    sign = -1 if pair.higher else 1
    at = ((first.change(R * pair.p), second.problem.read((R * pair.q,)).excess(first.chosen)) for R in beyond(begin))
    return max(sign * compared(a, b) for a, b in at)


def _swapped() -> TwoDirections:
    """One input with keys (1, 0) and 0: the direction (1, 0) has the larger margin, but is called q."""
    problem = SelectionProblem(Bags.of([[[1.0, 0.0], [0.0, 0.0]]]), np.array([1.0, 0.0]))
    return TwoDirections(problem, np.array([0.6, 0.8]), np.array([1.0, 0.0]), False)


def _bad_neighbour() -> TwoDirections:
    """Keys (1, 0) and 0, and the neighbour 0 scores more."""
    problem = SelectionProblem(Bags.of([[[1.0, 0.0], [0.0, 0.0]]]), np.array([0.0, 1.0]))
    return TwoDirections(problem, np.array([1.0, 0.0]), np.array([0.6, 0.8]), False)


def _other_tokens() -> TwoDirections:
    """p has the larger margin and selects the worse token."""
    problem = SelectionProblem(Bags.of([[[2.0, 0.0], [-1.0, 1.5], [0.0, 0.0]]]), np.array([1.0, 2.0, 0.0]))
    return TwoDirections(problem, np.array([1.0, 0.0]), np.array([0.0, 1.0]), False)


_SAME_TOKENS: Hypothesis[TwoDirections] = Hypothesis(
    "both directions select the same tokens, each alone in the lead",
    lambda pair: np.array_equal(pair.views[0].chosen, pair.views[1].chosen) and min(v.margin for v in pair.views) > 0,
)
_SMALLER_MARGIN: Hypothesis[TwoDirections] = Hypothesis(
    "q has the smaller margin", lambda pair: pair.views[1].margin < pair.views[0].margin
)
_NEIGHBOURS: Hypothesis[TwoDirections] = Hypothesis(
    "all neighbours of both score less than the selected tokens, or q has one neighbour and that scores more",
    _neighbours_decide,
)


def _good_neighbours(rng: np.random.Generator) -> View:
    """A direction, perhaps a max-margin one with several neighbours, all of which score more than what it selects."""
    n, T, d = int(rng.integers(1, 4)), int(rng.integers(2, 5)), int(rng.integers(2, 6))
    keys = Bags.of(rng.normal(size=(n, T, d)))
    problem = SelectionProblem(keys, rng.normal(size=n * T), _loss(rng))
    view = View(problem, unit(rng.normal(size=d)))
    if rng.integers(2):
        view = View(problem, unit(solve(MarginProblem.from_selection(keys, view.selection)).p))
    scores = problem.scores.copy()
    near = view.others[view.near]
    lead = scores[view.chosen[keys.bag[near]]]
    scores[near] = lead + 0.1 + np.abs(scores[near] - lead)
    return View(SelectionProblem(keys, scores, problem.loss), view.direction)


def _finite_minimum(view: View) -> float:
    """E(R p) < 0 from the radius on; and far out in the cone nothing is as low as at that radius."""
    begin = view.radius(view.step) if math.isfinite(view.step) else 1.0
    p, zero = view.direction, Scaled(np.zeros(()), 0.0)
    negative = max(compared(view.change(R * p), zero) for R in beyond(begin))
    depth = view.change(begin * p)
    # at R u with |u - p| <= margin / (2 reach) all margins are at least x = R margin / 2, so |E| <= everything exp(-x)
    wide, half = view.margin / (2 * view.reach), view.margin / 2
    far = (view.log_everything - depth.log) / half
    rng = np.random.default_rng(0)
    ways = [p, *(p + wide * unit(row) for row in rng.normal(size=(20, len(p)))), *_towards(view, wide)]
    points = (factor * max(far, begin) * way for way in ways for factor in (1.01, 2.0))
    return max(negative, *(compared(depth, view.change(point)) for point in points))


def _towards(view: View, wide: float) -> list[Vector]:
    """Towards each neighbour: where its attention, and with it the gain, is largest."""
    return [view.direction - wide * unit(row) for row in view.rows[view.near]]


_ALL_HIGHER: Hypothesis[View] = Hypothesis(
    "all directional neighbours score more than the selected tokens",
    lambda view: bool((view.gaps[view.near] < 0).all()),
)
_ALONE: Hypothesis[View] = Hypothesis("each selected token is alone in the lead", lambda view: view.margin > 0)


# --- Lemma 10: how many neighbours there can be ----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Tokens:
    """Keys and one selected token of each bag, which some direction selects."""

    keys: Bags
    selection: Index


def _tokens(rng: np.random.Generator) -> Tokens:
    n, T, d = int(rng.integers(1, 4)), int(rng.integers(2, 5)), int(rng.integers(1, 4))
    n = max(n, -(-(d + 1) // (T - 1)))  # more other tokens than dimensions
    keys = Bags.of(rng.normal(size=(n, T, d)))
    return Tokens(keys, keys.argmax(keys.rows @ rng.normal(size=d)))


def _most_neighbours(tokens: Tokens) -> float:
    """The most neighbours of any direction, less d; and whether they are those that attain the margin.

    A direction with margin 1 and d or more neighbours solves a_t'q = 1 for d independent rows: all such are tried.
    """
    problem = MarginProblem.from_selection(tokens.keys, tokens.selection)
    A = problem.rows(np.arange(len(problem)))
    d = problem.dim
    some = np.array(list(itertools.combinations(range(len(A)), d)))
    some = some[np.abs(np.linalg.det(A[some])) > 1e-9]
    corners = np.linalg.solve(A[some], np.ones((len(some), d, 1)))[..., 0]
    inside = corners[(corners @ A.T >= 1 - 1e-9).all(axis=1)]
    excesses = []
    for q in inside:
        found = directional_neighbours(tokens.keys, np.zeros(len(tokens.keys.rows)), q)
        count = int(found.neighbours.sum())
        excesses += [count - d, abs(count - int((A @ q <= 1 + 1e-6).sum())), abs(found.margin - 1)]
    return float(max(excesses))


def _in_a_row() -> Tokens:
    """Three tokens on a line behind the selected one: (1, 0) has three neighbours in two dimensions."""
    return Tokens(Bags.of([[[0.0, 0.0], [-1.0, 1.0], [-1.0, 0.0], [-1.0, -1.0]]]), np.array([0]))


_GENERAL: Hypothesis[Tokens] = Hypothesis(
    "the rows (selected - other token) are in general position",
    lambda tokens: in_general_position(tokens.keys, tokens.selection),
)


# --- Theorem 4: the converse -----------------------------------------------------------------------------------------


def _cone_around(rng: np.random.Generator) -> ConeAround:
    """A random direction, the max-margin direction of a random selection, or one where two tokens tie for the lead."""
    n, T, d = int(rng.integers(1, 4)), int(rng.integers(2, 5)), int(rng.integers(2, 4))
    keys = Bags.of(rng.normal(size=(n, T, d)))
    problem = SelectionProblem(keys, rng.normal(size=n * T), _loss(rng))
    kind, eps = int(rng.integers(3)), float(10 ** rng.uniform(-3, -1))
    for _ in range(100):
        q = unit(rng.normal(size=d))
        if kind == 1:
            q = unit(solve(MarginProblem.from_selection(keys, keys.argmax(keys.rows @ q))).p)
        if kind == 2:
            first, second = np.argsort(keys[0] @ q)[::-1][:2]
            apart = keys[0][first] - keys[0][second]
            q = unit(q - (apart @ q) / (apart @ apart) * apart)
        cone = ConeAround(problem, q, eps)
        ties = np.abs(cone.view.margin) < 1e-9
        if not cone.locally_optimal and ties == (kind == 2):
            break
    return cone


def _good_direction() -> ConeAround:
    """Fig 1(b) with its locally optimal direction (1, 0)."""
    return ConeAround(known.one_bag(0.0), known.LMM, 0.01)


def _doubled_token() -> ConeAround:
    """The token 0 twice, once with a higher and once with a much lower score: together they count as lower."""
    problem = SelectionProblem(Bags.of([[[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]]]), np.array([0.0, 1.0, -3.0]))
    return ConeAround(problem, np.array([1.0, 0.0]), 0.01)


def _tied_neighbour() -> ConeAround:
    """The neighbour ties in score, so the path turns to where the third token is furthest: the direction (2, -0.3)."""
    problem = SelectionProblem(Bags.of([[[1.0, 0.0], [0.0, 0.0], [-1.0, 0.3]]]), np.array([0.9, 0.9, 0.0]))
    return ConeAround(problem, unit(np.array([2.0, -0.3])), 0.01)


_NOT_OPTIMAL: Hypothesis[ConeAround] = Hypothesis(
    "q is no locally optimal max-margin direction", lambda cone: not cone.locally_optimal
)
_DISTINCT: Hypothesis[ConeAround] = Hypothesis(
    "the scores within each input are distinct",
    lambda cone: all(
        len(np.unique(cone.problem.scores[cone.problem.keys.bag == i])) == size
        for i, size in enumerate(cone.problem.keys.sizes)
    ),
)
_GENERAL_CONE: Hypothesis[ConeAround] = Hypothesis(
    "the keys are in general position", lambda cone: in_general_position(cone.problem.keys, cone.view.selection)
)


# --- Lemma 14 and Theorem 8: heads that are not linear, sets of optimal tokens ----------------------------------------

CONVEX = (Logistic(), Exponential(), Correlation())  # the bounds of `paths.decomposition` are for these


@dataclass(frozen=True, eq=False)
class Decomposed:
    """A problem with optimal sets, and what is said of it: f_i = nu_i (1 - q_i) + Z_i with the constants C and eps."""

    problem: HeadProblem
    said: Decomposition


def _bounded(one: Decomposed) -> bool | None:
    """Whether what is said is true, by bounds of the head that are proved; None for a head without."""
    known = falls_of(one.problem)
    if known is None:
        return None
    rounding = 1e-9 * float(known.nu.max())
    return bool(
        np.array_equal(one.said.nu, one.problem.nu)
        and (known.least >= one.said.eps * known.nu - rounding).all()
        and (known.most - known.nu <= one.said.C + rounding).all()
    )


def _with_sets(rng: np.random.Generator, free: bool) -> HeadProblem:
    """One or two optimal tokens an input, others below them; with `free` keys, any logits come from some p."""
    kind, loss = int(rng.integers(3)), CONVEX[int(rng.integers(3))]
    for _ in range(1000):
        try:
            problem = _maybe_with_sets(rng, kind, loss, free)
        except InputError:  # a token outside is better, under this head, than those of the set
            continue
        if (problem.nu > 0).all() and falls_of(problem) is not None:
            return problem
    raise AssertionError("no problem with such a head has optimal sets")


def _maybe_with_sets(rng: np.random.Generator, kind: int, loss: MarginLoss, free: bool) -> HeadProblem:
    n, T, m = int(rng.integers(1, 4)), int(rng.integers(3, 5)), 3
    w, labels = rng.normal(size=m), rng.choice([-1.0, 1.0], n)
    rise, head = w / (w @ w), (Linear(w), Tanh(w), Quadratic(w, 0.2))[kind]
    sizes = rng.integers(1, 3, n)
    optimal = np.arange(T) < sizes[:, None]
    share = np.where(optimal, 1.0, rng.uniform(-1.0, 0.8, (n, T))) * rng.uniform(0.5, 1.5, (n, 1))
    away = 0.3 * rng.normal(size=(n, T, m))
    away -= (away @ rise)[..., None] * rise / (rise @ rise)
    x = labels[:, None, None] * share[..., None] * rise + np.where(optimal[..., None], 0.0, away)
    keys = rng.normal(size=(n, T, n * T if free else 6))
    return HeadProblem.of(labels, Bags.of(x), head, Bags.of(keys), [range(size) for size in sizes], loss)


def _rho(one: Decomposed, delta: float) -> float:
    """-2 (1 + 1/Delta) log(C+/C-), C+ = B (C + max nu), C- = A eps min nu / n, A and B the extreme |loss'| in reach."""
    nu, loss = one.problem.nu, one.problem.loss
    steep = -loss.slope(np.linspace(-one.said.C, float(nu.max()), 9))
    ratio = steep.max() * (one.said.C + nu.max()) / (steep.min() * one.said.eps * nu.min() / len(nu))
    return float(-2 * (1 + 1 / delta) * np.log(ratio))


def _off_bounds(one: Decomposed, p: Vector) -> float:
    """By how much nu_i - f_i, or Z_i, leaves its bounds at p."""
    reading, known, nu = one.problem.read((p,)), falls_of(one.problem), one.problem.nu
    q = np.exp(reading.log_outside)
    lost = nu - reading.margins
    Z = reading.margins - nu * (1 - q)
    excesses = [Z - (1 - one.said.eps) * nu * q, -one.said.C * q.max() - Z]
    if known is not None:
        excesses += [known.least * q - lost, lost - known.most * q]
    return float(np.max(excesses))


def _any_logits(rng: np.random.Generator) -> Decomposed:
    problem = _with_sets(rng, free=True)
    return Decomposed(problem, decomposition(problem))


def _p_with(problem: HeadProblem, log_outside: Vector, tokens: Index, lead: Vector) -> Vector:
    """The p that puts q_i = exp(log_outside) on one token outside of each set and nothing to speak of on the others."""
    keys = problem.keys
    logits = np.where(problem.inside, lead, -2000.0)
    inside = np.log(keys.sum(np.where(problem.inside, np.exp(lead), 0.0)))
    logits[keys.starts[:-1] + tokens] = log_outside - np.log(-np.expm1(log_outside)) + inside
    return np.asarray(np.linalg.solve(keys.rows, logits), np.float64)


def _pairs_compared(one: Decomposed) -> float:
    """log(L(p) - L*) - log(L(p') - L*) over pairs with log q_max(p) = min((1 + Delta) log q_max(p'), rho(Delta)).

    p has that much attention outside in every input, on the tokens where it weighs most, p' in one input only, where it
    weighs least: L - L* is a sum over the inputs.
    """
    problem, keys = one.problem, one.problem.keys
    lead = np.random.default_rng(0).normal(size=len(keys.rows))
    outside = [np.flatnonzero(~problem.inside[keys.bag == i]).tolist() for i in range(len(keys))]

    def log_gap(log_outside: Vector, tokens: Sequence[int]) -> float:
        p = _p_with(problem, log_outside, np.array(tokens, np.intp), lead)
        return problem.gap(problem.read((p,))).log

    def alone(log_outside: float) -> list[list[float]]:
        """log(L - L*) with attention outside in one input only, on each of its tokens."""
        first = [others[0] for others in outside]
        spots = [np.where(np.arange(len(keys)) == i, log_outside, log_outside - 1000.0) for i in range(len(keys))]
        return [
            [log_gap(spots[i], [*first[:i], token, *first[i + 1 :]]) for token in others]
            for i, others in enumerate(outside)
        ]

    worst = max(_off_bounds(one, p) - 1e-12 for p in _some_p(problem, outside))
    for delta, part in itertools.product((0.1, 1.0, 10.0), (0.1, 1.0, 3.0)):
        rho = one.said.rho(delta, problem.loss)
        worst = max(worst, abs(rho / _rho(one, delta) - 1) - 1e-9)
        theirs = part * rho / (1 + delta)
        ours = min((1 + delta) * theirs, rho) * (1 + 1e-12)
        heaviest = [others[int(np.argmax(gaps))] for others, gaps in zip(outside, alone(ours), strict=True)]
        lightest = min(map(min, alone(theirs)))
        worst = max(worst, log_gap(np.full(len(keys), ours), heaviest) - lightest)
    return worst


def _some_p(problem: HeadProblem, outside: list[list[int]]) -> list[Vector]:
    """All attention outside on each token, a little of it, and random shares."""
    rng = np.random.default_rng(1)
    even = np.zeros(len(problem.keys.rows))
    turns = [np.array([others[k % len(others)] for others in outside]) for k in range(max(map(len, outside)))]
    some = [_p_with(problem, np.full(len(outside), x), turn, even) for turn in turns for x in (-1e-9, -1.0, -5.0)]
    return [*some, *rng.normal(size=(10, problem.keys.dim))]


def _nearly_tied() -> Decomposed:
    """A token outside of the set loses 1e-6 where eps = 1/2 is said."""
    values, keys = Bags.of([[[1.0], [1.0 - 1e-6]], [[1.0], [0.0]]]), Bags.of(np.eye(4).reshape(2, 2, 4))
    problem = HeadProblem.of([1, 1], values, Linear(np.ones(1)), keys, [[0], [0]], Correlation())
    return Decomposed(problem, Decomposition(problem.nu, 0.0, 0.5))


def _set_path(problem: HeadProblem) -> float:
    """Distance of p |p_mm| / R to the solutions far out, beside |p_mm|; and the path against what is proved."""
    known = falls_of(problem)
    least = -math.inf if known is None else decomposition(problem).log_constants(problem.loss)[0]
    limit = Limit(problem.keys, problem.sets, least)
    size = limit.shortest.norm
    far = FAR if limit.proves else 10 * NEAR  # beside a best token that is outside of its set, others underflow soon
    path = set_path(problem, [NEAR * size, far * size], starts=1).points
    off = min(float(np.linalg.norm(path[-1].p / path[-1].radius - p / size)) for p in limit.targets())
    if known is None:
        return off
    return max(off, _off_proof(problem, limit, path), *(_off_words(problem, known, at) for at in path))


def _off_words(problem: HeadProblem, known: Falls, at: SetPoint) -> float:
    """What a point of the path says of itself, against the same from each input's own slope and least fall."""
    slopes = problem.loss.log_abs_slope(known.nu)
    limit = Limit(problem.keys, problem.sets, float((slopes + np.log(known.least)).min()) - math.log(known.bags))
    away, turn = limit.misalignment(at.p), limit.proved_misalignment(at.radius, at.log_gap)
    log_q = float(problem.read((at.p,)).log_outside.max())
    return max(
        away - turn,
        abs(turn - (2.0 if at.turn is None else at.turn)),
        abs(at.lower - limit.log_floor(at.radius)) / FAR,
        abs(at.one_minus_cos - away),
        abs(at.distance / limit.shortest.norm - math.sqrt(2 * away)) if not at.inside else 0.0,
        at.log_gap - log_q - known.log_constants(problem.loss)[1],
    )


def _two_solutions() -> HeadProblem:
    """Keys 1 and -1 are optimal, 0 is not: the solutions are 1 and -1."""
    keys = [[[1.0], [-1.0], [0.0]]]
    return HeadProblem.of([1], [[[1.0], [1.0], [0.0]]], Tanh(np.ones(1)), keys)


def _set_too_small() -> HeadProblem:
    """Keys -1 and 2 tie for the best, but only -1 is called optimal."""
    keys = Bags.of([[[-1.0, 0.0], [2.0, 0.0], [0.0, 0.0]]])
    values, inside = Bags.of([[[1.0], [1.0], [0.0]]]), np.array([True, False, False])
    return HeadProblem(np.ones(1), values, Linear(np.ones(1)), keys, inside, Logistic(), Exact.EXACT)


def _sets_can_win(problem: HeadProblem) -> bool:
    try:
        solve_set_valued(problem.keys, problem.sets)
    except NotSeparable:
        return False
    return True


_POSITIVE: Hypothesis[Decomposed] = Hypothesis("nu_i > 0", lambda one: bool((one.problem.nu > 0).all()))
_DECOMPOSED: Hypothesis[HeadProblem] = Hypothesis(
    "Assumption D, by Lemma 14 with the bounds of the head",
    lambda problem: bool((problem.nu > 0).all()) if falls_of(problem) is not None else None,
)
_SETS_CAN_WIN: Hypothesis[HeadProblem] = Hypothesis("the optimal sets can be separated from the others", _sets_can_win)
_BOUNDED: Hypothesis[Decomposed] = Hypothesis("-C q_max <= Z_i <= (1 - eps) nu_i q_i for all p, eps > 0", _bounded)


CLAIMS: tuple[Claim[Any], ...] = (
    Claim(
        id="mm.thm1",
        says="With the head fixed, the best p in the ball of radius R turns to the max-margin direction of the best "
        "tokens as R grows, and log(L - L*) falls like -R / |p_mm|.",
        source="Max-Margin Token Selection, Theorem 1",
        hypotheses=(_FALLS, _STRICT, _CAN_WIN),
        excess=_ball_path,
        tolerance=1e-4,
        draw=_ball_problem,
        seeds=25,
        known=tuple(
            lambda make=make: _in_space(make())  # type: ignore[misc]
            for make in (lambda: known.one_bag(0.9), lambda: known.one_bag(0.0), known.two_limits, known.three_bags)
        ),
        counters=(Counter("two tokens tie for the best", _STRICT.says, _two_winners),),
        notes="The rate of the loss is ours, and so is the proof that every minimum on the ball is as near as said.",
    ),
    Claim(
        id="mm.lemma8",
        says="Of two directions that select the same tokens, the one with the larger margin has the lower loss far out "
        "if all neighbours score less; a direction whose one neighbour scores more has a lower loss than one with a "
        "larger margin.",
        source="Max-Margin Token Selection, Lemma 8",
        hypotheses=(_SAME_TOKENS, _SMALLER_MARGIN, _NEIGHBOURS),
        excess=_lower_loss,
        tolerance=0.0,
        draw=_two_directions,
        seeds=60,
        counters=(
            Counter("p and q swapped", _SMALLER_MARGIN.says, _swapped),
            Counter("the neighbour scores more", _NEIGHBOURS.says, _bad_neighbour),
            Counter("p selects a worse token", _SAME_TOKENS.says, _other_tokens),
        ),
        notes="The radius from which on it holds is ours.",
    ),
    Claim(
        id="mm.lemma9",
        says="If all directional neighbours score more than the selected tokens, the loss along the direction comes to "
        "its limit from below, so in a cone around it the minimum is at a finite point.",
        source="Max-Margin Token Selection, Lemma 9",
        hypotheses=(_ALONE, _ALL_HIGHER),
        excess=_finite_minimum,
        tolerance=0.0,
        draw=_good_neighbours,
        seeds=60,
        counters=(
            Counter(
                "the neighbour scores less",
                _ALL_HIGHER.says,
                lambda: View(SelectionProblem(Bags.of([[[1.0, 0.0], [0.0, 0.0]]]), np.array([1.0, 0.0])), known.LMM),
            ),
        ),
        notes="The radius and the width of the cone are ours.",
    ),
    Claim(
        id="mm.lemma10",
        says="For keys in general position no direction has more than d directional neighbours.",
        source="Max-Margin Token Selection, Lemma 10",
        hypotheses=(_GENERAL,),
        excess=_most_neighbours,
        tolerance=1e-9,  # the number d is attained; the margin is 1 but for rounding
        draw=_tokens,
        seeds=60,
        counters=(Counter("three tokens in a row", _GENERAL.says, _in_a_row),),
    ),
    Claim(
        id="mm.thm4",
        says="Around a direction that is no locally optimal max-margin direction, the best p of a cone within growing "
        "balls does not go that way: it stays bounded or takes another direction.",
        source="Max-Margin Token Selection, Theorem 4",
        hypotheses=(_NOT_OPTIMAL, _DISTINCT, _GENERAL_CONE),
        excess=keeps_away,
        tolerance=1e-9,  # with one input of two tokens the bound is attained
        draw=_cone_around,
        seeds=60,
        counters=(
            Counter("a locally optimal direction", _NOT_OPTIMAL.says, _good_direction),
            Counter("a token that is there twice", _GENERAL_CONE.says, _doubled_token),
            Counter("a neighbour that ties in score", _DISTINCT.says, _tied_neighbour),
        ),
        notes="By how much the path keeps away, and from which radius on, is ours.",
    ),
    Claim(
        id="mm.lemma14",
        says="If f_i = nu_i (1 - q_i) + Z_i, nu_i > 0 and -C q_max <= Z_i <= (1 - eps) nu_i q_i, then less attention "
        "outside of the optimal sets means less loss: log q_max(p) <= min((1 + Delta) log q_max(p'), rho(Delta)) "
        "implies L(p) < L(p'), with rho = -2 (1 + 1/Delta) log(C+/C-).",
        source="Max-Margin Token Selection, Lemma 14",
        hypotheses=(_POSITIVE, _BOUNDED),
        excess=_pairs_compared,
        tolerance=0.0,
        draw=_any_logits,
        seeds=25,
        counters=(Counter("a token outside scores nearly as much", _BOUNDED.says, _nearly_tied),),
        notes="The excess is log(L(p) - L*) - log(L(p') - L*).",
    ),
    Claim(
        id="mm.thm8",
        says="With a head that need not be linear and sets of optimal tokens, the best p in the ball of radius R, "
        "divided by R / |p_mm|, comes near the solutions of the problem in which one token of each set stands 1 above "
        "all tokens outside.",
        source="Max-Margin Token Selection, Theorem 8",
        hypotheses=(_SETS_CAN_WIN, _DECOMPOSED),
        excess=_set_path,
        tolerance=2e-3,
        draw=lambda rng: _with_sets(rng, free=False),
        seeds=22,
        known=(_two_solutions,),
        counters=(Counter("a set that leaves out a best token", _DECOMPOSED.says, _set_too_small),),
        notes="How near every minimum on the ball is, is ours.",
    ),
)
