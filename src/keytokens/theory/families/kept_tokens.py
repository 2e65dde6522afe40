"""Attention by a matrix that keeps several tokens of an input: the finite part of W beside its direction."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np

from ...core.bags import Bags, Vector
from ...svm import MultiToken, multi_token_svm
from ..claim import Claim, Counter, Hypothesis
from ..known_matrices import cross_spheres, on_sphere
from ..several_tokens import Ended, ended_runs
from .matrix_margins import OURS, rank_of

__all__ = ["CLAIMS"]


@dataclass(frozen=True, eq=False)
class Shares:
    """A matrix W, the sets of tokens that are to keep attention, and their shares under some W (its own, if true)."""

    values: Bags
    queries: Vector
    sets: tuple[tuple[int, ...], ...]
    W: Vector
    shares: Vector  # (N,) logits that the finite part is made from

    @cached_property
    def several(self) -> MultiToken:
        return multi_token_svm(self.values, self.queries, self.sets, self.shares)

    @property
    def own(self) -> bool:
        return bool(np.allclose(self.shares, self.logits(self.W), rtol=0, atol=1e-9))

    def logits(self, W: Vector) -> Vector:
        return np.einsum("td,td->t", self.values.rows, self.values.spread(self.queries @ W.T))


def _draw_shares(rng: np.random.Generator) -> Shares:
    """n <= d inputs whose sets can be kept, and a W of any size."""
    d = int(rng.integers(3, 6))
    n, T = int(rng.integers(1, d + 1)), int(rng.integers(2, d + 1))
    one = cross_spheres(rng, n, T, d)
    sets = tuple(tuple(sorted(rng.choice(T, rng.integers(1, T), replace=False).tolist())) for _ in range(n))
    W = 10 ** rng.uniform(-1, 2) * on_sphere(rng, d * d).reshape(d, d)
    drawn = Shares(one.values, one.queries, sets, W, np.zeros(0))
    return replace(drawn, shares=drawn.logits(W))


def _projection(x: Shares) -> float:
    """How far W_fin is from the projection of W on the ties, W_fin'W_dir, and what W_dir alone gets nearer."""
    several, size = x.several, float(np.linalg.norm(x.W))
    ties = several.direction.problem.ties
    basis = np.linalg.svd(ties, full_matrices=False)[2][: rank_of(ties)] if len(ties) else ties
    projected = (basis.T @ (basis @ x.W.ravel())).reshape(x.W.shape)
    direction = several.direction.W / several.direction.norm
    both = several.prediction(x.W)
    return max(
        float(np.linalg.norm(several.finite - projected)) / size,
        abs(float(np.vdot(several.finite, direction))) / size,
        float(np.linalg.norm(x.W - both)) / size - np.sqrt(max(0.0, 1 - (float(np.vdot(x.W, direction)) / size) ** 2)),
    )


def _of_another(seed: int) -> Shares:
    rng = np.random.default_rng(seed)
    one = _draw_shares(rng)
    while all(len(tokens) == 1 for tokens in one.sets):
        one = _draw_shares(rng)
    return replace(one, shares=one.logits(one.W + on_sphere(rng, one.W.size).reshape(one.W.shape)))


FINITE = Claim[Shares](
    id="fu.finite-part",
    says="The finite part of a matrix W, made from its own shares of attention, is the projection of W on the rows "
    "that tie the kept tokens; it is orthogonal to the direction, so that finite part and fitted direction are never "
    "farther from W than any multiple of the direction alone.",
    source="keytokens",
    excess=_projection,
    tolerance=1e-8,
    hypotheses=(Hypothesis[Shares]("the shares are those of W", lambda x: x.own),),
    draw=_draw_shares,
    seeds=60,
    counters=(Counter("the shares of another matrix", "the shares are those of W", lambda: _of_another(0)),),
)


@dataclass(frozen=True)
class Sample:
    """Random problems under ReLU heads in d dimensions."""

    d: int
    draws: int

    @property
    def runs(self) -> list[Ended]:
        """Those that keep several tokens of an input."""
        return [one for one in _ended(self.d, self.draws) if one.tokens > 3]


@cache
def _ended(d: int, draws: int) -> list[Ended]:
    return list(ended_runs(range(draws), 3, 4, d, 0.1, (2001,)))


def _mean_gain(sample: Sample) -> float:
    """Mean 1 - cos to the prediction minus 1/2 of that to the max-margin matrix of one token an input."""
    return float(np.mean([one.both[-1] - one.one[-1] / 2 for one in sample.runs]))


ENOUGH_RUNS = Hypothesis[Sample]("ten runs or more keep several tokens of an input", lambda x: len(x.runs) >= 10)

SEVERAL = Claim[Sample](
    id="fu.several",
    says="Under ReLU heads, where runs end on several tokens of an input, direction and finite part predict W better "
    "than the max-margin matrix of one token an input: in the mean 1 - cos is less than half as large.",
    source=OURS,
    excess=_mean_gain,
    tolerance=0.0,
    hypotheses=(ENOUGH_RUNS,),
    known=(lambda: Sample(4, 125), lambda: Sample(6, 125)),
    notes="The formula is the paper's proposal; that it halves the distance is what is seen here.",
)


CLAIMS: tuple[Claim[Any], ...] = (FINITE, SEVERAL)
