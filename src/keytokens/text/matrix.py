"""Known n-grams to sparse counts: one matrix of all blocks, from new texts or from those of a fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..base.threads import ordered_map
from .hashing import Ids, Keys
from .spill import loaded
from .vocabulary import Vocabulary
from .words import blocks, read_words

Weigh = Callable[[NDArray[Any]], NDArray[Any]]


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


class Room(Protocol):
    """Where a matrix is written: an array in memory, or one in a file."""

    array: NDArray[Any]

    def let_go(self, first: int, last: int) -> None: ...


class MemoryRoom:
    def __init__(self, length: int, dtype: Any) -> None:
        self.array: NDArray[Any] = np.empty(length, dtype)

    def let_go(self, first: int, last: int) -> None:
        """It stays where it is."""


AnyRoom = TypeVar("AnyRoom", bound=Room)


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

    return stacked(ordered_map(one, blocks(texts), threads), len(vocabulary), dtype=np.float64)[0]


def stacked(
    rows: Sequence[Any],
    n_columns: int,
    weigh: Weigh = lambda counts: counts,
    room: Callable[[int, Any], AnyRoom] = MemoryRoom,  # type: ignore[assignment]
    dtype: Any = np.float32,
) -> tuple[sparse.csr_matrix, tuple[AnyRoom, AnyRoom]]:
    """One matrix of the rows of all blocks, weighed, and the rooms in which its indices and its counts lie."""
    sizes = np.concatenate([np.empty(0, np.int32), *(loaded(each).sizes for each in rows)])
    total = int(sizes.sum(dtype=np.int64))
    indices, data, first = room(total, np.int32), room(total, dtype), 0
    for each in map(loaded, rows):
        last = first + len(each.columns)
        indices.array[first:last] = each.columns
        data.array[first:last] = weigh(each.counts.astype(dtype))
        indices.let_go(first, last)
        data.let_go(first, last)
        first = last
    return matrix_of(indices.array, data.array, sizes, n_columns), (indices, data)


def row_numbers(ends: NDArray[np.intp]) -> NDArray[np.uint64]:
    """The text in which each word stands."""
    return np.repeat(np.arange(len(ends), dtype=np.uint64), np.diff(ends, prepend=0))


def run_starts(sorted_values: Keys) -> NDArray[np.int64]:
    """Where equal values begin."""
    fresh = np.empty(len(sorted_values), np.bool_)
    fresh[:1] = True
    np.not_equal(sorted_values[1:], sorted_values[:-1], out=fresh[1:])
    return np.flatnonzero(fresh)


def matrix_of(
    indices: Ids, data: NDArray[Any], per_row: NDArray[np.signedinteger[Any]], n_columns: int
) -> sparse.csr_matrix:
    """Rows of these sizes, sorted by column. The arrays are not looked at, so they may lie in files."""
    pointer = np.concatenate([[0], np.cumsum(per_row, dtype=np.int64)])
    if pointer[-1] < 2**31:
        pointer = pointer.astype(np.int32)
    matrix = sparse.csr_matrix((len(per_row), n_columns), dtype=data.dtype)
    matrix.data, matrix.indices, matrix.indptr = data, indices, pointer
    matrix.has_sorted_indices = True
    matrix.has_canonical_format = True
    return matrix
