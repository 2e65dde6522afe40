"""L-BFGS with a diagonal first guess of the inverse Hessian, and backtracking.

Dot products run in BLAS; callers that need the same bits everywhere hold BLAS to one thread.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import get_blas_funcs

from .loop import Status

__all__ = ["LBFGS", "LBFGSState"]

Vector = NDArray[Any]
Pair = tuple[Vector, Vector, float]  # a step s, the change y of the gradient along it, 1 / s'y


@dataclass(frozen=True, eq=False)
class LBFGSState:
    """Changes at every step; `pairs` are the last few, oldest first."""

    theta: Vector
    value: float
    gradient: Vector
    pairs: tuple[Pair, ...]
    evaluations: int
    small_steps: int = 0  # how many of the last steps, in a row, lowered the value by less than the tolerance
    stalled: bool = False


@dataclass(frozen=True)
class LBFGS:
    """Minimise `objective(theta) -> (value, gradient)`."""

    objective: Callable[[Vector], tuple[float, Vector]]
    inverse_hessian: Vector  # (N,) diagonal, the first guess
    memory: int = 6
    tolerance: float = 1e-9  # stop when a step lowers the objective by less than this share of it ...
    patience: int = 1  # ... this many times in a row
    most_halvings: int = 30

    def init(self, start: Vector) -> LBFGSState:
        value, gradient = self.objective(start)
        return LBFGSState(start, value, gradient, (), 1)

    def verdict(self, state: LBFGSState) -> Status | None:
        if not np.isfinite(state.value):
            return Status.NOT_FINITE
        if state.small_steps >= self.patience or not state.gradient.any():
            return Status.CONVERGED
        return Status.STALLED if state.stalled else None

    def step(self, state: LBFGSState) -> LBFGSState:
        direction = self._direction(state)
        slope = float(np.dot(state.gradient, direction))
        if slope >= 0:  # rounding has spoilt the memory: begin again from the diagonal
            if not state.pairs:
                return replace(state, stalled=True)
            return self.step(replace(state, pairs=()))
        # the diagonal knows the shape, not the size: the first step may promise at most a twentieth of the objective
        length = 1.0 if state.pairs else min(1.0, 0.05 * abs(state.value) / -slope) or 1.0
        for halving in range(self.most_halvings):
            theta = state.theta + _same_type(state.theta, length) * direction
            value, gradient = self.objective(theta)
            if value <= state.value + 1e-4 * length * slope:
                pairs = (*state.pairs, *_pair(theta - state.theta, gradient - state.gradient))[-self.memory :]
                small = state.value - value <= self.tolerance * abs(value)
                idle = state.small_steps + 1 if small else 0
                return LBFGSState(theta, value, gradient, pairs, state.evaluations + halving + 1, idle)
            length *= 0.4
        if state.pairs:  # no descent along this direction: once more along the plain one
            return replace(state, pairs=(), evaluations=state.evaluations + self.most_halvings)
        return replace(state, stalled=True, evaluations=state.evaluations + self.most_halvings)

    def _direction(self, state: LBFGSState) -> Vector:
        """Two-loop recursion: -H gradient, H being the diagonal corrected by the pairs."""
        q = state.gradient.copy()
        add = get_blas_funcs("axpy", (q,))
        shares = []
        for s, y, rho in reversed(state.pairs):
            share = rho * float(np.dot(s, q))
            q = add(y, q, a=-share)  # in place
            shares.append(share)
        q *= self.inverse_hessian
        if state.pairs:
            s, y, rho = state.pairs[-1]
            q *= _same_type(q, 1 / (rho * float(np.dot(y, self.inverse_hessian * y))))
        for (s, y, rho), share in zip(state.pairs, reversed(shares), strict=True):
            q = add(s, q, a=share - rho * float(np.dot(y, q)))
        return np.negative(q, out=q)


def _same_type(like: Vector, number: float) -> Any:
    """A number in the precision of a vector, so that float32 stays float32."""
    return like.dtype.type(number)


def _pair(s: Vector, y: Vector) -> list[Pair]:
    """The pair if it has positive curvature, else nothing."""
    curvature = float(np.dot(s, y))
    return [(s, y, 1 / curvature)] if curvature > 1e-16 * float(np.dot(y, y)) else []
