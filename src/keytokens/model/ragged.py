"""Bags of vectors: n inputs, each with tokens of its own, stacked one below the other; and softmax over each bag.

bags.rows (N, d)      the tokens of all bags        bags.starts (n + 1,)   where each bag begins, and the end
a = rows @ p (N,)     attention logits              s = softmax(bags, a)   attention, sums to 1 over each bag
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base.checks import LARGEST, Seen, floats
from ..base.errors import refusal

Vector = NDArray[np.float64]
Index = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Bags:
    """Tokens of n inputs, stacked."""

    rows: Vector
    starts: Index

    @classmethod
    def of(cls, bags: Any, owner: str = "Bags.of", name: str = "keys", noun: str = "token") -> Bags:
        """From an array (n, T, d), a list of (T_i, d) arrays or lists, or Bags; refusals call one vector a `noun`.

        >>> Bags.of([[[1.0, 0.0]], [[0.0, 1.0], [2.0, 2.0]]]).starts.tolist()
        [0, 1, 3]
        """
        if isinstance(bags, Bags):
            if not bags._in_range:
                raise refusal(owner, name, f"have finite entries up to {LARGEST:g}", bags.rows)
            return bags
        given = floats(bags) if isinstance(bags, np.ndarray) else None
        try:
            read = [floats(bag) for bag in bags] if given is None else list(given)
        except TypeError:
            read = [None]
        listed = [bag for bag in read if bag is not None]
        if len(listed) < len(read):
            raise refusal(owner, name, "be numbers: an array (n, T, d) or a list of (T_i, d) arrays", bags)
        if not listed:
            raise refusal(owner, name, "hold at least one bag", "none")
        for i, bag in enumerate(listed):
            _check_bag(owner, f"{name}[{i}]", noun, bag, listed[0].shape[-1] if listed[0].ndim == 2 else -1)
        starts = np.concatenate([[0], np.cumsum([len(bag) for bag in listed])])
        return cls(np.concatenate(listed), starts)

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def dim(self) -> int:
        return int(self.rows.shape[1])

    @cached_property
    def _in_range(self) -> bool:
        return bool((np.abs(self.rows) <= LARGEST).all())  # also nan

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

    def some(self, chosen: Index) -> Bags:
        """These bags alone."""
        return Bags(np.concatenate([self[i] for i in chosen]), np.append(0, np.cumsum(self.sizes[chosen])))

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
        largest = np.flatnonzero(x == self.spread(self.max(x)))[::-1]
        first = np.zeros(len(self), np.intp)
        bag = self.bag[largest]
        first[bag] = largest - self.starts[bag]  # the last assignment to a bag is its first token
        return first

    def per_token(
        self, given: Any, owner: str, name: str = "scores", *, least: float = -LARGEST, advice: str = ""
    ) -> Vector:
        """(N,) one number a token, from a flat vector, an array (n, T) or a list with a list for each bag.

        >>> bags = Bags.of([[[1.0, 0.0]], [[0.0, 1.0], [2.0, 2.0]]])
        >>> bags.per_token([[1.0], [2.0, 3.0]], "solve").tolist(), bags.per_token([1, 2, 3], "solve").tolist()
        ([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])
        """
        rule = f"be one finite number for each of the {len(self.rows)} tokens"
        x = floats(given)
        if x is None and isinstance(given, Iterable):
            parts = [part for part in map(floats, given) if part is not None]
            if [part.shape for part in parts] == [(size,) for size in self.sizes]:
                x = np.concatenate(parts)
        elif x is not None and x.ndim == 2 and len(x) == len(self) and (self.sizes == x.shape[1]).all():
            x = x.ravel()
        if x is None or x.shape != (len(self.rows),):
            raise refusal(owner, name, rule, given if x is None else Seen(f"shape {x.shape}"), advice)
        outside = np.flatnonzero(~((x >= least) & (x <= LARGEST)))  # also nan
        if len(outside):
            i = int(self.bag[outside[0]])
            seen = Seen(f"{x[outside[0]]:g} at token {outside[0] - self.starts[i]} of bag {i}")
            raise refusal(owner, name, rule, seen, advice)
        return x

    def chosen(self, selection: Sequence[int] | Index, owner: str = "selection") -> Index:
        """(n,) rows of one token a bag, given as indices within the bags."""
        raw = indices(selection)
        if raw.shape != (len(self),) or raw.dtype.kind not in "iu":
            raise refusal(owner, "selection", f"be one token index for each of the {len(self)} bags", selection)
        outside = np.flatnonzero((raw < 0) | (raw >= self.sizes))
        if len(outside):
            i = int(outside[0])
            rule = f"be an index below {self.sizes[i]}, the number of tokens of bag {i}"
            raise refusal(owner, f"selection[{i}]", rule, int(raw[i]))
        return self.starts[:-1] + raw.astype(np.intp)


def indices(given: Any) -> NDArray[Any]:
    """As numpy reads it; what it cannot read as one array has no shape."""
    try:
        return np.asarray(given)
    except (TypeError, ValueError):
        return np.array(None)


def _check_bag(owner: str, name: str, noun: str, bag: NDArray[Any], dim: int) -> None:
    if bag.ndim != 2 or bag.shape[1] != dim or dim < 1:
        rule = f"have shape ({noun}s, d), the same d for all bags"
        raise refusal(owner, name, rule, f"shape {bag.shape}", "stack the vectors of one bag as rows")
    if not len(bag):
        raise refusal(owner, name, f"hold at least one {noun}", "an empty bag", "leave the bag out")
    if not np.isfinite(bag).all():
        t, j = np.argwhere(~np.isfinite(bag))[0]
        raise refusal(owner, f"{name}[{t}, {j}]", "be finite", float(bag[t, j]))
    if np.abs(bag).max() > LARGEST:
        raise refusal(owner, name, f"have entries up to {LARGEST:g}", float(np.abs(bag).max()), "scale the vectors")


def flat_sets(owner: str, name: str, sets: Any, sizes: Index, noun: str) -> tuple[Index, Index]:
    """One set of tokens for each bag, as sorted arrays (bag, token) without repetition."""
    try:
        listed = [list(tokens) for tokens in sets]
    except TypeError:
        raise refusal(owner, name, f"be one set of token indices for each {noun}", sets) from None
    if len(listed) != len(sizes):
        raise refusal(owner, name, f"have one set for each of the {len(sizes)} {noun}s", sets)
    empty = [i for i, tokens in enumerate(listed) if not tokens]
    if empty:
        raise refusal(owner, f"{name}[{empty[0]}]", "hold at least one token", "an empty set")
    bag = np.repeat(np.arange(len(listed)), [len(tokens) for tokens in listed])
    token = indices(list(chain.from_iterable(listed)))
    if token.dtype.kind not in "iu" or token.ndim != 1:
        raise refusal(owner, name, "hold token indices", sets)
    outside = np.flatnonzero((token < 0) | (token >= sizes[bag]))
    if len(outside):
        i, t = int(bag[outside[0]]), int(token[outside[0]])
        raise refusal(owner, f"{name}[{i}]", f"hold indices below {sizes[i]}, the number of tokens of {noun} {i}", t)
    width, token = int(sizes.max()), token.astype(np.intp)
    code = np.unique(bag * width + token)
    return code // width, code % width


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
