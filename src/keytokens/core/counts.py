"""Documents as sparse counts, cut into fixed blocks: the only place where sums over documents are made.

Blocks, and the slices of a block, depend on the counts alone, not on the threads or the memory. Within a slice every
sum is made in a fixed order, so it does not matter which thread makes it; sums over slices are made in their order, and
over blocks in pairs, pairs of pairs and so on. Hence the same bits at any number of threads, and of workers that hold
some blocks.

Products are made with matrices that have a row for each class and a column for each token. A few rows lie one after the
other. Many lie token by token (see `layout`): who visits a token finds all its rows at one place, and all products are
made at once, token by token, with the transpose of each slice. A document adds its tokens in the order of their columns
all the same, for its entries are sorted. Transposed products share out the tokens instead of the documents.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..parallel import ordered_map, ordered_stream

__all__ = ["BLOCK", "COUNTS", "Block", "Float", "block_bounds", "blocks_of", "layout", "weigh"]

BLOCK = 1 << 24  # entries: many, because every slice of a block adds a vector over all tokens
_SLICES = 2  # parts of a block: a constant, whatever the threads; few, because each adds a vector over all tokens
_SMALL_SLICES = 8  # where each makes an array of its own entries
_FEW = 4  # rows: more of them lie token by token
_PIECE = 1 << 17  # entries and tokens in a piece of the transpose: its products stay in the cache

Float = NDArray[np.floating[Any]]  # float32 or float64, as the counts are

# phi, the weight of a token that occurs c times; phi(0) = 0 because absent tokens are not stored. Below 1 (weights that
# are no counts) the logarithm goes on as a straight line: still concave, still positive.
COUNTS: dict[str, Callable[[Float], Float]] = {
    "raw": lambda c: c,
    "log": lambda c: np.minimum(c, 1) + np.log(np.maximum(c, 1)),
    "binary": lambda c: np.ones_like(c),
}


def layout(rows: int) -> Literal["C", "F"]:
    """How a matrix with so many rows, and a column for each token, should lie in memory."""
    return "C" if rows <= _FEW else "F"


def weigh(counts: sparse.csr_matrix, kind: str) -> sparse.csr_matrix:
    """The same matrix with phi(c) for c."""
    if kind == "raw":
        return counts
    return sparse.csr_matrix((COUNTS[kind](counts.data), counts.indices, counts.indptr), shape=counts.shape)


@dataclass(frozen=True, eq=False)
class Block:
    """Some documents, cut into slices of about equal work."""

    rows: sparse.csr_matrix
    slices: list[sparse.csr_matrix]
    let_go: Callable[[], None] | None = None  # called after each use: what lies in a file gives its memory back

    @classmethod
    def of(cls, rows: sparse.csr_matrix, let_go: Callable[[], None] | None = None) -> Block:
        return cls(rows, _cut(rows, _SLICES), let_go)

    def __len__(self) -> int:
        return int(self.rows.shape[0])

    def __reduce__(self) -> tuple[Any, ...]:
        """To another process go the rows alone: the slices are views of them."""
        return Block.of, (self.rows,)

    def done(self) -> None:
        """To be called after each use."""
        if self.let_go is not None:
            self.let_go()

    def times(self, X: Float, threads: int) -> Float:
        """C x for every row x of X, (rows, tokens) as `layout` has it: (rows, documents)."""
        if layout(len(X)) == "F":
            columns = np.ascontiguousarray(X.T)
            # token by token: X is read from its beginning to its end, and each document adds in the same order
            parts: Sequence[Any] = self.slices if self.let_go else [turned.T for turned in self._turned_slices]
            return np.concatenate(ordered_map(lambda part: part @ columns, parts, threads)).T
        # a row at a time: in scipy two products cost less than one with two columns, and a row may stay in the cache
        sums = np.empty((len(X), len(self)), self.rows.dtype)

        def fill(task: tuple[int, tuple[sparse.csr_matrix, slice]]) -> None:
            row, (part, documents) = task
            sums[row, documents] = part @ X[row]

        ordered_map(fill, product(range(len(X)), _with_spans(self.slices)), threads)
        return sums

    def transposed_times(self, R: Float, threads: int, out: Float | None = None) -> Float:
        """C' r for every row r of R, (rows, documents): (rows, tokens) as `layout` has it; into `out`, if given."""
        if out is None:
            out = np.empty((len(R), self.rows.shape[1]), self.rows.dtype, order=layout(len(R)))
        if layout(len(R)) == "C":
            out.fill(0)
            _add_column_sums(self.slices, None, R, out, threads)
        elif self.let_go:  # no room for the transposes: a row at a time
            turned = [_turned(part, None) for part in self.slices]

            def one_row(k: int) -> None:
                out[k] = _sum_of_products(turned, np.split(R[k], self._ends[1:-1]))

            ordered_map(one_row, range(len(R)), threads)
        else:
            columns = np.split(np.ascontiguousarray(R.T), self._ends[1:-1])

            def some_tokens(piece: tuple[slice, list[Any]]) -> None:
                out[:, piece[0]] = _sum_of_products(piece[1], columns).T

            ordered_map(some_tokens, self._pieces, threads)
        return out

    @functools.cached_property
    def _ends(self) -> NDArray[np.intp]:
        """Where the slices begin, and the number of documents."""
        return np.cumsum([0, *(part.shape[0] for part in self.slices)])

    @functools.cached_property
    def _turned_slices(self) -> list[Any]:
        """The transposes. For many products they are worth their memory."""
        return [part.T.tocsr() for part in self.slices]

    @functools.cached_property
    def _pieces(self) -> list[tuple[slice, list[Any]]]:
        """Consecutive tokens, and their part of the transpose of each slice."""
        work = np.arange(self.rows.shape[1] + 1, dtype=np.int64)
        for turned in self._turned_slices:
            work += turned.indptr
        bounds = _bounds(work, max(1, int(work[-1]) // _PIECE))
        spans = [slice(first, last) for first, last in pairwise(bounds)] or [slice(0)]  # without tokens one empty piece
        by_slice = [_parts(turned, bounds) for turned in self._turned_slices]
        return [(tokens, [parts[at] for parts in by_slice]) for at, tokens in enumerate(spans)]

    def column_sums(self, of: Callable[[Float], Float] | None, vectors: Sequence[Float], threads: int) -> Float:
        """of(C)' r for every r, `of` acting on each entry (squares, presence; None: C itself): (vectors, tokens).

        The documents are read in the order in which they lie, and each adds to its tokens: a little slower than rows
        of the transpose, which would take a second copy of the counts and the time to make it.
        """

        total = np.zeros((len(vectors), self.rows.shape[1]), self.rows.dtype)
        _add_column_sums(_cut(self.rows, _SMALL_SLICES), of, vectors, total, threads)
        return total

    def presence(self, groups: NDArray[np.intp], weight: Float, n_groups: int, threads: int) -> Float:
        """(groups, tokens): the weight of the documents of each group that hold the token."""
        if n_groups <= 2:
            return self.column_sums(np.ones_like, [np.where(groups == k, weight, 0) for k in range(n_groups)], threads)

        def one(k: int) -> Float:  # each group reads its own documents only
            own = np.flatnonzero(groups == k)
            return np.asarray(_turned(self.rows[own], np.ones_like) @ weight[own])

        return _filled(one, (n_groups, self.rows.shape[1]), self.rows.dtype, threads)


def blocks_of(counts: sparse.csr_matrix, let_go: Callable[[int, int], None] | None = None) -> list[Block]:
    """A matrix in consecutive blocks of documents with about BLOCK entries each.

    `let_go(first, last)` gives back the memory of some of its entries, where they lie in a file.
    """
    parts = _parts(counts, block_bounds(counts.indptr))
    ends = np.cumsum([0, *(len(part.indices) for part in parts)]).tolist()
    if let_go is None:
        return [Block.of(part) for part in parts]
    return [Block.of(part, functools.partial(let_go, *span)) for part, span in zip(parts, pairwise(ends), strict=True)]


def block_bounds(pointer: NDArray[np.signedinteger[Any]]) -> list[int]:
    """Where the blocks of a matrix with this pointer begin, and the number of its rows."""
    return _bounds(pointer, max(1, round(int(pointer[-1]) / BLOCK)))


def _add_column_sums(
    slices: Sequence[sparse.csr_matrix],
    of: Callable[[Float], Float] | None,
    vectors: Sequence[Float] | Float,
    into: Float,
    threads: int,
) -> None:
    """of(C)' r for every r, one slice after the other: whoever makes the products, they are added in that order."""
    parts = _with_spans(slices)
    if threads <= len(vectors):  # no thread needs a second vector, nor of(C) of its own
        for some in [parts] if of is None else [[part] for part in parts]:
            turned = [(_turned(part, of), documents) for part, documents in some]

            def add(row: int, turned: list[tuple[Any, slice]] = turned) -> None:
                for matrix, documents in turned:
                    into[row] += matrix @ vectors[row][documents]

            ordered_map(add, range(len(vectors)), threads)
        return
    pairs = list(product(parts, range(len(vectors))))

    def one(pair: tuple[tuple[sparse.csr_matrix, slice], int]) -> Float:
        (part, documents), row = pair
        return np.asarray(_turned(part, of) @ vectors[row][documents])

    for (_, row), column in zip(pairs, ordered_stream(one, pairs, threads), strict=True):
        into[row] += column


def _with_spans(slices: Sequence[sparse.csr_matrix]) -> list[tuple[sparse.csr_matrix, slice]]:
    """Each with the documents that it holds."""
    ends = np.cumsum([0, *(part.shape[0] for part in slices)]).tolist()
    return [(part, slice(*span)) for part, span in zip(slices, pairwise(ends), strict=True)]


def _sum_of_products(matrices: Sequence[Any], arrays: Sequence[Float]) -> Float:
    """One product for each slice, added in their order."""
    total: Float = matrices[0] @ arrays[0]
    for matrix, array in zip(matrices[1:], arrays[1:], strict=True):
        total += matrix @ array
    return total


def _turned(rows: sparse.csr_matrix, of: Callable[[Float], Float] | None) -> Any:
    """of(C)', made of the same arrays."""
    data = rows.data if of is None else of(rows.data)
    return _made_of(sparse.csc_matrix, data, rows.indices, rows.indptr, rows.shape[::-1])


def _filled(row: Callable[[int], Float], shape: tuple[int, int], dtype: Any, threads: int) -> Float:
    """A matrix of these rows, each made by one thread."""
    matrix = np.empty(shape, dtype)

    def fill(k: int) -> None:
        matrix[k] = row(k)

    ordered_map(fill, range(shape[0]), threads)
    return matrix


def _bounds(pointer: NDArray[np.signedinteger[Any]], n_parts: int) -> list[int]:
    """Bounds of consecutive rows with about the same number of entries."""
    n_rows = len(pointer) - 1
    cuts = np.searchsorted(pointer, np.linspace(0, pointer[-1], n_parts + 1)[1:-1])
    return np.unique(np.concatenate([[0], np.minimum(cuts, n_rows), [n_rows]])).tolist()


def _cut(matrix: sparse.csr_matrix, n_parts: int) -> list[sparse.csr_matrix]:
    """Rows in consecutive parts with about the same number of entries; views, not copies. One part at least."""
    return _parts(matrix, _bounds(matrix.indptr, n_parts))


def _parts(matrix: sparse.csr_matrix, bounds: list[int]) -> list[sparse.csr_matrix]:
    if len(bounds) <= 2:
        return [matrix]
    pointer, parts = matrix.indptr, []
    for first, last in pairwise(bounds):
        i, j = pointer[first], pointer[last]
        shape = (last - first, matrix.shape[1])
        own = (matrix.data[i:j], matrix.indices[i:j], (pointer[first : last + 1] - i).astype(matrix.indices.dtype))
        parts.append(_made_of(sparse.csr_matrix, *own, shape))
    return parts


def _made_of(kind: type[Any], data: Float, indices: Any, pointer: Any, shape: tuple[int, int]) -> Any:
    """A sparse matrix of these very arrays: the constructor would copy what is a small part of a larger array."""
    matrix = kind(shape, dtype=data.dtype)
    matrix.data, matrix.indices, matrix.indptr = data, indices, pointer
    return matrix
