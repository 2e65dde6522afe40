"""Training attention by a matrix: which max-margin matrix W and K Q' find, and what W keeps of several tokens."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

from ....base.errors import NotSeparable
from ....model.ragged import Bags, Vector
from ....training.loop import Status, run
from ...descent.flow import Flow, FlowState
from ...problems.geometry import misalignment
from ...problems.heads import Quadratic
from ...problems.losses import Logistic
from ...problems.problem import Problem
from ...svm.matrix import MultiToken, attended_sets, multi_token_svm, solve_matrix
from ...svm.nuclear import solve_nuclear
from ...svm.solution import NotSolved
from ..claim import Counter, Hypothesis, claim
from ..instances import as_one_long_p, cross_spheres, on_sphere
from ..max_margin.assumptions import Local, is_clear, leaning, settles
from ..max_margin.cones import unsettled
from .margins import OURS, PAPER, Wanted, rank_of

# Training: W and (K, Q) ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Trained:
    """The flow of W, or of both factors of W = K Q', from a start; and the norm in which its limit is looked for."""

    problem: Problem
    start: tuple[Vector, ...]  # W, or K and Q
    measured: str  # "frobenius" or "nuclear"

    @property
    def own(self) -> str:
        """The norm that belongs to what is trained: (|K|^2 + |Q|^2)/2 is at least |K Q'|_*, and may attain it."""
        return "nuclear" if len(self.start) == 2 else "frobenius"

    @cached_property
    def end(self) -> tuple[Status, FlowState]:
        two = self.own == "nuclear"
        problem, far = (self.problem.factors(self.start[0].shape[1]), 1e4) if two else (self.problem, 1e6)
        flow = Flow(problem, far, growth=1e3, tolerance=1e-4, most_evaluations=1000)
        found = run(flow, self.start, 20)
        return found.status, found.state

    @property
    def W(self) -> Vector:
        blocks = self.end[1].blocks
        return blocks[0] @ blocks[1].T if len(blocks) == 2 else blocks[0]

    @cached_property
    def target(self) -> Wanted:
        """Both solutions for what the run selects."""
        return Wanted(self.problem.values, self.problem.queries, self.end[1].reading.selection)

    def solution(self, norm: str, by: float = 1.0) -> Vector:
        rows = leaning(self.target.problem, by)
        return (solve_nuclear(rows) if norm == "nuclear" else solve_matrix(rows)).W

    @cached_property
    def local(self) -> Local:
        return Local(as_one_long_p(self.problem), self.target.selection)


def _draw_trained(rng: np.random.Generator, two: bool | None = None) -> Trained:
    """Runs that arrive, and whose two solutions differ; for the factors two inputs of two tokens in the plane."""
    while True:
        both = bool(rng.integers(2)) if two is None else two
        n, T, d = (2, 2, 2) if both else (int(rng.integers(2, 4)), int(rng.integers(2, 4)), 3)
        problem = cross_spheres(rng, n, T, d)
        best = Local(as_one_long_p(problem), problem.values.argmax(problem.scores))
        if both and not (best.judged is not None and is_clear(best.optimum.solution)):
            continue
        start = tuple(rng.normal(size=(2, 2, 2))) if both else (rng.normal(size=(d, d)),)
        x = Trained(problem, start, "nuclear" if both else "frobenius")
        if all(hypothesis.holds(x) for hypothesis in (ARRIVED, LOCALLY, DISTINCT)):
            return x


def _narrow() -> Trained:
    """One column, where the nuclear solution of the best tokens has rank two; three inputs of two tokens."""
    rng = np.random.default_rng(0)
    while True:
        problem, start = cross_spheres(rng, 3, 2, 2), tuple(3 * rng.normal(size=(2, 2, 1)))
        best = Wanted(problem.values, problem.queries, problem.values.argmax(problem.scores))
        if best.nuclear is None or best.nuclear.rank.relative < 2:
            continue
        x = Trained(problem, start, "nuclear")
        if all(hypothesis.holds(x) for hypothesis in (ARRIVED, LOCALLY, DISTINCT)) and not ENOUGH_COLUMNS.holds(x):
            return x


