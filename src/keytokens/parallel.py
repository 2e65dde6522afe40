"""Threads over independent parts of the work, results in the order of the parts."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["cores", "ordered_map", "ordered_stream", "ordered_sum", "over_spans"]

_SPAN = 1 << 16  # numbers: some vectors of this length stay in the cache

Part = TypeVar("Part")
Result = TypeVar("Result")


def cores() -> int:
    """How many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # pragma: no cover - not on Linux
        return os.cpu_count() or 1


def ordered_map(work: Callable[[Part], Result], parts: Iterable[Part], threads: int) -> list[Result]:
    """`[work(part) for part in parts]`, in up to `threads` threads. The first error stops what has not begun.

    >>> ordered_map(abs, [-1, 2, -3], threads=2)
    [1, 2, 3]
    """
    parts = list(parts)
    if threads <= 1 or len(parts) <= 1:
        return [work(part) for part in parts]
    with ThreadPoolExecutor(min(threads, len(parts))) as pool:
        futures = [pool.submit(work, part) for part in parts]
        try:
            return [future.result() for future in futures]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def ordered_stream(work: Callable[[Part], Result], parts: Iterable[Part], threads: int) -> Iterator[Result]:
    """`map(work, parts)` with up to `threads` parts at work and one that waits: parts may be more than fit in memory.

    >>> list(ordered_stream(abs, iter([-1, 2, -3]), threads=2))
    [1, 2, 3]
    """
    if threads <= 1:
        yield from map(work, parts)
        return
    with ThreadPoolExecutor(threads) as pool:
        begun: deque[Future[Result]] = deque()
        try:
            for part in parts:
                begun.append(pool.submit(work, part))
                if len(begun) > threads:
                    yield begun.popleft().result()
            while begun:
                yield begun.popleft().result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def ordered_sum(work: Callable[[Part], list[NDArray[Any]]], parts: Iterable[Part], threads: int) -> NDArray[Any]:
    """The sum of the arrays that `work` returns for each part, in the order of the parts. One part at least.

    >>> ordered_sum(lambda n: [np.full(2, n), np.ones(2)], [1, 2, 3], threads=2).tolist()
    [[6.0, 6.0], [3.0, 3.0]]
    """
    done = ordered_stream(work, parts, threads)
    total = np.stack(next(done))
    for arrays in done:
        for row, array in zip(total, arrays, strict=True):
            row += array
    return total


def over_spans(work: Callable[[slice], Result], length: int, threads: int) -> list[Result]:
    """`work` on consecutive spans of a vector, one at least; they depend on its length alone.

    >>> over_spans(lambda at: at.stop - at.start, 100_000, threads=2)
    [65536, 34464]
    """
    return ordered_map(work, [slice(at, min(at + _SPAN, length)) for at in range(0, max(length, 1), _SPAN)], threads)
