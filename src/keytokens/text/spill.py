"""Where the arrays of many pieces wait for their next use: in memory, or in a file for texts that are larger.

A shelf holds one kind of thing, a dataclass of arrays, one for each piece. Threads may put and get at the same time,
each its own piece; so how many pieces there are is stated at the start and never derived from what was put. Only
`append`, for pieces that flow by, makes a shelf longer: it is for one thread.
"""

from __future__ import annotations

import os
import tempfile
import threading
import weakref
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

Item = TypeVar("Item")


class Shelf(Protocol[Item]):
    """Things by number."""

    def put(self, at: int, item: Item) -> None: ...

    def append(self, item: Item) -> None:
        """Put one behind the last: for one thread."""

    def get(self, at: int) -> Item: ...

    def part(self, at: int, name: str, first: int, last: int) -> NDArray[Any]:
        """Entries first .. last - 1 of one array of a thing."""

    def size(self, at: int, name: str) -> int:
        """The length of one array of a thing."""

    def drop(self, at: int) -> None: ...

    def close(self) -> None:
        """Forget everything."""

    def __len__(self) -> int: ...


ShelfMaker = Callable[[type[Any], int], Shelf[Any]]  # for so many things of one kind


class MemoryShelf(Generic[Item]):
    def __init__(self, kind: type[Item], count: int = 0) -> None:
        self._items: dict[int, Item] = {}
        self._count = count

    def put(self, at: int, item: Item) -> None:
        self._items[at] = item

    def append(self, item: Item) -> None:
        self.put(self._count, item)
        self._count += 1

    def get(self, at: int) -> Item:
        return self._items[at]

    def part(self, at: int, name: str, first: int, last: int) -> NDArray[Any]:
        return np.asarray(getattr(self._items[at], name)[first:last])

    def size(self, at: int, name: str) -> int:
        return len(getattr(self._items[at], name))

    def drop(self, at: int) -> None:
        del self._items[at]

    def close(self) -> None:
        self._items.clear()

    def __len__(self) -> int:
        return self._count


class FileShelf(Generic[Item]):
    """All things in one file that has no name any more, so that it goes with the process, however that ends."""

    def __init__(self, kind: type[Item], folder: Path, count: int = 0) -> None:
        self._kind = kind
        self._names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
        with tempfile.TemporaryFile(dir=folder) as file:
            self._file = os.dup(file.fileno())
        self._closed = weakref.finalize(self, os.close, self._file)  # also where an error ends everything
        self._end = 0
        self._lock = threading.Lock()
        self._places: dict[int, dict[str, tuple[int, np.dtype[Any], int]]] = {}
        self._count = count

    def put(self, at: int, item: Item) -> None:
        arrays = [np.ascontiguousarray(getattr(item, name)) for name in self._names]
        with self._lock:
            begin = self._end
            self._end += sum(array.nbytes for array in arrays)
        places = {}
        for name, array in zip(self._names, arrays, strict=True):
            _write(self._file, array, begin)
            places[name] = (begin, array.dtype, len(array))
            begin += array.nbytes
        self._places[at] = places

    def append(self, item: Item) -> None:
        self.put(self._count, item)
        self._count += 1

    def get(self, at: int) -> Item:
        return self._kind(*(self.part(at, name, 0, self.size(at, name)) for name in self._names))

    def part(self, at: int, name: str, first: int, last: int) -> NDArray[Any]:
        begin, dtype, _ = self._places[at][name]
        found = np.empty(last - first, dtype)
        _read(self._file, found, begin + first * dtype.itemsize)
        return found

    def size(self, at: int, name: str) -> int:
        return self._places[at][name][2]

    def drop(self, at: int) -> None:
        """Its room in the file is used until all of it is closed."""
        del self._places[at]

    def close(self) -> None:
        self._places.clear()
        self._closed()

    def __len__(self) -> int:
        return self._count


def file_shelves(folder: Path) -> ShelfMaker:
    return lambda kind, count: FileShelf(kind, folder, count)


def _write(file: int, array: NDArray[Any], begin: int) -> None:
    left = array.view(np.uint8).data
    while left:
        done = os.pwrite(file, left, begin)
        left, begin = left[done:], begin + done


def _read(file: int, into: NDArray[Any], begin: int) -> None:
    left = into.view(np.uint8).data
    while left:
        done = os.preadv(file, [left], begin)
        if not done:
            raise OSError("a file of our own has become shorter")
        left, begin = left[done:], begin + done
