"""Minima on balls: min L over |p| <= R as R grows, and over |v| <= r, |p| <= R jointly.

Far out L differs from its infimum L* by exp(-R margin), so log(L - L*) is minimised, not L, by L-BFGS on spheres and a
look inside: it falls like -R margin whatever R is, and its gradient is that of L divided by L - L*, both known in the
log domain. The minimum on a ball is global, and L is not convex in p: how far it is proved is part of the answer.
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
from scipy.spatial.distance import pdist

from ...base.checks import check_number, floats
from ...base.errors import refusal
from ...base.threads import one_blas_thread
from ...model.ragged import Vector
from ..problems.problem import Problem, check_rule
from ..problems.reading import Blocks
from ..problems.scores import Fixed, Trained, scores_of
from ..svm.problem import MarginProblem
from ..svm.solver import solve, solved

ON_THE_SPHERE = 1e-9  # a block that is shorter than its radius by more, relatively, lies inside
ROUNDING = 1e-9  # of log(L - L*), relative
STATIONARY, AIM = 1e-8, 1e-13  # at most so much is small enough; Newton's method goes on to the other
STEPS_PER_E = 3  # radii on the way to one that is e times as large
STEP = 1e-5  # of a logit, for differences of gradients
MOST_STEPS, MOST_HALVINGS = 30, 8
MOST_DIMENSIONS = 300  # for Newton's method


def norm(x: Vector) -> float:
    return float(np.sqrt(x @ x))


def shorter(block: Vector, radius: float) -> bool:
    """Whether it lies inside its ball."""
    return norm(block) < radius * (1 - ON_THE_SPHERE)


class BelowLimit(Exception):
    """A point where L < L*: what was taken for the infimum is none."""

    def __init__(self, blocks: Blocks) -> None:
        super().__init__("the loss is below its supposed infimum")
        self.blocks = blocks


def log_gap(problem: Problem, blocks: Blocks) -> float:
    """log(L - L*)."""
    gap = problem.gap(problem.read(blocks))
    return gap.log if gap.sign > 0 else -math.inf


def value_and_slope(problem: Problem, blocks: Blocks) -> tuple[float, Blocks]:
    """log(L - L*) and its gradient, block by block: -descent / (L - L*)."""
    reading = problem.read(blocks)
    gap = problem.gap(reading)
    if gap.sign < 0:
        raise BelowLimit(blocks)
    down = problem.descent(reading, blocks)
    return gap.log, tuple(-one.array * math.exp(min(one.log_scale - gap.log, 700.0)) for one in down)


def on_spheres(
    problem: Problem, radii: tuple[float, ...], start: Blocks, free: tuple[bool, ...] | None = None
) -> tuple[float, Blocks]:
    """A local minimum with every block on its sphere: block = r u / |u|, u free, objective divided by the radius.

    Blocks that are `free` may have any length: block = r u.
    """
    ends = np.cumsum([len(block) for block in start])[:-1]
    scale = max(1.0, *radii)
    free = free or (False,) * len(radii)

    def place(u: Vector) -> tuple[list[Vector], list[float], Blocks]:
        parts = np.split(u, ends)
        sizes = [1.0 if any_length else norm(part) or 1.0 for part, any_length in zip(parts, free, strict=True)]
        return parts, sizes, tuple(r * part / size for r, part, size in zip(radii, parts, sizes, strict=True))

    def objective(u: Vector) -> tuple[float, Vector]:
        parts, sizes, blocks = place(u)
        value, slopes = value_and_slope(problem, blocks)
        turned = [
            r * slope if any_length else r / size * (slope - (slope @ part) * part / size**2)
            for r, size, slope, part, any_length in zip(radii, sizes, slopes, parts, free, strict=True)
        ]
        return value / scale, np.concatenate(turned) / scale

    lengths = [r if any_length else norm(block) or 1.0 for r, block, any_length in zip(radii, start, free, strict=True)]
    units = np.concatenate([block / length for block, length in zip(start, lengths, strict=True)])
    found = minimize(
        objective, units, jac=True, method="L-BFGS-B", options={"maxiter": 500, "ftol": 0.0, "gtol": 1e-12}
    )
    _, _, blocks = place(found.x)
    return log_gap(problem, blocks), blocks


def lower_inside(
    problem: Problem, radii: tuple[float, ...], found: tuple[float, Blocks]
) -> tuple[float, Blocks] | None:
    """A minimum that is lower, with the blocks inside their balls that log(L - L*) pulls there."""
    value, slopes = value_and_slope(problem, found[1])
    free = tuple(bool(slope @ block > 0) for slope, block in zip(slopes, found[1], strict=True))
    if not any(free):
        return None
    start = tuple((0.99 if inward else 1.0) * block for block, inward in zip(found[1], free, strict=True))
    lower, inner = on_spheres(problem, radii, start, free)
    within = all(norm(block) < r or not inward for block, r, inward in zip(inner, radii, free, strict=True))
    return (lower, inner) if within and lower < value else None


def lowest(problem: Problem, radii: tuple[float, ...], starts: Sequence[Blocks]) -> tuple[float, Blocks]:
    """The best that is found from some starts, on the spheres and inside of them; of equals the most stationary."""
    ends = [on_spheres(problem, radii, start) for start in starts]
    highest = _no_higher(min(value for value, _ in ends))
    found = min((one for one in ends if one[0] <= highest), key=lambda one: stationarity(problem, radii, one[1]))
    return lower_inside(problem, radii, found) or found


# Stationary points ---------------------------------------------------------------------------------------------------


def stationarity(problem: Problem, radii: tuple[float, ...], blocks: Blocks) -> float:
    """The part of the descent that could still be followed within the balls; the largest of the blocks, 0 at a minimum.

    On a sphere: the share of the descent that runs along it; all of it, 1, where it points inside. Inside a ball: R
    times the gradient of log(L - L*). Each block by itself: beside what v does to the loss, what p does is exp(-R).
    """
    reading = problem.read(blocks)
    gap, worst = problem.gap(reading).log, 0.0
    for r, block, down in zip(radii, blocks, problem.descent(reading, blocks), strict=True):
        unit, size = down.unit, norm(block)
        if not unit.any():
            continue
        if shorter(block, r):
            left = r * math.exp(min(down.log - gap, 700.0))
        else:
            outward = float(unit @ block) / size
            left = norm(unit - outward * block / size) if outward > 0 else 1.0
        worst = max(worst, left)
    return worst


def settled(problem: Problem, radii: tuple[float, ...], found: Blocks) -> tuple[float, Blocks, float]:
    """The minimum near a point, its value and its stationarity.

    Where the attention has saturated on a wrong token, nothing points to the minimum: then it is followed from balls so
    small that all tokens share attention, by steps that Newton's method can make.
    """
    best = _newton(problem, radii, found)
    far = max(r * widest for r, widest in zip(radii, _largest(problem), strict=True))
    if best[2] <= STATIONARY or far <= 1:
        return best
    blocks, free = found, (False,) * len(radii)
    for share in np.geomspace(1 / far, 1, 2 + int(STEPS_PER_E * math.log(far))).tolist():
        smaller = tuple(share * r for r in radii)
        # a block that lay inside a smaller ball stays there: far out nothing would lead it back
        inner = on_spheres(problem, smaller, blocks, free)[1] if any(free) else blocks
        kept = any(free) and all(
            norm(block) <= r * (1 + ON_THE_SPHERE) for block, r in zip(inner, smaller, strict=True)
        )
        grown = _newton(problem, smaller, inner if kept else lowest(problem, smaller, [blocks])[1])
        blocks = grown[1]
        free = tuple(shorter(block, r) for block, r in zip(blocks, smaller, strict=True))
    return grown if grown[2] < best[2] and grown[0] <= _no_higher(best[0]) else best


def _no_higher(value: float) -> float:
    return value + ROUNDING * (1 + abs(value)) if value > -math.inf else value


def _largest(problem: Problem) -> list[float]:
    """For each block the largest entry of the vectors that it is multiplied with."""
    bags = (problem.values, problem.keys) if problem.rule.shapes else (problem.keys,)
    return [float(np.abs(one.rows).max()) for one in bags]


def _newton(problem: Problem, radii: tuple[float, ...], found: Blocks) -> tuple[float, Blocks, float]:
    """Newton's method for the descent along the spheres.

    The loss may be too flat to show a minimum: then its gradients, each block's in its own scale, have the digits.
    """
    value, left = log_gap(problem, found), stationarity(problem, radii, found)
    highest = _no_higher(value)
    if sum(map(len, found)) > MOST_DIMENSIONS:
        return value, found, left
    for _ in range(MOST_STEPS):
        chart = _Chart.at(problem, radii, found)
        if left <= AIM or not chart.size:
            break
        move = np.linalg.lstsq(chart.jacobian(), -chart.sideways(np.zeros(chart.size)), rcond=None)[0]
        trials = (chart.place(move / 2**halvings) for halvings in range(MOST_HALVINGS))
        nearer = ((stationarity(problem, radii, trial), trial) for trial in trials)
        better = next((one for one in nearer if one[0] < left and log_gap(problem, one[1]) <= highest), None)
        if better is None:
            break
        left, found = better
    return log_gap(problem, found), found, left


@dataclass(frozen=True, eq=False)
class _Chart:
    """Coordinates z about a point: on a sphere along its tangents, inside a ball all of them; in units of the radii."""

    problem: Problem
    radii: tuple[float, ...]
    blocks: Blocks
    frames: tuple[Vector, ...]  # orthonormal rows
    steps: Vector  # for differences

    @classmethod
    def at(cls, problem: Problem, radii: tuple[float, ...], blocks: Blocks) -> _Chart:
        frames = tuple(
            np.eye(len(block)) if shorter(block, r) else np.linalg.svd(block[None])[2][1:]
            for r, block in zip(radii, blocks, strict=True)
        )
        sizes = [STEP / (r * widest or 1.0) for r, widest in zip(radii, _largest(problem), strict=True)]
        return cls(problem, radii, blocks, frames, np.repeat(sizes, [len(frame) for frame in frames]))

    @property
    def size(self) -> int:
        return len(self.steps)

    def place(self, z: Vector) -> Blocks:
        parts = np.split(z, np.cumsum([len(frame) for frame in self.frames])[:-1])
        moved = [
            block + r * part @ frame
            for r, block, part, frame in zip(self.radii, self.blocks, parts, self.frames, strict=True)
        ]
        return tuple(
            there if len(frame) == len(there) else r * there / norm(there)
            for r, there, frame in zip(self.radii, moved, self.frames, strict=True)
        )

    def sideways(self, z: Vector) -> Vector:
        """0 at a stationary point: what `stationarity` measures, with directions."""
        blocks = self.place(z)
        reading = self.problem.read(blocks)
        gap, parts = self.problem.gap(reading).log, []
        for r, block, frame, down in zip(
            self.radii, blocks, self.frames, self.problem.descent(reading, blocks), strict=True
        ):
            if len(frame) == len(block):
                parts.append(r * down.unit * math.exp(min(down.log - gap, 700.0)))
            else:
                parts.append(frame @ (down.unit - (down.unit @ block) * block / r**2))
        return np.concatenate(parts)

    def jacobian(self) -> Vector:
        ways = np.diag(self.steps)
        return np.stack([self.sideways(way) - self.sideways(-way) for way in ways], axis=1) / (2 * self.steps)


def check_path(owner: str, problem: Any, rule: type, maker: str, radii: Any, starts: Any, seed: Any) -> list[float]:
    """The radii, if all that a path is given is in order."""
    check_rule(owner, problem, rule, maker)
    given = floats(radii)
    good = given is not None and given.ndim == 1 and len(given) > 0 and np.isfinite(given).all()
    if given is None or not good or given[0] <= 0 or (np.diff(given) <= 0).any():
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

    >>> from keytokens.model.ragged import Bags
    >>> problem = Problem.of(Bags.of([[[1.0], [0.0]]]), np.array([1.0, 0.0]))
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
def regularisation_path(problem: Problem, radii: Sequence[float], starts: int = 12, seed: int = 0) -> list[PathPoint]:
    """The best p within each ball, for keys and scores that are fixed; the radii must increase.

    >>> from keytokens.model.ragged import Bags
    >>> problem = Problem.of(Bags.of([[[-0.1, 1.0], [1.0, 0.0], [0.0, 0.0]]]), np.array([1.0, 0.9, 0.9]))
    >>> path = regularisation_path(problem, [1.0, 100.0])
    >>> [bool(abs(np.linalg.norm(point.p) - point.radius) < 1e-6) for point in path]
    [True, True]
    """
    radii = check_path("regularisation_path", problem, Fixed, "Problem.of", radii, starts, seed)
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


def _best_on_ball(problem: Problem, radius: float, starts: list[Blocks]) -> PathPoint:
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


def point_of(problem: Problem, radii: tuple[float, ...], found: Blocks, proof: Proof) -> PathPoint:
    """The stationary point near one that was found."""
    value, blocks, residual = settled(problem, radii, found)
    inside = any(shorter(block, r) for block, r in zip(blocks, radii, strict=True))
    proof = Proof.STARTS if inside and proof is Proof.SCAN else proof  # which knows the sphere only
    return PathPoint(radii[-1], blocks, value, inside, proof, residual)


@one_blas_thread()
def joint_path(
    problem: Problem, radii: Sequence[float], ratio: float, starts: int = 12, seed: int = 0
) -> list[PathPoint]:
    """The best (v, p) with |p| <= R and |v| <= ratio R. The limit of p's direction depends on the ratio: say which.

    >>> from keytokens.model.ragged import Bags
    >>> X = Bags.of([[[1.0, 0.0], [0.0, 1.0]], [[-1.0, 0.0], [0.0, 1.0]]])
    >>> (point,) = joint_path(Problem.joint([1, -1], X, X), [20.0], ratio=1.0, starts=2)
    >>> v, p = point.blocks
    >>> round(float(np.linalg.norm(p)), 6), point.proof.name
    (20.0, 'STARTS')
    """
    radii = check_path("joint_path", problem, Trained, "Problem.joint", radii, starts, seed)
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


def _turned(problem: Problem, balls: tuple[float, float], starts: list[Blocks]) -> Blocks:
    """Both together, then p for that head by itself: beside what v does to log L, what p does is lost in rounding."""
    _, (v, p) = lowest(problem, balls, starts)
    alone = Problem.of(problem.keys, scores_of(problem.labels, problem.values, v), problem.loss)
    begin = [(p,), *_margin_directions(alone), *((start[1],) for start in starts)]
    return v, *lowest(alone, balls[1:], begin)[1]


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
