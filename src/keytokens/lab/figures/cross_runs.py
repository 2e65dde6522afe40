"""Random problems of cross-attention, a hundred at a time: where W and (K, Q) are at chosen steps, and how near."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...model.ragged import Index, Vector
from ..claims.instances import cross_spheres, linear_start
from ..problems.cross_attention import CrossProblem
from ..problems.cross_trials import cross_trials, descend_factors, softmax_first
from ..problems.geometry import misalignment
from ..problems.trials import Trials
from ..svm.matrix import matrix_problem, solve_matrix
from ..svm.nuclear import solve_nuclear
from .figure import Table, table

WIDE = 3.5  # standard deviations

Target = tuple[Vector, Vector, float, int, int]


def trained(count: int, n: int, T: int, d: int, eta: float, at: Sequence[int]) -> tuple[Table, Table]:
    """Every run at every step, W and K Q' one below the other; and one row a run about its end.

    W, K and Q begin where linear layers do by default.
    """
    problems = [cross_spheres(np.random.default_rng([0, seed]), n, T, d) for seed in range(count)]
    trials = cross_trials(problems)
    starts = [linear_start(np.random.default_rng([1, seed]), 3 * d, d).reshape(3, d, d) for seed in range(count)]
    W, K, Q = np.stack(starts, axis=1)
    matrices = [_of_W(trials, eta, at, W), _of_factors(trials, eta, at, K, Q)]
    parts, ends = [], []
    for factors, path in enumerate(matrices):
        selection = trials.logits(path[-1]).argmax(axis=0)
        targets = [_targets(*one) for one in zip(problems, selection, strict=True)]
        parts += [_rows(trials, factors, t, p, targets) for t, p in zip(at, path, strict=True)]
        ends.append(_ends(trials, factors, path[-1], targets))
    return _joined(parts), _joined(ends)


def _of_W(trials: Trials, eta: float, at: Sequence[int], start: Vector) -> list[Vector]:
    p, done, path = start.reshape(len(trials), -1), 0, []
    for t in at:
        p, done = trials.descend(t - done, eta, start=p), t
        path.append(p)
    return path


def _of_factors(trials: Trials, eta: float, at: Sequence[int], K: Vector, Q: Vector) -> list[Vector]:
    done, path = 0, []
    for t in at:
        (K, Q), done = descend_factors(trials, t - done, eta, K, Q), t
        path.append((K @ Q.transpose(0, 2, 1)).reshape(len(trials), -1))
    return path


def _targets(problem: CrossProblem, selection: Index) -> Target:
    """Frobenius and nuclear solution for what a run selects, the duality gap, and both ranks; it can be separated."""
    margins = matrix_problem(problem.values, problem.queries, selection)
    short = solve_matrix(margins)
    thin = solve_nuclear(margins, short)
    return short.p, thin.W.ravel(), thin.gap, short.rank.absolute, thin.rank.absolute


def _rows(trials: Trials, factors: int, t: int, p: Vector, targets: Sequence[Target]) -> Table:
    attention = softmax_first(trials.logits(p)).max(axis=0).mean(axis=1)
    pairs = list(zip(p, targets, strict=True))
    count = len(trials)
    return table(
        factors=np.full(count, factors),
        t=np.full(count, t),
        seed=np.arange(count),
        attention=attention,
        to_frobenius=[1 - misalignment(one, target[0]) for one, target in pairs],
        to_nuclear=[1 - misalignment(one, target[1]) for one, target in pairs],
    )


def _ends(trials: Trials, factors: int, p: Vector, targets: Sequence[Target]) -> Table:
    found = trials.judged(p)
    return table(
        factors=np.full(len(trials), factors),
        seed=np.arange(len(trials)),
        saturated=found.saturated,
        local=found.is_local,
        best=found.is_global,
        gap=[target[2] for target in targets],
        frobenius_rank=[target[3] for target in targets],
        nuclear_rank=[target[4] for target in targets],
    )


def _joined(parts: Sequence[Table]) -> Table:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def standard_error(x: Vector, other: float = np.inf) -> float:
    """Of the difference of a sample's mean and that of another sample of so many."""
    return float(x.std(ddof=1) * np.sqrt(1 / len(x) + 1 / other))
