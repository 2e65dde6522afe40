"""What claims of several families need: an answer or none, and a gradient by differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...errors import NotSeparable

__all__ = ["central_differences", "solved"]

Array = NDArray[np.float64]
Given = ParamSpec("Given")
Solution = TypeVar("Solution")


def solved(solve: Callable[Given, Solution], *given: Given.args, **options: Given.kwargs) -> Solution | None:
    """The answer of a max-margin problem; None where nothing separates."""
    try:
        return solve(*given, **options)
    except NotSeparable:
        return None


def central_differences(value: Callable[[Array], float], at: Array, h: float = 1e-3) -> Array:
    """The gradient of a function of an array by central differences of fourth order.

    >>> central_differences(lambda x: float((x**4).sum()), np.array([[1.0, -2.0]])).round(9).tolist()
    [[4.0, -32.0]]
    """
    out = np.zeros_like(at)
    for place in np.ndindex(at.shape):
        step = np.zeros_like(at)
        step[place] = h
        near, far = (value(at + k * step) - value(at - k * step) for k in (1, 2))
        out[place] = (8 * near - far) / (12 * h)
    return out
