"""Regularisation paths: min L over |p| <= R as R grows, and over |v| <= r, |p| <= R jointly.

The minimum on a ball is global, and L is not convex in p: how far it is proved is part of the answer.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist

from ...base.checks import array_of, check_number
from ...base.errors import refusal
from ...base.threads import one_blas_thread
from ...model.ragged import Vector
from ..problems.problem import Problem, check_rule
from ..problems.reading import Blocks
from ..problems.scores import Fixed, Trained
from ..svm.problem import MarginProblem
from ..svm.solver import solve, solved
from .minima import STATIONARY, Place, inside, lowered, minima, newton


def check_path(owner: str, problem: Any, rule: type, maker: str, radii: Any, starts: Any, seed: Any) -> list[float]:
    """The radii, if all that a path is given is in order."""
    check_rule(owner, problem, rule, maker)
    given = array_of(owner, "radii", radii, (-1,))
    if not len(given) or (np.diff(given, prepend=0.0) <= 0).any():
        raise refusal(owner, "radii", "be increasing positive numbers", radii, "sort them first")
    check_number(owner, "starts", starts, 0, whole=True)
    check_number(owner, "seed", seed, 0, whole=True)
    return list(map(float, given))


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

    >>> problem = Problem.of([[[1.0], [0.0]]], np.array([1.0, 0.0]))
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

    @classmethod
    def of(cls, found: Place, proof: Proof) -> PathPoint:
        within = any(inside(block, r) for block, r in zip(found.blocks, found.radii, strict=True))
        proof = Proof.STARTS if within and proof is Proof.SCAN else proof  # which knows the sphere only
        return cls(found.radii[-1], found.blocks, found.value, within, proof, found.residual)

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
def regularisation_path(problem: Problem, radii: Sequence[float], starts: int = 12, seed: int = 0) -> list[PathPoint]:
    """The best p within each ball, for keys and scores that are fixed; the radii must increase.

    >>> problem = Problem.of([[[-0.1, 1.0], [1.0, 0.0], [0.0, 0.0]]], np.array([1.0, 0.9, 0.9]))
    >>> path = regularisation_path(problem, [1.0, 100.0])
    >>> [bool(abs(np.linalg.norm(point.p) - point.radius) < 1e-6) for point in path]
    [True, True]
    """
    radii = check_path("regularisation_path", problem, Fixed, "Problem.of", radii, starts, seed)
    hints = _margin_directions(problem)
    if not hints and not starts:
        rule = "be at least 1 where no direction separates the best tokens"
        raise refusal("regularisation_path", "starts", rule, starts)
    begin = draw(problem, starts, seed)
    balls = [(radius,) for radius in radii]
    return [_proved(problem, found) for found in minima(problem, balls, begin, hints)]


def draw(problem: Problem, starts: int, seed: int) -> list[Blocks]:
    """Random directions of all blocks."""
    rng = np.random.default_rng(seed)
    return [tuple(rng.normal(size=size) for (size,) in problem.shapes) for _ in range(starts)]


def _proved(problem: Problem, found: Place) -> PathPoint:
    keys, radius = problem.keys, found.radii[0]
    if len(keys) == 1 and keys.sizes[0] == 2:
        best, other = problem.scores.argmax(), problem.scores.argmin()
        away = keys.rows[best] - keys.rows[other]
        if np.linalg.norm(away) > 0 and best != other:
            p = radius * away / np.linalg.norm(away)
            return PathPoint.of(replace(found, blocks=(p,)), Proof.CLOSED)
    scanned = _scan(problem, radius, found.blocks[0]) if keys.dim == 2 else None
    if scanned is None:
        return PathPoint.of(found, Proof.STARTS)
    other_way = newton(lowered(Place.on_spheres(problem, (radius,), (scanned,))))
    found = min([found, other_way], key=lambda one: one.value)
    return PathPoint.of(found, Proof.SCAN)


@one_blas_thread()
def joint_path(
    problem: Problem, radii: Sequence[float], ratio: float, starts: int = 12, seed: int = 0
) -> list[PathPoint]:
    """The best (v, p) with |p| <= R and |v| <= ratio R. The limit of p's direction depends on the ratio: say which.

    >>> X = [[[1.0, 0.0], [0.0, 1.0]], [[-1.0, 0.0], [0.0, 1.0]]]
    >>> (point,) = joint_path(Problem.joint([1, -1], X, X), [20.0], ratio=1.0, starts=2)
    >>> v, p = point.blocks
    >>> round(float(np.linalg.norm(p)), 6), point.proof.name
    (20.0, 'STARTS')
    """
    radii = check_path("joint_path", problem, Trained, "Problem.joint", radii, starts, seed)
    check_number("joint_path", "ratio", ratio, 0.0, above=True)
    check_number("joint_path", "starts", starts, 1, whole=True)
    balls = [(ratio * radius, radius) for radius in radii]
    drawn = draw(problem, starts, seed)
    begin = [_with_head(problem, p) for _, p in drawn]
    found = minima(problem, balls, begin, begin + drawn)
    return [PathPoint.of(one, Proof.STARTS) for one in found]


def _with_head(problem: Problem, p: Vector) -> Blocks:
    """p and the head that the tokens it selects ask for: the mean of Y_i x_i."""
    bags = problem.values
    chosen = bags.starts[:-1] + bags.argmax(problem.keys.rows @ p)
    v = problem.labels @ bags.rows[chosen]
    return (v if v.any() else np.ones(bags.dim)), p


def _margin_directions(problem: Problem) -> list[Blocks]:
    """The max-margin direction of the best tokens, if they can be separated: where the path should end."""
    found = solved(solve, MarginProblem.from_selection(problem.keys, problem.keys.argmax(problem.scores)))
    return [] if found is None or not found.p.any() else [(found.p,)]


def _scan(problem: Problem, radius: float, start: Vector) -> Vector | None:
    """The lowest point on a circle, proved to SCAN_TOLERANCE by branch and bound; None if it takes too long.

    With delta_i = gamma_best - s'gamma = sum_t s_t (gamma_best - gamma_t), all terms positive, |d log s_t / d theta| is
    at most R D, D the largest distance of two keys of a bag. So |d log delta_i| <= R D, and log(loss(gamma_best -
    delta) - loss(gamma_best)) changes by at most E times that, E = max |loss'(gamma_worst)| / |loss'(gamma_best)| (a
    convex loss). Hence log(L - L*) is Lipschitz in the angle with constant R D E.
    """
    keys, scores = problem.keys, problem.scores
    worst, best = -keys.max(-scores), keys.max(scores)
    steep = problem.loss.log_abs_slope(worst) - problem.loss.log_abs_slope(best)
    widest = max(float(pdist(keys[i]).max(initial=0.0)) for i in range(len(keys)))
    lipschitz = radius * widest * math.exp(float(steep.max()))

    def value(angle: float) -> float:
        return Place(problem, (radius,), (radius * np.array([math.cos(angle), math.sin(angle)]),)).value

    at = math.atan2(start[1], start[0])
    lowest = value(at)
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
