"""Threads over independent parts of the work, results in the order of the parts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

__all__ = ["cores", "ordered_map"]

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
