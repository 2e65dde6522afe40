"""Training under a ReLU head, where attention may end on several tokens: runs, and what predicts their end.

f = 1'relu(V'r) of the pooled token r, |V| = 1; one token of an input need not be best, since the head bends.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..core.bags import Bags, Vector
from ..core.directions import misalignment
from ..core.key_query import EPSILON
from ..core.margin_losses import Logistic
from ..errors import NotSeparable
from ..svm import NotSolved, attended_sets, matrix_problem, multi_token_svm, solve_matrix
from .cross_trials import HeadTrials, softmax_first
from .known_matrices import linear_start, on_sphere

__all__ = ["Ended", "draw_heads", "ended_runs"]


@dataclass(frozen=True, eq=False)
class Ended:
    """A run that has decided, and 1 - cos of W, at the recorded steps, to three predictions of its direction."""

    seed: int
    tokens: int  # that keep attention, all inputs together
    one: Vector  # to the max-margin matrix of the one token with most attention
    direction: Vector  # to W_dir of all tokens that keep attention
    both: Vector  # to W_fin + R W_dir, R fitted to the last W


def draw_heads(seeds: range, n: int, T: int, d: int) -> tuple[HeadTrials, Vector, Vector]:
    """Random problems, their queries (m, n, d), and starts (m, d d); not all labels are +1."""
    drawn = [_draw(np.random.default_rng([d, seed]), n, T, d) for seed in seeds]
    values, queries, labels, V, start = (np.stack(part) for part in zip(*drawn, strict=True))
    return HeadTrials.stacked(values, queries, labels, V, Logistic()), queries, start.reshape(len(drawn), -1)


def _draw(rng: np.random.Generator, n: int, T: int, d: int) -> tuple[Vector, ...]:
    V = rng.normal(size=(d, d))
    x, z = on_sphere(rng, n, T, d), on_sphere(rng, n, d)
    labels = rng.choice([-1.0, 1.0], n)
    while (labels > 0).all():
        labels = rng.choice([-1.0, 1.0], n)
    return x, z, labels, V / np.linalg.norm(V), linear_start(rng, d, d)


def ended_runs(seeds: range, n: int, T: int, d: int, eta: float, at: tuple[int, ...]) -> Iterator[Ended]:
    """The runs that end with every token either above 1e-3 or at most 1e-6 of attention, and with separable sets."""
    trials, queries, start = draw_heads(seeds, n, T, d)
    small, basis = trials.on_span()
    first = np.einsum("mk,mkj->mj", start, basis)
    y, path, done = first, [], 0
    for t in at:
        y, done = small.descend(t - done, eta, start=y, floor=EPSILON), t
        path.append(start + np.einsum("mj,mkj->mk", y - first, basis))
    logits = trials.logits(path[-1])
    attention = softmax_first(logits).transpose(1, 2, 0).reshape(len(trials), -1)
    for k, seed in enumerate(seeds):
        found = _ended(seed, trials.bags(k), queries[k], attention[k], [p[k] for p in path])
        if found is not None:
            yield found


def _ended(seed: int, bags: Bags, queries: Vector, attention: Vector, path: list[Vector]) -> Ended | None:
    sets = attended_sets(bags, attention)
    if sets is None:
        return None
    with np.errstate(divide="ignore"):
        shares = np.log(attention)
    try:
        several = multi_token_svm(bags, queries, sets, shares)
        single = solve_matrix(matrix_problem(bags, queries, bags.argmax(attention)))
    except (NotSeparable, NotSolved):
        return None
    last = path[-1].reshape(several.finite.shape)
    targets = (single.p, several.direction.p, several.prediction(last))
    one, direction, both = (np.array([misalignment(p, target) for p in path]) for target in targets)
    return Ended(seed, sum(map(len, sets)), one, direction, both)
