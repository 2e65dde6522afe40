"""Self-attention trained by three step rules at once: who turns first."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..core.bags import Bags
from ..core.cross_attention import CrossProblem, outer_keys
from ..core.selection_loss import SelectionProblem
from ..optim import Descent, Normalised, Plain, Polyak, run
from ..optim.descents import DescentState, Step
from .assumptions import can_win, step_limit
from .known_matrices import on_sphere

__all__ = ["Race", "as_one_long_p", "on_the_best", "race_of", "self_attention"]


def self_attention(rng: np.random.Generator, n: int, T: int, d: int) -> CrossProblem:
    """Tokens on the sphere, the first of each input its query; one best token an input, the others of one score."""
    while True:
        values = Bags.of(on_sphere(rng, n, T, d))
        best = rng.integers(T, size=n)
        scores = np.where(np.arange(T) == best[:, None], 1.0, 0.0).ravel()
        problem = CrossProblem(values, values.rows[values.starts[:-1]], scores)
        if can_win(as_one_long_p(problem)):
            return problem


def as_one_long_p(problem: CrossProblem) -> SelectionProblem:
    """W as one long p."""
    return SelectionProblem(outer_keys(problem.values, problem.queries), problem.scores, problem.loss)


@dataclass(frozen=True, eq=False)
class Race:
    """Runs from W = 0 with equally many steps: gradient descent, normalised steps, Polyak steps."""

    problem: CrossProblem
    eta: float  # of gradient descent
    steps: int = 200

    @cached_property
    def long(self) -> SelectionProblem:
        return as_one_long_p(self.problem)

    @cached_property
    def ends(self) -> list[DescentState]:
        rules: list[Step] = [Plain(self.eta), Normalised(0.5), Polyak(1e3)]
        start = np.zeros(self.problem.matrix_shape)
        return [run(Descent(self.problem, rule), start, self.steps).state for rule in rules]


def race_of(rng: np.random.Generator, n: int, T: int, d: int) -> Race:
    problem = self_attention(rng, n, T, d)
    return Race(problem, step_limit(as_one_long_p(problem)))


def on_the_best(x: Race) -> bool:
    """Of the fast rules: gradient descent may not have arrived yet."""
    return all(np.array_equal(state.reading.selected, state.reading.best) for state in x.ends[1:])
