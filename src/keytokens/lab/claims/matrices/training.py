"""Training attention by a matrix: which max-margin matrix W and K Q' find, and how often the best tokens.

Under a ReLU head, f = 1'relu(V'r) of the pooled token r, |V| = 1, attention may end on several tokens of an input, and
one token of an input need not be best, since the head bends.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np

from ....base.errors import NotSeparable
from ....model.ragged import Bags, Vector
from ...descent.stack import Stack, softmax_first
from ...endings import Endings
from ...problems.geometry import misalignment
from ...problems.logits import EPSILON
from ...problems.losses import Logistic
from ...problems.problem import Problem
from ...selection import SATURATED
from ...svm.matrix import MultiToken, attended_sets, matrix_problem, multi_token_svm, solve_matrix
from ...svm.solution import NotSolved
from ..claim import Counter, Hypothesis, claim
from ..instances import cross_spheres, few_tokens, linear_start, more_tokens, on_sphere, sphere_ends
from .margins import OURS, PAPER, Wanted, best_tokens, rank_of

# Training: W and (K, Q) ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Training:
    """m problems of one shape, and starts for W and for the factors."""

    problems: tuple[Problem, ...]
    W: Vector  # (m, d, e)
    K: Vector
    Q: Vector
    steps: int = 1000
    eta: float = 0.2

    @cached_property
    def ends(self) -> tuple[Vector, Vector]:
        """W and K Q' after so many steps, (m, d e) each."""
        trials = Stack.of(self.problems)
        p = trials.descend(self.steps, self.eta, start=self.W.reshape(len(trials), -1))
        K, Q = trials.descend_factors(self.steps, self.eta, self.K, self.Q)
        return p, (K @ Q.transpose(0, 2, 1)).reshape(p.shape)

    @cached_property
    def targets(self) -> tuple[list[Wanted], list[Wanted]]:
        """What each run selects."""
        trials = Stack.of(self.problems)
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
        trials = Stack.of(self.problems)
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


def _planar(one: Problem, far: bool = False) -> Training:
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


# Several tokens under a ReLU head -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Ended:
    """A run that has decided, and 1 - cos of W, at the recorded steps, to three predictions of its direction."""

    seed: int
    tokens: int  # that keep attention, all inputs together
    one: Vector  # to the max-margin matrix of the one token with most attention
    direction: Vector  # to W_dir of all tokens that keep attention
    both: Vector  # to W_fin + R W_dir, R fitted to the last W


def draw_heads(seeds: range, n: int, T: int, d: int) -> tuple[Stack, Vector, Vector]:
    """Random problems, their queries (m, n, d), and starts (m, d d); not all labels are +1."""
    drawn = [_draw(np.random.default_rng([d, seed]), n, T, d) for seed in seeds]
    values, queries, labels, V, start = (np.stack(part) for part in zip(*drawn, strict=True))
    return Stack.under_relu(values, queries, labels, V, Logistic()), queries, start.reshape(len(drawn), -1)


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
    path = [start + np.einsum("mj,mkj->mk", y - first, basis) for y in small.path(at, eta, first, EPSILON)]
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


def _of_another(seed: int) -> Shares:
    rng = np.random.default_rng(seed)
    one = _draw_shares(rng)
    while all(len(tokens) == 1 for tokens in one.sets):
        one = _draw_shares(rng)
    return replace(one, shares=one.logits(one.W + on_sphere(rng, one.W.size).reshape(one.W.shape)))


@claim(
    "fu.finite-part",
    says="The finite part of a matrix W, made from its own shares of attention, is the projection of W on the rows "
    "that tie the kept tokens; it is orthogonal to the direction, so that finite part and fitted direction are never "
    "farther from W than any multiple of the direction alone.",
    source="keytokens",
    tolerance=1e-8,
    hypotheses=(Hypothesis[Shares]("the shares are those of W", lambda x: x.own),),
    draw=_draw_shares,
    seeds=60,
    counters=(Counter("the shares of another matrix", "the shares are those of W", lambda: _of_another(0)),),
)
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


@dataclass(frozen=True)
class Sample:
    """Random problems under ReLU heads in d dimensions."""

    d: int
    draws: int

    @property
    def runs(self) -> list[Ended]:
        """Those that keep several tokens of an input."""
        return [one for one in _endings(self.d, self.draws) if one.tokens > 3]


@cache
def _endings(d: int, draws: int) -> list[Ended]:
    return list(ended_runs(range(draws), 3, 4, d, 0.1, (2001,)))


ENOUGH_RUNS = Hypothesis[Sample]("ten runs or more keep several tokens of an input", lambda x: len(x.runs) >= 10)


@claim(
    "fu.several",
    says="Under ReLU heads, where runs end on several tokens of an input, direction and finite part predict W better "
    "than the max-margin matrix of one token an input: in the mean 1 - cos is less than half as large.",
    source=OURS,
    tolerance=0.0,
    hypotheses=(ENOUGH_RUNS,),
    known=(lambda: Sample(4, 125), lambda: Sample(6, 125)),
    notes="The formula is the paper's proposal; that it halves the distance is what is seen here.",
)
def _mean_gain(sample: Sample) -> float:
    """Mean 1 - cos to the prediction minus 1/2 of that to the max-margin matrix of one token an input."""
    return float(np.mean([one.both[-1] - one.one[-1] / 2 for one in sample.runs]))
