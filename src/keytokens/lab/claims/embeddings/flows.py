"""The flow on p with trained embeddings: that it diverges, where to, and how fast.

A limit is checked on the path itself: `follow` goes to |p| = 1e4 without losing the direction, and the max-margin
direction comes from a solver that knows nothing of the path.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ....model.ragged import Vector
from ...problems.geometry import misalignment
from ...problems.problem import Problem
from ...svm.problem import MarginProblem
from ...svm.solution import Solution
from ...svm.solver import solve
from ..claim import Counter, Hypothesis, claim
from ..instances import central_differences
from .data import Documents, loss_of_selection, planted, random_labels
from .stages import (
    AFTER,
    PAPER,
    Run,
    Start,
    Step,
    follow,
    gaussian_start,
    indicator_direction,
    loss,
    small_enough,
    token_pull,
    token_pulls,
)

FAR = (1e3, 1e4)  # norms where a path is looked at
FARTHEST = 1e6  # where 1 - cos, about |p|^-2, still has digits
LOOSE = 1e-5  # tolerance of a path: it is attracted by its limit, so errors do not grow
PIECES = 20.0  # length of a piece of a path beside the norm: long ones cost least


# --- the gradient ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Place:
    """Documents, embeddings and head, and a place p."""

    documents: Documents
    E: Vector
    v: Vector
    p: Vector


def _place(rng: np.random.Generator) -> Place:
    n, V, d = int(rng.integers(2, 8)), int(rng.integers(2, 8)), int(rng.integers(1, 6))
    tokens = [rng.integers(0, V, rng.integers(1, 9)) for _ in range(n)]
    documents = Documents.of(tokens, rng.choice([-1.0, 1.0], n), V)
    return Place(documents, rng.normal(size=(V, d)), rng.normal(size=d), rng.normal(size=d))


def _spread_of_values(at: Place) -> float:
    """(1/n) sum_i g_i y_i Var(b) under the attention, position by position."""
    total = 0.0
    for row, y in zip(at.documents.tokens, at.documents.labels, strict=True):
        a, b = at.E[row] @ at.p, at.E[row] @ at.v
        Q = np.exp(a - a.max()) / np.exp(a - a.max()).sum()
        total += y / (1 + np.exp(y * (Q @ b))) * (Q @ (b - Q @ b) ** 2)
    return total / len(at.documents)


# --- no finite stationary point --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Dominant:
    """A trained vocabulary, a token, and places p of all sizes."""

    step: Step
    token: int
    places: Vector  # (m, d)

    @cached_property
    def holding(self) -> list[Vector]:
        """For each document with the token: its other tokens."""
        rows = self.step.documents.tokens
        return [np.setdiff1d(row, [self.token]) for row in rows if self.token in row]

    @cached_property
    def leads(self) -> Vector:
        """y b of the token less that of each token beside it, over all documents."""
        documents, b = self.step.documents, self.step.b
        holding = [i for i, row in enumerate(documents.tokens) if self.token in row]
        pairs = zip(holding, self.holding, strict=True)
        return np.concatenate([documents.labels[i] * (b[self.token] - b[others]) for i, others in pairs])


def _dominant(rng: np.random.Generator, irrelevant: bool = False) -> Dominant:
    """A completely positive token after one step; p of norms 1 to 1e4 (one straight away from it), and 0.

    The start is small enough for the token to have the largest value: irrelevant tokens have alpha = 0.
    """
    n, T, others = 2 * int(rng.integers(2, 10)), int(rng.integers(2, 6)), int(rng.integers(1, 6))
    data = planted(rng, n, T, 2, 2, others, mirrored=True)
    V = data.V
    start, eta = gaussian_start(rng, V, V + 2 + int(rng.integers(0, 20))), float(rng.uniform(300, 900))

    def leads(start: Start) -> bool:
        b = Step(data, start, eta).b
        return bool(b[0] > b[data.kinds == 0].max())

    step = Step(data, small_enough(start, leads), eta)
    directions = rng.normal(size=(8, len(step.start.p)))
    directions[0] = -step.E[0]
    norms = np.append(10 ** rng.uniform(0, 4, 7), 0.0)
    places = directions / np.linalg.norm(directions, axis=1)[:, None] * norms[:, None]
    return Dominant(step, int(data.tokens[0][data.tokens[0] >= 4][0]) if irrelevant else 0, places)


def _log_least_pull(one: Dominant, p: Vector) -> float:
    """log of a positive number that B_s cannot fall below at p, if s has the largest y b of every document it is in.

    Q_s Q_u >= exp(-2 |p| D)/T^2 with D the diameter of a document, and g >= sigma(-largest |b|).
    """
    E, b, documents = one.step.E, one.step.b, one.step.documents
    sizes = [np.linalg.norm(E[one.token] - E[others], axis=1).max() for others in one.holding if len(others)]
    diameter = 2 * max(sizes)
    force = -np.logaddexp(0, np.abs(b).max()) - np.log(len(documents))
    spread = -2 * diameter * np.linalg.norm(p) - 2 * np.log(documents.lengths.max())
    return float(force + spread + np.log(one.leads.max()))


_LARGEST = Hypothesis[Dominant](
    "the token has the largest y b in every document that holds it, and a larger one than some token beside it",
    lambda one: bool(len(one.leads) and one.leads.min() >= 0 and one.leads.max() > 0),
)
_ROOM = Hypothesis[Dominant]("d >= V + 2", lambda one: one.step.E.shape[1] >= one.step.documents.V + 2)


# --- the limit direction ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Frozen:
    """Embeddings that are trained and frozen, and a start of p."""

    documents: Documents
    E: Vector
    v: Vector
    start: Vector
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
    step = Step(documents, gaussian_start(rng, documents.V, 64), float(rng.uniform(30, 150)))
    return Frozen(documents, step.E, step.start.v, step.start.p)


_FOLLOWED = Hypothesis[Frozen]("the flow goes to infinity: it reaches the given norm", lambda one: one.run.arrived)


def _finite_minimum() -> Frozen:
    """Two documents with the same two tokens and opposite labels: the loss has a minimum at a finite p."""
    documents = Documents.of([[0, 1], [0, 1]], [1, -1], 2)
    return Frozen(documents, np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([2.0, -1.0]), np.array([3.0, 0.0]))


# --- ties ------------------------------------------------------------------------------------------------------------

SHORT = (8.0, 12.0)  # norms in units of |p_*|; exp(-12) is above the tolerance of the path, 1e-6


def _tied(rng: np.random.Generator) -> Frozen:
    """Tokens 0 and 1 meet under both labels, and each beats all other tokens under its own label.

    On the way the tie must hold to exp(-|p|/|p_*|) or the path is lost: so norms stay small, beside |p_*|, and the
    direction is that of the chord between the last two, where the finite part of p cancels. Embeddings are nearly
    orthonormal: then all other tokens pull alike. One that hardly pulls would find its place only farther out.
    """
    V = int(rng.integers(3, 6))
    tokens, labels = [[0, 1], [0, 1]], [1, -1]
    for other in range(2, V):
        tokens, labels = [*tokens, [0, other], [1, other]], [*labels, 1, -1]
    E = np.linalg.qr(rng.normal(size=(V + 2, V + 2)))[0][:V] + 0.1 * rng.normal(size=(V, V + 2))
    b = np.concatenate([[rng.uniform(0.5, 2), -rng.uniform(0.5, 2)], rng.uniform(-0.3, 0.3, V - 2)])
    v = np.linalg.lstsq(E, b, rcond=None)[0]
    documents = Documents.of(tokens, labels, V)
    near, far = (share * _with_tie(documents, E).norm for share in SHORT)
    return Frozen(documents, E, v, np.zeros(V + 2), (near, far), 1e-6)


def _with_tie(documents: Documents, E: Vector) -> Solution:
    """p_*: the first token of each document wins, together with token 1 where tokens 0 and 1 meet."""
    ties = [[0, 1] if {0, 1} <= set(row.tolist()) else [row.min()] for row in documents.tokens]
    return solve(MarginProblem.from_vocabulary(E, documents.counts, ties))


_BOTH_LABELS = Hypothesis[Frozen](
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
    step = Step(data, gaussian_start(rng, data.V, 64), float(rng.uniform(50, 120)))
    return _far_enough(Frozen(data, step.E, step.start.v, step.start.p))


def _far_enough(one: Frozen) -> Frozen:
    """Followed farther where a row is nearly on the margin: slack and multiplier do not depend on the norm."""
    while not _told_apart(one) and one.norms[-1] < FARTHEST:
        one = replace(one, norms=tuple(10 * norm for norm in one.norms))
    return one


_ONE_EACH = Hypothesis[Frozen](
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


_TOLD_APART = Hypothesis[Frozen]("no token is nearly on the margin, or on it nearly without a multiplier", _told_apart)


@claim(
    "te.p-gradient",
    says="Minus the gradient in p is sum_s B_s E_s with B_s the mean of g y Q_s (b_s - f); its part along v is the "
    "mean of g y times the variance of the values under the attention.",
    source=AFTER + ", gradient flow",
    tolerance=1.0,  # in units of 1e-13 for exact roads, 1e-8 for central differences
    draw=_place,
    seeds=60,
)
def _p_gradient(at: Place) -> float:
    """Four roads: sum_s B_s E_s, B_s by pairs, the engine of the flow, central differences; and the part along v."""
    documents, E, v, p = at.documents, at.E, at.v, at.p
    B = token_pulls(documents, E, v, p)
    down = B @ E
    problem = Problem.vocabulary(E, documents.counts, documents.labels, v)
    (engine,) = problem.descent(problem.read((p,)), (p,))
    pairs = [float(token_pull(documents, E, v, p, s).plain) for s in range(documents.V)]
    exact = max(np.abs(down - engine.plain).max(), np.abs(B - pairs).max(), abs(down @ v - _spread_of_values(at)))
    numeric = central_differences(lambda p: loss(documents, E, p, v), p)
    return float(max(exact / 1e-13, np.abs(down + numeric).max() / 1e-8))


@claim(
    "te.divergence",
    says="In the direction in which an important token alone has a logit, minus the gradient is positive at every "
    "finite p, by an explicit bound: no finite point is stationary.",
    source=PAPER + ", divergence of p; the bound keytokens",
    hypotheses=(_LARGEST, _ROOM),
    tolerance=0.0,
    draw=_dominant,
    seeds=60,
    counters=(
        Counter("an irrelevant token", _LARGEST.says, lambda: _dominant(np.random.default_rng(0), irrelevant=True)),
    ),
)
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


@claim(
    "te.max-margin",
    says="The flow on p tends to the max-margin direction of the tokens that it selects, whatever these are; on "
    "labels by coin too.",
    source=PAPER + ", limit of the flow; on data without structure keytokens",
    hypotheses=(_FOLLOWED,),
    tolerance=1.0,  # 1 - cos is below 1e-5 at |p| = 1e4, and fell by 50 at least from |p| = 1e3
    draw=_frozen,
    seeds=24,
    counters=(Counter("a finite minimum", _FOLLOWED.says, _finite_minimum),),
    notes="The paper supposes that the direction converges; here it is followed to |p| = 1e4.",
)
def _off_max_margin(one: Frozen) -> float:
    """1 - cos at the end in units of 1e-5; and in units of a fiftieth of what it was at a tenth of the norm."""
    near, far = one.run.misalignment(-2), one.run.misalignment(-1)
    return float(max(far / 1e-5, far / max(near / 50, 1e-10)) if np.isfinite(far) else np.inf)


@claim(
    "te.ties",
    says="Tokens that are wanted under both labels tie in the limit; the flow then tends to the max-margin "
    "direction with the tie as an equality.",
    source="keytokens",
    hypotheses=(_BOTH_LABELS, _FOLLOWED),
    tolerance=5e-3,
    draw=_tied,
    seeds=22,
    counters=(Counter("no conflict", _BOTH_LABELS.says, _untied),),
    notes="Followed to |p| = 12 |p_*|: further on the tie would need more digits.",
)
def _off_tied(one: Frozen) -> float:
    """1 - cos between the chord and the max-margin direction with the tie as an equality."""
    last, first = one.run.states[-1].p, one.run.states[-2].p
    return misalignment(last - first, _with_tie(one.documents, one.run.problem.embeddings).p)


@claim(
    "te.rates",
    says="Along the flow L falls to L_*, log(L - L_*) is about -|p|/|p_*|, |p| about |p_*| log t, 1 - cos falls "
    "like |p|^-2 and the margin over |p| reaches its maximum like 1 - O(1/|p|).",
    source="keytokens",
    hypotheses=(_FOLLOWED, _ONE_EACH, _TOLD_APART),
    tolerance=0.01,  # of exponents and ratios
    draw=_converging,
    seeds=22,
)
def _off_rates(one: Frozen) -> float:
    """The largest deviation of an exponent or a ratio from what it should be, at the last norm."""
    flow, solution = one.run, one.run.solution
    if solution is None:
        return np.inf
    reading, logs = flow.states[-1].reading, np.log(one.norms[-1] / one.norms[-2])
    angle = np.log(flow.misalignment(-2) / flow.misalignment(-1)) / logs - 2
    margin = np.log((1 - flow.margin_ratio(-2)) / (1 - flow.margin_ratio(-1))) / logs - 1
    excess = -reading.excess(reading.selected).log * solution.norm / flow.norm - 1
    clock = flow.norm / (solution.norm * flow.path["log_time"][-1]) - 1
    chosen = one.documents.counts.indices[reading.selected]
    limit = flow.loss - loss_of_selection(one.documents, one.E @ one.v, chosen.astype(np.intp))
    climbs = float(np.diff(flow.path["loss"]).max())
    return float(max(abs(angle), abs(margin), abs(excess), abs(clock), abs(limit) * 1e10, climbs * 1e10))
