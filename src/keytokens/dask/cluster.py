"""The workers of a cluster, and work sent to them in the order of the data.

What users give: dask bags, series, frames of one column, arrays, delayed parts or futures; or plain lists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from itertools import groupby
from typing import Any, TypeVar

import distributed
import numpy as np
from dask.base import is_dask_collection
from dask.delayed import Delayed
from dask.sizeof import sizeof
from distributed import Future

from ..base.checks import Seen, check_texts, one_column
from ..base.errors import KeyTokensError, refusal
from ..estimators.streaming import Coded, code
from ..model.attention import Gradient, Parameters
from ..model.blocks import Block, Float
from ..model.prior import SoftCounts, Statistics
from ..text.hashing import KeyTable
from ..text.matrix import Rows
from ..text.ngrams import Grams, Reading, WordCounts
from ..text.words import blocks

Result = TypeVar("Result")

LOST = (distributed.CancelledError, distributed.client.FutureCancelledError)
_WAIT = 60.0  # seconds for the first worker
_LOOK, _LOOKS = 5.0, 4  # seconds between two looks at workers that are slow, and how many may find them all asleep


@dataclass(eq=False)
class Cluster:
    """A client and the workers that it sees; the data lie on them in order, an equal share on each."""

    client: Any
    workers: list[str]

    @classmethod
    def of(cls, client: Any) -> Cluster:
        try:
            client = client or distributed.default_client()
        except ValueError:
            advice = "open one first, for example client = Client('tcp://address:8786')"
            rule = "be a client, or one must be open"
            raise refusal("DaskKeyTokenClassifier", "client", rule, None, advice) from None
        client.wait_for_workers(1, timeout=_WAIT)
        return cls(client, sorted(client.nthreads()))

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
                raise KeyTokensError("fit: all workers of the cluster were lost at once. Fit again.")
        return self.client.gather(futures, direct=self.near or None)

    @property
    def near(self) -> bool:
        """Whether all workers are on this machine: then their results need not go through the scheduler."""
        return all("://127.0.0.1:" in worker for worker in self.workers)


def _bytes(item: Any) -> int:
    """What an object of ours holds; without it the scheduler would take it to be a few bytes, and move it about."""
    if is_dataclass(item):
        return sum(_bytes(getattr(item, field.name)) for field in fields(item))
    if isinstance(item, tuple):
        return sum(map(_bytes, item))
    return int(item.nbytes) if isinstance(item, np.ndarray) else int(sizeof(item))


for _kind in (WordCounts, Reading, Grams, KeyTable, Rows, Parameters, Gradient, Statistics, SoftCounts):
    sizeof.register(_kind, _bytes)
sizeof.register(Block, lambda block: int(sizeof(block.tokens)))


def is_lazy(given: Any) -> bool:
    """Whether this is a collection of dask's, or a list of its parts."""
    return is_dask_collection(given) or (
        isinstance(given, (list, tuple)) and bool(given) and all(isinstance(part, (Delayed, Future)) for part in given)
    )


def parts_of(owner: str, name: str, given: Any) -> list[Any]:
    """The partitions of a collection, in order."""
    if isinstance(given, Delayed):  # which claims to have any attribute
        return [given]
    if isinstance(given, (list, tuple)):
        return list(given)
    if hasattr(given, "columns") and getattr(given, "ndim", 1) == 2:
        if len(given.columns) != 1:
            rule = "be a series, or a frame of one column"
            raise refusal(owner, name, rule, list(given.columns), "choose one: frame['text']")
        given = given[given.columns[0]]
    elif getattr(given, "ndim", 1) != 1:
        raise refusal(owner, name, "be an array of one dimension", given)
    parts = given.to_delayed()
    return list(parts.ravel()) if isinstance(parts, np.ndarray) else list(parts)


@dataclass(frozen=True, eq=False)
class Sealed:
    """A partition that goes from worker to worker in one message: dask sends a list of strings one by one."""

    content: Any


sizeof.register(Sealed, lambda part: int(sizeof(part.content)))


def futures_of(cluster: Cluster, parts: list[Any]) -> list[Future]:
    """Each part, sealed, on the worker that will need it, as results that can be computed again."""
    n_workers, found = len(cluster.workers), []
    for number, worker in enumerate(cluster.workers):
        own = parts[number * len(parts) // n_workers : (number + 1) * len(parts) // n_workers]
        found += cluster.client.compute(own, workers=[worker], allow_other_workers=True)
    # where they are: an idle worker may have taken some from a busy one
    return [cluster.client.submit(Sealed, part, pure=False) for part in found]


def put_texts(cluster: Cluster, texts: Iterable[str]) -> list[Future]:
    """Texts of this process as parts on the cluster.

    They go as arguments of tasks, not as bare data: the scheduler can send them again if a worker is lost. Small parts,
    because it warns of large ones.
    """
    return [cluster.client.submit(Sealed, piece, pure=False) for piece in blocks(texts)]


def checked_part(owner: str, part: Any, number: int) -> list[str]:
    """The texts of one partition; a refusal names it."""
    return check_texts(f"{owner}, partition {number}", part)


def _code(labels: Sealed) -> Coded:
    return code("fit", list(one_column("fit", "labels", labels.content)))


def coded(cluster: Cluster, labels: Any) -> list[Any]:
    """Labels in numbers, part by part, here or on the workers."""
    if is_lazy(labels):
        return cluster.run_each(_code, futures_of(cluster, parts_of("fit", "labels", labels)))
    if isinstance(labels, (str, bytes)):
        raise refusal("fit", "labels", "be a list, one label a text", labels)
    return [code("fit", list(one_column("fit", "labels", labels)))]


def check_length(n_labels: int, n_texts: int) -> None:
    if n_labels != n_texts:
        seen = Seen(f"{n_labels} labels")
        raise refusal("fit", "labels", f"have one entry for each of the {n_texts} texts", seen)


def weights_of(cluster: Cluster, given: Any) -> Float | None:
    """The weights of all texts, if there are any."""
    if not is_lazy(given):
        return given
    parts = cluster.gather(futures_of(cluster, parts_of("fit", "sample_weight", given)))
    return np.concatenate([np.asarray(part.content, np.float64) for part in parts])
