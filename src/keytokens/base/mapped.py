"""Arrays that lie in a file: larger than memory, read where they are needed, and let go after use."""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


class MappedArray:
    """An array in a file of its own."""

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
