"""Attention within one input, a text or a bag."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["holding_half", "shares"]


def shares(log_weight: NDArray[Any]) -> NDArray[Any]:
    """Weights divided by their sum; nothing has a share where nothing has a weight.

    >>> shares(np.array([1000.0, 1000.0, -np.inf])).tolist()
    [0.5, 0.5, 0.0]
    """
    top = log_weight.max(initial=-np.inf)
    if top == -np.inf:
        return np.zeros(len(log_weight))
    W = np.exp(log_weight - top)
    W /= W.sum()
    return W


def holding_half(attention: NDArray[Any]) -> NDArray[np.bool_]:
    """The fewest items that together hold at least half of the attention, and all that tie with the last of them.

    >>> holding_half(np.array([0.1, 0.4, 0.3, 0.2])).tolist()
    [False, True, True, False]
    """
    if not len(attention):
        return np.zeros(0, np.bool_)
    order = np.sort(attention)[::-1]
    held = order.cumsum()
    least = order[held.searchsorted(held[-1] / 2 * (1 - 1e-12))]
    return np.asarray(attention >= least)
