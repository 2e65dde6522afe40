"""Heads psi of the pooled values that need not be linear, with the bounds that are known of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from ...base.errors import refusal
from ...model.ragged import Bags, Vector


class Head(ABC):
    """A differentiable psi from R^m to R, on many points at once."""

    name: str

    @abstractmethod
    def value(self, z: Vector) -> Vector:
        """(n,) psi of the rows of z (n, m)."""

    @abstractmethod
    def gradient(self, z: Vector) -> Vector:
        """(n, m)."""

    def seen(self, values: Vector) -> tuple[Vector, Head]:
        """What the head sees of the values, linearly, and the head on that; tokens it sees as equal are equal."""
        return values, self

    def fall(self, sign: float, best: Vector, others: Vector) -> tuple[float, float] | None:
        """Bounds of sign (psi(best) - psi((1 - q) best + q y)) / q over 0 < q <= 1 and all y between the others.

        None where none are known.
        """
        return None


@dataclass(frozen=True, eq=False)
class Linear(Head):
    """psi(z) = v'z.

    >>> Linear(np.array([1.0, 2.0])).value(np.ones((1, 2))).tolist()
    [3.0]
    """

    v: Vector
    name: str = "linear"

    def value(self, z: Vector) -> Vector:
        return z @ self.v

    def gradient(self, z: Vector) -> Vector:
        return np.broadcast_to(self.v, z.shape)

    def seen(self, values: Vector) -> tuple[Vector, Head]:
        return (values @ self.v)[:, None], Linear(np.ones(1))

    def fall(self, sign: float, best: Vector, others: Vector) -> tuple[float, float] | None:
        falls = sign * ((best - others) @ self.v)
        return float(falls.min()), float(falls.max())


@dataclass(frozen=True, eq=False)
class Tanh(Head):
    """psi(z) = tanh(w'z).

    >>> Tanh(np.ones(1)).gradient(np.zeros((1, 1))).tolist()
    [[1.0]]
    """

    w: Vector
    name: str = "tanh"

    def value(self, z: Vector) -> Vector:
        return np.tanh(z @ self.w)

    def gradient(self, z: Vector) -> Vector:
        return self._slope(z @ self.w)[:, None] * self.w

    def seen(self, values: Vector) -> tuple[Vector, Head]:
        return (values @ self.w)[:, None], Tanh(np.ones(1))

    def fall(self, sign: float, best: Vector, others: Vector) -> tuple[float, float] | None:
        """(tanh(u) - tanh(u - q e)) / q = e times a slope between u - e and u; slopes are largest at 0."""
        u, lost = float(best @ self.w), sign * ((best - others) @ self.w)
        ends = np.array([u, *(others @ self.w)])
        steepest = 0.0 if ends.min() <= 0 <= ends.max() else np.abs(ends).min()
        slopes = self._slope(np.array([np.abs(ends).max(), steepest]))
        return float((slopes * lost.min()).min()), float((slopes * lost.max()).max())

    @staticmethod
    def _slope(u: Vector) -> Vector:
        return 1 / np.cosh(np.clip(u, -350, 350)) ** 2  # 1 - tanh^2 loses its digits where tanh is nearly 1


@dataclass(frozen=True, eq=False)
class Quadratic(Head):
    """psi(z) = v'z - weight |z|^2: rewards attention that is shared.

    >>> Quadratic(np.ones(2), 0.5).value(np.ones((1, 2))).tolist()
    [1.0]
    """

    v: Vector
    weight: float
    name: str = "quadratic"

    def value(self, z: Vector) -> Vector:
        return z @ self.v - self.weight * (z * z).sum(axis=1)

    def gradient(self, z: Vector) -> Vector:
        return self.v - 2 * self.weight * z

    def fall(self, sign: float, best: Vector, others: Vector) -> tuple[float, float] | None:
        """psi(x) - psi(x - q e) = q g'e + weight q^2 |e|^2, g the gradient at x, e = x - y."""
        e = best - others
        slopes = sign * (e @ self.gradient(best[None])[0])
        bend = sign * self.weight * float((e * e).sum(axis=1).max())
        return float(slopes.min() + min(bend, 0.0)), float(slopes.max() + max(bend, 0.0))


def check_head(owner: str, head: Head, values: Bags) -> None:
    """The gradient against central differences, at the means of the bags."""
    if not isinstance(head, Head):
        raise refusal(owner, "head", "be a Head", head, "see keytokens.lab.problems.heads")
    z = values.sum(values.rows) / values.sizes[:, None]
    steps = 1e-6 * (1 + np.abs(z).max())
    rule = f"give values (n,) and gradients (n, {z.shape[1]}) of points (n, {z.shape[1]})"
    try:
        gradient = np.asarray(head.gradient(z), np.float64)
        ways = steps * np.eye(z.shape[1])
        numeric = np.stack([head.value(z + h) - head.value(z - h) for h in ways], axis=1) / (2 * steps)
    except (TypeError, ValueError, IndexError) as error:
        raise refusal(owner, "head", rule, str(error)) from None
    if gradient.shape != z.shape or numeric.shape != z.shape:
        raise refusal(owner, "head", rule, f"gradients of shape {gradient.shape}, differences {numeric.shape}")
    if not np.allclose(gradient, numeric, rtol=1e-4, atol=1e-6 * (1 + np.abs(gradient).max())):
        i = int(np.abs(gradient - numeric).max(axis=1).argmax())
        seen = f"{gradient[i].round(6).tolist()} beside differences {numeric[i].round(6).tolist()}"
        raise refusal(owner, "head", "have a gradient that is the derivative of its values", seen)
