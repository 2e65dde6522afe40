"""Writing tables, whole or batch by batch; a file appears under its name when the last row is in it, or not at all."""

from __future__ import annotations

import csv
import io
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any

from ..base.errors import OutputError
from ..base.files import replacing
from .sources import kind_of, need_pyarrow, through_compression

Columns = dict[str, list[Any]]
Write = Callable[[Columns], None]

_GROUP = 32_768  # rows of a row group: what a Parquet file needs in memory, here and wherever it is read


def write_table(target: str, columns: Columns, kind: str | None = None) -> None:
    """Write columns as a table; standard output for `-`."""
    with table_writer(target, kind) as write:
        write(columns)


@contextmanager
def table_writer(target: str, kind: str | None = None) -> Iterator[Write]:
    """A function that takes batches, all with the same columns; standard output gets each at once."""
    kind = kind or kind_of(target)
    if kind == "parquet":
        need_pyarrow("writing")
    with _file(target) as file:
        if kind == "parquet":
            with _parquet(file, target) as write:
                yield write
        elif kind == "jsonl":
            yield lambda columns: _put(file, _json_lines(columns))
        else:
            yield _csv(file, "\t" if kind == "tsv" else ",")


@contextmanager
def _file(target: str) -> Iterator[IO[bytes]]:
    if target == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with replacing(Path(target)) as file:
        packed = through_compression(file, target, "wb")
        # closed after a failure too, while the file that takes its last bytes is open
        with nullcontext() if packed is file else packed:
            yield packed


def _put(file: IO[bytes], text: str) -> None:
    file.write(text.encode("utf-8", "backslashreplace"))


def _json_lines(columns: Columns) -> str:
    rows = zip(*columns.values(), strict=True)
    records = (dict(zip(columns, row, strict=True)) for row in rows)
    # Parquet has values that JSON has not, dates among them: they are written as Python prints them
    return "".join([json.dumps(record, ensure_ascii=False, default=str) + "\n" for record in records])


def _csv(file: IO[bytes], delimiter: str) -> Write:
    head = True

    def write(columns: Columns) -> None:
        nonlocal head
        text = io.StringIO(newline="")
        writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
        if head:
            writer.writerow(columns)
            head = False
        writer.writerows(zip(*columns.values(), strict=True))
        _put(file, text.getvalue())

    return write


@contextmanager
def _parquet(file: IO[bytes], target: str) -> Iterator[Write]:
    """The type of a column is known only when its last value has been seen: until then the batches lie on the disk."""
    import pyarrow
    from pyarrow import ipc, parquet

    schemas: list[Any] = []
    with tempfile.TemporaryFile() as spool, tempfile.TemporaryFile() as whole:

        def write(columns: Columns) -> None:
            with _one_kind(target):
                batch = pyarrow.table(columns)
            schemas.append(batch.schema)
            with ipc.new_stream(spool, batch.schema) as stream:
                stream.write_table(batch)

        yield write
        spool.seek(0)
        with _one_kind(target):
            schema = pyarrow.unify_schemas(schemas, promote_options="permissive")
            with parquet.ParquetWriter(whole, schema) as out:
                for group in _groups((ipc.open_stream(spool).read_all().cast(schema) for _ in schemas), _GROUP):
                    out.write_table(group)
        whole.seek(0)
        shutil.copyfileobj(whole, file)


def _groups(tables: Iterator[Any], size: int) -> Iterator[Any]:
    """The same rows in tables of at least so many, but for the last."""
    import pyarrow

    held: list[Any] = []
    for table in tables:
        held.append(table)
        if sum(map(len, held)) >= size:
            yield pyarrow.concat_tables(held).combine_chunks()
            held = []
    if held:
        yield pyarrow.concat_tables(held).combine_chunks()


@contextmanager
def _one_kind(target: str) -> Iterator[None]:
    import pyarrow

    try:
        yield
    except (pyarrow.ArrowException, OverflowError, UnicodeError) as error:
        why = ascii(str(error).split("\n")[0].rstrip("."))[1:-1]
        rule = "a column of a Parquet file must hold values of one kind"
        raise OutputError(f"cannot write {target!r}: {rule}; {why}. Write .jsonl or .csv.") from error
