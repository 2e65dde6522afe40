"""What figures share: rows as columns and back, runs of descents, and the errors of means and shares."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from ...model.ragged import Vector
from ...training.loop import run
from ..descent.steps import Descent, DescentState, Step
from ..endings import Endings
from ..problems.geometry import misalignment
from ..problems.problem import Problem
from .figure import OURS, Check, Table, table

Start = Vector | Sequence[Vector]
WIDE = 3.5  # standard deviations that a sample may be off


def records(rows: Iterable[Mapping[str, Any]]) -> Table:
    """Rows as columns.

    >>> records([{"t": 1, "p": 0.5}, {"t": 2, "p": 0.25}])["p"].tolist()
    [0.5, 0.25]
    """
    listed = list(rows)
    return table(**{name: np.array([row[name] for row in listed]) for name in listed[0]})


def last(found: Table) -> dict[str, Any]:
    """The last row, or the only one."""
    return {name: column[-1].item() for name, column in found.items()}


def sweep(row: Callable[..., Mapping[str, Any]], **grid: Iterable[Any]) -> Table:
    """A row for each point of a grid, the last setting first.

    >>> sweep(lambda x, y: {"x": x, "sum": x + y}, x=(1, 2), y=(10, 20))["sum"].tolist()
    [11, 21, 12, 22]
    """
    return records(row(**dict(zip(grid, point, strict=True))) for point in product(*grid.values()))


def stacked(parts: Iterable[Table]) -> Table:
    """Tables of the same columns, one below the other; those without a row have none."""
    listed = [part for part in parts if part]
    return {name: np.concatenate([part[name] for part in listed]) for name in (listed[0] if listed else ())}


def where(found: Table, **values: Any) -> Table:
    """The rows in which columns have these values.

    >>> where(table(q=[1, 1, 2], t=[1, 2, 1]), q=1)["t"].tolist()
    [1, 2]
    """
    here = np.logical_and.reduce([found[name] == value for name, value in values.items()])
    return {name: column[here] for name, column in found.items()}


def groupby(found: Table, *names: str) -> Iterator[tuple[tuple[Any, ...], Table]]:
    """The rows that agree in some columns, in the order in which they first appear.

    >>> [(key, group["t"].tolist()) for key, group in groupby(table(q=[2, 1, 2], t=[1, 2, 3]), "q")]
    [((2,), [1, 3]), ((1,), [2])]
    """
    for key in dict.fromkeys(zip(*(found[name].tolist() for name in names), strict=True)):
        yield key, where(found, **dict(zip(names, key, strict=True)))


def summarised(found: Table, names: Sequence[str], row: Callable[[Table], Mapping[str, Any]]) -> Table:
    """A row for each group of rows that agree in some columns: these, and what is said of the group.

    >>> summarised(table(q=[2, 1, 2], t=[1, 2, 3]), ["q"], lambda group: {"t": group["t"].sum()})["t"].tolist()
    [4, 2]
    """
    return records({**dict(zip(names, key, strict=True)), **row(group)} for key, group in groupby(found, *names))


def value_at(found: Table, t: int, column: str) -> float:
    """The entry of a column at a step."""
    return float(where(found, t=t)[column][0])


# Runs ----------------------------------------------------------------------------------------------------------------


def states(problem: Problem, step: Step, start: Start, steps: int) -> dict[int, DescentState]:
    """The states of a run by step."""
    seen: dict[int, DescentState] = {}
    run(Descent(problem, step), start, steps, lambda state: seen.update({state.t: state}))
    return seen


def endings(found: Endings, **given: Any) -> Table:
    """How each run ended, behind what is given of it."""
    flags = {"saturated": found.saturated, "local": found.is_local, "best": found.is_global}
    return table(**given, attention=found.attention, **flags)


def cosine(p: Vector, target: Any) -> float:
    return 1 - misalignment(p, target)


def walks(problem: Problem, step: Step, starts: Sequence[Vector], steps: int) -> Table:
    """Runs from several starts in the plane, one below the other: `run` is the number of the start."""
    return records(
        {"run": k, "t": t, "p1": state.p[0], "p2": state.p[1]}
        for k, start in enumerate(starts)
        for t, state in states(problem, step, start, steps).items()
    )


def is_direction(name: str, found: Sequence[float], x: float, y: float) -> list[Check]:
    """Both coordinates, as solved."""
    return [Check(f"{name}, {part}", a, b, 1e-9, OURS) for part, a, b in zip(("p₁", "p₂"), found, (x, y), strict=True)]


def exponent(x: Vector, y: Vector) -> float:
    """a of y ~ c x^a."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


# Errors --------------------------------------------------------------------------------------------------------------


def standard_error(x: Vector, other: float = np.inf) -> float:
    """Of the difference of a sample's mean and that of another sample of so many."""
    return float(x.std(ddof=1) * np.sqrt(1 / len(x) + 1 / other))


def difference(one: float, n_one: int, other: float, n_other: int) -> float:
    """3.5 standard deviations of the difference of two shares in samples of these sizes.

    >>> round(difference(0.5, 1000, 0.5, 1000), 3)
    0.078
    """
    pooled = (one * n_one + other * n_other) / (n_one + n_other)
    return float(WIDE * np.sqrt(pooled * (1 - pooled) * (1 / n_one + 1 / n_other)))
