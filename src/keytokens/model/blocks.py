"""Documents as sparse counts, cut into fixed blocks: the only place where sums over documents are made.

Blocks, and the slices of a block, depend on the counts alone, not on the threads or the memory. Within a slice every
sum is made in a fixed order, so it does not matter which thread makes it; sums over slices are made in their order, and
over blocks in pairs, pairs of pairs and so on. Hence the same bits at any number of threads, and of workers that hold
some blocks.

A slice is C' of its documents: a row for each token, a column for each document. It lies document by document, as
documents are written, or token by token where that is worth the trouble (see `by_token`): what a product adds to, or
takes from, at random places is then the vector of the documents, which is shorter and stays in the cache, and that of
the tokens is passed through from its beginning to its end. Sums are made in the same order either way: the tokens of a
document by column, the documents of a token as they come.

Products are made with matrices that have a row for each class and a column for each token. A few rows lie one after the
other. Many lie token by token too (see `layout`): who visits a token finds all its rows at one place, and all products
are made at once. Transposed products then share out the tokens instead of the rows.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..base.threads import on_own_pages, ordered_map

BLOCK = 1 << 24  # entries: many, because every slice of a block adds a vector over all tokens
_SLICES = 2  # parts of a block: a constant, whatever the threads; few, because each adds a vector over all tokens
_FEW = 4  # rows: more of them lie token by token
_PIECE = 1 << 17  # entries and tokens in a piece of the transpose: its products stay in the cache
_LARGE_PIECE = 1 << 20  # where a product is a vector
_MANY_TOKENS = 1 << 20  # a vector of so many is larger than what a core has for itself

Float = NDArray[np.floating[Any]]  # float32 or float64, as the counts are
Of = Callable[[Float, Float], None]  # from entries to entries


def layout(rows: int) -> Literal["C", "F"]:
    """How a matrix with so many rows, and a column for each token, should lie in memory."""
    return "C" if rows <= _FEW else "F"


@dataclass(frozen=True, eq=False)
class Block:
    """Some documents, cut into slices of about equal work."""

    slices: list[Any]  # (tokens, documents) each: CSC, or CSR if token by token
    let_go: Callable[[], None] | None = None  # called after each use: what lies in a file gives its memory back

    @classmethod
    def of(cls, rows: sparse.csr_matrix, turn: bool = False, let_go: Callable[[], None] | None = None) -> Block:
        """Documents as rows, whose entries are sorted: these very arrays, or, with `turn`, token by token."""
        slices = list(map(_turned, _parts(rows, slices_of_block(rows.indptr))))
        return cls([part.tocsr() for part in slices] if turn else slices, let_go)

    def __len__(self) -> int:
        return int(self._ends[-1])

    def __reduce__(self) -> tuple[Any, ...]:
        """To another process go the slices alone."""
        return Block, (self.slices,)

    @property
    def n_tokens(self) -> int:
        return int(self.slices[0].shape[0])

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.slices[0].dtype

    @property
    def rows(self) -> sparse.csr_matrix:
        """The documents one after the other: a copy."""
        return sparse.vstack([part.tocsr() for part in self._documents], format="csr")

    def done(self) -> None:
        """To be called after each use."""
        if self.let_go is not None:
            self.let_go()

    def times(self, X: Float, threads: int) -> Float:
        """C x for every row x of X, (rows, tokens) as `layout` has it: (rows, documents)."""
        if layout(len(X)) == "F":
            columns = np.ascontiguousarray(X.T)
            by_document = np.empty((len(self), len(X)), self.dtype)

            def fill_slice(task: tuple[Any, slice]) -> None:
                by_document[task[1]] = task[0] @ columns

            ordered_map(fill_slice, zip(self._documents, self._spans, strict=True), threads)
            return by_document.T
        # a row at a time: in scipy two products cost less than one with two columns
        sums = np.empty((len(X), len(self)), self.dtype)

        def fill(task: tuple[int, tuple[Any, slice]]) -> None:
            row, (part, documents) = task
            sums[row, documents] = part @ X[row]

        ordered_map(fill, product(range(len(X)), zip(self._documents, self._spans, strict=True)), threads)
        return sums

    def transposed_times(self, R: Float, threads: int, out: Float | None = None) -> Float:
        """C' r for every row r of R, (rows, documents): (rows, tokens) as `layout` has it; into `out`, if given."""
        if out is None:
            out = np.empty((len(R), self.n_tokens), self.dtype, order=layout(len(R)))
        if self.slices[0].format == "csc":
            self._add_documents(R, threads, out)
        elif layout(len(R)) == "C":
            vectors = [np.split(row, self._ends[1:-1]) for row in R]

            def some_of_row(task: tuple[tuple[slice, list[Any]], int]) -> None:
                (tokens, parts), k = task
                out[k, tokens] = _sum_of_products(parts, vectors[k])

            ordered_map(some_of_row, product(self._large_pieces, range(len(R))), threads)
        else:
            columns = np.split(np.ascontiguousarray(R.T), self._ends[1:-1])

            def some_tokens(piece: tuple[slice, list[Any]]) -> None:
                out[:, piece[0]] = _sum_of_products(piece[1], columns).T

            ordered_map(some_tokens, self._small_pieces, threads)
        return out

    def _add_documents(self, R: Float, threads: int, out: Float) -> None:
        """`transposed_times` where documents lie one after the other, and each adds to its tokens."""
        if threads <= len(R):  # no thread needs a second vector

            def one_row(k: int) -> None:
                out[k] = _sum_of_products(self.slices, [R[k, documents] for documents in self._spans])

            ordered_map(one_row, range(len(R)), threads)
            return
        tasks = list(product(range(len(R)), zip(self.slices, self._spans, strict=True)))
        products = ordered_map(lambda task: task[1][0] @ R[task[0], task[1][1]], tasks, threads)
        out.fill(0)
        for (k, _), sums in zip(tasks, products, strict=True):
            out[k] += sums

    @functools.cached_property
    def _ends(self) -> NDArray[np.intp]:
        """Where the slices begin, and the number of documents."""
        return np.cumsum([0, *(part.shape[1] for part in self.slices)])

    @functools.cached_property
    def _spans(self) -> list[slice]:
        """The documents of each slice."""
        return [slice(*span) for span in pairwise(self._ends.tolist())]

    @functools.cached_property
    def _documents(self) -> list[Any]:
        """(documents, tokens): the slices turned again, the same arrays."""
        return list(map(_turned, self.slices))

    @functools.cached_property
    def _small_pieces(self) -> list[tuple[slice, list[Any]]]:
        """For many rows at once, whose products stay in the cache."""
        return self._pieces(_PIECE)

    @functools.cached_property
    def _large_pieces(self) -> list[tuple[slice, list[Any]]]:
        return self._pieces(_LARGE_PIECE)

    def _pieces(self, size: int) -> list[tuple[slice, list[Any]]]:
        """Consecutive tokens, and their part of each slice."""
        work = np.arange(self.n_tokens + 1, dtype=np.int64)
        for part in self.slices:
            work += part.indptr
        bounds = _bounds(work, max(1, int(work[-1]) // size))
        spans = [slice(*span) for span in pairwise(bounds)] or [slice(0, 0)]  # without tokens one empty piece
        return [(tokens, [_some_rows(part, tokens) for part in self.slices]) for tokens in spans]

    def column_sums(self, of: Of, vectors: Sequence[Float], threads: int) -> Float:
        """of(C)' r for every r, `of` acting on each entry (`present`, `squares`): (vectors, tokens)."""
        total = np.zeros((len(vectors), self.n_tokens), self.dtype)
        if self.slices[0].format == "csc":
            for part, documents in zip(self.slices, self._spans, strict=True):
                whole = _of(part, of, on_own_pages(part.data.shape, self.dtype))

                def one(k: int, whole: Any = whole, documents: slice = documents) -> None:
                    total[k] += whole @ vectors[k][documents]

                ordered_map(one, range(len(vectors)), threads)
            return total

        def some_tokens(piece: tuple[slice, list[Any]]) -> None:
            """A few, so that of(C) is small."""
            tokens, parts = piece
            for part, documents in zip(parts, self._spans, strict=True):
                few = _of(part, of)
                for row, vector in zip(total[:, tokens], vectors, strict=True):
                    row += few @ vector[documents]

        ordered_map(some_tokens, self._large_pieces, threads)
        return total

    def presence(self, groups: NDArray[np.intp], weight: Float, n_groups: int, threads: int) -> Float:
        """(groups, tokens): the weight of the documents of each group that hold the token."""
        if n_groups <= _FEW:
            return self.column_sums(present, [np.where(groups == k, weight, 0) for k in range(n_groups)], threads)

        def one_slice(task: tuple[Any, slice]) -> Any:
            part, documents = task
            own = weight[documents].astype(self.dtype, copy=False)
            shape = part.shape[1], n_groups
            members = sparse.csr_matrix((own, groups[documents], np.arange(shape[0] + 1)), shape=shape)
            return _of(part, present) @ members  # a document is in one group: no larger than the slice

        first, *others = ordered_map(one_slice, zip(self.slices, self._spans, strict=True), threads)
        return np.asarray(functools.reduce(operator.add, others, first).toarray(order="F").T)


def by_token(n_tokens: int, n_classes: int) -> bool:
    """Whether slices should lie token by token: where a vector of the tokens outgrows a cache, or many rows of them lie
    so too."""
    return n_tokens > _MANY_TOKENS or layout(n_classes + 1) == "F"


def blocks_of(
    counts: sparse.csr_matrix, turn: bool = False, let_go: Callable[[int, int], None] | None = None
) -> list[Block]:
    """A matrix in consecutive blocks of documents with about BLOCK entries each, token by token with `turn`.

    `let_go(first, last)` gives back the memory of some of its entries, where they lie in a file.
    """
    parts = _parts(counts, block_bounds(counts.indptr))
    ends = np.cumsum([0, *(len(part.indices) for part in parts)]).tolist()
    if let_go is None:
        return [Block.of(part, turn) for part in parts]
    leave = [functools.partial(let_go, *span) for span in pairwise(ends)]
    return [Block.of(part, turn, left) for part, left in zip(parts, leave, strict=True)]


def block_bounds(pointer: NDArray[np.signedinteger[Any]]) -> list[int]:
    """Where the blocks of documents with this pointer begin, and the number of documents."""
    return _bounds(pointer, max(1, round(int(pointer[-1]) / BLOCK)))


def slice_bounds(pointer: NDArray[np.signedinteger[Any]]) -> list[list[int]]:
    """For each block where its slices begin, and where the last one ends."""
    blocks = pairwise(block_bounds(pointer))
    return [[i + at for at in slices_of_block(pointer[i : j + 1] - pointer[i])] for i, j in blocks]


def slices_of_block(pointer: NDArray[np.signedinteger[Any]]) -> list[int]:
    """Where the slices of one block begin, and the number of its documents."""
    return _bounds(pointer, _SLICES)


def _sum_of_products(matrices: Sequence[Any], arrays: Sequence[Float]) -> Float:
    """One product for each slice, added in their order."""
    total: Float = matrices[0] @ arrays[0]
    for matrix, array in zip(matrices[1:], arrays[1:], strict=True):
        total += matrix @ array
    return total


def _turned(matrix: Any) -> Any:
    """Its transpose, made of the same arrays."""
    kind = sparse.csc_matrix if matrix.format == "csr" else sparse.csr_matrix
    return _made_of(kind, matrix.data, matrix.indices, matrix.indptr, matrix.shape[::-1])


def _some_rows(matrix: Any, rows: slice) -> Any:
    """Consecutive rows of a CSR matrix, for products: its very arrays, with a part of the pointer."""
    shape = (rows.stop - rows.start, matrix.shape[1])
    return _made_of(sparse.csr_matrix, matrix.data, matrix.indices, matrix.indptr[rows.start : rows.stop + 1], shape)


def _of(part: Any, of: Of, room: Float | None = None) -> Any:
    """A matrix with of(entry) for each entry, written into `room`, if given."""
    i, j = part.indptr[[0, -1]]
    entries = part.data[i:j]
    room = np.empty_like(entries) if room is None else room
    of(entries, room)
    return _made_of(type(part), room, part.indices[i:j], part.indptr - i, part.shape)


def present(entries: Float, out: Float) -> None:
    """1 for each entry."""
    out.fill(1)


def squares(entries: Float, out: Float) -> None:
    np.square(entries, out=out)


def _bounds(pointer: NDArray[np.signedinteger[Any]], n_parts: int) -> list[int]:
    """Bounds of consecutive rows with about the same number of entries."""
    n_rows = len(pointer) - 1
    cuts = np.searchsorted(pointer, np.linspace(0, pointer[-1], n_parts + 1)[1:-1])
    return np.unique(np.concatenate([[0], np.minimum(cuts, n_rows), [n_rows]])).tolist()


def _parts(matrix: sparse.csr_matrix, bounds: list[int]) -> list[sparse.csr_matrix]:
    """Consecutive rows between these bounds; views, not copies. One part at least."""
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
