"""Normal numbers as the library of published notebooks draws them from a seed.

Only the generator is published, not the numbers; so it is repeated here: MT19937, and Box and Muller's transform, in
single precision and blocks of 16 for 16 numbers or more, in double precision and one by one for fewer.
"""

from __future__ import annotations

from typing import Any

import numpy as np


class Normals:
    """Normal numbers in single precision, the next ones at each call.

    >>> [round(float(x), 4) for x in Normals(0)(3)]
    [1.541, -0.2934, -2.1788]
    """

    def __init__(self, seed: int) -> None:
        self._random = np.random.RandomState(seed)
        self._second: float | None = None

    def __call__(self, *shape: int) -> Any:
        size = int(np.prod(shape))
        if size < 16:
            return np.array([self._single() for _ in range(size)], np.float32).reshape(shape)
        x = self._uniform(size)
        out = np.empty(size, np.float32)
        for k in range(0, size - 15, 16):
            out[k : k + 16] = _pairs(x[k : k + 16])
        if size % 16:  # the last 16 are drawn anew
            out[-16:] = _pairs(self._uniform(16))
        return out.reshape(shape)

    def units(self, *shape: int) -> Any:
        """Vectors of length 1 along the last axis."""
        x = self(*shape)
        return x / np.linalg.norm(x, axis=-1, keepdims=True)

    def _words(self, size: int) -> Any:
        return self._random.randint(0, 2**32, size, dtype=np.uint64)

    def _uniform(self, size: int) -> Any:
        return ((self._words(size) & 0xFFFFFF) * 2.0**-24).astype(np.float32)

    def _single(self) -> float:
        if self._second is None:
            turn, size = (((int(a) << 32 | int(b)) % 2**53) * 2.0**-53 for a, b in self._words(4).reshape(2, 2))
            radius, angle = np.sqrt(-2 * np.log1p(-size)), 2 * np.pi * turn
            self._second = float(radius * np.sin(angle))
            return float(radius * np.cos(angle))
        second, self._second = self._second, None
        return second


def _pairs(x: Any) -> Any:
    radius, angle = np.sqrt(np.float32(-2) * np.log(np.float32(1) - x[:8])), np.float32(2 * np.pi) * x[8:]
    return np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])
