"""Gradients by central differences."""

import numpy as np


def central_differences(value, at):
    """The gradient of a function of an array, of fourth order."""
    out, h = np.zeros_like(at), 1e-3
    for place in np.ndindex(at.shape):
        step = np.zeros_like(at)
        step[place] = h
        near, far = (value(at + k * step) - value(at - k * step) for k in (1, 2))
        out[place] = (8 * near - far) / (12 * h)
    return out
