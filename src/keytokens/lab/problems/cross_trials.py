"""Many problems of cross-attention at once: W is a long p, the products x_it z_i' are its keys, and `Trials` steps.

Under (K, Q) the same gradient goes on by the chain rule. Under a ReLU head the scores are its slopes, and the margin is
s'gamma all the same, since 1'relu(V'r) is its own slope times r.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ...model.ragged import Bags, Vector
from ..claims.instances import cross_spheres
from .cross_attention import CrossProblem
from .heads import Head
from .selection_loss import SelectionProblem
from .trials import Endings, Trials, on_span


def cross_trials(problems: Iterable[CrossProblem]) -> Trials:
    """Problems of one shape, stacked; p is W row by row."""
    return Trials.of(SelectionProblem(one.keys, one.scores, one.loss) for one in problems)


def sphere_ends(n: int, T: int, d: int, seeds: Iterable[int], steps: int = 1200, length: float = 0.2) -> Endings:
    """What becomes of normalised descent on W from 0 on random problems (`cross_spheres`), one for each seed."""
    problems = (cross_spheres(np.random.default_rng([n, T, d, seed]), n, T, d) for seed in seeds)
    trials = Trials.of(on_span(SelectionProblem(one.keys, one.scores)) for one in problems)
    return trials.judged(trials.descend(steps, length))


def descend_factors(
    trials: Trials, steps: int, eta: float, K: Vector, Q: Vector, penalty: float = 0.0
) -> tuple[Vector, Vector]:
    """K (m, d, r) and Q (m, e, r) after so many steps, each of length eta for both factors by themselves.

    `penalty`: the gradients are those of the loss plus so much (|K|^2 + |Q|^2).
    """
    m, d, _ = K.shape
    for _ in range(steps):
        unit, log_length = trials.descents((K @ Q.transpose(0, 2, 1)).reshape(m, -1))
        G = unit.reshape(m, d, -1)
        down = G @ Q, G.transpose(0, 2, 1) @ K
        if penalty:
            top = np.maximum(log_length, np.log(2 * penalty))
            of_loss, of_size = (np.exp(x - top)[:, None, None] for x in (log_length, np.log(2 * penalty)))
            down = of_loss * down[0] - of_size * K, of_loss * down[1] - of_size * Q
        K, Q = K + eta * _units(down[0]), Q + eta * _units(down[1])
    return K, Q


def _units(stack: Vector) -> Vector:
    """Each matrix over its length; zeros for zeros."""
    length = np.sqrt(np.square(stack).sum(axis=(1, 2), keepdims=True))
    return stack / np.where(length > 0, length, 1.0)


def softmax_first(a: Vector) -> Vector:
    """Attention where tokens are the first axis."""
    e = np.exp(a - a.max(axis=0))
    return e / e.sum(axis=0)


@dataclass(frozen=True)
class Relu(Head):
    """psi(r) = sum_j max(0, V_j'r), V (d, h) by columns: linear between its kinks, and its slope times r everywhere.

    >>> head = Relu(np.array([[1.0, -1.0]]))
    >>> head.value(np.array([[2.0], [-3.0]])).tolist(), head.gradient(np.array([[2.0], [-3.0]])).tolist()
    ([2.0, 3.0], [[1.0], [-1.0]])
    """

    V: Any
    name: str = "relu"

    def value(self, z: Vector) -> Vector:
        return np.maximum(z @ self.V, 0.0).sum(axis=1)

    def gradient(self, z: Vector) -> Vector:
        return (z @ self.V > 0) @ self.V.T


@dataclass(frozen=True, eq=False)
class HeadTrials(Trials):
    """Problems under ReLU heads, trial k with V[k]; `scores` are not used."""

    values: Vector  # (m, n, T, d)
    labels: Vector  # (m, n)
    V: Vector  # (m, d, h)

    @classmethod
    def stacked(cls, values: Vector, queries: Vector, labels: Vector, V: Vector, loss: Any) -> HeadTrials:
        m, n, T, _ = values.shape
        keys = (values[..., :, None] * queries[:, :, None, None, :]).reshape(m, n, T, -1)
        return cls(keys, np.zeros((m, n, T)), loss, values, labels, V)

    @cached_property
    def _units(self) -> Vector:
        """(h, T, m, n) V'x of every token. Units first: sums over the first axes are the fast ones."""
        return np.ascontiguousarray(np.matmul(self.values, self.V[:, None]).transpose(3, 2, 0, 1))

    def scores_at(self, a: Vector) -> Vector:
        """Y_i psi'(X_i's_i)'x_it: V'x_it summed over the units that are on at the pooled token."""
        on = ((self._units * softmax_first(a)).sum(axis=1, keepdims=True) > 0).astype(np.float64)
        return np.asarray(self.labels * (on * self._units).sum(axis=0), np.float64)

    def on_span(self) -> tuple[HeadTrials, Vector]:
        """The same trials in coordinates of the spans of their keys, and the orthonormal columns (m, d, k) of these.

        What a start has outside, no step changes and no logit sees.
        """
        basis, corner = np.linalg.qr(self.keys.reshape(len(self), -1, self.keys.shape[-1]).transpose(0, 2, 1))
        keys = np.ascontiguousarray(corner.transpose(0, 2, 1)).reshape(*self.keys.shape[:3], -1)
        return replace(self, keys=keys), basis

    def bags(self, which: int) -> Bags:
        return Bags.of(self.values[which])
