"""The regularisation path with the head fixed: where the best p on growing balls goes.

"For large R" is made explicit: how far a minimum on a ball can be from its limit is computed (`nearness`). That is
ours, the statement the paper's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.bags import Bags
from ...core.heads import HeadProblem
from ...core.selection_loss import SelectionProblem
from ...paths import PathPoint, regularisation_path
from .. import known
from ..assumptions import LOSSES, can_win, falls
from ..claim import Claim, Counter, Hypothesis
from ..nearness import Limit

__all__ = ["CLAIMS"]

NEAR, FAR, PROVED = 10.0, 1e4, 1e8  # radii, in units of |p_mm|


def random_problem(rng: np.random.Generator, least: int, most: int) -> SelectionProblem:
    """Up to three inputs with up to four tokens, `least` dimensions to `most`; Gaussian keys and scores, any loss."""
    n, T, d = int(rng.integers(1, 4)), int(rng.integers(2, 5)), int(rng.integers(least, most + 1))
    keys = Bags.of(rng.normal(size=(n, T, d)))
    return SelectionProblem(keys, rng.normal(size=n * T), LOSSES[int(rng.integers(len(LOSSES)))])


def off_proof(problem: SelectionProblem | HeadProblem, limit: Limit, path: Sequence[PathPoint]) -> float:
    """By how much the path leaves what is proved of every minimum; and what is not yet proved at the last radius.

    It is as near as proved, no higher than the ray of p_mm, no lower than any p can be; and log(L - L*) has rate 1.
    """
    size = limit.shortest.norm

    def log_gap(radius: float) -> float:
        """On the ray of p_mm."""
        return problem.gap(problem.read((radius * limit.shortest.p / size,))).log

    excesses = [limit.misalignment(at.p) - limit.proved_misalignment(at.radius, at.log_gap) for at in path]
    excesses += [(limit.log_floor(at.radius) - at.log_gap) / FAR for at in path]
    excesses += [(at.log_gap - log_gap(at.radius)) / FAR for at in path]
    end = PROVED * size
    rates = -limit.log_floor(end) / PROVED, -log_gap(end) / PROVED
    return max(*excesses, limit.proved_misalignment(end, log_gap(end)), *(abs(rate - 1) for rate in rates))


def _ball_path(problem: SelectionProblem) -> float:
    limit = Limit.of(problem)
    path = regularisation_path(problem, [NEAR * limit.shortest.norm, FAR * limit.shortest.norm], starts=2)
    away = limit.misalignment(path[-1].p)
    return max(away, off_proof(problem, limit, path)) if limit.proves else away


def _in_space(problem: SelectionProblem) -> SelectionProblem:
    """A problem of the plane, put into three dimensions: nothing changes, and no angles have to be scanned."""
    rows = np.column_stack([problem.keys.rows, np.zeros(len(problem.scores))])
    return SelectionProblem(problem.keys.with_rows(rows), problem.scores, problem.loss)


def _two_winners() -> SelectionProblem:
    """Tokens (-1, 0, 0) and (2, 0, 0) tie for the best: the path takes the second, whose margin is larger."""
    keys = Bags.of([[[-1.0, 0.0, 0.0], [2.0, 0.0, 0.0], [0.0, 0.0, 0.0]]])
    return SelectionProblem(keys, np.array([1.0, 1.0, 0.0]))


def _strict(problem: SelectionProblem) -> bool:
    top = problem.scores == problem.keys.spread(problem.keys.max(problem.scores))
    return int(top.sum()) == len(problem.keys)


_FALLS: Hypothesis[SelectionProblem] = Hypothesis("the loss falls strictly and its slope is Lipschitz", falls)
_STRICT: Hypothesis[SelectionProblem] = Hypothesis("each input has one best token", _strict)
_CAN_WIN: Hypothesis[SelectionProblem] = Hypothesis("the best tokens can be separated from the others", can_win)


CLAIMS: tuple[Claim[Any], ...] = (
    Claim(
        id="mm.thm1",
        says="With the head fixed, the best p in the ball of radius R turns to the max-margin direction of the best "
        "tokens as R grows, and log(L - L*) falls like -R / |p_mm|.",
        source="Max-Margin Token Selection, Theorem 1",
        hypotheses=(_FALLS, _STRICT, _CAN_WIN),
        excess=_ball_path,
        tolerance=1e-4,
        draw=lambda rng: random_problem(rng, 6, 8),  # so that most can be separated
        seeds=25,
        known=tuple(
            lambda make=make: _in_space(make())  # type: ignore[misc]
            for make in (lambda: known.one_bag(0.9), lambda: known.one_bag(0.0), known.two_limits, known.three_bags)
        ),
        counters=(Counter("two tokens tie for the best", _STRICT.says, _two_winners),),
        notes="The rate of the loss is ours, and so is the proof that every minimum on the ball is as near as said.",
    ),
)
