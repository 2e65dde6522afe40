"""Sets of a few items whose score is any function of what is left: every deletion is looked at.

2^T rows for T items, row S for the items whose bits are set in S; row 0, where nothing is left, has no score. With the
margins of all rows the answers are exact for any number of classes, and for scores that are no weighted means.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .tokens import ProvedSet
from .votes import ROUNDING, BoolArray, FloatArray, IntArray

MOST = 13  # items: 8,192 rows


def means(log_weight: FloatArray, values: FloatArray) -> FloatArray:
    """(2^T, K) the weighted mean of values (T, K) over each subset, item by item: no weight underflows; 0 for row 0."""
    log_total, mean = np.full(1, -np.inf), np.zeros((1, values.shape[1]))
    for own, value in zip(log_weight, values, strict=True):
        total = np.logaddexp(log_total, own)
        mean = np.concatenate([mean, mean + np.exp(own - total)[:, None] * (value - mean)])
        log_total = np.concatenate([log_total, total])
    return mean


def maxima(x: FloatArray, weights: FloatArray, block: int = 256) -> FloatArray:
    """(2^T, K) the largest entry of each column of x (T, d) over each subset, times weights (K, d); 0 for row 0."""
    total = np.zeros((1 << len(x), len(weights)))
    for start in range(0, x.shape[1], block):
        found = np.full((1, min(block, x.shape[1] - start)), -np.inf)
        for row in x[:, start : start + block]:
            found = np.concatenate([found, np.maximum(found, row)])
        found[0] = 0
        total += found @ weights[:, start : start + block].T
    return total


@dataclass(frozen=True, eq=False)
class Subsets:
    """The margins of a label over its rivals on every subset of T items."""

    margins: FloatArray  # (2^T, R); row 0 is not read
    first: BoolArray  # (R,) rivals that win ties, as they come before the label
    rivals: IntArray  # (R,) their indices

    @classmethod
    def of(cls, scores: FloatArray, label: int) -> Subsets:
        """From the scores (2^T, K) of all subsets.

        >>> found = Subsets.of(np.array([[0, 0.0], [0, 2], [0, -1], [0, 1]]), 1)
        >>> found.kept.indices, found.gone.indices
        ((0,), (0,))
        """
        rivals = np.delete(np.arange(scores.shape[1]), label)
        return cls(scores[:, [label]] - scores[:, rivals], rivals < label, rivals)

    @cached_property
    def sizes(self) -> IntArray:
        """(2^T,)"""
        return np.array([row.bit_count() for row in range(len(self.margins))])

    @cached_property
    def _stays(self) -> BoolArray:
        """(2^T,) whether the label stays what it is; so it does where nothing is left, which nobody can ask for."""
        won: BoolArray = np.all(np.where(self.first, self.margins > 0, self.margins >= 0), axis=1)
        won[0] = True
        return won

    @cached_property
    def _tight(self) -> bool:
        size = np.abs(self.margins[1:]).max(initial=0.0)
        return bool((np.abs(self.margins[1:]) <= ROUNDING * size).any())

    def holding(self, items: tuple[int, ...]) -> IntArray:
        """The subsets that hold these items, and any others."""
        wanted = sum(1 << item for item in set(items))
        rows = np.arange(1, len(self.margins))
        return rows[rows & wanted == wanted]

    @cached_property
    def kept(self) -> ProvedSet:
        """The fewest items that fix the label: it stays on every subset that holds them."""
        fixed = self._stays.copy()
        rows = np.arange(len(fixed))
        for bit in range(len(fixed).bit_length() - 1):  # whether it stays on every subset with more of the first items
            fixed &= fixed[rows | 1 << bit]
        fixed[0] = False
        able = np.flatnonzero(fixed)
        if not len(able):  # rounding made the label
            return ProvedSet(self._items(len(fixed) - 1), int(self.sizes[-1]), "minimum", True)
        fewest = able[self.sizes[able] == self.sizes[able].min()]
        best = int(fewest[self.margins[fewest].min(axis=1).argmax()])
        return ProvedSet(self._items(best), int(self.sizes[best]), "minimum", self._tight)

    @cached_property
    def gone(self) -> ProvedSet:
        """The fewest items whose deletion changes the label, or none."""
        lost = np.flatnonzero(~self._stays)
        if not len(lost):
            return ProvedSet((), 0, "none", self._tight)
        most = lost[self.sizes[lost] == self.sizes[lost].max()]
        rest = int(most[self.margins[most].min(axis=1).argmin()])
        away = self._items(len(self.margins) - 1 - rest)
        low = self.margins[rest]
        after = int(self.rivals[np.flatnonzero(low == low.min())[0]])
        return ProvedSet(away, len(away), "minimum", self._tight, after)

    def chances(self, rows: IntArray) -> tuple[float, float]:
        """Least and greatest probability of the label on some subsets."""
        odds = np.logaddexp.reduce(-self.margins[rows], axis=1)
        return float(np.exp(-np.logaddexp(0, odds.max()))), float(np.exp(-np.logaddexp(0, odds.min())))

    def _items(self, row: int) -> tuple[int, ...]:
        return tuple(item for item in range(len(self.margins).bit_length() - 1) if row >> item & 1)
