"""What a file holds, by the ending of its name.

Where a table comes from: a file, compressed or not, or standard input; as bytes, or as text in lines.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import os
import shutil
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from ..base.errors import DataError, InputError, MissingExtra

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
    inner, compression = _endings(source)
    if inner not in FORMATS:
        known = ", ".join(sorted(FORMATS))
        rule = f"the name must end in one of {known}"
        raise DataError(f"{source}: {rule}; saw {inner + compression!r}. Rename it or give --format.")
    return FORMATS[inner]


def has_table_ending(source: str) -> bool:
    """Whether a name ends as the names of tables do."""
    return _endings(source)[0] in FORMATS


def _endings(source: str) -> tuple[str, str]:
    """The ending that says the format, and that of a compression, if there is one."""
    path = Path(source)
    ending = path.suffix.lower()
    return (Path(path.stem).suffix.lower(), ending) if ending in COMPRESSIONS else (ending, "")


def check_format(kind: str | None) -> None:
    """Refuse a format that there is not; None leaves it to the name of the file."""
    known = sorted(set(FORMATS.values()))
    if kind is not None and kind not in known:
        raise InputError(f"--format must be one of {', '.join(known)}; saw {kind!r}.")


def through_compression(file: IO[bytes], name: str, mode: str) -> IO[bytes]:
    """The file, read ("rb") or written ("wb") through the compression that its name tells."""
    wrap = COMPRESSIONS.get(Path(name).suffix.lower())
    return wrap(file, mode) if wrap else file


def need_pyarrow(doing: str) -> None:
    """Refuse in one line where the extra is missing."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError as error:
        raise MissingExtra(f"{doing} Parquet needs an extra: pip install 'keytokens[parquet]'") from error


LONGEST = 1 << 26  # bytes of a line or a field: one is held in memory, and a small file may unpack to terabytes
_BLANK = 1 << 20  # bytes of white space before a table
_DAMAGED = (EOFError, ValueError, zlib.error, lzma.LZMAError)
_MARKS = {  # byte-order marks; those of UTF-32 begin like those of UTF-16
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}


