"""One layer of softmax attention on counts: f = C(w b) / (C w + w0) + c with w = exp(a), and its exact gradient.

Softmax attention f(X) = softmax(p'E_X')E_X v depends on the embeddings only through two numbers a token, the attention
logit a = E p and the value b = E v; the counts C say how often each token occurs. w0 is the weight of the *sink*, a
token of value 0 that is always present (w0 = 0: none). Two classes have one row of values, more have one each.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from .counts import Block, Float
from .losses import Labels, Loss

__all__ = ["Gradient", "Parameters", "evaluate", "scores", "total_attention"]


@dataclass(frozen=True, eq=False)
class Weights:
    """w = exp(a - shift), w b and the sink's weight on the same scale; f does not depend on the shift."""

    w: Float
    wB: Float
    sink: float


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
            return Weights(self.a, self.B, 1.0 if self.has_sink else 0.0)
        top = max(float(self.a.max()), self.log_sink)
        low = min(float(self.a.min()), self.log_sink if self.has_sink else np.inf)
        if not top - low < (600.0 if self.a.dtype == np.float64 else 60.0):
            return None
        w = np.exp(self.a - self.a.dtype.type(top))
        return Weights(w, w * self.B, float(np.exp(self.log_sink - top)))


@dataclass(frozen=True, eq=False)
class Gradient:
    """The loss of some documents and its derivatives; these add up over documents."""

    loss: float
    a: Float
    B: Float
    c: Float

    def __add__(self, other: Gradient) -> Gradient:
        return Gradient(self.loss + other.loss, self.a + other.a, self.B + other.B, self.c + other.c)


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
    data = C.data * np.exp(logits - np.repeat(top, lengths)).astype(C.dtype)
    own = sparse.csr_matrix((data, C.indices, C.indptr), shape=C.shape)
    return own, np.exp(theta.log_sink - top).astype(C.dtype)


def scores(C: sparse.csr_matrix, theta: Parameters) -> Float:
    """F (m, n): the attention-weighted mean of the values plus the intercept; `empty` where nothing has a weight."""
    own = theta.weights
    if own is not None:
        numerators, total = [C @ wb for wb in own.wB], C @ own.w + own.sink
    else:
        W, sinks = _weighted_rows(C, theta)
        numerators, total = [W @ b for b in theta.B], W @ np.ones(C.shape[1], C.dtype) + sinks
    F = np.stack(numerators) / np.where(total > 0, total, 1) + theta.c[:, None]
    return np.where(total > 0, F, theta.empty[:, None])


def evaluate(block: Block, y: Labels, weight: Float, loss: Loss, theta: Parameters, threads: int = 1) -> Gradient:
    """Loss of one block, summed over its documents with their weights, and its exact gradient.

    With D = C w + w0, means M = C(w b)/D, F = M + c and R = weight * dloss/dF:
        dB_k = w * C'(R_k / D)      da = w * sum_k (b_k * C'(R_k / D)) - w * C'(sum_k R_k M_k / D)      dc_k = sum R_k
    """
    own = theta.weights
    if own is not None:
        *numerators, total = block.times([*own.wB, own.w], threads)
        total = total + total.dtype.type(own.sink)
    else:
        W, sinks = _weighted_rows(block.rows, theta)
        numerators, total = [W @ b for b in theta.B], W @ np.ones(W.shape[1], W.dtype) + sinks
    weight = np.where(total > 0, weight, 0)  # a document without a known token teaches nothing
    total = np.where(total > 0, total, 1)
    M = np.stack(numerators) / total
    F = M + theta.c[:, None]
    R = loss.slope(F, y) * weight
    per_weight = R / total
    vectors = [*per_weight, (per_weight * M).sum(axis=0)]
    if own is not None:
        sums = block.transposed_times(vectors, threads)
        sums *= own.w
    else:
        sums = np.stack([W.T @ r for r in vectors])
    B, t = sums[:-1], sums[-1]
    value = float(np.sum(loss.value(F, y) * weight, dtype=np.float64))
    return Gradient(value, np.einsum("kv,kv->v", theta.B, B) - t, B, R.sum(axis=1))


def total_attention(block: Block, weight: Float, theta: Parameters, threads: int = 1) -> Float:
    """(V,) the attention of each token summed over the documents: w * C'(weight / D)."""
    own = theta.weights
    if own is not None:
        (total,) = block.times([own.w], threads)
        total = total + total.dtype.type(own.sink)
        (sums,) = block.transposed_times([np.where(total > 0, weight, 0) / np.where(total > 0, total, 1)], threads)
        return own.w * sums
    W, sinks = _weighted_rows(block.rows, theta)
    total = W @ np.ones(W.shape[1], W.dtype) + sinks
    return np.asarray(W.T @ (np.where(total > 0, weight, 0) / np.where(total > 0, total, 1)))
