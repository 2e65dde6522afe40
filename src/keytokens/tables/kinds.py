"""What a file holds, by the ending of its name."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from ..errors import DataError, MissingExtra

__all__ = ["COMPRESSIONS", "FORMATS", "compressed", "decompressed", "kind_of", "need_pyarrow"]

FORMATS = {".csv": "csv", ".tsv": "tsv", ".txt": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}

COMPRESSIONS: dict[str, Callable[[Any, Any], Any]] = {
    # no name and no time inside: the same rows are the same bytes
    ".gz": lambda file, mode: gzip.GzipFile("", mode, 6, file, mtime=0),
    ".bz2": bz2.BZ2File,
    ".xz": lzma.LZMAFile,
}


def kind_of(source: str) -> str:
    """The format of a table; standard input and output are CSV."""
    if source == "-":
        return "csv"
    path = Path(source)
    ending = path.suffix.lower()
    inner = Path(path.stem).suffix.lower() if ending in COMPRESSIONS else ending
    if inner not in FORMATS:
        known = ", ".join(sorted(FORMATS))
        rule = f"the name must end in one of {known}"
        seen = ending if inner == ending else inner + ending
        raise DataError(f"{source}: {rule}; saw {seen!r}. Cure: rename it or give --format.")
    return FORMATS[inner]


def decompressed(file: IO[bytes], source: str) -> IO[bytes]:
    """The file, read through the compression that its name tells."""
    wrap = COMPRESSIONS.get(Path(source).suffix.lower())
    return wrap(file, "rb") if wrap else file


def compressed(file: IO[bytes], target: str) -> IO[bytes]:
    """The file, written through the compression that its name tells."""
    wrap = COMPRESSIONS.get(Path(target).suffix.lower())
    return wrap(file, "wb") if wrap else file


def need_pyarrow(doing: str) -> None:
    """Refuse in one line where the extra is missing."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError as error:
        raise MissingExtra(f"{doing} Parquet needs an extra: pip install 'keytokens[parquet]'") from error
