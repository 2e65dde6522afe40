"""The regularisation path with the head fixed, linear or not: where the best p on growing balls goes.

How far a minimum on a ball can be from the max-margin direction is proved from its loss alone, whoever found it
(`docs/proofs.md`, mm.thm1). That is ours, the statement the paper's.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ....base.errors import InputError
from ....model.ragged import Bags, Index, Vector
from ...paths.balls import PathPoint, regularisation_path
from ...paths.sets import Decomposition, decomposition, set_path
from ...paths.sets import falls as falls_of
from ...problems.geometry import misalignment
from ...problems.heads import Linear, Quadratic, Tanh
from ...problems.logits import Keys
from ...problems.losses import Correlation, MarginLoss
from ...problems.problem import Problem
from ...problems.sets import HeadReading, Sets
from ...problems.sets import Limit as Exact
from ...svm.problem import MarginProblem
from ...svm.sets import solve_set_valued
from ...svm.solution import Solution
from ...svm.solver import solve, solved
from .. import instances as known
from ..claim import Counter, Hypothesis, claim
from .assumptions import CONVEX, LOSSES, can_win, falls, one_input, slopes

NEAR, FAR, PROVED = 10.0, 1e4, 1e8  # radii, in units of |p_mm|


def random_problem(rng: np.random.Generator, least: int, most: int) -> Problem:
    """Up to three inputs with up to four tokens, `least` dimensions to `most`; Gaussian keys and scores, any loss."""
    n, T, d = int(rng.integers(1, 4)), int(rng.integers(2, 5)), int(rng.integers(least, most + 1))
    keys = Bags.of(rng.normal(size=(n, T, d)))
    return Problem.of(keys, rng.normal(size=n * T), LOSSES[int(rng.integers(len(LOSSES)))])


def off_proof(problem: Problem, limit: Limit, path: Sequence[PathPoint]) -> float:
    """By how much the path leaves what is proved of every minimum; and what is not yet proved at the last radius.

    It is as near as proved, no higher than the ray of p_mm, no lower than any p can be; and log(L - L*) has rate 1.
    """
    size = limit.shortest.norm

    def log_gap(radius: float) -> float:
        """On the ray of p_mm."""
        return problem.gap(problem.read((radius * limit.shortest.p / size,))).log

    excesses = [limit.misalignment(at.p) - limit.proved_misalignment(at.radius, at.log_gap) for at in path]
    excesses += [1e-3 * (limit.log_floor(at.radius) - at.log_gap) for at in path]
    excesses += [1e-3 * (at.log_gap - log_gap(at.radius)) for at in path]
    end = PROVED * size
    rates = -limit.log_floor(end) / PROVED, -log_gap(end) / PROVED
    return max(*excesses, limit.proved_misalignment(end, log_gap(end)), *(abs(rate - 1) for rate in rates))


def _in_space(problem: Problem) -> Problem:
    """A problem of the plane, put into three dimensions: nothing changes, and no angles have to be scanned."""
    rows = np.column_stack([problem.keys.rows, np.zeros(len(problem.scores))])
    return Problem.of(problem.keys.with_rows(rows), problem.scores, problem.loss)


def _floor() -> Problem:
    """One input of two tokens and the loss -x: what is proved of L - L* is attained."""
    return one_input([[1, 0, 0], [0, 0, 0]], [1, 0], Correlation())


def _two_winners() -> Problem:
    """Tokens (-1, 0, 0) and (2, 0, 0) tie for the best: the path takes the second, whose margin is larger."""
    return one_input([[-1, 0, 0], [2, 0, 0], [0, 0, 0]], [1, 1, 0])


_FALLS = Hypothesis[Problem]("the loss falls strictly and its slope is Lipschitz", falls)
_STRICT = Hypothesis[Problem](
    "each input has one best token",
    lambda problem: bool(
        (problem.scores == problem.keys.spread(problem.keys.max(problem.scores))).sum() == len(problem.keys)
    ),
)
_CAN_WIN = Hypothesis[Problem]("the best tokens can be separated from the others", can_win)


@claim(
    "mm.thm1",
    says="With the head fixed, the best p in the ball of radius R turns to the max-margin direction of the best "
    "tokens as R grows, and log(L - L*) falls like -R / |p_mm|.",
    source="Max-Margin Token Selection, Theorem 1",
    hypotheses=(_FALLS, _STRICT, _CAN_WIN),
    tolerance=1e-5,  # what is not yet proved at 1e8 |p_mm|, and the rate there: log(R)/R
    constant="the least loss beside the attention off the best tokens: attained by one input of two tokens",
    draw=lambda rng: random_problem(rng, 6, 8),  # so that most can be separated
    seeds=25,
    known=(
        _floor,
        *(
            lambda make=make: _in_space(make())
            for make in (lambda: known.one_bag(0.9), lambda: known.one_bag(0.0), known.two_limits, known.three_bags)
        ),
    ),
    counters=(Counter("two tokens tie for the best", _STRICT.says, _two_winners),),
    notes="The rate of the loss is ours, and so is the proof that every minimum on the ball is as near as said.",
)
def _ball_path(problem: Problem, by: float = 1.0) -> float:
    limit = Limit.of(problem, by)
    path = regularisation_path(problem, [NEAR * limit.shortest.norm, FAR * limit.shortest.norm], starts=2)
    away = limit.misalignment(path[-1].p)
    return max(away, off_proof(problem, limit, path)) if limit.proves else away


@dataclass(frozen=True, eq=False)
class Decomposed:
    """A problem with optimal sets, and what is said of it: f_i = nu_i (1 - q_i) + Z_i with the constants C and eps."""

    problem: Problem
    said: Decomposition


def _bounded(one: Decomposed) -> bool:
    """Whether what is said is true, by bounds of the head that are proved."""
    known = falls_of(one.problem)
    assert known is not None
    rounding = 1e-9 * float(known.nu.max())
    return bool(
        np.array_equal(one.said.nu, one.problem.nu)
        and (known.least >= one.said.eps * known.nu - rounding).all()
        and (known.most - known.nu <= one.said.C + rounding).all()
    )


def _with_sets(rng: np.random.Generator, free: bool) -> Problem:
    """One or two optimal tokens an input, others below them; with `free` keys, any logits come from some p."""
    kind, loss = int(rng.integers(3)), CONVEX[int(rng.integers(3))]  # which `paths.decomposition` has bounds for
    for _ in range(1000):
        try:
            problem = _maybe_with_sets(rng, kind, loss, free)
        except InputError:  # a token outside is better, under this head, than those of the set
            continue
        if (problem.nu > 0).all() and falls_of(problem) is not None:
            return problem
    raise AssertionError("no problem with such a head has optimal sets")


def _maybe_with_sets(rng: np.random.Generator, kind: int, loss: MarginLoss, free: bool) -> Problem:
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
    return Problem.with_sets(labels, Bags.of(x), head, Bags.of(keys), [range(size) for size in sizes], loss)


def _rho(one: Decomposed, delta: float) -> float:
    """-(1 + 1/Delta) log(C+/C-), C+ = B (C + max nu), C- = A eps min nu / n, A and B the extreme |loss'| in reach."""
    nu, loss = one.problem.nu, one.problem.loss
    steep = -loss.slope(np.linspace(-one.said.C, float(nu.max()), 9))
    ratio = steep.max() * (one.said.C + nu.max()) / (steep.min() * one.said.eps * nu.min() / len(nu))
    return float(-(1 + 1 / delta) * np.log(ratio))


