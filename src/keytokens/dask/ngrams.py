"""The vocabulary and the counts of texts on a cluster: the steps of `text.shards`, each where its texts are.

Distinct words are merged in a tree. N-grams are too many for that: every worker merges one range of keys, from all
shards, and drops at once the rare ones. All results come from tasks, so that whatever is lost can be made again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter, getitem

import numpy as np
from distributed import Future
from numpy.typing import NDArray

from ..text import shards as steps
from ..text.hashing import Ids
from ..text.ngrams import Grams, Limits
from ..text.vocabulary import Vocabulary
from .cluster import Cluster, Sealed, checked_part

_SHARDS = 4  # for each worker, at most: what is lost with one of them is not everything
_MERGED = 8  # lists of words at a time
_LONG = 4  # words in an n-gram: from here on it is worth a wait to see whether there are any


@dataclass(frozen=True, eq=False)
class Built:
    """All texts, entered: on the workers, in shards; how many tokens each of them has is known here."""

    vocabulary: Vocabulary
    column: Future  # of every node
    shards: list[Future]
    sizes: list[NDArray[np.int32]]  # tokens of each text, by shard

    @property
    def n_texts(self) -> int:
        return sum(map(len, self.sizes))


def build_on(cluster: Cluster, parts: list[Future], limits: Limits) -> Built:
    """`text.find` of texts in parts."""
    readings = cluster.run_each(_read, _shards(parts, _SHARDS * len(cluster.workers)))
    words = _merged_words(cluster, readings)
    numbering = cluster.run(steps.number_words, words, at=0)
    shards = cluster.run_each(steps.begin, readings, numbering)
    del readings
    grams: list[Future] = []
    for order in limits.orders:
        grams.append(_merged_grams(cluster, shards, limits.least_to_keep(order)))
        shards = _advanced(cluster, shards, grams, limits)
        if order >= _LONG and not cluster.gather(cluster.run(_how_many, grams[-1], at=0)):
            break  # nothing longer either
    column = cluster.run(_columns, grams, limits, words, at=0)
    shards = cluster.run_each(steps.entered, shards)
    sizes = cluster.run_each(steps.row_sizes, shards, column)
    keys = [cluster.run(attrgetter("keys"), one, at=0) for one in grams]
    vocabulary = steps.vocabulary(*cluster.gather([words, keys, column]))  # while the workers measure the texts
    return Built(vocabulary, column, shards, cluster.gather(sizes))


def _shards(parts: list[Future], most: int) -> list[list[tuple[int, Future]]]:
    """Consecutive parts together, with their numbers, so that there are not too many."""
    bounds = np.linspace(0, len(parts), min(len(parts), most) + 1).astype(int).tolist()
    numbered = list(enumerate(parts))
    return [numbered[first:last] for first, last in pairwise(bounds)]


def _merged_words(cluster: Cluster, readings: list[Future]) -> Future:
    level = cluster.run_each(steps.words_of, readings)
    while len(level) > 1:
        groups = [level[at : at + _MERGED] for at in range(0, len(level), _MERGED)]
        level = cluster.run_each(steps.merge_words, groups)
    return level[0]


def _merged_grams(cluster: Cluster, shards: list[Future], least: int) -> Future:
    n_ranges = len(cluster.workers)
    bounds = cluster.run(steps.bounds, shards[0], n_ranges, at=0)
    cuts = [(at, cluster.run(steps.cut, own, bounds, at=at)) for at, own in cluster.by_worker(shards)]
    by_range = [[cluster.run(getitem, cut, number, at=at) for at, cut in cuts] for number in range(n_ranges)]
    return cluster.run(steps.join_ranges, cluster.run_each(steps.merge_ranges, by_range, least), at=0)


def _advanced(cluster: Cluster, shards: list[Future], grams: list[Future], limits: Limits) -> list[Future]:
    """The shards, one order on; every worker makes one table of what was found, for all its shards."""
    advanced = []
    for at, own in cluster.by_worker(shards):
        level = cluster.run(steps.level_of, grams, at=at) if limits.looks_up(len(grams)) else None
        advanced += [cluster.run(steps.advance, shard, grams[-1], limits, level, at=at) for shard in own]
    return advanced


# On the workers ------------------------------------------------------------------------------------------------------


def _read(parts: Sequence[tuple[int, Sealed]]) -> steps.Readings:
    return steps.read_shard([text for number, part in parts for text in checked_part("fit", part.content, number)])


def _how_many(grams: Grams) -> int:
    return len(grams.keys)


def _columns(grams: Sequence[Grams], limits: Limits, words: steps.WordCounts) -> Ids:
    return steps.columns(grams, limits, words.n_texts)
