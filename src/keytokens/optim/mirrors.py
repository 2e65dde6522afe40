"""Mirror descent on attention in the geometry of |.|_q: steps are made on sign(W) |W|^(q-1), then mapped back.

y = sign(W) |W|^(q-1)        the mirror of a block, from which W = sign(y) |y|^(1/(q-1))
y <- y - length g/|g|_r      r = q/(q-1): lengths are those of the dual norm, so Plain(eta) is y - eta g

q = 2 is gradient descent. The direction tends to the max-margin one of |.|_q, which `svm.solve_lq` finds. As all of
`Descent`, a step is made of a direction and the logarithm of a length: a gradient far below any float still has its
direction, so nothing is divided by a number that has underflowed. The mirror itself is the state: mapped back and forth
small entries of W would lose digits at every step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..core.lq import check_exponent, conjugate, mirror, norm
from ..core.margin_losses import log_abs
from ..core.selection_loss import Blocks, Vector
from .descents import Descent, DescentState, blocks_of

__all__ = ["MirrorDescent", "MirrorState"]


@dataclass(frozen=True, eq=False)
class MirrorState(DescentState):
    """Where a run of mirror descent is; sizes of gradients are dual norms."""

    mirrors: Blocks = ()
    q: float = 2.0

    @cached_property
    def sizes(self) -> tuple[float, ...]:
        """|g|_r of each block, less its scale."""
        r = conjugate(self.q)
        return tuple(norm(down.array, r) for down in self.descent)

    @cached_property
    def log_sizes(self) -> Vector:
        """log |g|_r of each block."""
        return log_abs(np.array(self.sizes)) + [down.log_scale for down in self.descent]

    @property
    def norm(self) -> float:
        """|W|_q."""
        return norm(self.p, self.q)


@dataclass(frozen=True)
class MirrorDescent(Descent):
    """Follow minus the gradient of `problem` in the mirror of |.|_q, every block by itself.

    >>> from keytokens.core.bags import Bags
    >>> from keytokens.core.selection_loss import SelectionProblem
    >>> from keytokens.optim import Normalised, run
    >>> problem = SelectionProblem(Bags.of([[[2.0, 1.0], [0.0, 0.0]]]), np.array([1.0, 0.0]))
    >>> state = run(MirrorDescent(problem, Normalised(0.1), q=3.0), np.zeros(2), 500).state
    >>> (state.p / state.p[1]).round(6).tolist()  # sqrt(2): y is in proportion to (2, 1)
    [1.414214, 1.0]
    """

    q: float = 2.0

    def __post_init__(self) -> None:
        check_exponent("MirrorDescent", self.q)
        super().__post_init__()

    def init(self, start: Vector | Sequence[Vector]) -> MirrorState:
        blocks = blocks_of("MirrorDescent", self.problem, start)
        return MirrorState(self.problem, blocks, 0, True, tuple(mirror(block, self.q) for block in blocks), self.q)

    def step(self, state: DescentState) -> MirrorState:
        assert isinstance(state, MirrorState)
        t = state.t + 1
        moves = zip(state.mirrors, self.step_rule.lengths(state, t), state.descent, state.sizes, strict=True)
        mirrors = tuple(block + length * (down.array / (size or 1.0)) for block, length, down, size in moves)
        blocks = tuple(mirror(block, conjugate(self.q)) for block in mirrors)
        moved = not all(map(np.array_equal, mirrors, state.mirrors))
        return MirrorState(self.problem, blocks, t, moved, mirrors, self.q)
