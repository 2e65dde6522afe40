"""One bag: attention over its instances, pooling, the head; the gradient of all three.

s = softmax(phi q)    H = sum_t s_t (V phi_t) + e    scores = H (head "linear") or U tanh(H) + c (head "tanh")
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .losses import Loss
from .ragged import Bags, softmax

Array = NDArray[np.float64]

HEADS = ("linear", "tanh")


class Shape(NamedTuple):
    """Sizes of the parameters: D features, h pooled numbers, m scores of a head on top of them (0: no head)."""

    D: int
    h: int
    m: int

    @classmethod
    def of(cls, D: int, n_classes: int, head: str, hidden: int) -> Shape:
        """Two classes need one score, more need one each."""
        scores = 1 if n_classes == 2 else n_classes
        return cls(D, scores, 0) if head == "linear" else cls(D, hidden, scores)


@dataclass(frozen=True, eq=False)
class Weights:
    """q (D,), V (h, D) and e (h,): h pooled numbers; head "tanh": U (m, h) and c (m,) on top of them, else none."""

    q: Array
    V: Array
    e: Array
    U: Array
    c: Array

    @classmethod
    def unpack(cls, theta: Array, D: int, h: int, m: int) -> Weights:
        """The other way round from `pack`; m = 0 for the linear head."""
        q, V, e, U, c = np.split(theta, np.cumsum([D, h * D, h, m * h]))
        return cls(q, V.reshape(h, D), e, U.reshape(m, h), c)

    def pack(self) -> Array:
        return np.concatenate([part.ravel() for part in (self.q, self.V, self.e, self.U, self.c)])

    @property
    def linear(self) -> bool:
        return not len(self.U)

    def scaled(self, factor: float, added: Array) -> Weights:
        """So that the scores are `factor` times what they were, and `added` (m,) more."""
        if self.linear:
            return Weights(self.q, factor * self.V, factor * self.e + added, self.U, self.c)
        return Weights(self.q, self.V, self.e, factor * self.U, factor * self.c + added)


@dataclass(frozen=True, eq=False)
class Beside:
    """What mean and maximum of each scaled feature z (d,) over a bag add to the scores; no columns: nothing.

    mean(z)'A + max(z)'M. An instance adds z'A / T, and M_j z_j for each feature j that is largest in it, the first one.
    """

    A: Array  # (m, d)
    M: Array  # (m, d)

    def __bool__(self) -> bool:
        return bool(self.A.shape[1])

    @staticmethod
    def pool(bags: Bags) -> Array:
        """(n, 2d) mean and maximum of the features of each bag."""
        starts = bags.starts[:-1]
        return np.hstack([bags.sum(bags.rows) / bags.sizes[:, None], np.maximum.reduceat(bags.rows, starts, axis=0)])

    def scores(self, bags: Bags) -> Array:
        """(m, n)"""
        return np.hstack([self.A, self.M]) @ self.pool(bags).T

    def parts(self, Z: Array) -> Array:
        """(T, m) what each instance of one bag adds."""
        parts = Z @ self.A.T / len(Z)
        np.add.at(parts, Z.argmax(axis=0), (self.M * Z.max(axis=0)).T)
        return parts


class Pooled(NamedTuple):
    """What a forward pass leaves behind."""

    logits: Array  # (N,) of each instance
    attention: Array  # (N,)
    values: Array  # (N, h) of each instance, without intercept
    hidden: Array  # (n, h) pooled, with it
    scores: Array  # (m, n)


def forward(bags: Bags, w: Weights) -> Pooled:
    """The scores of bags of features.

    >>> w = Weights(np.zeros(1), np.ones((1, 1)), np.array([0.5]), np.zeros((0, 1)), np.zeros(0))
    >>> forward(Bags.of([[[1.0], [2.0]]]), w).scores.tolist()
    [[2.0]]
    """
    both = bags.rows @ np.vstack([w.q, w.V]).T
    logits, B = both[:, 0], both[:, 1:]
    s = softmax(bags, logits)
    H = bags.sum(s[:, None] * B) + w.e
    return Pooled(logits, s, B, H, H.T if w.linear else w.U @ np.tanh(H).T + w.c[:, None])


def backward(bags: Bags, w: Weights, done: Pooled, slope: Array) -> Weights:
    """The gradient of a sum of losses with derivatives `slope` (m, n) in the scores."""
    if w.linear:
        dH, dU, dc = slope.T, np.zeros_like(w.U), np.zeros_like(w.c)
    else:
        T = np.tanh(done.hidden)
        dH, dU, dc = (slope.T @ w.U) * (1 - T * T), slope @ T, slope.sum(axis=1)
    at = bags.spread(dH)
    away = done.values - bags.spread(done.hidden - w.e)
    pull = np.column_stack([(at * away).sum(axis=1), at]) * done.attention[:, None]
    both = pull.T @ bags.rows
    return Weights(both[0], both[1:], dH.sum(axis=0), dU, dc)


def objective_of(
    bags: Bags, y: NDArray[np.intp], weight: Array, loss: Loss, shape: tuple[int, int, int], penalties: Weights
) -> Callable[[Array], tuple[float, Array]]:
    """theta -> value and gradient of: sum of the losses + half of penalty times square, over all parameters."""
    ridge = penalties.pack()

    def objective(theta: Array) -> tuple[float, Array]:
        w = Weights.unpack(theta, *shape)
        done = forward(bags, w)
        value = float(weight @ loss.value(done.scores, y)) + 0.5 * float(theta @ (ridge * theta))
        slope = weight * loss.slope(done.scores, y)
        return value, backward(bags, w, done, slope).pack() + ridge * theta

    return objective
