"""Disks that are full and folders that must not be written: the real ones, where the system lets us make them."""

from __future__ import annotations

import errno
import os
import subprocess
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import keytokens as kt
from keytokens.base.errors import OutputError

from .phases import Broken, Known

NOBODY = 65534


@contextmanager
def small_disk(kilobytes: int) -> Iterator[Path | None]:
    """A disk of this size in memory; None where only others may mount one."""
    with tempfile.TemporaryDirectory(prefix="disk-") as folder:
        words = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k,mode=755", "keytokens-test", folder]
        try:
            mounted = subprocess.run(words, capture_output=True, check=False).returncode == 0
        except OSError:
            mounted = False
        try:
            yield Path(folder) if mounted else None
        finally:
            if mounted:
                subprocess.run(["umount", folder], check=True)


def full(known: Known) -> int:
    """Saving over a model on disks of every size: it is the old one and an error, or the new one."""
    place = known.folder / "model-old"
    needed = sum(-(-file.stat().st_size // 4096) * 4 for file in place.iterdir())
    tried = 0
    ended: set[str] = set()
    for more in range(0, needed + 24, 4):
        with small_disk(needed + 8 + more) as disk:
            if disk is None:
                return 0
            known.model["old"].save(disk / "model")
            ended.add(_saved(lambda disk=disk: known.model["new"].save(disk / "model"), disk / "model", known))
            tried += 1
    if ended != {"old", "new"}:
        raise Broken(f"disks of all sizes, and it always ended as {ended}")
    return tried


def _saved(save: Callable[[], None], place: Path, known: Known) -> str:
    try:
        save()
        expected = "new"
    except OutputError as error:
        cause = error.__cause__
        if not isinstance(cause, OSError) or cause.errno != errno.ENOSPC:
            raise Broken(f"another error than a full disk: {error}") from error
        expected = "old"
    if known.which(kt.load(place)) != expected or len(list(place.iterdir())) != 3:
        raise Broken(f"after a full disk: {sorted(file.name for file in place.iterdir())}")
    return expected


def read_only(known: Known) -> int:
    """As somebody who may not write: an error, and everything as it was."""
    with tempfile.TemporaryDirectory(prefix="read-only-") as scratch:
        os.chmod(scratch, 0o755)
        place = Path(scratch) / "model"
        known.model["old"].save(place)
        before = {file.name: file.read_bytes() for file in place.iterdir()}
        for file in place.iterdir():
            file.chmod(0o644)
        place.chmod(0o555)
        child = os.fork()
        if child == 0:
            _refused_as_nobody(known, place)
        _, status = os.waitpid(child, 0)
        place.chmod(0o755)
        if status:
            raise Broken(f"a folder that must not be written: {status}")
        if {file.name: file.read_bytes() for file in place.iterdir()} != before:
            raise Broken("a folder that must not be written has changed")
    return 1


def _refused_as_nobody(known: Known, place: Path) -> None:
    code = 1
    try:
        if os.getuid() == 0:
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        known.which(kt.load(place))
        known.model["new"].save(place)
    except OutputError as error:
        code = 0 if "permission denied" in str(error) else 2
    except BaseException:
        traceback.print_exc()
    os._exit(code)


DISKS: dict[str, Callable[[Known], int]] = {"full": full, "read-only": read_only}
