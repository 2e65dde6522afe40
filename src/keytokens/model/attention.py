"""One layer of softmax attention on counts: f = C(w b) / (C w + w0) + c with w = exp(a), and its exact gradient.

Softmax attention f(X) = softmax(p'E_X')E_X v depends on the embeddings only through two numbers a token, the attention
logit a = E p and the value b = E v; the counts C say how often each token occurs. w0 is the weight of the *sink*, a
token of value 0 that is always present (w0 = 0: none). Two classes have one row of values, more have one each.

`scores` predicts and `evaluate` trains. The functions at the end share out the attention within one text or bag.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..base.threads import Pool
from .blocks import FEW, Block, Float, product
from .losses import Labels, Loss


@dataclass(frozen=True, eq=False)
class Parameters:
    """The model: everything a prediction needs."""

    a: Float  # (V,) attention logits
    B: Float  # (m, V) values
    c: Float  # (m,) intercepts
    empty: Float  # (m,) the score of a document without a known token, where there is no sink (with one it is c)
    log_sink: float = -np.inf  # log w0

    @property
    def has_sink(self) -> bool:
        return self.log_sink > -np.inf

    @functools.cached_property
    def shift(self) -> float | None:
        """What is taken off all logits before exp; f does not depend on it.

        None if some weight would come near underflow: a document may hold low logits only.
        """
        if not len(self.a):
            return self.log_sink if self.has_sink else 0.0
        top = max(float(self.a.max()), self.log_sink)
        low = min(float(self.a.min()), self.log_sink if self.has_sink else np.inf)
        return top if top - low < (600.0 if self.a.dtype == np.float64 else 60.0) else None

    @functools.cached_property
    def weighted(self) -> Float:
        """`weighted_values`, kept for the many uses of one model; a few columns lie one after the other (`product`)."""
        found = weighted_values(self)
        return np.asfortranarray(found) if found.shape[1] <= FEW else found

    @property
    def sink(self) -> Any:
        """w0 on the scale of w."""
        return self.a.dtype.type(np.exp(self.log_sink - (self.shift or 0.0)))


def weighted_values(theta: Parameters) -> Float:
    """(V, m + 1) w b for every class, then w = exp(a - shift)."""
    w = np.exp(theta.a - theta.a.dtype.type(theta.shift))
    found = np.empty((len(w), len(theta.B) + 1), w.dtype)
    np.multiply(theta.B.T, w[:, None], out=found[:, :-1])
    found[:, -1] = w
    return found


@dataclass(frozen=True, eq=False)
class Gradient:
    """The loss of some documents and its derivatives; these add up over documents."""

    loss: float
    a: Float  # (V,)
    B: Float  # (m, V)
    c: Float  # (m,)

    def __add__(self, other: Gradient) -> Gradient:
        return Gradient(self.loss + other.loss, self.a + other.a, self.B + other.B, self.c + other.c)


class Attended(NamedTuple):
    """What attention gathers in each of some documents, with C' the counts times the weights of their tokens."""

    means: Float  # (n, m) C' b / D
    total: Float  # (n,) D = C' 1 + the sink's weight; 0 where nothing has a weight
    sinks: Float  # the sink's weight: one number, or (n,)
    back: Callable[[Float], Float]  # R (n, k) to its product with the transpose of C', (V, k)

    def over_total(self, x: Float) -> Float:
        """x / D, (n,), and 0 where nothing has a weight."""
        return np.where(self.total > 0, x, 0) / np.where(self.total > 0, self.total, 1)


def _own_weights(C: sparse.csr_matrix, theta: Parameters) -> tuple[sparse.csr_matrix, Float]:
    """C with entries c exp(a - the document's own largest logit), and the sink's weight in each document.

    For logits of any size: the slower road, taken only when one shift for all documents would underflow.
    """
    lengths = np.diff(C.indptr)
    filled = np.flatnonzero(lengths)
    logits = theta.a[C.indices]
    top = np.full(C.shape[0], theta.log_sink, np.float64)
    if len(filled):
        top[filled] = np.maximum(top[filled], np.maximum.reduceat(logits, C.indptr[filled]))
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(over="ignore"):  # logits of 1e308 and -1e308: the difference is -inf, and the weight 0
        data = C.data * np.exp(logits - np.repeat(top, lengths)).astype(C.dtype)
        sinks = np.exp(theta.log_sink - top).astype(C.dtype)
    return sparse.csr_matrix((data, C.indices, C.indptr), shape=C.shape), sinks


