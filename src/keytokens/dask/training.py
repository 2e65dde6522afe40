"""A training set whose blocks lie on workers: parameters go down, sums come up, all else is as on one machine."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import pairwise
from typing import Any, TypeVar

import distributed
import numpy as np
from distributed import Future
from numpy.typing import NDArray

from ..base.threads import TreeSum
from ..model.attention import Parameters
from ..model.blocks import Block, Float, block_bounds
from ..model.losses import Labels
from ..model.weighting import WEIGHTINGS
from ..text.matrix import Rows, parts_of, stacked
from ..text.ngrams import Built
from ..training.fit import TrainingSet, means_of
from .cluster import LOST, Cluster

_TRIES = 5
_PART = 1 << 20  # numbers in one message

Result = TypeVar("Result")
Held = tuple[Block, Labels, Float]


@dataclass(frozen=True, eq=False, kw_only=True)
class ClusterSet(TrainingSet):
    """`blocks` is empty: they are `held` by the workers, the first ones by the first worker."""

    cluster: Cluster
    held: list[Future]
    own_threads: int | None  # None: as many as a worker has

    def means(self, theta: Parameters) -> Iterator[Float]:
        def once() -> list[Float]:
            there = spread(self.cluster, theta)
            found = []
            for number, held in enumerate(self.held):
                at = number / len(self.held)
                own = there[self.cluster.number(at)]
                found.append(self.cluster.run(_means, held, own, self.own_threads, at=at))
            return [_aligned(each) for each in self.cluster.gather(found)]

        return iter(_again_if_lost(once))

    def sum(self, of: Callable[..., Any], *given: Any) -> Any:
        """Every worker sums aligned groups of its blocks; these are nodes of the tree that one machine would make."""

        def once() -> Any:
            there = [spread(self.cluster, one) for one in given]
            tree: TreeSum[_Node] = TreeSum()
            for rank, first in self._groups():
                at = first / len(self.held)
                blocks = self.held[first : first + (1 << rank)]
                own = [one[self.cluster.number(at)] for one in there]
                node = self.cluster.run(_sum_of_group, blocks, of, own, self.own_threads, at=at)
                tree.add(_Node(self.cluster, node, at), rank)
            return _aligned(self.cluster.gather(tree.total().sum))

        return _again_if_lost(once)

    def _groups(self) -> Iterator[tuple[int, int]]:
        n_workers, n_blocks = len(self.cluster.workers), len(self.held)
        # the first block of a worker is the first whose place, number / blocks, lies in its share
        starts = [-(-number * n_blocks // n_workers) for number in range(n_workers + 1)]
        for first, last in pairwise(starts):
            yield from aligned(first, last)


def _again_if_lost(work: Callable[[], Result]) -> Result:
    """What is lost with a worker is made again by the scheduler; where it gives up, the work is begun anew."""
    for _ in range(_TRIES - 1):
        try:
            return work()
        except LOST:
            continue
    return work()


def aligned(first: int, last: int) -> Iterator[tuple[int, int]]:
    """first .. last - 1 in groups of 2^rank that begin at a multiple of it: (rank, begin).

    >>> list(aligned(3, 9))
    [(0, 3), (2, 4), (0, 8)]
    """
    while first < last:
        rank = (last - first).bit_length() - 1
        while first % (1 << rank):
            rank -= 1
        yield rank, first
        first += 1 << rank


@dataclass(frozen=True, eq=False)
class _Node:
    """A sum on some worker."""

    cluster: Cluster
    sum: Future
    at: float

    def __add__(self, other: _Node) -> _Node:
        return replace(self, sum=self.cluster.run(operator.add, self.sum, other.sum, at=self.at))


def _aligned(item: Any) -> Any:
    """The same with arrays that begin where a number may begin.

    What comes out of a message may lie anywhere; numpy sums it by other parts then, and the last bits differ.
    """
    if isinstance(item, np.ndarray):
        return np.require(item, requirements="A")
    if is_dataclass(item) and not isinstance(item, type):
        return replace(item, **{field.name: _aligned(getattr(item, field.name)) for field in fields(item)})
    return item


def training_set(
    cluster: Cluster,
    built: Built,
    counts: str,
    y: NDArray[Any],
    weight: Float,
    n_classes: int,
    threads: int,
    own_threads: int | None,
    begin: int = 0,
) -> ClusterSet:
    """The blocks that one machine would cut of so many texts, each on one worker; they may come from several shards."""
    sizes = cluster.gather(cluster.run_each(_sizes, built.rows))
    lengths = np.concatenate(sizes)[begin : begin + len(y)]
    bounds = block_bounds(np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]), n_classes)
    n_tokens = len(built.vocabulary)
    narrow = y.astype(np.min_scalar_type(n_classes)) if y.ndim == 1 else y
    held: list[Future] = []
    for first, last in pairwise(bounds):
        at, span_of_all = len(held) / (len(bounds) - 1), (begin + first, begin + last)
        parts = [(built.rows[number], *span) for number, *span in parts_of([*map(len, sizes)], *span_of_all)]
        own_y, own_weight = (_sent(cluster, array[first:last], at) for array in (narrow, weight))
        held.append(cluster.run(_block, parts, n_tokens, counts, own_y, own_weight, at=at))
    ends = bounds[1:-1]
    return ClusterSet(
        [],
        np.split(y, ends),
        np.split(weight, ends),
        n_classes,
        threads,
        built.vocabulary.sizes,
        cluster=cluster,
        held=held,
        own_threads=own_threads,
    )


def _sent(cluster: Cluster, array: NDArray[Any], at: float) -> list[Any]:
    """An array as arguments of tasks, so that it can be sent again."""
    return [cluster.run(_itself, array[i : i + _PART], at=at) for i in range(0, len(array), _PART)]


def spread(cluster: Cluster, item: Any) -> list[Any]:
    """What to hand to the tasks of each worker: parameters go to the first, and each hands them on to two others."""
    n_workers = len(cluster.workers)
    if not isinstance(item, Parameters):
        return [item] * n_workers
    a, B = (_sent(cluster, array, 0) for array in (item.a, item.B.ravel(order="F")))
    copies = [cluster.run(_parameters, a, B, item.c, item.empty, item.log_sink, at=0)]
    for number in range(1, n_workers):
        copies.append(cluster.run(_itself, copies[(number - 1) // 2], at=(number + 0.5) / n_workers))
    return copies


# On the workers ------------------------------------------------------------------------------------------------------


def _itself(given: Any) -> Any:
    return given


def _parameters(a: Sequence[Float], B: Sequence[Float], c: Float, *rest: Any) -> Parameters:
    return Parameters(np.concatenate(a), np.concatenate(B).reshape(-1, len(c)).T, c, *rest)


def _sizes(shard: Sequence[Rows]) -> NDArray[np.int32]:
    """Tokens of each text."""
    return np.concatenate([np.empty(0, np.int32), *(rows.sizes for rows in shard)])


def _block(
    parts: Sequence[tuple[Sequence[Rows], int, int]],
    n_tokens: int,
    counts: str,
    y: Sequence[Any],
    weight: Sequence[Any],
) -> Held:
    """One block of the texts first .. last - 1 of each shard."""
    rows = [
        (shard[number], i, j)
        for shard, first, last in parts
        for number, i, j in parts_of([len(own.sizes) for own in shard], first, last)
    ]
    matrix = stacked(rows, n_tokens, WEIGHTINGS[counts])
    own = np.concatenate(y)
    return Block.of(matrix), own.astype(np.intp) if own.ndim == 1 else own, np.concatenate(weight)


def _threads(asked: int | None) -> int:
    return asked or int(distributed.get_worker().state.nthreads)


def _sum_of_group(held: Sequence[Held], of: Callable[..., Any], given: Sequence[Any], threads: int | None) -> Any:
    tree: TreeSum[Any] = TreeSum()
    for block, y, weight in held:
        tree.add(of(block, y, weight, *given, _threads(threads)))
    return tree.total()


def _means(held: Held, theta: Parameters, threads: int | None) -> Float:
    return means_of(held[0], theta, _threads(threads))
