"""The record of one explained bag of vectors.

f(X) = sum_t Q_t (b_t + c): each instance has one log weight a_t and one value b_t, so what is proved of tokens holds
for instances, each with count 1. Where mean and maximum of the coordinates stand beside the attention, contributions
are exact too; sets and ranges are then found by looking at every deletion, in bags of few instances. Equal instances
are separate items. Two limits: nothing is said of the coordinates of an instance; and where instances are vectors that
an encoder made of parts of a whole, deleting one leaves its vector out, it does not encode the rest anew.
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
from ..model.pooling import Beside
from ..proof import subsets
from ..proof.tokens import NOTHING, ProvedSet
from ..proof.votes import Votes
from .certificate import DELETIONS, Proof, said
from .record import Explained, ItemSet, Prediction, Proved

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Instance:
    """One instance of a bag; value and contribution are None if the head is not linear."""

    index: int
    attention: float
    value: float | None  # what it says for f, intercept folded in
    contribution: float | None  # attention * value, and what it adds to mean and maxima; they add up to the logit
    selected: bool  # among the fewest that hold half of the attention


class InstanceSet(ItemSet[int]):
    """The instances of a formal set, as their indices in the bag."""

    @property
    def indices(self) -> tuple[int, ...]:
        return tuple(self.items)

    def to_dict(self) -> dict[str, Any]:
        return {"indices": list(self.items), **self._facts()}


@dataclass(frozen=True, eq=False)
class InBag:
    """What stands beside the attention, in one bag."""

    weights: Beside
    Z: Array  # (T, d) scaled

    @functools.cached_property
    def parts(self) -> Array:
        """(T, m) what each instance adds to each score."""
        return self.weights.parts(self.Z)

    def scores(self) -> Array:
        """(2^T, m) of every subset of the instances."""
        even = np.zeros(len(self.Z))
        return subsets.means(even, self.Z @ self.weights.A.T) + subsets.maxima(self.Z, self.weights.M)


@dataclass(frozen=True, eq=False, repr=False)
class BagCertificate(Proof):
    """What is proved of the label of one bag."""

    unit = "instances"
    subsets: subsets.Subsets | None = None  # where every deletion was looked at
    leads: Array | None = None  # (T, R) then: what each instance adds to the margin over each rival

    @property
    def exact(self) -> bool:
        """Whether the ranges are exact, or bounds that contain the truth."""
        return self.subsets is not None or super().exact

    @functools.cached_property
    def _added(self) -> Array:
        return super()._added if self.leads is None else np.vstack([self.leads, 0 * self.leads[:1]])

    def _by_rival(self, added: Array) -> dict[Any, float]:
        if self.leads is None:
            return super()._by_rival(added)
        rivals = np.delete(np.arange(len(self.prediction.classes)), self.prediction.winner).tolist()
        return dict(zip(map(self.prediction.name, rivals), added.sum(axis=0).tolist(), strict=True))

    @functools.cached_property
    def keeping(self) -> tuple[float, float] | None:
        """Least and greatest probability of the label, whatever is deleted outside the sufficient set."""
        if self.subsets is None:
            return super().keeping
        return self.subsets.chances(self.subsets.holding(self.kept.indices))

    @functools.cached_property
    def _least(self) -> Array | None:
        if self.subsets is None:
            return super()._least
        return np.asarray(self.subsets.margins[self.subsets.holding(self.kept.indices)].min(axis=0))

    @functools.cached_property
    def deleting(self) -> dict[int, tuple[float, float]]:
        """The same when at most m instances are deleted, whichever they are."""
        if self.subsets is None:
            return super().deleting
        sizes = self.subsets.sizes
        return {m: self.subsets.chances(np.flatnonzero(sizes >= max(self.items - m, 1))) for m in DELETIONS}

    @functools.cached_property
    def probability_after_flip(self) -> float | None:
        """Of the label, once the flip set is deleted."""
        if self.subsets is None or not self.gone.size:
            return super().probability_after_flip
        rest = [item for item in range(self.items) if item not in self.gone.indices]
        return self.subsets.chances(self.subsets.holding(tuple(rest))[:1])[0]

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
    beside: InBag | None = None  # mean and maximum of the coordinates, where they have a part in the score

    @functools.cached_property
    def prediction(self) -> Prediction:
        own = self.scores[1:] if len(self.classes) == 2 else self.scores
        chances = probabilities(own[:, None])[:, 0]
        return Prediction.of(self.scores, chances, self.classes, int(chances.argmax()))

    @property
    def formal(self) -> bool:
        """Whether the sets are proved: the score is a weighted mean of values, or every deletion was looked at."""
        return self.values is not None and (self.beside is None or len(self.log_weight) <= subsets.MOST)

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
        added = nothing if self.values is None else self._contributions[:, self.prediction.explained].tolist()
        rows = zip(range(len(Q)), Q.tolist(), said, added, chosen, strict=True)
        return tuple(Instance(*row) for row in rows)

    @functools.cached_property
    def _contributions(self) -> Array:
        """(T, K) to each score; none if the head is not linear."""
        if self.values is None:
            return np.zeros((0, len(self.classes)))
        own = self.attention[:, None] * self.values
        return own if self.beside is None else own + self._of_classes(self.beside.parts)

    def _of_classes(self, x: Array) -> Array:
        """The first of two classes has the score 0."""
        return np.column_stack([np.zeros(len(x)), x]) if len(self.classes) == 2 else x

    @functools.cached_property
    def _subsets(self) -> subsets.Subsets | None:
        """The margins on every subset, where they are needed and few."""
        if self.values is None or self.beside is None or not self.formal:
            return None
        scores = subsets.means(self.log_weight, self.values) + self._of_classes(self.beside.scores())
        return subsets.Subsets.of(scores, self.prediction.winner)

    @functools.cached_property
    def _sets(self) -> Proved:
        if self.beside is None:
            return super()._sets
        return Proved(NOTHING, NOTHING) if self._subsets is None else Proved(self._subsets.kept, self._subsets.gone)

    @functools.cached_property
    def _votes(self) -> Sequence[Votes]:
        return (
            ()
            if self.values is None or self.beside is not None
            else (Votes.of(self.log_weight, self.values, self.prediction.winner),)
        )

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
        silent = "" if self.formal else said("not linear" if self.values is None else "many", {"most": subsets.MOST})
        leads = None
        if self.beside is not None and self.values is not None:
            added, winner = self._contributions, self.prediction.winner
            leads = added[:, [winner]] - np.delete(added, winner, axis=1)
        items = len(self.log_weight)
        return BagCertificate(self.prediction, self._votes, *self._sets, items, False, silent, self._subsets, leads)

    def _lead(self, rival: int) -> tuple[Array, float]:
        return self._contributions[:, self.prediction.winner] - self._contributions[:, rival], 0.0

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
