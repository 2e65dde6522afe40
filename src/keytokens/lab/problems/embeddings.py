"""Training of embeddings, as the paper has it: E (V, d), the query p (d,) and the output directions v (m, d).

    a = E p,  B = v E'             what a prediction needs
    dE = da p' + dB' v,  dp = E' da,  dv = dB E      the chain rule: each row of dE lies in the span of p and v

The product trains a and B themselves: the same model, more accurate and faster.

What carries over from two classes to K (our own result) is the step on the embeddings, and the selection. Scores f_k =
sum_s Q_s b_sk with b = E v', v (K, d), and cross-entropy. At p = 0, E v' = 0 one step gives exactly
    E1_s = E0_s + eta sum_k alpha_sk v_k,    alpha_sk = (1/n) sum_i ([y_i = k] - 1/K) c_is / T_i
and minus the gradient in p is sum_s B_s E_s with, in document i of class y, the lead m_k(s) = b_sy - b_sk over rival k:
    B_s = (1/n) sum_i Q_s sum_k P_k (m_k(s) - sum_u Q_u m_k(u))
the formula of two classes with the lead over each rival in place of y b.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from ...base.threads import one_blas_thread
from ...model.attention import Gradient, Parameters, evaluate
from ...model.blocks import Block, Float
from ...model.losses import CrossEntropy, loss_for
from ...model.prior import PriorOptions, curvature_of, prior_of, statistics
from ...model.ragged import Bags, Index, Vector, log_softmax
from ...training.fit import Trained, TrainingSet, Watch
from ...training.lbfgs import LBFGS
from ...training.loop import run
from .logits import Vocabulary
from .losses import MarginLoss, Scaled
from .problem import Problem
from .reading import Blocks, Reading


def pull_back(gradient: Gradient, E: Float, p: Float, v: Float) -> tuple[Float, Float, Float]:
    """The gradient in E, p and v (rows), from the one in a and B."""
    dE = np.outer(gradient.a, p)
    for b, direction in zip(gradient.B, v, strict=True):
        dE += np.outer(b, direction)
    return dE, E.T @ gradient.a, gradient.B @ E


def fit_embeddings(
    data: TrainingSet,
    options: PriorOptions,
    dim: int,
    seed: np.random.RandomState,
    max_iter: int,
    tolerance: float,
    watch: Watch | None = None,
) -> tuple[Trained, tuple[Float, Float, Float]]:
    """E, p and v as the paper has them: random start, one full-batch gradient step on E, then all of them.

    E and p start as N(0, I/d). A Gaussian start looks the same from every side, so v may lie along the first axes. Its
    length and that of p set how far a step of E moves values and attention, as `width` and `penalty` do for the
    scalars; the step size is such that the first step gives the values the size `ratio` asks for. The rest minimises
    sum_i loss_i + |E - E_1|^2 / 2 + (n / 10) (|p - p_0|^2 + |v - v_0|^2) / 2: p and v are shared by all n documents,
    so what holds them back grows with n (without it they take over and the test accuracy falls).
    """
    seen, loss = data.sum(statistics, data.n_classes), loss_for(data.n_classes)
    prior = prior_of(seen, options, data.sizes)
    V, m = prior.mean.shape
    dtype = prior.mean.dtype
    df = seen.presence.sum(axis=1)
    unit = float(np.sqrt((df @ prior.width**2).mean() / max(float(df.sum()), 1e-12)))  # (T + w0) kappa
    E0 = (seed.standard_normal((V, dim)) / np.sqrt(dim)).astype(dtype)
    p0 = (seed.standard_normal(dim) / np.sqrt(dim * max(options.attention_penalty, 1e-12))).astype(dtype)
    v0 = (unit * np.eye(m, dim)).astype(dtype)
    c0 = prior.odds.astype(dtype)
    hold = dtype.type(max(1.0, 0.1 * float(seen.documents.sum())))

    def parameters(E: Float, p: Float, v: Float, c: Float) -> Parameters:
        return Parameters(E @ p, v @ E.T, c, c0, prior.log_sink)

    with one_blas_thread():
        step, _, _ = pull_back(data.sum(evaluate, loss, parameters(E0, p0, v0, c0)), E0, p0, v0)
        moved = v0 @ step.T
        size = float(np.sqrt((moved**2 @ df).mean() / max(float(df.sum()), 1e-12)))
        E1 = E0 - dtype.type(options.ratio * unit / size if size > 0 else 0.0) * step
        first = np.concatenate([E1.ravel(), p0, v0.ravel(), c0])

        def unpack(theta: Float) -> tuple[Float, Float, Float, Float]:
            E, p, v, c = np.split(theta, [V * dim, (V + 1) * dim, (V + 1 + m) * dim])
            return E.reshape(V, dim), p, v.reshape(m, dim), c

        def objective(theta: Float) -> tuple[float, Float]:
            E, p, v, c = unpack(theta)
            part = data.sum(evaluate, loss, parameters(E, p, v, c))
            away = theta - first
            pull = away.copy()
            pull[V * dim :] *= hold
            pull[len(pull) - m :] = 0  # the intercepts are free
            dE, dp, dv = pull_back(part, E, p, v)
            value = part.loss + 0.5 * float(np.dot(away, pull))
            return value, (np.concatenate([dE.ravel(), dp, dv.ravel(), part.c]) + pull).astype(dtype)

        guess = curvature_of(prior, seen)
        curvature_E = np.ones((V, dim), dtype)
        curvature_E[:, :m] = guess.values
        rest = np.full(dim * (1 + m), hold, dtype)
        curvature = np.concatenate([curvature_E.ravel(), rest, np.full(m, guess.intercept, dtype)])
        # three pairs: a vector is V d numbers long here
        outcome = run(LBFGS(objective, 1 / curvature, memory=3, tolerance=tolerance), first, max_iter, watch)
    E, p, v, c = unpack(outcome.state.theta)
    return Trained(parameters(E, p, v, c), outcome.status, outcome.steps, outcome.state.value, seen.presence), (E, p, v)


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


@dataclass(frozen=True)
class _AtOnePoint:
    """A loss known at one point only: its value and the logarithm of its slope for every document."""

    values: Vector
    log_slopes: Vector
    name: str = "cross-entropy"

    def value(self, x: Vector) -> Vector:
        return self.values

    def slope(self, x: Vector) -> Vector:
        return -np.exp(self.log_slopes)

    def log_abs_slope(self, x: Vector) -> Vector:
        return self.log_slopes

    def log_value(self, x: Vector) -> Vector:
        return np.log(self.values)

    def change(self, x: Vector, sign: Vector, log_delta: Vector) -> tuple[Vector, Vector]:
        """To first order."""
        return -sign, log_delta + self.log_slopes


@dataclass(frozen=True, eq=False)
class Leads:
    """The rule for scores of K classes: the leads m_k over the rivals, in proportion to how near each rival is.

    At a point the rivals of a document have weights P_k / (1 - P_y), so a token has the one score sum_k weight_k m_k(s)
    and the loss the slope 1 - P_y: what is left is the problem of two classes, log domain included.
    """

    leads: Vector  # (N, K)
    y: Index  # (n,)
    shapes = ()

    def read(self, bags: Bags, logits: Vector, blocks: Blocks, loss: MarginLoss) -> Reading:
        """With the cross-entropy, whatever the loss of the problem."""
        Q = np.exp(log_softmax(bags, logits))
        margins = bags.sum(Q[:, None] * self.leads)  # (n, K) f_y - f_k
        rivals = -margins
        rivals[np.arange(len(rivals)), self.y] = -np.inf
        against = np.logaddexp.reduce(rivals, axis=1)  # log of sum_k exp(f_k - f_y)
        weights = np.exp(rivals - against[:, None])
        scores = np.sum(self.leads * weights[bags.bag], axis=1)
        values = np.logaddexp(0, against)
        return Reading(bags, logits, scores, _AtOnePoint(values, against - values))

    def descent(self, reading: Reading) -> tuple[Scaled, ...]:
        return ()

    def gap(self, reading: Reading) -> Scaled:
        return reading.excess(reading.best)


def multiclass(E: Vector, data: Classes, v: Vector) -> Problem:
    """Train p on documents of K classes, E (V, d) and v (K, d) frozen."""
    logits = Vocabulary(E, data.counts)
    b = (E @ v.T)[data.counts.indices]
    return Problem(logits, Leads(rival_leads(b, data.y[logits.bags.bag]), data.y))
