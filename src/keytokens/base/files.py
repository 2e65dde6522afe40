"""Writing files whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO

from .errors import OutputError

try:
    import fcntl
except ImportError:  # Windows: there are no locks of this kind
    fcntl = None  # type: ignore[assignment]


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
        beside = _beside(path, path.parent)
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


def _beside(path: Path, folder: Path) -> Path:
    """A name in this folder for what will take the place of `path`, which must not be a folder."""
    if path.is_dir():  # seen before anything is written; and that which has no name, as `.`, is one
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    return folder / f".{path.name}.{secrets.token_hex(6)}.tmp"


def check_output(target: Path, inside: str = "") -> None:
    """Refuse before long work what could not be written after it: try, and leave nothing behind.

    The target is a file in a folder that is there; or, for a file `inside`, a folder that is made when it is needed.
    """
    file = target / inside
    with writing(target):
        base = next((one for one in file.parents if os.path.lexists(one)), file.parent) if inside else file.parent
        trial = _beside(file, base)
        try:
            if base == file.parent:
                trial.touch(exist_ok=False)
            else:  # under another name: others who check this target must not see folders come and go
                (trial / file.parent.relative_to(base)).mkdir(parents=True)
        finally:
            with suppress(OSError):
                shutil.rmtree(trial) if trial.is_dir() else trial.unlink()


@contextmanager
def locked(folder: Path, busy: str = "") -> Iterator[bool]:
    """Make a folder and hold its lock, which ends with the process; False where the system cannot lock a folder.

    Whoever comes second waits, or is refused if `busy` says why.
    """
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as held:
        try:
            handle = os.open(folder, os.O_RDONLY)
            held.callback(os.close, handle)
            fcntl.flock(handle, fcntl.LOCK_EX | (fcntl.LOCK_NB if busy else 0))
            held.callback(fcntl.flock, handle, fcntl.LOCK_UN)  # closing is not enough: a fork may have it open too
            if not os.path.samestat(os.fstat(handle), os.stat(folder)):
                raise FileNotFoundError
            alone = True
        except (BlockingIOError, FileNotFoundError):
            why = busy or "the folder was removed at the same moment"
            raise OutputError(f"cannot write {os.fspath(folder)!r}: {why}.") from None
        except (OSError, AttributeError):  # no lock on this file system, or none on this system
            alone = False
        yield alone


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
