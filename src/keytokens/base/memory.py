"""Memory: how much there is, what the allocator keeps of it, and arrays that lie in a file instead."""

from __future__ import annotations

import ctypes
import functools
import math
import mmap
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_LARGE = 8 << 20  # bytes: an array as large as this is memory of its own, given back at once
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of mallopt
_libc = ctypes.CDLL(None) if sys.platform == "linux" else None
_trim, _mallopt = getattr(_libc, "malloc_trim", None), getattr(_libc, "mallopt", None)  # of glibc only


def memory() -> float:
    """The bytes of memory that the machine has; infinite where the system does not say."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):  # pragma: no cover - not on Windows
        return math.inf


def give_back_memory() -> None:
    """Give memory that is free back to the system. Threads free it piece by piece, which the allocator keeps."""
    if _trim is not None:
        _trim(0)


@functools.cache
def keep_freed_memory() -> None:
    """Let malloc keep small arrays that are freed, and give back large ones.

    As glibc begins, each array above 128 KB is fresh memory, whose first touch takes longer than the work on it: a fit
    on IMDB takes 1.09 to 1.29 times the processor time. What it learns by itself goes up to arrays of 32 MB, between
    which holes are left: with 20 classes a fit adds 36 times the text, and 30 times with this limit. Dask starts its
    workers with a setting that keeps nothing; this one is stronger.
    """
    if _mallopt is not None:
        _mallopt(_MMAP_THRESHOLD, _LARGE)
        _mallopt(_TRIM_THRESHOLD, 2 * _LARGE)


class MappedArray:
    """An array in a file of its own: larger than memory, read where it is needed, and let go after use."""

    def __init__(self, length: int, dtype: Any, folder: Path, name: str) -> None:
        size = max(1, length * np.dtype(dtype).itemsize)
        with open(folder / name, "w+b") as file:
            file.truncate(size)
            self._map = mmap.mmap(file.fileno(), size)
        self.array: NDArray[Any] = np.frombuffer(self._map, dtype, length)

    @classmethod
    def opened(cls, path: Path, dtype: Any, length: int) -> MappedArray:
        """One that a named file holds already."""
        made = cls.__new__(cls)
        with open(path, "r+b") as file:
            made._map = mmap.mmap(file.fileno(), max(1, length * np.dtype(dtype).itemsize))
        made.array = np.frombuffer(made._map, dtype, length)
        return made

    def let_go(self, first: int, last: int) -> None:
        """Give back the memory of entries first .. last - 1; they are read from the file when they are asked for."""
        page, size = mmap.PAGESIZE, self.array.itemsize
        begin = first * size // page * page
        length = last * size - begin
        if length > 0 and hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED, begin, length)

    def sync(self) -> None:
        """Make sure that it is on the disk."""
        self._map.flush()
