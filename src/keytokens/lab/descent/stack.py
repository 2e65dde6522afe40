"""Many small problems of one shape at once: descent on a stack of them, by normal, mirror and factor steps.

All problems have one shape, n bags of T tokens, so that one step of all of them is a few operations on arrays
(m, n, T). The arithmetic is that of `Reading`, relative to the selected token and in the log domain; only the scale of
a gradient is kept for each problem by itself.

In cross-attention W is a long p, and the products x_it z_i' are its keys. Under (K, Q) the same gradient goes on by the
chain rule. Under a ReLU head the scores are its slopes, and the margin is s'gamma all the same, since 1'relu(V'r) is
its own slope times r.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...base.checks import check_number
from ...base.errors import refusal
from ...base.threads import one_blas_thread
from ...model.ragged import Bags, Index, Vector
from ..problems.geometry import check_exponent, conjugate, mirror
from ..problems.logits import Cross, Keys
from ..problems.losses import MarginLoss, log_abs
from ..problems.problem import Problem
from ..problems.scores import Fixed

Flags = NDArray[np.bool_]


def has_given_scores(problem: Problem) -> bool:
    """And trains p, or W, which is one long p."""
    return isinstance(problem.rule, Fixed) and isinstance(problem.logits, (Keys, Cross))


def on_span(problem: Problem) -> Problem:
    """The same problem in the coordinates of the space that holds every gradient, at most n (T - 1) of them.

    Descent from p = 0 never leaves that space, and all distances and angles within it are kept.
    """
    if problem.span is None:
        return problem
    return Problem.of(problem.keys.with_rows(problem.keys.rows @ problem.span.T), problem.scores, problem.loss)


@dataclass(frozen=True, eq=False)
class Relu:
    """m heads 1'relu(V'r) of the pooled values r, as a rule for scores."""

    values: Vector  # (m, n, T, d)
    labels: Vector  # (m, n)
    V: Vector  # (m, d, h)

    @cached_property
    def _units(self) -> Vector:
        """(h, T, m, n) V'x of every token. Units first: sums over the first axes are the fast ones."""
        return np.ascontiguousarray(np.matmul(self.values, self.V[:, None]).transpose(3, 2, 0, 1))

    def at(self, a: Vector) -> Vector:
        """Y_i psi'(X_i's_i)'x_it, (T, m, n): V'x_it summed over the units that are on at the pooled token."""
        on = ((self._units * softmax_first(a)).sum(axis=1, keepdims=True) > 0).astype(np.float64)
        return np.asarray(self.labels * (on * self._units).sum(axis=0), np.float64)


