"""Texts to sparse counts of a frozen vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..base.threads import ordered_map
from .hashing import Ids, Keys
from .pieces import slices
from .sorting import in_order
from .vocabulary import Vocabulary
from .words import read_words


def count(texts: Sequence[str], vocabulary: Vocabulary, threads: int = 1) -> sparse.csr_matrix:
    """The raw counts (float64) of a frozen vocabulary.

    >>> count(["Good, GOOD?"], Vocabulary.from_tokens(["?", "good", "good good"])).toarray().tolist()
    [[1.0, 2.0, 1.0]]
    """

    def one(piece: slice) -> tuple[Ids, NDArray[np.float64], NDArray[np.int64]]:
        words = read_words(texts[piece])
        all_rows = row_numbers(words.ends)
        found = vocabulary.find(words)
        rows, columns = np.concatenate([all_rows[f.first] for f in found]), np.concatenate([f.column for f in found])
        pairs = (rows << np.uint64(32)) | columns.astype(np.uint64)
        pairs = in_order(pairs, rows.astype(np.int32), columns, len(words.ends), len(vocabulary))
        begins = run_starts(pairs)
        counts = np.diff(begins, append=len(pairs)).astype(np.float64)
        pairs = pairs[begins]
        per_row = np.bincount((pairs >> np.uint64(32)).astype(np.intp), minlength=len(words.ends))
        return (pairs & np.uint64(0xFFFFFFFF)).astype(np.int32), counts, per_row

    parts = ordered_map(one, slices(texts), threads)
    if not parts:
        return sparse.csr_matrix((0, len(vocabulary)))
    indices, counts, per_row = (np.concatenate(column) for column in zip(*parts, strict=True))
    return matrix_of(indices, counts, per_row, len(vocabulary))


def row_numbers(ends: NDArray[np.intp]) -> NDArray[np.uint64]:
    return np.repeat(np.arange(len(ends), dtype=np.uint64), np.diff(ends, prepend=0))


def run_starts(sorted_values: Keys) -> NDArray[np.int64]:
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
