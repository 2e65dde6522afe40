"""Regularisation paths under any head, towards sets of optimal tokens, and the bounds that prove where they go.

q_i is the attention of bag i outside its set and nu_i = f_i at q_i = 0. Where for every attention

least_i q_i <= nu_i - f_i <= most_i q_i        (`Falls`)

the loss is squeezed, C_minus q_max <= L - L* <= C_plus q_max, so L is small where q_max is, and only there. The same in
the form of the published lemma, for nu_i > 0: f_i = nu_i (1 - q_i) + Z_i with bounds on Z_i (`Decomposition`).

min L over |p| <= R as R grows, with f_i = Y_i psi(X_i's_i) and optimal sets O_i. The prediction: p/(margin R) comes to
the solutions of the set-valued max-margin problem, in which one token of each O_i stands 1 above all tokens outside;
there may be several, since that problem is not convex.

What is proved, where the head has bounds (`falls`), C_minus q_max <= L - L*:
- No p of the ball has a lower log(L - L*) than `lower`: its margin is at most R margin, so some bag keeps q_i >=
  1/(1 + |O_i| exp(R margin)).
- A global minimiser has L - L* at most that of the point found, hence a small q_max, hence a margin m of its own; so
  p/m satisfies the rows of some choice of winners, and 1 - cos to that choice's solution is at most 1 - m/(R margin).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...base.checks import array_of, check_number
from ...base.errors import refusal
from ...base.threads import one_blas_thread
from ...model.ragged import Vector
from ..problems.losses import MarginLoss, check_loss
from ..problems.problem import Problem, check_rule
from ..problems.reading import Blocks
from ..problems.sets import Limit, Sets
from ..svm.sets import SetSolution, solve_set_valued
from ..svm.solution import Solution
from ..svm.solver import solved
from .balls import PathPoint, Proof, check_path, draw
from .minima import BelowLimit, minima

ROUNDING = 1e-12  # taken off every bound


@dataclass(frozen=True, eq=False)
class Falls:
    """least_i q_i <= nu_i - f_i <= most_i q_i for every attention; only bags with a token outside their set.

    >>> from keytokens.lab.problems.heads import Tanh
    >>> found = falls(Problem.with_sets([1], [[[1.0], [0.0]]], Tanh(np.ones(1)), [[[1.0], [0.0]]]))
    >>> found.nu.round(6).tolist()
    [0.761594]
    """

    bags: int  # n, all of them
    nu: Vector
    least: Vector
    most: Vector

    def log_constants(self, loss: MarginLoss) -> tuple[float, float]:
        """log C_minus and log C_plus of C_minus q_max <= L - L* <= C_plus q_max.

        For a convex loss |loss'(nu)| d <= loss(nu - d) - loss(nu) <= |loss'(nu - d)| d.
        """
        low = loss.log_abs_slope(self.nu) + np.log(self.least)
        high = loss.log_abs_slope(self.nu - self.most) + np.log(self.most)
        return float(low.min()) - math.log(self.bags), float(np.logaddexp.reduce(high)) - math.log(self.bags)


@dataclass(frozen=True, eq=False)
class Decomposition:
    """f_i = nu_i (1 - q_i) + Z_i with nu_i > 0 and -C q_max <= Z_i <= (1 - eps) nu_i q_i.

    >>> from keytokens.lab.problems.losses import Correlation
    >>> round(Decomposition(np.array([1.0, 2.0]), C=0.0, eps=0.5).rho(1.0, Correlation()), 6)  # -4 log(2 / (0.5 / 2))
    -8.317766
    """

    nu: Vector
    C: float
    eps: float

    def __post_init__(self) -> None:
        nu = array_of("Decomposition", "nu", self.nu, (-1,))
        if not len(nu) or (nu <= 0).any():
            raise refusal("Decomposition", "nu", "be numbers above 0, one a bag", self.nu)
        check_number("Decomposition", "C", self.C, 0.0)
        check_number("Decomposition", "eps", self.eps, 0.0, above=True)
        object.__setattr__(self, "nu", nu)

    def log_constants(self, loss: MarginLoss) -> tuple[float, float]:
        """log C_minus and log C_plus of C_minus q_max <= L - L* <= C_plus q_max, for a convex loss.

        C_plus = B (C + max nu), C_minus = A eps min nu / n, A and B the least and the largest |loss'| on [-C, max nu],
        where every f_i lies.
        """
        log_A, log_B = loss.log_abs_slope(np.array([self.nu.max(), -self.C])).tolist()
        low = log_A + math.log(self.eps * float(self.nu.min()) / len(self.nu))
        return low, log_B + math.log(self.C + float(self.nu.max()))

    def rho(self, delta: float, loss: MarginLoss) -> float:
        """rho < 0 such that log q_max(p) <= min((1 + delta) log q_max(p'), rho) implies L(p) < L(p').

        rho = -2 (1 + 1/delta) log(C_plus / C_minus).
        """
        check_number("Decomposition.rho", "delta", delta, 0.0, above=True)
        check_loss("Decomposition.rho", loss)
        low, high = self.log_constants(loss)
        return -2 * (1 + 1 / delta) * max(high - low, 1e-300)  # below 0 also where both constants are one


def falls(problem: Problem) -> Falls | None:
    """The bounds that the head knows; None where it knows none, or where the limit itself is not proved.

    >>> from keytokens.lab.problems.heads import Tanh
    >>> found = falls(Problem.with_sets([1], [[[1.0], [1.0], [0.0]]], Tanh(np.ones(1)), [[[1.0], [-1.0], [0.0]]]))
    >>> bool((found.least <= found.most).all())
    True
    """
    check_rule("falls", problem, Sets, "Problem.with_sets")
    if problem.limit is not Limit.EXACT:
        return None
    found, nu = [], []
    for i, (y, value) in enumerate(zip(problem.labels, problem.nu, strict=True)):
        begin, end = problem.values.starts[i : i + 2]
        others = problem.values.rows[begin:end][~problem.inside[begin:end]]
        if not len(others):
            continue
        bounds = problem.head.fall(float(y), problem.values.rows[problem.firsts[i]], others)
        if bounds is None or bounds[0] <= 0:
            return None
        found.append(bounds)
        nu.append(value)
    least, most = np.array(found).T
    return Falls(len(problem.labels), np.array(nu), least * (1 - ROUNDING), most * (1 + ROUNDING))


def decomposition(problem: Problem) -> Decomposition:
    """The lemma's constants, established from the head's bounds: Z_i = nu_i q_i - (nu_i - f_i).

    So (nu_i - most_i) q_i <= Z_i <= (nu_i - least_i) q_i: eps = min least_i / nu_i, C = max(most_i - nu_i, 0). Of a
    linear head whose sets tie at the top these are the lowest score, its sign turned, and 1 - (second best)/(best).

    >>> from keytokens.lab.problems.heads import Tanh
    >>> values, keys = [[[1.0], [1.0], [0.0]]], [[[1.0], [-1.0], [0.0]]]
    >>> found = decomposition(Problem.with_sets([1], values, Tanh(np.ones(1)), keys))
    >>> found.nu.round(6).tolist(), bool(found.eps > 0)
    ([0.761594], True)
    """
    check_rule("decomposition", problem, Sets, "Problem.with_sets")
    known = falls(problem)
    if known is None:
        seen = f"head {problem.head.name!r}, limit {problem.limit.name}"
        raise refusal("decomposition", "problem", "have a head with bounds, and equal tokens in each set", seen)
    if not (problem.nu > 0).all():
        rule = "have f_i > 0 with all attention on the sets, as the lemma presumes"
        raise refusal("decomposition", "problem", rule, problem.nu.tolist(), "use `falls`, which needs no sign")
    eps = float((known.least / known.nu).min())
    return Decomposition(problem.nu, max(float((known.most - known.nu).max()), 0.0), eps)


@dataclass(frozen=True, eq=False)
class SetPoint(PathPoint):
    """The best p found within one ball, beside the set-valued max-margin solutions.

    >>> from keytokens.lab.problems.heads import Tanh
    >>> (point,) = set_path(Problem.with_sets([1], [[[1.0], [0.0]]], Tanh(np.ones(1)), [[[1.0], [0.0]]]), [10.0])
    >>> point.p.tolist(), point.nearest.p.tolist(), point.distance
    ([10.0], [1.0], 0.0)
    """

    nearest: Solution | None  # None where no direction separates the sets
    lower: float  # no p of the ball has a lower log(L - L*); -inf where that is not proved
    turn: float | None  # 1 - cos of any global minimiser to a solution is at most this; None where that is not proved

    @property
    def distance(self) -> float:
        """|p/(margin R) - nearest solution|, which tends to 0; nan where there is none."""
        if self.nearest is None:
            return math.nan
        return float(np.linalg.norm(self.p * self.nearest.norm / self.radius - self.nearest.p))

    @property
    def one_minus_cos(self) -> float:
        return math.nan if self.nearest is None else self.nearest.distance(self.p)


@one_blas_thread()
def set_path(problem: Problem, radii: Sequence[float], starts: int = 12, seed: int = 0) -> list[SetPoint]:
    """The best p within each ball, from random starts, the max-margin solutions and the ball before.

    >>> from keytokens.lab.problems.heads import Tanh
    >>> values, keys = [[[1.0], [1.0], [0.0]]], [[[1.0], [-1.0], [0.0]]]
    >>> path = set_path(Problem.with_sets([1], values, Tanh(np.ones(1)), keys), [1.0, 10.0])
    >>> [(point.radius, point.distance) for point in path]
    [(1.0, 0.0), (10.0, 0.0)]
    """
    radii = check_path("set_path", problem, Sets, "Problem.with_sets", radii, starts, seed)
    target = solved(solve_set_valued, problem.keys, problem.sets)
    bounds = falls(problem)
    hints: list[Blocks] = [(one.p,) for one in target.solutions] if target else []
    if not hints and not starts:
        raise refusal("set_path", "starts", "be at least 1 where no direction separates the sets", starts)
    balls = [(radius,) for radius in radii]
    try:
        found = [PathPoint.of(one, Proof.STARTS) for one in minima(problem, balls, draw(problem, starts, seed), hints)]
    except BelowLimit as below:
        (blocks,) = below.args
        gap = problem.gap(problem.read(blocks))
        seen = f"log(L* - L) = {gap.log:.6g} at p = {blocks[0].round(6).tolist()}"
        rule = "have optimal sets: no attention may be better than all of it on the sets"
        raise refusal("set_path", "problem", rule, seen, "give other sets") from None
    return [_point(problem, one, target, bounds) for one in found]


def _point(problem: Problem, found: PathPoint, target: SetSolution | None, bounds: Falls | None) -> SetPoint:
    nearest = min(target.solutions, key=lambda one: one.distance(found.p)) if target else None
    lower, turn, proof = -math.inf, None, Proof.STARTS
    if bounds is not None:
        proof = Proof.BOUNDED
        log_least, _ = bounds.log_constants(problem.loss)
        log_widest = math.log(max(len(tokens) for tokens in problem.sets))
        far = found.radius * target.margin if target else 0.0
        lower = log_least - float(np.logaddexp(0.0, log_widest + far))
        turn = _turn(problem, found.radius, target, found.log_gap - log_least, log_widest) if target else None
    return SetPoint(**{**vars(found), "proof": proof}, nearest=nearest, lower=lower, turn=turn)


def _turn(problem: Problem, radius: float, target: SetSolution, log_q: float, log_widest: float) -> float | None:
    """From q_max <= exp(log_q) at a global minimiser: e^-m / |O_i| <= q_i / (1 - q_i) for its margin m."""
    if log_q >= 0:
        return None
    margin = -log_q + math.log1p(-math.exp(log_q)) - log_widest
    if margin <= 0:
        return None
    room = radius * target.margin / margin  # the minimiser over its margin is at most this much longer than the target
    near = solve_set_valued(problem.keys, problem.sets, within=max(room - 1, 0.0)).solutions
    return max(1 - 1 / room, 0.0) if len(near) == len(target.solutions) else None  # else another choice may be near
