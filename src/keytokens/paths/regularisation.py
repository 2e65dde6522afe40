"""min L over |p| <= R as R grows, and over |v| <= r, |p| <= R jointly.

Far out L differs from its infimum L* by exp(-R margin), so log(L - L*) is minimised, not L: it falls like -R margin
whatever R is, and its gradient is that of L divided by L - L*, both known in the log domain.

The minimum on a ball is global, and L is not convex in p: how far "the minimum" is proved is part of the answer.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from scipy.optimize import minimize

from ..core.bags import Vector
from ..core.selection_loss import Blocks, JointProblem, Problem, SelectionProblem
from ..errors import NotSeparable, refusal
from ..svm import MarginProblem, solve

__all__ = ["PathPoint", "Proof", "joint_path", "regularisation_path"]

SCAN_TOLERANCE = 1e-4  # in log(L - L*)
MOST_INTERVALS = 50_000


class Proof(Enum):
    """What is known of a point being the global minimum on its ball, in a sentence."""

    CLOSED = "proved: with one input of two tokens the loss falls along their difference"
    SCAN = "proved: a certified scan of all angles finds no lower log(L - L*), to 1e-4"
    STARTS = "not proved: the best of many starts and of the continuation from smaller balls"


@dataclass(frozen=True, eq=False)
class PathPoint:
    """The best parameters found within one ball."""

    radius: float
    blocks: Blocks  # (p,) or (v, p)
    log_gap: float  # log(L - L*)
    inside: bool  # the minimum lies inside the ball, not on its sphere
    proof: Proof

    @property
    def p(self) -> Vector:
        return self.blocks[-1]

    @property
    def direction(self) -> Vector:
        return self.p / np.linalg.norm(self.p)


def regularisation_path(
    problem: SelectionProblem, radii: Sequence[float], starts: int = 12, seed: int = 0
) -> list[PathPoint]:
    """The best p within each ball, for keys and scores that are fixed; the radii must increase."""
    _check_radii("regularisation_path", radii)
    rng = np.random.default_rng(seed)
    begin = _margin_directions(problem) + [(rng.normal(size=problem.keys.dim),) for _ in range(starts)]
    path: list[PathPoint] = []
    for radius in radii:
        before = [path[-1].blocks] if path else []
        path.append(_best_on_ball(problem, float(radius), [*before, *begin]))
    return path


def _best_on_ball(problem: SelectionProblem, radius: float, starts: list[Blocks]) -> PathPoint:
    keys = problem.keys
    if len(keys) == 1 and keys.sizes[0] == 2:
        best, other = problem.scores.argmax(), problem.scores.argmin()
        away = keys.rows[best] - keys.rows[other]
        if np.linalg.norm(away) > 0 and best != other:
            p = radius * away / np.linalg.norm(away)
            return PathPoint(radius, (p,), _log_gap(problem, (p,)), False, Proof.CLOSED)
    found = min((_on_spheres(problem, (radius,), start) for start in starts), key=lambda one: one[0])
    proof = Proof.STARTS
    if keys.dim == 2:
        scanned = _scan(problem, radius, found[1][0])
        if scanned is not None:
            found, proof = min([found, _on_spheres(problem, (radius,), (scanned,))], key=lambda one: one[0]), Proof.SCAN
    inner = _inside(problem, radius, found)
    if inner is not None:
        return PathPoint(radius, inner[1], inner[0], True, Proof.STARTS)
    return PathPoint(radius, found[1], found[0], False, proof)


def joint_path(
    problem: JointProblem, radii: Sequence[float], ratio: float, starts: int = 12, seed: int = 0
) -> list[PathPoint]:
    """The best (v, p) with |p| <= R and |v| <= ratio R. The limit of p's direction depends on the ratio: say which."""
    _check_radii("joint_path", radii)
    if not ratio > 0:
        raise refusal("joint_path", "ratio", "be a number above 0", ratio)
    rng = np.random.default_rng(seed)
    sizes = (problem.values.dim, problem.keys.dim)
    begin: list[Blocks] = [tuple(rng.normal(size=size) for size in sizes) for _ in range(starts)]
    path: list[PathPoint] = []
    for radius in radii:
        before = [path[-1].blocks] if path else []
        balls = (ratio * float(radius), float(radius))
        value, blocks = min((_on_spheres(problem, balls, one) for one in [*before, *begin]), key=lambda one: one[0])
        path.append(PathPoint(float(radius), blocks, value, False, Proof.STARTS))
    return path


def _log_gap(problem: Problem, blocks: Blocks) -> float:
    gap = problem.gap(problem.read(blocks))
    return gap.log if gap.sign > 0 else -math.inf


def _value_and_slope(problem: Problem, blocks: Blocks) -> tuple[float, Blocks]:
    """log(L - L*) and its gradient, block by block: -descent / (L - L*)."""
    reading = problem.read(blocks)
    value = problem.gap(reading).log
    down = problem.descent(reading, blocks)
    return value, tuple(-one.array * math.exp(min(one.log_scale - value, 700.0)) for one in down)


def _on_spheres(problem: Problem, radii: tuple[float, ...], start: Blocks) -> tuple[float, Blocks]:
    """A local minimum with every block on its sphere: block = r u / |u|, u free, objective divided by the radius."""
    ends = np.cumsum([len(block) for block in start])[:-1]
    scale = max(1.0, *radii)

    def place(u: Vector) -> tuple[list[Vector], list[float], Blocks]:
        parts = np.split(u, ends)
        sizes = [float(np.linalg.norm(part)) or 1.0 for part in parts]
        return parts, sizes, tuple(r * part / size for r, part, size in zip(radii, parts, sizes, strict=True))

    def objective(u: Vector) -> tuple[float, Vector]:
        parts, sizes, blocks = place(u)
        value, slopes = _value_and_slope(problem, blocks)
        along = [part / size for part, size in zip(parts, sizes, strict=True)]
        turned = [
            r / size * (slope - (slope @ unit) * unit)
            for r, size, slope, unit in zip(radii, sizes, slopes, along, strict=True)
        ]
        return value / scale, np.concatenate(turned) / scale

    units = np.concatenate([block / (np.linalg.norm(block) or 1.0) for block in start])
    found = minimize(
        objective, units, jac=True, method="L-BFGS-B", options={"maxiter": 500, "ftol": 0.0, "gtol": 1e-12}
    )
    _, _, blocks = place(found.x)
    return _log_gap(problem, blocks), blocks


def _inside(problem: SelectionProblem, radius: float, found: tuple[float, Blocks]) -> tuple[float, Blocks] | None:
    """A minimum inside the ball that is lower, where log(L - L*) falls towards the inside."""
    value, (slope,) = _value_and_slope(problem, found[1])
    if slope @ found[1][0] <= 0:
        return None

    def objective(p: Any) -> tuple[float, Vector]:
        height, (steep,) = _value_and_slope(problem, (p,))
        return height, steep

    inner = minimize(objective, 0.99 * found[1][0], jac=True, method="L-BFGS-B")
    lower = _log_gap(problem, (inner.x,))
    return (lower, (inner.x,)) if np.linalg.norm(inner.x) < radius and lower < value else None


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
        return _log_gap(problem, (radius * np.array([math.cos(angle), math.sin(angle)]),))

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


def _check_radii(owner: str, radii: Any) -> None:
    given = np.asarray(radii, np.float64)
    if (
        given.ndim != 1
        or not len(given)
        or not np.isfinite(given).all()
        or given[0] <= 0
        or (np.diff(given) <= 0).any()
    ):
        raise refusal(owner, "radii", "be increasing positive numbers", radii, "sort them first")
