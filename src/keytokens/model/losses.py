"""Losses of the scores: one logit for two classes, one score a class for more.

`value` and `slope` take scores F of shape (m, n), m = 1 for two classes, and class numbers y of shape (n,); or, where
the classes are not sure, their probabilities (n, K).
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .blocks import Float

Labels = NDArray[np.intp]


class Loss(Protocol):
    """A loss of one document's scores."""

    def value(self, F: Float, y: Any) -> Float:
        """The loss of each document, (n,)."""

    def slope(self, F: Float, y: Any) -> Float:
        """Its derivative in each score, (m, n)."""


class Logistic:
    """log(1 + exp(-f)) for class 1 and log(1 + exp(f)) for class 0."""

    def value(self, F: Float, y: Labels) -> Float:
        margin = np.where(y == 1, F[0], -F[0])
        return np.asarray(np.maximum(-margin, 0) + np.log1p(np.exp(-np.abs(margin))))

    def slope(self, F: Float, y: Labels) -> Float:
        margin = np.where(y == 1, F[0], -F[0])
        tail = np.exp(-np.abs(margin))
        # sigma(-m) is a quotient of tails: it does not round to 0 before e^-m does, so a gradient never dies early
        unsure = np.where(margin > 0, tail, 1) / (1 + tail)
        return np.where(y == 1, -unsure, unsure)[None]


class CrossEntropy:
    """log(sum_k exp(F_k)) - F_y."""

    def value(self, F: Float, y: Labels) -> Float:
        # log(1 + sum of the rivals' exp(F_k - F_y)): keeps its digits where the class is nearly sure
        rivals, columns = F - F[y, np.arange(F.shape[1])], np.arange(F.shape[1])
        rivals[y, columns] = -np.inf
        top = np.maximum(rivals.max(axis=0), 0)
        return top + np.log1p(np.exp(rivals - top).sum(axis=0) + np.expm1(-top))

    def slope(self, F: Float, y: Labels) -> Float:
        # P_y - 1 as minus the sum of the others: never rounds to 0 before they do
        P, columns = probabilities(F), np.arange(F.shape[1])
        P[y, columns] = 0
        P[y, columns] = -P.sum(axis=0)
        return P


class SoftCrossEntropy:
    """-sum_k q_k log P_k: `y` holds for each document the probabilities q of the classes, (n, K)."""

    def value(self, F: Float, y: Float) -> Float:
        return -np.asarray((y.T * log_probabilities(F)).sum(axis=0))

    def slope(self, F: Float, y: Float) -> Float:
        return (probabilities(F) - y.T)[-len(F) :]


def loss_for(n_classes: int) -> Loss:
    return Logistic() if n_classes == 2 else CrossEntropy()


def noisy(p: Any, noise: float, n_classes: int) -> Any:
    """A probability where a share of the labels is drawn by lot: increasing in p, so no order and no proof changes."""
    return (1 - noise) * p + noise / n_classes if noise else p


def probabilities(F: Float, noise: float = 0.0) -> Float:
    """Probability of each class from the scores, (K, n); for one row of logits, of the two classes.

    >>> probabilities(np.array([[0.0]])).tolist()
    [[0.5], [0.5]]
    """
    if len(F) == 1:
        F = np.concatenate([np.zeros_like(F), F])
    with np.errstate(over="ignore"):  # of scores as far apart as floats go: the lesser one is impossible
        E = np.exp(F - F.max(axis=0))
    return np.asarray(noisy(E / E.sum(axis=0), noise, len(F)))


def log_probabilities(F: Float, noise: float = 0.0) -> Float:
    """The logarithm of `probabilities`, to the last digits: finite where they round to 0, not 0 where they round to 1.

    >>> log_probabilities(np.array([[800.0]])).tolist()
    [[-800.0], [0.0]]
    """
    if noise:
        return np.log(probabilities(F, noise))
    if len(F) == 1:
        F = np.concatenate([np.zeros_like(F), F])
    with np.errstate(over="ignore"):
        below = F - F.max(axis=0)
        rivals = np.exp(below)
    rivals[F.argmax(axis=0), np.arange(F.shape[1])] = 0
    return below - np.log1p(rivals.sum(axis=0))
