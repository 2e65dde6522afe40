"""Minima of log(L - L*) on balls: L-BFGS on spheres, and a look inside.

Far out L differs from its infimum L* by exp(-R margin), so log(L - L*) is minimised, not L: it falls like -R margin
whatever R is, and its gradient is that of L divided by L - L*, both known in the log domain.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

from ..core.bags import Vector
from ..core.heads import HeadProblem
from ..core.selection_loss import Blocks, JointProblem, Problem, SelectionProblem
from ..errors import refusal
from ..validate import check_number, floats

__all__ = [
    "STATIONARY",
    "BallProblem",
    "BelowLimit",
    "check_path",
    "log_gap",
    "lowest",
    "on_spheres",
    "settled",
    "shorter",
    "stationarity",
    "value_and_slope",
]

BallProblem = SelectionProblem | JointProblem | HeadProblem

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


def settled(problem: BallProblem, radii: tuple[float, ...], found: Blocks) -> tuple[float, Blocks, float]:
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


def _largest(problem: BallProblem) -> list[float]:
    """For each block the largest entry of the vectors that it is multiplied with."""
    bags = (problem.values, problem.keys) if isinstance(problem, JointProblem) else (problem.keys,)
    return [float(np.abs(one.rows).max()) for one in bags]


def _newton(problem: BallProblem, radii: tuple[float, ...], found: Blocks) -> tuple[float, Blocks, float]:
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

    problem: BallProblem
    radii: tuple[float, ...]
    blocks: Blocks
    frames: tuple[Vector, ...]  # orthonormal rows
    steps: Vector  # for differences

    @classmethod
    def at(cls, problem: BallProblem, radii: tuple[float, ...], blocks: Blocks) -> _Chart:
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


def check_path(owner: str, problem: Any, kind: type, radii: Any, starts: Any, seed: Any) -> list[float]:
    """The radii, if all that a path is given is in order."""
    if not isinstance(problem, kind):
        raise refusal(owner, "problem", f"be a {kind.__name__}", problem)
    given = floats(radii)
    good = given is not None and given.ndim == 1 and len(given) > 0 and np.isfinite(given).all()
    if given is None or not good or given[0] <= 0 or (np.diff(given) <= 0).any():
        raise refusal(owner, "radii", "be increasing positive numbers", radii, "sort them first")
    check_number(owner, "starts", starts, 0, whole=True)
    check_number(owner, "seed", seed, 0, whole=True)
    return list(map(float, given))
