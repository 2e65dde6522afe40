"""Rows of a linear system that need not all exist at once.

`Dense` holds a matrix; `Differences` holds points and pairs (s, s'), and its rows are points[s] - points[s'].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Dense", "Differences", "Rows"]

Vector = NDArray[np.float64]
Index = NDArray[np.intp]


class Rows(Protocol):
    """A matrix A (m, d), known by its products and by some of its rows."""

    @property
    def dim(self) -> int: ...

    def __len__(self) -> int: ...

    def times(self, p: Vector) -> Vector:
        """(m,) A p."""

    def transposed_times(self, lam: Vector) -> Vector:
        """(d,) A'lam."""

    def rows(self, index: Index) -> Vector:
        """(len(index), d) these rows, as a matrix of their own."""

    def largest(self) -> float:
        """A bound of |entries| that is exact up to a small factor."""


@dataclass(frozen=True, eq=False)
class Dense:
    """Rows that are there."""

    matrix: Vector

    @property
    def dim(self) -> int:
        return int(self.matrix.shape[1])

    def __len__(self) -> int:
        return len(self.matrix)

    def times(self, p: Vector) -> Vector:
        return self.matrix @ p

    def transposed_times(self, lam: Vector) -> Vector:
        active = np.flatnonzero(lam)  # multipliers are mostly zero: one pass over the matrix less
        return lam[active] @ self.matrix[active] if 4 * len(active) < len(lam) else lam @ self.matrix

    def rows(self, index: Index) -> Vector:
        return self.matrix[index]

    def largest(self) -> float:
        return max(float(self.matrix.max()), -float(self.matrix.min())) if self.matrix.size else 0.0


@dataclass(frozen=True, eq=False)
class Differences:
    """Row j is points[high[j]] - points[low[j]]; no row is formed before it is asked for."""

    points: Vector
    high: Index
    low: Index

    @property
    def dim(self) -> int:
        return int(self.points.shape[1])

    def __len__(self) -> int:
        return len(self.high)

    def times(self, p: Vector) -> Vector:
        a = self.points @ p
        return a[self.high] - a[self.low]

    def transposed_times(self, lam: Vector) -> Vector:
        size = len(self.points)
        return (np.bincount(self.high, lam, size) - np.bincount(self.low, lam, size)) @ self.points

    def rows(self, index: Index) -> Vector:
        return self.points[self.high[index]] - self.points[self.low[index]]

    def largest(self) -> float:
        # a bound: the range of each coordinate
        return float(np.ptp(self.points, axis=0).max()) if len(self) else 0.0
