"""Descent as published notebooks run it: plain arithmetic in single or double precision.

Every other descent here is exact: a gradient is a direction and the logarithm of its length, whatever its size.
Published code computes softmax, loss and gradient as ordinary numbers, divides the gradient by its length plus a floor,
and stops when nothing is left of it:

s = softmax(a),  da_t = s_t (g_t - s'g)  with g the gradient in s,  then  block <- block - eta g / (|g| + floor)

The difference g_t - s'g of the token that wins is of the size 1 - s_t, but is known to the rounding of g alone. So long
before the floor counts, single precision (at |p| of about 16) and double precision (about 36) have lost the direction:
steps keep their length and go where rounding sends them, or there are none. `published` shows what such a run does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from ...base.checks import check_number
from ...base.errors import refusal

Array = NDArray[Any]
Blocks = tuple[Array, ...]
DTYPES = {"float32": np.float32, "float64": np.float64}
# minus the slope of each loss at a margin x, as backpropagation computes it
SLOPES: dict[str, Any] = {
    "logistic": lambda x: np.exp(-x) / (1 + np.exp(-x)),
    "exponential": lambda x: np.exp(-x),
    "correlation": np.ones_like,
}


@dataclass(frozen=True, eq=False)
class PlainProblem:
    """Arrays of one problem, or of a stack of them with a first axis more, all of one precision."""

    keys: Array  # (..., n, T, d)
    scores: Array | None = None  # (..., n, T) signed by the labels: the head is fixed
    values: Array | None = None  # (..., n, T, e) and labels (..., n): the head is trained, or it is the ReLU head
    labels: Array | None = None
    queries: Array | None = None  # (..., n, e): trained are W, or K and Q
    relu: Array | None = None  # V (..., e, h) of the head 1' max(V'r, 0)
    loss: str = "logistic"
    penalty: float = 0.0  # of |K|^2 + |Q|^2

    def rounded(self, kind: Any) -> PlainProblem:
        """The same problem in another precision."""
        arrays: dict[str, Any] = {name: x.astype(kind) for name, x in vars(self).items() if isinstance(x, np.ndarray)}
        return replace(self, **arrays)

    def gradients(self, blocks: Blocks) -> Blocks:
        """dL of every block."""
        attention = softmax(self._logits(blocks), axis=-1)
        dA, *head = self._outputs(attention, blocks)
        da = attention * (dA - np.sum(dA * attention, axis=-1, keepdims=True))
        pull = np.matmul(da[..., None, :], self.keys)[..., 0, :]  # (..., n, d), of the direction that each bag sees
        if self.queries is None:
            return *head, pull.sum(axis=-2)
        dW = np.matmul(_turned(pull), self.queries)
        if len(blocks) == 1:
            return (dW,)
        K, Q = blocks
        weight = np.asarray(2 * self.penalty, dW.dtype)
        return np.matmul(dW, Q) + weight * K, np.matmul(_turned(dW), K) + weight * Q

    def _logits(self, blocks: Blocks) -> Array:
        if self.queries is None:
            return np.matmul(self.keys, blocks[-1][..., None, :, None])[..., 0]
        W = blocks[0] if len(blocks) == 1 else np.matmul(blocks[0], _turned(blocks[1]))
        seen = np.matmul(self.queries, _turned(W))
        return np.matmul(self.keys, seen[..., None])[..., 0]

    def _outputs(self, attention: Array, blocks: Blocks) -> tuple[Array, ...]:
        """dL/ds (..., n, T); and dL/dv where the head is trained."""
        if self.scores is not None:
            return (self._slope(np.sum(attention * self.scores, axis=-1))[..., None] * self.scores,)
        assert self.values is not None, "a head is given by scores, or by values and labels"
        r = np.matmul(attention[..., None, :], self.values)[..., 0, :]
        if self.relu is not None:
            hidden = np.matmul(r, self.relu)
            df = self._slope(self.labels * np.maximum(hidden, 0).sum(axis=-1)) * self.labels
            dr = np.matmul(df[..., None] * (hidden > 0), _turned(self.relu))
            return (np.matmul(self.values, dr[..., None])[..., 0],)
        v = blocks[0][..., None, :]
        df = self._slope(self.labels * np.sum(r * v, axis=-1)) * self.labels
        dA = np.matmul(self.values, (df[..., None] * v)[..., None])[..., 0]
        return dA, np.sum(df[..., None] * r, axis=-2)

    def _slope(self, margins: Array) -> Array:
        """dL of the margin of every bag."""
        found: Array = -SLOPES[self.loss](margins) / np.asarray(margins.shape[-1], margins.dtype)
        return found


def published(
    problem: PlainProblem,
    start: Sequence[Any],
    steps: int = 1000,
    eta: float = 0.1,
    floor: float | Sequence[float] = 0.0,
    *,
    dtype: str = "float32",
    normalised: bool = True,
    at: Sequence[int] | None = None,
) -> list[Blocks]:
    """The blocks after each number of steps in `at`, or after the last one alone; all is rounded to `dtype` first.

    They begin at (p,), (v, p), (W,) or (K, Q); of a stack of problems, one for each. Steps have the length
    eta |g| / (|g| + floor), with one floor or one a block, or eta |g| if not `normalised`.

    >>> one = PlainProblem(np.array([[[1.0], [0.0]]]), np.array([[1.0, 0.0]]))
    >>> [float(published(one, [[0.0]], 500, floor=1e-9, dtype=dtype)[0][0][0]) < 40 for dtype in DTYPES]
    [True, True]
    """
    for name, value, known in (("dtype", dtype, DTYPES), ("loss", problem.loss, SLOPES)):
        if value not in known:
            raise refusal("published", name, f"be one of {', '.join(known)}", value)
    check_number("published", "steps", steps, 0, whole=True)
    check_number("published", "eta", eta, 0.0, above=True)
    kind, wanted = DTYPES[dtype], [steps] if at is None else list(at)
    if not all(0 <= t <= steps for t in wanted):
        raise refusal("published", "at", f"be numbers of steps from 0 to {steps}", wanted)
    rounded = problem.rounded(kind)
    blocks = tuple(np.array(block, kind) for block in start)
    floors = np.broadcast_to(np.asarray(floor, kind), len(blocks))
    axes, seen, kept = (-1,) if problem.queries is None else (-2, -1), {}, frozenset(wanted)
    with np.errstate(all="ignore"):  # what underflows here underflows there
        for t in range(steps + 1):
            if t:
                moves = rounded.gradients(blocks)
                if normalised:
                    moves = tuple(g / (_length(g, axes) + eps) for g, eps in zip(moves, floors, strict=True))
                blocks = tuple(block - kind(eta) * move for block, move in zip(blocks, moves, strict=True))
            if t in kept:
                seen[t] = blocks
    return [seen[t] for t in wanted]


def _length(g: Array, axes: Any) -> Array:
    """|g|, squares and all in the precision of g: 0 below 1e-23 in single precision."""
    found: Array = np.sqrt(np.sum(np.square(g), axis=axes, keepdims=True))
    return found


def _turned(x: Array) -> Array:
    return np.swapaxes(x, -1, -2)
