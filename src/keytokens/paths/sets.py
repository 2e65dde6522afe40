"""Regularisation paths under any head, towards sets of optimal tokens.

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

from ..core.heads import HeadProblem, Limit
from ..core.selection_loss import Blocks
from ..errors import NotSeparable, refusal
from ..parallel import one_blas_thread
from ..svm import MarginSolution, SetSolution, solve_set_valued
from .ball import BelowLimit, check_path, lowest
from .decomposition import Falls, falls
from .regularisation import PathPoint, Proof, point_of

__all__ = ["SetPath", "SetPoint", "set_path"]


@dataclass(frozen=True, eq=False)
class SetPoint(PathPoint):
    """The best p found within one ball, beside the set-valued max-margin solutions.

    >>> from keytokens.core.heads import HeadProblem, Tanh
    >>> path = set_path(HeadProblem.of([1], [[[1.0], [0.0]]], Tanh(np.ones(1)), [[[1.0], [0.0]]]), [10.0])
    >>> path.points[0].distance
    0.0
    """

    nearest: MarginSolution | None  # None where no direction separates the sets
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


@dataclass(frozen=True, eq=False)
class SetPath:
    """The points, what they should tend to, and what is known of both.

    >>> from keytokens.core.heads import HeadProblem, Tanh
    >>> path = set_path(HeadProblem.of([1], [[[1.0], [0.0]]], Tanh(np.ones(1)), [[[1.0], [0.0]]]), [1.0, 10.0])
    >>> [point.radius for point in path.points], path.target.p.tolist()
    ([1.0, 10.0], [1.0])
    """

    points: tuple[SetPoint, ...]
    target: SetSolution | None  # None where no direction separates the sets: nothing is predicted
    limit: Limit  # whether L* is one number
    bounds: Falls | None


@one_blas_thread()
def set_path(problem: HeadProblem, radii: Sequence[float], starts: int = 12, seed: int = 0) -> SetPath:
    """The best p within each ball, from random starts, the max-margin solutions and the ball before.

    >>> from keytokens.core.heads import HeadProblem, Tanh
    >>> values, keys = [[[1.0], [1.0], [0.0]]], [[[1.0], [-1.0], [0.0]]]
    >>> path = set_path(HeadProblem.of([1], values, Tanh(np.ones(1)), keys), [10.0])
    >>> sorted(solution.p.item() for solution in path.target.solutions), path.points[0].distance
    ([-1.0, 1.0], 0.0)
    """
    radii = check_path("set_path", problem, HeadProblem, radii, starts, seed)
    target = _target(problem)
    bounds = falls(problem)
    begin: list[Blocks] = [(one.p,) for one in target.solutions] if target else []
    begin += [(p,) for p in np.random.default_rng(seed).normal(size=(starts, problem.keys.dim))]
    if not begin:
        raise refusal("set_path", "starts", "be at least 1 where no direction separates the sets", starts)
    points: list[SetPoint] = []
    for radius in radii:
        before = [points[-1].blocks] if points else []
        try:
            found = point_of(problem, (radius,), lowest(problem, (radius,), [*before, *begin])[1], Proof.STARTS)
        except BelowLimit as below:
            gap = problem.gap(problem.read(below.blocks))
            seen = f"log(L* - L) = {gap.log:.6g} at p = {below.blocks[0].round(6).tolist()}"
            rule = "have optimal sets: no attention may be better than all of it on the sets"
            raise refusal("set_path", "problem", rule, seen, "give other sets") from None
        points.append(_point(problem, found, target, bounds))
    return SetPath(tuple(points), target, problem.limit, bounds)


def _target(problem: HeadProblem) -> SetSolution | None:
    try:
        return solve_set_valued(problem.keys, problem.sets)
    except NotSeparable:
        return None


def _point(problem: HeadProblem, found: PathPoint, target: SetSolution | None, bounds: Falls | None) -> SetPoint:
    nearest = min(target.solutions, key=lambda one: one.distance(found.p)) if target else None
    lower, turn, proof = -math.inf, None, Proof.STARTS
    if bounds is not None:
        proof = Proof.BOUNDED
        log_least, _ = bounds.log_constants(problem.loss)
        log_widest = math.log(max(len(tokens) for tokens in problem.sets))
        far = found.radius * target.margin if target else 0.0
        lower = log_least - float(np.logaddexp(0.0, log_widest + far))
        turn = _turn(problem, found.radius, target, found.log_gap - log_least, log_widest) if target else None
    return SetPoint(
        found.radius, found.blocks, found.log_gap, found.inside, proof, found.residual, nearest, lower, turn
    )


def _turn(problem: HeadProblem, radius: float, target: SetSolution, log_q: float, log_widest: float) -> float | None:
    """From q_max <= exp(log_q) at a global minimiser: e^-m / |O_i| <= q_i / (1 - q_i) for its margin m."""
    if log_q >= 0:
        return None
    margin = -log_q + math.log1p(-math.exp(log_q)) - log_widest
    if margin <= 0:
        return None
    room = radius * target.margin / margin  # the minimiser over its margin is at most this much longer than the target
    near = solve_set_valued(problem.keys, problem.sets, within=max(room - 1, 0.0)).solutions
    return max(1 - 1 / room, 0.0) if len(near) == len(target.solutions) else None  # else another choice may be near
