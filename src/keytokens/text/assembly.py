"""The counts of texts from the entries of their pieces: text by text, or token by token."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..base.memory import give_back_memory
from ..base.threads import ordered_map
from .hashing import Ids
from .matrix import matrix_of
from .spill import Shelf

_GIVEN_BACK = 8  # times, while rows are written, the memory of the pieces goes back to the system


class Room(Protocol):
    """Where the counts are written: an array in memory, or one in a file."""

    array: NDArray[Any]

    def let_go(self, first: int, last: int) -> None: ...


class MemoryRoom:
    def __init__(self, length: int, dtype: Any) -> None:
        self.array: NDArray[Any] = np.empty(length, dtype)

    def let_go(self, first: int, last: int) -> None:
        """It stays where it is."""


AnyRoom = TypeVar("AnyRoom", bound=Room)
Weigh = Callable[[NDArray[np.float32]], NDArray[Any]]
Cut = Callable[[NDArray[np.int64]], Sequence[Sequence[int]]]


@dataclass(frozen=True, eq=False)
class Entries:
    """Entries of one piece, for one n, sorted by node and row: the nodes, how many rows each has, and these in turn."""

    nodes: Ids
    frequency: NDArray[np.unsignedinteger[Any]]
    rows: NDArray[np.uint16]
    counts: NDArray[np.unsignedinteger[Any]]

    def only(self, kept: NDArray[np.bool_]) -> Entries:
        """Those of some of the nodes."""
        spread = np.repeat(kept, self.frequency)
        return Entries(self.nodes[kept], self.frequency[kept], self.rows[spread], self.counts[spread])

    def in_columns(self, column: Ids) -> Entries:
        """The same with columns for nodes, without those that have none."""
        found = replace(self, nodes=column[self.nodes])
        kept = found.nodes >= 0
        return found if kept.all() else found.only(kept)

    def of_rows(self, first: int, last: int) -> Entries:
        """Those of rows first .. last - 1, numbered from 0."""
        kept = (self.rows >= first) & (self.rows < last)
        heads = np.cumsum(self.frequency, dtype=np.intp) - self.frequency
        left = np.add.reduceat(kept, heads, dtype=np.intp) if len(heads) else heads
        some = left > 0
        rows = (self.rows[kept] - np.uint16(first)).astype(np.uint16)
        return Entries(self.nodes[some], left[some].astype(self.frequency.dtype), rows, self.counts[kept])


Shelves = Sequence[Shelf[Entries]]  # by n; a piece of `sizes[at]` texts has its entries at `at` of each


def assemble(
    entries: Shelves, sizes: list[int], column: Ids, threads: int, room: Callable[[int, Any], AnyRoom], weigh: Weigh
) -> tuple[sparse.csr_matrix, tuple[AnyRoom, AnyRoom]]:
    """The matrix of all pieces. Each is let go once its rows are written, so that nothing stands twice for long."""
    n_columns = int(np.count_nonzero(column >= 0))
    whole = bool((column >= 0).all())

    def kept(at: int) -> int:
        if whole:
            return sum(shelf.size(at, "rows") for shelf in entries)
        return sum(len(shelf.get(at).in_columns(column).rows) for shelf in entries)

    ends = np.cumsum([0, *ordered_map(kept, range(len(sizes)), threads)])
    indices, data = room(int(ends[-1]), np.int32), room(int(ends[-1]), np.float32)
    often = -(-len(sizes) // _GIVEN_BACK)

    def write(at: int) -> NDArray[np.int64]:
        parts = _taken(entries, at, column)
        columns = np.concatenate([np.repeat(part.nodes, part.frequency) for part in parts])
        rows = np.concatenate([part.rows for part in parts])
        counts = np.concatenate([part.counts for part in parts])
        del parts
        order = np.argsort(rows, kind="stable")  # a radix sort, since rows are 16 bits wide; columns stay in order
        first, last = int(ends[at]), int(ends[at + 1])
        np.take(columns, order, out=indices.array[first:last])
        data.array[first:last] = weigh(counts[order].astype(np.float32))
        indices.let_go(first, last)
        data.let_go(first, last)
        if at % often == often - 1:
            give_back_memory()
        return np.bincount(rows, minlength=sizes[at])

    per_row = ordered_map(write, range(len(sizes)), threads)
    for shelf in entries:
        shelf.close()
    rows = np.concatenate(per_row) if per_row else np.empty(0, np.int64)
    return matrix_of(indices.array, data.array, rows, n_columns), (indices, data)


def _taken(entries: Shelves, at: int, column: Ids) -> list[Entries]:
    """Of one piece, in columns; the shelves do not hold them any more."""
    found = []
    for shelf in entries:
        found.append(shelf.get(at).in_columns(column))
        shelf.drop(at)
    return found


def assemble_by_token(
    entries: Shelves, sizes: list[int], column: Ids, cut: Cut, threads: int, weigh: Weigh
) -> list[list[sparse.csr_matrix]]:
    """(tokens, texts) for each slice of texts (see `Found.by_token`). A piece is let go with the last of its texts."""
    n_columns = int(np.count_nonzero(column >= 0))

    def take(at: int) -> tuple[list[Entries], NDArray[np.int64]]:
        parts = _taken(entries, at, column)
        in_row = np.zeros(sizes[at], np.int64)
        for part in parts:
            in_row += np.bincount(part.rows, minlength=sizes[at])
        return parts, in_row

    taken = ordered_map(take, range(len(sizes)), threads)
    for shelf in entries:
        shelf.close()
    before = np.concatenate([[0], *(in_row for _, in_row in taken)]).cumsum()
    waiting = deque((begin, size, parts) for begin, size, (parts, _) in zip(_begins(sizes), sizes, taken, strict=True))
    del taken

    def next_slice(first: int, last: int) -> sparse.csr_matrix:
        own: list[tuple[int, list[Entries]]] = []  # where the texts of a piece begin in the slice, and their entries
        while waiting and waiting[0][0] < last:
            begin, size, parts = waiting.popleft()
            i, j = max(first - begin, 0), min(last - begin, size)
            own.append((begin + i - first, parts if j - i == size else [part.of_rows(i, j) for part in parts]))
            if j < size:  # the rest is for the next one
                waiting.appendleft((begin, size, parts))
                break
        del parts
        give_back_memory()
        return _by_token(own, (n_columns, last - first), threads, weigh)

    return [[next_slice(*span) for span in pairwise(bounds)] for bounds in cut(before)]


def _begins(sizes: Sequence[int]) -> list[int]:
    return (np.cumsum(sizes) - sizes).tolist() if sizes else []


def _by_token(
    pieces: list[tuple[int, list[Entries]]], shape: tuple[int, int], threads: int, weigh: Weigh
) -> sparse.csr_matrix:
    """One slice, token by token; the list is empty afterwards.

    The entries of a piece are sorted by token, and each token has its own one after the other: they go where the token
    begins, behind those of earlier pieces.
    """
    in_token = np.zeros(shape[0], np.int32)
    earlier = []  # by piece and order: how many entries each of its tokens has in earlier pieces
    for _, parts in pieces:
        earlier.append([in_token[part.nodes] for part in parts])
        for part in parts:
            in_token[part.nodes] += part.frequency
    found = matrix_of(np.empty(0, np.int32), np.empty(0, np.float32), in_token, shape[1])
    indices, data = np.empty(int(found.indptr[-1]), np.int32), np.empty(int(found.indptr[-1]), np.float32)

    def write(at: int) -> None:
        first, parts = pieces[at]
        pieces[at] = (0, [])
        for part, behind in zip(parts, earlier[at], strict=True):
            times = part.frequency.astype(np.intp)
            place = np.repeat(found.indptr[part.nodes] + behind - (np.cumsum(times) - times), times)
            place += np.arange(len(place))
            indices[place] = part.rows + np.int32(first)
            data[place] = weigh(part.counts.astype(np.float32))

    ordered_map(write, range(len(pieces)), threads)
    found.indices, found.data = indices, data
    return found
