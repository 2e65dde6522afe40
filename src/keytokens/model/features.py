"""phi: what a single instance is turned into before attention looks at it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

Array = NDArray[np.float64]

FEATURES = ("rbf", "quadratic", "linear")
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

    @classmethod
    def learn(
        cls, rows: Array, weight: Array, kind: str, scaled: bool, n_landmarks: int, width: float, draw: Any
    ) -> tuple[FeatureMap, Array]:
        """The map and the features of the training instances; one of weight 2 is the same as two, of weight 0 none."""
        share = weight / weight.sum()
        d = rows.shape[1]
        mean, scale = _moments(rows, share) if scaled else (np.zeros(d), np.ones(d))
        none = np.zeros((0, d))
        if kind != "rbf":
            raw = cls(kind, mean, scale, none, np.ones((1, 1)), np.zeros(1), width)
        else:
            landmarks = _draw(_scale(rows[weight > 0], mean, scale), n_landmarks, draw)
            root = _inverse_root(_similarity(landmarks, landmarks, width))
            raw = cls(kind, mean, scale, landmarks, root, np.zeros(1), width)
        phi = raw(rows)
        centre = share @ phi
        phi -= centre
        size = float(np.sqrt(share @ np.einsum("ij,ij->i", phi, phi))) or 1.0
        phi /= size
        done = cls(kind, mean, scale, raw.landmarks, raw.transform / size, centre / size, width)
        return done, phi

    def __call__(self, rows: Array) -> Array:
        """(N, D) features of instances."""
        Z = _scale(rows, self.mean, self.scale)
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


def _scale(rows: Array, mean: Array, scale: Array) -> Array:
    with np.errstate(over="ignore"):
        return np.clip((rows - mean) / scale, -FARTHEST, FARTHEST)


def _draw(Z: Array, most: int, draw: Any) -> Array:
    """The landmarks: all different instances, or `most` of them drawn at random."""
    different = np.unique(Z, axis=0)
    if len(different) <= most:
        return different
    return different[np.sort(draw.choice(len(different), most, replace=False))]


def _similarity(Z: Array, landmarks: Array, width: float) -> Array:
    """exp(-width |z - l|^2 / d)."""
    K = Z @ (-2 * landmarks.T)  # in place from here on: this is the largest array of a fit
    K += (Z * Z).sum(axis=1)[:, None]
    K += (landmarks * landmarks).sum(axis=1)
    np.maximum(K, 0, out=K)
    K *= -width / Z.shape[1]
    return np.exp(K, out=K)


def _inverse_root(K: Array) -> Array:
    """T with T'(K + JITTER) T = I."""
    factor = linalg.cholesky(K + JITTER * np.eye(len(K)), lower=True)
    return np.ascontiguousarray(linalg.solve_triangular(factor, np.eye(len(K)), lower=True).T)
