"""What torch.randn draws after torch.manual_seed, for the data of published notebooks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["torch_normals", "torch_randn"]


def torch_randn(seed: int, *shape: int) -> NDArray[Any]:
    """MT19937 seeded as numpy's RandomState; Box-Muller, in float32 by blocks of 16 or in doubles below 16 numbers."""
    return torch_normals(seed)(*shape)


def torch_normals(seed: int) -> Callable[..., NDArray[Any]]:
    """One draw after another from one generator; short draws of an odd size would need the number that is left over."""
    words = np.random.RandomState(seed)  # the generator itself is the point

    def draw(*shape: int) -> NDArray[Any]:
        size = int(np.prod(shape))
        return (_short if size < 16 else _long)(words, size).reshape(shape)

    return draw


def _bits(words: np.random.RandomState, count: int) -> NDArray[Any]:
    return words.randint(0, 2**32, count, dtype=np.uint64)


def _short(words: np.random.RandomState, size: int) -> NDArray[Any]:
    out: list[float] = []
    while len(out) < size:
        high1, low1, high2, low2 = (int(w) for w in _bits(words, 4))
        u1 = ((high1 << 32 | low1) & (2**53 - 1)) * 2.0**-53
        u2 = ((high2 << 32 | low2) & (2**53 - 1)) * 2.0**-53
        radius, angle = np.sqrt(-2 * np.log1p(-u2)), 2 * np.pi * u1
        out += [radius * np.cos(angle), radius * np.sin(angle)]
    return np.array(out[:size], np.float32)


def _long(words: np.random.RandomState, size: int) -> NDArray[Any]:
    x = _uniform(words, size)
    for start in range(0, size - 15, 16):
        x[start : start + 16] = _box_muller(x[start : start + 16])
    if size % 16:  # the last 16 are drawn anew
        x[-16:] = _box_muller(_uniform(words, 16))
    return x


def _uniform(words: np.random.RandomState, size: int) -> NDArray[Any]:
    return ((_bits(words, size) & np.uint64(2**24 - 1)).astype(np.float32) * np.float32(2.0**-24)).astype(np.float32)


def _box_muller(x: NDArray[Any]) -> NDArray[Any]:
    u1, u2 = np.float32(1) - x[:8], x[8:]
    radius, angle = np.sqrt(np.float32(-2) * np.log(u1)), np.float32(2 * np.pi) * u2
    return np.concatenate([radius * np.cos(angle), radius * np.sin(angle)]).astype(np.float32)
