"""A training set whose blocks lie on workers: parameters go down, sums come up, all else is as on one machine."""

from __future__ import annotations

import functools
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
from ..model.attention import Parameters, Sums
from ..model.blocks import COUNTS, Block, Float, block_bounds, by_token, layout
from ..model.losses import Labels
from ..text.matrix import Rows, stacked
from ..text.ngrams import Built
from ..training.fit import TrainingSet, means_of
from .cluster import LOST, Cluster

_TRIES = 5
_PART = 1 << 20  # numbers in one message

Part = TypeVar("Part")
Held = tuple[Block, Labels, Float]


@dataclass(frozen=True, eq=False, kw_only=True)
class ClusterSet(TrainingSet):
    """`blocks` is empty: they are `held` by the workers, the first ones by the first worker."""

    cluster: Cluster
    held: list[Future]
    own_threads: int | None  # None: as many as a worker has

    def means(self, theta: Parameters) -> Float:
        def once() -> Float:
            there = _spread(self.cluster, theta)
            found = []
            for number, held in enumerate(self.held):
                at = number / len(self.held)
                own = there[self.cluster.number(at)]
                found.append(self.cluster.run(_means, held, own, self.own_threads, at=at))
            return np.concatenate(self.cluster.gather(found), axis=1)

        return self._again_if_lost(once)

    def _sum(self, of: Callable[..., Any], *given: Any, room: Float | None = None) -> Any:
        """Every worker sums aligned groups of its blocks; these are nodes of the tree that one machine would make.

        The rows of the last two nodes are added into `room`, if it is given.
        """

        def once() -> Any:
            there = [_spread(self.cluster, one) for one in given]
            tree: TreeSum[_Node] = TreeSum()
            for rank, first in self._groups():
                at = first / len(self.held)
                blocks = self.held[first : first + (1 << rank)]
                own = [one[self.cluster.number(at)] for one in there]
                node = self.cluster.run(_sum_of_group, blocks, of, own, self.own_threads, at=at)
                tree.add(_Node(self.cluster, (node,), at), rank)
            return _together(self.cluster.gather(tree.total().parts), room)

        return self._again_if_lost(once)

    def _again_if_lost(self, work: Callable[[], Part]) -> Part:
        """What is lost with a worker is made again by the scheduler; where it gives up, the sum is begun anew."""
        for _ in range(_TRIES - 1):
            try:
                return work()
            except LOST:
                continue
        return work()

    def _groups(self) -> Iterator[tuple[int, int]]:
        n_workers, n_blocks = len(self.cluster.workers), len(self.held)
        # the first block of a worker is the first whose place, number / blocks, lies in its share
        starts = [-(-number * n_blocks // n_workers) for number in range(n_workers + 1)]
        for first, last in pairwise(starts):
            yield from aligned(first, last)


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
    """A sum on some worker, or two that are still to be added: there, or by the client if they are the last."""

    cluster: Cluster
    parts: tuple[Future, ...]
    at: float

    def __add__(self, other: _Node) -> _Node:
        return _Node(self.cluster, (self.whole(), other.whole()), self.at)

    def whole(self) -> Future:
        return self.parts[0] if len(self.parts) == 1 else self.cluster.run(_added, *self.parts, at=self.at)


def _together(parts: Sequence[Any], room: Float | None) -> Any:
    """One sum, or two; with `room`, the rows of two are written there at once."""
    if room is None:
        return _aligned(functools.reduce(operator.add, parts))
    if len(parts) == 1:
        return parts[0]
    one, other = parts
    return Sums(one.loss + other.loss, np.add(one.rows, other.rows, out=room), one.c + other.c)


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
    y: NDArray[np.intp],
    weight: Float,
    n_classes: int,
    threads: int,
    own_threads: int | None,
) -> ClusterSet:
    """The blocks that one machine would cut, each on one worker; their texts may come from several shards."""
    sizes = cluster.gather(cluster.run_each(_sizes, built.rows))
    pointer = np.concatenate([[0], np.cumsum(np.concatenate(sizes), dtype=np.int64)])
    bounds = block_bounds(pointer)
    starts = np.cumsum([0, *map(len, sizes)]).tolist()
    n_tokens = len(built.vocabulary)
    turn = by_token(n_tokens, n_classes)
    narrow = y.astype(np.min_scalar_type(n_classes))
    held: list[Future] = []
    for first, last in pairwise(bounds):
        at = len(held) / (len(bounds) - 1)
        parts = [
            (shard, max(first, begin) - begin, min(last, end) - begin)
            for shard, (begin, end) in zip(built.rows, pairwise(starts), strict=True)
            if max(first, begin) < min(last, end)
        ]
        own_y, own_weight = (_sent(cluster, array[first:last], at) for array in (narrow, weight))
        held.append(cluster.run(_block, parts, n_tokens, counts, turn, own_y, own_weight, at=at))
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
    """An array as arguments of tasks, so that it can be sent again; a constant one as one number."""
    if len(array) and (array == array[0]).all():
        return [(array[0], len(array))]
    return [cluster.run(_itself, array[i : i + _PART], at=at) for i in range(0, len(array), _PART)]


def _spread(cluster: Cluster, item: Any) -> list[Any]:
    """What to hand to the tasks of each worker.

    Of parameters the first worker gets a and the second B, they exchange them, and each hands them on to two others.
    """
    n_workers = len(cluster.workers)
    if not isinstance(item, Parameters):
        return [item] * n_workers
    a, B = item.a, item.B.ravel(order=layout(len(item.B) + 1))
    rest = item.B.shape, item.c, item.empty, item.log_sink
    places = [(number + 0.5) / n_workers for number in range(n_workers)]
    given = _sent(cluster, a, places[0]), _sent(cluster, B, places[:2][-1])
    copies = [cluster.run(_received_parameters, *given, *rest, at=at) for at in places[:2]]
    for number, at in enumerate(places[2:], start=2):
        copies.append(cluster.run(_itself, copies[number // 2 - 1], at=at))
    return copies


# On the workers ------------------------------------------------------------------------------------------------------


def _itself(given: Any) -> Any:
    return given


def _received(parts: Sequence[Any]) -> NDArray[Any]:
    arrays = [np.full(part[1], part[0]) if isinstance(part, tuple) else part for part in parts]
    return np.concatenate(arrays)


def _received_parameters(a: Sequence[Any], B: Sequence[Any], shape: tuple[int, int], *rest: Any) -> Parameters:
    return Parameters(_received(a), _received(B).reshape(shape, order=layout(shape[0] + 1)), *rest)


def _sizes(shard: Sequence[Rows]) -> NDArray[np.int32]:
    """Tokens of each text."""
    return np.concatenate([np.empty(0, np.int32), *(rows.sizes for rows in shard)])


def _between(shard: Sequence[Rows], first: int, last: int) -> Iterator[Rows]:
    """Texts first .. last - 1 of a shard."""
    begin = 0
    for rows in shard:
        size = len(rows.sizes)
        if first < begin + size and begin < last:
            yield rows.between(max(first - begin, 0), min(last - begin, size))
        begin += size


def _block(
    parts: Sequence[tuple[Sequence[Rows], int, int]],
    n_tokens: int,
    counts: str,
    turn: bool,
    y: Sequence[Any],
    weight: Sequence[Any],
) -> Held:
    """One block of the texts first .. last - 1 of each shard."""
    rows = [each for part in parts for each in _between(*part)]
    matrix, _ = stacked(rows, n_tokens, COUNTS[counts])
    return Block.of(matrix, turn), _received(y).astype(np.intp), _received(weight)


def _threads(asked: int | None) -> int:
    return asked or int(distributed.get_worker().state.nthreads)


def _sum_of_group(held: Sequence[Held], of: Callable[..., Any], given: Sequence[Any], threads: int | None) -> Any:
    tree: TreeSum[Any] = TreeSum()
    for block, y, weight in held:
        tree.add(of(block, y, weight, *given, _threads(threads)))
    return tree.total()


def _added(one: Any, other: Any) -> Any:
    """Sums are written over their first part, which may be needed again: that is a copy."""
    if isinstance(one, Sums):
        one = Sums(one.loss, one.rows.copy(order="K"), one.c)
    return one + other


def _means(held: Held, theta: Parameters, threads: int | None) -> Float:
    return means_of(held[0], theta, _threads(threads))
