"""Around a locally optimal max-margin direction: the constants that hold in a cone, and points of the cone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..core.bags import Bags, Index, Vector
from ..core.directions import misalignment
from ..core.selection_loss import SelectionProblem
from ..errors import NotSeparable
from ..selection import Cone, LocalOptimum, cone, local_optimum
from .assumptions import LOSSES, slopes, step_limit

__all__ = ["Local", "draw_local", "near"]


@dataclass(frozen=True, eq=False)
class Local:
    """A problem and a selection, to be judged."""

    problem: SelectionProblem
    selection: Index

    @cached_property
    def optimum(self) -> LocalOptimum:
        """NotSeparable if no direction lets the selection win."""
        return local_optimum(self.problem.keys, self.problem.scores, self.selection)

    @property
    def direction(self) -> Vector:
        """p_mm of the selection, with its length."""
        return self.optimum.solution.p

    @property
    def is_locally_optimal(self) -> bool:
        try:
            return self.optimum.holds
        except NotSeparable:
            return False

    @property
    def all_have_neighbours(self) -> bool:
        """Whether each input has a token on the margin."""
        try:
            return bool(self.problem.keys.sum(self.optimum.neighbours.astype(np.float64)).all())
        except NotSeparable:
            return False

    @cached_property
    def cone(self) -> Cone:
        return cone(self.problem.keys, self.problem.scores, self.optimum)

    def holds_in_cone(self, p: Vector, radius: float) -> bool:
        """Whether cos(p, p_mm) >= 1 - mu and |p| >= radius, up to rounding."""
        narrow = misalignment(p, self.direction) <= self.cone.mu * (1 + 1e-6)
        return narrow and float(np.linalg.norm(p)) >= radius * (1 - 1e-9)

    @cached_property
    def gaps(self) -> Vector:
        """How far each neighbour's score is below that of its selected token."""
        keys, scores = self.problem.keys, self.problem.scores
        return (keys.spread(scores[keys.chosen(self.selection)]) - scores)[self.optimum.neighbours]

    @property
    def lower(self) -> float:
        """c: at least c times the mean attention off the selected tokens is the slope towards the cone's vectors."""
        return slopes(self.problem).least * float(self.gaps.min()) / 8

    @property
    def upper(self) -> float:
        """C: ... and at most C times."""
        return 2 * slopes(self.problem).largest * float(self.gaps.max())

    @property
    def reach(self) -> float:
        """The longest k_it - k_iu."""
        keys = self.problem.keys
        return max(float(np.linalg.norm(x[:, None] - x, axis=2).max()) for x in (keys[i] for i in range(len(keys))))

    @property
    def descent_radius(self) -> float:
        """From here on steps up to 1/L never leave the cone: at least the radius of the cone.

        max(2, 1/delta)/Theta log((2 - mu) C3 T / mu), where C3 is the larger of two constants. One makes it the radius
        of the cone; the other, C2/L with C2 = (1 - mu) reach^2 C^2 / (Theta c), pays for the length of the steps.
        """
        found = self.cone
        steps = (1 - found.mu) * self.reach**2 * self.upper**2 / (found.margin * self.lower) * step_limit(self.problem)
        tokens = int(self.problem.keys.sizes.max())
        far = max(2.0, 1 / found.delta) / found.margin * math.log((2 - found.mu) * steps * tokens / found.mu)
        return max(found.radius, far)


def near(rng: np.random.Generator, axis: Vector, mu: float, size: float) -> Vector:
    """A vector of a given size with cos(p, axis) = 1 - mu."""
    unit = axis / np.linalg.norm(axis)
    aside = rng.normal(size=len(axis))
    aside -= unit * (unit @ aside)
    length = np.linalg.norm(aside)
    if not length:  # in one dimension there is no other direction
        return size * unit
    return size * ((1 - mu) * unit + math.sqrt(mu * (2 - mu)) * aside / length)


def draw_local(rng: np.random.Generator, n: int, T: int, d: int) -> Local:
    """Random keys and a random selection with a neighbour in each input.

    It outscores its neighbours, by gaps of different sizes, but not always the other tokens.
    """
    loss = LOSSES[rng.integers(len(LOSSES))]
    while True:
        keys, selection = Bags.of(rng.normal(size=(n, T, d))), rng.integers(T, size=n)
        level = rng.normal(size=(n, 1))
        scores = (level + rng.normal(size=(n, T))).ravel()
        scores[keys.chosen(selection)] = level.ravel()
        found = Local(SelectionProblem(keys, scores, loss), selection)
        if not found.all_have_neighbours:
            continue
        neighbours = found.optimum.neighbours
        scores[neighbours] = keys.spread(level.ravel())[neighbours] - 10 ** rng.uniform(-1.5, 0.5, neighbours.sum())
        return Local(SelectionProblem(keys, scores, loss), selection)
