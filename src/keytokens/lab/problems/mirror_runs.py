"""Mirror descent on cross-attention: two inputs whose head and attention are trained at once, and many runs at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...base.checks import check_number
from ...model.ragged import Bags, Index, Vector
from ..svm.lq import solve_lq
from ..svm.problem import MarginProblem
from ..svm.solution import Solution
from .cross_attention import CrossJointProblem, CrossProblem
from .geometry import check_exponent, conjugate, divergence, mirror
from .selection_loss import Blocks, SelectionProblem
from .trials import Trials

STEPS = {1.75: 1500, 2.0: 2000, 3.0: 20_000}  # of the published runs, by exponent


def two_inputs() -> CrossJointProblem:
    """Published coordinates: three tokens each in the plane, labels 1 and -1, the first token is the query."""
    x = Bags.of([[[-2.7, 1.2], [1.4, 2.1], [1.3, -0.1]], [[0.4, -2.2], [-1.1, -0.4], [0.9, 0.1]]])
    return CrossJointProblem(x, x.rows[x.starts[:-1]], np.array([1.0, -1.0]))


@dataclass(frozen=True, eq=False)
class JointTarget:
    """The max-margin problems of what a joint run has selected: of the attention, and of the labels."""

    attention: Solution
    head: Solution
    q: float

    def divergences(self, blocks: Blocks) -> tuple[float, float]:
        """Of W and of v."""
        v, W = blocks
        return self._divergence(self.attention, W), self._divergence(self.head, v)

    def _divergence(self, target: Solution, point: Vector) -> float:
        """Bregman divergence from the direction of a point to that of a solution; 0 for a solution at 0."""
        return divergence(target.p, np.ravel(point), self.q) if target.p.any() else 0.0


def joint_target(problem: CrossJointProblem, selection: Sequence[int] | Index, q: float) -> JointTarget:
    """min |W|_q with the selected tokens 1 above the others, min |v|_q with their labels right by 1."""
    features = problem.values.rows[problem.values.chosen(selection, "joint_target")]
    return JointTarget(
        solve_lq(MarginProblem.from_selection(problem.keys, selection), q),
        solve_lq(MarginProblem.from_rows(problem.labels[:, None] * features), q),
        q,
    )


@dataclass(frozen=True, eq=False)
class Many:
    """Runs on several problems of one shape at once; a row of W (m, d e) is a matrix, row by row."""

    trials: Trials

    @classmethod
    def of(cls, problems: Sequence[CrossProblem]) -> Many:
        return cls(Trials.of(SelectionProblem(one.keys, one.scores, one.loss) for one in problems))

    def descend(self, q: float, at: Sequence[int], start: Vector, eta: float = 0.1, floor: float = 0.0) -> list[Vector]:
        """W after so many normalised steps of mirror descent, for each number of `at` (rising).

        With a floor eps, as published code has it, steps are eta |g|_r / (|g|_r + eps).
        """
        check_exponent("Many.descend", q)
        check_number("Many.descend", "eta", eta, 0.0, above=True)
        check_number("Many.descend", "floor", floor, 0.0)
        r, y, seen = conjugate(q), mirror(np.array(start, np.float64), q), []
        for t in range(max(at) + 1):
            W = mirror(y, r)
            if t in at:
                seen.append(W)
            unit, log_length = self.trials.descents(W)
            size = np.sum(np.abs(unit) ** r, axis=1) ** (1 / r)
            step = np.full(len(size), eta)
            if floor:
                log_size = log_length + np.log(size)
                step *= np.exp(log_size - np.logaddexp(log_size, np.log(floor)))
            y += (step / np.where(size > 0, size, 1.0))[:, None] * unit
        return seen

    def targets(self, W: Vector, exponents: Sequence[float]) -> list[list[Solution]]:
        """For each run, the max-margin solutions of the tokens that it selects, one an exponent."""
        selections = self.trials.logits(W).argmax(axis=0)
        problems = [MarginProblem.from_selection(self.trials[k].keys, row) for k, row in enumerate(selections)]
        return [[solve_lq(problem, q) for q in exponents] for problem in problems]


def divergences(targets: list[list[Solution]], W: Vector, q: float) -> Vector:
    """(m, exponents) from each W to each of its targets, all in the geometry of the run's own exponent q."""
    return np.array([[divergence(one.p, w, q) for one in row] for row, w in zip(targets, W, strict=True)])
