"""Attention by two matrices: W = K Q', logits x_it'K Q'z_i, and both factors trained.

-dL/dK = G Q and -dL/dQ = G'K with G = -dL/dW. A penalty c (|K|^2 + |Q|^2), as small as published code has it, counts
only where the loss has become smaller still; G comes as a direction and a logarithm, so both meet without underflow.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...base.checks import check_number
from ...base.errors import refusal
from ...model.ragged import Vector
from .cross_attention import CrossHeadProblem, CrossProblem
from .losses import Scaled
from .selection_loss import Blocks, Reading

EPSILON = float(np.finfo(np.float64).eps)  # the penalty of published code


@dataclass(frozen=True, eq=False)
class KeyQueryProblem:
    """Train K (d, m) and Q (e, m) of a problem of cross-attention; blocks (K, Q), normalised steps move each by itself.

    >>> from keytokens.model.ragged import Bags
    >>> inner = CrossProblem(Bags.of([[[1.0, 0.0], [0.0, 1.0]]]), np.array([[1.0, 0.0]]), np.array([1.0, 0.0]))
    >>> problem = KeyQueryProblem(inner, 1)
    >>> blocks = np.array([[50.0], [-50.0]]), np.array([[80.0], [0.0]])
    >>> down_K, down_Q = problem.descent(problem.read(blocks), blocks)
    >>> (down_K.unit * np.sqrt(2)).round(9).tolist(), down_Q.unit.tolist(), round(down_K.log)
    ([[1.0], [-1.0]], [[1.0], [0.0]], -7997)
    """

    inner: CrossProblem | CrossHeadProblem
    width: int
    penalty: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.inner, (CrossProblem, CrossHeadProblem)):
            rule = "be a CrossProblem or a CrossHeadProblem"
            raise refusal("KeyQueryProblem", "inner", rule, type(self.inner).__name__)
        check_number("KeyQueryProblem", "width", self.width, 1, whole=True)
        check_number("KeyQueryProblem", "penalty", self.penalty, 0.0)

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        d, e = self.inner.matrix_shape
        return (d, self.width), (e, self.width)

    @staticmethod
    def matrix(blocks: Blocks) -> Vector:
        """W = K Q'."""
        K, Q = blocks
        return K @ Q.T

    def read(self, blocks: Blocks) -> Reading:
        return self.inner.read((self.matrix(blocks),))

    def descent(self, reading: Reading, blocks: Blocks) -> tuple[Scaled, ...]:
        K, Q = blocks
        (G,) = self.inner.descent(reading, (self.matrix(blocks),))
        return self._less(G.array @ Q, G.log_scale, K), self._less(G.array.T @ K, G.log_scale, Q)

    def _less(self, down: Vector, log_scale: float, block: Vector) -> Scaled:
        """exp(log_scale) down - 2 c block."""
        if not self.penalty:
            return Scaled(down, log_scale)
        log_pull = float(np.log(2 * self.penalty))
        top = max(log_scale, log_pull)
        return Scaled(np.exp(log_scale - top) * down - np.exp(log_pull - top) * block, top)

    def gap(self, reading: Reading) -> Scaled:
        if self.penalty:
            raise refusal("KeyQueryProblem", "penalty", "be 0 for a step that is measured by L - L*", self.penalty)
        return self.inner.gap(reading)

    @property
    def span(self) -> Vector | None:
        return None
