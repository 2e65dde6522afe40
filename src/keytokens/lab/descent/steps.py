"""Gradient descents on attention: a method is a product, which way x how far.

Which way is minus the gradient of each block, known as a direction and the logarithm of its length (`Scaled`). How far:

Plain(eta)         eta |g|              gradient descent; the norm of p grows like log t
Normalised(eta)    eta                  each block by itself; the norm of p grows like the sum of the steps
Growing(eta)       eta or 2% of |p|     the longer one; the norm of p grows by a constant factor a step
Polyak(cap)        (L - L*) / |g|       at most `cap`; grows faster than any constant step

`eta` is a number or a function of the step number t = 1, 2, ...

Mirror descent makes its steps on the mirror of a block in the geometry of |.|_q, then maps back:

y = sign(W) |W|^(q-1)        the mirror of a block, from which W = sign(y) |y|^(1/(q-1))
y <- y - length g/|g|_r      r = q/(q-1): lengths are those of the dual norm, so Plain(eta) is y - eta g

q = 2 is gradient descent. The direction tends to the max-margin one of |.|_q, which `svm.solve_lq` finds. The mirror
itself is the state: mapped back and forth small entries of W would lose digits at every step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from ...base.checks import check_number, floats
from ...base.errors import refusal
from ...model.ragged import Vector
from ...training.loop import Status
from ..problems.geometry import check_exponent, conjugate, mirror, norm
from ..problems.losses import Scaled, log_abs
from ..problems.problem import Problem
from ..problems.reading import Blocks, Reading

Schedule = float | Callable[[int], float]


@dataclass(frozen=True, eq=False)
class Point:
    """Where a run is: parameters and what is read there, computed when first asked for."""

    problem: Problem
    blocks: Blocks
    t: int

    @property
    def p(self) -> Vector:
        """The parameter of the attention, p or W."""
        return self.blocks[-1]

    @cached_property
    def reading(self) -> Reading:
        return self.problem.read(self.blocks)

    @cached_property
    def descent(self) -> tuple[Scaled, ...]:
        """Minus the gradient, block by block."""
        return self.problem.descent(self.reading, self.blocks)

    @cached_property
    def log_sizes(self) -> Vector:
        """log |g| of each block."""
        return np.array([block.log for block in self.descent])

    @property
    def norm(self) -> float:
        return float(np.sqrt(np.vdot(self.p, self.p)))


class Step(Protocol):
    """How far each block moves."""

    def lengths(self, point: Point, t: int) -> Vector: ...


@dataclass(frozen=True)
class Plain:
    """Gradient descent: eta times the gradient.

    >>> from keytokens.training.loop import run
    >>> problem = Problem.of([[[1.0], [0.0]]], [1.0, 0.0])
    >>> norms = [run(Descent(problem, Plain(1.0)), np.zeros(1), steps).state.norm for steps in (10, 100, 1000)]
    >>> [round(norm, 1) for norm in norms]  # like log t
    [0.8, 3.2, 5.6]
    """

    eta: Schedule

    def __post_init__(self) -> None:
        _check_schedule("Plain", self.eta)

    def lengths(self, point: Point, t: int) -> Vector:
        return _at(self.eta, t) * np.exp(point.log_sizes)


@dataclass(frozen=True)
class Normalised:
    """A given length for each block; with a floor eps, as published code has it, eta |g| / (|g| + eps).

    A floor ends the run in effect where |g| falls below it; without one the direction stays exact.

    >>> from keytokens.training.loop import run
    >>> problem = Problem.of([[[1.0], [0.0]]], [1.0, 0.0])
    >>> run(Descent(problem, Normalised(0.5)), np.zeros(1), 100).state.norm
    50.0
    """

    eta: Schedule
    floor: float | tuple[float, ...] = 0.0  # for all blocks or for each

    def __post_init__(self) -> None:
        _check_schedule("Normalised", self.eta)
        for floor in np.atleast_1d(self.floor).tolist():
            check_number("Normalised", "floor", floor, 0.0)

    def lengths(self, point: Point, t: int) -> Vector:
        eta = np.where(point.log_sizes > -np.inf, _at(self.eta, t), 0.0)
        if not self.floor:
            return eta
        return eta * np.exp(point.log_sizes - np.logaddexp(point.log_sizes, log_abs(self.floor)))


@dataclass(frozen=True)
class Growing:
    """Normalised steps that lengthen with |p|, never with t: a run that stays near a finite minimum keeps small steps.

    The zigzag about the limiting ray is as wide as a step: so the direction is no better than 0.02.

    >>> from keytokens.training.loop import run
    >>> problem = Problem.of([[[1.0], [0.0]]], [1.0, 0.0])
    >>> run(Descent(problem, Growing(0.5), norm=1e6), np.zeros(1), 1000).status.name
    'FAR_ENOUGH'
    """

    eta: float

    def __post_init__(self) -> None:
        check_number("Growing", "eta", self.eta, 0.0, above=True)

    def lengths(self, point: Point, t: int) -> Vector:
        return np.where(point.log_sizes > -np.inf, max(self.eta, 0.02 * point.norm), 0.0)


@dataclass(frozen=True)
class Polyak:
    """The step (L - L*) / |g|^2 times the gradient, moving all blocks together by at most `cap`.

    >>> from keytokens.training.loop import run
    >>> problem = Problem.of([[[1.0], [0.0]]], [1.0, 0.0])
    >>> run(Descent(problem, Polyak(cap=2.0), norm=20.0), np.zeros(1), 1000).state.reading.selection.tolist()
    [0]
    """

    cap: float

    def __post_init__(self) -> None:
        check_number("Polyak", "cap", self.cap, 0.0, above=True)

    def lengths(self, point: Point, t: int) -> Vector:
        log_norm = float(np.logaddexp.reduce(2 * point.log_sizes)) / 2
        log_move = point.problem.gap(point.reading).log - log_norm
        # exp only after the cap: near saturation L - L* and |g| are both below any float
        return np.exp(min(log_move, float(np.log(self.cap))) + point.log_sizes - log_norm)


def power(eta: float, a: float) -> Callable[[int], float]:
    """The schedule eta t^-a.

    >>> power(2.0, 0.75)(16)
    0.25
    """
    check_number("power", "eta", eta, 0.0, above=True)
    check_number("power", "a", a, 0.0)
    return lambda t: float(eta * t**-a)


@dataclass(frozen=True, eq=False)
class DescentState(Point):
    """Changes at every step."""

    moved: bool = True


@dataclass(frozen=True)
class Descent:
    """Follow minus the gradient of `problem` by a step rule, for any choice of trained parameters.

    >>> from keytokens.training.loop import run
    >>> problem = Problem.of([[[-0.1, 1.0], [1.0, 0.0], [0.0, 0.0]]], [1.0, 0.9, 0.9])
    >>> outcome = run(Descent(problem, Normalised(0.1), norm=10.0), np.zeros(2), 1000)
    >>> outcome.status.value, outcome.state.reading.selection.tolist()
    ('stopped: the parameters reached the given norm', [0])
    """

    problem: Problem
    step_rule: Step
    norm: float = np.inf  # of the attention's parameter: stop there

    def __post_init__(self) -> None:
        owner = type(self).__name__
        check_problem(owner, self.problem)
        if not callable(getattr(self.step_rule, "lengths", None)) or isinstance(self.step_rule, type):
            raise refusal(owner, "step_rule", "be a step rule", self.step_rule, "for example Normalised(0.1)")
        if self.norm != np.inf:
            check_number(owner, "norm", self.norm, 0.0, above=True)

    def init(self, start: Vector | Sequence[Vector]) -> DescentState:
        return DescentState(self.problem, blocks_of("Descent", self.problem, start), 0)

    def step(self, state: DescentState) -> DescentState:
        t = state.t + 1
        moves = zip(state.blocks, self.step_rule.lengths(state, t), state.descent, strict=True)
        blocks = tuple(block + length * down.unit for block, length, down in moves)
        moved = not all(map(np.array_equal, blocks, state.blocks))
        return DescentState(self.problem, blocks, t, moved)

    def verdict(self, state: DescentState) -> Status | None:
        if not all(np.isfinite(block).all() for block in state.blocks):
            return Status.NOT_FINITE
        if not state.moved:
            return Status.STALLED
        if state.log_sizes.max() == -np.inf:
            return Status.STATIONARY
        return Status.FAR_ENOUGH if state.norm >= self.norm else None


def check_problem(owner: str, problem: Any) -> None:
    if not callable(getattr(problem, "descent", None)) or isinstance(problem, type):
        raise refusal(owner, "problem", "have a descent, as Problem has", problem)


def blocks_of(owner: str, problem: Problem, start: Vector | Sequence[Vector]) -> Blocks:
    """One array or list, or several of them in a tuple or list, as blocks of the problem's shapes: copies."""
    several = isinstance(start, tuple) or (isinstance(start, list) and len(problem.shapes) > 1)
    read = tuple(map(floats, start)) if several else (floats(start),)
    blocks = tuple(np.array(block) for block in read if block is not None)
    shapes = tuple(block.shape for block in blocks)
    if shapes != problem.shapes or len(blocks) < len(read):
        rule = "have the shapes of the trained parameters, " + ", ".join(map(str, problem.shapes))
        seen = start if len(blocks) < len(read) else shapes
        raise refusal(owner, "start", rule, seen, "give one array, or a tuple of arrays for several parameters")
    if not all(np.isfinite(block).all() for block in blocks):
        raise refusal(owner, "start", "be finite", start)
    return blocks


