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
from dataclasses import replace
from itertools import accumulate, chain, islice
from pathlib import Path
from typing import IO, Any

from ..base.errors import DataError, shorten
from .sources import COMPRESSIONS, FORMATS, LONGEST, Watched, decoding, kind_of, need_pyarrow, opened, seekable
from .table import Table, Wanted, are_names

BATCH = 4096  # rows: enough to drown the overhead, and to guess columns from the first batch as from the whole
_HELD = 1 << 24  # characters of a batch, beyond which it is not filled up: texts may be long
_BARE = 1_000_000  # JSON lines without any field that may come before the first field
_CELLS = 1 << 24  # that JSON lines may always have
_SPARSE = 100  # times as many cells as values are too many, beyond that
_DEPTH = 50  # of a value inside of values


def read_table(source: str, kind: str | None = None, wanted: Wanted | None = None, called: str | None = None) -> Table:
    """Read a table; the ending of the name says what it is unless `kind` does. Messages may call it otherwise."""
    name = called or _name(source)
    if os.path.isdir(source):  # not Path.is_dir, which raises where a name is too long
        pieces = _read_folder(Path(source), kind, BATCH, wanted)
    else:
        pieces = _some(_pieces(source, kind or _kind_of_source(source, name), name, BATCH, whole=True), name)
    return _joined(list(pieces), name)


def read_batches(
    source: str, kind: str | None = None, wanted: Wanted | None = None, rows: int = BATCH
) -> Iterator[Table]:
    """The same table in batches of up to so many rows, all with the same columns; the memory holds one of them."""
    if os.path.isdir(source):  # not Path.is_dir, which raises where a name is too long
        yield from _read_folder(Path(source), kind, rows, wanted)
        return
    name = _name(source)
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


def tables_in(folder: Path, kind: str | None = None, others: list[Path] | None = None) -> list[Path]:
    """The tables in a folder and its subfolders, in order; nothing hidden, and no links to folders.

    All `others`, files that are no tables by their names, and pipes and the like, are added to that list.
    """
    found: list[Path] = []
    try:
        for path in sorted(folder.iterdir()):
            if path.is_dir() and not path.is_symlink() and not path.name.startswith((".", "_")):
                found += tables_in(path, kind, others)
            elif path.is_file() and _is_table(path, kind):
                found.append(path)
            elif others is not None and not path.is_dir() and not path.name.startswith((".", "_")):
                others.append(path)
    except OSError as error:
        raise DataError(f"{folder}: cannot be read: {(error.strerror or str(error)).lower()}.") from error
    return found


def _read_folder(folder: Path, kind: str | None, rows: int, wanted: Wanted | None) -> Iterator[Table]:
    """The tables in a folder, one below the other, with the columns of all; where a table has no such column, None."""
    others: list[Path] = []
    files = tables_in(folder, kind, others)
    if others and wanted is not None:
        listed = ", ".join(str(path.relative_to(folder)) for path in others[:10])
        wanted.tell(f"skipped {listed}{f' and {len(others) - 10:,} more' * (len(others) > 10)}: not a table")
    names = {path: _names_in(os.fspath(path), kind or kind_of(path.name)) for path in files}
    if not names:
        raise DataError(f"{folder}: the folder must hold tables ({', '.join(FORMATS)}); saw none.")
    files = _fitting(folder, names, kind, wanted)
    every = dict.fromkeys(name for path in files for name in names[path])
    for source in map(os.fspath, files):
        yield from _filled(_pieces(source, kind or kind_of(source), source, rows), every, source)


def _names_in(source: str, kind: str) -> list[str]:
    """The columns of a table, of which JSON lines may name one in their last; none, if there are no rows."""
    if not os.path.getsize(source):
        return []
    if kind in ("csv", "tsv"):  # whatever else is in it: it may be a text for people
        with opened(source, source) as watched, decoding(watched, newline="", errors="replace") as text:
            head = [row for _, row in islice(_csv_rows(text, kind, source), 2)]
        return [field.strip() for field in head[0]] if len(head) == 2 else []
    pieces = islice(_pieces(source, kind, source, BATCH), None if kind == "jsonl" else 1)
    return list(dict.fromkeys(name for piece in pieces for name in piece.columns))


