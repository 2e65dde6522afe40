"""The rows that are likely to be active: the max-margin problem with soft rows, by Newton's method.

min 1/2 |p|^2 + 1/(2 eps) sum_j max(0, b_j - n_j'p)^2, rows of length 1. As eps falls its minimiser comes to that of the
hard rows, and the multipliers are max(0, b_j - n_j'p) / eps. It is quadratic between kinks, so a Newton step in d
numbers changes many rows at once, where the dual method takes one at a time; what it finds is only where that begins.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dposv

from ...model.ragged import Vector

MOST_STEPS, MOST_CUTS = 30, 30
NEAR, WHOLE = 1e-2, 1e-6  # of the length of a step: near enough to the lowest point; a step to a minimiser is 1


def softened(rows: Vector, b: Vector, p: Vector, levels: tuple[float, ...]) -> tuple[Vector, Vector]:
    """p, and eps times the multipliers, at the last of the levels of eps, which fall."""
    short = b - rows @ p
    on, gram = np.zeros(len(b), np.bool_), np.zeros((len(p), len(p)))
    for eps in levels:
        for _ in range(MOST_STEPS):
            # few rows change at a step: no need to form the Gram matrix of all of them again
            come, gone = rows[(short > 0) & ~on], rows[on & (short <= 0)]
            gram += come.T @ come - gone.T @ gone
            on = short > 0
            step = dposv(gram + np.diag(np.full(len(p), eps)), short[on] @ rows[on] - eps * p, lower=1)[1]
            if not step.any():
                break
            along = rows @ step
            length = _lowest(eps * float(p @ step), eps * float(step @ step), short, along)
            p = p + length * step
            short = short - length * along
            if abs(length - 1) < WHOLE and np.array_equal(short > 0, on):
                break
    return p, np.maximum(short, 0.0)


def _lowest(slope: float, bend: float, short: Vector, along: Vector) -> float:
    """Where the function is lowest on the ray: the zero of slope + t bend - sum_j max(0, short_j - t along_j) along_j.

    It grows with t and is linear between kinks: Newton's method, kept between ends of both signs.
    """
    low, high, t = 0.0, np.inf, 1.0
    for _ in range(MOST_CUTS):
        left = short - t * along
        touched = along * (left > 0)
        here = slope + t * bend - float(touched @ left)
        low, high = (t, high) if here < 0 else (low, t)
        nearer = t - here / (bend + float(touched @ touched))
        if not low < nearer < high:
            nearer = (low + high) / 2 if high < np.inf else 2 * t
        if abs(nearer - t) <= NEAR * t:
            return nearer
        t = nearer
    return t
