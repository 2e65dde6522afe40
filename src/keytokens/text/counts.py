"""Texts to sparse counts: choose a vocabulary, or count one that is frozen.

Texts are read in pieces of a fixed number; pieces are independent and run in threads. What is merged afterwards is a
sum of integers or a sorted set, so the answer depends neither on the pieces nor on the threads.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..parallel import give_back_memory, ordered_map
from .tables import Ids, Keys, factorise
from .vocabulary import Level, Vocabulary, next_keys
from .words import MASK_KEY, Words, read_words

__all__ = ["Limits", "build", "count"]

Result = TypeVar("Result")

PIECE = 1024  # texts: small enough that a piece's arrays stay in the cache, large enough to drown the overhead
_CHARACTERS = 5 << 18  # of a piece of training texts: as many as a thousand long texts have, or ten thousand short ones
_ROW_BITS, _ROW = np.uint64(14), np.uint64((1 << 14) - 1)  # a row within its piece takes 14 bits of a sort key
_KEY_BITS = np.uint64(50)


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
    pointer: NDArray[np.int32]
    rows: NDArray[np.uint16]
    counts: NDArray[np.unsignedinteger[Any]]

    @property
    def frequency(self) -> NDArray[np.int32]:
        return np.diff(self.pointer)

    def entries(self, keys: Keys, first: int) -> _Entries:
        """What is left if only these keys, sorted, are kept; key i is node `first + i`."""
        if not len(keys) or not len(self.keys):
            return _Entries(np.empty(0, np.int32), np.empty(0, np.uint16), np.empty(0, np.uint8))
        place = np.minimum(np.searchsorted(keys, self.keys), len(keys) - 1)
        node = np.where(keys[place] == self.keys, place + first, -1).astype(np.int32)
        spread = np.repeat(node, self.frequency)
        known = spread >= 0
        return _Entries(spread[known], self.rows[known], self.counts[known])


@dataclass(frozen=True, eq=False)
class _Entries:
    """Entries of one piece, for one n, sorted by node and row."""

    nodes: Ids
    rows: NDArray[np.uint16]
    counts: NDArray[np.unsignedinteger[Any]]


@dataclass(frozen=True, eq=False)
class _Piece:
    """The words of one piece as numbers; -1 for a word that is in no token."""

    words: Ids
    ends: NDArray[np.intp]

    def tally(self, first: NDArray[np.intp], keys: Keys) -> _Tally:
        pairs = np.sort((keys << _ROW_BITS) | _row_numbers(self.ends)[first])
        begins = _run_starts(pairs)
        counts = np.diff(begins, append=len(pairs))
        counts = counts.astype(np.min_scalar_type(counts.max(initial=0)))  # nearly always one byte
        pairs = pairs[begins]
        keys = pairs >> _ROW_BITS
        heads = _run_starts(keys)
        pointer = np.append(heads, len(keys)).astype(np.int32)
        return _Tally(keys[heads], pointer, (pairs & _ROW).astype(np.uint16), counts)


_NOTHING = _Tally(np.empty(0, np.uint64), np.zeros(1, np.int32), np.empty(0, np.uint16), np.empty(0, np.uint8))


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
    give_back_memory()
    entries: list[list[_Entries]] = []  # by order, then by piece
    node_keys: list[Keys] = []
    frequencies: list[Ids] = []
    nodes = [piece.words for piece in pieces]
    start = 0
    for order in range(1, limits.ngrams[1] + 1):
        tallies = _over(pieces, nodes, threads, functools.partial(_tally, order=order, n_words=len(words)))
        keys, frequency = _merge(tallies, limits.least_on_the_way(order) if order > 1 else 1, threads)
        if order == 1:  # every word is a node, but those too rare for any n-gram go no further
            usable = frequency >= limits.least_on_the_way(2)
            pieces = [_Piece(_blank(p.words, usable), p.ends) for p in pieces]
            nodes = [piece.words for piece in pieces]
        if 1 < order < limits.ngrams[1]:
            find = functools.partial(_nodes, level=Level(start, keys), order=order, n_words=len(words))
            nodes = _over(pieces, nodes, threads, find)
        entries.append(_keep(tallies, keys, start, threads))
        give_back_memory()
        start += len(keys)
        node_keys.append(keys)
        frequencies.append(frequency)
    sizes = [len(piece.ends) for piece in pieces]
    del pieces, nodes

    column = _choose(frequencies, limits, len(texts))
    starts = np.cumsum([0, *map(len, node_keys)])
    levels = tuple(Level(int(at), keys) for at, keys in zip(starts[1:], node_keys[1:], strict=False))
    vocabulary = Vocabulary(words, word_keys, levels, column)
    by_piece = [list(parts) for parts in zip(*entries, strict=True)]
    del entries
    counts = _assemble(by_piece, sizes, column, len(vocabulary), threads)
    give_back_memory()
    if (column < 0).any():  # leave out the nodes that lead to no token
        vocabulary = Vocabulary.from_tokens(vocabulary.tokens)
    return vocabulary, counts


def count(texts: Sequence[str], vocabulary: Vocabulary, threads: int = 1) -> sparse.csr_matrix:
    """The raw counts (float64) of a frozen vocabulary.

    >>> count(["Good, GOOD?"], Vocabulary.from_tokens(["?", "good", "good good"])).toarray().tolist()
    [[1.0, 2.0, 1.0]]
    """

    def one(at: int) -> tuple[Ids, NDArray[np.float64], NDArray[np.int64]]:
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
    if not parts:
        return sparse.csr_matrix((0, len(vocabulary)))
    indices, counts, per_row = (np.concatenate(column) for column in zip(*parts, strict=True))
    return _matrix(indices, counts, per_row, len(vocabulary))


def _row_numbers(ends: NDArray[np.intp]) -> NDArray[np.uint64]:
    return np.repeat(np.arange(len(ends), dtype=np.uint64), np.diff(ends, prepend=0))


def _pieces(texts: Sequence[str]) -> list[slice]:
    """Consecutive pieces with about the same number of characters, and no more texts than row numbers."""
    ends = np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)))
    bounds = [0]
    while bounds[-1] < len(texts):
        at = bounds[-1]
        full = int(np.searchsorted(ends, (ends[at - 1] if at else 0) + _CHARACTERS)) + 1
        bounds.append(min(full, at + int(_ROW) + 1, len(texts)))
    return [slice(first, last) for first, last in pairwise(bounds)]


def _number_words(texts: Sequence[str], threads: int) -> tuple[tuple[str, ...], Keys, list[_Piece]]:
    """Number all words, most frequent first (then by key); and the texts in these numbers, a mask being -1."""

    def read(piece: slice) -> tuple[Words, Ids, Ids]:
        words = read_words(texts[piece])
        where, number = factorise(words.keys)
        return words.only(where), number, np.bincount(number, minlength=len(where)).astype(np.int32)

    parts = ordered_map(read, _pieces(texts), threads)
    if not parts:
        return (), np.empty(0, np.uint64), []
    everywhere = np.concatenate([words.keys for words, _, _ in parts])
    where, number = factorise(everywhere)
    keys = everywhere[where]
    total = np.bincount(number, np.concatenate([times for _, _, times in parts]), len(keys))
    total[keys == MASK_KEY] = 0
    order = np.lexsort((keys, -total))[: int(np.count_nonzero(total))]
    rank = np.full(len(keys), -1, np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    offsets = np.cumsum([0, *(len(words.keys) for words, _, _ in parts)])

    def renumber(at: int) -> _Piece:
        words, own, _ = parts[at]
        return _Piece(np.take(rank[number[offsets[at] : offsets[at + 1]]], own, out=own, mode="clip"), words.ends)

    pieces = ordered_map(renumber, range(len(parts)), threads)
    return _spell([words for words, _, _ in parts], offsets, where[order]), keys[order], pieces


def _spell(parts: list[Words], offsets: NDArray[np.intp], which: NDArray[np.intp]) -> tuple[str, ...]:
    """The words with these numbers, counted through all parts."""
    spelled = [b""] * len(which)
    part_of = np.searchsorted(offsets, which, side="right") - 1
    for at, part in enumerate(parts):
        own = np.flatnonzero(part_of == at)
        for i, word in zip(own.tolist(), part.spelled(which[own] - offsets[at]), strict=True):
            spelled[i] = word
    return tuple(b"\n".join(spelled).decode("utf-8").split("\n")) if spelled else ()


def _over(pieces: list[_Piece], nodes: list[Ids], threads: int, work: Callable[[_Piece, Ids], Result]) -> list[Result]:
    """`work` on every piece with the nodes that begin at its words."""
    return ordered_map(lambda at: work(pieces[at], nodes[at]), range(len(pieces)), threads)


def _keep(tallies: list[_Tally], keys: Keys, first: int, threads: int) -> list[_Entries]:
    """The entries of these keys, piece by piece; a tally is let go as soon as it has been read."""

    def one(at: int) -> _Entries:
        kept = tallies[at].entries(keys, first)
        tallies[at] = _NOTHING
        return kept

    return ordered_map(one, range(len(tallies)), threads)


def _blank(words: Ids, usable: NDArray[np.bool_]) -> Ids:
    return np.where(usable[words] & (words >= 0), words, np.int32(-1)) if len(usable) else words


def _tally(piece: _Piece, nodes: Ids, order: int, n_words: int) -> _Tally:
    if order == 1:
        first = np.flatnonzero(nodes >= 0)
        return piece.tally(first, nodes[first].astype(np.uint64))
    return piece.tally(*next_keys(nodes, piece.words, piece.ends, order, n_words))


def _nodes(piece: _Piece, nodes: Ids, level: Level, order: int, n_words: int) -> Ids:
    """The node of `order` words, two or more, that begins at each word, -1 for none."""
    first, keys = next_keys(nodes, piece.words, piece.ends, order, n_words)
    found = np.full(len(nodes), -1, np.int32)
    found[first] = level.table.find(keys)
    return found


def _merge(tallies: list[_Tally], least: int, threads: int) -> tuple[Keys, Ids]:
    """All keys in at least so many texts, sorted, and in how many. Ranges of keys are merged side by side."""
    if not tallies:
        return np.empty(0, np.uint64), np.empty(0, np.int32)
    sample = max((tally.keys for tally in tallies), key=len)
    bounds = [np.uint64(0), *sample[len(sample) // 8 :: max(1, len(sample) // 8)], np.uint64(1) << _KEY_BITS]

    def merge(low: np.uint64, high: np.uint64) -> tuple[Keys, Ids]:
        packed = []  # a key and its number of texts in one integer: a piece has at most 2**14 texts
        for tally in tallies:
            i, j = np.searchsorted(tally.keys, [low, high])
            packed.append((tally.keys[i:j] << _ROW_BITS) | (np.diff(tally.pointer[i : j + 1]) - 1).astype(np.uint64))
        both = np.concatenate(packed)
        both.sort()
        keys, texts = both >> _ROW_BITS, (both & _ROW).astype(np.int32) + np.int32(1)
        heads = _run_starts(keys)
        if not len(heads):
            return keys, texts
        total = np.add.reduceat(texts, heads, dtype=np.int32)
        often = total >= least
        return keys[heads[often]], total[often]

    parts = ordered_map(lambda pair: merge(*pair), list(pairwise(bounds)), threads)
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


def _choose(frequencies: list[Ids], limits: Limits, n_texts: int) -> Ids:
    """The column of every node; -1 for those that are no token."""
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
    return np.where(everyone, np.cumsum(everyone, dtype=np.int32) - np.int32(1), np.int32(-1))


def _assemble(
    by_piece: list[list[_Entries]], sizes: list[int], column: Ids, n_columns: int, threads: int
) -> sparse.csr_matrix:
    """The matrix of all pieces. Each is let go once its rows are written, so that nothing stands twice for long."""
    whole = bool((column >= 0).all())
    kept = [sum(len(e.nodes) if whole else int((column[e.nodes] >= 0).sum()) for e in piece) for piece in by_piece]
    at = np.cumsum([0, *kept])
    indices, data = np.empty(int(at[-1]), np.int32), np.empty(int(at[-1]), np.float32)

    def write(piece: int) -> NDArray[np.int64]:
        columns = column[np.concatenate([e.nodes for e in by_piece[piece]])]
        rows = np.concatenate([e.rows for e in by_piece[piece]])
        counts = np.concatenate([e.counts for e in by_piece[piece]])
        by_piece[piece] = []
        if not whole:
            known = columns >= 0
            columns, rows, counts = columns[known], rows[known], counts[known]
        order = np.argsort(rows, kind="stable")  # a radix sort, since rows are 16 bits wide; columns stay in order
        np.take(columns, order, out=indices[at[piece] : at[piece + 1]])
        data[at[piece] : at[piece + 1]] = counts[order]
        return np.bincount(rows, minlength=sizes[piece])

    per_row = ordered_map(write, range(len(by_piece)), threads)
    return _matrix(indices, data, np.concatenate(per_row) if per_row else np.empty(0, np.int64), n_columns)


def _matrix(indices: Ids, data: NDArray[Any], per_row: NDArray[np.int64], n_columns: int) -> sparse.csr_matrix:
    pointer = np.concatenate([[0], np.cumsum(per_row)])
    if pointer[-1] < 2**31:
        pointer = pointer.astype(np.int32)
    matrix = sparse.csr_matrix((data, indices, pointer), shape=(len(per_row), n_columns))
    matrix.has_sorted_indices = True
    matrix.has_canonical_format = True
    return matrix
