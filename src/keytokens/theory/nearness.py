"""How far a minimum on a ball can be from the max-margin direction: proved from its loss alone, whoever found it.

Let O_i be the sets of best tokens, q_i the attention outside of O_i and m_i = max_O k'p - max_outside k'p. Then
L - L* >= least q_max               least = (least |loss'|) (least score gap to the outside) / n with a linear head
q_i >= 1/(1 + |O_i| exp(m_i))
so a small loss means a large margin m = min_i m_i >= M. Where |p| <= R, p / M is a feasible point, of length at most
R / M, of the max-margin problem of some choice of winners. If p_mm is the shortest one of that choice, p'p_mm >= M
|p_mm|^2 (p_mm is the projection of 0), that is 1 - cos(p, p_mm) <= 1 - M |p_mm| / R. The minimum on the ball has the
least loss, so this holds for it with the loss of any point at all: no search for a global minimum has to be trusted.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..core.bags import Bags, Vector
from ..core.directions import misalignment
from ..core.selection_loss import SelectionProblem
from ..errors import NotSeparable
from ..svm import MarginProblem, MarginSolution, solve
from .assumptions import slopes

__all__ = ["Limit", "least_margin"]


def least_margin(log_outside: float, winners: int) -> float:
    """m >= log((1/q - 1)/|O|) where the attention outside of |O| winners is q; -inf for q >= 1.

    >>> round(least_margin(math.log(1 / 4), 1), 12) == round(math.log(3), 12)
    True
    """
    if log_outside >= 0:
        return -math.inf
    return -log_outside + math.log(-math.expm1(log_outside)) - math.log(winners)


@dataclass(frozen=True, eq=False)
class Limit:
    """Where the minima of L on balls go, when L - L* >= exp(log_least) q_max."""

    keys: Bags
    sets: Sequence[Sequence[int]]
    log_least: float

    @classmethod
    def of(cls, problem: SelectionProblem) -> Limit:
        """Of one best token a bag, the first of those that tie: then nothing is proved."""
        keys, scores = problem.keys, problem.scores
        best = keys.argmax(scores)
        gaps = keys.spread(scores[keys.chosen(best)]) - scores
        gaps[keys.chosen(best)] = math.inf
        least = slopes(problem).least * float(gaps.min()) / len(keys)
        return cls(keys, [[int(t)] for t in best], math.log(least) if least > 0 else -math.inf)

    @cached_property
    def solutions(self) -> list[MarginSolution]:
        """The max-margin solution of every choice of winners that has one, shortest first."""
        found = []
        for winners in itertools.product(*self.sets):
            try:
                found.append(solve(self._rows(winners)))
            except NotSeparable:
                continue
        return sorted(found, key=lambda one: one.norm)

    def _rows(self, winners: Sequence[int]) -> MarginProblem:
        """Winners 1 above the tokens outside their sets."""
        keys = self.keys
        parts = [keys[i][w] - np.delete(keys[i], list(self.sets[i]), axis=0) for i, w in enumerate(winners)]
        return MarginProblem.from_rows(np.concatenate(parts))

    @property
    def shortest(self) -> MarginSolution:
        return self.solutions[0]

    @property
    def proves(self) -> bool:
        """Whether the loss says anything of the attention outside the sets."""
        return self.log_least > -math.inf

    def misalignment(self, p: Vector) -> float:
        """1 - cos to the nearest shortest solution."""
        return min(misalignment(p, target) for target in self.targets())

    @property
    def most_winners(self) -> int:
        return max(map(len, self.sets))

    def proved_margin(self, log_gap: float) -> float:
        """The margin of every p with log(L - L*) at most this."""
        return least_margin(log_gap - self.log_least, self.most_winners)

    def proved_misalignment(self, radius: float, log_gap: float) -> float:
        """1 - cos to the nearest shortest solution, of every p in the ball with log(L - L*) at most this; 2 if open."""
        margin = self.proved_margin(log_gap)
        if margin <= 0:
            return 2.0
        longest = radius / margin
        possible = [one for one in self.solutions if one.norm <= longest * (1 + 1e-12)]
        if any(one.norm > self.shortest.norm * (1 + 1e-9) for one in possible):
            return 2.0  # another choice of winners could still be the one
        return 1 - margin * self.shortest.norm / radius

    def log_floor(self, radius: float) -> float:
        """No p in the ball has a smaller log(L - L*): its margin is at most R / |p_mm|."""
        return self.log_least - float(np.logaddexp(0.0, math.log(self.most_winners) + radius / self.shortest.norm))

    def targets(self) -> list[Vector]:
        """The shortest solutions, several where norms tie."""
        return [one.p for one in self.solutions if one.norm <= self.shortest.norm * (1 + 1e-9)]
