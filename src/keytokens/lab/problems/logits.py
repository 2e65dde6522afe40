"""Maps to logits: what the attention trains, and how a pull on the logits becomes a gradient, in the log domain.

-dL/dW = sum_it pull_it (x_it - x_im) z_i'        `pull` and the selected token m are those of `Reading`
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from ...base.checks import LARGEST, floats
from ...base.errors import refusal
from ...model.ragged import Bags, Vector
from .losses import Scaled
from .reading import Blocks, Reading

EPSILON = float(np.finfo(np.float64).eps)  # the penalty of published code


class Logits(Protocol):
    """From the trained blocks of the attention to one logit for each token."""

    @property
    def bags(self) -> Bags:
        """Which tokens make one input."""

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Of the blocks."""

    @property
    def keys(self) -> Bags:
        """With the block, or the product of the blocks, as one long vector p, the logits are these times p."""

    @property
    def span(self) -> Vector | None:
        """Orthonormal rows whose span holds every gradient of a single block; None for no smaller space."""

    def at(self, blocks: Blocks) -> Vector:
        """(N,); given all blocks, of which those of the attention are the last."""

    def descent(self, reading: Reading, blocks: Blocks) -> tuple[Scaled, ...]:
        """Minus the gradient, block by block; `blocks` are those that were read."""


@dataclass(frozen=True, eq=False)
class Keys:
    """a_it = k_it'p."""

    keys: Bags

    @property
    def bags(self) -> Bags:
        return self.keys

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        return ((self.keys.dim,),)

    def at(self, blocks: Blocks) -> Vector:
        return self.keys.rows @ blocks[-1]

    def descent(self, reading: Reading, blocks: Blocks) -> tuple[Scaled, ...]:
        return (reading.pulled(self.keys),)

    @cached_property
    def span(self) -> Vector | None:
        return _row_space(self.keys.rows - self.keys.spread(self.keys.rows[self.keys.starts[:-1]]))


@dataclass(frozen=True, eq=False)
class Cross:
    """a_it = x_it'W z_i, one query a bag; where z_i is a token of the bag it is one row of self-attention.

    W is a long p whose keys are the products x_it z_i'. With one query u for all bags W = p u'/|u|^2 has the logits of
    p, and descends as p does by steps times |u|^2.
    """

    values: Bags
    queries: Vector  # (n, e)

    @property
    def bags(self) -> Bags:
        return self.values

    @property
    def matrix_shape(self) -> tuple[int, int]:
        return self.values.dim, self.queries.shape[1]

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        return (self.matrix_shape,)

    def at(self, blocks: Blocks) -> Vector:
        return cross_logits(self.values, blocks[-1], self.queries)

    def descent(self, reading: Reading, blocks: Blocks) -> tuple[Scaled, ...]:
        return (pulled_matrix(reading, self.values, self.queries),)

    @cached_property
    def keys(self) -> Bags:
        return outer_keys(self.values, self.queries)

    @cached_property
    def span(self) -> Vector | None:
        return Keys(self.keys).span


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """a_is = E_s'p + log C_is over the tokens s that document i holds, of documents given as counts C."""

    embeddings: Vector  # (V, d)
    counts: sparse.csr_matrix  # (n, V), without zeros

    @cached_property
    def bags(self) -> Bags:
        """Which stored counts make one document; the vectors stay in E."""
        return Bags(np.empty((self.counts.nnz, 0)), self.counts.indptr.astype(np.intp))

    @cached_property
    def keys(self) -> Bags:
        """Up to the logarithms of the counts, which no p moves."""
        return self.bags.with_rows(self.embeddings[self.counts.indices])

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        return ((self.embeddings.shape[1],),)

    @cached_property
    def _log_counts(self) -> Vector:
        return np.log(self.counts.data)

    @cached_property
    def _centred(self) -> Vector:
        # the pulls of a bag sum to 0, so a common part of all embeddings would only cost digits
        return self.embeddings - self.embeddings.mean(axis=0)

    def at(self, blocks: Blocks) -> Vector:
        return (self.embeddings @ blocks[-1])[self.counts.indices] + self._log_counts

    def descent(self, reading: Reading, blocks: Blocks) -> tuple[Scaled, ...]:
        pulls = reading.token_pulls(self.counts.indices, len(self._centred))
        return (Scaled(pulls.array @ self._centred, pulls.log_scale),)

    @cached_property
    def span(self) -> Vector | None:
        return _row_space(self._centred)


