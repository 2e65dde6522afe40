"""Reading and writing tables of labelled text: CSV, TSV, JSON lines and Parquet; `-` is standard input or output."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import DataError, MissingExtra, shorten
from .files import write_whole, writing

__all__ = ["FORMATS", "Table", "guess_columns", "labels_of", "read_table", "texts_of", "write_table"]

FORMATS = {".csv": "csv", ".tsv": "tsv", ".txt": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}
_TEXT_NAMES = ("text", "review", "sentence", "content", "body", "message", "comment", "document", "description")
_LABEL_NAMES = ("label", "class", "category", "target", "sentiment", "y", "tag", "topic", "intent", "rating", "stars")


@dataclass(frozen=True)
class Table:
    """Columns of equal length, and where each row stands in its file."""

    name: str
    columns: dict[str, list[Any]]
    place: Callable[[int], str]  # of row i, for messages: "line 7"

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), []))


def read_table(source: str, kind: str | None = None, called: str | None = None) -> Table:
    """Read a table; the ending of the name says what it is unless `kind` does. Messages may call it otherwise."""
    kind = kind or _kind_of(source)
    name = called or ("standard input" if source == "-" else source)
    if kind == "parquet":
        table = _read_parquet(source, name)
    else:
        text = _decode(_read_bytes(source, name), name)
        table = _read_jsonl(text, name) if kind == "jsonl" else _read_csv(text, name, "\t" if kind == "tsv" else None)
    if not len(table):
        raise DataError(f"{name}: the file must hold at least one row; saw none. Cure: is it the right file?")
    return table


def _kind_of(source: str) -> str:
    if source == "-":
        return "csv"
    ending = Path(source).suffix.lower()
    if ending not in FORMATS:
        known = ", ".join(sorted(FORMATS))
        rule = f"the name must end in one of {known}"
        raise DataError(f"{source}: {rule}; saw {ending!r}. Cure: rename it or give --format.")
    return FORMATS[ending]


def _read_bytes(source: str, name: str) -> bytes:
    try:
        content = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
    except OSError as error:
        raise DataError(f"{name}: cannot be read: {(error.strerror or str(error)).lower()}.") from error
    if not content.strip():
        raise DataError(f"{name}: the file must hold a table; it is empty.")
    return content


def _decode(content: bytes, name: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        seen = content[error.start : error.start + 1].hex()
        cure = "save the file as UTF-8 (for example: iconv -f latin1 -t utf-8)"
        raise DataError(f"{name}, line {line}: the text must be UTF-8; saw the byte 0x{seen}. Cure: {cure}.") from None


def _read_csv(text: str, name: str, delimiter: str | None) -> Table:
    csv.field_size_limit(2**31 - 1)
    if delimiter is None:  # whatever separates the header's names: Excel writes semicolons in half of the world
        header_line = text.split("\n", 1)[0]
        delimiter = max(",;\t|", key=header_line.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    header: list[str] | None = None
    rows: list[list[str]] = []
    lines: list[int] = []
    before = 0
    try:
        for row in reader:
            first_line, before = before + 1, reader.line_num
            if not row:
                continue
            if header is None:
                header = _check_header(row, name)
            elif len(row) != len(header):
                raise DataError(
                    f"{name}, line {first_line}: a row must have {len(header)} fields like the header; saw {len(row)}. "
                    "Cure: quote fields that hold the separator."
                )
            else:
                rows.append(row)
                lines.append(first_line)
    except csv.Error as error:
        raise DataError(f"{name}, line {reader.line_num}: not valid CSV: {error}.") from None
    columns = zip(*rows, strict=True) if rows else ([] for _ in header or [])
    return Table(name, dict(zip(header or [], map(list, columns), strict=True)), lambda i: f"line {lines[i]}")


def _check_header(row: list[str], name: str) -> list[str]:
    names = [field.strip() for field in row]
    if len(set(names)) < len(names):
        twice = next(field for field in names if names.count(field) > 1)
        raise DataError(f"{name}, line 1: column names must differ; saw {twice!r} twice.")
    return names


def _read_jsonl(text: str, name: str) -> Table:
    records: list[dict[str, Any]] = []
    lines: list[int] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            raise DataError(f"{name}, line {number}: must be one JSON object; saw {shorten(line)}.") from None
        if not isinstance(record, dict):
            raise DataError(f"{name}, line {number}: must be a JSON object with named fields; saw {shorten(record)}.")
        records.append(record)
        lines.append(number)
    names = list(dict.fromkeys(key for record in records for key in record))
    columns = {key: [record.get(key) for record in records] for key in names}
    return Table(name, columns, lambda i: f"line {lines[i]}")


def _read_parquet(source: str, name: str) -> Table:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtra("reading Parquet needs an extra: pip install 'keytokens[parquet]'") from error
    try:
        table = parquet.read_table(io.BytesIO(_read_bytes(source, name)))
        columns = {column: table[column].to_pylist() for column in table.column_names}
    except (OSError, pyarrow.ArrowException) as error:
        raise DataError(f"{name}: not a valid Parquet file: {_first_line(error)}.") from error
    return Table(name, columns, lambda i: f"row {i + 1}")


def _first_line(error: Exception) -> str:
    return str(error).split("\n")[0].rstrip(".")


def guess_columns(table: Table, text: str | None, label: str | None, need_label: bool = True) -> tuple[str, str | None]:
    """The text and label columns: as named, else by their usual names, else by what they hold."""
    for option, wanted in (("--text", text), ("--label", label)):
        if wanted is not None and wanted not in table.columns:
            seen = f"saw {wanted!r}, the columns are {_names(table)}"
            raise DataError(f"{table.name}: {option} must name a column; {seen}.")
    text = text or _guess(table, _TEXT_NAMES, label, _looks_like_text)
    if text is None:
        raise DataError(f"{table.name}: which column holds the text? Cure: name it with --text: {_names(table)}.")
    if not need_label:
        return text, label
    label = label or _guess(table, _LABEL_NAMES, text, _looks_like_label)
    if label is None:
        raise DataError(f"{table.name}: which column holds the label? Cure: name it with --label: {_names(table)}.")
    return text, label


def _names(table: Table) -> str:
    return ", ".join(map(repr, table.columns))


def _guess(table: Table, names: Sequence[str], taken: str | None, fits: Callable[[list[Any]], bool]) -> str | None:
    open_columns = [column for column in table.columns if column != taken]
    for name in names:
        for column in open_columns:
            if column.lower() == name:
                return column
    fitting = [column for column in open_columns if fits(table.columns[column])]
    return fitting[0] if len(fitting) == 1 else None


def _looks_like_text(values: list[Any]) -> bool:
    some = values[:1000]
    return all(isinstance(v, str) for v in some) and sum(v.count(" ") for v in some) >= 2 * len(some)


def _looks_like_label(values: list[Any]) -> bool:
    return all(isinstance(v, (str, int)) for v in values[:1000]) and len(set(map(str, values))) <= max(
        2, min(100, len(values) // 5)
    )


def texts_of(table: Table, column: str) -> list[str]:
    """A column of strings."""
    values = table.columns[column]
    for i, value in enumerate(values):
        if not isinstance(value, str):
            where = f"{table.name}, {table.place(i)}"
            raise DataError(f"{where}: {column!r} must be a string; saw {shorten(value)}. Cure: drop or mend the row.")
    return values


def labels_of(table: Table, column: str) -> list[Any]:
    """A column of labels. From CSV all are strings: whole numbers, if all are such, are read as numbers."""
    values = table.columns[column]
    for i, value in enumerate(values):
        if value is None or value == "" or value != value:
            where = f"{table.name}, {table.place(i)}"
            raise DataError(f"{where}: {column!r} must be a label; saw {value!r}. Cure: drop the row or fill it in.")
    if all(isinstance(v, str) and v.lstrip("-").isascii() and v.lstrip("-").isdigit() for v in values):
        numbers = [int(v) for v in values]
        if all(str(n) == v for n, v in zip(numbers, values, strict=True)):
            return numbers
    return values


def write_table(target: str, columns: dict[str, list[Any]], kind: str | None = None) -> None:
    """Write columns as a table; standard output for `-`."""
    kind = kind or _kind_of(target)
    if kind == "parquet":
        content = _parquet_bytes(columns)
    elif kind == "jsonl":
        rows = zip(*columns.values(), strict=True)
        lines = [json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False) + "\n" for row in rows]
        content = "".join(lines).encode("utf-8", "backslashreplace")
    else:
        text = io.StringIO(newline="")
        writer = csv.writer(text, delimiter="\t" if kind == "tsv" else ",", lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
        content = text.getvalue().encode("utf-8", "backslashreplace")
    if target == "-":
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    else:
        with writing(Path(target)):
            write_whole(Path(target), content)


def _parquet_bytes(columns: dict[str, list[Any]]) -> bytes:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtra("writing Parquet needs an extra: pip install 'keytokens[parquet]'") from error
    buffer = io.BytesIO()
    parquet.write_table(pyarrow.table(columns), buffer)
    return buffer.getvalue()