ARRIVED = Hypothesis[Trained]("the flow gets far", lambda x: x.end[0] is Status.FAR_ENOUGH)
LOCALLY = Hypothesis[Trained](
    "the selected tokens have clearly better scores than those on the margin",
    lambda x: x.local.is_locally_optimal and x.local.optimum.gap > 0.05 and is_clear(x.local.optimum.solution),
)
DISTINCT = Hypothesis[Trained](
    "the two solutions differ", lambda x: misalignment(x.solution("frobenius"), x.solution("nuclear")) > 1e-3
)
OWN = Hypothesis[Trained]("the norm is Frobenius for W, nuclear for both factors", lambda x: x.measured == x.own)
ENOUGH_COLUMNS = Hypothesis[Trained](
    "the factors have as many columns as the nuclear solution has rank",
    lambda x: len(x.start) == 1 or x.target.nuclear is None or x.start[0].shape[1] >= x.target.nuclear.rank.relative,
)


@claim(
    "fu.norms",
    says="Gradient flow on W turns to the Frobenius solution of what it selects; on both factors of W = K Q' it turns "
    "K Q' to the nuclear solution.",
    source=PAPER + "abstract",
    # What the flow has across its ray is within the logarithms of attention, about 14 margins at 1e-6: beside the
    # 1e4 of the factors 1 - cos is below (14/1e4)^2.
    tolerance=2e-6,
    constant="the 1 by which each selected token is to stand above the others: of the first",
    hypotheses=(ARRIVED, LOCALLY, DISTINCT, OWN, ENOUGH_COLUMNS),
    draw=_draw_trained,
    seeds=24,
    counters=(
        Counter(
            "W beside the nuclear solution",
            OWN.says,
            lambda: replace(_draw_trained(np.random.default_rng(0), two=False), measured="nuclear"),
        ),
        Counter(
            "both factors beside the Frobenius solution",
            OWN.says,
            lambda: replace(_draw_trained(np.random.default_rng(0), two=True), measured="frobenius"),
        ),
        Counter("factors of one column", ENOUGH_COLUMNS.says, _narrow),
    ),
    notes="The abstract speaks of regularisation paths; that the flow goes there as well is what is seen here.",
)
def _off_the_solution(x: Trained, by: float = 1.0) -> float:
    """1 - cos to the solution in the norm that is measured."""
    return misalignment(x.W, x.solution(x.measured, by))


# Several tokens under a head that rewards sharing --------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Sharing:
    """A head v'r - weight |r|^2 and labels +1; a start; shares of attention that are said to be the best."""

    problem: Problem
    start: Vector
    shares: tuple[Vector, ...]  # of each input
    sets: tuple[tuple[int, ...], ...]  # the tokens with a share
    margins: tuple[Vector, ...]  # by how much a little attention on each other token loses, to first order

    @cached_property
    def W(self) -> Vector:
        """After a time of 1e13: attention off the sets falls like 1/t.

        A token that the start has put far behind waits there until t = exp(margin), 1e9 at times, and settles then.
        """

        def down(t: float, w: Vector) -> Vector:
            W = (w.reshape(self.start.shape),)
            return self.problem.descent(self.problem.read(W), W)[0].plain.ravel()

        found = solve_ivp(down, (0.0, 1e13), self.start.ravel(), method="BDF", rtol=1e-8, atol=1e-10)
        return np.asarray(found.y[:, -1].reshape(self.start.shape), np.float64)

    @property
    def kept(self) -> tuple[set[int], ...] | None:
        attended = attended_sets(self.problem.values, self.problem.read((self.W,)).attention)
        return None if attended is None else tuple(attended)

    @cached_property
    def several(self) -> MultiToken:
        with np.errstate(divide="ignore"):
            shares = np.log(np.concatenate(self.shares))
        return multi_token_svm(self.problem.values, self.problem.queries, self.sets, shares)


