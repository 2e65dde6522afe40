"""The one loop of the package. A method is `init / step / verdict` on an explicit state; counting is done here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Generic, Protocol, TypeVar

from ..base.checks import check_number
from ..base.errors import refusal


class Status(Enum):
    """How a run ended, in a sentence.

    >>> Status.OUT_OF_STEPS.value
    'stopped after the given number of steps'
    """

    CONVERGED = "converged: a step lowers the objective by less than the tolerance"
    STALLED = "converged: no step lowers the objective any further in this arithmetic"
    OUT_OF_STEPS = "stopped after the given number of steps"
    NOT_FINITE = "stopped: the objective became infinite or not a number"
    # of runs that are meant to go on for ever: on attention the loss has no minimum, only a direction
    FAR_ENOUGH = "stopped: the parameters reached the given norm"
    STATIONARY = "ended near a stationary point: the gradient is zero there, or turns back a short way ahead"
    LOST = "stopped: the path cannot be followed any further in this arithmetic"


State = TypeVar("State")
Start_contra = TypeVar("Start_contra", contravariant=True)


class Method(Protocol[Start_contra, State]):
    """A descent, a flow or a path: how to begin, how to go on, when to end."""

    def init(self, start: Start_contra) -> State: ...

    def step(self, state: State) -> State: ...

    def verdict(self, state: State) -> Status | None:
        """None as long as the run should go on."""


@dataclass(frozen=True)
class Outcome(Generic[State]):
    """Where a run ended, why, and after how many steps.

    >>> Outcome(state=1.0, status=Status.CONVERGED, steps=3).status.name
    'CONVERGED'
    """

    state: State
    status: Status
    steps: int


def run(
    method: Method[Start_contra, State],
    start: Start_contra,
    max_steps: int,
    watch: Callable[[State], None] | None = None,
    steps: int = 0,
) -> Outcome[State]:
    """Run a method; `watch` sees every state, the first one included, and `steps` were made by an earlier run.

    >>> class Halving:
    ...     def init(self, start): return start
    ...     def step(self, state): return state / 2
    ...     def verdict(self, state): return Status.CONVERGED if state < 0.1 else None
    >>> outcome = run(Halving(), 1.0, max_steps=100)
    >>> outcome.state, outcome.status.name, outcome.steps
    (0.0625, 'CONVERGED', 4)
    >>> run(Halving(), 1.0, max_steps=2).status.name
    'OUT_OF_STEPS'
    """
    if isinstance(method, type) or not all(
        callable(getattr(method, name, None)) for name in ("init", "step", "verdict")
    ):
        raise refusal("run", "method", "have init, step and verdict", method, "for example Descent or Flow")
    check_number("run", "max_steps", max_steps, 0, whole=True)
    if watch is not None and not callable(watch):
        raise refusal("run", "watch", "be a function of a state or None", watch)
    state = method.init(start)
    while True:
        if watch is not None:
            watch(state)
        verdict = method.verdict(state)
        if verdict is not None:
            return Outcome(state, verdict, steps)
        if steps >= max_steps:
            return Outcome(state, Status.OUT_OF_STEPS, steps)
        state = method.step(state)
        steps += 1