class Watched(io.BufferedIOBase):
    """Bytes as they come, counting lines, with the system's refusals in one line."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self.file = file
        self.name = name
        self.lines = 0  # ends of lines among the bytes given out
        self.ahead = b""
        self.ends: tuple[bytes, ...] = ()  # of lines, which must not be too long; none: there are no lines
        self.line = 0  # bytes of the line that was begun last
        self.decoder: codecs.IncrementalDecoder | None = None  # of what is not UTF-8, but is given out in UTF-8

    def readable(self) -> bool:
        return True

    def _next(self, size: int | None) -> bytes:
        try:
            return self.file.read(-1 if size is None else size)
        except (OSError, *_DAMAGED) as error:
            reason = error.strerror if isinstance(error, OSError) else None
            raise DataError(f"{self.name}: cannot be read: {(reason or str(error)).lower().rstrip('.')}.") from error

    def check_content(self) -> None:
        """Refuse a file that holds nothing, or nothing but white space."""
        pieces: list[bytes] = []
        while not pieces or not pieces[-1].strip():
            pieces.append(self._next(io.DEFAULT_BUFFER_SIZE))
            if not pieces[-1]:
                raise DataError(f"{self.name}: the file must hold a table; it is empty.")
            if len(pieces) * io.DEFAULT_BUFFER_SIZE > _BLANK:
                raise DataError(f"{self.name}: the file must hold a table; it begins with {_BLANK:,} blank bytes.")
        self.ahead = b"".join(pieces)

    def read(self, size: int | None = -1, /) -> bytes:
        given, self.ahead = (self.ahead, b"") if self.ahead else (self._next(size), b"")
        if self.decoder is not None:
            given = self._in_utf8(given, self.decoder, size)
        if self.ends:
            last = max(given.rfind(end) for end in self.ends)
            self.line = self.line + len(given) if last < 0 else len(given) - last - 1
            if self.line > LONGEST:
                where = f"{self.name}, line {self.lines + given.count(bytes([10])) + 1}"
                raise DataError(f"{where}: a line may have {LONGEST:,} bytes; saw more. Is it the right file?")
        self.lines += given.count(b"\n")
        return given

    read1 = read  # what a wrapper for text asks for

    def find_encoding(self) -> None:
        """UTF-16 and UTF-32 are known by their byte-order marks; without one, by the zeros beside ends of lines."""
        start = self.ahead
        for mark, encoding in _MARKS.items():
            if start.startswith(mark):
                self.ahead = start[len(mark) :]
                self.decoder = codecs.getincrementaldecoder(encoding)()
                return
        even, odd, ends = start[::2].count(0), start[1::2].count(0), start.count(b"\n")
        wide = max(start.count(b"\n\0"), start.count(b"\0\n"))
        if 2 * wide > ends or (not ends and 4 * (even + odd) > len(start)):
            looks = "utf-32" if 2 * (even + odd) > len(start) + 1 else "utf-16"
            advice = f"Save it as UTF-8 (for example: iconv -f {looks}{'le' if odd > even else 'be'} -t utf-8)"
            raise DataError(f"{self.name}: looks like {looks.upper()} without a byte-order mark. {advice}.")

    def _in_utf8(self, given: bytes, decoder: codecs.IncrementalDecoder, size: int | None) -> bytes:
        """Some bytes of another encoding in UTF-8; none only at the end."""
        try:
            while True:
                text = decoder.decode(given, final=not given)
                if text or not given:
                    return text.encode("utf-8")
                given = self._next(size)
        except UnicodeDecodeError as error:
            line = self.lines + error.object[: error.start].decode(error.encoding).count("\n") + 1
            seen = error.object[error.start : error.end].hex()
            rule = f"must be {error.encoding[:6].upper()}, as the byte-order mark says; saw the bytes 0x{seen}"
            raise DataError(f"{self.name}, line {line}: the text {rule}. Save it as UTF-8.") from None


@contextmanager
def opened(source: str, name: str, spool: IO[bytes] | None = None) -> Iterator[Watched]:
    """The bytes of a source that holds something; of `spool` instead, if there is one."""
    given = spool is not None or source == "-"
    try:
        file = spool or (sys.stdin.buffer if source == "-" else open(source, "rb"))  # noqa: SIM115
    except OSError as error:
        raise DataError(f"{name}: cannot be read: {(error.strerror or str(error)).lower()}.") from error
    try:
        watched = Watched(file if given else through_compression(file, source, "rb"), name)
        watched.check_content()
        yield watched
    finally:
        if not given:
            file.close()


@contextmanager
def seekable(source: str, name: str) -> Iterator[IO[bytes]]:
    """The bytes of a source, to be read in any order and more than once: a plain file, or a copy of it on the disk."""
    with opened(source, name) as watched:
        plain = isinstance(watched.file, io.BufferedReader) and os.path.isfile(source)
        if plain:
            watched.file.seek(0)
            yield watched.file
            return
        with tempfile.TemporaryFile() as copy:
            shutil.copyfileobj(cast(IO[bytes], watched), copy)
            copy.seek(0)
            yield copy


@contextmanager
def decoding(watched: Watched, newline: str, errors: str = "strict") -> Iterator[io.TextIOWrapper]:
    """The lines of some bytes in UTF-8, or as their byte-order mark says; whichever line is not is named."""
    watched.find_encoding()
    watched.ends = (b"\n", b"\r") if newline == "" else (b"\n",)
    text = io.TextIOWrapper(watched, encoding="utf-8-sig", errors=errors, newline=newline)
    try:
        yield text
    except UnicodeDecodeError as error:
        before = watched.lines - error.object.count(b"\n")  # the decoder holds what it was given last
        line = before + error.object.count(b"\n", 0, error.start) + 1
        seen = error.object[error.start : error.start + 1].hex()
        advice = "Save the file as UTF-8 (for example: iconv -f latin1 -t utf-8)"
        raise DataError(
            f"{watched.name}, line {line}: the text must be UTF-8; saw the byte 0x{seen}. {advice}."
        ) from None
    finally:
        text.detach()
