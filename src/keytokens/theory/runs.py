"""Runs that the claims on descents look at: steps one by one, and the gradient flow in their stead far out."""

from __future__ import annotations

import numpy as np

from ..core.bags import Vector
from ..core.selection_loss import SelectionProblem
from ..optim import Descent, Flow, run
from ..optim.descents import Point, Step

__all__ = ["FAR", "descent_steps", "flow_path", "gaps_along", "longest_difference"]

FAR = 1e6  # a norm that a flow reaches, and no descent


def flow_path(problem: SelectionProblem, start: Vector, norm: float, growth: float = 1e3) -> list[Point]:
    """The gradient flow up to a norm, in long pieces; the path attracts, so its end has more digits than its steps."""
    seen: list[Point] = []
    run(Flow(problem, norm, growth=growth, tolerance=1e-4, most_evaluations=1000), start, 100, seen.append)
    return seen


def descent_steps(problem: SelectionProblem, rule: Step, start: Vector, steps: int) -> list[Point]:
    seen: list[Point] = []
    run(Descent(problem, rule), start, steps, seen.append)
    return seen


def gaps_along(problem: SelectionProblem, seen: list[Point]) -> Vector:
    """L - L* along a run, with all digits."""
    return np.array([float(problem.gap(state.reading).plain) for state in seen])


def longest_difference(problem: SelectionProblem) -> float:
    """D, the length of the longest k_best - k_t."""
    keys = problem.keys
    best = keys.chosen(keys.argmax(problem.scores))
    return float(np.linalg.norm(keys.rows - keys.spread(keys.rows[best]), axis=1).max())