def _off_bounds(one: Decomposed, p: Vector) -> float:
    """By how much nu_i - f_i, or Z_i, leaves its bounds at p."""
    reading, known, nu = one.problem.read((p,)), falls_of(one.problem), one.problem.nu
    assert isinstance(reading, HeadReading)
    assert known is not None
    q = np.exp(reading.log_outside)
    lost = nu - reading.margins
    Z = reading.margins - nu * (1 - q)
    bounds = (known.least * q - lost, lost - known.most * q)
    return float(np.max([Z - (1 - one.said.eps) * nu * q, -one.said.C * q.max() - Z, *bounds]))


def _any_logits(rng: np.random.Generator) -> Decomposed:
    problem = _with_sets(rng, free=True)
    return Decomposed(problem, decomposition(problem))


def _p_with(problem: Problem, log_outside: Vector, tokens: Index, lead: Vector) -> Vector:
    """The p that puts q_i = exp(log_outside) on one token outside of each set and nothing to speak of on the others."""
    keys = problem.keys
    logits = np.where(problem.inside, lead, -2000.0)
    inside = np.log(keys.sum(np.where(problem.inside, np.exp(lead), 0.0)))
    logits[keys.starts[:-1] + tokens] = log_outside - np.log(-np.expm1(log_outside)) + inside
    return np.asarray(np.linalg.solve(keys.rows, logits), np.float64)


def _some_p(problem: Problem, outside: list[list[int]]) -> list[Vector]:
    """All attention outside on each token, a little of it, and random shares."""
    rng = np.random.default_rng(1)
    even = np.zeros(len(problem.keys.rows))
    turns = [np.array([others[k % len(others)] for others in outside]) for k in range(max(map(len, outside)))]
    some = [_p_with(problem, np.full(len(outside), x), turn, even) for turn in turns for x in (-1e-9, -1.0, -5.0)]
    return [*some, *rng.normal(size=(10, problem.keys.dim))]


