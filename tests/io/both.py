"""Tables read both ways: as a whole, and in batches one below the other."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from keytokens import DataError
from keytokens.io import read_batches, read_table
from keytokens.io.table import Table


def put(folder: Path, name: str, content: str | bytes) -> str:
    """A file with this content; its path."""
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(folder / name)


def joined(batches: Iterable[Table]) -> tuple[dict[str, list[Any]], list[str]]:
    """Columns and places of batches, which must agree on their columns."""
    columns: dict[str, list[Any]] = {}
    places: list[str] = []
    for batch in batches:
        assert len(batch)
        assert not columns or list(columns) == list(batch.columns)
        for name, values in batch.columns.items():
            columns.setdefault(name, []).extend(values)
        places += [batch.place(i) for i in range(len(batch))]
    return columns, places


def both_ways(source: str, kind: str | None = None, rows: int = 1) -> Table:
    """The table, for those who know what it must be."""
    table = read_table(source, kind)
    whole = table.columns, [table.place(i) for i in range(len(table))]
    assert joined(read_batches(source, kind, rows=rows)) == whole
    return table


def refused(source: str, why: str) -> None:
    """In one line, which matches."""
    for read in (read_table, lambda source: list(read_batches(source, rows=2))):
        with pytest.raises(DataError) as error:
            read(source)
        said = str(error.value)
        assert said.isprintable()
        assert len(said) < 2000
        assert re.search(why, said), said
