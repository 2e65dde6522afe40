"""L-BFGS with a diagonal first guess of the inverse Hessian, and backtracking.

Dot products run in BLAS: callers that need the same bits everywhere hold BLAS to one thread.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base.checks import floats
from ..base.errors import refusal
from .loop import Status

_NEARER = 0.4  # the part of a step that is left where the whole of it does not descend enough

Vector = NDArray[Any]
Pair = tuple[
    Vector, Vector, float
]  # a step s, the change y of the gradient along it, 1 / s'y (0: no use, without positive curvature)


@dataclass(frozen=True, eq=False)
class LBFGSState:
    """A point of the descent, and what is remembered of the way to it."""

    theta: Vector
    value: float
    gradient: Vector
    pairs: list[Pair]  # of the last few steps, oldest first
    evaluations: int
    first: float  # the value at the start
    small_steps: int = 0  # how many of the last steps, in a row, lowered the value by less than the tolerance
    stalled: bool = False

    def mean_of_last(self, points: int) -> Vector:
        """The mean of the last so many points, or of those that the pairs remember."""
        point = mean = self.theta
        points = min(points, len(self.pairs) + 1)
        for s, _, _ in reversed(self.pairs[len(self.pairs) - points + 1 :]):
            point = point - s
            mean = mean + point
        return mean / points


@dataclass(frozen=True)
class LBFGS:
    """Minimise `objective(theta) -> (value, gradient)`."""

    objective: Callable[[Vector], tuple[float, Vector]]
    inverse_hessian: Vector  # (N,) diagonal, the first guess
    memory: int = 6
    tolerance: float = 1e-9  # stop when a step lowers the objective by less than this share of it ...
    patience: int = 1  # ... this many times in a row
    floor: float = 0.0  # below this share of the objective at the start, it is taken to be as large as that
    most_halvings: int = 30
    resume: Callable[[], LBFGSState] | None = None  # gives the state of an earlier run, where this one goes on

    def init(self, start: Vector) -> LBFGSState:
        if self.resume is not None:
            return self.resume()
        start = start if isinstance(start, np.ndarray) and start.dtype.kind == "f" else _read(start)
        if start.shape != np.shape(self.inverse_hessian) or not np.isfinite(start).all():
            size = f"a finite start for each of the {np.size(self.inverse_hessian)} entries of the diagonal"
            raise refusal("LBFGS", "start", f"be {size}", start)
        value, gradient = self.objective(start)
        return LBFGSState(start, value, gradient, [], 1, value)

    def verdict(self, state: LBFGSState) -> Status | None:
        if not np.isfinite(state.value):
            return Status.NOT_FINITE
        if state.small_steps >= self.patience or not state.gradient.any():
            return Status.CONVERGED
        return Status.STALLED if state.stalled else None

    def step(self, state: LBFGSState) -> LBFGSState:
        remembers, direction = bool(state.pairs), self._direction(state)
        slope = float(np.dot(direction, state.gradient))
        if slope >= 0:  # rounding has spoilt the memory: begin again from the diagonal
            return self.step(replace(state, pairs=[])) if remembers else replace(state, stalled=True)
        if len(state.pairs) == self.memory:
            del state.pairs[0]  # nobody needs it any more: with 20 classes, a tenth of the memory of a fit
        # the diagonal knows the shape, not the size: the first step may promise at most a twentieth of the objective
        length = 1.0 if remembers else min(1.0, 0.05 * abs(state.value) / -slope) or 1.0
        for number in range(self.most_halvings):
            theta = state.theta + length * direction
            value, gradient = self.objective(theta)
            if value <= state.value + 1e-4 * length * slope:
                direction *= length
                y = gradient - state.gradient
                curvature = float(np.dot(direction, y))
                rho = 1 / curvature if curvature > 1e-16 * float(np.dot(y, y)) else 0.0
                small = state.value - value <= self.tolerance * max(abs(value), self.floor * abs(state.first))
                return LBFGSState(
                    theta=theta,
                    value=value,
                    gradient=gradient,
                    pairs=[*state.pairs, (direction, y, rho)],
                    evaluations=state.evaluations + number + 1,
                    first=state.first,
                    small_steps=state.small_steps + 1 if small else 0,
                )
            length *= _NEARER
        # no descent along this direction: once more along the plain one
        evaluations = state.evaluations + self.most_halvings
        return replace(state, pairs=[], stalled=not remembers, evaluations=evaluations)

    def _direction(self, state: LBFGSState) -> Vector:
        """-H gradient, H being the diagonal corrected by the pairs: the two loops of the textbook."""
        pairs = [pair for pair in state.pairs if pair[2]]
        d, shares = -state.gradient, []
        for s, y, rho in reversed(pairs):
            shares.append(rho * float(np.dot(s, d)))
            d -= shares[-1] * y
        d *= self.inverse_hessian
        if pairs:
            _, y, rho = pairs[-1]
            d /= rho * float(np.dot(y, self.inverse_hessian * y))
        for (s, y, rho), share in zip(pairs, reversed(shares), strict=True):
            d += (share - rho * float(np.dot(y, d))) * s
        return d


def _read(start: Any) -> Vector:
    given = floats(start)
    if given is None:
        raise refusal("LBFGS", "start", "be a vector of numbers", start)
    return np.array(given)