@dataclass(frozen=True, eq=False)
class Factors:
    """W = K Q' with K (d, width) and Q (e, width): with G = -dL/dW, -dL/dK = G Q and -dL/dQ = G'K."""

    inner: Cross
    width: int

    @property
    def bags(self) -> Bags:
        return self.inner.bags

    @property
    def keys(self) -> Bags:
        return self.inner.keys

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        d, e = self.inner.matrix_shape
        return (d, self.width), (e, self.width)

    @property
    def span(self) -> Vector | None:
        return None

    @staticmethod
    def matrix(blocks: Blocks) -> Vector:
        """W = K Q'."""
        K, Q = blocks[-2:]
        return K @ Q.T

    def at(self, blocks: Blocks) -> Vector:
        return self.inner.at((self.matrix(blocks),))

    def descent(self, reading: Reading, blocks: Blocks) -> tuple[Scaled, ...]:
        K, Q = blocks[-2:]
        (G,) = self.inner.descent(reading, (self.matrix(blocks),))
        return Scaled(G.array @ Q, G.log_scale), Scaled(G.array.T @ K, G.log_scale)


# Matrices ------------------------------------------------------------------------------------------------------------


def cross_logits(values: Bags, W: Vector, queries: Vector) -> Vector:
    """(N,) x_it'W z_i."""
    if np.shape(W) != (values.dim, queries.shape[1]):
        rule = f"be a matrix of shape {(values.dim, queries.shape[1])}, entries of tokens by entries of queries"
        raise refusal("cross_logits", "W", rule, f"shape {np.shape(W)}")
    return np.einsum("tj,tj->t", values.rows, values.spread(queries @ W.T))


def outer_keys(values: Any, queries: Any) -> Bags:
    """The products x_it z_i' as long rows: with them W, row by row, is the p of every problem of keys.

    Values in any form that `Bags.of` reads, queries as one row a bag.

    >>> outer_keys(Bags.of([[[1.0, 2.0]]]), np.array([[10.0, 20.0]])).rows.tolist()
    [[10.0, 20.0, 20.0, 40.0]]
    """
    bags = Bags.of(values, "outer_keys", "values")
    z = queries_of("outer_keys", queries, len(bags))
    products = bags.rows[:, :, None] * bags.spread(z)[:, None, :]
    return bags.with_rows(products.reshape(len(bags.rows), -1))


def pulled_matrix(reading: Reading, values: Bags, queries: Vector) -> Scaled:
    """-dL/dW = sum_it pull_it (x_it - x_im) z_i', (d, e)."""
    away = values.rows - values.spread(values.rows[reading.selected])
    by_bag = values.sum(reading.pull.array[:, None] * away)
    return Scaled(by_bag.T @ queries, reading.pull.log_scale)


def queries_of(owner: str, queries: Any, size: int) -> Vector:
    """(n, e) checked: one query a bag, or one vector for all of them."""
    z = floats(queries)
    if z is None:
        raise refusal(owner, "queries", "be numbers, one row for each bag", queries)
    z = np.tile(z, (size, 1)) if z.ndim == 1 else z
    if z.ndim != 2 or len(z) != size or not z.shape[1]:
        rule = f"be a matrix with one row for each of the {size} bags, or one vector"
        raise refusal(owner, "queries", rule, f"shape {z.shape}")
    if not (np.abs(z) <= LARGEST).all():  # also nan
        raise refusal(owner, "queries", f"have finite entries up to {LARGEST:g}", queries)
    return z


def _row_space(rows: Vector) -> Vector | None:
    """Orthonormal basis (r, d) of the row space; None where that is everything."""
    _, sizes, basis = np.linalg.svd(rows, full_matrices=False)
    rank = int((sizes > 1e-12 * sizes[0]).sum())
    return None if rank in (0, rows.shape[1]) else basis[:rank]
