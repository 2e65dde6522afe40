"""What a file holds, by the ending of its name."""

from __future__ import annotations

import bz2
import gzip
import io
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
    ".xz": lambda file, mode: (_Unpacked if mode == "rb" else lzma.LZMAFile)(file, mode),
}
_MEMORY = 1 << 28  # bytes that a file may want for unpacking itself; 64 megabytes are the most that `xz -9` asks for


class _Unpacked(io.BufferedIOBase):
    """An .xz file to read; `lzma.LZMAFile` would give its decoder as many gigabytes as the file asks for."""

    def __init__(self, file: IO[bytes], mode: str) -> None:
        self._file = file
        self._decoder: lzma.LZMADecompressor | None = None
        self._left = b""

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        """Some bytes, up to so many; none at the end."""
        most = io.DEFAULT_BUFFER_SIZE if size is None or size < 0 else size
        while True:
            if self._decoder is None or self._decoder.eof:
                self._left = self._next_stream()
                if not self._left:
                    return b""
                self._decoder = lzma.LZMADecompressor(memlimit=_MEMORY)
            elif self._decoder.needs_input:
                self._left = self._file.read(io.DEFAULT_BUFFER_SIZE)
                if not self._left:
                    raise EOFError("compressed file ended before the end-of-stream marker was reached")
            given, self._left = self._decoder.decompress(self._left, most), b""
            if given:
                return given

    def _next_stream(self) -> bytes:
        """Where the next stream begins, behind padding; nothing at the end."""
        left = self._decoder.unused_data if self._decoder else b""
        while not left.lstrip(b"\0"):
            left = self._file.read(io.DEFAULT_BUFFER_SIZE)
            if not left:
                return b""
        return left.lstrip(b"\0")


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
