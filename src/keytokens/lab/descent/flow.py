"""Gradient flow, followed in arc length: d theta / ds = -grad / |grad|.

The path is that of d theta / dt = -grad, the clock is not: in time the flow slows down exponentially, in arc length it
moves at speed 1 for ever. Along the path the gradient turns within a layer of width about 1 around a ray, however far
out: stiff across, straight along, so implicit steps grow with the norm and |p| = 1e6 takes a few hundred of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.integrate import solve_ivp

from ...base.checks import check_number
from ...model.ragged import Vector
from ...training.loop import Outcome, Status, run
from ..problems.problem import Problem
from ..problems.reading import Blocks
from .steps import Point, blocks_of, check_problem


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
        check_number("Flow", "norm", self.norm, 0.0, above=True)
        check_number("Flow", "growth", self.growth, 0.0, above=True)
        check_number("Flow", "tolerance", self.tolerance, 0.0, above=True)
        check_number("Flow", "most_evaluations", self.most_evaluations, 1, whole=True)

    def init(self, start: Vector | Sequence[Vector]) -> FlowState:
        return FlowState(self.problem, blocks_of("Flow", self.problem, start), 0)

    def verdict(self, state: FlowState) -> Status | None:
        if not all(np.isfinite(block).all() for block in state.blocks):
            return Status.NOT_FINITE
        if state.log_sizes.max() == -np.inf:
            return Status.STATIONARY
        if state.stuck:
            return Status.STATIONARY if self._turns_back(state) else Status.LOST
        return Status.FAR_ENOUGH if _size(state.blocks) >= self.norm * (1 - 1e-12) else None

    @np.errstate(invalid="ignore", over="ignore")  # BDF's first step computes with memory that it has not set; unused
    def step(self, state: FlowState) -> FlowState:
        path = _Path.of(self.problem, state.blocks, self.most_evaluations)
        length = self.growth * (1 + _size(state.blocks))

        def arrived(s: float, z: Vector) -> float:
            return float(_size(path.blocks(z)) - self.norm)

        arrived.terminal = True  # type: ignore[attr-defined]
        arrived.direction = 1  # type: ignore[attr-defined]
        try:
            solution = solve_ivp(
                path.field,
                (0.0, length),
                np.zeros(path.size),
                method="BDF",  # LSODA may begin a stiff piece with explicit steps and never get out
                rtol=self.tolerance,
                atol=self.tolerance * (1 + _size(state.blocks)),
                events=arrived,
            )
        except _Stuck:
            return self._end(state, path)
        if not solution.success:
            return self._end(state, path)
        blocks = path.blocks(solution.y[:, -1])
        return FlowState(
            self.problem, blocks, state.t + 1, state.arc + float(solution.t[-1]), state.evaluations + path.evaluations
        )

    def _turns_back(self, state: FlowState) -> bool:
        """Whether a short way ahead the field points back: a minimum lies between."""
        path = _Path.of(self.problem, state.blocks, 2)
        here = path.field(0.0, np.zeros(path.size))
        ahead = np.sqrt(self.tolerance) * (1 + _size(state.blocks)) * here
        return bool(path.field(0.0, ahead) @ here < 0)

    def _end(self, state: FlowState, path: _Path) -> FlowState:
        evaluations = state.evaluations + path.evaluations
        return FlowState(self.problem, path.blocks(path.last), state.t + 1, state.arc, evaluations, stuck=True)


def flow(
    problem: Problem,
    start: Vector | Sequence[Vector],
    norm: float,
    watch: Callable[[FlowState], None] | None = None,
    max_pieces: int = 10_000,
) -> Outcome[FlowState]:
    """Follow the gradient flow from `start` until the parameters have the given norm.

    >>> from keytokens.model.ragged import Bags
    >>> from keytokens.lab.problems.problem import Problem
    >>> keys = Bags.of([[[1.0, 0.0], [0.0, 0.0]], [[-2.0, 1.0], [0.0, 0.0]]])
    >>> outcome = flow(Problem.of(keys, np.array([1.0, 0.0, 1.0, 0.0])), np.zeros(2), 1e6)
    >>> p = outcome.state.p
    >>> bool(p @ [1.0, 3.0] / np.sqrt(10) / np.linalg.norm(p) > 1 - 1e-9)
    True
    """
    return run(Flow(problem, norm), start, max_pieces, watch)


def _size(blocks: Blocks) -> float:
    return float(np.sqrt(sum(np.vdot(block, block) for block in blocks)))


@dataclass
class _Path:
    """One piece in coordinates z of the space that holds every gradient: theta = start + basis'z."""

    problem: Problem
    start: Blocks
    basis: Vector | None
    most_evaluations: int
    last: Vector
    evaluations: int = 0

    @classmethod
    def of(cls, problem: Problem, start: Blocks, most_evaluations: int) -> _Path:
        basis = problem.span
        size = sum(block.size for block in start) if basis is None else len(basis)
        return cls(problem, start, basis, most_evaluations, np.zeros(size))

    @property
    def size(self) -> int:
        return len(self.last)

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
        blocks = self.blocks(z)
        down = self.problem.descent(self.problem.read(blocks), blocks)
        top = max(block.log for block in down)
        if top == -np.inf:
            raise _Stuck
        flat = np.concatenate([(block.array * np.exp(block.log_scale - top)).ravel() for block in down])
        if self.basis is not None:
            flat = self.basis @ flat
        return flat / np.linalg.norm(flat)
