"""The loss far out along a direction: which tokens decide its sign, and from which radius on they do.

E(p) = L(p) - L with all attention on a selection. For a token t with row a_t = k_selected - k_t and score gap g_t =
gamma_selected - gamma_t, the attention is s_t <= exp(-a_t'p), and s_t >= exp(-a_t'p) / T where the selection leads. So
the tokens nearest to the selected ones decide, once R is large (`docs/proofs.md`, mm.lemma8 and mm.thm4). That radius
is computed: these constants are ours, the statements the paper's.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....model.ragged import Bags, Index, Vector
from ...problems.geometry import misalignment
from ...problems.losses import Correlation, Scaled
from ...problems.problem import Problem
from ...selection import ON_THE_MARGIN, directional_neighbours, in_general_position, local_optimum
from ...svm.problem import MarginProblem
from ...svm.solver import solve, solved
from .. import instances as known
from ..claim import Counter, Hypothesis, claim
from .assumptions import Local, compared, one_input, slopes
from .paths import random_problem

PAIR = [[1.0, 0.0], [0.0, 0.0]]


def unit(x: Vector) -> Vector:
    return np.asarray(x / np.linalg.norm(x), np.float64)


BEYOND = (1.0, 3.0, 10.0)  # times the radius: where "from this radius on" is tried


def lower(one: Callable[[float], Scaled], other: Callable[[float], Scaled], begin: float) -> float:
    """one(R) - other(R) beside the larger, the largest from a radius on: below 0 where the one is lower all the way."""
    return max(compared(one(far * begin), other(far * begin)) for far in BEYOND)


def thin(near: float) -> Problem:
    """One input with rows (3, 1) and (2, 4) behind the selected token, and scores 0, `near` and -1.

    Of two that differ so much in score the near one wins from the radius on, and not from nine tenths of it.
    """
    return one_input([[0, 0], [-3, -1], [-2, -4]], [0, near, -1], Correlation())


@dataclass(frozen=True, eq=False)
class View:
    """How far behind the selected tokens the others are, seen along a direction.

    Selected are given tokens, or those that lead; of tokens that tie for the lead, the best scored.
    """

    problem: Problem
    direction: Vector  # of length 1
    given: Index | None = None  # rows

    @cached_property
    def chosen(self) -> Index:
        """(n,) rows of the selected tokens."""
        if self.given is not None:
            return self.given
        keys, a = self.problem.keys, self.problem.keys.rows @ self.direction
        leads = a >= keys.spread(keys.max(a)) - 1e-12 * (1 + np.abs(a).max())
        return keys.starts[:-1] + keys.argmax(np.where(leads, self.problem.scores, -np.inf))

    @property
    def selection(self) -> Index:
        return self.chosen - self.problem.keys.starts[:-1]

    @cached_property
    def others(self) -> Index:
        return np.delete(np.arange(len(self.problem.scores)), self.chosen)

    @property
    def ahead(self) -> Index:
        """(m,) row of the selected token that each of the others is behind."""
        return self.chosen[self.problem.keys.bag[self.others]]

    @cached_property
    def rows(self) -> Vector:
        """(m, d) k_selected - k_t of all other tokens."""
        return self.problem.keys.rows[self.ahead] - self.problem.keys.rows[self.others]

    @cached_property
    def gaps(self) -> Vector:
        """(m,) gamma_selected - gamma_t."""
        return self.problem.scores[self.ahead] - self.problem.scores[self.others]

    @cached_property
    def margins(self) -> Vector:
        return self.rows @ self.direction

    @property
    def margin(self) -> float:
        return float(self.margins.min())

    @cached_property
    def near(self) -> NDArray[np.bool_]:
        """(m,) the directional neighbours: tokens that attain the margin."""
        return self.margins <= self.margin + ON_THE_MARGIN * max(1.0, abs(self.margin))

    @property
    def step(self) -> float:
        """How much further the next tokens are behind; inf if all are neighbours."""
        return float(self.margins[~self.near].min(initial=math.inf)) - self.margin

    @property
    def least_gap(self) -> float:
        """The least |gap| of a neighbour that does not tie in score; of any token, if all neighbours tie."""
        gaps = np.abs(self.gaps)
        telling = self.near & (gaps > 0)
        return float(gaps[telling if telling.any() else gaps > 0].min())

    @property
    def reach(self) -> float:
        """The longest row: moving p by x changes no margin by more than x times this."""
        return float(np.linalg.norm(self.rows, axis=1).max())

    @property
    def log_everything(self) -> float:
        """log of what |E| cannot exceed beside exp(-(least margin) R): high (T - 1) (largest gap)."""
        tokens = int(self.problem.keys.sizes.max())
        return math.log(slopes(self.problem).largest * (tokens - 1) * float(np.abs(self.gaps).max()))

    @property
    def log_neighbour(self) -> float:
        """log of what one neighbour alone brings beside exp(-margin R): low (least gap) / (n T)."""
        keys = self.problem.keys
        return math.log(slopes(self.problem).least * self.least_gap / (len(keys) * int(keys.sizes.max())))

    def radius(self, rate: float) -> float:
        """From here on one neighbour outweighs four times everything that is smaller by exp(-rate R)."""
        return max(1.0, (math.log(4) + self.log_everything - self.log_neighbour) / rate)

    def change(self, p: Vector) -> Scaled:
        """E(p)."""
        return self.problem.read((p,)).excess(self.chosen)

    def rescored(self, sign: int) -> Problem:
        """The neighbours score more than what is selected (sign 1) or less (-1), by more than before."""
        scores, near = self.problem.scores.copy(), self.others[self.near]
        lead = scores[self.ahead[self.near]]
        scores[near] = lead + sign * (0.1 + np.abs(scores[near] - lead))
        return Problem.of(self.problem.keys, scores, self.problem.loss)


# --- Lemmas 8 and 9: two directions, one direction --------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TwoDirections:
    first: View  # along p
    second: View  # along q
    higher: bool = False  # whether the neighbour of q has a higher score than the selected token


def _pair(problem: Problem, p: Any, q: Any, higher: bool = False) -> TwoDirections:
    return TwoDirections(View(problem, np.array(p)), View(problem, np.array(q)), higher)


def _two_directions(rng: np.random.Generator) -> TwoDirections:
    problem = random_problem(rng, 2, 5)
    while True:
        p = unit(rng.normal(size=problem.keys.dim))
        pair = _pair(problem, p, unit(p + 0.3 * rng.normal(size=len(p))))
        first, second = sorted((pair.first, pair.second), key=lambda view: -view.margin)
        if np.array_equal(first.chosen, second.chosen) and first.margin - second.margin > 1e-2:
            break
    higher = bool(rng.integers(2))
    scored = View(first.rescored(-1), second.direction).rescored(1 if higher else -1)  # the second has the last word
    return _pair(scored, first.direction, second.direction, higher)


def _neighbours_decide(pair: TwoDirections) -> bool:
    first, second = (view.gaps[view.near] for view in (pair.first, pair.second))
    if pair.higher:
        return len(second) == 1 and bool(second[0] < 0)
    return bool((second > 0).all() and (first > 0).all())


_SAME_TOKENS = Hypothesis[TwoDirections](
    "both directions select the same tokens, each alone in the lead",
    lambda pair: (
        np.array_equal(pair.first.chosen, pair.second.chosen) and min(pair.first.margin, pair.second.margin) > 0
    ),
)
_SMALLER_MARGIN = Hypothesis[TwoDirections](
    "q has the smaller margin", lambda pair: pair.second.margin < pair.first.margin
)
_NEIGHBOURS = Hypothesis[TwoDirections](
    "all neighbours of both score less than the selected tokens, or q has one neighbour and that scores more",
    _neighbours_decide,
)


def _good_neighbours(rng: np.random.Generator) -> View:
    """A direction, perhaps a max-margin one with several neighbours, all of which score more than what it selects."""
    problem = random_problem(rng, 2, 5)
    view = View(problem, unit(rng.normal(size=problem.keys.dim)))
    if rng.integers(2):
        view = View(problem, unit(solve(MarginProblem.from_selection(problem.keys, view.selection)).p))
    return View(view.rescored(1), view.direction)


_ALL_HIGHER = Hypothesis[View](
    "all directional neighbours score more than the selected tokens",
    lambda view: bool((view.gaps[view.near] < 0).all()),
)
_ALONE = Hypothesis[View]("each selected token is alone in the lead", lambda view: view.margin > 0)


# --- Lemma 10: how many neighbours there can be ----------------------------------------------------------------------


def _tokens(rng: np.random.Generator) -> Local:
    """Keys and one selected token of each input, which some direction selects."""
    n, T, d = int(rng.integers(1, 4)), int(rng.integers(2, 5)), int(rng.integers(1, 4))
    n = max(n, -(-(d + 1) // (T - 1)))  # more other tokens than dimensions
    keys = Bags.of(rng.normal(size=(n, T, d)))
    return Local(Problem.of(keys, np.zeros(len(keys.rows))), keys.argmax(keys.rows @ rng.normal(size=d)))


_GENERAL = Hypothesis[Local](
    "the rows (selected - other token) are in general position",
    lambda tokens: in_general_position(tokens.problem.keys, tokens.selection),
)


@claim(
    "mm.lemma8",
    says="Of two directions that select the same tokens, the one with the larger margin has the lower loss far out "
    "if all neighbours score less; a direction whose one neighbour scores more has a lower loss than one with a "
    "larger margin.",
    source="Max-Margin Token Selection, Lemma 8",
    constant="the radius",
    hypotheses=(_SAME_TOKENS, _SMALLER_MARGIN, _NEIGHBOURS),
    tolerance=0.0,
    draw=_two_directions,
    seeds=60,
    known=(lambda: _pair(thin(-1e-30), [1.0, 0.0], [0.0, 1.0]),),
    counters=(
        Counter("p and q swapped", _SMALLER_MARGIN.says, lambda: _pair(one_input(PAIR, [1, 0]), [0.6, 0.8], [1, 0])),
        Counter(
            "the neighbour scores more",
            _NEIGHBOURS.says,
            lambda: _pair(one_input(PAIR, [0, 1]), [1.0, 0.0], [0.6, 0.8]),
        ),
        Counter(
            "p selects a worse token",
            _SAME_TOKENS.says,
            lambda: _pair(one_input([[2, 0], [-1, 1.5], [0, 0]], [1, 2, 0]), [1.0, 0.0], [0.0, 1.0]),
        ),
    ),
    notes="The radius from which on it holds is ours.",
)
def _lower_loss(pair: TwoDirections, by: float = 1.0) -> float:
    """E at R p against E at R q, relative to the larger: below 0 for the direction that should win."""
    first, second = pair.first, pair.second
    begin = second.radius(min(second.step, abs(first.margin - second.margin))) / by
    # relative to the same tokens
    along = (lambda R: first.change(R * first.direction), lambda R: first.change(R * second.direction))
    return lower(*(along[::-1] if pair.higher else along), begin)


@claim(
    "mm.lemma9",
    says="If all directional neighbours score more than the selected tokens, the loss along the direction comes to "
    "its limit from below, so in a cone around it the minimum is at a finite point.",
    source="Max-Margin Token Selection, Lemma 9",
    constant="the radius",
    hypotheses=(_ALONE, _ALL_HIGHER),
    tolerance=0.0,
    draw=_good_neighbours,
    seeds=60,
    known=(lambda: View(thin(1e-30), np.array([0.0, 1.0])),),
    counters=(
        Counter("the neighbour scores less", _ALL_HIGHER.says, lambda: View(one_input(PAIR, [1, 0]), known.LMM)),
    ),
    notes="The radius and the width of the cone are ours.",
)
def _finite_minimum(view: View, by: float = 1.0) -> float:
    """E(R p) < 0 from the radius on; and far out in the cone nothing is as low as at that radius."""
    begin = (view.radius(view.step) if math.isfinite(view.step) else 1.0) / by
    p, zero = view.direction, Scaled(np.zeros(()), 0.0)
    negative = lower(lambda R: view.change(R * p), lambda R: zero, begin)
    depth = view.change(begin * p)
    # at R u with |u - p| <= margin / (2 reach) all margins are at least x = R margin / 2, so |E| <= everything exp(-x)
    wide, half = view.margin / (2 * view.reach), view.margin / 2
    far = (view.log_everything - depth.log) / half
    rng = np.random.default_rng(0)
    ways = [p, *(p + wide * unit(row) for row in rng.normal(size=(20, len(p))))]
    ways += [p - wide * unit(row) for row in view.rows[view.near]]  # towards each neighbour, where the gain is largest
    points = (factor * max(far, begin) * way for way in ways for factor in (1.01, 2.0))
    return max(negative, *(compared(depth, view.change(point)) for point in points))


@claim(
    "mm.lemma10",
    says="For keys in general position no direction has more than d directional neighbours.",
    source="Max-Margin Token Selection, Lemma 10",
    hypotheses=(_GENERAL,),
    tolerance=1e-9,  # rounding of the margin, which is 1
    constant="d",
    draw=_tokens,
    seeds=60,
    counters=(
        Counter(
            "three tokens in a row",
            _GENERAL.says,
            lambda: Local(one_input([[0, 0], [-1, 1], [-1, 0], [-1, -1]], np.zeros(4)), np.array([0])),
        ),
    ),
)
def _most_neighbours(tokens: Local, by: float = 1.0) -> float:
    """The most neighbours of any direction, less d; and whether they are those that attain the margin.

    A direction with margin 1 and d or more neighbours solves a_t'q = 1 for d independent rows: all such are tried.
    """
    keys = tokens.problem.keys
    problem = MarginProblem.from_selection(keys, tokens.selection)
    A = problem.rows(np.arange(len(problem)))
    d = problem.dim
    some = np.array(list(itertools.combinations(range(len(A)), d)))
    some = some[np.abs(np.linalg.det(A[some])) > 1e-9]
    corners = np.linalg.solve(A[some], np.ones((len(some), d, 1)))[..., 0]
    inside = corners[(corners @ A.T >= 1 - 1e-9).all(axis=1)]
    excesses = []
    for q in inside:
        found = directional_neighbours(keys, tokens.problem.scores, q)
        count = int(found.neighbours.sum())
        excesses += [count - d / by, abs(count - int((A @ q <= 1 + 1e-6).sum())), abs(found.margin - 1)]
    return float(max(excesses))


# --- Theorem 4: around a direction that is no locally optimal one --------------------------------------------------


@dataclass(frozen=True, eq=False)
class ConeAround:
    """The cone {p : cos(p, q) >= 1 - eps} around a unit direction q."""

    problem: Problem
    q: Vector
    eps: float

    @cached_property
    def view(self) -> View:
        return View(self.problem, self.q)

    @property
    def locally_optimal(self) -> bool:
        """Whether q is the max-margin direction of what it selects and outscores its neighbours."""
        if not self.view.margin > 1e-9:
            return False
        found = local_optimum(self.problem.keys, self.problem.scores, self.view.selection)
        return found.holds and misalignment(found.direction, self.q) < 1e-12

    @cached_property
    def rival(self) -> View:
        """A direction of the cone where the loss is lower, relative to the same tokens.

        Where neighbours of q score more: one where only one of them is a neighbour. Else: a larger margin, towards the
        max-margin direction of the selected tokens.
        """
        view = self.view
        if self.better.any():
            first = np.flatnonzero(self.better)[0]
            wanted = np.where(np.arange(len(self.better)) == first, -1.0, 1.0)[view.near]
            way = np.asarray(np.linalg.lstsq(view.rows[view.near], wanted, rcond=None)[0], np.float64)
            turned = self.q if len(wanted) == 1 else self._turned(way, min(view.step, view.margin) / (4 * view.reach))
        else:
            found = solved(solve, MarginProblem.from_selection(self.problem.keys, view.selection))
            target = self.q if found is None else unit(found.p)
            turned = self._turned(target - self.q, math.acos(max(-1.0, min(1.0, float(target @ self.q)))))
        return View(self.problem, turned, view.chosen)

    @cached_property
    def better(self) -> NDArray[np.bool_]:
        """The neighbours of q that score more."""
        return self.view.near & (self.view.gaps < 0)

    def _turned(self, way: Vector, most: float) -> Vector:
        """q turned towards q + way by at most `most`, and by no more than half the cone; anywhere if way is 0."""
        if np.linalg.norm(way) < 1e-6:
            way, most = np.eye(len(self.q))[np.argmin(np.abs(self.q))], math.inf
        across = way - (way @ self.q) * self.q
        turn = min(math.acos(1 - self.eps) / 2, most)
        return math.cos(turn) * self.q + math.sin(turn) * unit(across)


def _low(cone: ConeAround, R: float, x: float) -> Scaled:
    """The least that E can be in the ball of radius x R / reach around R q."""
    view = cone.view
    if cone.better.any():
        return Scaled(np.array(-1.0), view.log_everything - (view.margin - x) * R)
    one, rest = view.log_neighbour - (view.margin + 2 * x) * R, view.log_everything - (view.margin + view.step - x) * R
    return Scaled.total(np.array([1.0, -1.0]), np.array([one, rest]))


def _nearby(cone: ConeAround, R: float, eta: float) -> list[Vector]:
    """Points of the ball |p - R q| <= eta R with |p| <= R: towards the rival, towards every token, and at random."""
    rng = np.random.default_rng(0)
    ways = [cone.rival.direction - cone.q, *(-cone.view.rows), *cone.view.rows, *rng.normal(size=(20, len(cone.q)))]
    around = [cone.q + 0.7 * eta * unit(way) for way in ways if way.any()]
    return [R * cone.q, R * (1 - eta) * cone.q, *(R * p / max(1.0, float(np.linalg.norm(p))) for p in around)]


def _cone_around(rng: np.random.Generator) -> ConeAround:
    """A random direction, the max-margin direction of a random selection, or one where two tokens tie for the lead."""
    problem = random_problem(rng, 2, 3)
    keys, d = problem.keys, problem.keys.dim
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


def _thin_cone() -> ConeAround:
    """Twenty degrees from the max-margin direction (3, 1), which the cone holds."""
    angle = math.atan2(1.0, 3.0) + math.radians(20)
    return ConeAround(thin(-1e-30), np.array([math.cos(angle), math.sin(angle)]), 0.5)


_NOT_OPTIMAL = Hypothesis[ConeAround](
    "q is no locally optimal max-margin direction", lambda cone: not cone.locally_optimal
)
_DISTINCT = Hypothesis[ConeAround](
    "the scores within each input are distinct",
    lambda cone: all(
        len(np.unique(cone.problem.scores[cone.problem.keys.bag == i])) == size
        for i, size in enumerate(cone.problem.keys.sizes)
    ),
)
_GENERAL_CONE = Hypothesis[ConeAround](
    "the keys are in general position", lambda cone: in_general_position(cone.problem.keys, cone.view.selection)
)


@claim(
    "mm.thm4",
    says="Around a direction that is no locally optimal max-margin direction, the best p of a cone within growing "
    "balls does not go that way: it stays bounded or takes another direction.",
    source="Max-Margin Token Selection, Theorem 4",
    constant="the radius",
    hypotheses=(_NOT_OPTIMAL, _DISTINCT, _GENERAL_CONE),
    tolerance=1e-9,  # with one input of two tokens the bound is attained
    draw=_cone_around,
    seeds=60,
    known=(_thin_cone,),
    counters=(
        Counter(
            "a locally optimal direction",
            _NOT_OPTIMAL.says,
            lambda: ConeAround(known.one_bag(0.0), known.LMM, 0.01),
        ),
        Counter(  # once with a higher and once with a much lower score: together they count as lower
            "a token that is there twice",
            _GENERAL_CONE.says,
            lambda: ConeAround(one_input([[1, 0], [0, 0], [0, 0]], [0, 1, -3]), known.LMM, 0.01),
        ),
        Counter(  # so the path turns to where the third token is furthest
            "a neighbour that ties in score",
            _DISTINCT.says,
            lambda: ConeAround(one_input([[1, 0], [0, 0], [-1, 0.3]], [0.9, 0.9, 0]), unit(np.array([2, -0.3])), 0.01),
        ),
    ),
    notes="By how much the path keeps away, and from which radius on, is ours.",
)
def keeps_away(cone: ConeAround, by: float = 1.0) -> float:
    """From the radius on, one point of the cone beats all p with |p - R q| <= eta R: the path keeps eta away from q.

    In that ball no margin differs from R times that of q by more than x R, x = eta reach.
    Where all neighbours of q score less: E >= neighbour exp(-(margin + 2 x) R) - everything exp(-(margin + step - x) R)
    there, which is more than at R times the rival, whose margin is larger.
    Where one scores more: E >= -everything exp(-(margin - x) R) there, which is more than at R/2 times the rival.
    """
    view, rival = cone.view, cone.rival
    if cone.better.any():
        share, x = 0.5, view.margin / 8
        begin = rival.radius(min(rival.step / 2, view.margin - x - rival.margin / 2))
    else:
        lead = abs(rival.margin - view.margin)
        share, x = 1.0, min(lead, view.step) / 4
        begin = view.radius(min(lead, view.step - x) - 2 * x)
    size = float(np.linalg.norm(rival.direction))
    worst = max(1 - cone.eps - float(rival.direction @ cone.q) / size, size - 1)  # it lies in the cone and in the ball
    for R in (far * begin / by for far in BEYOND):
        here, low = rival.change(share * R * rival.direction), _low(cone, R, x)
        found = [view.change(point) for point in _nearby(cone, R, x / view.reach)]
        worst = max(worst, compared(here, low), *(max(compared(here, e), compared(low, e)) for e in found))
    return worst
