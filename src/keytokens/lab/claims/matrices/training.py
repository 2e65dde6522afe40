"""Attention by a matrix: which max-margin matrix training finds, as W and as K Q', and how often the best tokens."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ....model.ragged import Vector
from ...problems.cross_attention import CrossProblem
from ...problems.geometry import misalignment
from ...problems.trials import Endings, cross_trials, descend_factors, softmax_first, sphere_ends
from ...selection import SATURATED
from ..claim import Counter, Hypothesis, claim
from ..instances import cross_spheres, few_tokens, linear_start, more_tokens
from .margins import OURS, PAPER, Wanted, best_tokens

# Training: W and (K, Q) ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Training:
    """m problems of one shape, and starts for W and for the factors."""

    problems: tuple[CrossProblem, ...]
    W: Vector  # (m, d, e)
    K: Vector
    Q: Vector
    steps: int = 1000
    eta: float = 0.2

    @cached_property
    def ends(self) -> tuple[Vector, Vector]:
        """W and K Q' after so many steps, (m, d e) each."""
        trials = cross_trials(self.problems)
        p = trials.descend(self.steps, self.eta, start=self.W.reshape(len(trials), -1))
        K, Q = descend_factors(trials, self.steps, self.eta, self.K, self.Q)
        return p, (K @ Q.transpose(0, 2, 1)).reshape(p.shape)

    @cached_property
    def targets(self) -> tuple[list[Wanted], list[Wanted]]:
        """What each run selects."""
        trials = cross_trials(self.problems)
        first, second = (
            [
                Wanted(one.values, one.queries, chosen)
                for one, chosen in zip(self.problems, trials.logits(p).argmax(axis=0), strict=True)
            ]
            for p in self.ends
        )
        return first, second

    @property
    def saturated(self) -> bool:
        trials = cross_trials(self.problems)
        attention = (softmax_first(trials.logits(p)).max(axis=0).mean(axis=1).min() for p in self.ends)
        return all(one >= SATURATED for one in attention)

    @property
    def distinct(self) -> bool:
        """The two solutions differ by more than what a finite run leaves open."""
        return all(_apart(one) > 2e-2 for side in self.targets for one in side)


def _apart(one: Wanted) -> float:
    if one.frobenius is None or one.nuclear is None:
        return 0.0
    return misalignment(one.frobenius.W, one.nuclear.W)


def _sphere_training() -> Training:
    """Sixteen random problems, as large as the published ones."""
    rng = np.random.default_rng(0)
    problems = tuple(cross_spheres(rng, 6, 8, 10) for _ in range(16))
    W, K, Q = (np.stack([linear_start(rng, 10, 10) for _ in problems]) for _ in range(3))
    return Training(problems, W / 4, K / 4, Q / 4)


def _planar(one: CrossProblem, far: bool = False) -> Training:
    """A published problem; `far`: from far along the nuclear solution, where W stays for a long time."""
    W, K = np.zeros((1, 2, 2)), 0.1 * np.random.default_rng(0).normal(size=(1, 2, 2))
    thin = best_tokens(one).nuclear
    if far and thin is not None:
        W = 1e4 * thin.W[None] / np.linalg.norm(thin.W)
    return Training((one,), W, K, np.zeros((1, 2, 2)))


def _distances(p: Vector, one: Wanted) -> tuple[float, float]:
    if one.frobenius is None or one.nuclear is None:
        return np.inf, np.inf
    return misalignment(p, one.frobenius.W), misalignment(p, one.nuclear.W)


DECIDED = Hypothesis[Training]("both runs have saturated", lambda x: x.saturated)
DISTINCT = Hypothesis[Training]("the two solutions differ", lambda x: x.distinct)
NEAR = Hypothesis[Training](
    "the starts are small", lambda x: bool(max(np.linalg.norm(one, axis=(1, 2)).max() for one in (x.W, x.K, x.Q)) <= 1)
)


@claim(
    "fu.norms",
    says="Trained from a small start, W turns to the Frobenius solution of what it selects rather than to the nuclear "
    "one, and K Q', both factors by normalised steps, to the nuclear rather than to the Frobenius one, in the mean.",
    source=PAPER + "abstract",
    tolerance=0.0,
    hypotheses=(NEAR, DECIDED, DISTINCT),
    known=(lambda: _planar(few_tokens()), lambda: _planar(more_tokens()), _sphere_training),
    counters=(Counter("from far along the nuclear solution", NEAR.says, lambda: _planar(few_tokens(), far=True)),),
    notes="A statement about the limit, seen after a thousand steps, hence the mean: where both solutions have nearly "
    "the same nuclear norm, the factors may need more than ten thousand steps to show it.",
)
def _nearer(x: Training) -> float:
    """Distance to the own solution minus distance to the other one, mean of the runs, the larger of both kinds."""
    found = []
    for own, (ends, targets) in enumerate(zip(x.ends, x.targets, strict=True)):
        away = np.array([_distances(p, one) for p, one in zip(ends, targets, strict=True)])
        found.append(float(np.mean(away[:, own] - away[:, 1 - own])))
    return max(found)


# In more dimensions --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Growth:
    """Random problems with n inputs of T tokens, in few dimensions and in more."""

    n: int
    T: int
    few: int
    more: int
    runs: int = 16

    def ends(self, d: int) -> Endings:
        return sphere_ends(self.n, self.T, d, range(self.runs))


LARGER = Hypothesis[Growth]("the second space is larger", lambda x: x.more > x.few)
ROOMY = Hypothesis[Growth]("it has d >= max(T - 1, n) dimensions", lambda x: x.more >= max(x.T - 1, x.n))


@claim(
    "fu.global",
    says="Normalised descent on W from 0 ends on the best token of every input more often in more dimensions, where "
    "every selection can be separated; nine of ten runs that saturate, or more, are locally optimal.",
    source=OURS,
    tolerance=0.0,
    hypotheses=(LARGER, ROOMY),
    known=(lambda: Growth(5, 5, 2, 10), lambda: Growth(10, 5, 5, 20)),
    counters=(
        Counter("the smaller space second", LARGER.says, lambda: Growth(5, 5, 10, 5)),
        Counter("from two to three dimensions, with twenty inputs", ROOMY.says, lambda: Growth(20, 5, 2, 3)),
    ),
    notes="Shares of sixteen runs each, drawn by fixed seeds; the figure matrix-global has all sizes.",
)
def _no_growth(x: Growth) -> float:
    """How much less often the best tokens are found in more dimensions; by how much local ends fall short of 0.9."""
    before, after = x.ends(x.few), x.ends(x.more)
    local = after.is_local[after.saturated]
    return max(float(before.is_global.mean() - after.is_global.mean()), 0.9 - float(local.mean() if len(local) else 0))
