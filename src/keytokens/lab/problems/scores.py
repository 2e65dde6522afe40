"""Rules for scores: which are given, which move with the point, and how far the loss is above its infimum.

`sets.Sets` is a head for which the tokens are known on which attention is to end, and with them the infimum;
`embeddings.Leads` are the leads over the rivals of several classes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...base.checks import array_of, floats
from ...base.errors import refusal
from ...model.ragged import Bags, Vector, log_softmax
from .heads import Head
from .losses import MarginLoss, Scaled
from .reading import Blocks, Reading


class Scores(ABC):
    """What a token is worth; most rules train nothing, and the loss is lowest with all attention on the best tokens."""

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Of the blocks that are trained beside those of the attention."""
        return ()

    @abstractmethod
    def read(self, bags: Bags, logits: Vector, blocks: Blocks, loss: MarginLoss) -> Reading:
        """The point with these logits; given all blocks, of which those of the scores are the first."""

    def descent(self, reading: Reading) -> tuple[Scaled, ...]:
        """Minus the gradient in those blocks."""
        return ()

    def gap(self, reading: Reading) -> Scaled:
        """L - L*, L* the infimum over all attentions (and over v where v is trained and the data can be fitted)."""
        return reading.excess(reading.best)


@dataclass(frozen=True, eq=False)
class Fixed(Scores):
    """Given numbers; nothing but the attention is trained."""

    scores: Vector  # (N,)

    def read(self, bags: Bags, logits: Vector, blocks: Blocks, loss: MarginLoss) -> Reading:
        return Reading(bags, logits, self.scores, loss)


@dataclass(frozen=True, eq=False)
class Trained(Scores):
    """gamma_it = Y_i v'x_it, and v is trained too: its block comes first."""

    labels: Vector  # (n,)
    values: Bags

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        return ((self.values.dim,),)

    def read(self, bags: Bags, logits: Vector, blocks: Blocks, loss: MarginLoss) -> Reading:
        return Reading(bags, logits, signed_scores(self.labels, self.values, blocks[0]), loss)

    def descent(self, reading: Reading) -> tuple[Scaled, ...]:
        return (reading.head_descent(self.labels, self.values),)

    def gap(self, reading: Reading) -> Scaled:
        return reading.mean_loss


@dataclass(frozen=True, eq=False)
class Under(Scores):
    """A head made linear at the pooled values z_i = X_i's_i: gamma_it = Y_i (psi(z_i) + psi'(z_i)'(x_it - z_i)).

    Nothing is assumed of where attention ends.
    """

    labels: Vector
    values: Bags
    head: Head

    def read(self, bags: Bags, logits: Vector, blocks: Blocks, loss: MarginLoss) -> Reading:
        pooled = bags.sum(np.exp(log_softmax(bags, logits))[:, None] * self.values.rows)
        slopes = self.labels[:, None] * self.head.gradient(pooled)
        # so that s_i'gamma_i is the output also where the head bends
        above = self.labels * self.head.value(pooled) - np.einsum("ij,ij->i", slopes, pooled)
        scores = np.einsum("tj,tj->t", bags.spread(slopes), self.values.rows) + bags.spread(above)
        return Reading(bags, logits, scores, loss)

    def gap(self, reading: Reading) -> Scaled:
        rule, advice = "know the loss in the limit for a step that is measured by it", "use Problem.with_sets"
        raise refusal("Problem.under", "head", rule, self.head.name, advice)


def scores_of(labels: Any, values: Any, v: Any, owner: str = "scores_of") -> Vector:
    """(N,) gamma_it = Y_i v'x_it; values in any form that `Bags.of` reads.

    >>> scores_of([-1], [[[1.0, 2.0], [0.0, 3.0]]], [0.0, 1.0]).tolist()
    [-2.0, -3.0]
    """
    bags = Bags.of(values, owner, "values")
    return signed_scores(labels_of(owner, labels, len(bags)), bags, array_of(owner, "v", v, (bags.dim,)))


def signed_scores(labels: Vector, values: Bags, v: Vector) -> Vector:
    """`scores_of` what has been checked."""
    return values.spread(labels) * (values.rows @ v)


def read_scores(owner: str, scores: Any, bags: Bags) -> Vector:
    """(N,) one finite number a token, in any form that `Bags.per_token` reads."""
    return bags.per_token(scores, owner, advice="make them with scores_of(labels, values, v)")


def labels_of(owner: str, labels: Any, size: int) -> Vector:
    """(n,) checked: -1 or +1."""
    y = floats(labels)
    if y is None or y.shape != (size,) or not (np.abs(y) == 1).all():
        raise refusal(owner, "labels", f"be -1 or +1 for each of the {size} bags", labels)
    return y
