"""Where blocks of texts are worked on, and where what is made of them waits for its next use.

`text.ngrams.build` says what to make of each block and of all of them; an executor says where. `Threads` is the one of
this process: results wait in memory or, for more texts than it holds, in files.
"""

from __future__ import annotations

import mmap
import os
import pickle
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, Protocol

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
        self,
        cut: Callable[..., Any],
        merge: Callable[..., Any],
        items: Sequence[Any],
        bounds: Any,
        least: int,
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
        keep = (lambda item: item) if self._folder is None else Spill(self._folder).put

        def one(items: tuple[Any, ...]) -> Any:
            return keep(work(*given, *map(loaded, items)))

        return list(ordered_stream(one, zip(*lists, strict=True), self.width))

    def fold(self, work: Callable[[Iterable[Any]], Any], items: Sequence[Any]) -> Any:
        return work(map(loaded, items))

    def exchange(
        self,
        cut: Callable[..., Any],
        merge: Callable[..., Any],
        items: Sequence[Any],
        bounds: Any,
        least: int,
    ) -> list[Any]:
        def one(ends: tuple[Any, Any]) -> Any:
            return merge([cut(loaded(item), *ends) for item in items], least)

        return list(ordered_stream(one, pairwise(bounds), self.width))

    def call(self, work: Callable[..., Any], *given: Any) -> Any:
        return work(*given)

    def value(self, result: Any) -> Any:
        return result


class Spill:
    """A file for things with large arrays. It has no name, so it goes when nothing of it is wanted any more."""

    def __init__(self, folder: Path) -> None:
        with tempfile.TemporaryFile(dir=folder) as file:
            self._file = os.dup(file.fileno())
        weakref.finalize(self, os.close, self._file)
        self._lock = threading.Lock()
        self._end = 0

    def put(self, item: Any) -> Spilled:
        """Write it to the file; several threads may do so at a time."""
        buffers: list[pickle.PickleBuffer] = []
        head = pickle.dumps(item, 5, buffer_callback=buffers.append)
        parts = [memoryview(head), *(buffer.raw() for buffer in buffers)]
        starts = list(accumulate((_rounded(len(part), _ALIGNED) for part in parts), initial=0))
        size = _rounded(starts.pop(), mmap.ALLOCATIONGRANULARITY)  # what is mapped begins at a multiple of this
        with self._lock:
            begin, self._end = self._end, self._end + size
        for part, start in zip(parts, starts, strict=True):
            self._write(part, begin + start)
        return Spilled(self, begin, [(start, start + len(part)) for part, start in zip(parts, starts, strict=True)])

    def _write(self, left: memoryview, at: int) -> None:
        while left:
            done = os.pwrite(self._file, left, at)
            left, at = left[done:], at + done

    def mapped(self, begin: int, size: int) -> memoryview:
        """Bytes of the file: they take memory as far as they are read, until nobody holds any of them."""
        return memoryview(mmap.mmap(self._file, size, offset=begin, access=mmap.ACCESS_READ))


class Spilled:
    """One thing in a file."""

    def __init__(self, spill: Spill, begin: int, parts: list[tuple[int, int]]) -> None:
        self._spill = spill
        self._begin = begin
        self._parts = parts

    def get(self) -> Any:
        """Read-only arrays, and whatever holds them."""
        size = max(last for first, last in self._parts if first < last)  # behind it nothing was written
        whole = self._spill.mapped(self._begin, size)
        head, *buffers = [whole[first:last] for first, last in self._parts]
        return pickle.loads(head, buffers=buffers)


def _rounded(size: int, unit: int) -> int:
    return -(-size // unit) * unit


def loaded(item: Any) -> Any:
    """What a result of `Threads` stands for."""
    return item.get() if isinstance(item, Spilled) else item