@dataclass(frozen=True, eq=False)
class Stack:
    """m problems of one shape and one loss; the scores are given, or those of ReLU heads."""

    keys: Vector  # (m, n, T, d)
    scores: Vector  # (m, n, T), zeros under heads
    loss: MarginLoss
    heads: Relu | None = None

    @classmethod
    def of(cls, problems: Iterable[Problem]) -> Stack:
        """Problems with given scores, that train p, or W as one long p."""
        listed = list(problems)
        if not all(map(has_given_scores, listed)):
            raise refusal("Stack.of", "problems", "have given scores, and keys or one W", "others")
        shapes = {(tuple(one.keys.sizes.tolist()), one.keys.dim, one.loss.name) for one in listed}
        if len(shapes) != 1 or len(set(listed[0].keys.sizes.tolist())) != 1:
            rule = "be problems of one loss and one shape, all bags with as many tokens"
            raise refusal("Stack.of", "problems", rule, sorted(shapes))
        n, T, d = len(listed[0].keys), int(listed[0].keys.sizes[0]), listed[0].keys.dim
        keys = np.stack([one.keys.rows.reshape(n, T, d) for one in listed])
        return cls(keys, np.stack([one.scores.reshape(n, T) for one in listed]), listed[0].loss)

    @classmethod
    def under_relu(cls, values: Vector, queries: Vector, labels: Vector, V: Vector, loss: MarginLoss) -> Stack:
        """Cross-attention under ReLU heads: tokens (m, n, T, d), queries (m, n, e), labels (m, n), V (m, d, h)."""
        m, n, T, _ = values.shape
        keys = (values[..., :, None] * queries[:, :, None, None, :]).reshape(m, n, T, -1)
        return cls(keys, np.zeros((m, n, T)), loss, Relu(values, labels, V))

    @classmethod
    def repeated(cls, problem: Problem, times: int) -> Stack:
        """One problem for many starts; it is stored once."""
        one = cls.of([problem])
        keys, scores = (np.broadcast_to(x, (times, *x.shape[1:])) for x in (one.keys, one.scores))
        return cls(keys, scores, one.loss)

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, which: int) -> Problem:
        d = self.keys.shape[-1]
        starts = np.arange(self.keys.shape[1] + 1) * self.keys.shape[2]
        return Problem.of(Bags(self.keys[which].reshape(-1, d), starts), self.scores[which].ravel(), self.loss)

    def bags(self, which: int) -> Bags:
        """The tokens of one problem under a head."""
        assert self.heads is not None
        return Bags.of(self.heads.values[which])

    def logits(self, p: Vector) -> Vector:
        """(T, m, n): tokens first, because sums over the first axis are the fast ones."""
        m, n, T, d = self.keys.shape
        a = np.matmul(self.keys.reshape(m, n * T, d), p[:, :, None]).reshape(m, n, T)
        return np.ascontiguousarray(a.transpose(2, 0, 1))

    @cached_property
    def _scores(self) -> Vector:
        """(T, m, n)."""
        return np.ascontiguousarray(self.scores.transpose(2, 0, 1))

    def descents(self, p: Vector) -> tuple[Vector, Vector]:
        """Minus the gradients: unit vectors (m, d), zeros where the gradient is zero, and log lengths (m,)."""
        a = self.logits(p)
        m, n, T, d = self.keys.shape
        chosen = a.argmax(axis=0) * (m * n) + np.arange(m * n).reshape(m, n)  # places; the first where several tie
        a -= a.take(chosen)
        pull, log_scale = self._pull(a, chosen, self._scores if self.heads is None else self.heads.at(a))
        top = log_scale.max(axis=1)
        top = np.where(np.isfinite(top), top, 0.0)
        pull *= np.exp(log_scale - top[:, None])
        down = np.matmul(pull.transpose(1, 2, 0).reshape(m, 1, n * T), self.keys.reshape(m, n * T, d))[:, 0]
        length = np.sqrt(np.square(down).sum(axis=1))
        unit = down / np.where(length > 0, length, 1.0)[:, None]
        return unit, top + log_abs(length) - np.log(n)

    def _pull(self, a: Vector, chosen: Index, scores: Vector) -> tuple[Vector, Vector]:
        """-n dL/da of every token, (T, m, n), and the logarithms (m, n) of the scale of each bag; `chosen`: its place.

        The scale is the attention of the strongest token u whose score differs from the chosen one's: s_u = exp(a_u)/Z
        may underflow. With e_t = exp(a_t - a_u) the shortfall s'gamma - gamma_chosen is s_u sum_t e_t above_t, and the
        pull in units of s_u is e_t (above_t - shortfall), or -s_t sum_t e_t above_t for the chosen one and what ties.
        """
        best = scores.take(chosen)
        above = scores - best
        ties = above == 0
        others = a.copy()
        np.copyto(others, -np.inf, where=ties)
        strongest = others.max(axis=0)
        base = np.where(np.isfinite(strongest), strongest, 0.0)
        e = _exp(others - base)  # 1e-304 for ties: nothing beside the strongest token's 1
        tied = _tied(a, ties)
        scale = np.exp(base)
        Z = (1.0 if tied is None else tied.sum(axis=0)) + scale * e.sum(axis=0)
        factor = (e * above).sum(axis=0)
        shortfall = scale / Z * factor
        pull = e * (above - shortfall)
        if tied is None:
            pull.put(chosen, -factor / Z)
        else:
            np.copyto(pull, -tied * (factor / Z), where=ties)
        return pull, strongest - np.log(Z) + self.loss.log_abs_slope(best + shortfall)

    @one_blas_thread()  # many small products, that threads would only slow down
    def descend(
        self, steps: int, eta: float = 1.0, *, start: Vector | None = None, floor: float = 0.0, plain: bool = False
    ) -> Vector:
        """(m, d) where descent is after so many steps of length eta |g| / (|g| + floor), or eta |g| if `plain`."""
        check_number("Stack.descend", "steps", steps, 0, whole=True)
        check_number("Stack.descend", "eta", eta, 0.0, above=True)
        check_number("Stack.descend", "floor", floor, 0.0)
        p = np.zeros((len(self), self.keys.shape[-1])) if start is None else np.array(start, np.float64)
        if p.shape != (len(self), self.keys.shape[-1]):
            raise refusal("Stack.descend", "start", "be one vector a problem", f"shape {p.shape}")
        for _ in range(steps):
            unit, log_length = self.descents(p)
            if plain:
                unit *= np.exp(log_length)[:, None]
            elif floor:
                unit *= _above_floor(log_length, floor)[:, None]
            p += eta * unit
        return p

    def path(
        self, at: Iterable[int], eta: float, start: Vector, floor: float = 0.0, plain: bool = False
    ) -> Iterator[Vector]:
        """Where normalised descent is after so many steps, for each number of `at` (rising)."""
        p, done = start, 0
        for t in at:
            p, done = self.descend(t - done, eta, start=p, floor=floor, plain=plain), t
            yield p

    @one_blas_thread()
    def mirror_path(self, q: float, at: Sequence[int], start: Vector, eta: float, floor: float = 0.0) -> list[Vector]:
        """Where normalised mirror descent is after so many steps, for each number of `at` (rising).

        With a floor eps, as published code has it, steps are eta |g|_r / (|g|_r + eps).
        """
        check_exponent("Stack.mirror_path", q)
        check_number("Stack.mirror_path", "eta", eta, 0.0, above=True)
        check_number("Stack.mirror_path", "floor", floor, 0.0)
        r, y, seen = conjugate(q), mirror(np.array(start, np.float64), q), []
        for t in range(max(at) + 1):
            p = mirror(y, r)
            if t in at:
                seen.append(p)
            unit, log_length = self.descents(p)
            size = np.sum(np.abs(unit) ** r, axis=1) ** (1 / r)
            length = eta * _above_floor(log_length + np.log(size), floor) if floor else eta
            y += (length / np.where(size > 0, size, 1.0))[:, None] * unit
        return seen

    @one_blas_thread()
    def factor_path(self, at: Iterable[int], eta: float, K: Vector, Q: Vector) -> list[tuple[Vector, Vector]]:
        """K (m, d, r) and Q (m, e, r) after so many steps, of length eta for each by itself; `at` is rising."""
        (m, d, _), done, seen = K.shape, 0, []
        for t in at:
            for _ in range(done, t):
                G = self.descents((K @ Q.transpose(0, 2, 1)).reshape(m, -1))[0].reshape(m, d, -1)
                K, Q = K + eta * _units(G @ Q), Q + eta * _units(G.transpose(0, 2, 1) @ K)
            seen.append((K, Q))
            done = t
        return seen

    def on_span(self) -> tuple[Stack, Vector]:
        """The same problems in coordinates of the spans of their keys, and the orthonormal columns (m, d, k) of these.

        What a start has outside, no step changes and no logit sees.
        """
        basis, corner = np.linalg.qr(self.keys.reshape(len(self), -1, self.keys.shape[-1]).transpose(0, 2, 1))
        keys = np.ascontiguousarray(corner.transpose(0, 2, 1)).reshape(*self.keys.shape[:3], -1)
        return replace(self, keys=keys), basis


def _above_floor(log_length: Vector, floor: float) -> Vector:
    """|g| / (|g| + floor)."""
    return np.exp(log_length - np.logaddexp(log_length, np.log(floor)))


def _tied(a: Vector, ties: Flags) -> Vector | None:
    """exp(a) of what ties with the chosen token, else 0; None where nothing ties, or all of a bag: that has no pull."""
    many = ties.sum(axis=0, dtype=np.intp)
    if not ((many > 1) & (many < len(ties))).any():
        return None
    return np.where(ties, _exp(a), 0.0)


def _exp(x: Vector) -> Vector:
    """exp between 1e-304 and 1e304, where all sums are of order 1: what underflows makes the processor far slower."""
    return np.exp(np.clip(x, -700.0, 700.0))


def _units(stack: Vector) -> Vector:
    """Each matrix over its length; zeros for zeros."""
    length = np.sqrt(np.square(stack).sum(axis=(1, 2), keepdims=True))
    return stack / np.where(length > 0, length, 1.0)


def softmax_first(a: Vector) -> Vector:
    """Attention where tokens are the first axis."""
    e = np.exp(a - a.max(axis=0))
    return e / e.sum(axis=0)
