"""L-BFGS with a diagonal first guess of the inverse Hessian, and backtracking.

Vectors may be most of the memory, and memory that was never touched is the slowest: a run uses up its start, and a step
the state that it is given. Its oldest pair becomes the next point and the next gradient (an objective may take the room
for that from `spares`); the last point and gradient become the next pair. So a run holds a point, a gradient, and its
pairs: no vector more.
Vectors are read in spans that stay in the cache, two passes a direction, in threads; sums over spans are made in their
order. Dot products run in BLAS: callers that need the same bits everywhere hold BLAS to one thread.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base.checks import floats
from ..base.errors import refusal
from ..base.threads import on_own_pages, over_spans
from .loop import Status

_NEARER = 0.4  # the part of a step that is left where the whole of it does not descend enough

Vector = NDArray[Any]
Pair = tuple[Vector, Vector, float]  # a step s, the change y of the gradient along it, 1 / s'y (0: no use)


@dataclass(frozen=True, eq=False)
class LBFGSState:
    """Changes at every step; `pairs` are the last few, oldest first."""

    theta: Vector
    value: float
    gradient: Vector
    pairs: list[Pair]
    evaluations: int
    first: float  # the value at the start
    small_steps: int = 0  # how many of the last steps, in a row, lowered the value by less than the tolerance
    stalled: bool = False

    def mean_of_last(self, points: int, room: Vector | None = None) -> Vector:
        """The mean of the last so many points, or of those that the pairs remember; written into `room`, if given."""
        points = min(points, len(self.pairs) + 1)
        mean = np.empty_like(self.theta) if room is None else room
        steps = [s for s, _, _ in reversed(self.pairs[len(self.pairs) - points + 1 :])]

        def some(at: slice) -> None:
            mean[at] = self.theta[at]
            for back, s in enumerate(steps, start=1):
                mean[at] -= _same_type(mean, 1 - back / points) * s[at]

        over_spans(some, len(mean), 1)
        return mean


class Spares:
    """Vectors that nobody needs any more, to be written over: two at most."""

    def __init__(self) -> None:
        self._vectors: list[Vector] = []

    def give(self, *vectors: Vector) -> None:
        self._vectors = [*self._vectors, *vectors][:2]

    def take(self, like: Vector) -> Vector:
        """One with anything in it."""
        return self._vectors.pop() if self._vectors else on_own_pages(like.shape, like.dtype)


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
    threads: int = 1
    spares: Spares = field(default_factory=Spares)

    def init(self, start: Vector) -> LBFGSState:
        start = start if isinstance(start, np.ndarray) and start.dtype.kind == "f" else _read(start)
        if start.shape != np.shape(self.inverse_hessian) or not np.isfinite([start.min(), start.max()]).all():
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
        remembers = bool(state.pairs)
        direction, slope = self._direction(state)
        if slope >= 0:  # rounding has spoilt the memory: begin again from the diagonal
            return self.step(replace(state, pairs=[])) if remembers else replace(state, stalled=True)
        # the diagonal knows the shape, not the size: the first step may promise at most a twentieth of the objective
        length = 1.0 if remembers else min(1.0, 0.05 * abs(state.value) / -slope) or 1.0
        theta = self._moved(state.theta, direction, length)
        for halving in range(self.most_halvings):
            value, gradient = self.objective(theta)
            if value <= state.value + 1e-4 * length * slope:
                pairs = [*state.pairs, self._pair(state.theta, theta, state.gradient, gradient)]
                small = state.value - value <= self.tolerance * max(abs(value), self.floor * abs(state.first))
                idle = state.small_steps + 1 if small else 0
                evaluations = state.evaluations + halving + 1
                return LBFGSState(theta, value, gradient, pairs, evaluations, state.first, idle)
            self.spares.give(gradient)
            self._draw_back(theta, state.theta)
            length *= _NEARER
        self.spares.give(theta)
        if remembers:  # no descent along this direction: once more along the plain one
            return replace(state, pairs=[], evaluations=state.evaluations + self.most_halvings)
        return replace(state, stalled=True, evaluations=state.evaluations + self.most_halvings)

    def _direction(self, state: LBFGSState) -> tuple[Vector, float]:
        """d = -H gradient, H being the diagonal corrected by the pairs, and its product with the gradient.

        It is written over the oldest pair, which is let go, where there are as many as may be remembered.
        The two loops of the textbook ask for products of the vectors only: d is a sum of s, y and the gradient, with
        coefficients that a small matrix of products gives. One pass makes the products, another the sum.
        """
        g, diagonal = state.gradient, self.inverse_hessian
        pairs = [pair for pair in state.pairs if pair[2]]
        n = len(pairs)

        def products(at: slice) -> Vector:
            """[S; Y H; g H] [Y; g]' of a span."""
            right = [*(y[at] for _, y, _ in pairs), g[at]]
            left = [*(s[at] for s, _, _ in pairs), *(diagonal[at] * x for x in right)]
            return np.array([[float(np.dot(x, y)) for y in right] for x in left])

        table = functools.reduce(operator.add, over_spans(products, len(g), self.threads))
        SY, Sg, YHY, YHg = table[:n, :n], table[:n, n], table[n:-1, :n], table[n:-1, n]
        rho = [pair[2] for pair in pairs]
        scale = 1 / (rho[-1] * YHY[-1, -1]) if pairs else 1.0
        off, on = np.zeros(n), np.zeros(n)  # how much of each y is taken off the gradient, of each s put on
        for i in reversed(range(n)):
            off[i] = rho[i] * (Sg[i] - SY[i] @ off)
        for i in range(n):
            on[i] = off[i] - rho[i] * (scale * (YHg[i] - YHY[i] @ off) + on @ SY[:, i])
        if len(state.pairs) >= self.memory:
            direction, oldest, _ = state.pairs.pop(0)
            self.spares.give(oldest)
        else:
            direction = on_own_pages(g.shape, g.dtype)

        def combine(at: slice) -> None:
            out = -g[at]
            for (_, y, _), share in zip(pairs, off, strict=True):
                out += _same_type(g, share) * y[at]
            out *= diagonal[at]
            out *= _same_type(g, scale)
            for (s, _, _), share in zip(pairs, on, strict=True):
                out -= _same_type(g, share) * s[at]
            direction[at] = out

        over_spans(combine, len(g), self.threads)
        return direction, float(scale * (off @ YHg - table[-1, n]) - on @ Sg)

    def _moved(self, theta: Vector, direction: Vector, length: float) -> Vector:
        """So far from theta, written over the direction."""

        def some(at: slice) -> None:
            if length != 1:
                direction[at] *= _same_type(theta, length)
            direction[at] += theta[at]

        over_spans(some, len(theta), self.threads)
        return direction

    def _draw_back(self, theta: Vector, to: Vector) -> None:
        """Leave a part of the way. It is known as well as the two points are: as well as they tell it apart."""

        def some(at: slice) -> None:
            theta[at] -= to[at]
            theta[at] *= _same_type(theta, _NEARER)
            theta[at] += to[at]

        over_spans(some, len(theta), self.threads)

    def _pair(self, last: Vector, theta: Vector, before: Vector, after: Vector) -> Pair:
        """The pair of a step, written over the last point and its gradient; of no use without positive curvature."""
        s, y = last, before

        def some(at: slice) -> Vector:
            np.subtract(theta[at], s[at], out=s[at])
            np.subtract(after[at], y[at], out=y[at])
            return np.array([float(np.dot(s[at], y[at])), float(np.dot(y[at], y[at]))])

        curvature, size = functools.reduce(operator.add, over_spans(some, len(s), self.threads))
        return s, y, float(1 / curvature) if curvature > 1e-16 * size else 0.0


def _read(start: Any) -> Vector:
    given = floats(start)
    if given is None:
        raise refusal("LBFGS", "start", "be a vector of numbers", start)
    return np.array(given)


def _same_type(like: Vector, number: float) -> Any:
    """A number in the precision of a vector, so that float32 stays float32."""
    return like.dtype.type(number)
