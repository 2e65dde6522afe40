"""Threads over independent parts of the work, results in the order of the parts."""

from __future__ import annotations

import ctypes
import functools
import math
import mmap
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

_KEPT = 8 << 20  # bytes
_OWN_PAGES = 1 << 20  # bytes: smaller arrays leave small gaps
_SPAN = 1 << 17  # numbers: some vectors of this length stay in a cache, and Python's own part of the work is small
_RUN = 4  # spans of one thread, about a huge page: two threads that touch a fresh one would both make it

_trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None  # glibc only
_kept_whole = False

Part = TypeVar("Part")
Result = TypeVar("Result")


def cores() -> int:
    """How many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # pragma: no cover - not on Linux
        return os.cpu_count() or 1


def memory() -> float:
    """The bytes of memory that the machine has; infinite where the system does not say."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):  # pragma: no cover - not on Windows
        return math.inf


def give_back_memory() -> None:
    """Give memory that is free back to the system. Threads free it piece by piece, which the allocator keeps."""
    if _trim is not None and not _kept_whole:
        _trim(0)


def keep_whole_memory(keep: bool) -> None:
    """Whether `give_back_memory` is to do nothing: who has many tasks of one size soon needs again what is free."""
    global _kept_whole
    _kept_whole = keep


@functools.cache
def keep_freed_memory(size: int = _KEPT) -> None:
    """Let malloc keep a few megabytes that are freed: the first touch of fresh memory takes longer than work on it.

    That of glibc hands arrays back to the system above twice the size of the largest that was ever freed, up to 32 MB;
    so this frees one, which nobody has touched. Without it every piece of the texts would be read in fresh memory.
    """
    np.empty(size, np.uint8)


