"""Texts to sparse counts: choose a vocabulary, or count one that is frozen.

Texts are read in pieces of a fixed number; pieces are independent and run in threads. What is merged afterwards is a
sum of integers or a sorted set, so the answer depends neither on the pieces nor on the threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..parallel import ordered_map
from .tables import Ids, Keys, factorise
from .vocabulary import Level, Vocabulary, next_keys
from .words import MASK_KEY, read_words

__all__ = ["Limits", "build", "count"]

PIECE = 1024  # texts: small enough that a piece's arrays stay in the cache, large enough to drown the overhead
_ROW_BITS, _ROW = np.uint64(10), np.uint64(PIECE - 1)  # a row within its piece takes ten bits of a sort key


@dataclass(frozen=True)
class Limits:
    """Which n-grams become tokens."""

    ngrams: tuple[int, int] = (1, 2)
    min_df: tuple[int, ...] = (1, 2)  # least number of texts, for n = 1, 2, ...; the last entry goes on for ever
    max_df: float = 1.0  # largest share of the texts
    max_tokens: int | None = None

    def least(self, order: int) -> int:
        return self.min_df[min(order, len(self.min_df)) - 1]

    def least_on_the_way(self, order: int) -> int:
        """A node of `order` words in fewer texts leads nowhere: an n-gram is no more frequent than its parts."""
        return min(self.least(longer) for longer in range(order, max(order, self.ngrams[1]) + 1))


@dataclass(frozen=True, eq=False)
class _Tally:
    """The n-grams of one piece, for one n: sorted keys; pointer[i]:pointer[i + 1] are the rows that hold key i."""

    keys: Keys
    pointer: NDArray[np.int64]
    rows: NDArray[np.uint16]
    counts: NDArray[np.float32]

    @property
    def frequency(self) -> NDArray[np.int64]:
        return np.diff(self.pointer)


@dataclass(frozen=True, eq=False)
class _Piece:
    """The words of one piece as numbers; -1 for a word that is in no token."""

    words: Ids
    ends: NDArray[np.intp]
    rows: NDArray[np.uint64]

    def tally(self, first: NDArray[np.intp], keys: Keys) -> _Tally:
        pairs = np.sort((keys << _ROW_BITS) | self.rows[first])
        begins = _run_starts(pairs)
        counts = np.diff(begins, append=len(pairs)).astype(np.float32)
        pairs = pairs[begins]
        keys = pairs >> _ROW_BITS
        heads = _run_starts(keys)
        return _Tally(keys[heads], np.append(heads, len(keys)), (pairs & _ROW).astype(np.uint16), counts)


def _run_starts(sorted_values: Keys) -> NDArray[np.int64]:
    fresh = np.empty(len(sorted_values), np.bool_)
    fresh[:1] = True
    np.not_equal(sorted_values[1:], sorted_values[:-1], out=fresh[1:])
    return np.flatnonzero(fresh)


def build(texts: Sequence[str], limits: Limits, threads: int = 1) -> tuple[Vocabulary, sparse.csr_matrix]:
    """The vocabulary that these texts give within the limits, and their raw counts (float32).

    >>> vocabulary, counts = build(["a b a", "b a"], Limits())
    >>> vocabulary.tokens, counts.toarray().tolist()
    (('a', 'b', 'b a'), [[2.0, 1.0, 1.0], [1.0, 1.0, 1.0]])
    """
    words, word_keys, pieces = _number_words(texts, threads)
    tallies: list[list[_Tally]] = []  # by order, then by piece
    node_keys: list[Keys] = []
    frequencies: list[NDArray[np.int64]] = []
    nodes = [piece.words for piece in pieces]
    start = 0
    for order in range(1, limits.ngrams[1] + 1):
        found = ordered_map(
            lambda both, order=order: _tally(both[0], both[1], order, len(words)),  # type: ignore[misc]
            list(zip(pieces, nodes, strict=True)),
            threads,
        )
        keys, frequency = _merge(found, threads)
        if order > 1:
            alive = frequency >= limits.least_on_the_way(order)
            keys, frequency = keys[alive], frequency[alive]
        else:  # every word is a node, but those too rare for any n-gram go no further
            usable = frequency >= limits.least_on_the_way(2)
            pieces = [_Piece(_blank(p.words, usable), p.ends, p.rows) for p in pieces]
        if order < limits.ngrams[1]:
            level = Level(start, keys)
            nodes = ordered_map(
                lambda both, level=level, order=order: _nodes(both[0], both[1], level, order, len(words)),  # type: ignore[misc]
                list(zip(pieces, nodes, strict=True)),
                threads,
            )
        start += len(keys)
        tallies.append(found)
        node_keys.append(keys)
        frequencies.append(frequency)

    columns = _choose(frequencies, limits, len(texts))
    starts = np.cumsum([0, *map(len, node_keys)])
    levels = tuple(Level(int(at), keys) for at, keys in zip(starts[1:], node_keys[1:], strict=False))
    vocabulary = Vocabulary(words, word_keys, levels, np.concatenate(columns))
    by_piece = list(zip(*tallies, strict=True))
    parts = ordered_map(lambda part: _rows_of(part, node_keys, columns), by_piece, threads)
    sizes = [len(piece.ends) for piece in pieces]
    counts = _stack(parts, sizes, len(vocabulary))
    if (vocabulary.column < 0).any():  # leave out the nodes that lead to no token
        vocabulary = Vocabulary.from_tokens(vocabulary.tokens)
    return vocabulary, counts


def count(texts: Sequence[str], vocabulary: Vocabulary, threads: int = 1) -> sparse.csr_matrix:
    """The raw counts (float64) of a frozen vocabulary.

    >>> count(["Good, GOOD?"], Vocabulary.from_tokens(["?", "good", "good good"])).toarray().tolist()
    [[1.0, 2.0, 1.0]]
    """

    def one(at: int) -> _Rows:
        words = read_words(texts[at : at + PIECE])
        rows = _row_numbers(words.ends)
        found = vocabulary.find(words)
        pairs = np.concatenate([(rows[f.first] << np.uint64(32)) | f.column.astype(np.uint64) for f in found])
        pairs.sort()
        begins = _run_starts(pairs)
        counts = np.diff(begins, append=len(pairs)).astype(np.float64)
        pairs = pairs[begins]
        per_row = np.bincount((pairs >> np.uint64(32)).astype(np.intp), minlength=len(words.ends))
        return (pairs & np.uint64(0xFFFFFFFF)).astype(np.int32), counts, per_row

    parts = ordered_map(one, range(0, len(texts), PIECE), threads)
    return _stack(parts, [len(part[2]) for part in parts], len(vocabulary)).astype(np.float64, copy=False)


def _row_numbers(ends: NDArray[np.intp]) -> NDArray[np.uint64]:
    return np.repeat(np.arange(len(ends), dtype=np.uint64), np.diff(ends, prepend=0))


def _number_words(texts: Sequence[str], threads: int) -> tuple[tuple[str, ...], Keys, list[_Piece]]:
    """Number all words, most frequent first (then by key); and the texts in these numbers, a mask being -1."""

    def read(at: int) -> tuple[Keys, NDArray[np.int64], list[bytes], Ids, NDArray[np.intp]]:
        words = read_words(texts[at : at + PIECE])
        where, number = factorise(words.keys)
        return words.keys[where], np.bincount(number, minlength=len(where)), words.spelled(where), number, words.ends

    parts = ordered_map(read, range(0, len(texts), PIECE), threads)
    everywhere = np.concatenate([part[0] for part in parts]) if parts else np.empty(0, np.uint64)
    keys, where, number = np.unique(everywhere, return_index=True, return_inverse=True)
    total = np.bincount(number, np.concatenate([part[1] for part in parts]) if parts else None, len(keys))
    total[keys == MASK_KEY] = 0
    order = np.lexsort((keys, -total))[: int(np.count_nonzero(total))]
    rank = np.full(len(keys), -1, np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    offsets = np.cumsum([0, *(len(part[0]) for part in parts)])
    pieces = ordered_map(
        lambda at: _Piece(
            rank[number[offsets[at] : offsets[at + 1]]][parts[at][3]], parts[at][4], _row_numbers(parts[at][4])
        ),
        range(len(parts)),
        threads,
    )
    spelled = [word for part in parts for word in part[2]]
    return tuple(spelled[i].decode("utf-8") for i in where[order].tolist()), keys[order], pieces


def _blank(words: Ids, usable: NDArray[np.bool_]) -> Ids:
    return np.where(usable[words] & (words >= 0), words, np.int32(-1)) if len(usable) else words


def _tally(piece: _Piece, nodes: Ids, order: int, n_words: int) -> _Tally:
    if order == 1:
        first = np.flatnonzero(nodes >= 0)
        return piece.tally(first, nodes[first].astype(np.uint64))
    return piece.tally(*next_keys(nodes, piece.words, piece.ends, order, n_words))


def _nodes(piece: _Piece, nodes: Ids, level: Level, order: int, n_words: int) -> Ids:
    """The node of `order` words that begins at each word, -1 for none."""
    if order == 1:
        return piece.words
    first, keys = next_keys(nodes, piece.words, piece.ends, order, n_words)
    found = np.full(len(nodes), -1, np.int32)
    found[first] = level.table.find(keys)
    return found


def _merge(tallies: list[_Tally], threads: int) -> tuple[Keys, NDArray[np.int64]]:
    """All keys, sorted, and in how many texts each occurs. Ranges of keys are merged side by side."""
    if not tallies:
        return np.empty(0, np.uint64), np.empty(0, np.int64)
    sample = max((tally.keys for tally in tallies), key=len)
    bounds = [np.uint64(0), *sample[len(sample) // 8 :: max(1, len(sample) // 8)], np.uint64(1 << 53)]

    def merge(low: np.uint64, high: np.uint64) -> tuple[Keys, NDArray[np.int64]]:
        packed = []  # a key and its number of texts in one integer: a piece has at most 2**10 texts
        for tally in tallies:
            i, j = np.searchsorted(tally.keys, [low, high])
            packed.append((tally.keys[i:j] << _ROW_BITS) | (tally.frequency[i:j] - 1).astype(np.uint64))
        both = np.sort(np.concatenate(packed))
        keys, texts = both >> _ROW_BITS, (both & _ROW).astype(np.int64) + 1
        heads = _run_starts(keys)
        return keys[heads], np.add.reduceat(texts, heads) if len(heads) else texts

    parts = ordered_map(lambda pair: merge(*pair), list(pairwise(bounds)), threads)
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


def _choose(frequencies: list[NDArray[np.int64]], limits: Limits, n_texts: int) -> list[Ids]:
    """The column of every node, order by order; -1 for those that are no token."""
    most = limits.max_df * n_texts * (1 + 1e-12)  # a share of exactly max_df is allowed, whatever the rounding
    chosen = [
        (frequency >= limits.least(order)) & (frequency <= most) & (order >= limits.ngrams[0])
        for order, frequency in enumerate(frequencies, start=1)
    ]
    everyone, all_frequencies = np.concatenate(chosen), np.concatenate(frequencies)
    if limits.max_tokens is not None and np.count_nonzero(everyone) > limits.max_tokens:
        candidates = np.flatnonzero(everyone)
        best = np.argsort(-all_frequencies[candidates], kind="stable")[: limits.max_tokens]
        everyone = np.zeros(len(everyone), np.bool_)
        everyone[candidates[best]] = True
    columns = np.where(everyone, np.cumsum(everyone, dtype=np.int32) - np.int32(1), np.int32(-1))
    return np.split(columns, np.cumsum([len(frequency) for frequency in frequencies])[:-1])


_Rows = tuple[NDArray[np.int32], NDArray[Any], NDArray[np.int64]]


def _rows_of(tallies: tuple[_Tally, ...], node_keys: list[Keys], columns: list[Ids]) -> _Rows:
    """One piece of the matrix: (columns, counts, entries of each row), sorted by row and column."""
    all_columns, all_rows, all_counts = [], [], []
    for tally, keys, column in zip(tallies, node_keys, columns, strict=True):
        if len(keys) and len(tally.keys):
            place = np.minimum(np.searchsorted(keys, tally.keys), len(keys) - 1)
            own = np.where(keys[place] == tally.keys, column[place], np.int32(-1))
        else:
            own = np.full(len(tally.keys), -1, np.int32)
        spread = np.repeat(own, tally.frequency)
        known = spread >= 0
        all_columns.append(spread[known])
        all_rows.append(tally.rows[known])
        all_counts.append(tally.counts[known])
    rows = np.concatenate(all_rows)
    order = np.argsort(rows, kind="stable")  # a radix sort, since rows are 16 bits wide; columns stay in order
    per_row = np.bincount(rows, minlength=PIECE)
    return np.concatenate(all_columns)[order], np.concatenate(all_counts)[order], per_row


def _stack(parts: list[_Rows], sizes: list[int], n_columns: int) -> sparse.csr_matrix:
    """The pieces, one below the other."""
    if not parts:
        return sparse.csr_matrix(np.zeros((0, n_columns), np.float32))
    per_row = np.concatenate([part[2][:size] for part, size in zip(parts, sizes, strict=True)])
    pointer = np.concatenate([[0], np.cumsum(per_row)])
    if pointer[-1] < 2**31:
        pointer = pointer.astype(np.int32)
    indices = np.concatenate([part[0] for part in parts])
    data = np.concatenate([part[1] for part in parts])
    matrix = sparse.csr_matrix((data, indices, pointer), shape=(len(per_row), n_columns))
    matrix.has_sorted_indices = True
    matrix.has_canonical_format = True
    return matrix
