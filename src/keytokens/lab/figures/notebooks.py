"""Every published experiment again: as published in single and in double precision, and exactly.

An experiment is a function of the arithmetic that gives numbers by name (`notebook_runs`). `float32` and `float64` are
plain arithmetic with the published floors; `exact` has neither floor nor underflow, and it alone solves max-margin
problems.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from ...base.errors import refusal
from .figure import CODE, Check, Table, Tables, table
from .tables import where

EXACT = "exact"
HOW = ("float32", "float64", EXACT)
STORED, PLOT, TEXT = "stored output", "read off a plot", "text"
Found = Mapping[str, float]
Measure = Callable[[str], Found]


@dataclass(frozen=True)
class Experiment:
    """`published`: what was published of a quantity, and where it stands; `known`: what its code gives, in digits."""

    name: str
    paper: str
    measure: Measure
    published: Mapping[str, tuple[str, str]]
    known: Mapping[str, tuple[str, str]]  # in single and in double precision
    note: str  # what a reader must know


class Row(NamedTuple):
    """One quantity of one experiment; nan where an arithmetic has none, seconds of the experiment as a whole."""

    experiment: str
    paper: str
    quantity: str
    published: str
    source: str
    float32: float
    float64: float
    exact: float
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """For JSON, which has no number that is none."""
        values = {how: None if np.isnan(value := getattr(self, how)) else value for how in HOW}
        return {**self._asdict(), **values, "seconds": round(self.seconds, 2)}


EXPERIMENTS: dict[str, Experiment] = {}


def experiment(
    name: str,
    paper: str,
    published: Mapping[str, tuple[str, str]],
    note: str = "",
    known: Mapping[str, tuple[str, str]] | None = None,
) -> Callable[[Measure], Measure]:
    """Register a function of the arithmetic."""

    def register(measure: Measure) -> Measure:
        EXPERIMENTS[name] = Experiment(name, paper, measure, published, known or {}, " ".join(note.split()))
        return measure

    return register


def experiments(names: Sequence[str] = ()) -> list[Experiment]:
    """The experiments with these names, or all."""
    import_module(".notebook_runs", __package__)
    for name in names:
        if name not in EXPERIMENTS:
            raise refusal("notebooks", "NAME", f"be one of {', '.join(EXPERIMENTS)}", name)
    return [EXPERIMENTS[name] for name in dict.fromkeys(names or EXPERIMENTS)]


def rerun(one: Experiment) -> Iterator[Row]:
    """The rows of one experiment: published quantities first, then what else is measured."""
    begin = time.perf_counter()
    found = [one.measure(how) for how in HOW]
    seconds = time.perf_counter() - begin
    for quantity in dict.fromkeys([*one.published, *(name for some in reversed(found) for name in some)]):
        said, source = one.published.get(quantity, ("", ""))
        single, double, exact = (float(some.get(quantity, np.nan)) for some in found)
        yield Row(one.name, one.paper, quantity, said, source, single, double, exact, seconds)


# For figures: the same numbers as a table, and checks of them --------------------------------------------------------


def published_table(name: str) -> Table:
    """One experiment in all three arithmetics."""
    found = list(rerun(*experiments([name])))
    return table(**{column: [getattr(row, column) for row in found] for column in ("quantity", *HOW)})


def published_checks(name: str, tables: Tables) -> list[Check]:
    """Stored output beside exact numbers, and what is known of the published runs, for the table `published`."""
    (one,) = experiments([name])
    stored = [(quantity, EXACT, said) for quantity, (said, source) in one.published.items() if source == STORED]
    runs = [(quantity, how, said) for quantity, both in one.known.items() for how, said in zip(HOW, both, strict=False)]
    return [
        Check.printed(f"{quantity}, {how}", where(tables["published"], quantity=quantity)[how][0], said, CODE, one.note)
        for quantity, how, said in (*stored, *runs)
    ]


# For readers ----------------------------------------------------------------------------------------------------------

COLUMNS = ("experiment", "quantity", "published", *HOW, "seconds")
MARKS = {STORED: "s", PLOT: "p", TEXT: "t", "": ""}


def text(rows: Sequence[Row]) -> str:
    """The rows as a table, the notes below it."""
    last, cells = "", list[tuple[str, ...]]([COLUMNS])
    for row in rows:
        published = f"{row.published} {MARKS[row.source]}" if row.published else "-"
        values = [_short(getattr(row, how)) for how in HOW]
        first = (row.experiment, f"{row.seconds:.1f}") if row.experiment != last else ("", "")
        cells.append((first[0], row.quantity, published, *values, first[1]))
        last = row.experiment
    wide = [max(map(len, column)) for column in zip(*cells, strict=True)]
    sides = [str.ljust, str.ljust, *[str.rjust] * (len(COLUMNS) - 2)]
    lines = ["  ".join(side(x, w) for side, x, w in zip(sides, row, wide, strict=True)).rstrip() for row in cells]
    for k in reversed(range(len(rows))):
        if not k or rows[k].paper != rows[k - 1].paper:
            lines.insert(k + 1, f"({rows[k].paper})")
    shown = dict.fromkeys(row.experiment for row in rows)
    notes = [f"{name}: {EXPERIMENTS[name].note}" for name in shown if EXPERIMENTS[name].note]
    marks = "published: " + ", ".join(f"{mark} {source}" for source, mark in MARKS.items() if mark)
    return "\n".join([*lines, "", marks, *notes])


def _short(x: float) -> str:
    """
    >>> _short(0.99977), _short(15.7047), _short(2.3e-5), _short(float("nan"))
    ('0.99977', '15.705', '2.3e-05', '-')
    """
    return "-" if np.isnan(x) else f"{x:.2g}" if 0 < abs(x) < 1e-3 else f"{x:.5g}"
