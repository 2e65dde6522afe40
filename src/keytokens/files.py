"""Writing files whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from .errors import OutputError

__all__ = ["plain_content", "replacing", "sync_folder", "writing", "write_new", "write_whole"]


@contextmanager
def writing(target: Path) -> Iterator[None]:
    """Turn the system's refusal to write into one line that names the target and the reason."""
    try:
        yield
    except OSError as error:
        if isinstance(error, OutputError):
            raise
        reason = (error.strerror or str(error)).lower()
        name = os.fspath(target)
        raise OutputError(f"cannot write {name!r}: {reason}. What was there before is unchanged.") from error


def write_new(path: Path, content: bytes) -> None:
    """Write a file that is not there yet and make sure that it is on the disk; nothing is left behind on failure."""
    try:
        with open(path, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except BaseException as error:
        if not isinstance(error, FileExistsError):
            with suppress(OSError):
                path.unlink()
        raise


def write_whole(path: Path, content: bytes) -> None:
    """Put content at a path in one instant: readers see the old file or the new one."""
    with replacing(path) as file:
        file.write(content)


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file to write, which takes the place of the one at this path when all has gone well, in one instant.

    Until then it lies beside it under another name; nothing is left behind on failure.
    """
    with writing(path):
        if path.is_dir():  # seen before anything is written; and that which has no name, as `.`, is one
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        beside = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
        try:
            with open(beside, "xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, path)
        except BaseException:
            with suppress(OSError):
                beside.unlink()
            raise
        sync_folder(path.parent)


def plain_content(path: Path, most: int) -> bytes | None:
    """The bytes of a plain file, if they are no more than so many; None for more, and for a link, a pipe or a device.

    A pipe would hold the reader for ever, a device may have no end, and a link may lead anywhere.
    """
    if path.is_symlink():
        return None
    flags = [getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOFOLLOW", "O_BINARY")]
    handle = os.open(path, os.O_RDONLY | sum(flags))
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode) or found.st_size > most:
            return None
        with open(handle, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(handle)


def sync_folder(folder: Path) -> None:
    """Make sure that renames in a folder are on the disk."""
    with suppress(OSError):  # not every system lets a folder be opened
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
