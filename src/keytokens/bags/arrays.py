"""A fitted model as named arrays, and back."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .features import FeatureMap
from .pooling import Weights

__all__ = ["model_arrays", "model_of"]

Array = NDArray[np.float64]

_MAP, _WEIGHTS = ("mean", "scale", "landmarks", "transform", "centre"), ("q", "V", "e", "U", "c")


def model_arrays(phi: FeatureMap, w: Weights) -> dict[str, Array]:
    """Everything that a prediction needs."""
    arrays = {name: getattr(phi, name) for name in _MAP} | {name: getattr(w, name) for name in _WEIGHTS}
    return arrays | {"width": np.array([phi.width], np.float64)}


def model_of(arrays: dict[str, Array], n_classes: int) -> tuple[FeatureMap, Weights]:
    """The way back; a ValueError for arrays that do not fit together."""
    shapes = _shapes(arrays, n_classes)
    if set(arrays) != set(shapes):
        raise ValueError("arrays are missing")
    for name, shape in shapes.items():
        if arrays[name].shape != shape or arrays[name].dtype != np.float64 or not np.isfinite(arrays[name]).all():
            raise ValueError(f"{name} has the wrong shape or type, or is not finite")
    d, D = len(arrays["mean"]), len(arrays["q"])
    kind = "rbf" if len(arrays["landmarks"]) else "linear" if d == D else "quadratic"
    mean, scale, landmarks, transform, centre = (arrays[name] for name in _MAP)
    phi = FeatureMap(kind, mean, scale, landmarks, transform, centre, float(arrays["width"][0]))
    return phi, Weights(*(arrays[name] for name in _WEIGHTS))


def _shapes(arrays: dict[str, Array], n_classes: int) -> dict[str, tuple[int, ...]]:
    """What the arrays of a model must look like, going by the sizes of a few of them."""
    d, D, h, M = (len(arrays[name]) for name in ("mean", "q", "e", "landmarks"))
    classes = 1 if n_classes == 2 else n_classes
    m = classes if len(arrays["U"]) else 0
    if (not m and h != classes) or (not M and D not in (d, 2 * d)):
        raise ValueError("the arrays are of different models")
    shapes: dict[str, tuple[int, ...]] = {"mean": (d,), "scale": (d,), "landmarks": (M, d), "width": (1,)}
    shapes |= {"transform": (M, D) if M else (1, 1), "centre": (D,)}
    return shapes | {"q": (D,), "V": (h, D), "e": (h,), "U": (m, h), "c": (m,)}