def _first_best(values: Any, keys: Any) -> Problem:
    """Values of one number, which are what the head sees; the first token of each input is the set."""
    n, shaped = len(values), np.array(values)[..., None]
    return Problem.with_sets(np.ones(n), shaped, Linear(np.ones(1)), keys, [[0]] * n, Correlation())


def _nearly_tied() -> Decomposed:
    """A token outside of the set loses 1e-6 where eps = 1/2 is said."""
    problem = _first_best([[1.0, 1.0 - 1e-6], [1.0, 0.0]], np.eye(4).reshape(2, 2, 4))
    return Decomposed(problem, Decomposition(problem.nu, 0.0, 0.5))


def _both_attained() -> Decomposed:
    """Two inputs with a token that loses all of nu and one that loses 1e-6 of it: C+ and C- are both attained."""
    problem = _first_best([[1.0, 0.0, 1.0 - 1e-6]] * 2, np.eye(6).reshape(2, 3, 6))
    return Decomposed(problem, decomposition(problem))


def _two_solutions() -> Problem:
    """Keys 1 and -1 are optimal, 0 is not: the solutions are 1 and -1."""
    keys = [[[1.0], [-1.0], [0.0]]]
    return Problem.with_sets([1], [[[1.0], [1.0], [0.0]]], Tanh(np.ones(1)), keys)


def _set_too_small() -> Problem:
    """Keys -1 and 2 tie for the best, but only -1 is called optimal."""
    keys = Bags.of([[[-1.0, 0.0], [2.0, 0.0], [0.0, 0.0]]])
    values, inside = Bags.of([[[1.0], [1.0], [0.0]]]), np.array([True, False, False])
    return Problem(Keys(keys), Sets(np.ones(1), values, Linear(np.ones(1)), inside, Exact.EXACT))


_POSITIVE = Hypothesis[Decomposed]("nu_i > 0", lambda one: bool((one.problem.nu > 0).all()))
_DECOMPOSED = Hypothesis[Problem](
    "Assumption D, by Lemma 14 with the bounds of the head",
    lambda problem: bool((problem.nu > 0).all()) if falls_of(problem) is not None else None,
)
_SETS_CAN_WIN = Hypothesis[Problem](
    "the optimal sets can be separated from the others",
    lambda problem: solved(solve_set_valued, problem.keys, problem.sets) is not None,
)
_BOUNDED = Hypothesis[Decomposed]("-C q_max <= Z_i <= (1 - eps) nu_i q_i for all p, eps > 0", _bounded)


@claim(
    "mm.lemma14",
    says="If f_i = nu_i (1 - q_i) + Z_i, nu_i > 0 and -C q_max <= Z_i <= (1 - eps) nu_i q_i, then less attention "
    "outside of the optimal sets means less loss: log q_max(p) <= min((1 + Delta) log q_max(p'), rho(Delta)) "
    "implies L(p) < L(p'), with rho = -(1 + 1/Delta) log(C+/C-).",
    source="Max-Margin Token Selection, Lemma 14",
    hypotheses=(_POSITIVE, _BOUNDED),
    tolerance=1e-9,  # rounding of logarithms
    constant="rho",
    draw=_any_logits,
    seeds=25,
    known=(_both_attained,),
    counters=(Counter("a token outside scores nearly as much", _BOUNDED.says, _nearly_tied),),
    notes="The excess is log(L(p) - L*) - log(L(p') - L*). The paper has twice this rho, which is attained.",
)
def _pairs_compared(one: Decomposed, by: float = 1.0) -> float:
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
        worst = max(worst, abs(one.said.rho(delta, problem.loss) / (2 * _rho(one, delta)) - 1) - 1e-9)  # the paper's
        rho = _rho(one, delta) / by
        theirs = part * rho / (1 + delta)
        ours = min((1 + delta) * theirs, rho) * (1 + 1e-12)
        heaviest = [others[int(np.argmax(gaps))] for others, gaps in zip(outside, alone(ours), strict=True)]
        lightest = min(map(min, alone(theirs)))
        worst = max(worst, log_gap(np.full(len(keys), ours), heaviest) - lightest)
    return worst


