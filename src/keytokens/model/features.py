"""phi: what a single instance is turned into before attention looks at it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from .ragged import Bags

Array = NDArray[np.float64]

FEATURES = ("rbf", "quadratic", "linear")
WIDEST = 3.0  # the width that is chosen is 1 over the distance of neighbours, and at most this
LIMIT = (
    3.0  # of a scaled entry, in standard deviations: one rare, large entry would put an instance far from all others
)
FARTHEST = 1e70  # of a scaled entry: far beyond any training instance, and its fourth power is finite
JITTER = 1e-8  # added to the similarity of a landmark to itself: keeps the factor of nearly equal ones finite


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """phi: scale, then similarities to the landmarks ("rbf"), squares ("quadratic") or nothing more ("linear").

    Over the training instances phi has mean 0 and mean squared length 1, so that one penalty suits all data.
    """

    kind: str
    mean: Array  # (d,)
    scale: Array  # (d,)
    landmarks: Array  # (M, d) scaled; none unless "rbf"
    transform: Array  # (M, D) similarities to features; quadratic and linear: (1, 1), a factor
    centre: Array  # (D,)
    width: float
    limit: float = FARTHEST  # of a scaled entry

    @classmethod
    def learn(
        cls,
        bags: Bags,
        weight: Array,
        kind: str,
        scaled: bool = True,
        n_landmarks: int = 1,
        width: float | None = None,
        draw: Any = None,
        limit: float = LIMIT,
    ) -> tuple[FeatureMap, Array]:
        """The map and the features of the training instances; one of weight 2 is the same as two, of weight 0 none.

        The width None is chosen by how far apart neighbours are.
        """
        rows, given = bags.rows, weight > 0
        share = weight / weight.sum()
        d, limit = rows.shape[1], limit if scaled else FARTHEST
        mean, scale = _moments(rows, share) if scaled else (np.zeros(d), np.ones(d))
        none = np.zeros((0, d))
        if kind != "rbf":
            width = width or 0.0
            raw = cls(kind, mean, scale, none, np.ones((1, 1)), np.zeros(1), width, limit)
        else:
            landmarks, bag = _draw(_scale(rows[given], mean, scale, limit), bags.bag[given], n_landmarks, draw)
            width = min(1 / _apart(landmarks, bag), WIDEST) if width is None else width
            root = _inverse_root(_similarity(landmarks, landmarks, width))
            raw = cls(kind, mean, scale, landmarks, root, np.zeros(1), width, limit)
        phi = raw(rows)
        centre = share @ phi
        phi -= centre
        size = float(np.sqrt(share @ np.einsum("ij,ij->i", phi, phi))) or 1.0
        phi /= size
        done = cls(kind, mean, scale, raw.landmarks, raw.transform / size, centre / size, width, limit)
        return done, phi

    def scaled(self, rows: Array) -> Array:
        """The coordinates of instances, with mean 0 and variance 1 over those of the training, up to the limit."""
        return _scale(rows, self.mean, self.scale, self.limit)

    def __call__(self, rows: Array) -> Array:
        """(N, D) features of instances."""
        Z = self.scaled(rows)
        if self.kind == "rbf":
            return _similarity(Z, self.landmarks, self.width) @ self.transform - self.centre
        if self.kind == "quadratic":
            Z = np.concatenate([Z, Z * Z], axis=1)
        return Z * self.transform[0, 0] - self.centre


def _moments(rows: Array, share: Array) -> tuple[Array, Array]:
    """Mean and standard deviation of each feature; 1 where it does not vary."""
    largest = np.maximum(np.abs(rows).max(axis=0), 1e-300)
    unit = rows / largest
    mean = share @ unit
    spread = np.sqrt(share @ (unit - mean) ** 2)
    spread = np.where(spread > 1e-13, spread * largest, 1.0)
    return mean * largest, np.where(spread > 0, spread, 1.0)


def _scale(rows: Array, mean: Array, scale: Array, limit: float) -> Array:
    with np.errstate(over="ignore"):
        return np.clip((rows - mean) / scale, -limit, limit)


def _draw(Z: Array, bag: NDArray[np.intp], most: int, draw: Any) -> tuple[Array, NDArray[np.intp]]:
    """The landmarks: all different instances, or `most` of them drawn at random; and the first bag of each."""
    different, first = np.unique(Z, axis=0, return_index=True)
    if len(different) > most:
        some = np.sort(draw.choice(len(different), most, replace=False))
        different, first = different[some], first[some]
    return different, bag[first]


def _apart(landmarks: Array, bag: NDArray[np.intp]) -> float:
    """The median over landmarks of |z - l|^2 / d to the nearest one of another bag; 1 if there is one bag only."""
    r = _squared(landmarks, landmarks) / landmarks.shape[1]
    r[bag[:, None] == bag] = np.inf
    nearest = r.min(axis=1)
    nearest = nearest[np.isfinite(nearest)]
    return float(np.median(nearest)) or 1e-6 if len(nearest) else 1.0


def _squared(Z: Array, landmarks: Array) -> Array:
    """|z - l|^2"""
    K = Z @ (-2 * landmarks.T)  # in place from here on: this is the largest array of a fit
    K += (Z * Z).sum(axis=1)[:, None]
    K += (landmarks * landmarks).sum(axis=1)
    return np.maximum(K, 0, out=K)


def _similarity(Z: Array, landmarks: Array, width: float) -> Array:
    """exp(-width |z - l|^2 / d)."""
    K = _squared(Z, landmarks)
    K *= -width / Z.shape[1]
    return np.exp(K, out=K)


def _inverse_root(K: Array) -> Array:
    """T with T'(K + JITTER) T = I."""
    factor = linalg.cholesky(K + JITTER * np.eye(len(K)), lower=True)
    return np.ascontiguousarray(linalg.solve_triangular(factor, np.eye(len(K)), lower=True).T)
