"""Words and their numbers: the words of each piece are read, those of all pieces numbered, and the texts renumbered.

The most frequent word has number 0; words that are as frequent as one another come in the order of their keys. So the
numbers depend neither on the pieces nor on the threads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base.threads import ordered_stream
from .allowance import Allowance
from .hashing import Ids, Keys, factorise
from .pieces import made
from .spill import Shelf, ShelfMaker
from .words import MASK_KEY, Words, read_words

_WAITING = 1 << 20  # keys that may wait before they are merged: a merge takes some hundred bytes for each


@dataclass(frozen=True, eq=False)
class Reading:
    """One piece as it was read: its distinct words, how often each occurs, and its text in their numbers."""

    keys: Keys
    times: Ids
    letters: NDArray[np.uint8]  # the spelling of the distinct words, one after the other
    sizes: Ids  # bytes of each
    words: Ids
    ends: NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Piece:
    """The words of one piece as numbers; -1 for a word that is in no token."""

    words: Ids
    ends: NDArray[np.intp]


def number_texts(
    pieces: Iterable[Sequence[str]], threads: int, shelves: ShelfMaker, allowance: Allowance
) -> tuple[tuple[str, ...], Keys, Shelf[Piece]]:
    """Number all words, most frequent first (then by key); and the texts in these numbers, a mask being -1."""
    readings: Shelf[Reading] = shelves(Reading, 0)
    table = _WordTable(allowance)
    for at, reading in enumerate(ordered_stream(read_piece, pieces, threads)):
        table.add(reading, at)
        readings.append(reading)
    keys, order = table.finish()
    allowance.words(max(len(order) << table.left_out, table.too_many))
    rank = rank_of(len(keys), order)
    spelled = [b""] * len(order)

    def renumber(at: int) -> Piece:
        reading = readings.get(at)
        readings.drop(at)
        place = np.searchsorted(keys, reading.keys)
        number = rank[place]
        ends = np.cumsum(reading.sizes)
        low = reading.letters.tobytes()
        own = (table.origin[place] == at) & (number >= 0)
        for i, first, last in zip(*(each[own].tolist() for each in (number, ends - reading.sizes, ends)), strict=True):
            spelled[i] = low[first:last]
        return Piece(number[reading.words], reading.ends)

    numbered = made(shelves, Piece, len(readings), threads, renumber)
    readings.close()
    words = tuple(b"\n".join(spelled).decode("utf-8").split("\n")) if spelled else ()
    return words, keys[order], numbered


def rank_of(n_keys: int, order: NDArray[np.intp]) -> Ids:
    """The number of each key if the words are numbered in this order, -1 for what is no word."""
    rank = np.full(n_keys, -1, np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return rank


def most_frequent_first(keys: Keys, times: NDArray[np.int64]) -> NDArray[np.intp]:
    """Where the words stand among all keys, most frequent first, then by key; a mask is no word."""
    often = np.where(keys == MASK_KEY, 0, times)
    return np.lexsort((keys, -often))[: int(np.count_nonzero(often))]


def read_piece(texts: Sequence[str]) -> Reading:
    words = read_words(texts)
    where, number = factorise(words.keys)
    times = np.bincount(number, minlength=len(where)).astype(np.int32)
    return Reading(words.keys[where], times, *_letters(words, where), number, words.ends)


def _letters(words: Words, which: NDArray[np.intp]) -> tuple[NDArray[np.uint8], Ids]:
    """The bytes of some words, one after the other, and their sizes."""
    starts, sizes = words.starts[which], words.sizes[which]
    begins = np.cumsum(sizes) - sizes
    place = np.repeat(starts - begins, sizes) + np.arange(int(sizes.sum()))
    return np.frombuffer(words.low, np.uint8)[place], sizes.astype(np.int32)


class _WordTable:
    """The distinct words of all pieces so far: how often each occurs, and a piece that spells it.

    Of more than the memory holds, it goes on with a sample, which says how many there are: one in 2**left_out.
    """

    def __init__(self, allowance: Allowance) -> None:
        self.allowance = allowance
        self.left_out = 0
        self.too_many = 0  # words for the allowance
        self.waiting: list[tuple[Keys, NDArray[np.int64], Ids]] = []
        self.size = 0
        self.most = _WAITING
        self.origin = np.empty(0, np.int32)

    def add(self, reading: Reading, at: int) -> None:
        some = self._sampled(reading.keys)
        keys, times = reading.keys[some], reading.times[some].astype(np.int64)
        self.waiting.append((keys, times, np.full(len(keys), at, np.int32)))
        self.size += len(keys)
        if self.size > self.most:
            self._merge()

    def _sampled(self, keys: Keys) -> Any:
        """The keys that take part: all of them, or those whose bits, mixed, begin with zeros."""
        if not self.left_out:
            return slice(None)
        return keys * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(64 - self.left_out) == 0

    def _merge(self) -> None:
        keys, times, origin = (np.concatenate(column) for column in zip(*self.waiting, strict=True))
        where, number = factorise(keys)
        total = np.zeros(len(where), np.int64)
        np.add.at(total, number, times)
        keys, origin, self.size = keys[where], origin[where], len(where)
        if not self.allowance.holds_words(self.size):
            self.too_many, self.left_out = max(self.too_many, self.size), self.left_out + 4
            some = self._sampled(keys)
            keys, total, origin = keys[some], total[some], origin[some]
            self.size = len(keys)
        self.waiting = [(keys, total, origin)]
        # in proportion: where most keys differ, a merge for every piece would never end
        self.most = max(_WAITING, self.size + self.size // 2)

    def finish(self) -> tuple[Keys, NDArray[np.intp]]:
        """All keys, sorted, as `origin` is then, and where among them the words stand, most frequent first."""
        if not self.waiting:
            return np.empty(0, np.uint64), np.empty(0, np.intp)
        self._merge()
        ((keys, total, origin),) = self.waiting
        sort = np.argsort(keys)
        keys, total, self.origin = keys[sort], total[sort], origin[sort]
        self.waiting = []
        return keys, most_frequent_first(keys, total)
