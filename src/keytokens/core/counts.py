"""Documents as sparse counts, cut into fixed blocks: the only place where sums over documents are made.

A block has a constant number of documents, whatever the threads or the memory. Within a block every entry of a product
is one sum in a fixed order, so it does not matter which thread computes it; sums over blocks are made in block order.
Hence the same bits at any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..parallel import ordered_map

__all__ = ["BLOCK", "COUNTS", "Block", "Float", "blocks_of", "weigh"]

BLOCK = 32_768  # documents
_SLICES = 8  # parts of a block's work: a constant, so that it is independent of the threads

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
    """Some documents in both forms, by row and by column, each cut into slices of about equal work."""

    rows: sparse.csr_matrix
    row_slices: list[sparse.csr_matrix]
    column_slices: list[sparse.csr_matrix]  # of the transpose

    @classmethod
    def of(cls, rows: sparse.csr_matrix) -> Block:
        return cls(rows, _slices(rows), _slices(rows.T.tocsr()))

    def __len__(self) -> int:
        return int(self.rows.shape[0])

    def times(self, vectors: list[Float], threads: int) -> list[Float]:
        """C x for every x, each over the tokens."""
        return _products(self.row_slices, vectors, threads)

    def transposed_times(self, vectors: list[Float], threads: int) -> list[Float]:
        """C' r for every r, each over the documents."""
        return _products(self.column_slices, vectors, threads)

    def column_sums(self, of: Callable[[Float], Float], vectors: list[Float], threads: int) -> list[Float]:
        """of(C)' r for every r, `of` acting on each entry: squares, presence."""
        parts = [sparse.csr_matrix((of(s.data), s.indices, s.indptr), shape=s.shape) for s in self.column_slices]
        return _products(parts, vectors, threads)


def blocks_of(counts: sparse.csr_matrix) -> list[Block]:
    """A matrix in fixed blocks of documents."""
    return [Block.of(counts[at : at + BLOCK]) for at in range(0, counts.shape[0], BLOCK)]


def _slices(matrix: sparse.csr_matrix) -> list[sparse.csr_matrix]:
    """Rows in consecutive parts with about the same number of entries; views, not copies."""
    pointer, n_rows = matrix.indptr, matrix.shape[0]
    cuts = np.searchsorted(pointer, np.linspace(0, pointer[-1], _SLICES + 1)[1:-1])
    bounds = np.unique(np.concatenate([[0], np.minimum(cuts, n_rows), [n_rows]]))
    parts = []
    for first, last in pairwise(bounds.tolist()):
        i, j = pointer[first], pointer[last]
        own = (matrix.data[i:j], matrix.indices[i:j], pointer[first : last + 1] - i)
        parts.append(sparse.csr_matrix(own, shape=(last - first, matrix.shape[1]), copy=False))
    return parts


def _products(parts: list[sparse.csr_matrix], vectors: list[Float], threads: int) -> list[Float]:
    # one column at a time: in scipy two such products cost less than one with two columns
    done = ordered_map(lambda part: [part @ vector for vector in vectors], parts, threads)
    if not parts:
        return [np.zeros(0, vector.dtype) for vector in vectors]
    return [np.concatenate(pieces) for pieces in zip(*done, strict=True)]
