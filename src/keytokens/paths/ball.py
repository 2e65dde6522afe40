"""Minima of log(L - L*) on balls: L-BFGS on spheres, and a look inside.

Far out L differs from its infimum L* by exp(-R margin), so log(L - L*) is minimised, not L: it falls like -R margin
whatever R is, and its gradient is that of L divided by L - L*, both known in the log domain.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.optimize import minimize

from ..core.bags import Vector
from ..core.selection_loss import Blocks, Problem
from ..errors import refusal

__all__ = ["BelowLimit", "check_radii", "log_gap", "lower_inside", "on_spheres", "value_and_slope"]


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


def on_spheres(problem: Problem, radii: tuple[float, ...], start: Blocks) -> tuple[float, Blocks]:
    """A local minimum with every block on its sphere: block = r u / |u|, u free, objective divided by the radius."""
    ends = np.cumsum([len(block) for block in start])[:-1]
    scale = max(1.0, *radii)

    def place(u: Vector) -> tuple[list[Vector], list[float], Blocks]:
        parts = np.split(u, ends)
        sizes = [float(np.linalg.norm(part)) or 1.0 for part in parts]
        return parts, sizes, tuple(r * part / size for r, part, size in zip(radii, parts, sizes, strict=True))

    def objective(u: Vector) -> tuple[float, Vector]:
        parts, sizes, blocks = place(u)
        value, slopes = value_and_slope(problem, blocks)
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
    return log_gap(problem, blocks), blocks


def lower_inside(problem: Problem, radius: float, found: tuple[float, Blocks]) -> tuple[float, Blocks] | None:
    """A minimum inside the ball that is lower, where log(L - L*) falls towards the inside."""
    value, (slope,) = value_and_slope(problem, found[1])
    if slope @ found[1][0] <= 0:
        return None

    def objective(p: Any) -> tuple[float, Vector]:
        height, (steep,) = value_and_slope(problem, (p,))
        return height, steep

    inner = minimize(objective, 0.99 * found[1][0], jac=True, method="L-BFGS-B")
    lower = log_gap(problem, (inner.x,))
    return (lower, (inner.x,)) if np.linalg.norm(inner.x) < radius and lower < value else None


def check_radii(owner: str, radii: Any) -> None:
    given = np.asarray(radii, np.float64)
    good = given.ndim == 1 and len(given) > 0 and np.isfinite(given).all()
    if not good or given[0] <= 0 or (np.diff(given) <= 0).any():
        raise refusal(owner, "radii", "be increasing positive numbers", radii, "sort them first")
