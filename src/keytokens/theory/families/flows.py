"""The flow on p with trained embeddings: that it diverges, where to, how fast; and when it selects what decides.

A limit is checked on the path itself: `follow` goes to |p| = 1e4 without losing the direction, and the max-margin
direction comes from a solver that knows nothing of the path.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.directions import misalignment
from ...core.selection_loss import VocabularyProblem
from ...errors import NotSeparable
from ...optim import Flow, Status, run
from ...optim.flow import FlowState
from ...svm import MarginProblem, MarginSolution, solve
from ..claim import Claim, Counter, Hypothesis
from ..multiclass import Classes, MulticlassProblem, multiclass_gradient, planted_classes, rival_leads
from ..planted import (
    Documents,
    Planted,
    alternative_loss,
    barrier,
    closed_form,
    loss_of_selection,
    planted,
    random_labels,
    sufficient_step,
)
from ..two_stage import (
    Run,
    Start,
    Step,
    first_step,
    follow,
    gaussian_start,
    ideal_start,
    indicator_direction,
    loss,
    second_stage,
    token_pull,
    token_pulls,
)

__all__ = ["CLAIMS"]

Array = NDArray[np.float64]
PAPER = "Trained Embeddings"
AFTER = "keytokens, after " + PAPER
FAR = (1e3, 1e4)  # norms where a path is looked at
LOOSE = 1e-5  # tolerance of a path: it is attracted by its limit, so errors do not grow
PIECES = 20.0  # length of a piece of a path beside the norm: long ones cost least


# --- the gradient ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Place:
    """Documents, embeddings and head, and a place p."""

    documents: Documents
    E: Array
    v: Array
    p: Array


def _place(rng: np.random.Generator) -> Place:
    n, V, d = int(rng.integers(2, 8)), int(rng.integers(2, 8)), int(rng.integers(1, 6))
    tokens = [rng.integers(0, V, rng.integers(1, 9)) for _ in range(n)]
    documents = Documents.of(tokens, rng.choice([-1.0, 1.0], n), V)
    return Place(documents, rng.normal(size=(V, d)), rng.normal(size=d), rng.normal(size=d))


def _p_gradient(at: Place) -> float:
    """Four roads: sum_s B_s E_s, B_s by pairs, the engine of the flow, central differences; and the part along v."""
    documents, E, v, p = at.documents, at.E, at.v, at.p
    B = token_pulls(documents, E, v, p)
    down = B @ E
    problem = VocabularyProblem(E, documents.counts, documents.labels, v)
    (engine,) = problem.descent(problem.read((p,)), (p,))
    pairs = [float(token_pull(documents, E, v, p, s).plain) for s in range(documents.V)]
    exact = max(np.abs(down - engine.plain).max(), np.abs(B - pairs).max(), abs(down @ v - _spread_of_values(at)))
    return float(max(exact / 1e-13, np.abs(down + _differences(at)).max() / 1e-8))


def _spread_of_values(at: Place) -> float:
    """(1/n) sum_i g_i y_i Var(b) under the attention, position by position."""
    total = 0.0
    for row, y in zip(at.documents.tokens, at.documents.labels, strict=True):
        a, b = at.E[row] @ at.p, at.E[row] @ at.v
        Q = np.exp(a - a.max()) / np.exp(a - a.max()).sum()
        total += y / (1 + np.exp(y * (Q @ b))) * (Q @ (b - Q @ b) ** 2)
    return total / len(at.documents)


def _differences(at: Place, h: float = 1e-3) -> Array:
    def value(p: Array) -> float:
        return loss(at.documents, at.E, p, at.v)

    steps = h * np.eye(len(at.p))
    return np.array(
        [
            (8 * (value(at.p + u) - value(at.p - u)) - value(at.p + 2 * u) + value(at.p - 2 * u)) / (12 * h)
            for u in steps
        ]
    )


# --- no finite stationary point --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Dominant:
    """A trained vocabulary, a token, and places p of all sizes."""

    step: Step
    token: int
    places: Array  # (m, d)

    @cached_property
    def holding(self) -> list[Array]:
        """For each document with the token: its other tokens."""
        rows = self.step.documents.tokens
        return [np.setdiff1d(row, [self.token]) for row in rows if self.token in row]

    @cached_property
    def leads(self) -> Array:
        """y b of the token less that of each token beside it, over all documents."""
        documents, b = self.step.documents, self.step.b
        holding = [i for i, row in enumerate(documents.tokens) if self.token in row]
        pairs = zip(holding, self.holding, strict=True)
        return np.concatenate([documents.labels[i] * (b[self.token] - b[others]) for i, others in pairs])


def _dominant(rng: np.random.Generator, irrelevant: bool = False) -> Dominant:
    """A completely positive token after one step; p of norms 1 to 1e4 (one straight away from it), and 0."""
    n, T, others = 2 * int(rng.integers(2, 10)), int(rng.integers(2, 6)), int(rng.integers(1, 6))
    data = planted(rng, n, T, 2, 2, others, mirrored=True)
    V = data.V
    step = first_step(data, gaussian_start(rng, V, V + 2 + int(rng.integers(0, 20))), float(rng.uniform(300, 900)))
    directions = rng.normal(size=(8, len(step.start.p)))
    directions[0] = -step.E[0]
    norms = np.append(10 ** rng.uniform(0, 4, 7), 0.0)
    places = directions / np.linalg.norm(directions, axis=1)[:, None] * norms[:, None]
    return Dominant(step, int(data.tokens[0][data.tokens[0] >= 4][0]) if irrelevant else 0, places)


def _log_least_pull(one: Dominant, p: Array) -> float:
    """log of a positive number that B_s cannot fall below at p, if s has the largest y b of every document it is in.

    Q_s Q_u >= exp(-2 |p| D)/T^2 with D the diameter of a document, and g >= sigma(-largest |b|).
    """
    E, b, documents = one.step.E, one.step.b, one.step.documents
    sizes = [np.linalg.norm(E[one.token] - E[others], axis=1).max() for others in one.holding if len(others)]
    diameter = 2 * max(sizes)
    force = -np.logaddexp(0, np.abs(b).max()) - np.log(len(documents))
    spread = -2 * diameter * np.linalg.norm(p) - 2 * np.log(documents.lengths.max())
    return float(force + spread + np.log(one.leads.max()))


def _divergence(one: Dominant) -> float:
    """log of that bound less log B_s, the largest over the places; inf where B_s is not positive.

    Near p = 0 also that the direction in which s alone has a logit sees B_s: q'(-grad) = B_s.
    """
    step, worst = one.step, -np.inf
    for p in one.places:
        pull = token_pull(step.documents, step.E, step.start.v, p, one.token)
        worst = max(worst, _log_least_pull(one, p) - pull.log if pull.sign > 0 else np.inf)
    q, _ = indicator_direction(step.E, one.token, [step.start.v, step.start.p])
    B = token_pulls(step.documents, step.E, step.start.v, step.start.p)
    seen = abs(q @ step.E.T @ B - B[one.token]) / np.abs(B).max()
    return float(max(worst, seen / 1e-8 - 1))


_LARGEST: Hypothesis[Dominant] = Hypothesis(
    "the token has the largest y b in every document that holds it, and a larger one than some token beside it",
    lambda one: bool(len(one.leads) and one.leads.min() >= 0 and one.leads.max() > 0),
)
_ROOM: Hypothesis[Dominant] = Hypothesis("d >= V + 2", lambda one: one.step.E.shape[1] >= one.step.documents.V + 2)


# --- the limit direction ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Frozen:
    """Embeddings that are trained and frozen, and a start of p."""

    documents: Documents
    E: Array
    v: Array
    start: Array
    norms: tuple[float, ...] = FAR
    tolerance: float = LOOSE

    @cached_property
    def run(self) -> Run:
        options = {"tolerance": self.tolerance, "growth": PIECES, "most_evaluations": 2500}
        return follow(self.documents, self.E, self.v, self.start, self.norms, **options)


def _frozen(rng: np.random.Generator) -> Frozen:
    """Planted documents, or documents without any structure and labels by coin."""
    if rng.random() < 0.5:
        documents: Documents = planted(rng, 8, 3, 2, 2, int(rng.integers(2, 5)))
    else:
        documents = random_labels(rng, 6, 3, 11)
    step = first_step(documents, gaussian_start(rng, documents.V, 64), float(rng.uniform(30, 150)))
    return Frozen(documents, step.E, step.start.v, step.start.p)


def _off_max_margin(one: Frozen) -> float:
    """1 - cos at the end in units of 1e-5; and in units of a fiftieth of what it was at a tenth of the norm."""
    near, far = one.run.misalignment(-2), one.run.misalignment(-1)
    return float(max(far / 1e-5, far / max(near / 50, 1e-10)) if np.isfinite(far) else np.inf)


def _arrived(one: Frozen) -> bool:
    return one.run.arrived


_FOLLOWED: Hypothesis[Frozen] = Hypothesis("the flow goes to infinity: it reaches the given norm", _arrived)


def _finite_minimum() -> Frozen:
    """Two documents with the same two tokens and opposite labels: the loss has a minimum at a finite p."""
    documents = Documents.of([[0, 1], [0, 1]], [1, -1], 2)
    return Frozen(documents, np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([2.0, -1.0]), np.array([3.0, 0.0]))


# --- ties ------------------------------------------------------------------------------------------------------------


def _tied(rng: np.random.Generator) -> Frozen:
    """Tokens 0 and 1 meet under both labels, and each beats all other tokens under its own label.

    On the way the tie must hold to exp(-|p| margin) or the path is lost in rounding: so norms stay small, and the
    direction is that of the chord between the last two, where the finite part of p cancels.
    """
    V = int(rng.integers(3, 6))
    tokens, labels = [[0, 1], [0, 1]], [1, -1]
    for other in range(2, V):
        tokens, labels = [*tokens, [0, other], [1, other]], [*labels, 1, -1]
    E = np.linalg.qr(rng.normal(size=(V + 2, V + 2)))[0][:V] + 0.2 * rng.normal(size=(V, V + 2))
    b = np.concatenate([[rng.uniform(0.5, 2), -rng.uniform(0.5, 2)], rng.uniform(-0.3, 0.3, V - 2)])
    v = np.linalg.lstsq(E, b, rcond=None)[0]
    return Frozen(Documents.of(tokens, labels, V), E, v, np.zeros(V + 2), (7.0, 10.0), 1e-6)


def _off_tied(one: Frozen) -> float:
    """1 - cos between the chord and the max-margin direction with the tie as an equality."""
    last, first = one.run.states[-1].p, one.run.states[-2].p
    ties = [[0, 1] if {0, 1} <= set(row.tolist()) else [row.min()] for row in one.documents.tokens]
    solution = solve(MarginProblem.from_vocabulary(one.run.problem.embeddings, one.documents.counts, ties))
    return misalignment(last - first, solution.p)


_BOTH_LABELS: Hypothesis[Frozen] = Hypothesis(
    "tokens 0 and 1 are all of two documents with opposite labels",
    lambda one: (
        {y for row, y in zip(one.documents.tokens, one.documents.labels, strict=True) if row.max() == 1} == {1.0, -1.0}
    ),
)


def _untied() -> Frozen:
    """The second of the two documents changes its label: nothing holds token 1 up any more."""
    one = _tied(np.random.default_rng(0))
    labels = one.documents.labels.copy()
    labels[1] = 1.0
    return replace(one, documents=replace(one.documents, labels=labels))


# --- rates -----------------------------------------------------------------------------------------------------------


def _converging(rng: np.random.Generator) -> Frozen:
    data = planted(rng, 8, 3, 2, 2, int(rng.integers(2, 5)), mirrored=bool(rng.random() < 0.5))
    step = first_step(data, gaussian_start(rng, data.V, 64), float(rng.uniform(50, 120)))
    return Frozen(data, step.E, step.start.v, step.start.p)


def _off_rates(one: Frozen) -> float:
    """The largest deviation of an exponent or a ratio from what it should be, at |p| = 1e4."""
    flow, solution = one.run, one.run.solution
    if solution is None:
        return np.inf
    reading, logs = flow.states[-1].reading, np.log(FAR[1] / FAR[0])
    angle = np.log(flow.misalignment(-2) / flow.misalignment(-1)) / logs - 2
    margin = np.log((1 - flow.margin_ratio(-2)) / (1 - flow.margin_ratio(-1))) / logs - 1
    excess = -reading.excess(reading.selected).log * solution.norm / flow.norm - 1
    clock = flow.norm / (solution.norm * flow.path["log_time"][-1]) - 1
    chosen = one.documents.counts.indices[reading.selected]
    limit = flow.loss - loss_of_selection(one.documents, one.E @ one.v, chosen.astype(np.intp))
    climbs = float(np.diff(flow.path["loss"]).max())
    return float(max(abs(angle), abs(margin), abs(excess), abs(clock), abs(limit) * 1e10, climbs * 1e10))


_ONE_EACH: Hypothesis[Frozen] = Hypothesis(
    "each document selects one token", lambda one: all(len(tokens) == 1 for tokens in one.run.sets)
)


def _told_apart(one: Frozen) -> bool:
    """At the nearer norm a loose row has a logit of 20 to spare, and a pulling row had the time to find its place."""
    solution = one.run.solution
    if solution is None:
        return False
    reach = one.norms[-2] / solution.norm
    loose, pulling = np.delete(solution.slack, solution.support), solution.lam[solution.lam > 0]
    return bool((loose * reach > 20).all() and (pulling / solution.norm**2 * reach > 1).all())


_TOLD_APART: Hypothesis[Frozen] = Hypothesis(
    "no token is nearly on the margin, or on it nearly without a multiplier", _told_apart
)


# --- the barrier -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Guarded:
    """Planted documents, a step, and where the flow starts."""

    data: Planted
    step: Step
    start: Array
    norms: tuple[float, ...] = (1e2, 1e3)

    @cached_property
    def run(self) -> Run:
        # forces of documents differ by exp(value), so the path is thinner here
        return second_stage(self.step, self.norms, self.start, tolerance=1e-6, growth=PIECES)

    @property
    def left_out(self) -> int:
        """Documents that do not select their important token."""
        pairs = zip(self.run.sets, self.data.important.tolist(), strict=True)
        return sum(token not in tokens for tokens, token in pairs)


def _guarded(rng: np.random.Generator) -> Guarded:
    """Steps about as large as the sufficient one, from p = 0 or from a Gaussian p."""
    data = planted(
        rng, 2 * int(rng.integers(2, 5)), int(rng.integers(2, 4)), 2, 2, int(rng.integers(2, 5)), mirrored=True
    )
    eta = float(rng.uniform(1.1, 1.5)) * sufficient_step(data)
    start = gaussian_start(rng, data.V, 4096)
    return Guarded(data, first_step(data, start, eta), start.p if rng.random() < 0.5 else 0 * start.p)


def _breaks_in(one: Guarded) -> float:
    """Documents without their important token; and, for any values, the barrier against the least of what one costs."""
    b = 3 * np.sin(1 + np.arange(one.data.V))
    costs = [
        np.logaddexp(0, -y * b[token]) / len(one.data)
        for row, y in zip(one.data.tokens, one.data.labels, strict=True)
        for token in row[one.data.kinds[row] == 0]
    ]
    return max(float(one.left_out), abs(barrier(one.data, b) - min(costs)))


_BELOW: Hypothesis[Guarded] = Hypothesis(
    "the loss at the start of the flow is below the barrier",
    lambda one: loss(one.data, one.step.E, one.start, one.step.start.v) < barrier(one.data, one.step.b),
)
_DIVERGES: Hypothesis[Guarded] = Hypothesis("the flow reaches the given norm", lambda one: one.run.arrived)


def _trapped(eta: float = 100.0, c: float = 4.0, seed: int = 0) -> Guarded:
    """Few, frequent negative tokens, and a start far along v: 5 positive tokens, 1 negative one."""
    rng = np.random.default_rng(seed)
    data = planted(rng, 20, 4, 5, 1, 8, mirrored=True)
    start = ideal_start(rng, data.V, data.V + 1)
    return Guarded(data, first_step(data, start, eta), c * start.v)


# --- exact forms -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Ideal:
    """Planted documents after one step from orthonormal embeddings that are orthogonal to v, p = 0."""

    data: Planted
    start: Start
    eta: float

    @cached_property
    def step(self) -> Step:
        return first_step(self.data, self.start, self.eta)

    @cached_property
    def solution(self) -> MarginSolution:
        return solve(MarginProblem.from_vocabulary(self.step.E, self.data.counts, self.data.important))


def _ideal(rng: np.random.Generator, share: float = 0.5, most: float = 100.0) -> Ideal:
    """Enough documents for every important token to meet every irrelevant one, mostly; eta up to `most`."""
    positives, negatives, others = int(rng.integers(1, 4)), int(rng.integers(1, 4)), int(rng.integers(2, 6))
    n = 40
    data = planted(rng, n, 8, positives, negatives, others, n_positive=round(share * n))
    start = ideal_start(rng, data.V, data.V + 1 + int(rng.integers(0, 5)))
    size = float(rng.uniform(0.5, 2))
    return Ideal(data, replace(start, v=size * start.v), float(rng.uniform(1, most)))


def _off_closed_form(one: Ideal) -> float:
    """p_*, its margin, its logits on both kinds of tokens and its part along v, against M/(K + M) and -K/(K + M)."""
    data, p = one.data, one.solution.p
    important = data.kinds != 0
    K, M = int(important.sum()), data.irrelevants
    form = (M * one.start.E[important].sum(axis=0) - K * one.start.E[~important].sum(axis=0)) / (K + M)
    logits = np.where(important, M, -K) / (K + M)
    return float(
        max(
            np.abs(p - form).max(),
            abs(one.solution.margin - np.sqrt(1 / K + 1 / M)),
            np.abs(one.step.E @ p - logits).max(),
            abs(p @ one.start.v),
        )
    )


def _off_unbalanced_form(one: Ideal) -> float:
    form = closed_form(one.data, one.start.E, one.start.v, one.eta)
    along = one.solution.p @ one.start.v / np.linalg.norm(one.start.v)
    logits = np.abs(one.step.E @ one.solution.p - form.logits).max()
    sizes = abs(along - form.along_v), abs(one.solution.margin - form.margin)
    return float(max(np.abs(one.solution.p - form.p).max(), logits, *sizes))


_ORTHONORMAL: Hypothesis[Ideal] = Hypothesis(
    "E_0 has orthonormal rows, orthogonal to v, and p_0 = 0",
    lambda one: bool(
        np.abs(one.start.E @ one.start.E.T - np.eye(one.data.V)).max() < 1e-12
        and np.abs(one.start.E @ one.start.v).max() < 1e-12
        and not one.start.p.any()
    ),
)
_MEET: Hypothesis[Ideal] = Hypothesis("every important token meets every irrelevant one", lambda one: one.data.cooccurs)
_EVEN: Hypothesis[Ideal] = Hypothesis("both labels are equally frequent", lambda one: one.data.labels.sum() == 0)
_SIGNS: Hypothesis[Ideal] = Hypothesis(
    "the multipliers of the form are not negative",
    lambda one: closed_form(one.data, one.start.E, one.start.v, one.eta).valid,
)


def _never_meet(share: float = 0.5) -> Ideal:
    """Only one irrelevant token beside each important one: most pairs never meet."""
    rng = np.random.default_rng(1)
    data = planted(rng, 8, 2, 2, 2, 5, n_positive=round(8 * share))
    return Ideal(data, ideal_start(rng, data.V, data.V + 1), 10.0)


def _gaussian() -> Ideal:
    rng = np.random.default_rng(2)
    data = planted(rng, 40, 8, 2, 2, 4)
    return Ideal(data, replace(gaussian_start(rng, data.V, 16), p=np.zeros(16)), 10.0)


def _large_step(rng: np.random.Generator) -> Ideal:
    """A mirrored set and a step just as large as is sufficient, up to 5 %."""
    n, T = 2 * int(rng.integers(2, 20)), int(rng.integers(2, 8))
    data = planted(rng, n, T, int(rng.integers(1, 4)), int(rng.integers(1, 4)), int(rng.integers(1, 9)), mirrored=True)
    start = ideal_start(rng, data.V, data.V + 1)
    v = float(rng.uniform(0.5, 2)) * start.v
    eta = float(rng.uniform(1, 1.05)) * sufficient_step(data, float(np.linalg.norm(v)))
    return Ideal(data, replace(start, v=v), eta)


def _above_barrier(one: Ideal) -> float:
    """L at the start of the flow over the barrier, less 1."""
    return loss(one.data, one.step.E, one.start.p, one.start.v) / barrier(one.data, one.step.b) - 1


_LARGE: Hypothesis[Ideal] = Hypothesis(
    "eta >= 2 T log(n / log 2) / (alpha_min |v|^2)",
    lambda one: one.eta >= sufficient_step(one.data, float(np.linalg.norm(one.start.v))),
)
_NEUTRAL: Hypothesis[Ideal] = Hypothesis(
    "irrelevant tokens have average signed frequency 0",
    lambda one: bool(np.abs(one.data.signed_frequency()[one.data.kinds == 0]).max() < 1e-15),
)


def _small_step() -> Ideal:
    """All alpha of one size: then the sufficient step is nearly necessary at p = 0."""
    rng = np.random.default_rng(0)
    data = planted(rng, 24, 4, 2, 2, 4, mirrored=True)
    return Ideal(data, ideal_start(rng, data.V, data.V + 1), 0.9 * sufficient_step(data))


# --- a bad optimum ---------------------------------------------------------------------------------------------------


def _far_along_v(rng: np.random.Generator) -> Guarded:
    """From p = c v, c large, with few negative tokens; the step is from p = 0."""
    positives = int(rng.integers(4, 7))
    data = planted(rng, 2 * positives, 4, positives, 1, int(rng.integers(4, 7)), mirrored=True)
    start = ideal_start(rng, data.V, data.V + 1)
    return Guarded(data, first_step(data, start, float(rng.uniform(90, 300))), float(rng.uniform(4, 6)) * start.v)


def _off_alternative(one: Guarded) -> float:
    """L against L_alt in units of 1e-9, the direction against the bad selection's own max margin in units of 1e-3.

    And L_alt must be above the barrier: 1 + their relative distance is below 1.
    """
    expected = alternative_loss(one.data, one.step.b)
    above = 1 + (barrier(one.data, one.step.b) - expected) / expected
    return float(max(abs(one.run.loss - expected) / 1e-9, one.run.misalignment() / 1e-3, above))


_WORTHLESS: Hypothesis[Guarded] = Hypothesis(
    "irrelevant tokens have the value 0",
    lambda one: bool(np.abs(one.step.b[one.data.kinds == 0]).max() < 1e-12),
)


def _misses(one: Guarded) -> bool:
    """Whether positive documents, and only they, end with their important token."""
    kept = np.array([token in tokens for tokens, token in zip(one.run.sets, one.data.important.tolist(), strict=True)])
    return bool((kept == (one.data.labels > 0)).all())


_MISSED: Hypothesis[Guarded] = Hypothesis(
    "the flow ends with the important tokens of the positive documents only", _misses
)


# --- several classes -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ManyClasses:
    """Planted documents of K classes after one step from p = 0, E v_k = 0."""

    data: Classes
    E: Array
    v: Array
    start: Array

    @cached_property
    def end(self) -> tuple[FlowState, Status]:
        problem = MulticlassProblem(self.E, self.data, self.v)
        outcome = run(Flow(problem, 1e3, PIECES, LOOSE), self.start, 1000)
        return outcome.state, outcome.status

    @cached_property
    def barrier(self) -> float:
        """The least loss without one important token: each lead is at most that of the best other token."""
        b, dense = self.E @ self.v.T, self.data.counts.toarray() > 0
        least = []
        for held, token, y in zip(dense, self.data.important, self.data.y, strict=True):
            others = np.setdiff1d(np.flatnonzero(held), [token])
            leads = np.delete(rival_leads(b[others], np.full(len(others), y)).max(axis=0), y)
            least.append(np.logaddexp(0, np.logaddexp.reduce(-leads)))
        return float(min(least)) / len(dense)


def _many_classes(rng: np.random.Generator) -> ManyClasses:
    """A step somewhat larger than puts p = 0 below the barrier: P_y = 1/(1 + (K - 1) exp(-eta freq / T)) there."""
    K, own, T = int(rng.integers(3, 5)), int(rng.integers(1, 3)), 3
    data = planted_classes(rng, 2 * own, T, [own] * K, int(rng.integers(2, 5)))
    least = T**2 * K * own * float(np.log((K - 1) * len(data.y) / np.log(K)))
    one = _trained_classes(rng, data, float(rng.uniform(1.3, 2)) * least)
    return replace(one, start=0.1 * rng.normal(size=one.start.shape) / np.sqrt(len(one.start)))


def _trained_classes(rng: np.random.Generator, data: Classes, eta: float) -> ManyClasses:
    V, K = data.counts.shape[1], data.K
    frame = np.linalg.qr(rng.normal(size=(V + K, V + K)))[0]
    E, v, zero = frame[:V], frame[V:], np.zeros(V + K)
    return ManyClasses(data, E - eta * multiclass_gradient(data, E, zero, v)[0], v, zero)


def _off_gradient(one: ManyClasses) -> float:
    """Value and gradient at one place, against those that the classifier trains with."""
    problem, p = MulticlassProblem(one.E, one.data, one.v), one.v[0] - 2 * one.v[1]
    reading = problem.read((p,))
    (down,) = problem.descent(reading, (p,))
    _, gradient = multiclass_gradient(one.data, one.E, p, one.v)
    return float(max(np.abs(down.plain + one.E.T @ gradient.a).max(), abs(reading.value - gradient.loss)))


def _classes_select(one: ManyClasses) -> float:
    """Documents without their important token; 1 - cos to the max-margin direction in units of 1e-3; the gradient."""
    state, _ = one.end
    chosen = one.data.counts.indices[state.reading.selected]
    missed = int((chosen != one.data.important).sum())
    try:
        target = solve(MarginProblem.from_vocabulary(one.E, one.data.counts, one.data.important))
    except NotSeparable:
        return np.inf
    return float(max(2.0 * missed, misalignment(state.p, target.p) / 1e-3, _off_gradient(one) / 1e-12))


_CLASSES_BELOW: Hypothesis[ManyClasses] = Hypothesis(
    "the loss at the start of the flow is below the barrier",
    lambda one: MulticlassProblem(one.E, one.data, one.v).read((one.start,)).value < one.barrier,
)
_CLASSES_FAR: Hypothesis[ManyClasses] = Hypothesis(
    "the flow reaches the given norm", lambda one: one.end[1] is Status.FAR_ENOUGH
)


def _classes_trapped() -> ManyClasses:
    """Class 0 has many rare tokens, the others one each, and the start is far along v_0."""
    rng = np.random.default_rng(0)
    one = _trained_classes(rng, planted_classes(rng, 5, 3, [5, 1, 1], 4), 150.0)
    return replace(one, start=4.0 * one.v[0])


CLAIMS: tuple[Claim[Any], ...] = (
    Claim(
        id="te.p-gradient",
        says="Minus the gradient in p is sum_s B_s E_s with B_s the mean of g y Q_s (b_s - f); its part along v is the "
        "mean of g y times the variance of the values under the attention.",
        source=AFTER + ", gradient flow",
        excess=_p_gradient,
        tolerance=1.0,  # in units of 1e-13 for exact roads, 1e-8 for central differences
        draw=_place,
        seeds=60,
    ),
    Claim(
        id="te.divergence",
        says="In the direction in which an important token alone has a logit, minus the gradient is positive at every "
        "finite p, by an explicit bound: no finite point is stationary.",
        source=PAPER + ", divergence of p; the bound keytokens",
        hypotheses=(_LARGEST, _ROOM),
        excess=_divergence,
        tolerance=0.0,
        draw=_dominant,
        seeds=60,
        counters=(
            Counter("an irrelevant token", _LARGEST.says, lambda: _dominant(np.random.default_rng(0), irrelevant=True)),
        ),
    ),
    Claim(
        id="te.max-margin",
        says="The flow on p tends to the max-margin direction of the tokens that it selects, whatever these are; on "
        "labels by coin too.",
        source=PAPER + ", limit of the flow; on data without structure keytokens",
        hypotheses=(_FOLLOWED,),
        excess=_off_max_margin,
        tolerance=1.0,  # 1 - cos is below 1e-5 at |p| = 1e4, and fell by 50 at least from |p| = 1e3
        draw=_frozen,
        seeds=24,
        counters=(Counter("a finite minimum", _FOLLOWED.says, _finite_minimum),),
        notes="The paper supposes that the direction converges; here it is followed to |p| = 1e4.",
    ),
    Claim(
        id="te.ties",
        says="Tokens that are wanted under both labels tie in the limit; the flow then tends to the max-margin "
        "direction with the tie as an equality.",
        source="keytokens",
        hypotheses=(_BOTH_LABELS, _FOLLOWED),
        excess=_off_tied,
        tolerance=5e-3,
        draw=_tied,
        seeds=22,
        counters=(Counter("no conflict", _BOTH_LABELS.says, _untied),),
        notes="Followed while |p| times the margin is below about 20: further on the tie would need more digits.",
    ),
    Claim(
        id="te.rates",
        says="Along the flow L falls to L_*, log(L - L_*) is about -|p|/|p_*|, |p| about |p_*| log t, 1 - cos falls "
        "like |p|^-2 and the margin over |p| reaches its maximum like 1 - O(1/|p|).",
        source="keytokens",
        hypotheses=(_FOLLOWED, _ONE_EACH, _TOLD_APART),
        excess=_off_rates,
        tolerance=0.01,  # of exponents and ratios
        draw=_converging,
        seeds=22,
    ),
    Claim(
        id="te.barrier",
        says="If the flow starts with a loss below (1/n) log(1 + exp(-u)), u the largest y b of an irrelevant token, "
        "every document selects its important token.",
        source=PAPER + ", exact selection; the constant keytokens",
        hypotheses=(_BELOW, _DIVERGES),
        excess=_breaks_in,
        tolerance=1e-12,
        draw=_guarded,
        seeds=24,
        counters=(Counter("a start far along v", _BELOW.says, _trapped),),
    ),
    Claim(
        id="te.sufficient-step",
        says="From p_0 = 0 and E_0 v = 0, a step of 2 T log(n / log 2) / (alpha_min |v|^2) or more puts the start of "
        "the flow below the barrier.",
        source=AFTER + ", exact selection",
        hypotheses=(_ORTHONORMAL, _NEUTRAL, _LARGE),
        excess=_above_barrier,
        tolerance=0.0,
        draw=_large_step,
        seeds=60,
        counters=(Counter("nine tenths of that step", _LARGE.says, _small_step),),
    ),
    Claim(
        id="te.closed-form",
        says="With K important and M irrelevant tokens that all meet, balanced labels and orthonormal embeddings, p_* "
        "gives M/(K + M) to important tokens of both signs, -K/(K + M) to the others, nothing to v; its margin is "
        "sqrt(1/K + 1/M).",
        source="keytokens",
        hypotheses=(_ORTHONORMAL, _MEET, _EVEN),
        excess=_off_closed_form,
        tolerance=1e-8,
        draw=_ideal,
        seeds=40,
        counters=(
            Counter("three positive documents to one", _EVEN.says, lambda: _ideal(np.random.default_rng(0), 0.75)),
            Counter("tokens that never meet", _MEET.says, _never_meet),
            Counter("Gaussian embeddings, d = 16", _ORTHONORMAL.says, _gaussian),
        ),
    ),
    Claim(
        id="te.unbalanced-form",
        says="With unbalanced labels p_* still has one logit on all important tokens and one, lower by 1, on all "
        "others; its part along v solves two linear equations.",
        source="keytokens",
        hypotheses=(_ORTHONORMAL, _MEET, _SIGNS),
        excess=_off_unbalanced_form,
        tolerance=1e-8,
        draw=lambda rng: _ideal(rng, float(rng.uniform(0.3, 0.7)), 15.0),  # larger steps spoil the signs
        seeds=40,
        counters=(Counter("tokens that never meet", _MEET.says, lambda: _never_meet(0.75)),),
    ),
    Claim(
        id="te.alternative-optimum",
        says="From p_0 = c v, c large, the flow may leave every negative document on irrelevant tokens; it then ends "
        "in the max-margin direction of that selection, at the loss of positive documents plus log 2 for each other.",
        source="keytokens",
        hypotheses=(_WORTHLESS, _DIVERGES, _MISSED),
        excess=_off_alternative,
        tolerance=1.0,
        known=(lambda: _trapped(100, 4), lambda: _trapped(400, 0.5), lambda: _trapped(400, 4)),
        draw=_far_along_v,
        seeds=20,
        counters=(
            Counter("p_0 = 0", _MISSED.says, lambda: _trapped(100, 0)),
            Counter("p_0 = v/2", _MISSED.says, lambda: _trapped(100, 0.5)),
        ),
    ),
    Claim(
        id="te.multiclass-selection",
        says="With K classes the flow selects the important token of every document if it starts below the barrier, in "
        "which the lead over each rival stands for y b; and its limit is the max-margin direction.",
        source="keytokens",
        hypotheses=(_CLASSES_BELOW, _CLASSES_FAR),
        excess=_classes_select,
        tolerance=1.0,
        draw=_many_classes,
        seeds=22,
        counters=(Counter("a start far along v_0", _CLASSES_BELOW.says, _classes_trapped),),
    ),
)
