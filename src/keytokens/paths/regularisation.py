"""min L over |p| <= R as R grows, and over |v| <= r, |p| <= R jointly.

The minimum on a ball is global, and L is not convex in p: how far "the minimum" is proved is part of the answer.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from ..core.bags import Vector
from ..core.selection_loss import Blocks, JointProblem, SelectionProblem, scores_of
from ..errors import NotSeparable, refusal
from ..parallel import one_blas_thread
from ..svm import MarginProblem, solve
from ..validate import floats
from .ball import STATIONARY, BallProblem, check_path, log_gap, lowest, on_spheres, settled, shorter

__all__ = ["PathPoint", "Proof", "joint_path", "point_of", "regularisation_path"]


SCAN_TOLERANCE = 1e-4  # in log(L - L*)
MOST_INTERVALS = 50_000


class Proof(Enum):
    """What is known of a point being the global minimum on its ball, in a sentence.

    >>> [proof.name for proof in Proof]
    ['CLOSED', 'SCAN', 'BOUNDED', 'STARTS']
    """

    CLOSED = "proved: with one input of two tokens the loss falls along their difference"
    SCAN = "proved on the sphere: a certified scan of all angles finds no lower log(L - L*), to 1e-4"
    BOUNDED = "bounded: no p in the ball has a log(L - L*) below `lower`, by the head's bounds"
    STARTS = "not proved: the best of many starts and of the continuation from smaller balls"


@dataclass(frozen=True, eq=False)
class PathPoint:
    """The best parameters found within one ball.

    >>> from keytokens.core.bags import Bags
    >>> problem = SelectionProblem(Bags.of([[[1.0], [0.0]]]), np.array([1.0, 0.0]))
    >>> (point,) = regularisation_path(problem, [5.0])
    >>> point.p.round(9).tolist(), point.proof.name, point.converged
    ([5.0], 'CLOSED', True)
    """

    radius: float
    blocks: Blocks  # (p,) or (v, p)
    log_gap: float  # log(L - L*)
    inside: bool  # the minimum lies inside the ball, not on its sphere
    proof: Proof
    residual: float  # the part of the descent that could still be followed within the ball, 0 at a minimum

    @property
    def converged(self) -> bool:
        """Whether the residual is at most 1e-8: where not, the point is no minimum, only the best that was found."""
        return self.residual <= STATIONARY

    @property
    def p(self) -> Vector:
        return self.blocks[-1]

    @property
    def direction(self) -> Vector:
        return self.p / np.linalg.norm(self.p)


@one_blas_thread()  # many small products, that threads would only slow down
def regularisation_path(
    problem: SelectionProblem, radii: Sequence[float], starts: int = 12, seed: int = 0
) -> list[PathPoint]:
    """The best p within each ball, for keys and scores that are fixed; the radii must increase.

    >>> from keytokens.core.bags import Bags
    >>> problem = SelectionProblem(Bags.of([[[-0.1, 1.0], [1.0, 0.0], [0.0, 0.0]]]), np.array([1.0, 0.9, 0.9]))
    >>> path = regularisation_path(problem, [1.0, 100.0])
    >>> [bool(abs(np.linalg.norm(point.p) - point.radius) < 1e-6) for point in path]
    [True, True]
    """
    radii = check_path("regularisation_path", problem, SelectionProblem, radii, starts, seed)
    rng = np.random.default_rng(seed)
    begin = _margin_directions(problem) + [(rng.normal(size=problem.keys.dim),) for _ in range(starts)]
    if not begin:
        rule = "be at least 1 where no direction separates the best tokens"
        raise refusal("regularisation_path", "starts", rule, starts)
    path: list[PathPoint] = []
    for radius in radii:
        before = [path[-1].blocks] if path else []
        path.append(_best_on_ball(problem, radius, [*before, *begin]))
    return path


def _best_on_ball(problem: SelectionProblem, radius: float, starts: list[Blocks]) -> PathPoint:
    keys = problem.keys
    if len(keys) == 1 and keys.sizes[0] == 2:
        best, other = problem.scores.argmax(), problem.scores.argmin()
        away = keys.rows[best] - keys.rows[other]
        if np.linalg.norm(away) > 0 and best != other:
            p = radius * away / np.linalg.norm(away)
            return point_of(problem, (radius,), (p,), Proof.CLOSED)
    found = lowest(problem, (radius,), starts)
    scanned = _scan(problem, radius, found[1][0]) if keys.dim == 2 else None
    if scanned is None:
        return point_of(problem, (radius,), found[1], Proof.STARTS)
    found = min([found, on_spheres(problem, (radius,), (scanned,))], key=lambda one: one[0])
    return point_of(problem, (radius,), found[1], Proof.SCAN)


def point_of(problem: BallProblem, radii: tuple[float, ...], found: Blocks, proof: Proof) -> PathPoint:
    """The stationary point near one that was found."""
    value, blocks, residual = settled(problem, radii, found)
    inside = any(shorter(block, r) for block, r in zip(blocks, radii, strict=True))
    proof = Proof.STARTS if inside and proof is Proof.SCAN else proof  # which knows the sphere only
    return PathPoint(radii[-1], blocks, value, inside, proof, residual)


@one_blas_thread()
def joint_path(
    problem: JointProblem, radii: Sequence[float], ratio: float, starts: int = 12, seed: int = 0
) -> list[PathPoint]:
    """The best (v, p) with |p| <= R and |v| <= ratio R. The limit of p's direction depends on the ratio: say which.

    >>> from keytokens.core.bags import Bags
    >>> X = Bags.of([[[1.0, 0.0], [0.0, 1.0]], [[-1.0, 0.0], [0.0, 1.0]]])
    >>> (point,) = joint_path(JointProblem([1, -1], X, X), [20.0], ratio=1.0, starts=2)
    >>> v, p = point.blocks
    >>> round(float(np.linalg.norm(p)), 6), point.proof.name
    (20.0, 'STARTS')
    """
    radii = check_path("joint_path", problem, JointProblem, radii, starts, seed)
    given = floats(ratio)
    if given is None or given.shape or not 0 < given < np.inf:
        raise refusal("joint_path", "ratio", "be a number above 0", ratio)
    if not starts:
        raise refusal("joint_path", "starts", "be at least 1", starts)
    rng = np.random.default_rng(seed)
    sizes = (problem.values.dim, problem.keys.dim)
    begin: list[Blocks] = [tuple(rng.normal(size=size) for size in sizes) for _ in range(starts)]
    path: list[PathPoint] = []
    for radius in radii:
        before = [path[-1].blocks] if path else []
        balls = (ratio * radius, radius)
        path.append(point_of(problem, balls, _turned(problem, balls, [*before, *begin]), Proof.STARTS))
    return path


def _turned(problem: JointProblem, balls: tuple[float, float], starts: list[Blocks]) -> Blocks:
    """Both together, then p for that head by itself: beside what v does to log L, what p does is lost in rounding."""
    _, (v, p) = lowest(problem, balls, starts)
    alone = SelectionProblem(problem.keys, scores_of(problem.labels, problem.values, v), problem.loss)
    begin = [(p,), *_margin_directions(alone), *((start[1],) for start in starts)]
    return v, *lowest(alone, balls[1:], begin)[1]


def _margin_directions(problem: SelectionProblem) -> list[Blocks]:
    """The max-margin direction of the best tokens, if they can be separated: where the path should end."""
    best = problem.keys.argmax(problem.scores)
    try:
        p = solve(MarginProblem.from_selection(problem.keys, best)).p
    except NotSeparable:
        return []
    return [(p,)] if np.linalg.norm(p) > 0 else []


def _scan(problem: SelectionProblem, radius: float, start: Vector) -> Vector | None:
    """The lowest point on a circle, proved to SCAN_TOLERANCE by branch and bound; None if it takes too long.

    With delta_i = gamma_best - s'gamma = sum_t s_t (gamma_best - gamma_t), all terms positive, |d log s_t / d theta| is
    at most R D, D the largest distance of two keys of a bag. So |d log delta_i| <= R D, and log(loss(gamma_best -
    delta) - loss(gamma_best)) changes by at most E times that, E = max |loss'(gamma_worst)| / |loss'(gamma_best)| (a
    convex loss). Hence log(L - L*) is Lipschitz in the angle with constant R D E.
    """
    keys, scores = problem.keys, problem.scores
    worst, best = -keys.max(-scores), keys.max(scores)
    steep = problem.loss.log_abs_slope(worst) - problem.loss.log_abs_slope(best)
    lipschitz = radius * _widest(problem) * math.exp(float(steep.max()))

    def value(angle: float) -> float:
        return log_gap(problem, (radius * np.array([math.cos(angle), math.sin(angle)]),))

    lowest, at = value(math.atan2(start[1], start[0])), math.atan2(start[1], start[0])
    width = math.pi / 16
    heap = [(value(a) - lipschitz * width, a, width) for a in np.arange(-15, 17, 2) * width]
    heapq.heapify(heap)
    for _ in range(MOST_INTERVALS):
        bound, angle, width = heapq.heappop(heap)
        if bound >= lowest - SCAN_TOLERANCE:
            return np.array([math.cos(at), math.sin(at)])
        for half in (angle - width / 2, angle + width / 2):
            here = value(half)
            if here < lowest:
                lowest, at = here, half
            heapq.heappush(heap, (here - lipschitz * width / 2, half, width / 2))
    return None


def _widest(problem: SelectionProblem) -> float:
    keys = problem.keys
    widest = 0.0
    for i in range(len(keys)):
        apart = keys[i][:, None] - keys[i][None]
        widest = max(widest, float(np.sqrt((apart**2).sum(axis=2)).max()))
    return widest
