"""Gradient flow, followed in arc length: d theta / ds = -grad / |grad|.

The path is that of d theta / dt = -grad, the clock is not: in time the flow slows down exponentially, in arc length it
moves at speed 1 for ever. Along the path the gradient turns within a layer of width about 1 around a ray, however far
out: stiff across, straight along, so implicit steps grow with the norm and |p| = 1e6 takes a few hundred of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy.integrate import solve_ivp

from ...base.checks import check_number
from ...model.ragged import Vector
from ...training.loop import Outcome, Status, run
from ..problems.problem import Problem
from ..problems.reading import Blocks
from .steps import Point, blocks_of, check_problem

FINE, SECOND = 1e-9, 8  # a second try: its tolerance, and its evaluations beside those of the first
APART, NEAR = 1e-7, 1e-3  # beside 1 + |theta|: points whose gradients are compared; a step that is short


class _Stuck(Exception):
    """The gradient is zero, or the unit field jumps: no step is small enough."""


@dataclass(frozen=True, eq=False)
class FlowState(Point):
    """Where the flow is after t pieces; `arc` is the length of the path so far."""

    arc: float = 0.0
    evaluations: int = 0
    stuck: bool = False


@dataclass(frozen=True)
class Flow:
    """The path up to a given norm of the parameters; one step is a piece whose length is a share of the norm."""

    problem: Problem
    norm: float
    growth: float = 1.0  # length of a piece relative to 1 + |theta|
    tolerance: float = 1e-8  # of the path, relative and absolute
    most_evaluations: int = 5_000  # of one piece

    def __post_init__(self) -> None:
        check_problem("Flow", self.problem)
        for name in ("norm", "growth", "tolerance"):
            check_number("Flow", name, getattr(self, name), 0.0, above=True)
        check_number("Flow", "most_evaluations", self.most_evaluations, 1, whole=True)

    def init(self, start: Vector | Sequence[Vector]) -> FlowState:
        return FlowState(self.problem, blocks_of("Flow", self.problem, start), 0)

    def verdict(self, state: FlowState) -> Status | None:
        if not all(np.isfinite(block).all() for block in state.blocks):
            return Status.NOT_FINITE
        if state.log_sizes.max() == -np.inf:
            return Status.STATIONARY
        if state.stuck:
            return Status.STATIONARY if self._at_minimum(state) else Status.LOST
        return Status.FAR_ENOUGH if _size(state.blocks) >= self.norm * (1 - 1e-12) else None

    @np.errstate(invalid="ignore", over="ignore")  # BDF's first step computes with memory that it has not set; unused
    def step(self, state: FlowState) -> FlowState:
        """BDF follows far pieces in the fewest evaluations; a valley thinner than its errors asks for better ones.

        LSODA may begin a stiff piece with explicit steps and never get out.
        """
        end = self._piece(state, "BDF", self.tolerance, self.most_evaluations)
        if end.stuck and not self._at_minimum(end):
            again = replace(state, evaluations=end.evaluations)
            finer = self._piece(again, "Radau", min(self.tolerance, FINE), SECOND * self.most_evaluations)
            if not finer.stuck or self._at_minimum(finer):
                end = finer
        return end

    def _piece(self, state: FlowState, method: Literal["BDF", "Radau"], tolerance: float, most: int) -> FlowState:
        path = _Path(self.problem, state.blocks, most)
        scale = 1 + _size(state.blocks)

        def arrived(s: float, z: Vector) -> float:
            return _size(path.blocks(z)) - self.norm

        arrived.terminal = True  # type: ignore[attr-defined]
        arrived.direction = 1  # type: ignore[attr-defined]
        span, start = (0.0, self.growth * scale), np.zeros(path.size)
        end, arc = None, 0.0
        with suppress(_Stuck):
            solution = solve_ivp(
                path.field, span, start, method=method, rtol=tolerance, atol=tolerance * scale, events=arrived
            )
            if solution.success:
                end, arc = solution.y[:, -1], float(solution.t[-1])
        blocks = path.blocks(path.last if end is None else end)
        evaluations = state.evaluations + path.evaluations
        return FlowState(self.problem, blocks, state.t + 1, state.arc + arc, evaluations, end is None)

    def _at_minimum(self, state: FlowState) -> bool:
        """Whether Newton's step is short, so that a minimum is near.

        A gradient that turns around is no proof: it does so across every valley along which a path goes on for ever.
        """
        path, size = _Path(self.problem, state.blocks), 1 + _size(state.blocks)
        here, top = path.pull(np.zeros(path.size))
        if top == -np.inf:
            return True
        ways = APART * size * np.eye(path.size)
        there = [path.pull(way) for way in ways]
        bends = np.array([pull * np.exp(min(log - top, 700.0)) - here for pull, log in there]).T / (APART * size)
        step = np.linalg.lstsq(bends, -here, rcond=None)[0]
        return bool(np.linalg.norm(step) <= NEAR * size)


def flow(
    problem: Problem,
    start: Vector | Sequence[Vector],
    norm: float,
    watch: Callable[[FlowState], None] | None = None,
    max_pieces: int = 10_000,
) -> Outcome[FlowState]:
    """Follow the gradient flow from `start` until the parameters have the given norm.

    >>> keys = [[[1.0, 0.0], [0.0, 0.0]], [[-2.0, 1.0], [0.0, 0.0]]]
    >>> outcome = flow(Problem.of(keys, np.array([1.0, 0.0, 1.0, 0.0])), np.zeros(2), 1e6)
    >>> p = outcome.state.p
    >>> bool(p @ [1.0, 3.0] / np.sqrt(10) / np.linalg.norm(p) > 1 - 1e-9)
    True
    """
    return run(Flow(problem, norm), start, max_pieces, watch)


def _size(blocks: Blocks) -> float:
    return float(np.sqrt(sum(np.vdot(block, block) for block in blocks)))


class _Path:
    """One piece in coordinates z of the space that holds every gradient: theta = start + basis'z."""

    def __init__(self, problem: Problem, start: Blocks, most_evaluations: int = 0) -> None:
        self.problem, self.start, self.basis = problem, start, problem.span
        self.size = sum(block.size for block in start) if self.basis is None else len(self.basis)
        self.last = np.zeros(self.size)
        self.evaluations, self.most_evaluations = 0, most_evaluations

    def blocks(self, z: Vector) -> Blocks:
        flat = z if self.basis is None else z @ self.basis
        ends = np.cumsum([block.size for block in self.start])[:-1]
        parts = np.split(flat, ends)
        return tuple(block + part.reshape(block.shape) for block, part in zip(self.start, parts, strict=True))

    def field(self, s: float, z: Vector) -> Vector:
        """The unit vector along minus the gradient; blocks of very different sizes share one scale."""
        self.evaluations += 1
        if self.evaluations > self.most_evaluations:
            raise _Stuck
        self.last = np.array(z)
        flat, top = self.pull(z)
        if top == -np.inf:
            raise _Stuck
        return flat / np.linalg.norm(flat)

    def pull(self, z: Vector) -> tuple[Vector, float]:
        """Minus the gradient in the coordinates, and the logarithm of its unit; -inf where it is zero."""
        blocks = self.blocks(z)
        down = self.problem.descent(self.problem.read(blocks), blocks)
        top = max(block.log for block in down)
        if top == -np.inf:
            return np.zeros(self.size), top
        flat = np.concatenate([(block.array * np.exp(block.log_scale - top)).ravel() for block in down])
        return flat if self.basis is None else self.basis @ flat, top
