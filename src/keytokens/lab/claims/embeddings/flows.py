"""The flow on p with trained embeddings: that it diverges, where to, and how fast.

A limit is checked on the path itself: `follow` goes to |p| = 1e4 without losing the direction, and the max-margin
direction comes from a solver that knows nothing of the path. Nor does what is known of the path beyond its direction:

    -dL/dp = sum_r k_r exp(-x_r'p) x_r    far out; x_r = E_s - E_t, s selected, k_r = mean of g y (b_s - b_t) c_t/c_s
    p = tau p_* + w + rest                tau = p'p_*/|p_*|^2; no tight row sees the rest, which stays as it is
    K = sum_r k_r exp(-x_r'w)             over the tight rows, w among their span across p_*: the least such sum
    L - L_* = K exp(-tau),  t = |p_*|^2 exp(tau)/K
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from ....model.ragged import Vector
from ...problems.problem import Problem
from ...svm.problem import MarginProblem
from ...svm.solution import Solution
from ...svm.solver import solve
from ..claim import Counter, Hypothesis, claim
from ..instances import EPS, complex_slopes, literal_loss, literal_scores, rounding, worst
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
FARTHEST = 1e6
SETTLED = 20.0  # what is below exp(-20) of its size has gone
APPROACH = 80.0  # w first comes near, rate tau = (|w| / 0.5)^2 at most: a descent of a convex function
LOOSE = 1e-5  # tolerance of a path: it is attracted by its limit, so errors do not grow
PIECES = 20.0  # length of a piece of a path beside the norm: long ones cost least


# --- the gradient ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Place:
    """Documents, embeddings and head, and a place p; perhaps `cls` is a token, so that a row of E moves with p."""

    documents: Documents
    E: Vector
    v: Vector
    p: Vector
    shared: int | None = None

    def loss(self, p: Vector) -> Vector:
        """Position by position."""
        moves = (np.arange(len(self.E)) == self.shared)[:, None]
        f = literal_scores(self.documents.tokens, np.where(moves, p, self.E), p, self.v)
        return np.asarray(np.mean(literal_loss(self.documents.labels * f)))


def _place(rng: np.random.Generator) -> Place:
    n, V, d = int(rng.integers(2, 8)), int(rng.integers(2, 8)), int(rng.integers(1, 6))
    tokens = [rng.integers(0, V, rng.integers(1, 9)) for _ in range(n)]
    documents = Documents.of(tokens, rng.choice([-1.0, 1.0], n), V)
    return Place(documents, rng.normal(size=(V, d)), rng.normal(size=d), rng.normal(size=d))


_FROZEN = Hypothesis[Place]("the embeddings stay while p moves", lambda at: at.shared is None)


def _shared_place() -> Place:
    at = _place(np.random.default_rng(1))
    token = int(at.documents.tokens[0][0])
    return replace(at, E=np.where((np.arange(len(at.E)) == token)[:, None], at.p, at.E), shared=token)


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
    """Embeddings, a token, and places p of all sizes; the flow starts at the last of them."""

    documents: Documents
    E: Vector
    v: Vector
    token: int
    places: Vector  # (m, d)
    far: float = 1e3  # a norm that the flow must reach

    @cached_property
    def leads(self) -> Vector:
        """y b of the token less that of each token beside it, over all documents."""
        b, rows = self.E @ self.v, zip(self.documents.labels, self.documents.tokens, strict=True)
        leads = [y * (b[self.token] - b[row[row != self.token]]) for y, row in rows if self.token in row]
        return np.concatenate([np.empty(0), *leads])

    @cached_property
    def run(self) -> Run:
        options = {"tolerance": 1e-7, "growth": PIECES, "most_evaluations": 5000}  # a looser one takes slow for still
        return follow(self.documents, self.E, self.v, self.places[-1], (self.far / 10, self.far), **options)


def _dominant(rng: np.random.Generator, irrelevant: bool = False) -> Dominant:
    """A completely positive token after one step; p of norms 1 to 1e4 (one straight away from it), and 1.

    The start is small enough for the token to have the largest value: irrelevant tokens have alpha = 0. Every third
    time an important token after a small step, where this may be so or not; there other tokens may tie, and far out the
    digits of a tie are lost.
    """
    n, T, others = 2 * int(rng.integers(2, 10)), int(rng.integers(2, 6)), int(rng.integers(1, 6))
    any_kind = not irrelevant and rng.random() < 1 / 3
    data = planted(rng, 4 if any_kind else n, T, 2, 2, others, mirrored=True)
    V = data.V
    start, eta = gaussian_start(rng, V, V + 2 + int(rng.integers(0, 20))), float(rng.uniform(50, 300))

    def leads(start: Start) -> bool:
        b = Step(data, start, eta).b
        return bool(b[0] > b[data.kinds == 0].max())

    start = start if any_kind else small_enough(start, leads)
    E = Step(data, start, 1.0 if any_kind else eta).E
    directions = rng.normal(size=(8, len(start.p)))
    directions[0] = -E[0]
    norms = np.append(10 ** rng.uniform(0, 4, 7), 1.0)
    places = directions / np.linalg.norm(directions, axis=1)[:, None] * norms[:, None]
    token = int(rng.integers(4)) if any_kind else int(data.tokens[0][data.tokens[0] >= 4][0]) if irrelevant else 0
    return Dominant(data, E, start.v, token, places, 30.0 if any_kind else 1e3)


def _two_alike(second: float, d: int) -> Dominant:
    """Two documents of the tokens 0 and 1, the first of them positive; with opposite labels the loss has a minimum."""
    documents = Documents.of([[0, 1], [0, 1]], [1, second], 2)
    return Dominant(documents, np.eye(2, d), np.append([2.0, -1.0], np.zeros(d - 2)), 0, 3 * np.eye(1, d))


_LARGEST = Hypothesis[Dominant](
    "the token has the largest y b in every document that holds it, and a larger one than some token beside it",
    lambda one: bool(len(one.leads) and one.leads.min() >= 0 and one.leads.max() > 0),
)
_ROOM = Hypothesis[Dominant]("d >= V + 1", lambda one: one.E.shape[1] > one.documents.V)


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

    @property
    def b(self) -> Vector:
        """(V,) the values."""
        return self.E @ self.v

    @cached_property
    def tail(self) -> Tail | None:
        """None where no direction selects like the flow, or documents select several tokens."""
        solution = self.run.solution
        return None if solution is None or not self.run.selects_one else _tail(self, solution)


@dataclass(frozen=True, eq=False)
class Tail:
    """What is left of a path far out, from the tight rows alone."""

    least: float  # of the k_r: below 0 a tight row pushes
    frame: Vector  # orthonormal rows: the span of the tight rows across p_*
    w: Vector  # in that frame
    log_K: float
    rate: float  # w settles like exp(-rate tau)


def _tail(one: Frozen, solution: Solution) -> Tail:
    """w is where the logarithm of the sum, which is convex, is least."""
    counts, b = one.documents.counts, one.b
    sizes: dict[tuple[int, int], float] = {}
    for i, (y, (selected,)) in enumerate(zip(one.documents.labels, one.run.sets, strict=True)):
        row = counts[[i]]
        force = y * np.exp(-np.logaddexp(0, y * b[selected])) / (len(one.documents) * row[0, selected])
        for token, count in zip(row.indices.tolist(), row.data.tolist(), strict=True):
            pair = selected, token
            sizes[pair] = sizes.get(pair, 0.0) + float(force * (b[selected] - b[token]) * count)
    k = np.array([sizes[pair] for pair in solution.support_tokens])
    rows, along = solution.problem.rows(solution.support), solution.p / solution.norm
    _, spread, frame = np.linalg.svd(rows - np.outer(rows @ along, along), full_matrices=False)
    frame = frame[spread > 1e-9]
    across, w = rows @ frame.T, np.zeros(len(frame))
    if (k <= 0).any():
        return Tail(float(k.min()), frame, w, -np.inf, 0.0)

    def curve(w: Vector) -> tuple[Any, ...]:
        """log of the sum, its slope and its curvature."""
        logs = np.log(k) - across @ w
        shares = softmax(logs)
        slope = -across.T @ shares
        return float(logsumexp(logs)), slope, (across.T * shares) @ across - np.outer(slope, slope)

    if len(w):
        value, slope, bend = (lambda w, k=k: curve(w)[k] for k in range(3))
        w = minimize(value, w, jac=slope, hess=bend, method="trust-exact", options={"gtol": 1e-9}).x
        w = w - np.linalg.solve(curve(w)[2], curve(w)[1])  # the last digits
    slowest = float(np.linalg.eigvalsh(curve(w)[2]).min(initial=1.0)) * solution.norm**2
    return Tail(float(k.min()), frame, w, float(curve(w)[0]), slowest)


def _frozen(rng: np.random.Generator) -> Frozen:
    """Planted documents, or documents without any structure and labels by coin."""
    if rng.random() < 0.5:
        documents: Documents = planted(rng, 8, 3, 2, 2, int(rng.integers(2, 5)))
    else:
        documents = random_labels(rng, 6, 3, 11)
    step = Step(documents, gaussian_start(rng, documents.V, 64), float(rng.uniform(30, 150)))
    return Frozen(documents, step.E, step.start.v, step.start.p)


_FOLLOWED = Hypothesis[Frozen]("the flow goes to infinity: it reaches the given norm", lambda one: one.run.arrived)
_ONE_EACH = Hypothesis[Frozen](
    "each document selects one token", lambda one: not one.run.arrived or one.run.selects_one
)
_PULLING = Hypothesis[Frozen](
    "no selected token has a smaller y b than the tokens on its margin",
    lambda one: one.tail is None or one.tail.least > 0,
)
_TOLD_APART = Hypothesis[Frozen](
    "no token is nearly on the margin, or on it nearly without a multiplier, for the given norm",
    lambda one: _told_apart(one),
)


def _told_apart(one: Frozen) -> bool:
    """At the nearer norm the loose rows have died out; since then w has come near and settled: both to exp(-20)."""
    solution, tail = one.run.solution, one.tail
    if solution is None or tail is None or tail.least <= 0:
        return True
    loose = np.delete(solution.slack, solution.support)
    near, far = (norm / solution.norm for norm in one.norms[-2:])
    return bool((loose * near > SETTLED).all() and tail.rate * (far - near) > APPROACH + SETTLED)


def _far_enough(one: Frozen) -> Frozen:
    """Followed farther where a row is nearly on the margin: slack and multiplier do not depend on the norm."""
    while not _told_apart(one) and one.norms[-1] < FARTHEST:
        one = replace(one, norms=tuple(10 * norm for norm in one.norms))
    return one


def _finite_minimum() -> Frozen:
    """Two documents with the same two tokens and opposite labels: the loss has a minimum at a finite p."""
    documents = Documents.of([[0, 1], [0, 1]], [1, -1], 2)
    return Frozen(documents, np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([2.0, -1.0]), np.array([3.0, 0.0]))


# --- ties ------------------------------------------------------------------------------------------------------------

SHORT = (9.0, 13.0)  # norms in units of |p_*|: what is not tight has nearly died out, and a tie keeps its digits


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


@claim(
    "te.p-gradient",
    says="Minus the gradient in p is sum_s B_s E_s with B_s the mean of g y Q_s (b_s - f); its part along v is the "
    "mean of g y times the variance of the values under the attention.",
    source=AFTER + ", gradient flow",
    hypotheses=(_FROZEN,),
    tolerance=1.0,  # in units of what rounding may do
    constant="the gradient",
    draw=_place,
    seeds=60,
    counters=(Counter("cls is one of the tokens", _FROZEN.says, _shared_place),),
)
def _p_gradient(at: Place, by: float = 1.0) -> float:
    """Four roads: sum_s B_s E_s, B_s by pairs, the engine of the flow, complex steps; and the part along v."""
    documents, E, v, p = at.documents, at.E, at.v, at.p
    B = by * token_pulls(documents, E, v, p)
    down = B @ E
    problem = Problem.vocabulary(E, documents.counts, documents.labels, v)
    (engine,) = problem.descent(problem.read((p,)), (p,))
    pairs = [float(token_pull(problem, p, s).plain) for s in range(documents.V)]
    off = (
        *(np.abs(down - other).max() for other in (engine.plain, -complex_slopes(at.loss, p))),
        *(np.abs(B - pairs).max(), abs(down @ v - _spread_of_values(at)), abs(loss(documents, E, p, v) - at.loss(p))),
    )
    values, size = 1 + 2 * (np.abs(E) @ np.abs(v)).max(), 1 + np.abs(E).max() * (1 + np.abs(v).sum())
    unit = rounding(E, p, v, float(documents.lengths.max()) + len(documents) + documents.V)
    return worst(*off) / (unit * float(values * size))


@claim(
    "te.divergence",
    says="Some direction orthogonal to v gives one token alone a logit, 1. If an important token has the largest y b "
    "wherever it occurs, minus the gradient along it is B_s > 0 at every finite p. So the flow diverges.",
    source=PAPER + ", divergence of p",
    hypotheses=(_LARGEST, _ROOM),
    tolerance=1.0,
    constant="B_s",
    draw=_dominant,
    seeds=32,
    counters=(
        Counter("an irrelevant token", _LARGEST.says, lambda: _dominant(np.random.default_rng(0), irrelevant=True)),
        Counter("two documents alike with opposite labels", _LARGEST.says, lambda: _two_alike(-1, 4)),
        Counter("d = V", _ROOM.says, lambda: _two_alike(1, 2)),
    ),
)
def _divergence(one: Dominant, by: float = 1.0) -> float:
    """How badly E q = (1 at the token, else 0) with q orthogonal to v is solved, in units of eps |E| |q| times the
    entries of E; how far B_s, a sum without cancellation, is from q'(-grad) by the engine of the flow, in units of the
    rounding of E q and of logarithms; 2 where it is not positive; how far the flow falls short of its norm, to 1e-9.
    """
    (E, v), documents = (one.E, one.v), one.documents
    problem = Problem.vocabulary(E, documents.counts, documents.labels, v)
    q, missed = indicator_direction(E, one.token, [v])
    unit = EPS * E.size * (np.linalg.norm(E, 2) + 1) * np.linalg.norm(q)
    off = [(one.far / one.run.norm - 1) / 1e-9, missed / unit]
    for p in one.places:
        pull = token_pull(problem, p, one.token)
        (down,) = problem.descent(problem.read((p,)), (p,))
        seen, expected = float(down.unit @ q), by * np.exp(pull.log - down.log)
        logs = 1 + abs(down.log) + float(np.abs(E @ p).max())
        off.append(abs(seen - expected) / (np.linalg.norm(q) * (8 * EPS * (logs + E.size) + missed)))
        off.append(1 - pull.sign)
    return worst(*off)


@claim(
    "te.max-margin",
    says="The flow on p tends to the max-margin direction of the tokens that it selects, whatever these are: in the "
    "span of the tight rows p - tau p_* tends to the w of the least K, and beyond it p stays. Labels by coin too.",
    source=PAPER + ", limit of the flow; w, and data without structure, keytokens",
    hypotheses=(_FOLLOWED, _ONE_EACH, _PULLING, _TOLD_APART),
    tolerance=1e-4,  # of 1 + |w|: ten times the tolerance of the path, which w attracts
    constant="w",
    draw=_frozen,
    seeds=36,
    counters=(Counter("a finite minimum", _FOLLOWED.says, _finite_minimum),),
    notes="The paper supposes that the direction converges; here it is followed to |p| = 1e4 or more.",
)
def _off_max_margin(one: Frozen, by: float = 1.0) -> float:
    """|p - tau p_* - w - rest| / (1 + |w|) at the end, `rest` as at a tenth of the norm; and how short the norm is."""
    short, tail, solution = one.norms[-1] / one.run.norm - 1, one.tail, one.run.solution
    if tail is None or solution is None:
        return short
    near, far = (state.p - (state.p @ solution.p / solution.norm**2) * solution.p for state in one.run.states[-2:])
    rest = near - tail.frame.T @ (tail.frame @ near)
    expected = by * tail.frame.T @ tail.w + rest
    return worst(short, np.linalg.norm(far - expected) / (1 + np.linalg.norm(tail.w)))


@claim(
    "te.ties",
    says="Tokens that are wanted under both labels tie in the limit; the flow then tends to the max-margin "
    "direction with the tie as an equality.",
    source="keytokens",
    hypotheses=(_BOTH_LABELS, _FOLLOWED),
    tolerance=0.05,  # half of a constant that is 10 % stronger
    constant="p_*",
    draw=_tied,
    seeds=24,
    counters=(Counter("no conflict", _BOTH_LABELS.says, _untied),),
    notes="Followed to |p| = 13 |p_*|: further on the tie would need more digits.",
)
def _off_tied(one: Frozen, by: float = 1.0) -> float:
    """|p2 - p1 - (tau2 - tau1) p_*|/|p2 - p1| over the last stretch, p_* with the tie as an equality."""
    first, last = (state.p for state in one.run.states[-2:])
    goal = _with_tie(one.documents, one.run.problem.embeddings)
    chord, tau = last - first, (last - first) @ goal.p / goal.norm**2
    return float(np.linalg.norm(chord - by * abs(tau) * goal.p) / np.linalg.norm(chord))


@claim(
    "te.rates",
    says="Along the flow L - L_* = K exp(-tau) and t = |p_*|^2 exp(tau)/K; so L falls to L_*, |p| is about "
    "|p_*| log t, and 1 - cos falls like |p|^-2.",
    source="keytokens",
    hypotheses=(_FOLLOWED, _ONE_EACH, _PULLING, _TOLD_APART),
    tolerance=1e-4,  # of logarithms: ten times the tolerance of the path, which w attracts
    constant="K",
    draw=_converging,
    seeds=26,
    counters=(
        Counter(
            "a norm of 10", _TOLD_APART.says, lambda: replace(_converging(np.random.default_rng(0)), norms=(3.0, 10.0))
        ),
    ),
)
def _off_rates(one: Frozen, by: float = 1.0) -> float:
    """log(L - L_*) and log t at the end against tau and log K; that L has fallen to L_*, all the way down."""
    flow, solution, tail = one.run, one.run.solution, one.tail
    if solution is None or tail is None:
        return np.inf
    reading, tau = flow.states[-1].reading, flow.states[-1].p @ solution.p / solution.norm**2
    log_K = tail.log_K + np.log(by)
    loss = reading.excess(reading.selected).log + tau - log_K
    clock = flow.path["log_time"][-1] - tau - 2 * np.log(solution.norm) + log_K
    chosen = one.documents.counts.indices[reading.selected]
    limit = flow.loss - loss_of_selection(one.documents, one.b, chosen.astype(np.intp))
    climbs = float(np.diff(flow.path["loss"]).max())
    return worst(abs(loss), abs(clock), max(abs(limit), climbs) / (8 * EPS) * 1e-4)
