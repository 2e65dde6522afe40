"""Directions: how far two of them are apart, with all digits; and the geometry of |x|_q.

|x|_q = (sum_j |x_j|^q)^(1/q), q > 1, on vectors and, entry by entry, on matrices:

phi(x) = |x|_q^q / q           the potential; its gradient is the mirror map sign(x) |x|^(q-1)
r = q / (q - 1)                the conjugate exponent: |.|_r is the dual norm, the mirror map of r the inverse one of q
D(a, b) = phi(a) - phi(b) - <phi'(b), a - b>           the Bregman divergence, 0 only for a = b; q = 2: |a - b|^2 / 2
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.checks import check_number, floats
from ...base.errors import refusal
from ...model.ragged import Vector


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
    """Degrees of a vector of the plane against the first axis, in (-180, 180]."""
    x, y = np.asarray(p, np.float64)
    return float(np.degrees(np.arctan2(y, x)))


_LARGEST = 1e15  # of an exponent: beyond, q / (q - 1) rounds to 1
_NEAR = 0.01  # relative difference of two entries below which their divergence is a series


def check_exponent(owner: str, q: Any) -> None:
    """Above 1: for q = 1 the potential has no mirror map; and no larger than its conjugate can tell from infinity."""
    check_number(owner, "q", q, 1.0, above=True)
    if q > _LARGEST:
        raise refusal(owner, "q", f"be at most {_LARGEST:g}", q)


def conjugate(q: float) -> float:
    """r with 1/q + 1/r = 1."""
    check_exponent("conjugate", q)
    return q / (q - 1)


def mirror(x: Vector, q: float) -> Vector:
    """sign(x) |x|^(q-1), entry by entry.

    >>> mirror(np.array([-2.0, 3.0]), 3.0).tolist(), mirror(np.array([-4.0, 9.0]), 1.5).tolist()
    ([-4.0, 9.0], [-2.0, 3.0])
    """
    check_exponent("mirror", q)
    return np.asarray(np.sign(x) * np.abs(x) ** (q - 1), np.float64)


def norm(x: Vector, q: float) -> float:
    """|x|_q, in units of the largest entry so that no power over- or underflows."""
    check_number("norm", "q", q, 1.0)
    sizes = np.abs(x)
    top = float(sizes.max(initial=0.0))
    return top * float(((sizes / top) ** q).sum()) ** (1 / q) if 0 < top < np.inf else top


def dual(x: Vector, q: float) -> Vector:
    """The gradient of |x|_q^2 / 2: g with <g, x> = |g|_r |x|_q and |g|_r = |x|_q; of r, the inverse map.

    >>> dual(np.array([3.0, 4.0]), 2.0).tolist(), dual(dual(np.array([3.0, 0.0]), 1.5), 3.0).tolist()
    ([3.0, 4.0], [3.0, 0.0])
    """
    size = norm(x, q)
    return size * mirror(np.asarray(x) / size, q) if 0 < size < np.inf else np.zeros(np.shape(x))


def bregman(a: Any, b: Any, q: float) -> float:
    """D(a, b), with all digits where a and b are nearly the same.

    >>> bregman([1.0, 2.0], [0.0, 1.0], 2.0), bregman([1.0], [-1.0], 3.0)
    (1.0, 2.0)
    """
    check_exponent("bregman", q)
    x, y = np.ravel(_finite("bregman", "a", a)), np.ravel(_finite("bregman", "b", b))
    if x.shape != y.shape:
        raise refusal("bregman", "b", f"have as many entries as `a`, {x.size}", f"{y.size} entries")
    zero = y == 0
    apart = (x - y) / np.where(zero, 1.0, y)  # x = y (1 + apart)
    return float(np.sum(np.where(zero, np.abs(x) ** q / q, np.abs(y) ** q * _divergence_of_one(apart, q))))


def _finite(owner: str, name: str, x: Any) -> Vector:
    numbers = floats(x)
    if numbers is None or not np.isfinite(numbers).all():
        raise refusal(owner, name, "be finite numbers", x)
    return numbers


def _divergence_of_one(x: Vector, q: float) -> Vector:
    """D(1 + x, 1) = (|1 + x|^q - 1)/q - x; near 0 the sum over k >= 2 of (q-1)(q-2)...(q-k+1)/k! x^k."""
    term = (q - 1) / 2 * x * x
    series = term.copy()
    for k in range(3, 9):
        term = term * (q - k + 1) / k * x
        series += term
    return np.where(np.abs(x) < _NEAR, series, (np.abs(1 + x) ** q - 1) / q - x)


def divergence(target: Any, point: Any, q: float) -> float:
    """D of two directions: `target` and `point`, each divided by its norm |.|_q; inf for a point at 0.

    >>> divergence([2.0, 0.0], [5.0, 0.0], 1.5), round(divergence([0.0, 1.0], [1.0, 0.0], 2.0), 12)
    (0.0, 1.0)
    """
    check_exponent("divergence", q)
    a, b = _finite("divergence", "target", target), _finite("divergence", "point", point)
    if a.size != b.size:
        raise refusal("divergence", "point", f"have as many entries as `target`, {a.size}", f"{b.size} entries")
    long, size = norm(a, q), norm(b, q)
    if not long:
        raise refusal("divergence", "target", "be a direction other than 0", target)
    return bregman(a / long, b / size, q) if size else float("inf")