def _at(eta: Schedule, t: int) -> float:
    return eta(t) if callable(eta) else eta


def _check_schedule(owner: str, eta: Any) -> None:
    if not callable(eta):
        check_number(owner, "eta", eta, 0.0, above=True)


@dataclass(frozen=True, eq=False)
class MirrorState(DescentState):
    """Where a run of mirror descent is; sizes of gradients are dual norms."""

    mirrors: Blocks = ()
    q: float = 2.0

    @cached_property
    def sizes(self) -> tuple[float, ...]:
        """|g|_r of each block, less its scale."""
        r = conjugate(self.q)
        return tuple(norm(down.array, r) for down in self.descent)

    @cached_property
    def log_sizes(self) -> Vector:
        """log |g|_r of each block."""
        return log_abs(np.array(self.sizes)) + [down.log_scale for down in self.descent]

    @property
    def norm(self) -> float:
        """|W|_q."""
        return norm(self.p, self.q)


@dataclass(frozen=True)
class MirrorDescent(Descent):
    """Follow minus the gradient of `problem` in the mirror of |.|_q, every block by itself.

    >>> from keytokens.training.loop import run
    >>> problem = Problem.of([[[2.0, 1.0], [0.0, 0.0]]], [1.0, 0.0])
    >>> state = run(MirrorDescent(problem, Normalised(0.1), q=3.0), np.zeros(2), 500).state
    >>> (state.p / state.p[1]).round(6).tolist()  # sqrt(2): y is in proportion to (2, 1)
    [1.414214, 1.0]
    """

    q: float = 2.0

    def __post_init__(self) -> None:
        check_exponent("MirrorDescent", self.q)
        super().__post_init__()

    def init(self, start: Vector | Sequence[Vector]) -> MirrorState:
        blocks = blocks_of("MirrorDescent", self.problem, start)
        return MirrorState(self.problem, blocks, 0, True, tuple(mirror(block, self.q) for block in blocks), self.q)

    def step(self, state: DescentState) -> MirrorState:
        assert isinstance(state, MirrorState)
        t = state.t + 1
        moves = zip(state.mirrors, self.step_rule.lengths(state, t), state.descent, state.sizes, strict=True)
        mirrors = tuple(block + length * (down.array / (size or 1.0)) for block, length, down, size in moves)
        blocks = tuple(mirror(block, conjugate(self.q)) for block in mirrors)
        moved = not all(map(np.array_equal, mirrors, state.mirrors))
        return MirrorState(self.problem, blocks, t, moved, mirrors, self.q)
