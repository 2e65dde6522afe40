"""The converse: paths in a cone keep away from a direction that is no locally optimal max-margin direction."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.bags import Bags
from ...core.selection_loss import SelectionProblem
from ...selection import in_general_position
from ...svm import MarginProblem, solve
from .. import known
from ..claim import Claim, Counter, Hypothesis
from ..converse import ConeAround, keeps_away
from ..leading import unit
from .balls import random_problem

__all__ = ["CLAIMS"]


def _cone_around(rng: np.random.Generator) -> ConeAround:
    """A random direction, the max-margin direction of a random selection, or one where two tokens tie for the lead."""
    problem = random_problem(rng, 2, 3)
    keys, d = problem.keys, problem.keys.dim
    kind, eps = int(rng.integers(3)), float(10 ** rng.uniform(-3, -1))
    for _ in range(100):
        q = unit(rng.normal(size=d))
        if kind == 1:
            q = unit(solve(MarginProblem.from_selection(keys, keys.argmax(keys.rows @ q))).p)
        if kind == 2:
            first, second = np.argsort(keys[0] @ q)[::-1][:2]
            apart = keys[0][first] - keys[0][second]
            q = unit(q - (apart @ q) / (apart @ apart) * apart)
        cone = ConeAround(problem, q, eps)
        ties = np.abs(cone.view.margin) < 1e-9
        if not cone.locally_optimal and ties == (kind == 2):
            break
    return cone


def _good_direction() -> ConeAround:
    """Fig 1(b) with its locally optimal direction (1, 0)."""
    return ConeAround(known.one_bag(0.0), known.LMM, 0.01)


def _doubled_token() -> ConeAround:
    """The token 0 twice, once with a higher and once with a much lower score: together they count as lower."""
    problem = SelectionProblem(Bags.of([[[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]]]), np.array([0.0, 1.0, -3.0]))
    return ConeAround(problem, np.array([1.0, 0.0]), 0.01)


def _tied_neighbour() -> ConeAround:
    """The neighbour ties in score, so the path turns to where the third token is furthest: the direction (2, -0.3)."""
    problem = SelectionProblem(Bags.of([[[1.0, 0.0], [0.0, 0.0], [-1.0, 0.3]]]), np.array([0.9, 0.9, 0.0]))
    return ConeAround(problem, unit(np.array([2.0, -0.3])), 0.01)


_NOT_OPTIMAL: Hypothesis[ConeAround] = Hypothesis(
    "q is no locally optimal max-margin direction", lambda cone: not cone.locally_optimal
)
_DISTINCT: Hypothesis[ConeAround] = Hypothesis(
    "the scores within each input are distinct",
    lambda cone: all(
        len(np.unique(cone.problem.scores[cone.problem.keys.bag == i])) == size
        for i, size in enumerate(cone.problem.keys.sizes)
    ),
)
_GENERAL_CONE: Hypothesis[ConeAround] = Hypothesis(
    "the keys are in general position", lambda cone: in_general_position(cone.problem.keys, cone.view.selection)
)


CLAIMS: tuple[Claim[Any], ...] = (
    Claim(
        id="mm.thm4",
        says="Around a direction that is no locally optimal max-margin direction, the best p of a cone within growing "
        "balls does not go that way: it stays bounded or takes another direction.",
        source="Max-Margin Token Selection, Theorem 4",
        hypotheses=(_NOT_OPTIMAL, _DISTINCT, _GENERAL_CONE),
        excess=keeps_away,
        tolerance=1e-9,  # with one input of two tokens the bound is attained
        draw=_cone_around,
        seeds=60,
        counters=(
            Counter("a locally optimal direction", _NOT_OPTIMAL.says, _good_direction),
            Counter("a token that is there twice", _GENERAL_CONE.says, _doubled_token),
            Counter("a neighbour that ties in score", _DISTINCT.says, _tied_neighbour),
        ),
        notes="By how much the path keeps away, and from which radius on, is ours.",
    ),
)
