"""What Figs 9 and 10 share: a thousand random problems for each dimension, and what became of each run."""

from __future__ import annotations

from functools import cache

import numpy as np

from ...model.ragged import Vector
from ...training.loop import Status, run
from ..claims.instances import spheres
from ..descent.flow import Flow
from ..problems.trials import Endings, Trials, on_span
from .figure import Table, table

DIMENSIONS = (2, 5, 10, 100, 300, 500)
STEPS = 1000
LONGER = 9000  # more steps for runs that have not settled
FAR = 2e4


def size(small: bool) -> int:
    """Trials for each dimension."""
    return 60 if small else 1000


def _trials(d: int, count: int) -> Trials:
    return Trials.of(on_span(spheres(seed, d)) for seed in range(count))


@cache
def _ended(d: int, count: int) -> tuple[Trials, Vector, Endings]:
    """Normalised descent from p = 0, steps of length 1."""
    trials = _trials(d, count)
    p = trials.descend(STEPS)
    return trials, p, trials.judged(p)


@cache
def outcomes(count: int) -> Table:
    """One row a run."""
    parts: list[Table] = []
    for d in DIMENSIONS:
        _, p, ends = _ended(d, count)
        parts.append(
            table(
                d=np.full(count, d),
                seed=np.arange(count),
                norm=np.linalg.norm(p, axis=1),
                attention=ends.attention,
                saturated=ends.saturated,
                local=ends.is_local,
                best=ends.is_global,
                separable=ends.separable,
                gap=ends.gap,
                one_minus_cos=ends.distance,
            )
        )
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


@cache
def leftovers(count: int) -> Table:
    """The runs that are saturated on a selection that is not locally optimal, and what lies ahead of them.

    The gradient flow says whether it is a minimum of the loss; the others are continued, to ten times as many steps.
    """
    parts = [_left(d, count) for d in DIMENSIONS]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _left(d: int, count: int) -> Table:
    trials, p, ends = _ended(d, count)
    left = np.flatnonzero(ends.saturated & ~ends.is_local)
    ahead = [run(Flow(trials[int(k)], FAR, tolerance=1e-6, most_evaluations=500), p[k], 100) for k in left]
    minimum = np.array([outcome.status is Status.STATIONARY for outcome in ahead], np.bool_)
    norm, gap = np.array([outcome.state.norm for outcome in ahead], np.float64), ends.gap[left]
    moving = left[~minimum]
    if len(moving):
        some = Trials(trials.keys[moving], trials.scores[moving], trials.loss)
        later = some.descend(LONGER, start=p[moving])
        norm[~minimum], gap[~minimum] = np.linalg.norm(later, axis=1), some.judged(later).gap
    start = np.linalg.norm(p[left], axis=1)
    return table(
        d=np.full(len(left), d),
        seed=left,
        norm=start,
        gap=ends.gap[left],
        in_minimum=minimum,
        norm_later=norm,
        gap_later=gap,
    )


@cache
def floored_cos(d: int, count: int) -> Vector:
    """cos to the max-margin direction of the selection where 1e-12 is added to the length of the gradient."""
    trials = _trials(d, count)
    ends = trials.judged(trials.descend(STEPS, floor=1e-12))
    return 1 - ends.distance[ends.is_local]


def difference(one: float, n_one: int, other: float, n_other: int) -> float:
    """3.5 standard deviations of the difference of two shares in samples of these sizes.

    >>> round(difference(0.5, 1000, 0.5, 1000), 3)
    0.078
    """
    pooled = (one * n_one + other * n_other) / (n_one + n_other)
    return float(3.5 * np.sqrt(pooled * (1 - pooled) * (1 / n_one + 1 / n_other)))