def on_own_pages(shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """An array with anything in it, for a long time: what malloc lays among others leaves gaps when it goes.

    The pages are small ones: on a machine that borrows its memory from a host, the first touch of huge ones costs six
    times as much, and no fit was slower with small ones.
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if size < _OWN_PAGES:
        return np.empty(shape, dtype)
    private = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}
    return np.frombuffer(mmap.mmap(-1, size, **private), dtype).reshape(shape)


def ordered_map(work: Callable[[Part], Result], parts: Iterable[Part], threads: int) -> list[Result]:
    """`[work(part) for part in parts]`, in up to `threads` threads, of which this is one.

    An error stops what has not begun.

    >>> ordered_map(abs, [-1, 2, -3], threads=2)
    [1, 2, 3]
    """
    parts = list(parts)
    if threads <= 1 or len(parts) <= 1:
        return [work(part) for part in parts]
    waiting = deque(enumerate(parts))
    done: dict[int, Result] = {}

    def following() -> tuple[int, Part] | None:
        try:
            return waiting.popleft()
        except IndexError:
            return None

    def take() -> None:
        """Parts as long as there are any: a pool that is handed one after the other costs more than some of them."""
        try:
            while taken := following():
                done[taken[0]] = work(taken[1])
        except BaseException:
            waiting.clear()
            raise

    pool = _helpers(threads - 1)
    others = [pool.submit(take) for _ in range(min(threads, len(parts)) - 1)]
    try:
        take()
    finally:  # a helper that has not begun, for it is busy elsewhere, would find nothing to do
        wait([other for other in others if not other.cancel()])
    for other in others:
        if not other.cancelled():
            other.result()
    return [done[at] for at in range(len(parts))]


@functools.cache
def _helpers(threads: int) -> ThreadPoolExecutor:
    """Threads that wait for work: a fit asks some hundred times, and to start them takes longer than some of it."""
    return ThreadPoolExecutor(threads, "keytokens")


@functools.cache
def _blas() -> list[Any]:
    """The libraries that are loaded: finding them takes longer than a small problem."""
    return ThreadpoolController().select(user_api="blas").lib_controllers


def _set_threads(numbers: Iterable[int]) -> None:
    """From version 3.8 on threadpoolctl lets one Python thread alone set the number, and ignores the others."""
    for library, number in zip(_blas(), numbers, strict=True):
        getattr(library, "clear_controlling_thread", lambda force: None)(force=True)
        library.set_num_threads(number)
        getattr(library, "clear_controlling_thread", lambda force: None)(force=True)


class _BlasHolders:
    """Who wants BLAS to have one thread; its number of threads belongs to the whole process, not to a caller."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.count = 0
        self.before: list[int] = []

    def enter(self) -> None:
        with self.lock:
            if not self.count:
                self.before = [library.num_threads for library in _blas()]
                _set_threads(1 for _ in _blas())
            self.count += 1

    def leave(self) -> None:
        with self.lock:
            self.count -= 1
            if not self.count:
                _set_threads(self.before)


_holders = _BlasHolders()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS to one thread, so that its sums have the same bits everywhere.

    Calls in several threads may overlap: the first one sets the limit and the last one lifts it. With a limit for each
    call, the first to end would give BLAS its threads back in the middle of the others.
    """
    held = _holders  # of this process: after a fork there is another one
    held.enter()
    try:
        yield
    finally:
        held.leave()


def _begin_anew() -> None:
    """Threads stay behind in the parent, and so does who held a lock."""
    global _holders
    _helpers.cache_clear()
    _holders = _BlasHolders()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


def ordered_stream(work: Callable[[Part], Result], parts: Iterable[Part], threads: int) -> Iterator[Result]:
    """`map(work, parts)` with up to `threads` parts at work and one that waits: parts may be more than fit in memory.

    This thread is one of them, while it waits for an answer.

    >>> list(ordered_stream(abs, iter([-1, 2, -3]), threads=2))
    [1, 2, 3]
    """
    if threads <= 1:
        yield from map(work, parts)
        return
    pool, queue = _helpers(threads - 1), _Queue(work)
    answers: deque[Future[Result]] = deque()
    helping: list[Future[bool]] = []

    def first() -> Result:
        while not answers[0].done() and queue.take():
            pass
        return answers.popleft().result()

    try:
        for part in parts:
            answers.append(queue.add(part))
            helping = [*(call for call in helping if not call.done()), pool.submit(queue.take)]
            if len(answers) > threads:
                yield first()
        while answers:
            yield first()
    finally:  # who stops early waits for the helpers; not for an answer, which Ctrl-C may have kept this thread from
        queue.clear()
        wait([call for call in helping if not call.cancel()])


class _Queue(Generic[Part, Result]):
    """Parts that nobody has begun."""

    def __init__(self, work: Callable[[Part], Result]) -> None:
        self._work = work
        self._waiting: deque[tuple[Part, Future[Result]]] = deque()

    def add(self, part: Part) -> Future[Result]:
        """Its answer, once somebody has done the work."""
        answer: Future[Result] = Future()
        self._waiting.append((part, answer))
        return answer

    def take(self) -> bool:
        """Do the first part; whether there was one."""
        try:
            part, answer = self._waiting.popleft()
        except IndexError:
            return False
        try:
            answer.set_result(self._work(part))
        except BaseException as error:
            answer.set_exception(error)
            if not isinstance(error, Exception):
                raise
        return True

    def clear(self) -> None:
        """Take back what nobody has begun."""
        self._waiting.clear()


class TreeSum(Generic[Part]):
    """A sum in pairs, pairs of pairs, and so on: parts may be summed anywhere in aligned groups, with the same bits.

    A part is a node of rank 0; nodes 2i and 2i + 1 of rank r are summed to node i of rank r + 1.

    >>> total = TreeSum()
    >>> for part in ["a", "b", "c"]: total.add(part)
    >>> total.nodes, total.total()
    ([(1, 'ab'), (0, 'c')], 'abc')
    """

    def __init__(self) -> None:
        self.nodes: list[tuple[int, Part]] = []

    def add(self, part: Part, rank: int = 0) -> None:
        """The next part, or a whole node of so many pairings."""
        while self.nodes and self.nodes[-1][0] == rank:
            part = self.nodes.pop()[1] + part  # type: ignore[operator]
            rank += 1
        self.nodes.append((rank, part))

    def total(self) -> Part:
        """Of all parts; there must be one."""
        *nodes, (_, total) = self.nodes
        for _, part in reversed(nodes):
            total = part + total  # type: ignore[operator]
        return total


def over_spans(work: Callable[[slice], Result], length: int, threads: int, rows: int = 1) -> list[Result]:
    """`work` on consecutive spans of a vector, or of a matrix with so many rows; one at least.

    The spans depend on length and rows alone.

    >>> over_spans(lambda at: at.stop - at.start, 200_000, threads=2)
    [131072, 68928]
    """
    span = max(1, _SPAN // rows)
    spans = [slice(at, min(at + span, length)) for at in range(0, max(length, 1), span)]
    size = max(1, min(_RUN, len(spans) // (4 * threads)))
    runs = [spans[at : at + size] for at in range(0, len(spans), size)]
    return [one for run in ordered_map(lambda run: list(map(work, run)), runs, threads) for one in run]
