"""Known n-grams to sparse counts: one matrix of all blocks, from new texts or from those of a fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..base.threads import ordered_map
from .hashing import Ids, Keys
from .spill import loaded
from .vocabulary import Vocabulary
from .words import blocks, read_words

Weigh = Callable[[NDArray[Any]], NDArray[Any]]
Part = tuple[Any, int, int]  # of rows, or what `loaded` makes of them: texts first .. last - 1


@dataclass(frozen=True, eq=False)
class Rows:
    """The counts of consecutive texts, one text after the other, sorted by column."""

    columns: Ids
    counts: NDArray[np.unsignedinteger[Any]]
    sizes: NDArray[np.int32]  # columns of each text

    def between(self, first: int, last: int) -> Rows:
        """Those of texts first .. last - 1."""
        i, j = int(self.sizes[:first].sum()), int(self.sizes[:last].sum())
        return Rows(self.columns[i:j], self.counts[i:j], self.sizes[first:last])


def rows_of(found: Iterable[Ids], ends: NDArray[np.intp]) -> Rows:
    """The counts of one block, from the columns of its n-grams of 1, 2, ... words by place, -1 for none.

    >>> rows_of([np.array([0, 1, 0, 1], np.int32)], np.array([3, 4])).counts.tolist()
    [2, 1, 1]
    """
    rows = row_numbers(ends) << np.uint64(32)
    pairs = [np.empty(0, np.uint64)]
    for columns in found:
        first = (columns >= 0).nonzero()[0]
        pairs.append(rows[first] | columns[first].astype(np.uint64))
    both = np.sort(np.concatenate(pairs))
    begins = run_starts(both)
    counts = np.diff(begins, append=len(both))
    both = both[begins]
    sizes = np.bincount((both >> np.uint64(32)).astype(np.intp), minlength=len(ends))
    narrow = np.min_scalar_type(counts.max(initial=0))  # nearly always one byte
    return Rows((both & np.uint64(0xFFFFFFFF)).astype(np.int32), counts.astype(narrow), sizes.astype(np.int32))


def count(texts: Sequence[str], vocabulary: Vocabulary, threads: int = 1) -> sparse.csr_matrix:
    """The raw counts (float64) of a frozen vocabulary.

    >>> count(["Good, GOOD?"], Vocabulary.from_tokens(["?", "good", "good good"])).toarray().tolist()
    [[1.0, 2.0, 1.0]]
    """

    def one(some: list[str]) -> Rows:
        words = read_words(some)
        return rows_of(vocabulary.grid(words).T, words.ends)

    found = [(rows, 0, len(rows.sizes)) for rows in ordered_map(one, blocks(texts), threads)]
    return stacked(found, len(vocabulary), dtype=np.float64)


def stacked(
    parts: Sequence[Part], n_columns: int, weigh: Weigh = lambda counts: counts, dtype: Any = np.float32
) -> sparse.csr_matrix:
    """One matrix of all parts, weighed."""
    sizes = np.concatenate([np.empty(0, np.int32), *(loaded(held).sizes[i:j] for held, i, j in parts)])
    pointer = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    if pointer[-1] < 2**31:
        pointer = pointer.astype(np.int32)
    matrix = sparse.csr_matrix((len(sizes), n_columns), dtype=dtype)
    matrix.data, matrix.indices, matrix.indptr = np.empty(pointer[-1], dtype), np.empty(pointer[-1], np.int32), pointer
    matrix.has_sorted_indices = True
    matrix.has_canonical_format = True
    first = 0
    for held, i, j in parts:  # one after the other: they may lie in a file
        rows = loaded(held).between(i, j)
        last = first + len(rows.columns)
        matrix.indices[first:last] = rows.columns
        matrix.data[first:last] = weigh(rows.counts.astype(dtype))
        first = last
    return matrix


def parts_of(lengths: Sequence[int], first: int, last: int) -> list[tuple[int, int, int]]:
    """Texts first .. last - 1 of blocks with so many texts: (which block, from, to).

    >>> parts_of([3, 0, 2], 1, 4)
    [(0, 1, 3), (2, 0, 1)]
    """
    found, begin = [], 0
    for number, length in enumerate(lengths):
        i, j = max(first - begin, 0), min(last - begin, length)
        if i < j:
            found.append((number, i, j))
        begin += length
    return found


def row_numbers(ends: NDArray[np.intp]) -> NDArray[np.uint64]:
    """The text in which each word stands."""
    return np.repeat(np.arange(len(ends), dtype=np.uint64), np.diff(ends, prepend=0))


def run_starts(sorted_values: Keys) -> NDArray[np.int64]:
    """Where equal values begin."""
    fresh = np.empty(len(sorted_values), np.bool_)
    fresh[:1] = True
    np.not_equal(sorted_values[1:], sorted_values[:-1], out=fresh[1:])
    return np.flatnonzero(fresh)
