"""The workers of a cluster, and work sent to them in the order of the data."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from itertools import groupby
from typing import Any, TypeVar

import distributed
import numpy as np
from dask.sizeof import sizeof
from distributed import Future

from ..core.attention import Parameters, Sums
from ..core.counts import Block
from ..core.prior import Statistics
from ..errors import KeyTokensError, refusal
from ..parallel import give_back_memory, keep_freed_memory, keep_whole_memory
from ..text.building import Grams, Shard
from ..text.shards import Entered, LentShelf, Numbering, WordCounts
from ..text.vocabulary import Level

__all__ = ["LOST", "Cluster", "present_client"]

Result = TypeVar("Result")

LOST = (distributed.CancelledError, distributed.client.FutureCancelledError)
_WAIT = 60.0  # seconds for the first worker
_LOOK, _LOOKS = 5.0, 4  # seconds between two looks at workers that are slow, and how many may find them all asleep
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of mallopt
_SETTLED = 1.0  # seconds after which workers have let go what nobody wants any more
_MOST_KEPT = 31 << 20  # bytes of an array that malloc may keep: it goes up to 32 MB


@dataclass(eq=False)
class Cluster:
    """A client and the workers that it sees; the data lie on them in order, an equal share on each."""

    client: Any
    workers: list[str]

    @classmethod
    def of(cls, client: Any) -> Cluster:
        client = present_client(client)
        keep_freed_memory(_MOST_KEPT)  # the vectors of a step are the same size again and again
        client.wait_for_workers(1, timeout=_WAIT)
        client.run(_keep_memory, on_error="ignore")
        return cls(client, sorted(client.nthreads()))

    def let_go(self) -> None:
        """To be called when a fit is done: workers give back to the system the memory that they kept for its tasks."""
        self.client.run(_give_back_memory, on_error="ignore")

    def run(self, work: Callable[..., Any], *given: Any, at: float) -> Future:
        """`work` on the worker that has the data at this place, from 0 to 1; on another one if that is gone."""
        worker = self.workers[self.number(at)]
        return self.client.submit(work, *given, workers=[worker], allow_other_workers=True, pure=False)

    def number(self, at: float) -> int:
        """Of the worker that has the data at this place."""
        return min(int(at * len(self.workers)), len(self.workers) - 1)

    def run_each(self, work: Callable[..., Any], items: Sequence[Any], *given: Any) -> list[Future]:
        """`work` on each of some items, which together are all data."""
        return [self.run(work, item, *given, at=number / len(items)) for number, item in enumerate(items)]

    def by_worker(self, items: Sequence[Any]) -> list[tuple[float, list[Any]]]:
        """Items, which together are all data: those that lie on one worker together, and where they begin."""
        places = [number / len(items) for number in range(len(items))]
        groups = groupby(zip(places, items, strict=True), key=lambda placed: self.number(placed[0]))
        together = [list(group) for _, group in groups]
        return [(group[0][0], [item for _, item in group]) for group in together]

    def gather(self, futures: Any) -> Any:
        """The results; an error where nobody works on them any more.

        A worker that is lost is replaced by the others. If all are lost at once, those that come later do not take over
        what was meant for them, and one would wait for ever.
        """
        waiting, idle = distributed.futures_of(futures), 0
        while waiting:
            try:
                with self.client.as_current():  # it may not be the default one
                    distributed.wait(waiting, timeout=_LOOK)
                break
            except TimeoutError:
                asleep = self.client.nthreads() and not any(self.client.processing().values())
                idle = idle + 1 if asleep else 0
            if idle == _LOOKS:
                raise KeyTokensError("fit: all workers of the cluster were lost at once. Cure: fit again.")
        return self.client.gather(futures, direct=self.near or None)

    @property
    def near(self) -> bool:
        """Whether all workers are on this machine: then their results need not go through the scheduler."""
        return all("://127.0.0.1:" in worker for worker in self.workers)


def present_client(client: Any) -> Any:
    if client is not None:
        return client
    try:
        return distributed.default_client()
    except ValueError:
        cure = "open one first, for example client = Client('tcp://address:8786')"
        raise refusal("DaskKeyTokenClassifier", "client", "be a client, or one must be open", None, cure) from None


def _keep_memory() -> None:
    """Give a worker's malloc back the thresholds that it would come to by itself, and let it keep what is free.

    Dask starts its worker processes with MALLOC_TRIM_THRESHOLD_ set, and then malloc does not learn: every array above
    128 KB is fresh memory of the system, whose first touch takes longer than the work on it. Another library of C than
    glibc has no `mallopt`, and stays as it is.
    """
    if _is_process_of_dask():
        keep_whole_memory(True)
        with contextlib.suppress(OSError, AttributeError):
            mallopt = ctypes.CDLL(None).mallopt
            mallopt(_MMAP_THRESHOLD, 32 << 20)
            mallopt(_TRIM_THRESHOLD, 64 << 20)


def _give_back_memory(dask_worker: Any) -> None:
    """The results of a fit are let go some moments after it."""
    if _is_process_of_dask():
        keep_whole_memory(False)
        dask_worker.loop.call_later(_SETTLED, give_back_memory)


def _is_process_of_dask() -> bool:
    """Not one that has work of its own."""
    return "MALLOC_TRIM_THRESHOLD_" in os.environ


def _bytes(item: Any) -> int:
    """What an object of ours holds; without it the scheduler would take it to be a few bytes, and move it about."""
    if isinstance(item, LentShelf):
        return sum(_bytes(item.get(at)) for at in range(len(item)))
    if is_dataclass(item):
        return sum(_bytes(getattr(item, field.name)) for field in fields(item))
    if isinstance(item, tuple):
        return sum(map(_bytes, item))
    return int(item.nbytes) if isinstance(item, np.ndarray) else int(sizeof(item))


for _kind in (LentShelf, Shard, Entered, Grams, Numbering, WordCounts, Parameters, Sums, Statistics):
    sizeof.register(_kind, _bytes)
sizeof.register(Block, lambda block: sum(map(sizeof, block.slices)))
sizeof.register(Level, lambda level: _bytes(level.table))  # which holds the keys
