"""Reading tables, in batches of rows or whole; a whole table is its batches, one below the other.

CSV and Parquet name their columns first. JSON lines may bring a new field in their last line: for batches they are read
twice, for the names and for the rows.
"""

from __future__ import annotations

import csv
import json
import os
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from itertools import accumulate, chain
from pathlib import Path
from typing import IO, Any

from ..errors import DataError, shorten
from .columns import Table
from .kinds import COMPRESSIONS, FORMATS, kind_of, need_pyarrow
from .sources import LONGEST, Watched, decoding, opened, seekable

__all__ = ["BATCH", "read_batches", "read_table"]

BATCH = 4096  # rows: enough to drown the overhead, and to guess columns from the first batch as from the whole
_HELD = 1 << 24  # characters of a batch, beyond which it is not filled up: texts may be long
_BARE = 1_000_000  # JSON lines without any field that may come before the first field
_CELLS = 1 << 24  # that JSON lines may always have
_SPARSE = 100  # times as many cells as values are too many, beyond that
_DEPTH = 50  # of a value inside of values


def read_table(source: str, kind: str | None = None, called: str | None = None) -> Table:
    """Read a table; the ending of the name says what it is unless `kind` does. Messages may call it otherwise."""
    if os.path.isdir(source):  # not Path.is_dir, which raises where a name is too long
        return _joined(list(_read_folder(Path(source), kind, BATCH)), _name(source, called))
    name = _name(source, called)
    kind = kind or _kind_of_source(source, name)
    return _joined(list(_some(_pieces(source, kind, name, BATCH, whole=True), name)), name)


def read_batches(source: str, kind: str | None = None, called: str | None = None, rows: int = BATCH) -> Iterator[Table]:
    """The same table in batches of up to so many rows, all with the same columns; the memory holds one of them."""
    if os.path.isdir(source):  # not Path.is_dir, which raises where a name is too long
        yield from _read_folder(Path(source), kind, rows)
        return
    name = _name(source, called)
    kind = kind or _kind_of_source(source, name)
    if kind != "jsonl":
        yield from _some(_pieces(source, kind, name, rows), name)
    elif os.path.isfile(source):
        yield from _same_columns(source, name, rows)
    else:  # a stream that flows once
        with seekable(source, name) as spool:
            yield from _same_columns(source, name, rows, spool)


def _kind_of_source(source: str, name: str) -> str:
    """By the name of what is there: a path that leads nowhere may be spelled wrong, whatever it ends in."""
    try:
        return kind_of(source)
    except DataError:
        if not os.path.exists(source):
            raise DataError(f"{name}: cannot be read: no such file or directory.") from None
        raise


def _read_folder(folder: Path, kind: str | None, rows: int) -> Iterator[Table]:
    """The tables in a folder, by name, one below the other; all with the columns of the first."""
    files = sorted(path for path in folder.iterdir() if path.is_file() and _is_table(path, kind))
    if not files:
        raise DataError(f"{folder}: the folder must hold tables ({', '.join(FORMATS)}); saw none.")
    first: list[str] | None = None
    for path in files:
        for piece in read_batches(os.fspath(path), kind, rows=rows):
            first = first or list(piece.columns)
            if set(piece.columns) != set(first):
                differ = ", ".join(shorten(name) for name in sorted(set(piece.columns) ^ set(first))[:10])
                raise DataError(f"{path}: its columns must be those of {files[0]}; they differ in {differ}.")
            yield Table(piece.name, {name: piece.columns[name] for name in first}, piece.place)


def _is_table(path: Path, kind: str | None) -> bool:
    """By its name; hidden files are none."""
    endings = [ending.lower() for ending in path.suffixes[-2:] if ending.lower() not in COMPRESSIONS]
    return not path.name.startswith((".", "_")) and (kind is not None or (endings or [""])[-1] in FORMATS)


def _name(source: str, called: str | None) -> str:
    return called or ("standard input" if source == "-" else source)


def _same_columns(source: str, name: str, rows: int, spool: IO[bytes] | None = None) -> Iterator[Table]:
    """JSON lines with all fields of the file in every batch."""
    names: dict[str, None] = {}
    for piece in _some(_pieces(source, "jsonl", name, rows, spool), name):
        names |= dict.fromkeys(piece.columns)
    if spool is not None:
        spool.seek(0)
    for piece in _pieces(source, "jsonl", name, rows, spool):
        if len(names) * len(piece) > _CELLS:
            values = sum(value is not None for column in piece.columns.values() for value in column)
            _check_cells(len(names) * len(piece), values, name)
        yield Table(name, {key: piece.columns.get(key) or [None] * len(piece) for key in names}, piece.place)


def _some(pieces: Iterator[Table], name: str) -> Iterator[Table]:
    """The pieces, of which there must be one."""
    first = next(pieces, None)
    if first is None:
        raise DataError(f"{name}: the file must hold at least one row; saw none. Cure: is it the right file?")
    yield from chain([first], pieces)


def _joined(pieces: list[Table], name: str) -> Table:
    """One table; where a piece lacks a column, its rows have None there."""
    if len(pieces) == 1:
        return pieces[0]
    names = dict.fromkeys(key for piece in pieces for key in piece.columns)
    columns = {key: [v for p in pieces for v in p.columns.get(key) or [None] * len(p)] for key in names}
    starts = list(accumulate(map(len, pieces[:-1]), initial=0))
    places = [piece.place for piece in pieces]

    def place(i: int) -> str:
        piece = bisect_right(starts, i) - 1
        return places[piece](i - starts[piece])

    return Table(name, columns, place)


