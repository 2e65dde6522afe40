"""Where blocks of texts are worked on, and where what is made of them waits for its next use.

`text.ngrams.build` says what to make of each block and of all of them; an executor says where. `Threads` is the one of
this process: results wait in memory or, for more texts than it holds, in files.
"""

from __future__ import annotations

import mmap
import os
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ..base.threads import ordered_stream
from .words import blocks

_ALIGNED = 64  # bytes: arrays begin at a multiple of them


class Executor(Protocol):
    """Applies functions, which change nothing that they are given, to blocks; its results may be anywhere."""

    width: int  # how many pieces of work it can do at a time

    def blocks(self, texts: Any) -> Iterable[Any]:
        """Texts, as the executor knows them, in blocks."""

    def map(self, work: Callable[..., Any], given: tuple[Any, ...], *lists: Iterable[Any]) -> list[Any]:
        """`work(*given, *items)` for each block, with its item of every list."""

    def fold(self, work: Callable[[Iterable[Any]], Any], items: Sequence[Any]) -> Any:
        """`work` of all items; perhaps first of some of them, and then of what came out."""

    def exchange(
        self, cut: Callable[..., Any], merge: Callable[..., Any], items: Sequence[Any], bounds: Any, least: int
    ) -> list[Any]:
        """For each range between two bounds `merge([cut(item, *range) for item in items], least)`."""

    def call(self, work: Callable[..., Any], *given: Any) -> Any:
        """`work(*given)`; what is given may be results, or lists of them."""

    def value(self, result: Any) -> Any:
        """A result, or a list of them, in this process."""


class Threads:
    """Work in so many threads; with a folder, the results of `map` wait in files there.

    >>> run = Threads(2)
    >>> run.map(pow, (2,), [1, 2, 3])
    [2, 4, 8]
    """

    def __init__(self, threads: int = 1, folder: Path | None = None) -> None:
        self.width = threads
        self._folder = folder

    def blocks(self, texts: Iterable[str]) -> Iterable[list[str]]:
        return blocks(texts)

    def map(self, work: Callable[..., Any], given: tuple[Any, ...], *lists: Iterable[Any]) -> list[Any]:
        keep = (lambda result: result) if self._folder is None else Spill(self._folder).put
        blocks = zip(*lists, strict=True)
        return list(ordered_stream(lambda own: keep(work(*given, *map(loaded, own))), blocks, self.width))

    def fold(self, work: Callable[[Iterable[Any]], Any], items: Sequence[Any]) -> Any:
        return work(map(loaded, items))

    def exchange(
        self, cut: Callable[..., Any], merge: Callable[..., Any], items: Sequence[Any], bounds: Any, least: int
    ) -> list[Any]:
        def one(ends: tuple[Any, Any]) -> Any:
            return merge([cut(loaded(item), *ends) for item in items], least)

        return list(ordered_stream(one, pairwise(bounds), self.width))

    def call(self, work: Callable[..., Any], *given: Any) -> Any:
        return work(*given)

    def value(self, result: Any) -> Any:
        return result


class Spill:
    """A file for large arrays. It has no name, so it goes when nothing of it is wanted any more."""

    def __init__(self, folder: Path) -> None:
        with tempfile.TemporaryFile(dir=folder) as file:
            self._file = os.dup(file.fileno())
        weakref.finalize(self, os.close, self._file)
        self._lock = threading.Lock()
        self._end = 0

    def put(self, item: Any) -> Spilled:
        """Write an array, or those of a dataclass, to the file; several threads may do so at a time."""
        if isinstance(item, np.ndarray):
            return Spilled(np.ndarray, {"": self._written(item)})
        return Spilled(type(item), {own.name: self._written(getattr(item, own.name)) for own in fields(item)})

    def _written(self, x: Any) -> Any:
        if not isinstance(x, np.ndarray):
            return x
        with self._lock:  # each array begins where a page does
            start = self._end
            self._end += -(-x.nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
        left, at = np.ascontiguousarray(x).reshape(-1).view(np.uint8), start
        while len(left):
            done = os.pwrite(self._file, left.data, at)
            left, at = left[done:], at + done
        return _Array(self, start, x.shape, x.dtype)

    def read(self, start: int, length: int) -> Any:
        """Some bytes of the file, mapped: they take memory as far as they are read, until nobody holds them."""
        if not length:
            return b""
        return mmap.mmap(self._file, length, offset=start, access=mmap.ACCESS_READ)


class _Array(NamedTuple):
    """An array in a file."""

    spill: Spill
    start: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def get(self) -> NDArray[Any]:
        size = int(np.prod(self.shape)) * self.dtype.itemsize
        return np.frombuffer(self.spill.read(self.start, size), self.dtype).reshape(self.shape)


class Spilled(NamedTuple):
    """An array, or a dataclass, whose arrays are in a file."""

    kind: type
    held: dict[str, Any]

    def get(self) -> Any:
        """The same with read-only arrays."""
        found = {name: x.get() if isinstance(x, _Array) else x for name, x in self.held.items()}
        return found[""] if self.kind is np.ndarray else self.kind(**found)


def loaded(item: Any) -> Any:
    """What a result of `Threads` stands for."""
    return item.get() if isinstance(item, Spilled) else item
