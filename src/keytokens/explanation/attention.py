"""Attention within one input, a text or a bag."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["holding_half", "least_holding_half", "shares"]


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
    return np.asarray(attention >= least_holding_half(attention, [0, len(attention)]))


def least_holding_half(attention: NDArray[Any], ends: Sequence[int]) -> NDArray[Any]:
    """(n,) the least attention among those items in each of some inputs: items ends[i] : ends[i + 1], at least one."""
    ordered = attention.copy()
    least = []
    for begin, end in pairwise(ends):
        own = ordered[begin:end]
        own.sort()
        largest_first = own[::-1]
        held = largest_first.cumsum()
        least.append(largest_first[held.searchsorted(held[-1] / 2 * (1 - 1e-12))])
    return np.array(least)
