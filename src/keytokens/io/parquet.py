"""Reading Parquet. A few bytes may say that a long text comes a million times: what is held is measured first.

Columns of strings are read as dictionaries, each different string once, and written out a few rows at a time.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import IO, Any

import numpy as np
import pyarrow
from numpy.typing import NDArray
from pyarrow import compute
from pyarrow.parquet import ParquetFile

from ..base.errors import DataError, shorten
from .sources import LONGEST
from .table import Table

_HELD = 1 << 26  # bytes of strings in one piece
_WHOLE = 1 << 30  # bytes of strings that a whole table may always have
_BUFFER = 1 << 20  # bytes, for a large file
_STRINGS = (pyarrow.string(), pyarrow.binary(), pyarrow.large_string(), pyarrow.large_binary())
_SWELLING = 1000  # times the size of the file, beyond that


def read_parquet(file: IO[bytes], name: str, most: int, whole: bool) -> Iterator[Table]:
    """The rows in pieces of up to so many; `whole`: all of them will be held at once."""
    size = file.seek(0, 2)
    start, held = 0, 0
    with _valid(name):
        for batch in _batches(_Bounded(file, size), most, _BUFFER if size > LONGEST else 0):
            lengths = _lengths(batch)
            held = held * whole + int(lengths.sum())
            if whole and held > max(_WHOLE, _SWELLING * size):
                raise DataError(f"{name}: {size:,} bytes would become {held:,} bytes of text. Is it the right file?")
            for first, last in _cuts(lengths, name, start):
                part = batch.slice(first, last - first)
                columns = dict(zip(part.schema.names, map(_values, part.columns), strict=True))
                yield Table(name, columns, lambda i, start=start + first: f"row {start + i + 1}")  # type: ignore[misc]
            start += batch.num_rows


class _Bounded(io.BufferedIOBase):
    """A file that is never asked for more than it has: room for a whole read is made before it begins."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file, self._size = file, size

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, place: int, whence: int = 0, /) -> int:
        return self._file.seek(place, whence)

    def tell(self) -> int:
        return self._file.tell()

    def read(self, size: int | None = -1, /) -> bytes:
        left = max(0, self._size - self._file.tell())
        return self._file.read(left if size is None or size < 0 else min(size, left))


def _batches(file: _Bounded, most: int, buffer: int) -> Iterator[Any]:
    """Without a buffer a row group, maybe the whole file, is read at once; with one, a page as large as it says."""
    file.seek(0)
    schema = ParquetFile(file).schema
    columns = [schema.column(i) for i in range(len(schema))]
    flat = [
        c.name for c in columns if c.physical_type == "BYTE_ARRAY" and c.path == c.name and not c.max_repetition_level
    ]
    file.seek(0)
    source = ParquetFile(file, read_dictionary=flat, buffer_size=buffer, pre_buffer=False)
    yield from source.iter_batches(most)


def _lengths(batch: Any) -> NDArray[np.int64]:
    """Bytes of all strings in each row."""
    total = np.zeros(batch.num_rows, np.int64)
    for column in batch.columns:
        if pyarrow.types.is_dictionary(column.type) and column.type.value_type in _STRINGS and batch.num_rows:
            sizes = compute.binary_length(column.dictionary).take(column.indices)
            total += compute.fill_null(sizes, 0).to_numpy(zero_copy_only=False)
    return total


def _cuts(lengths: NDArray[np.int64], name: str, start: int) -> Iterator[tuple[int, int]]:
    """Pieces (first, last) of a batch that hold not too much each, of one row at least."""
    if len(lengths) and lengths.max() > LONGEST:
        where = f"{name}, row {start + int(lengths.argmax()) + 1}"
        raise DataError(f"{where}: the texts of a row may have {LONGEST:,} bytes; saw {int(lengths.max()):,}.")
    part = np.cumsum(lengths) // _HELD
    edges = [0, *(np.flatnonzero(np.diff(part)) + 1).tolist(), len(lengths)]
    yield from ((first, last) for first, last in pairwise(edges) if last > first)


def _values(column: Any) -> list[Any]:
    if pyarrow.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return list(column.to_pylist())


@contextmanager
def _valid(name: str) -> Iterator[None]:
    try:
        yield
    except pyarrow.ArrowMemoryError as error:  # a few bytes may declare any size
        advice = "Check that it is the right file."
        raise DataError(f"{name}: asks for more memory than there is: {_first_line(error)}. {advice}") from error
    except (DataError, MemoryError):
        raise
    except (OSError, ValueError, TypeError, LookupError, ArithmeticError, pyarrow.ArrowException) as error:
        raise DataError(f"{name}: not a valid Parquet file: {_first_line(error)}.") from error


def _first_line(error: Exception) -> str:
    """Parts of the file may be in it: shortened, and without what no terminal should get."""
    line = str(error).split("\n")[0].rstrip(".")[:300]
    return line if line.isprintable() else shorten(line, 300)
