"""One layer of softmax attention on counts: f = C(w b) / (C w + w0) + c with w = exp(a), and its exact gradient.

Softmax attention f(X) = softmax(p'E_X')E_X v depends on the embeddings only through two numbers a token, the attention
logit a = E p and the value b = E v; the counts C say how often each token occurs. w0 is the weight of the *sink*, a
token of value 0 that is always present (w0 = 0: none). Two classes have one row of values, more have one each.

Attention within one input, a text or a bag.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..base.threads import over_spans
from .blocks import Block, Float, layout
from .losses import Labels, Loss


@dataclass(frozen=True, eq=False)
class Weights:
    """w = exp(a - shift) and the sink's weight on the same scale; f does not depend on the shift."""

    a: Float
    shift: float
    sink: float

    def of(self, at: slice = slice(None)) -> Float:
        """w of some tokens."""
        w = self.a[at] - self.a.dtype.type(self.shift)
        return np.asarray(np.exp(w, out=w))


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
    def weights(self) -> Weights | None:
        """With one shift for all documents, if no weight comes near underflow (a document may hold only low logits)."""
        if not len(self.a):
            return Weights(self.a, 0.0, 1.0 if self.has_sink else 0.0)
        top = max(float(self.a.max()), self.log_sink)
        low = min(float(self.a.min()), self.log_sink if self.has_sink else np.inf)
        if not top - low < (600.0 if self.a.dtype == np.float64 else 60.0):
            return None
        return Weights(self.a, top, float(np.exp(self.log_sink - top)))

    @functools.cached_property
    def weighted(self) -> Float | None:
        """`weighted_rows`, kept for the many uses of one model."""
        return weighted_rows(self)

    def apart(self, threads: int = 1) -> Parameters:
        """The same in arrays of its own, class by class: a model, not a moment of its training."""
        B = np.empty(self.B.shape, self.B.dtype)

        def some(at: slice) -> None:
            B[:, at] = self.B[:, at]

        over_spans(some, len(self.a), threads, len(B))
        return Parameters(self.a.copy(), B, self.c.copy(), self.empty, self.log_sink)


def empty_rows(theta: Parameters) -> Float:
    """(m + 1, V), as sums and slopes lie in memory."""
    return np.empty((len(theta.B) + 1, len(theta.a)), theta.a.dtype, order=layout(len(theta.B) + 1))


def weighted_rows(theta: Parameters, threads: int = 1, out: Float | None = None) -> Float | None:
    """(m + 1, V) w b for every row of values, then w; None where there are no weights for all documents."""
    own = theta.weights
    if own is None:
        return None
    rows = empty_rows(theta) if out is None else out

    def some(at: slice) -> None:
        w = own.of(at)
        np.multiply(theta.B[:, at], w, out=rows[:-1, at])
        rows[-1, at] = w

    over_spans(some, len(theta.a), threads, len(rows))
    return rows


@dataclass(eq=False)
class Sums:
    """What adds up over documents, with D = C w + w0, M = C(w b)/D and R = weight * dloss/dF (see `gradient_of`)."""

    loss: float
    rows: Float  # (m + 1, V): C'(R_k / D) for every class, then C'(sum_k R_k M_k / D)
    c: Float  # (m,): the sums of R_k

    def __add__(self, other: Sums) -> Sums:
        """Written over the first, for these may be large."""
        self.rows += other.rows
        return Sums(self.loss + other.loss, self.rows, self.c + other.c)


@dataclass(frozen=True, eq=False)
class Gradient:
    """The loss of some documents and its derivatives; these add up over documents."""

    loss: float
    a: Float
    B: Float
    c: Float


def _weighted_rows(C: sparse.csr_matrix, theta: Parameters) -> tuple[sparse.csr_matrix, Float]:
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


