"""Threads over independent parts of the work, results in the order of the parts; BLAS held to one thread."""

from __future__ import annotations

import functools
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

from threadpoolctl import ThreadpoolController

Part = TypeVar("Part")
Result = TypeVar("Result")
Pool = int | Executor  # how many, or a pool of them (see `pool_of`)


def cores() -> int:
    """How many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # pragma: no cover - not on Linux
        return os.cpu_count() or 1


@contextmanager
def pool_of(threads: Pool) -> Iterator[Pool]:
    """Threads for one stage of the work: to start them for each of its calls takes a twentieth of a short fit."""
    if isinstance(threads, Executor) or threads <= 1:
        yield threads
    else:
        with ThreadPoolExecutor(threads) as pool:
            yield pool


def ordered_map(work: Callable[[Part], Result], parts: Iterable[Part], threads: Pool) -> list[Result]:
    """`[work(part) for part in parts]`, in so many threads, or in those of a pool. An error stops what has not begun.

    >>> ordered_map(abs, [-1, 2, -3], threads=2)
    [1, 2, 3]
    """
    parts = list(parts)
    if len(parts) <= 1 or (isinstance(threads, int) and threads <= 1):
        return list(map(work, parts))
    if isinstance(threads, Executor):
        return list(threads.map(work, parts))
    with ThreadPoolExecutor(min(threads, len(parts))) as pool:
        return list(pool.map(work, parts))


def ordered_stream(work: Callable[[Part], Result], parts: Iterable[Part], threads: int) -> Iterator[Result]:
    """`map(work, parts)` with up to `threads` parts at work and one that waits: parts may be more than fit in memory.

    >>> list(ordered_stream(abs, iter([-1, 2, -3]), threads=2))
    [1, 2, 3]
    """
    if threads <= 1:
        yield from map(work, parts)
        return
    answers: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for part in parts:
                answers.append(pool.submit(work, part))
                if len(answers) > threads:
                    yield answers.popleft().result()
            while answers:
                yield answers.popleft().result()
        finally:  # who stops early waits for what has begun only
            for answer in answers:
                answer.cancel()


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


class _Holders:
    """Who wants BLAS to have one thread; its number of threads belongs to the whole process, not to a caller."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.count = 0
        self.before: list[int] = []


_holders = _Holders()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS to one thread, so that its sums have the same bits everywhere.

    Calls in several threads may overlap: the first one sets the limit and the last one lifts it. With a limit for each
    call, the first to end would give BLAS its threads back in the middle of the others.
    """
    held = _holders  # of this process: after a fork there is another one
    with held.lock:
        if not held.count:
            held.before = [library.num_threads for library in _blas()]
            _set_threads(1 for _ in _blas())
        held.count += 1
    try:
        yield
    finally:
        with held.lock:
            held.count -= 1
            if not held.count:
                _set_threads(held.before)


def _begin_anew() -> None:
    """After a fork: who held the lock stays behind in the parent."""
    global _holders
    _holders = _Holders()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)