def best_shares(X: Vector, head: Any) -> tuple[Vector, tuple[int, ...], Vector]:
    """The shares s >= 0, sum s = 1, with the largest v'X's - weight |X's|^2; tokens with a share; losses of the others.

    On the right set the slopes of its tokens are equal and above all others: two linear equations for each set.
    """
    for size in range(1, len(X) + 1):
        for one in map(list, itertools.combinations(range(len(X)), size)):
            system = np.ones((size + 1, size + 1))
            system[:size, :size], system[size, size] = 2 * head.weight * X[one] @ X[one].T, 0.0
            shares = np.zeros(len(X))
            shares[one] = np.linalg.lstsq(system, np.append(X[one] @ head.v, 1.0), rcond=None)[0][:size]
            slopes = X @ head.gradient(X.T @ shares)
            losses = slopes[one].mean() - np.delete(slopes, one)
            if shares[one].min() > 0 and losses.min(initial=1.0) > 0 and np.ptp(slopes[one]) < 1e-9:
                return shares, tuple(one), losses
    raise AssertionError("a concave function on a simplex has a maximum")


def _draw_sharing(rng: np.random.Generator) -> Sharing:
    """Two inputs of three tokens, some of which share; none hangs by a thread."""
    while True:
        x, z = rng.normal(size=(2, 3, 3)), on_sphere(rng, 2, 3)
        head = Quadratic(rng.normal(size=3), rng.uniform(0.2, 1))
        shares, sets, losses = zip(*(best_shares(one, head) for one in x), strict=True)
        if not 2 <= max(map(len, sets)) < 3 or min(s[s > 0].min() for s in shares) < 0.05:
            continue
        if min(float(loss.min()) for loss in losses) < 0.1:
            continue
        problem = Problem.under(Bags.of(x), z, np.ones(2), head)
        drawn = Sharing(problem, 0.3 * rng.normal(size=(3, 3)), shares, sets, losses)
        try:
            if settles(drawn.several.direction, power=0.3) and KEEPS.holds(drawn):
                return drawn
        except (NotSeparable, NotSolved):
            continue


def _even() -> Sharing:
    one = _draw_sharing(np.random.default_rng(0))
    even = (np.where(shares > 0, 1 / np.count_nonzero(shares), 0.0) for shares in one.shares)
    return replace(one, shares=tuple(even))


KEEPS = Hypothesis[Sharing](
    "the run keeps the tokens that should share, and no other",
    lambda x: x.kept == tuple(map(set, x.sets)),
)
BEST = Hypothesis[Sharing](
    "no other shares of attention are better under the head",
    lambda x: all(
        np.allclose(best_shares(x.problem.values[i], x.problem.head)[0], shares, atol=1e-9)
        for i, shares in enumerate(x.shares)
    ),
)


@claim(
    "fu.finite-part",
    says="Trained under a head that rewards sharing, W keeps several tokens of an input. Along the rows that tie them "
    "it comes to the shortest matrix with the best shares, W_fin; along the others it grows in the direction W_dir: "
    "tight logits stand at t + log(weight/multiplier), weight = share |loss'| (what attention there loses).",
    source=OURS,
    tolerance=2e-2,  # of logits: about 10 at first, which falls like t^-0.3 or faster until t = 1e13
    constant="the weight of the first row",
    hypotheses=(BEST, KEEPS),
    draw=_draw_sharing,
    seeds=24,
    counters=(Counter("even shares", BEST.says, _even),),
    notes="W_fin + R W_dir is the paper's formula. Here the shares are predicted without a run, from the head alone.",
)
def _off_the_parts(x: Sharing, by: float = 1.0) -> float:
    """W along the ties against W_fin, ten thousand times finer; the tight logits against their law.

    Attention among kept tokens settles like exp(-t), not like t^-0.3: what is left is the solver's 1e-8 of W.
    """
    several, W = x.several, x.W
    direction, names = several.direction, several.direction.problem.names
    assert names is not None
    ties = direction.problem.ties
    basis = np.linalg.svd(ties, full_matrices=False)[2][: rank_of(ties)]
    finite = basis.T @ (basis @ W.ravel()) - several.finite.ravel()
    values, head = x.problem.values, x.problem.head
    outputs = head.value(np.stack([values[i].T @ shares for i, shares in enumerate(x.shares)]))
    weights = [
        x.shares[i][x.sets[i][0]] * x.margins[i][np.searchsorted(np.setdiff1d(range(3), x.sets[i]), t)]
        for i, t in names.tolist()
    ]
    log_weights = np.log(weights) + Logistic().log_abs_slope(outputs[names[:, 0]])
    log_weights[np.flatnonzero(direction.lam)[0]] += np.log(by)
    return max(1e4 * float(np.abs(finite).max()), unsettled(direction, log_weights, W.ravel()))
