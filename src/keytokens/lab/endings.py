"""What became of many runs: which selection each ended in, and whether that is locally and globally optimal."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..model.ragged import Index, Vector
from .descent.stack import Flags, Stack
from .problems.geometry import misalignment
from .problems.problem import Problem
from .selection import SATURATED, local_optimum, separable


@dataclass(frozen=True, eq=False)
class Endings:
    """Where m runs ended; what concerns a max-margin direction is nan for the runs that are not saturated."""

    attention: Vector  # (m,) on the selected tokens, mean over the bags
    is_best: Flags  # (m,) the selected tokens are those with the largest scores
    gap: Vector  # (m,) least score of a selected token above a neighbour of its max-margin direction
    distance: Vector  # (m,) 1 - cos to the max-margin direction of the selected tokens
    separable: Flags  # (m,) the best tokens can be selected at all

    @classmethod
    def of(cls, stack: Stack, p: Vector) -> Endings:
        a = stack.logits(p)
        selection = a.argmax(axis=0)
        attention = (1 / np.exp(a - a.max(axis=0)).sum(axis=0)).mean(axis=1)
        is_best = (selection == stack.scores.argmax(axis=2)).all(axis=1)
        saturated = attention >= SATURATED
        judged = [_judged(stack[k], p[k], selection[k]) if saturated[k] else (np.nan,) * 2 for k in range(len(stack))]
        gap, distance = np.array(judged).T
        # what is selected with a margin needs no other proof that it can be selected
        feasible = [bool(saturated[k] and is_best[k]) or _can_win(stack[k]) for k in range(len(stack))]
        return cls(attention, is_best, gap, distance, np.array(feasible))

    @cached_property
    def saturated(self) -> Flags:
        return self.attention >= SATURATED

    @cached_property
    def is_local(self) -> Flags:
        """Saturated on a locally optimal selection."""
        return self.saturated & (self.gap > 0)

    @cached_property
    def is_global(self) -> Flags:
        """... which is the globally optimal one."""
        return self.is_local & self.is_best


def _judged(problem: Problem, p: Vector, selection: Index) -> tuple[float, float]:
    """Score gap and 1 - cos to the max-margin direction of what p selects."""
    found = local_optimum(problem.keys, problem.scores, selection)  # p itself separates: never NotSeparable
    return found.gap, misalignment(p, found.solution.p)


def _can_win(problem: Problem) -> bool:
    return separable(problem.keys, problem.keys.argmax(problem.scores))
