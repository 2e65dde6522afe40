"""A table of texts without labels, with what a teacher says of them in columns of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base.errors import DataError, shorten
from ..estimators.teachers import GIVEN, SELF, Teacher, names_of
from ..estimators.unseen import Hashes
from ..io.reading import read_batches
from ..io.table import Table, Wanted, as_numbers, texts_of


@dataclass(frozen=True)
class UnlabeledTable:
    """Texts of a table, read in batches, as often as a fit needs them.

    `teacher` is "self", or how the names of the columns with probabilities begin: the name of a class follows.
    """

    source: str
    wanted: Wanted
    teacher: str = SELF

    def given(self, but: Callable[[], Hashes]) -> dict[str, Any]:
        """What a fit in batches takes; texts with one of these names, known when they are read, are left out."""
        tables = read_batches(self.source, wanted=self.wanted)
        if self.teacher == SELF:
            return {"unlabeled": (texts for texts, _ in self._read(tables, but)), "teacher": Teacher()}
        first = next(tables)
        names = sorted(name for name in first.columns if name.startswith(self.teacher) and name != self.teacher)
        if len(names) < 2:
            rule = f"be self, or begin the names of columns with probabilities, as in {self.teacher}CLASS"
            seen = f"saw the columns {shorten(list(first.columns))}"
            raise DataError(f"{first.name}: --teacher must {rule}; {seen}.")
        classes = as_numbers([name.removeprefix(self.teacher) for name in names])
        order = sorted(range(len(names)), key=classes.__getitem__)
        columns = [names[i] for i in order]
        teacher = Teacher(GIVEN, classes=np.array([classes[i] for i in order]))
        read = self._read(chain([first], tables), but, columns)
        return {"unlabeled": read, "teacher": teacher}

    def _read(
        self, tables: Iterator[Table], but: Callable[[], Hashes], columns: list[str] | None = None
    ) -> Iterator[tuple[list[str], NDArray[Any]]]:
        for table in tables:
            texts = texts_of(table, self.wanted.of(table)[0])
            kept = np.flatnonzero(~np.isin(names_of(texts), but()))
            told = np.zeros(0) if columns is None else _numbers(table, columns)[kept]
            yield [texts[i] for i in kept.tolist()], told


def _numbers(table: Table, columns: list[str]) -> NDArray[np.float64]:
    """(n, K) the cells of these columns; the rest is checked where they are used."""
    found = np.empty((len(table), len(columns)))
    for k, name in enumerate(columns):
        for i, value in enumerate(table.columns[name]):
            try:
                found[i, k] = float(value)
            except (TypeError, ValueError):
                where = f"{table.name}, {table.place(i)}"
                raise DataError(f"{where}: {shorten(name)} must be a probability; saw {shorten(value)}.") from None
    return found
