"""The vocabulary and the counts of texts that lie in several places: the steps of `building`, one shard at a time.

A shard is a run of consecutive texts. What leaves it is small (distinct words, n-grams with their numbers of texts), is
merged somewhere and comes back as a numbering:

    texts -> readings -> words of a shard         merge_words, number_words
          -> tallies of n words -> ranges         merge_ranges, join_ranges      for n = 1, 2, ...
          -> entries                              columns, block by block counts

A function changes nothing that it is given, so that any step may be made again, by any other machine. What is merged
are sums of integers and sorted sets: the answer is that of `build`, whatever the shards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .assembly import Cut, Entries, MemoryRoom, Weigh, assemble, assemble_by_token
from .hashing import Ids, Keys, factorise
from .ngrams import (
    Grams,
    Limits,
    Shard,
    bounds_of_ranges,
    choose,
    first_tallies,
    joined,
    merged,
    merged_ranges,
    next_tallies,
    packed,
    vocabulary_of,
)
from .numbering import Piece, Reading, most_frequent_first, rank_of, read_piece
from .pieces import made, slices
from .spill import Item, MemoryShelf, Shelf
from .vocabulary import Level, Vocabulary


class LentShelf(MemoryShelf[Item]):
    """One that others may use as well: nothing is taken off it."""

    def drop(self, at: int) -> None:
        """It stays where it is."""

    def close(self) -> None:
        """All stays where it is."""


Readings = LentShelf[Reading]


@dataclass(frozen=True, eq=False)
class WordCounts:
    """Distinct words: how often each occurs, and how it is spelled."""

    keys: Keys
    times: NDArray[np.int64]
    letters: NDArray[np.uint8]  # one word after the other
    sizes: Ids  # bytes of each
    n_texts: int


@dataclass(frozen=True, eq=False)
class Numbering:
    """The numbers of all words: keys[i], in increasing order of keys, has the number rank[i], -1 for a mask."""

    keys: Keys
    rank: Ids
    n_words: int


def read_shard(texts: Sequence[str], threads: int = 1) -> Readings:
    """The words of a shard, in pieces."""
    pieces = slices(texts)
    readings: Readings = made(LentShelf, Reading, len(pieces), threads, lambda at: read_piece(texts[pieces[at]]))
    return readings


def words_of(readings: Readings) -> WordCounts:
    """The distinct words of a shard."""
    found = [readings.get(at) for at in range(len(readings))]
    return merge_words(
        [WordCounts(one.keys, one.times.astype(np.int64), one.letters, one.sizes, len(one.ends)) for one in found]
    )


def merge_words(parts: Sequence[WordCounts]) -> WordCounts:
    """The distinct words of several shards."""
    none = WordCounts(np.empty(0, np.uint64), np.empty(0, np.int64), np.empty(0, np.uint8), np.empty(0, np.int32), 0)
    parts = [none, *parts]
    keys, times, letters, sizes = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("keys", "times", "letters", "sizes")
    )
    where, number = factorise(keys)
    total = np.zeros(len(where), np.int64)
    np.add.at(total, number, times)
    starts = np.cumsum(sizes, dtype=np.int64) - sizes
    own = sizes[where]
    begins = np.cumsum(own, dtype=np.int64) - own
    place = np.repeat(starts[where] - begins, own) + np.arange(int(own.sum()))
    return WordCounts(keys[where], total, letters[place], own, sum(part.n_texts for part in parts))


def number_words(found: WordCounts) -> Numbering:
    """Most frequent first, then by key."""
    sort = np.argsort(found.keys)
    keys = found.keys[sort]
    order = most_frequent_first(keys, found.times[sort])
    return Numbering(keys, rank_of(len(keys), order), len(order))


def begin(readings: Readings, numbering: Numbering, threads: int = 1) -> Shard:
    """The texts in the numbers of their words, and the words tallied."""

    def renumber(at: int) -> Piece:
        reading = readings.get(at)
        number = numbering.rank[np.searchsorted(numbering.keys, reading.keys)]
        return Piece(number[reading.words], reading.ends)

    texts = made(LentShelf, Piece, len(readings), threads, renumber)
    return first_tallies(texts, numbering.n_words, threads, LentShelf)


def bounds(shard: Shard, n_ranges: int) -> Keys:
    """Of so many ranges of n-grams; any shard will do, but they are of about the same size for its own n-grams."""
    return bounds_of_ranges(shard.tallies, n_ranges)


def cut(shards: Sequence[Shard], ends: Keys, threads: int = 1) -> list[list[Keys]]:
    """For each range the n-grams of some shards, by shard, each packed with its number of texts."""
    by_shard = [list(map(packed, merged_ranges(shard.tallies, ends, 1, threads))) for shard in shards]
    return [list(own) for own in zip(*by_shard, strict=True)]


def merge_ranges(parts: Sequence[Sequence[Keys]], least: int) -> Grams:
    """One range of n-grams of all shards, without those in fewer texts."""
    return merged([own for part in parts for own in part], least)


def join_ranges(ranges: Sequence[Grams]) -> Grams:
    """All ranges, in their order."""
    return joined(ranges)


def level_of(grams: Sequence[Grams]) -> Level:
    """The level of the last of all n-grams so far, with its table: it can be made once for many shards."""
    level = Level(sum(len(one.keys) for one in grams[:-1]), grams[-1].keys)
    _ = level.table
    return level


def advance(shard: Shard, found: Grams, limits: Limits, level: Level | None = None, threads: int = 1) -> Shard:
    """The n-grams that were found become entries, those of one word more are tallied."""
    return next_tallies(shard, found, limits, threads, LentShelf, level)


def columns(grams: Sequence[Grams], limits: Limits, n_texts: int) -> Ids:
    """The column of every node, -1 for those that are no token."""
    return choose([found.texts for found in grams], limits, n_texts)


@dataclass(frozen=True, eq=False)
class Entered:
    """Texts whose n-grams are all entries: these by n and piece, and the texts of each piece."""

    entries: tuple[Shelf[Entries], ...]
    sizes: list[int]


def entered(shard: Shard) -> Entered:
    """A shard that has gone through all orders; its words are not needed any more."""
    return Entered(shard.entries, shard.sizes)


def row_sizes(texts: Entered, column: Ids) -> NDArray[np.int32]:
    """The number of tokens in each text."""
    found = []
    for at, size in enumerate(texts.sizes):
        parts = [shelf.get(at).in_columns(column).rows for shelf in texts.entries]
        found.append(sum((np.bincount(rows, minlength=size) for rows in parts), np.zeros(size, np.intp)))
    return np.concatenate([np.empty(0, np.intp), *found]).astype(np.int32)


def some_texts(parts: Sequence[tuple[Entered, int, int]]) -> Entered:
    """Texts first .. last - 1 of each part, one part after the other."""
    sizes: list[int] = []
    shelves: list[Shelf[Entries]] = [LentShelf(Entries) for _ in parts[0][0].entries]
    for texts, first, last in parts:
        begin = 0
        for at, size in enumerate(texts.sizes):
            i, j = max(first - begin, 0), min(last - begin, size)
            begin += size
            if i < j:
                for shelf, entries in zip(shelves, texts.entries, strict=True):
                    whole = entries.get(at)
                    shelf.append(whole if j - i == size else whole.of_rows(i, j))
                sizes.append(j - i)
    return Entered(tuple(shelves), sizes)


def by_text(texts: Entered, column: Ids, weigh: Weigh, threads: int = 1) -> sparse.csr_matrix:
    """As `Found` has it."""
    return assemble(texts.entries, texts.sizes, column, threads, MemoryRoom, weigh)[0]


def by_token(texts: Entered, column: Ids, cut: Cut, weigh: Weigh, threads: int = 1) -> list[list[sparse.csr_matrix]]:
    """As `Found` has it."""
    return assemble_by_token(texts.entries, texts.sizes, column, cut, threads, weigh)


def vocabulary(found: WordCounts, grams: Sequence[Keys], column: Ids) -> Vocabulary:
    """The vocabulary of all shards, from the keys of every order."""
    order = most_frequent_first(found.keys, found.times)
    ends = np.cumsum(found.sizes, dtype=np.int64)
    low = found.letters.tobytes()
    starts, stops = (ends - found.sizes)[order].tolist(), ends[order].tolist()
    spelled = b"\n".join([low[i:j] for i, j in zip(starts, stops, strict=True)])
    words = tuple(spelled.decode("utf-8").split("\n")) if len(order) else ()
    return vocabulary_of(words, found.keys[order], list(grams), column)
