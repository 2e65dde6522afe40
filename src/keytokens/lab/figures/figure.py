"""What a figure is: tables that are computed, a drawing of them, and checks of their numbers."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Table = dict[str, NDArray[Any]]  # columns of one length
Tables = dict[str, Table]  # by name
Draw = Callable[..., None]  # tables and panels

# who says what is expected
PAPER = "paper"
CODE = "published code"
OURS = "ours"


class Rule(Enum):
    """How a measured number must stand to the expected one."""

    EQUAL = "="
    AT_LEAST = "≥"
    AT_MOST = "≤"


@dataclass(frozen=True)
class Check:
    """A number of a figure beside the one that is expected; equal to within the tolerance, or on one side of it."""

    name: str
    measured: float
    expected: float
    tolerance: float
    source: str
    note: str = ""  # where two sources differ: which is right, and why
    rule: Rule = Rule.EQUAL

    @classmethod
    def printed(cls, name: str, measured: float, expected: str, source: str, note: str = "") -> Check:
        """Equal to a number as it is printed, up to 0.6 of its last digit.

        >>> Check.printed("norm", 19.7524, "19.75", OURS).wanted
        '19.75 ± 0.006'
        """
        digits = len(expected.partition(".")[2])
        return cls(name, measured, float(expected), 0.6 * 10.0**-digits, source, note)

    @classmethod
    def at_least(cls, name: str, measured: float, bound: float, source: str, note: str = "") -> Check:
        """No smaller than a bound."""
        return cls(name, measured, bound, 0, source, note, Rule.AT_LEAST)

    @classmethod
    def at_most(cls, name: str, measured: float, bound: float, source: str, note: str = "") -> Check:
        """No larger than a bound."""
        return cls(name, measured, bound, 0, source, note, Rule.AT_MOST)

    @property
    def passed(self) -> bool:
        """
        >>> Check("norm", 1.05, 1.0, 0.1, OURS).passed, Check("norm", float("nan"), 1.0, 0.1, OURS).passed
        (True, False)
        """
        if self.rule is Rule.AT_LEAST:
            return bool(self.measured >= self.expected - self.tolerance)
        if self.rule is Rule.AT_MOST:
            return bool(self.measured <= self.expected + self.tolerance)
        return bool(abs(self.measured - self.expected) <= self.tolerance)

    @property
    def wanted(self) -> str:
        """What is expected, in signs.

        >>> Check("norm", 1.05, 1.0, 0.1, OURS).wanted, Check("cos", 0.5, 0.9, 0, OURS, rule=Rule.AT_LEAST).wanted
        ('1 ± 0.1', '≥ 0.9')
        """
        sign = "" if self.rule is Rule.EQUAL else self.rule.value + " "
        number = f"{sign}{self.expected:.7g}" + (f" ± {self.tolerance:.2g}" if self.tolerance else "")
        return number.replace("-", "−")

    @property
    def seen(self) -> str:
        """What was measured, in signs."""
        return f"{self.measured:.7g}".replace("-", "−")

    @property
    def verdict(self) -> str:
        return "pass" if self.passed else "FAIL"

    def to_dict(self) -> dict[str, Any]:
        """For JSON, which has no number that is none."""
        return {
            "name": self.name,
            "measured": float(self.measured) if math.isfinite(self.measured) else None,
            "rule": self.rule.value,
            "expected": float(self.expected),
            "tolerance": float(self.tolerance),
            "source": self.source,
            "passed": self.passed,
            "note": self.note,
        }


class Sheet(NamedTuple):
    """The paper of a figure: panels side by side, row by row."""

    columns: int = 1
    height: float = 3.6  # of the whole, in inches
    widths: tuple[float, ...] | None = None  # of the panels of a row, beside each other
    rows: int = 1


ONE_PANEL = Sheet()


@dataclass(frozen=True)
class Figure:
    """One figure, as `figure` registers it."""

    name: str
    title: str
    compute: Callable[[bool], Tables]
    checks: Callable[[Tables], Sequence[Check]]
    draw: Draw
    caption: str
    full: Callable[[], Tables] | None = None
    sheet: Sheet = ONE_PANEL


REGISTRY: list[Figure] = []  # in the order of the page


def figure(
    name: str,
    title: str,
    compute: Callable[[bool], Tables],
    checks: Callable[[Tables], Sequence[Check]],
    *,
    full: Callable[[], Tables] | None = None,
    caption: str | None = None,
    sheet: Sheet = ONE_PANEL,
) -> Callable[[Draw], Draw]:
    """Register the function that draws a figure on matplotlib Axes. Its docstring is the caption, unless one is given.

    `compute` takes `small` and returns tables by name, with all that is drawn or checked: no clock, no unseeded random
    numbers, no download; small is for the tests. `checks` takes the tables. `full` returns them in the published size,
    where that takes longer than two minutes and `compute` takes a sample. A caption says what a paper states as the
    paper's, what was found here as ours. `name` is what is typed; the names of files begin with it.
    """

    def register(draw: Draw) -> Draw:
        said = " ".join((caption or draw.__doc__ or "").split())
        REGISTRY.append(Figure(name, title, compute, checks, draw, said, full, sheet))
        return draw

    return register


def numbered_notes(checks: Sequence[Check]) -> list[str]:
    """The notes of some checks, each once: a check refers to its note by the place in this list, from 1."""
    return list(dict.fromkeys(check.note for check in checks if check.note))


def table(**columns: Any) -> Table:
    """Columns as arrays of one length; a single value is repeated.

    >>> table(t=[0, 1], norm=[0.0, 0.5], rule="plain")["rule"].tolist()
    ['plain', 'plain']
    """
    arrays = {name: np.asarray(column) for name, column in columns.items()}
    shapes = {array.shape for array in arrays.values() if array.ndim} or {(1,)}
    if len(shapes) > 1:
        raise ValueError(f"columns of different shapes: { {name: a.shape for name, a in arrays.items()} }")
    (shape,) = shapes
    return {name: array if array.ndim else np.full(shape, array) for name, array in arrays.items()}


def csv_bytes(columns: Table) -> bytes:
    """A table as a file: one line a row, numbers with ten digits.

    >>> csv_bytes(table(t=[1, 2], p=[0.5, 1 / 3]))
    b't,p\\n1,0.5\\n2,0.3333333333\\n'
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in zip(*(column.tolist() for column in columns.values()), strict=True):
        writer.writerow(f"{value:.10g}" if isinstance(value, float) else str(value) for value in row)
    return text.getvalue().encode("utf-8")
