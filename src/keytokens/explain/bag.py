"""The record of one explained bag of vectors.

f(X) = sum_t Q_t (b_t + c): each instance has one log weight a_t and one value b_t, so what is proved of tokens holds
for instances, each with count 1. Equal instances are separate items. Two limits: nothing is said of the coordinates of
an instance; and where instances are vectors that an encoder made of parts of a whole, deleting one leaves its vector
out, it does not encode the rest anew.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..model.attention import holding_half, shares
from ..model.losses import probabilities
from ..proof.tokens import ProvedSet
from ..proof.votes import Votes
from .certificate import Proof, said
from .record import Explained, ItemSet, Prediction

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Instance:
    """One instance of a bag; value and contribution are None if the head is not linear."""

    index: int
    attention: float
    value: float | None  # what it says for f, intercept folded in
    contribution: float | None  # attention * value; they add up to the logit
    selected: bool  # among the fewest that hold half of the attention


class InstanceSet(ItemSet[int]):
    """The instances of a formal set, as their indices in the bag."""

    @property
    def indices(self) -> tuple[int, ...]:
        return tuple(self.items)

    def to_dict(self) -> dict[str, Any]:
        return {"indices": list(self.items), **self._facts()}


class BagCertificate(Proof):
    """What is proved of the label of one bag."""

    unit = "instances"

    @property
    def instances(self) -> int:
        return self.items


@dataclass(frozen=True, eq=False, repr=False)
class BagExplanation(Explained):
    """Why one bag got its label: exact contributions, formal sets, and the certificate."""

    log_weight: Array  # (T,)
    values: Array | None  # (T, K) class scores, intercept folded in; two classes: 0 and b + c. None: head not linear
    scores: Array  # (K,) f of the bag; two classes: 0 and f
    classes: Sequence[Any]
    chosen: int | None = None

    @functools.cached_property
    def prediction(self) -> Prediction:
        own = self.scores[1:] if len(self.classes) == 2 else self.scores
        chances = probabilities(own[:, None])[:, 0]
        return Prediction.of(self.scores, chances, self.classes, int(chances.argmax()))

    @property
    def formal(self) -> bool:
        """Whether the sets are proved: only a linear head makes the score a weighted mean."""
        return self.values is not None

    @functools.cached_property
    def attention(self) -> Array:
        """Q of each instance; they add up to 1."""
        return shares(self.log_weight)

    @functools.cached_property
    def instances(self) -> tuple[Instance, ...]:
        """Every instance, in the order of the bag."""
        Q = self.attention
        chosen = holding_half(Q).tolist()
        nothing = [None] * len(Q)
        said = nothing if self.values is None else self.values[:, self.prediction.explained].tolist()
        added = nothing if self.values is None else (Q * self.values[:, self.prediction.explained]).tolist()
        rows = zip(range(len(Q)), Q.tolist(), said, added, chosen, strict=True)
        return tuple(Instance(*row) for row in rows)

    @functools.cached_property
    def _votes(self) -> Sequence[Votes]:
        return () if self.values is None else (Votes.of(self.log_weight, self.values, self.prediction.winner),)

    def _named(self, found: ProvedSet) -> InstanceSet:
        after = self.prediction.name(found.label_after)
        unit = BagCertificate.unit
        return InstanceSet(found.indices, unit, found.size, found.lower, found.status, found.tight, after)

    @property
    def sufficient(self) -> InstanceSet:
        """The fewest instances that fix the label: whatever others are deleted, it stays."""
        return self._named(self._sets.kept)

    @property
    def flip(self) -> InstanceSet:
        """The fewest instances whose deletion changes the label; empty, with status "none", if there are none."""
        return self._named(self._sets.gone)

    @functools.cached_property
    def certificate(self) -> BagCertificate:
        """What is proved of this prediction."""
        silent = "" if self.formal else said("not linear", {})
        return BagCertificate(self.prediction, self._votes, *self._sets, len(self.log_weight), False, silent)

    def _lead(self, rival: int) -> tuple[Array, float]:
        if self.values is None:  # the head is not linear
            return np.zeros(0), 0.0
        return self.attention * (self.values[:, self.prediction.winner] - self.values[:, rival]), 0.0

    def _rows(self) -> list[dict[str, Any]]:
        differences = self.contributions_against().tolist() or [None] * len(self.instances)
        return [{**vars(one), "difference": x} for one, x in zip(self.instances, differences, strict=True)]

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain data for JSON."""
        return {
            "schema": 1,
            **self._verdict(),
            "formal": self.formal,
            "instances": self._rows(),
            "sufficient": self.sufficient.to_dict(),
            "flip": self.flip.to_dict(),
            "certificate": self.certificate.to_dict(),
        }