def _fitting(folder: Path, names: dict[Path, list[str]], kind: str | None, wanted: Wanted | None) -> list[Path]:
    """The tables with the wanted columns, which are guessed from one whose columns most others have; or with all."""
    asked = [] if wanted is None else [wanted.text, wanted.label]
    times = Counter(name for found in names.values() for name in set(found))

    shared = {path: sorted((times[name] for name in found), reverse=True) for path, found in names.items()}
    first = max(names, key=lambda p: (sum(n in names[p] for n in asked), shared[p], ".txt" not in p.suffixes))
    needed = wanted.of(next(read_batches(os.fspath(first), kind))) if wanted else names[first]
    files = []
    for path, found in names.items():
        missing = [shorten(name) for name in needed if name is not None and name not in found]
        why = f"no column {' and no column '.join(missing[:10])}" if found else "no rows"
        if not missing:
            files.append(path)
        elif wanted is None:
            raise DataError(f"{path}: its columns must be those of {first}; saw {why}.")
        else:
            wanted.tell(f"skipped {path.relative_to(folder)}: {why}")
    return files


def _is_table(path: Path, kind: str | None) -> bool:
    """By its name; hidden files are none."""
    endings = [ending.lower() for ending in path.suffixes[-2:] if ending.lower() not in COMPRESSIONS]
    return not path.name.startswith((".", "_")) and (kind is not None or (endings or [""])[-1] in FORMATS)


def _name(source: str) -> str:
    return "standard input" if source == "-" else source


def _same_columns(source: str, name: str, rows: int, spool: IO[bytes] | None = None) -> Iterator[Table]:
    """JSON lines with all fields of the file in every batch."""
    names: dict[str, None] = {}
    for piece in _some(_pieces(source, "jsonl", name, rows, spool), name):
        names |= dict.fromkeys(piece.columns)
    if spool is not None:
        spool.seek(0)
    yield from _filled(_pieces(source, "jsonl", name, rows, spool), names, name)


def _filled(pieces: Iterator[Table], names: dict[str, None], name: str) -> Iterator[Table]:
    """The pieces with all of these columns, where there are none with None."""
    for piece in pieces:
        size = len(piece) * len(names)
        if size > _CELLS:
            _check_cells(size, sum(value is not None for column in piece.columns.values() for value in column), name)
        yield replace(piece, columns={key: piece.columns.get(key) or [None] * len(piece) for key in names})


def _some(pieces: Iterator[Table], name: str) -> Iterator[Table]:
    """The pieces, of which there must be one."""
    first = next(pieces, None)
    if first is None:
        raise DataError(f"{name}: the file must hold at least one row; saw none. Is it the right file?")
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
        where = places[piece](i - starts[piece])
        return where if pieces[piece].name == name else f"{pieces[piece].name}, {where}"

    return Table(name, columns, place, pieces[0].headed)


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


def _read_csv(watched: Watched, kind: str, most: int) -> Iterator[Table]:
    name = watched.name
    with decoding(watched, newline="") as text:
        header: list[str] | None = None
        rows: list[list[str]] = []
        lines: list[int] = []
        held = 0
        for line, row in _csv_rows(text, kind, name):
            if header is None:
                header = [field.strip() for field in row]
                twice = next((field for field, times in Counter(header).items() if times > 1), None)
                if twice is not None:
                    raise DataError(f"{name}, line 1: column names must differ; saw {shorten(twice)} twice.")
                continue
            if len(row) != len(header):
                raise DataError(
                    f"{name}, line {line}: a row must have {len(header)} fields like the header; saw {len(row)}. "
                    "Quote fields that hold the separator."
                )
            if row == header and len(row) > 1 and are_names(row):
                raise DataError(f"{name}, line {line}: repeats the names of the columns. Remove the line.")
            rows.append(row)
            lines.append(line)
            held += sum(map(len, row))
            if len(rows) == most or held >= _HELD:
                yield _table_of(name, header, rows, lines)
                rows, lines, held = [], [], 0
        if header and rows:
            yield _table_of(name, header, rows, lines)


def _csv_rows(text: IO[str], kind: str, name: str) -> Iterator[tuple[int, list[str]]]:
    """Rows that hold something, each with the line on which it begins: a quoted field may go on over several."""
    csv.field_size_limit(LONGEST)
    first_line = text.readline()
    # whatever separates the header's names: Excel writes semicolons in half of the world
    delimiter = "\t" if kind == "tsv" else max(",;\t|", key=first_line.count)
    reader = csv.reader(chain([first_line], text), delimiter=delimiter)
    before = 0
    try:
        for row in reader:
            if row:
                yield before + 1, row
            before = reader.line_num
    except csv.Error as error:
        raise DataError(f"{name}, line {reader.line_num}: not valid CSV: {error}.") from None


def _table_of(name: str, header: list[str], rows: list[list[str]], lines: list[int]) -> Table:
    columns = dict(zip(header, map(list, zip(*rows, strict=True)), strict=True))
    return Table(name, columns, lambda i: f"line {lines[i]}", headed=True)


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
        columns, at = {key: [record.get(key) for record in records] for key in names}, lines
        return Table(watched.name, columns, lambda i: f"line {at[i]}")

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
        raise DataError(f"{name}: {rule}; saw {values:,} values. Give all rows the same fields.")
