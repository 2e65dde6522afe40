"""Documents as sparse counts, cut into fixed blocks: the only place where sums over documents are made.

A block lies token by token: the counts of the first token in all documents, then those of the second, and so on. It is
cut into a few parts of consecutive tokens, which threads share. For X with a row for each token, and R with one for
each document,

    C X = sum over the parts of (part X_part)         C' R = one part of its rows from each part of the tokens

Blocks and parts depend on the counts alone, and their sums are made in a fixed order: the same bits at any number of
threads, and of workers that hold some blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..base.threads import Pool, ordered_map

BLOCK = 1 << 24  # entries of a block, and numbers of its documents
_DOCUMENT = 8  # numbers that training holds of a document besides its scores
_COLUMNS = 64  # at a time: the products of all parts wait to be summed
_PARTS = 8  # of a block, at most: a constant, whatever the threads
_PART = 1 << 16  # entries and tokens of a part, at least: less is not worth a thread
FEW = 4  # columns: up to here a product for each of them takes less time than one with all

Float = NDArray[np.floating[Any]]  # float32 or float64, as the counts are


def product(matrix: Any, X: Float) -> Float:
    """A sparse matrix times a dense one."""
    if X.shape[1] > FEW:
        return np.asarray(matrix @ X)
    return np.column_stack([matrix @ column for column in X.T])


class _Part(NamedTuple):
    """Consecutive tokens of a block: all its entries, with a part of the pointer."""

    span: slice
    tokens: Any  # (tokens of the part, documents)
    rows: Any  # (documents, tokens of the part): the same arrays


@dataclass(frozen=True, eq=False)
class Block:
    """Some documents."""

    tokens: sparse.csr_matrix  # (tokens, documents)
    let_go: Callable[[], None] = lambda: None  # to be called after each use: what lies in a file gives its memory back

    @classmethod
    def of(cls, rows: sparse.csr_matrix) -> Block:
        """Documents as rows, whose entries are sorted."""
        return cls(_turned(rows).tocsr())

    def __len__(self) -> int:
        return int(self.tokens.shape[1])

    def __reduce__(self) -> tuple[Any, ...]:
        """To another process go the counts alone."""
        return Block, (self.tokens,)

    @property
    def rows(self) -> sparse.csr_matrix:
        """The documents one after the other: a copy."""
        return _turned(self.tokens).tocsr()

    def times(self, X: Float, threads: Pool) -> Float:
        """C X: (tokens, columns) to (documents, columns)."""
        found = np.empty((len(self), X.shape[1]), self.tokens.dtype)
        for at in range(0, X.shape[1], _COLUMNS):
            some = slice(at, at + _COLUMNS)
            parts = ordered_map(lambda part: product(part.rows, X[part.span, some]), self._parts, threads)  # noqa: B023
            total, *others = parts
            for other in others:
                total += other
            found[:, some] = total
        return found

    def transposed_times(self, R: Float, threads: Pool, of: Callable[[Float], Float] | None = None) -> Float:
        """C' R: (documents, columns) to (tokens, columns); with `of`, of(C)' R, where it acts on each entry."""
        sums = np.empty((self.tokens.shape[0], R.shape[1]), self.tokens.dtype)

        def fill(part: _Part) -> None:
            sums[part.span] = product(part.tokens if of is None else _applied(of, part.tokens), R)

        ordered_map(fill, self._parts, threads)
        return sums

    @cached_property
    def _parts(self) -> list[_Part]:
        """Consecutive tokens with about the same work."""
        work = self.tokens.indptr + np.arange(len(self.tokens.indptr), dtype=np.int64)
        bounds = _bounds(work, max(1, min(_PARTS, int(work[-1]) // _PART)))
        parts = []
        for first, last in list(pairwise(bounds)) or [(0, 0)]:  # without tokens one empty part
            pointer, shape = self.tokens.indptr[first : last + 1], (last - first, len(self))
            tokens = made_of(sparse.csr_matrix, self.tokens.data, self.tokens.indices, pointer, shape)
            parts.append(_Part(slice(first, last), tokens, _turned(tokens)))
        return parts


def blocks_of(counts: sparse.csr_matrix, n_classes: int) -> list[Block]:
    """A matrix in consecutive blocks of documents; see `block_bounds`."""
    return [Block.of(_cut(counts, *span)) for span in pairwise(block_bounds(counts.indptr, n_classes))]


def block_bounds(pointer: NDArray[np.signedinteger[Any]], n_classes: int, at: int | None = None) -> list[int]:
    """Where the blocks of documents with this pointer begin, and the number of documents; one block at least.

    A block has about BLOCK entries, scores and other numbers of its documents, of which training holds several. No
    block has documents from before and from behind `at`.
    """
    if at is not None and at < len(pointer) - 1:
        behind = block_bounds(pointer[at:] - pointer[at], n_classes)
        return block_bounds(pointer[: at + 1], n_classes) + [at + bound for bound in behind[1:]]
    work = pointer + np.arange(len(pointer), dtype=np.int64) * (n_classes + _DOCUMENT)
    bounds = _bounds(work, max(1, round(int(work[-1]) / BLOCK)))
    return bounds if len(bounds) > 1 else [0, 0]


def _bounds(pointer: NDArray[np.signedinteger[Any]], n_parts: int) -> list[int]:
    """Bounds of consecutive rows with about the same number of entries."""
    n_rows = len(pointer) - 1
    cuts = np.searchsorted(pointer, np.linspace(0, pointer[-1], n_parts + 1)[1:-1])
    return np.unique(np.concatenate([[0], np.minimum(cuts, n_rows), [n_rows]])).tolist()


# Matrices of the very arrays of another one: the constructors of scipy would look at them, and copy some -------------


def _turned(matrix: Any) -> Any:
    """The transpose."""
    kind = sparse.csc_matrix if matrix.format == "csr" else sparse.csr_matrix
    return made_of(kind, matrix.data, matrix.indices, matrix.indptr, matrix.shape[::-1])


def _cut(matrix: sparse.csr_matrix, first: int, last: int) -> sparse.csr_matrix:
    """Consecutive rows, with the entries of these alone."""
    i, j = matrix.indptr[[first, last]]
    pointer = (matrix.indptr[first : last + 1] - i).astype(matrix.indices.dtype)
    shape = (last - first, matrix.shape[1])
    return made_of(sparse.csr_matrix, matrix.data[i:j], matrix.indices[i:j], pointer, shape)


def _applied(of: Callable[[Float], Float], rows: Any) -> Any:
    """Consecutive rows with of(entry) for each entry."""
    i, j = rows.indptr[[0, -1]]
    return made_of(sparse.csr_matrix, of(rows.data[i:j]), rows.indices[i:j], rows.indptr - i, rows.shape)


def made_of(kind: type[Any], data: Float, indices: Any, pointer: Any, shape: tuple[int, int]) -> Any:
    """A sparse matrix of these arrays."""
    matrix = kind(shape, dtype=data.dtype)
    matrix.data, matrix.indices, matrix.indptr = data, indices, pointer
    return matrix