def _with_ones(B: Float) -> Float:
    """(V, m + 1) the values of each class, then ones."""
    return np.column_stack([B.T, np.ones(B.shape[1], B.dtype)])


def scores(C: sparse.csr_matrix, theta: Parameters) -> Float:
    """F (m, n): the attention-weighted mean of the values plus the intercept; `empty` where nothing has a weight."""
    if theta.shift is not None:
        sums, sinks = product(C, theta.weighted), theta.sink
    else:
        W, sinks = _own_weights(C, theta)
        sums = product(W, _with_ones(theta.B))
    total = sums[:, -1] + sinks
    F = sums[:, :-1].T / np.where(total > 0, total, 1) + theta.c[:, None]
    return np.where(total > 0, F, theta.empty[:, None])


def attend(block: Block, theta: Parameters, threads: Pool = 1) -> Attended:
    """What attention gathers in the documents of a block."""

    def back(R: Float) -> Float:
        if theta.shift is None:
            return product(W.T, R)
        sums = block.transposed_times(R, threads)
        sums *= w
        return sums

    if theta.shift is not None:
        weighted, sinks = weighted_values(theta), theta.sink
        sums, w = block.times(weighted, threads), weighted[:, -1:].copy()
        del weighted  # the size of the parameters
    else:
        W, sinks = _own_weights(block.rows, theta)
        sums = product(W, _with_ones(theta.B))
    total = sums[:, -1] + sinks
    return Attended(sums[:, :-1] / np.where(total > 0, total, 1)[:, None], total, sinks, back)


def evaluate(block: Block, y: Any, weight: Float, loss: Loss, theta: Parameters, threads: Pool = 1) -> Gradient:
    """Loss of one block, summed over its documents with their weights, and its exact gradient.

    With M = C(w b) / D, D = C w + w0 and R = weight * dloss/dF,

    dB_k = w * C'(R_k / D)      da = w * (sum_k (b_k * C'(R_k / D)) - C'(sum_k R_k M_k / D))      dc_k = sum R_k
    """
    found = attend(block, theta, threads)
    M = found.means.T
    F = M + theta.c[:, None]
    weight = np.where(found.total > 0, weight, 0)  # a document without a known token teaches nothing
    R = loss.slope(F, y) * weight
    shares = found.over_total(R)
    sums = found.back(np.column_stack([shares.T, (shares * M).sum(axis=0)]))
    slopes = sums[:, :-1]
    value = np.sum(loss.value(F, y) * weight, dtype=np.float64)
    c = R.sum(axis=1, dtype=np.float64).astype(R.dtype)
    return Gradient(float(value), np.einsum("tk,tk->t", theta.B.T, slopes) - sums[:, -1], slopes.T, c)


def total_attention(block: Block, y: Labels, weight: Float, theta: Parameters, threads: Pool = 1) -> Float:
    """(V,) the attention of each token summed over the documents, whatever their labels: w * C'(weight / D)."""
    found = attend(block, replace(theta, B=theta.B[:0]), threads)
    return found.back(found.over_total(weight)[:, None])[:, 0]


def shares(log_weight: NDArray[Any]) -> NDArray[Any]:
    """Weights divided by their sum; nothing has a share where nothing has a weight.

    >>> shares(np.array([1000.0, 1000.0, -np.inf])).tolist()
    [0.5, 0.5, 0.0]
    """
    top = log_weight.max(initial=-np.inf)
    if top == -np.inf:
        return np.zeros(len(log_weight))
    W = np.exp(log_weight - top)
    W /= W.sum()
    return W


def holding_half(attention: NDArray[Any]) -> NDArray[np.bool_]:
    """The fewest items that together hold at least half of the attention, and all that tie with the last of them.

    >>> holding_half(np.array([0.1, 0.4, 0.3, 0.2])).tolist()
    [False, True, True, False]
    """
    if not len(attention):
        return np.zeros(0, np.bool_)
    return np.asarray(attention >= least_holding_half(attention, [0, len(attention)]))


def least_holding_half(attention: NDArray[Any], ends: Sequence[int]) -> NDArray[Any]:
    """(n,) the least attention among those items in each of some inputs: items ends[i] : ends[i + 1], at least one."""
    ordered = attention.copy()
    least = []
    for begin, end in pairwise(ends):
        own = ordered[begin:end]
        own.sort()
        largest_first = own[::-1]
        held = largest_first.cumsum()
        least.append(largest_first[held.searchsorted(held[-1] / 2 * (1 - 1e-12))])
    return np.array(least)
