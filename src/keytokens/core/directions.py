"""Directions: how far two of them are apart, with all digits."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["angle", "misalignment"]


def misalignment(p: Any, q: Any) -> float:
    """1 - cos between two vectors (or matrices), as half the squared distance of the unit vectors.

    1 - u'w = |u - w|^2 / 2 keeps its digits where u'w rounds to 1.

    >>> misalignment([1.0, 0.0], [0.0, 2.0])
    1.0
    """
    u, w = np.ravel(np.asarray(p, np.float64)), np.ravel(np.asarray(q, np.float64))
    away = u / np.linalg.norm(u) - w / np.linalg.norm(w)
    return float(away @ away / 2)


def angle(p: Any) -> float:
    """Degrees of a vector of the plane against the first axis, in (-180, 180].

    >>> angle([0.0, 3.0])
    90.0
    """
    x, y = np.asarray(p, np.float64)
    return float(np.degrees(np.arctan2(y, x)))
