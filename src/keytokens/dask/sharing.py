"""Arrays that pass between processes of one machine without a message: a file that is nowhere but in memory.

Linux has such files, and whoever runs under the same name may open those of another process by its number. They are
gone with their owner, so that nothing is left behind, whatever happens.
"""

from __future__ import annotations

import functools
import io
import os
import secrets
import threading
import weakref
from dataclasses import astuple, dataclass
from typing import Any, Literal

import numpy as np
from dask.sizeof import sizeof
from numpy.typing import NDArray

__all__ = ["GoneError", "Lent", "Shared", "can_share"]

_SIGN = 16  # random bytes at the head of a file: the number of a file is given again to others, and to other processes


class GoneError(Exception):
    """The file of an array cannot be read: its owner has ended, or is on another machine."""


@dataclass(frozen=True)
class Shared:
    """An array of another process."""

    process: int
    file: int
    sign: bytes
    shape: tuple[int, ...]
    dtype: str
    order: Literal["C", "F"]

    def read(self, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """It, written into `out` if that is given: an array of its kind."""
        out = np.empty(self.shape, self.dtype, self.order) if out is None else out
        try:
            with open(f"/proc/{self.process}/fd/{self.file}", "rb", buffering=0) as file:
                whole = file.read(_SIGN) == self.sign and _filled(file, _bytes(out, self.order))
        except OSError:
            whole = False
        if not whole:
            raise GoneError(f"an array of process {self.process} cannot be read")
        return out

    def copy(self) -> NDArray[Any]:
        return self.read()


class Lent:
    """An array of this process; to another one goes where to read it, which is possible as long as this object lives.

    It must lie in one piece, and nobody may write into it any more.
    """

    def __init__(self, array: NDArray[Any]) -> None:
        self.array = array
        self._lock = threading.Lock()

    def read(self, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """It, or a copy in `out`."""
        if out is None:
            return self.array
        out[...] = self.array
        return out

    def copy(self) -> NDArray[Any]:
        return self.array.copy(order="K")

    @functools.cached_property
    def _shared(self) -> Shared:
        order: Literal["C", "F"] = "C" if self.array.flags.c_contiguous else "F"
        file, sign = os.memfd_create("keytokens"), secrets.token_bytes(_SIGN)
        weakref.finalize(self, os.close, file)
        for part in (memoryview(sign), _bytes(self.array, order)):
            done = 0
            while done < len(part):
                done += os.write(file, part[done:])
        return Shared(os.getpid(), file, sign, self.array.shape, self.array.dtype.str, order)

    def __reduce__(self) -> tuple[Any, ...]:
        try:
            with self._lock:  # written once, whoever asks first
                return Shared, astuple(self._shared)
        except OSError:  # no more files, or no more memory for them: it travels after all
            return Lent, (self.array,)


def _bytes(array: NDArray[Any], order: Literal["C", "F"]) -> memoryview:
    """The memory of an array that lies in one piece."""
    if not array.size:  # nothing cannot be cast
        return memoryview(b"")
    return (array.T if order == "F" else array).data.cast("B")


def _filled(file: io.FileIO, room: memoryview) -> bool:
    """Whether there was as much to read."""
    done = 0
    while done < len(room):
        read = file.readinto(room[done:])
        if not read:
            return False
        done += read
    return True


sizeof.register(Lent, lambda lent: int(lent.array.nbytes))


def can_share(client: Any) -> bool:
    """Whether all workers of a client can read the arrays of this process."""
    if not hasattr(os, "memfd_create"):
        return False
    mine = Lent(np.frombuffer(secrets.token_bytes(8), np.uint8))
    answers = client.run(_bytes_of, mine, on_error="return").values()
    return all(answer == mine.array.tobytes() for answer in answers)


def _bytes_of(shared: Shared | Lent) -> bytes:
    return shared.read().tobytes()