def scores(C: sparse.csr_matrix, theta: Parameters) -> Float:
    """F (m, n): the attention-weighted mean of the values plus the intercept; `empty` where nothing has a weight."""
    own, rows = theta.weights, theta.weighted
    if own is not None and rows is not None:
        means = (C @ rows.T).T if layout(len(rows)) == "F" else np.stack([C @ row for row in rows])
        numerators, total = means[:-1], means[-1] + own.sink
    else:
        W, sinks = _weighted_rows(C, theta)
        numerators, total = np.stack([W @ b for b in theta.B]), W @ np.ones(C.shape[1], C.dtype) + sinks
    F = numerators / np.where(total > 0, total, 1) + theta.c[:, None]
    return np.where(total > 0, F, theta.empty[:, None])


def evaluate(block: Block, y: Labels, weight: Float, loss: Loss, theta: Parameters, threads: int = 1) -> Gradient:
    """Loss of one block, summed over its documents with their weights, and its exact gradient."""
    return gradient_of(sums_of(block, y, weight, loss, theta, threads), theta, threads)


def sums_of(
    block: Block, y: Labels, weight: Float, loss: Loss, theta: Parameters, threads: int, room: Float | None = None
) -> Sums:
    """What one block says of the loss and its gradient; with `room`, written there."""
    own = theta.weights
    rows = theta.weighted if room is None else weighted_rows(theta, threads, room)
    if own is not None and rows is not None:
        sums, sinks = block.times(rows, threads), np.array([own.sink], theta.a.dtype)
    else:
        W, sinks = _weighted_rows(block.rows, theta)
        sums = np.stack([*(W @ b for b in theta.B), W @ np.ones(W.shape[1], W.dtype)])
    sinks = np.broadcast_to(sinks, len(block))

    def some(at: slice) -> Float:
        """R / D and sum_k R_k M_k / D of some documents, written over their sums; the total of R, and the loss."""
        part = sums[:, at]
        total = part[-1] + sinks[at]
        known = total > 0
        own_weight = np.where(known, weight[at], 0)  # a document without a known token teaches nothing
        total = np.where(known, total, 1)
        M = part[:-1] / total
        F = M + theta.c[:, None]
        R = loss.slope(F, y[at]) * own_weight
        np.divide(R, total, out=part[:-1])
        part[-1] = (part[:-1] * M).sum(axis=0)
        return np.append(R.sum(axis=1, dtype=np.float64), np.sum(loss.value(F, y[at]) * own_weight, dtype=np.float64))

    *of_c, value = functools.reduce(operator.add, over_spans(some, len(block), threads, len(sums)))
    into = empty_rows(theta) if room is None else room  # `rows` may have lain there: they are not needed any more
    if own is not None:
        block.transposed_times(sums, threads, into)
    else:
        for row, vector in zip(into, sums, strict=True):
            row[:] = W.T @ vector
    return Sums(float(value), into, np.array(of_c, sums.dtype))


def gradient_of(sums: Sums, theta: Parameters, threads: int = 1) -> Gradient:
    """The gradient, written over the sums:

    dB_k = w * C'(R_k / D)      da = w * (sum_k (b_k * C'(R_k / D)) - C'(sum_k R_k M_k / D))      dc_k = sum R_k
    """
    own = theta.weights

    def some(at: slice) -> None:
        part = sums.rows[:, at]
        part[-1] = np.einsum("kt,kt->t", theta.B[:, at], part[:-1]) - part[-1]
        if own is not None:  # else the weights are in the sums already
            part *= own.of(at)

    over_spans(some, len(theta.a), threads, len(sums.rows))
    return Gradient(sums.loss, sums.rows[-1], sums.rows[:-1], sums.c)


def total_attention(block: Block, weight: Float, theta: Parameters, threads: int = 1) -> Float:
    """(V,) the attention of each token summed over the documents: w * C'(weight / D)."""
    own = theta.weights
    if own is not None:
        w = own.of()
        total = block.times(w[None], threads)
        total += total.dtype.type(own.sink)
        (sums,) = block.transposed_times(np.where(total > 0, weight, 0) / np.where(total > 0, total, 1), threads)
        return np.multiply(w, sums, out=sums)
    W, sinks = _weighted_rows(block.rows, theta)
    total = W @ np.ones(W.shape[1], W.dtype) + sinks
    return np.asarray(W.T @ (np.where(total > 0, weight, 0) / np.where(total > 0, total, 1)))


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
