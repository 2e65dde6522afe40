"""Losses of a margin, and numbers as a sign and a logarithm: exact however small a loss or a change of it has become.

A run to |p| = 1e6 has margins x at which exp(-x) is no number any more; its logarithm is one. So a loss gives its value
and its slope as logarithms too, and a change loss(x + delta) - loss(x) as a sign and a logarithm, from those of delta.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from ...base.errors import refusal
from ...model.ragged import Vector

# Numbers as a sign and a logarithm -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Scaled:
    """exp(log_scale) * array, where the factor alone may underflow or overflow; zero is an array of zeros."""

    array: Vector
    log_scale: float

    @classmethod
    def total(cls, sign: Vector, log_size: Vector) -> Scaled:
        """The sum of numbers given as signs and logarithms.

        >>> Scaled.total(np.ones(2), np.array([-1000.0, -1000.0])).log
        -999.3068528194401
        """
        top = float(log_size.max(initial=-np.inf))
        if top == -np.inf:
            return cls(np.zeros(()), 0.0)
        return cls(np.asarray(np.sum(sign * np.exp(log_size - top))), top)

    def __add__(self, other: Scaled) -> Scaled:
        """Each in the scale of the larger one; a zero has no scale."""
        if not other.array.any():
            return self
        if not self.array.any():
            return other
        top = max(self.log_scale, other.log_scale)
        parts = (np.exp(one.log_scale - top) * one.array for one in (self, other))
        return Scaled(np.add(*parts), top)

    @property
    def log(self) -> float:
        """Logarithm of the Euclidean norm; -inf for zero."""
        return self.log_scale + float(log_abs(self._size))

    @property
    def sign(self) -> float:
        """Of a number."""
        return float(np.sign(self.array))

    @property
    def unit(self) -> Vector:
        """The direction; zeros for zero."""
        return self.array / self._size if self._size else self.array

    @cached_property
    def _size(self) -> float:
        return float(np.sqrt(np.vdot(self.array, self.array)))

    @property
    def plain(self) -> Vector:
        """As ordinary numbers, which may underflow."""
        return self.array * np.exp(self.log_scale)


def log_abs(x: Any) -> Vector:
    """log|x|, -inf at 0."""
    with np.errstate(divide="ignore"):
        return np.log(np.abs(x))


def _log_expm1(sign: Vector, log_delta: Vector) -> tuple[Vector, Vector]:
    """exp(-delta) - 1 as sign and logarithm, delta = sign * exp(log_delta)."""
    delta = sign * np.exp(log_delta)
    # exp(-delta) - 1 = -delta (1 - delta/2 + ...): the expansion takes over where expm1 would underflow
    far = np.maximum(-delta, 0.0) + log_abs(np.expm1(-np.abs(delta)))  # the larger of both factored out: no overflow
    return -sign, np.where(np.abs(delta) < 1e-8, log_delta - delta / 2, far)


def check_loss(owner: str, loss: Any) -> MarginLoss:
    if not callable(getattr(loss, "log_abs_slope", None)) or isinstance(loss, type):
        raise refusal(owner, "loss", "be a loss of a margin", loss, "for example Logistic()")
    checked: MarginLoss = loss
    return checked


# Losses of a margin --------------------------------------------------------------------------------------------------


class MarginLoss(Protocol):
    """A strictly decreasing loss of a margin x."""

    @property
    def name(self) -> str: ...

    def value(self, x: Vector) -> Vector: ...

    def slope(self, x: Vector) -> Vector:
        """loss'(x) < 0; may underflow."""
        return -np.exp(self.log_abs_slope(x))

    def log_abs_slope(self, x: Vector) -> Vector:
        """log |loss'(x)|, for any x."""

    def log_value(self, x: Vector) -> Vector:
        """log loss(x), for any x, of a loss with infimum 0."""

    def change(self, x: Vector, sign: Vector, log_delta: Vector) -> tuple[Vector, Vector]:
        """loss(x + delta) - loss(x) as sign and logarithm, without cancellation; delta = sign * exp(log_delta)."""


@dataclass(frozen=True)
class Logistic(MarginLoss):
    """loss(x) = log(1 + exp(-x)), loss'(x) = -1/(1 + exp(x)); curvature at most 1/4.

    >>> Logistic().log_abs_slope(np.array([1000.0])).tolist()
    [-1000.0]
    """

    name: str = "logistic"

    def value(self, x: Vector) -> Vector:
        return np.logaddexp(0, -x)

    def log_abs_slope(self, x: Vector) -> Vector:
        return -np.logaddexp(0, x)

    def log_value(self, x: Vector) -> Vector:
        # log(1 + e^-x) = e^-x (1 - e^-x/2 + ...)
        return np.where(x > 40, -x, np.log(np.logaddexp(0, -np.minimum(x, 40))))

    def change(self, x: Vector, sign: Vector, log_delta: Vector) -> tuple[Vector, Vector]:
        # log(1 + e^-(x+d)) - log(1 + e^-x) = log(1 + sigma(-x) (e^-d - 1))
        turned, log_size = _log_expm1(sign, log_delta)
        log_size = log_size + self.log_abs_slope(x)
        near = log_abs(np.log1p(turned * np.exp(np.minimum(log_size, -1.0))))
        # a large change has no digits to lose, but 1 + sigma(-x) (e^-d - 1) may round to 0
        far = log_abs(self.value(x + sign * np.exp(log_delta)) - self.value(x))
        return turned, np.where(log_size < -40, log_size, np.where(log_size < -1, near, far))


@dataclass(frozen=True)
class Exponential(MarginLoss):
    """loss(x) = exp(-x).

    >>> Exponential().value(np.zeros(1)).tolist()
    [1.0]
    """

    name: str = "exponential"

    def value(self, x: Vector) -> Vector:
        return np.exp(-x)

    def log_abs_slope(self, x: Vector) -> Vector:
        return -x

    def log_value(self, x: Vector) -> Vector:
        return -x

    def change(self, x: Vector, sign: Vector, log_delta: Vector) -> tuple[Vector, Vector]:
        turned, log_size = _log_expm1(sign, log_delta)
        return turned, log_size - x


@dataclass(frozen=True)
class Correlation(MarginLoss):
    """loss(x) = -x.

    >>> Correlation().slope(np.zeros(1)).tolist()
    [-1.0]
    """

    name: str = "correlation"

    def value(self, x: Vector) -> Vector:
        return -x

    def log_abs_slope(self, x: Vector) -> Vector:
        return np.zeros_like(x)

    def log_value(self, x: Vector) -> Vector:
        rule = "have an infimum where the head is trained too"
        raise refusal("Problem.joint", "loss", rule, self.name, "use Logistic() or Exponential()")

    def change(self, x: Vector, sign: Vector, log_delta: Vector) -> tuple[Vector, Vector]:
        return -sign, log_delta