def _pieces(
    source: str, kind: str, name: str, rows: int, spool: IO[bytes] | None = None, whole: bool = False
) -> Iterator[Table]:
    """The rows that there are, none of the pieces empty; `whole`: all of them will be held at once."""
    if kind == "parquet":
        need_pyarrow("reading")
        from .parquet import read_parquet

        with seekable(source, name) as file:
            yield from read_parquet(file, name, rows, whole)
        return
    with opened(source, name, spool) as watched:
        yield from _read_jsonl(watched, rows, whole) if kind == "jsonl" else _read_csv(watched, kind, rows)


def _at_lines(name: str, columns: dict[str, list[Any]], lines: list[int]) -> Table:
    return Table(name, columns, lambda i: f"line {lines[i]}")


def _read_csv(watched: Watched, kind: str, most: int) -> Iterator[Table]:
    csv.field_size_limit(LONGEST)
    name = watched.name
    with decoding(watched, newline="") as text:
        first_line = text.readline()
        # whatever separates the header's names: Excel writes semicolons in half of the world
        delimiter = "\t" if kind == "tsv" else max(",;\t|", key=first_line.count)
        reader = csv.reader(chain([first_line], text), delimiter=delimiter)
        header: list[str] | None = None
        rows: list[list[str]] = []
        lines: list[int] = []
        held = 0
        for line, row in _numbered(reader, name):
            if header is None:
                header = _check_header(row, name)
                continue
            if len(row) != len(header):
                raise DataError(
                    f"{name}, line {line}: a row must have {len(header)} fields like the header; saw {len(row)}. "
                    "Cure: quote fields that hold the separator."
                )
            rows.append(row)
            lines.append(line)
            held += sum(map(len, row))
            if len(rows) == most or held >= _HELD:
                yield _at_lines(name, _columns(header, rows), lines)
                rows, lines, held = [], [], 0
        if header and rows:
            yield _at_lines(name, _columns(header, rows), lines)


def _numbered(reader: Any, name: str) -> Iterator[tuple[int, list[str]]]:
    """Rows that hold something, each with the line on which it begins: a quoted field may go on over several."""
    before = 0
    try:
        for row in reader:
            if row:
                yield before + 1, row
            before = reader.line_num
    except csv.Error as error:
        raise DataError(f"{name}, line {reader.line_num}: not valid CSV: {error}.") from None


def _columns(header: list[str], rows: list[list[str]]) -> dict[str, list[Any]]:
    return dict(zip(header, map(list, zip(*rows, strict=True)), strict=True))


def _check_header(row: list[str], name: str) -> list[str]:
    names = [field.strip() for field in row]
    if len(set(names)) < len(names):
        twice = next(field for field, times in Counter(names).items() if times > 1)
        raise DataError(f"{name}, line 1: column names must differ; saw {shorten(twice)} twice.")
    return names


def _read_jsonl(watched: Watched, most: int, whole: bool) -> Iterator[Table]:
    """Each piece has the fields of those before it; rows without a field wait for one, as columns count the rows."""
    names: dict[str, None] = {}
    records: list[dict[str, Any]] = []
    lines: list[int] = []
    rows, values = 0, 0  # that are held at once
    held = 0

    def piece() -> Table:
        nonlocal rows, values
        rows = rows * whole + len(records)
        values = values * whole + sum(map(len, records))
        _check_cells(len(names) * rows, values, watched.name)
        return _at_lines(watched.name, {key: [record.get(key) for record in records] for key in names}, lines)

    with decoding(watched, newline="\n") as text:
        for number, line in enumerate(text, start=1):
            if not line.strip():
                continue
            records.append(_record(line, f"{watched.name}, line {number}"))
            lines.append(number)
            names |= dict.fromkeys(records[-1])
            held += len(line)
            if (len(records) >= most or held >= _HELD) and names:
                yield piece()
                records, lines, held = [], [], 0
            elif len(records) > _BARE:
                raise DataError(f"{watched.name}: the first {_BARE:,} rows have no field at all.")
    if records and names:
        yield piece()


def _record(line: str, where: str) -> dict[str, Any]:
    line = line.removesuffix("\n")
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        raise DataError(f"{where}: must be one JSON object; saw {shorten(line)}.") from None
    if line.count("[") + line.count("{") > _DEPTH and _is_deep(record):
        raise DataError(f"{where}: values may lie {_DEPTH} deep inside of each other; saw deeper ones.")
    if not isinstance(record, dict):
        raise DataError(f"{where}: must be a JSON object with named fields; saw {shorten(record)}.")
    return record


def _is_deep(value: Any) -> bool:
    """Whether the values inside of values go on for more than `_DEPTH` levels."""
    level = [value]
    for _ in range(_DEPTH):
        level = [
            inner
            for each in level
            if isinstance(each, (dict, list))
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
    return any(isinstance(each, (dict, list)) for each in level)


def _check_cells(cells: int, values: int, name: str) -> None:
    """Refuse a table that would be nearly all holes: rows with fields of their own each would fill any memory."""
    if cells > _CELLS and cells > _SPARSE * values:
        rule = f"a table of {cells:,} cells must have a value in one of {_SPARSE}"
        raise DataError(f"{name}: {rule}; saw {values:,} values. Cure: give all rows the same fields.")
