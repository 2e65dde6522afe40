"""Regularisation paths with heads that need not be linear, and sets of optimal tokens."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.bags import Bags, Index, Vector
from ...core.heads import HeadProblem, Linear, Quadratic, Tanh
from ...core.heads import Limit as Exact
from ...core.margin_losses import Correlation, Exponential, Logistic, MarginLoss
from ...errors import InputError
from ...paths import Decomposition, Falls, SetPoint, decomposition, set_path
from ...paths import falls as falls_of
from ...svm import solve_set_valued
from ..claim import Claim, Counter, Hypothesis
from ..nearness import Limit
from .balls import FAR, NEAR, off_proof
from .common import solved

__all__ = ["CLAIMS"]

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
    return max(off, off_proof(problem, limit, path), *(_off_words(problem, known, at) for at in path))


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


_POSITIVE: Hypothesis[Decomposed] = Hypothesis("nu_i > 0", lambda one: bool((one.problem.nu > 0).all()))
_DECOMPOSED: Hypothesis[HeadProblem] = Hypothesis(
    "Assumption D, by Lemma 14 with the bounds of the head",
    lambda problem: bool((problem.nu > 0).all()) if falls_of(problem) is not None else None,
)
_SETS_CAN_WIN: Hypothesis[HeadProblem] = Hypothesis(
    "the optimal sets can be separated from the others",
    lambda problem: solved(solve_set_valued, problem.keys, problem.sets) is not None,
)
_BOUNDED: Hypothesis[Decomposed] = Hypothesis("-C q_max <= Z_i <= (1 - eps) nu_i q_i for all p, eps > 0", _bounded)


CLAIMS: tuple[Claim[Any], ...] = (
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
