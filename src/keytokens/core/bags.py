"""Bags of vectors: n inputs, each with tokens of its own, stacked one below the other; and softmax over each bag.

bags.rows (N, d)      the tokens of all bags        bags.starts (n + 1,)   where each bag begins, and the end
a = rows @ p (N,)     attention logits              s = softmax(bags, a)   attention, sums to 1 over each bag
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import refusal

__all__ = ["LARGEST", "Bags", "log_softmax", "softmax"]

Vector = NDArray[np.float64]
Index = NDArray[np.intp]

LARGEST = 1e150  # of an entry, so that squares and sums of squares stay finite


@dataclass(frozen=True, eq=False)
class Bags:
    """Tokens of n inputs, stacked."""

    rows: Vector
    starts: Index

    @classmethod
    def of(cls, bags: Any, owner: str = "Bags.of", name: str = "keys") -> Bags:
        """From an array (n, T, d) or a list of (T_i, d) arrays.

        >>> Bags.of([[[1.0, 0.0]], [[0.0, 1.0], [2.0, 2.0]]]).starts.tolist()
        [0, 1, 3]
        """
        if isinstance(bags, Bags):
            return bags
        try:
            listed = [np.asarray(bag, np.float64) for bag in bags]
        except (TypeError, ValueError):
            raise refusal(owner, name, "be numbers: an array (n, T, d) or a list of (T_i, d) arrays", bags) from None
        if not listed:
            raise refusal(owner, name, "hold at least one bag", "none")
        for i, bag in enumerate(listed):
            _check_bag(owner, f"{name}[{i}]", bag, listed[0].shape[-1] if listed[0].ndim == 2 else -1)
        starts = np.concatenate([[0], np.cumsum([len(bag) for bag in listed])])
        return cls(np.concatenate(listed), starts)

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def dim(self) -> int:
        return int(self.rows.shape[1])

    @cached_property
    def sizes(self) -> Index:
        return np.diff(self.starts)

    @cached_property
    def bag(self) -> Index:
        """(N,) which bag each token is in."""
        return np.repeat(np.arange(len(self)), self.sizes)

    def __getitem__(self, i: int) -> Vector:
        return self.rows[self.starts[i] : self.starts[i + 1]]

    def with_rows(self, rows: Vector) -> Bags:
        """Other vectors for the same tokens."""
        return Bags(rows, self.starts)

    def max(self, x: Vector) -> Vector:
        """(n,) the largest entry of each bag."""
        return np.maximum.reduceat(x, self.starts[:-1])

    def sum(self, x: Vector) -> Vector:
        """(n, ...) the sum of each bag."""
        return np.add.reduceat(x, self.starts[:-1], axis=0)

    def spread(self, per_bag: Vector) -> Vector:
        """(N, ...) each bag's entry at each of its tokens."""
        return per_bag[self.bag]

    def argmax(self, x: Vector) -> Index:
        """(n,) the first largest entry of each bag, as an index within the bag."""
        largest = np.flatnonzero(x == self.spread(self.max(x)))
        _, first = np.unique(self.bag[largest], return_index=True)
        return largest[first] - self.starts[:-1]

    def chosen(self, selection: Sequence[int] | Index, owner: str = "selection") -> Index:
        """(n,) rows of one token a bag, given as indices within the bags."""
        raw = np.asarray(selection)
        if raw.shape != (len(self),) or raw.dtype.kind not in "iu":
            raise refusal(owner, "selection", f"be one token index for each of the {len(self)} bags", selection)
        outside = np.flatnonzero((raw < 0) | (raw >= self.sizes))
        if len(outside):
            i = int(outside[0])
            rule = f"be an index below {self.sizes[i]}, the number of tokens of bag {i}"
            raise refusal(owner, f"selection[{i}]", rule, int(raw[i]))
        return self.starts[:-1] + raw.astype(np.intp)


def _check_bag(owner: str, name: str, bag: NDArray[Any], dim: int) -> None:
    if bag.ndim != 2 or bag.shape[1] != dim or dim < 1:
        rule = "have shape (tokens, d), the same d for all bags"
        raise refusal(owner, name, rule, f"shape {bag.shape}", "stack the vectors of one bag as rows")
    if not len(bag):
        raise refusal(owner, name, "hold at least one token", "an empty bag", "leave the bag out")
    if not np.isfinite(bag).all():
        t, j = np.argwhere(~np.isfinite(bag))[0]
        raise refusal(owner, f"{name}[{t}, {j}]", "be finite", float(bag[t, j]))
    if np.abs(bag).max() > LARGEST:
        raise refusal(owner, name, f"have entries up to {LARGEST:g}", float(np.abs(bag).max()), "scale the vectors")


def log_softmax(bags: Bags, a: Vector) -> Vector:
    """(N,) log of the attention that each token gets within its bag; exact for any logits."""
    shifted = a - bags.spread(bags.max(a))
    return shifted - bags.spread(np.log(bags.sum(np.exp(shifted))))


def softmax(bags: Bags, a: Vector) -> Vector:
    """(N,) attention.

    >>> softmax(Bags.of([[[1.0], [2.0]]]), np.zeros(2)).tolist()
    [0.5, 0.5]
    """
    return np.exp(log_softmax(bags, a))
