"""Documents as sparse counts, cut into fixed blocks: the only place where sums over documents are made.

Blocks, and the slices of a block, depend on the counts alone, not on the threads or the memory. Within a slice every
sum is made in a fixed order, so it does not matter which thread makes it; sums over slices and over blocks are made in
their order. Hence the same bits at any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..parallel import ordered_map, ordered_sum

__all__ = ["BLOCK", "COUNTS", "Block", "Float", "blocks_of", "weigh"]

BLOCK = 1 << 24  # entries: many, because every slice of a block adds a vector over all tokens
_SLICES = 4  # parts of a block's work: a constant, so that it is independent of the threads

Float = NDArray[np.floating[Any]]  # float32 or float64, as the counts are

# phi, the weight of a token that occurs c times; phi(0) = 0 because absent tokens are not stored. Below 1 (weights that
# are no counts) the logarithm goes on as a straight line: still concave, still positive.
COUNTS: dict[str, Callable[[Float], Float]] = {
    "raw": lambda c: c,
    "log": lambda c: np.minimum(c, 1) + np.log(np.maximum(c, 1)),
    "binary": lambda c: np.ones_like(c),
}


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

    @classmethod
    def of(cls, rows: sparse.csr_matrix) -> Block:
        return cls(rows, _slices(rows))

    def __len__(self) -> int:
        return int(self.rows.shape[0])

    def times(self, vectors: list[Float], threads: int) -> list[Float]:
        """C x for every x, each over the tokens."""
        # one column at a time: in scipy two such products cost less than one with two columns
        done = ordered_map(lambda part: [part @ vector for vector in vectors], self.slices, threads)
        return [np.concatenate(pieces) for pieces in zip(*done, strict=True)]

    def transposed_times(self, vectors: list[Float], threads: int) -> Float:
        """C' r for every r, each over the documents: (vectors, tokens)."""
        return self.column_sums(None, vectors, threads)

    def column_sums(self, of: Callable[[Float], Float] | None, vectors: list[Float], threads: int) -> Float:
        """of(C)' r for every r, `of` acting on each entry (squares, presence; None: C itself): (vectors, tokens).

        The documents are read in the order in which they lie, and each adds to its tokens: a little slower than rows
        of the transpose, which would take a second copy of the counts and the time to make it.
        """

        def one(at: int) -> list[Float]:
            part = self.slices[at]
            data = part.data if of is None else of(part.data)
            turned = _made_of(sparse.csc_matrix, data, part.indices, part.indptr, part.shape[::-1])
            return [turned @ vector[ends[at] : ends[at + 1]] for vector in vectors]

        ends = np.cumsum([0, *(part.shape[0] for part in self.slices)])
        return ordered_sum(one, range(len(self.slices)), threads)


def blocks_of(counts: sparse.csr_matrix) -> list[Block]:
    """A matrix in consecutive blocks of documents with about BLOCK entries each."""
    return [Block.of(part) for part in _cut(counts, max(1, round(counts.nnz / BLOCK)))]


def _slices(rows: sparse.csr_matrix) -> list[sparse.csr_matrix]:
    return _cut(rows, _SLICES)


def _cut(matrix: sparse.csr_matrix, n_parts: int) -> list[sparse.csr_matrix]:
    """Rows in consecutive parts with about the same number of entries; views, not copies. One part at least."""
    pointer, n_rows = matrix.indptr, matrix.shape[0]
    cuts = np.searchsorted(pointer, np.linspace(0, pointer[-1], n_parts + 1)[1:-1])
    bounds = np.unique(np.concatenate([[0], np.minimum(cuts, n_rows), [n_rows]]))
    if len(bounds) <= 2:
        return [matrix]
    parts = []
    for first, last in pairwise(bounds.tolist()):
        i, j = pointer[first], pointer[last]
        shape = (last - first, matrix.shape[1])
        own = (matrix.data[i:j], matrix.indices[i:j], pointer[first : last + 1] - i)
        parts.append(_made_of(sparse.csr_matrix, *own, shape))
    return parts


def _made_of(kind: type[Any], data: Float, indices: Any, pointer: Any, shape: tuple[int, int]) -> Any:
    """A sparse matrix of these very arrays: the constructor would copy what is a small part of a larger array."""
    matrix = kind(shape, dtype=data.dtype)
    matrix.data, matrix.indices, matrix.indptr = data, indices, pointer
    return matrix