@claim(
    "mm.thm8",
    says="With a head that need not be linear and sets of optimal tokens, the best p in the ball of radius R, "
    "divided by R / |p_mm|, comes near the solutions of the problem in which one token of each set stands 1 above "
    "all tokens outside.",
    source="Max-Margin Token Selection, Theorem 8",
    hypotheses=(_SETS_CAN_WIN, _DECOMPOSED),
    tolerance=1e-5,  # what is not yet proved at 1e8 |p_mm|: it falls like log(R)/R
    constant="the least loss beside the attention off the sets: attained by one input of two tokens",
    draw=lambda rng: _with_sets(rng, free=False),
    seeds=22,
    known=(_two_solutions, lambda: _first_best([[1.0, 0.0]], _floor().keys)),
    counters=(Counter("a set that leaves out a best token", _DECOMPOSED.says, _set_too_small),),
    notes="How near every minimum on the ball is, is ours.",
)
def _set_path(problem: Problem, by: float = 1.0) -> float:
    """Distance of p |p_mm| / R to the solutions far out, beside |p_mm| and beyond what is proved: sqrt(2 (1 - cos))."""
    known = falls_of(problem)
    least = -math.inf if known is None else decomposition(problem).log_constants(problem.loss)[0]
    limit = Limit(problem.keys, problem.sets, least + math.log(by))
    size = limit.shortest.norm
    far = FAR if limit.proves else 10 * NEAR  # beside a best token that is outside of its set, others underflow soon
    path = set_path(problem, [NEAR * size, far * size], starts=1)
    last = path[-1]
    off = min(float(np.linalg.norm(last.p / last.radius - p / size)) for p in limit.targets)
    if known is None:
        return off
    return max(
        off - math.sqrt(2 * max(0.0, limit.proved_misalignment(last.radius, last.log_gap))),
        off_proof(problem, limit, path),
    )


def least_margin(log_outside: float, winners: int) -> float:
    """m >= log((1/q - 1)/|O|) where the attention outside of |O| winners is q; -inf for q >= 1.

    >>> round(least_margin(math.log(1 / 4), 1), 12) == round(math.log(3), 12)
    True
    """
    if log_outside >= 0:
        return -math.inf
    return -log_outside + math.log(-math.expm1(log_outside)) - math.log(winners)


@dataclass(frozen=True, eq=False)
class Limit:
    """Where the minima of L on balls go, when L - L* >= exp(log_least) q_max."""

    keys: Bags
    sets: Sequence[Sequence[int]]
    log_least: float

    @classmethod
    def of(cls, problem: Problem, by: float = 1.0) -> Limit:
        """Of one best token a bag, the first of those that tie: then nothing is proved. `by`: times that constant."""
        keys, scores = problem.keys, problem.scores
        best = keys.argmax(scores)
        gaps = keys.spread(scores[keys.chosen(best)]) - scores
        gaps[keys.chosen(best)] = math.inf
        least = by * slopes(problem).least * float(gaps.min()) / len(keys)
        return cls(keys, [[int(t)] for t in best], math.log(least) if least > 0 else -math.inf)

    @cached_property
    def solutions(self) -> list[Solution]:
        """The max-margin solution of every choice of winners that has one, shortest first."""
        found = (solved(solve, self._rows(winners)) for winners in itertools.product(*self.sets))
        return sorted((one for one in found if one is not None), key=lambda one: one.norm)

    def _rows(self, winners: Sequence[int]) -> MarginProblem:
        """Winners 1 above the tokens outside their sets."""
        keys = self.keys
        parts = [keys[i][w] - np.delete(keys[i], list(self.sets[i]), axis=0) for i, w in enumerate(winners)]
        return MarginProblem.from_rows(np.concatenate(parts))

    @property
    def shortest(self) -> Solution:
        return self.solutions[0]

    @property
    def proves(self) -> bool:
        """Whether the loss says anything of the attention outside the sets."""
        return self.log_least > -math.inf

    def misalignment(self, p: Vector) -> float:
        """1 - cos to the nearest shortest solution."""
        return min(misalignment(p, target) for target in self.targets)

    @property
    def most_winners(self) -> int:
        return max(map(len, self.sets))

    def proved_margin(self, log_gap: float) -> float:
        """The margin of every p with log(L - L*) at most this."""
        return least_margin(log_gap - self.log_least, self.most_winners)

    def proved_misalignment(self, radius: float, log_gap: float) -> float:
        """1 - cos to the nearest shortest solution, of every p in the ball with log(L - L*) at most this; 2 if open."""
        margin = self.proved_margin(log_gap)
        if margin <= 0:
            return 2.0
        longest = radius / margin
        possible = [one for one in self.solutions if one.norm <= longest * (1 + 1e-12)]
        if any(one.norm > self.shortest.norm * (1 + 1e-9) for one in possible):
            return 2.0  # another choice of winners could still be the one
        return 1 - margin * self.shortest.norm / radius

    def log_floor(self, radius: float) -> float:
        """No p in the ball has a smaller log(L - L*): its margin is at most R / |p_mm|."""
        return self.log_least - float(np.logaddexp(0.0, math.log(self.most_winners) + radius / self.shortest.norm))

    @property
    def targets(self) -> list[Vector]:
        """The shortest solutions, several where norms tie."""
        return [one.p for one in self.solutions if one.norm <= self.shortest.norm * (1 + 1e-9)]
