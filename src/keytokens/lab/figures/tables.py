"""What the figures of descents share: runs as columns, and the panel that shows how fast they turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...model.ragged import Vector
from ...training.loop import run
from ..descent.steps import Descent, DescentState, Step
from ..problems.geometry import misalignment
from ..problems.selection_loss import Problem, SelectionProblem
from ..problems.trials import Trials
from .figure import Table, table
from .look import GREY, STYLES

if TYPE_CHECKING:
    from matplotlib.axes import Axes


Start = Vector | Sequence[Vector]


def states(problem: Problem, step: Step, start: Start, steps: int) -> dict[int, DescentState]:
    """The states of a run by step."""
    seen: dict[int, DescentState] = {}
    run(Descent(problem, step), start, steps, lambda state: seen.update({state.t: state}))
    return seen


def final(problem: Problem, step: Step, start: Start, steps: int) -> DescentState:
    return run(Descent(problem, step), start, steps).state


def cosine(p: Vector, target: Any) -> float:
    return 1 - misalignment(p, target)


def walks(problem: Problem, step: Step, starts: Sequence[Vector], steps: int) -> Table:
    """Runs from several starts, one below the other: `run` is the number of the start."""
    rows = [(k, t, *one.p) for k, start in enumerate(starts) for t, one in states(problem, step, start, steps).items()]
    number, t, p1, p2 = (np.array(column) for column in zip(*rows, strict=True))
    return table(run=number, t=t, p1=p1, p2=p2)


def distances(
    problem: SelectionProblem, starts: Sequence[Vector], targets: Sequence[Vector], at: Sequence[int]
) -> Table:
    """1 - cos to a target, one a start, along exact normalised descent with steps of 0.1, all starts at once."""
    trials, p = Trials.repeated(problem, len(starts)), np.array(starts, np.float64)
    rows: list[tuple[int, int, float, float]] = []
    done = 0
    for t in at:
        p, done = trials.descend(t - done, 0.1, start=p), t
        rows += [(k, t, misalignment(p[k], targets[k]), float(np.linalg.norm(p[k]))) for k in range(len(starts))]
    number, step, away, norm = (np.array(column) for column in zip(*rows, strict=True))
    return table(run=number, t=step, one_minus_cos=away, norm=norm)


def rows_of(found: Table, number: int) -> Table:
    """The rows of one run."""
    return {name: column[found["run"] == number] for name, column in found.items()}


def value_at(found: Table, t: int, column: str) -> float:
    """The entry of a column at a step; nan if the table has no such step."""
    here = found[column][found["t"] == t]
    return float(here[0]) if len(here) else float("nan")


def speed(axes: Axes, found: Table, names: Sequence[str], anchor: tuple[float, float]) -> None:
    """1 - cos against steps, with the slope of 1/t² through a point."""
    for k, (name, style) in enumerate(zip(names, STYLES, strict=True)):
        away = rows_of(found, k)
        axes.loglog(away["t"], away["one_minus_cos"], **style.all, markevery=4, label=name)
    t = np.array([anchor[0], float(found["t"].max())])
    axes.loglog(t, anchor[1] * (t / anchor[0]) ** -2.0, color=GREY, linewidth=1, label="slope of 1/t²")
    axes.set_xlabel("steps t")
    axes.set_ylabel("1 − cos(p, max-margin direction)")
