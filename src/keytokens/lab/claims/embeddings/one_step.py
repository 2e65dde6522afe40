"""Documents as counts, and steps on the embeddings.

The gradient in the embeddings, the bag of words and the average signed frequency alpha_s; then the space that steps
stay in, and how far one step is from alpha_s/2 v.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ....model.ragged import Vector
from ..claim import Counter, Hypothesis, claim
from ..instances import EPS, complex_slopes, literal_loss, literal_scores, rounding, worst
from .data import Documents, random_labels
from .stages import (
    AFTER,
    PAPER,
    Start,
    Step,
    embedding_gradient,
    gaussian_start,
    random_documents,
    token_pulls,
)

# --- the gradient ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Trained(Step):
    """Perhaps `cls` and a token of the vocabulary share their embedding, so that p is that row of E."""

    shared: int | None = None

    def loss(self, E: Vector) -> Vector:
        """Position by position."""
        weights = self.documents.even if self.weights is None else self.weights
        p = self.start.p if self.shared is None else E[self.shared]
        f = literal_scores(self.documents.tokens, E, p, self.start.v)
        return np.asarray(weights @ literal_loss(self.documents.labels * f))


def _any_training(rng: np.random.Generator) -> Trained:
    """Everything of order 1: far from the small start of the theory."""
    documents, d = random_documents(rng), int(rng.integers(1, 6))
    start = Start(rng.normal(size=(documents.V, d)), rng.normal(size=d), rng.normal(size=d))
    return Trained(documents, start, weights=documents.balanced if rng.random() < 0.5 else None)


def _shared_query() -> Trained:
    one = _any_training(np.random.default_rng(0))
    return replace(one, start=replace(one.start, p=one.start.E[0]), shared=0)


_OWN = Hypothesis[Trained]("p is a parameter of its own, no row of E", lambda one: one.shared is None)


@claim(
    "te.gradient",
    says="f depends on a document only through its counts, and minus the gradient of the loss in E_s is the mean of "
    "y g Q_s (v + (b_s - f) p), g = sigma(-y f), for all lengths and weights of the documents.",
    source=AFTER + ", one-step lemma",
    hypotheses=(_OWN,),
    tolerance=1.0,  # in units of what rounding may do
    constant="the gradient",
    draw=_any_training,
    seeds=40,
    counters=(Counter("cls is one of the tokens", _OWN.says, _shared_query),),
)
def _gradient(one: Trained, by: float = 1.0) -> float:
    """Against the slopes of the loss as it is written, by complex steps."""
    start, documents = one.start, one.documents
    off = np.abs(by * embedding_gradient(documents, start, one.weights) - complex_slopes(one.loss, start.E)).max()
    unit = rounding(start.E, start.p, start.v, float(documents.lengths.max()) + len(documents))
    sizes = np.abs(start.v).max() + 2 * np.abs(start.E @ start.v).max()  # of v and of (b - f) p, p apart
    return float(off / (unit * (1 + np.abs(start.p).max()) * sizes))


# --- the space of the step -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Steps:
    """Several steps on E; perhaps p moves too in between."""

    case: Step
    count: int
    p_moves: bool = False

    @cached_property
    def moved(self) -> Vector:
        documents, start = self.case.documents, self.case.start
        E, p = start.E, start.p
        for _ in range(self.count):
            here = Start(E, p, start.v)
            if self.p_moves:
                p = p + self.case.eta * token_pulls(documents, E, start.v, p) @ E
            E = E - self.case.eta * embedding_gradient(documents, here, self.case.weights)
        return np.asarray(E - start.E)


def _steps(rng: np.random.Generator) -> Steps:
    documents, d = random_documents(rng, 14), int(rng.integers(3, 20))
    start = Start(rng.normal(size=(documents.V, d)), rng.normal(size=d), rng.normal(size=d))
    return Steps(Step(documents, start, float(rng.uniform(0.1, 2))), int(rng.integers(1, 4)))


_FIXED = Hypothesis[Steps]("p stays where it is while E is trained", lambda one: not one.p_moves)


def _moving_query() -> Steps:
    rng = np.random.default_rng(3)
    return Steps(Step(random_labels(rng, 12, 4, 8), gaussian_start(rng, 8, 10), 5.0), 2, p_moves=True)


@claim(
    "te.rank-two",
    says="However many steps train E with p held fixed, every row of the change lies in the span of v and p_0, so "
    "its rank is at most two.",
    source=PAPER + ", proof of the divergence of p; for several steps keytokens",
    hypotheses=(_FIXED,),
    tolerance=1.0,  # in units of the rounding of E and of the two outer products of each step
    constant="two",
    draw=_steps,
    seeds=60,
    counters=(Counter("p is trained too", _FIXED.says, _moving_query),),
)
def _outside_span(one: Steps, by: float = 1.0) -> float:
    """The part of E1 - E0 outside the span of v and p_0; and its third singular value."""
    start = one.case.start
    frame = np.linalg.qr(np.column_stack([start.v, start.p]))[0]
    outside = one.moved - one.moved @ frame @ frame.T
    beyond = np.linalg.svd(one.moved, compute_uv=False)[int(2 / by) :].max(initial=0.0)
    sizes = np.linalg.norm(start.E) + np.linalg.norm(one.moved)
    return float(worst(np.abs(outside).max(), beyond) / (4 * EPS * (one.count + 4 + len(start.v)) * sizes))


# --- the leading term ------------------------------------------------------------------------------------------------


def _ideal(rng: np.random.Generator) -> Step:
    """p = 0 and E v = 0, which is all that the exact step needs; E is otherwise arbitrary."""
    documents, d = random_documents(rng, 12), int(rng.integers(2, 9))
    v = rng.normal(size=d)
    E = rng.normal(size=(documents.V, d))
    E -= np.outer(E @ v, v) / (v @ v)
    weights = documents.balanced if rng.random() < 0.5 else None
    return Step(documents, Start(E, np.zeros(d), v), float(rng.uniform(0.1, 100)), weights)


_ZERO_QUERY = Hypothesis[Step]("p_0 = 0", lambda case: not case.start.p.any())
_NO_VALUES = Hypothesis[Step]("E_0 v = 0", lambda case: bool(np.abs(case.start.E @ case.start.v).max() < 1e-12))


def _moved(p: float = 0.0, along_v: float = 0.0) -> Step:
    """p moved by this much in all coordinates, and embeddings along v."""
    case = _ideal(np.random.default_rng(0))
    start = case.start
    E = start.E + along_v * np.outer(np.arange(case.documents.V), start.v)
    return replace(case, start=replace(start, E=E, p=start.p + p))


# --- how far the step is from its leading term -----------------------------------------------------------------------


def _scaled_start(rng: np.random.Generator) -> Step:
    """The start of the theory, or a larger or smaller one; documents of all kinds."""
    documents = random_documents(rng, 20)
    start = gaussian_start(rng, documents.V, int(2 ** rng.uniform(0, 9)))
    scale = np.exp(rng.normal(size=3))
    start = Start(scale[0] * start.E, scale[1] * start.p, scale[2] * start.v)
    return Step(documents, start, 1.0, documents.balanced if rng.random() < 0.5 else None)


def _nearly_attained() -> Step:
    """One rare token against many: attention, force and value differ from the even ones as much as the bound allows."""
    documents = Documents.of([[0] + [1] * 2000], [1], 2)
    return Step(documents, Start(np.array([[0.02], [-0.02]]), np.array([3.0]), np.array([1.0])))


_NOT_NEGATIVE = Hypothesis[Step](
    "no document has a negative weight", lambda case: case.weights is None or bool((case.weights >= 0).all())
)


def _opposed() -> Step:
    """Two documents whose weights cancel: no token has a frequency, and yet the step moves them."""
    documents = Documents.of([[0, 1, 1], [0, 1, 1]], [1, -1], 2)
    start = gaussian_start(np.random.default_rng(0), 2, 4)
    return Step(documents, start, 1.0, np.array([1.0, -0.9]))


COPIES = 2000  # of the documents, with a vocabulary of their own each: so many independent starts in one step
ONCE_IN = 1e6  # instances, one is allowed to fail by chance


@dataclass(frozen=True, eq=False)
class Growing:
    """Documents, and a start with embeddings of variance 1/d."""

    documents: Documents
    d: float
    seed: int
    power: float = 0.5  # E_s and p are larger by d^(1/2 - power)

    @cached_property
    def mean_square(self) -> float:
        """d times sum_s |error_s/freq_s|^2, its mean over the copies.

        The step sees of E only the coordinates along v and p, and these are Gaussian of variance 1/d in any dimension.
        So two dimensions stand for d of them.
        """
        rng, V = np.random.default_rng(self.seed), self.documents.V
        tokens = tuple(row + k * V for k in range(COPIES) for row in self.documents.tokens)
        copies = Documents(tokens, np.tile(self.documents.labels, COPIES), V * COPIES)
        p = np.array([rng.normal() / np.sqrt(self.d), np.sqrt(rng.chisquare(self.d - 1) / self.d)])
        larger = self.d ** (0.5 - self.power)
        E = rng.normal(size=(copies.V, 2)) / np.sqrt(self.d)
        step = Step(copies, Start(larger * E, larger * p, np.array([1.0, 0.0])))
        return float(self.d * np.mean((step.error / step.frequency) ** 2) * V)

    @cached_property
    def law(self) -> tuple[float, float]:
        """What that is for large d, and how far chance may take the mean over the copies from it, relatively.

        To first order the error is delta_s v + epsilon_s p, linear in a = E p and b = E v, which are independent:
            delta = (diag(alpha) - S)/2 a - R/4 b,  epsilon = (diag(alpha) - S)/2 b,  R = C'C/n,  S = C'yC/n,  C = c/T
        So the square is a quadratic form z'Mz of normal numbers with the mean tr M, and (Laurent and Massart) the mean
        of m such is off by more than 2 |M|_F sqrt(x/m) + 2 |M| x/m with a probability below 2 exp(-x).
        """
        documents, C = self.documents, self.documents.shares.toarray()
        turned = (np.diag(documents.signed_frequency()) - C.T @ (documents.labels[:, None] * C) / len(documents)) / 2
        drawn, none = -C.T @ C / (4 * len(documents)), np.zeros_like(turned)
        rows = np.block([[turned, drawn], [none, turned]]) / np.tile(documents.frequency(), 2)[:, None]
        sizes = np.linalg.svd(rows, compute_uv=False) ** 2
        x = np.log(2 * ONCE_IN)
        chance = 2 * np.sqrt(sizes @ sizes * x / COPIES) + 2 * sizes[0] * x / COPIES
        return float(sizes.sum()), float(chance / sizes.sum())


def _growing(rng: np.random.Generator) -> Growing:
    return Growing(random_documents(rng, 20), float(2 ** rng.uniform(16, 24)), int(rng.integers(2**31)))


_SMALL = Hypothesis[Growing]("E_s and p_0 are Gaussian with variance 1/d", lambda one: one.power == 0.5)


@claim(
    "te.one-step",
    says="From p_0 = 0, E_0 v = 0 one gradient step moves E_s by exactly eta/2 times its average signed frequency "
    "along v, so its value by eta alpha_s |v|^2/2.",
    source=AFTER + ", Lemma 4.1 (stated there up to an error)",
    hypotheses=(_ZERO_QUERY, _NO_VALUES),
    tolerance=1.0,  # in units of what rounding may do
    constant="1/2",
    draw=_ideal,
    seeds=60,
    counters=(
        Counter("a query that is not 0", _ZERO_QUERY.says, lambda: _moved(p=1.0)),
        Counter("values at the start", _NO_VALUES.says, lambda: _moved(along_v=1.0)),
    ),
)
def _leading(case: Step, by: float = 1.0) -> float:
    """|E1 - E0 - eta alpha/2 v'| over eta |v|, and the values: b1 - b0 = eta alpha |v|^2/2.

    E1 - E0 is a difference of rounded numbers, divided by eta; and E_0 v, zero up to rounding, bends forces and values.
    """
    v, E0 = case.start.v, case.start.E
    size = float(np.linalg.norm(v))
    rows = np.abs(case.E - E0 - by * case.eta * case.leading).max() / (case.eta * size)
    values = np.abs(case.b - E0 @ v - by * case.eta * case.alpha * size**2 / 2).max() / (case.eta * size**2)
    left = np.abs(E0 @ v).max(initial=0.0, where=np.abs(E0 @ v) < 1e-12)
    lost = EPS * ((len(v) + 4) * np.abs(case.E).max() / (case.eta * size) + len(case.documents) + 20)
    return float(worst(rows, values) / (left + 2 * len(v) * lost))


@claim(
    "te.one-step-bound",
    says="From any start the step differs from eta alpha_s/2 v by at most eta freq_s times an explicit number that "
    "vanishes with max |p_0'E_s| and max |v'E_s|; the bound is nearly attained.",
    source=AFTER + ", Lemma 4.1",
    hypotheses=(_NOT_NEGATIVE,),
    tolerance=1e-12,
    constant="the bound",
    known=(_nearly_attained,),
    draw=_scaled_start,
    seeds=80,
    counters=(Counter("documents of opposite weights", _NOT_NEGATIVE.says, _opposed),),
    notes="The constants are ours.",
)
def _above_bound(case: Step, by: float = 1.0) -> float:
    """The largest error_s / bound_s, less 1."""
    return float(np.max(by * case.error / case.error_bound)) - 1


@claim(
    "te.one-step-rate",
    says="With Gaussian embeddings of variance 1/d the mean square of the step's relative error is C/d for large d, "
    "with C from the counts alone; so the error falls like d^(-1/2).",
    source=AFTER + ", Lemma 4.1; the constant keytokens",
    hypotheses=(_SMALL,),
    tolerance=1.0,  # in units of what chance may do, once in a million instances
    constant="C",
    draw=_growing,
    seeds=20,
    counters=(
        Counter("variance 1/sqrt(d)", _SMALL.says, lambda: replace(_growing(np.random.default_rng(0)), power=0.25)),
    ),
    notes="The next order is of the size d^(-1/2), below 0.4 % here, and has no mean.",
)
def _rate(one: Growing, by: float = 1.0) -> float:
    expected, chance = one.law
    return abs(one.mean_square / (by * expected) - 1) / chance
