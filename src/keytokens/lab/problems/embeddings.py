"""Embeddings E (V, d), the query p (d,) and the output directions v (m, d): their gradients, and several classes.

    a = E p,  B = v E'             what a prediction needs
    dE = da p' + dB' v,  dp = E' da,  dv = dB E      the chain rule: each row of dE lies in the span of p and v

The product trains a and B themselves: the same model, more accurate and faster.
`lab.EmbeddingAttention` trains E and p.

What carries over from two classes to K (our own result) is the step on the embeddings, and the selection. Scores f_k =
sum_s Q_s b_sk with b = E v', v (K, d), and cross-entropy. At p = 0, E v' = 0 one step gives exactly
    E1_s = E0_s + eta sum_k alpha_sk v_k,    alpha_sk = (1/n) sum_i ([y_i = k] - 1/K) c_is / T_i
and minus the gradient in p is sum_s B_s E_s with, in document i of class y, the lead m_k(s) = b_sy - b_sk over rival k:
    B_s = (1/n) sum_i Q_s sum_k P_k (m_k(s) - sum_u Q_u m_k(u))
the formula of two classes with the lead over each rival in place of y b.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.special import softmax, xlogy

from ...model.attention import Gradient, Parameters, evaluate
from ...model.blocks import Block, Float
from ...model.losses import CrossEntropy
from ...model.ragged import Bags, Index, Vector, log_softmax
from .logits import Vocabulary
from .losses import Logistic, MarginLoss
from .problem import Problem
from .reading import Blocks, Reading
from .scores import Scores


def pull_back(gradient: Gradient, E: Float, p: Float, v: Float) -> tuple[Float, Float, Float]:
    """The gradient in E, p and v (rows), from the one in a and B."""
    dE = np.outer(gradient.a, p)
    for b, direction in zip(gradient.B, v, strict=True):
        dE += np.outer(b, direction)
    return dE, E.T @ gradient.a, gradient.B @ E


# Several classes ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Classes:
    """Documents as counts, with class numbers 0 .. K - 1; `important` (n,) where one token decides each document."""

    counts: sparse.csr_matrix
    y: Index
    K: int
    important: Index

    @cached_property
    def shares(self) -> Vector:
        """(n, V) c_is / T_i."""
        dense = self.counts.toarray()
        return np.asarray(dense / dense.sum(axis=1, keepdims=True))


def planted_classes(rng: np.random.Generator, n: int, T: int, own: Sequence[int], irrelevants: int) -> Classes:
    """n documents of each class: one of its own[k] tokens, in turn, and T - 1 irrelevant ones.

    The j-th documents of all classes hold the same irrelevant tokens, which are therefore independent of the class.
    """
    K, first = len(own), np.cumsum([0, *own])
    turn = np.concatenate([first[k] + np.arange(n) % own[k] for k in range(K)])
    others = first[K] + np.tile(rng.integers(0, irrelevants, (n, T - 1)), (K, 1))
    tokens = np.column_stack([turn, others])
    rows = np.repeat(np.arange(K * n), T)
    shape = (K * n, int(first[K]) + irrelevants)
    counts = sparse.csr_matrix((np.ones(tokens.size), (rows, tokens.ravel())), shape=shape)
    counts.sum_duplicates()
    return Classes(counts, np.repeat(np.arange(K), n), K, turn)


def class_frequencies(data: Classes) -> Vector:
    """(V, K) alpha_sk: how much more often a token occurs under class k than its share 1/K."""
    return np.asarray(data.shares.T @ (np.eye(data.K)[data.y] - 1 / data.K) / len(data.y))


def multiclass_gradient(data: Classes, E: Vector, p: Vector, v: Vector) -> tuple[Vector, Gradient]:
    """dL/dE, from the gradient in a = E p and B = v E'; that gradient too."""
    zero = np.zeros(data.K)
    weight = np.full(len(data.y), 1 / len(data.y))
    gradient = evaluate(Block.of(data.counts), data.y, weight, CrossEntropy(), Parameters(E @ p, v @ E.T, zero, zero))
    return np.asarray(pull_back(gradient, E, p, v)[0], np.float64), gradient


def rival_leads(b: Vector, y: Index) -> Vector:
    """(N, K) b_sy - b_sk for rows of values b (N, K) and a class for each row; 0 at k = y."""
    return np.asarray(b[np.arange(len(y)), y][:, None] - b)


@dataclass(frozen=True, eq=False)
class _Shifted(Logistic):
    """The logistic loss of a margin that lacks a number of each document."""

    by: Vector = field(default_factory=lambda: np.zeros(1))

    def value(self, x: Vector) -> Vector:
        return super().value(x + self.by)

    def log_abs_slope(self, x: Vector) -> Vector:
        return super().log_abs_slope(x + self.by)

    def log_value(self, x: Vector) -> Vector:
        return super().log_value(x + self.by)

    def change(self, x: Vector, sign: Vector, log_delta: Vector) -> tuple[Vector, Vector]:
        return super().change(x + self.by, sign, log_delta)


@dataclass(frozen=True, eq=False)
class Leads(Scores):
    """The rule for scores of K classes: the leads m_k over the rivals, in proportion to how near each rival is.

    At a point the rivals of a document have weights w_k = P_k / (1 - P_y), and a token the one score sum_k w_k m_k(s).
    Their mean plus sum_k w_k log w_k is the margin log P_y / (1 - P_y), whose logistic loss is -log P_y: the problem of
    two classes, log domain included. That sum stays out of the scores: small leads would lose their digits beside it.
    """

    leads: Vector  # (N, K)
    y: Index  # (n,)

    def read(self, bags: Bags, logits: Vector, blocks: Blocks, loss: MarginLoss) -> Reading:
        """With the cross-entropy, whatever the loss of the problem."""
        Q = np.exp(log_softmax(bags, logits))
        rivals = -bags.sum(Q[:, None] * self.leads)  # (n, K) f_k - f_y
        rivals[np.arange(len(rivals)), self.y] = -np.inf
        weights = softmax(rivals, axis=1)
        scores = np.sum(self.leads * weights[bags.bag], axis=1)
        return Reading(bags, logits, scores, _Shifted(by=xlogy(weights, weights).sum(axis=1)))


def multiclass(E: Vector, data: Classes, v: Vector) -> Problem:
    """Train p on documents of K classes, E (V, d) and v (K, d) frozen."""
    logits = Vocabulary(E, data.counts)
    b = (E @ v.T)[data.counts.indices]
    return Problem(logits, Leads(rival_leads(b, data.y[logits.bags.bag]), data.y))
