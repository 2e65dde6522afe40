"""The executor of a cluster: `text.ngrams.build` with every block where its texts are.

A worker holds shards, which are lists of blocks. Workers send one another distinct words, which are merged in a tree,
and n-grams: each worker merges some ranges of keys, from all shards, and drops the rare ones at once. All results come
from tasks, so that whatever is lost can be made again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain, pairwise
from operator import getitem
from typing import Any

import numpy as np
from distributed import Future

from ..text.words import blocks
from .cluster import Cluster, Sealed, checked_part

_SHARDS = 4  # for each worker, at most: what is lost with one of them is not everything
_FOLDED = 8  # results at a time


class Workers:
    """Works on blocks where they lie, on the workers of a cluster; a result is a future, with a list for each shard."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.width = len(cluster.workers)

    def blocks(self, texts: list[Future]) -> list[Future]:
        """Texts in parts."""
        return self.cluster.run_each(_blocks, _together(texts, _SHARDS * self.width))

    def map(self, work: Callable[..., Any], given: tuple[Any, ...], *lists: Iterable[Any]) -> list[Any]:
        return self.cluster.run_each(_map, list(zip(*lists, strict=True)), work, given)

    def fold(self, work: Callable[[Iterable[Any]], Any], items: Sequence[Any]) -> Any:
        level = self.cluster.run_each(work, items)
        while len(level) > 1:
            level = self.cluster.run_each(work, [level[at : at + _FOLDED] for at in range(0, len(level), _FOLDED)])
        return level[0]

    def exchange(
        self, cut: Callable[..., Any], merge: Callable[..., Any], items: Sequence[Any], bounds: Any, least: int
    ) -> list[Any]:
        """A worker merges what its own shards have of each range first, and drops nothing yet."""
        cuts = [
            (at, self.cluster.run(_cut, cut, merge, own, bounds, at=at)) for at, own in self.cluster.by_worker(items)
        ]
        by_range = [
            [self.cluster.run(getitem, ranges, number, at=at) for at, ranges in cuts]
            for number in range(len(bounds) - 1)
        ]
        return self.cluster.run_each(merge, by_range, least)

    def call(self, work: Callable[..., Any], *given: Any) -> Any:
        return self.cluster.run(work, *given, at=0)

    def value(self, result: Any) -> Any:
        return self.cluster.gather(result)


def _together(parts: list[Future], most: int) -> list[list[tuple[int, Future]]]:
    """Consecutive parts together, with their numbers, so that there are not too many."""
    bounds = np.linspace(0, len(parts), min(len(parts), most) + 1).astype(int).tolist()
    numbered = list(enumerate(parts))
    return [numbered[first:last] for first, last in pairwise(bounds)]


# On the workers ------------------------------------------------------------------------------------------------------


def _blocks(parts: Sequence[tuple[int, Sealed]]) -> list[list[str]]:
    return list(blocks(chain.from_iterable(checked_part("fit", part.content, number) for number, part in parts)))


def _map(lists: Sequence[Sequence[Any]], work: Callable[..., Any], given: tuple[Any, ...]) -> list[Any]:
    """For each block of one shard."""
    return [work(*given, *items) for items in zip(*lists, strict=True)]


def _cut(cut: Callable[..., Any], merge: Callable[..., Any], shards: Sequence[Sequence[Any]], bounds: Any) -> list[Any]:
    items = [item for shard in shards for item in shard]
    return [merge([cut(item, *ends) for item in items], 1) for ends in pairwise(bounds)]
