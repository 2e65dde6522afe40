"""Several classes: where one step takes the embeddings, and what the flow on p selects after it.

Scores f_k = sum_s Q_s b_sk with b = E v', one v_k a class, and cross-entropy; r is the largest |v_k - mean of v|. With
e_a = max |p'E_s| and e_b = max |b_sk|, in a document where s has the share c_s/T,
    |Q_s - c_s/T| <= (exp(2 e_a) - 1) c_s/T        sum_k |P_k - 1/K| <= e_b
so one step leaves alpha_s v = sum_k alpha_sk v_k by no more than freq_s times
    r ((1 + e_b) exp(2 e_a) - 1) + 4 e_b exp(2 e_a) (1 - 1/K + e_b/2) |p|
What is new with a third class: a token may speak against one rival and for another, and a document may need two tokens.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.optimize import minimize_scalar

from ....model.ragged import Vector
from ....training.loop import Status, run
from ...descent.flow import Flow
from ...problems.embeddings import (
    Classes,
    class_frequencies,
    multiclass,
    multiclass_gradient,
    planted_classes,
    rival_leads,
)
from ...problems.geometry import misalignment
from ...problems.problem import Problem
from ...svm.problem import MarginProblem
from ...svm.solver import solve
from ..claim import Counter, Hypothesis, claim
from ..instances import on_sphere
from .flows import LOOSE, PIECES, SHORT
from .stages import token_pull


@dataclass(frozen=True, eq=False)
class Point:
    """Documents of K classes, embeddings, the query and the heads (K, d)."""

    data: Classes
    E: Vector
    p: Vector
    v: Vector
    attained: bool = False  # whether the bound that is claimed must nearly be reached here

    @cached_property
    def moved(self) -> Vector:
        """(V, d) (E1 - E0) / eta, by the chain rule of the classifier."""
        return -multiclass_gradient(self.data, self.E, self.p, self.v)[0]

    @cached_property
    def problem(self) -> Problem:
        """p is trained, the rest is fixed."""
        return multiclass(self.E, self.data, self.v)

    @property
    def centred(self) -> Vector:
        """(K, d) v_k less the mean of all."""
        return self.v - self.v.mean(axis=0)

    def after(self, eta: float) -> Point:
        """With the embeddings after one step."""
        return replace(self, E=self.E + eta * self.moved)


def _documents(rows: list[list[int]], y: list[int], V: int, K: int) -> Classes:
    """From lists of tokens; the first token of each is the important one."""
    counts = sparse.csr_matrix(np.array([np.bincount(row, minlength=V) for row in rows], np.float64))
    return Classes(counts, np.array(y), K, np.array([row[0] for row in rows]))


# --- one step --------------------------------------------------------------------------------------------------------


def _any_start(rng: np.random.Generator) -> Point:
    """Planted documents; E, p and v of any size from 0.001 to 1."""
    K, d = int(rng.integers(2, 6)), int(rng.integers(2, 12))
    data = planted_classes(rng, int(rng.integers(1, 6)), int(rng.integers(2, 6)), rng.integers(1, 3, K).tolist(), 5)
    sizes = 10 ** rng.uniform(-3, 0, 3)
    E, p, v = rng.normal(size=(data.counts.shape[1], d)), rng.normal(size=d), rng.normal(size=(K, d))
    return Point(data, sizes[0] * E, sizes[1] * p, sizes[2] * v)


def _step_bound(one: Point) -> float:
    """How far one step is from alpha_s v at most, over freq_s."""
    e_a, e_b = float(np.abs(one.E @ one.p).max()), float(np.abs(one.E @ one.v.T).max())
    r, K, grown = float(np.linalg.norm(one.centred, axis=1).max()), one.data.K, float(np.exp(2 * e_a))
    along_p = 4 * e_b * grown * (1 - 1 / K + e_b / 2) * float(np.linalg.norm(one.p))
    return r * ((1 + e_b) * grown - 1) + along_p


def _one_rare(a: float, b: float, length: float) -> Point:
    """A rare token against 5,000 of another, with opposite logits +-a and values -+b; p of the given length."""
    E = np.array([[a / length, -b], [-a / length, b]])
    data = _documents([[0] + [1] * 5000], [1], 2, 2)
    return Point(data, E, np.array([length, 0.0]), np.array([[0.0, -1.0], [0.0, 1.0]]), attained=True)


def _one_token(b: float) -> Point:
    """Each of four heads is on one side or the other, and so is the only token: P leaves 1/K as far as it can."""
    v = np.array([[1.0, 0], [1, 0], [-1, 0], [-1, 0]])
    return Point(_documents([[0]], [3], 1, 4), np.array([[b, 0.0]]), np.zeros(2), v, attained=True)


_OWN = Hypothesis[Point](
    "each important token occurs under one class only",
    lambda one: all(len(set(one.data.y[one.data.shares[:, s] > 0])) == 1 for s in set(one.data.important)),
)


def _under_two_classes() -> Point:
    """The important token of each class occurs once under the next class too."""
    rng = np.random.default_rng(0)
    data = planted_classes(rng, 2, 3, [1, 1, 1], 4)
    mixed = replace(data, y=np.where(np.arange(6) % 2, (data.y + 1) % 3, data.y))
    return Point(mixed, 1e-3 * rng.normal(size=(7, 9)), 1e-3 * rng.normal(size=9), rng.normal(size=(3, 9)))


@claim(
    "te.multiclass-step",
    says="With K classes one step from any start moves E_s by sum_k alpha_sk v_k, up to freq_s times an explicit "
    "number that vanishes with max |p_0'E_s| and max |v_k'E_s|; so a token of class k alone moves along v_k less the "
    "mean of all v, with a sine of at most that number over their distance. The bound is attained, to 1 %.",
    source="keytokens",
    constant="the bound of the step, over freq_s",
    hypotheses=(_OWN,),
    tolerance=1e-9,  # a share of the bound, which is 1e-6 at least: rounding is 1e-16 beside it
    known=(lambda: _one_rare(0.05, 0.0, 1.0), lambda: _one_token(0.01), lambda: _one_rare(0.0, 1e-5, 1e2)),
    draw=_any_start,
    seeds=60,
    counters=(Counter("important tokens that occur under the next class too", _OWN.says, _under_two_classes),),
)
def _above_step_bound(one: Point, by: float = 1.0) -> float:
    """The largest share of the bound, less 1: of the distance from alpha_s v, and of the sine for important tokens."""
    bound = _step_bound(one) / by
    away = np.linalg.norm(one.moved - class_frequencies(one.data) @ one.v, axis=1)
    frequency = one.data.shares.mean(axis=0)
    share = float((away[frequency > 0] / (frequency[frequency > 0] * bound)).max())
    for s, k in set(zip(one.data.important.tolist(), one.data.y.tolist(), strict=True)):
        along = one.centred[k] / np.linalg.norm(one.centred[k])
        aside = np.linalg.norm(one.moved[s] - one.moved[s] @ along * along) / np.linalg.norm(one.moved[s])
        share = max(share, float(aside * np.linalg.norm(one.centred[k]) / bound))
    return max(share - 1, 0.99 - share if one.attained else -1.0)


# --- no finite stationary point --------------------------------------------------------------------------------------


def _leads_beside(one: Point, token: int) -> Vector:
    """(pairs, K) m_k(token) - m_k(u), for each document with the token and each token u beside it."""
    b, found = one.E @ one.v.T, []
    for shares, y in zip(one.data.shares, one.data.y, strict=True):
        others = np.setdiff1d(np.flatnonzero(shares), [token])
        if shares[token] > 0 and len(others):
            found.append(rival_leads(b[[token]], np.array([y])) - rival_leads(b[others], np.full(len(others), y)))
    return np.concatenate(found) if found else np.zeros((0, one.data.K))


def _log_least_pull(one: Point, token: int) -> float:
    """log of what B_s cannot fall below, if its leads are the largest.

    No P_k is below 1/(1 + (K - 1) exp(widest value)); with logits from 0 to g, Q_s Q_u is least where both are 0 and
    all others g, or where one of the two is g as well.
    """
    b, T = one.E @ one.v.T, float(one.data.counts.sum(axis=1).max())
    widest, g = float(b.max() - b.min()), float(np.ptp(one.E @ one.p))
    rest, others = np.log(max(T - 2, 1e-300)) + g, np.log(T - 1) + g
    both, either = -2 * np.logaddexp(np.log(2), rest), g - 2 * np.logaddexp(0, others)
    chance = -np.log1p((one.data.K - 1) * np.exp(widest))
    return float(min(both, either) + chance + np.log(_leads_beside(one, token).sum(axis=1).max() / len(one.data.y)))


def _dominant(rng: np.random.Generator) -> Point:
    """Planted documents after a step from p = 0, E v' = 0, and a place p of norm up to 1,000."""
    K = int(rng.integers(3, 5))
    data = planted_classes(rng, int(rng.integers(1, 4)), 3, [1] * K, int(rng.integers(2, 5)))
    one = _ideal(rng, data).after(float(rng.uniform(20, 200)))
    return replace(one, p=10 ** rng.uniform(-1, 3) * on_sphere(rng, len(one.p)))


def _one_document(values: list[list[float]], logits: list[float], others: int = 0) -> Point:
    """A document of tokens of these values (T, K) and logits, all of class 0; and others that hold the last token."""
    T, K = len(values), len(values[0])
    E, v = np.hstack([np.eye(T), np.array(values)]), np.hstack([np.zeros((K, T)), np.eye(K)])
    data = _documents([list(range(T)), *([[T - 1]] * others)], [0] * (others + 1), T, K)
    return Point(data, E, np.array([*logits, *np.zeros(K)]), v, attained=True)


def _twins() -> Point:
    """Another document, of class 1, holds other tokens with the same two embeddings: what one gains the other loses."""
    one = _one_document([[1.0, 0], [0, 1]], [0, 0])
    return replace(one, data=_documents([[0, 1], [2, 3]], [0, 1], 4, 2), E=one.E[[0, 1, 1, 0]])


_LEADS = Hypothesis[Point](
    "token 0 leads over every rival by as much as any token beside it, and by more somewhere",
    lambda one: bool(_leads_beside(one, 0).min(initial=0.0) >= 0 and _leads_beside(one, 0).max(initial=0.0) > 0),
)
_INDEPENDENT = Hypothesis[Point](
    "the embeddings are linearly independent", lambda one: bool(np.linalg.matrix_rank(one.E) == len(one.E))
)


@claim(
    "te.multiclass-divergence",
    says="If a token leads over every rival at least as much as each token beside it, its pull on p is positive at "
    "every finite p, by an explicit bound, attained to 1 %; with independent embeddings no point is stationary, and "
    "the flow diverges.",
    source="keytokens",
    constant="the bound of the pull",
    hypotheses=(_LEADS, _INDEPENDENT),
    tolerance=1e-9,  # of a logarithm
    known=(
        lambda: _one_document([[1e-3, 0, 0], [0, 0, 0]], [0, 0]),
        lambda: _one_document([[1.001, 0], [1, 0]], [0, 1.5], 1),
        lambda: _one_document([[1e-3, 0], [0, 0], [1e-3, 0]], [0, 0, 2], 2),
    ),
    draw=_dominant,
    seeds=30,
    counters=(
        Counter(
            "a token that leads over one rival of two",
            _LEADS.says,
            lambda: _one_document([[2, -2, 2], [2, 2, -2]], [0, 0]),
        ),
        Counter("tokens of two classes with the same embeddings", _INDEPENDENT.says, _twins),
    ),
)
def _stationary(one: Point, by: float = 1.0) -> float:
    """log of the bound less log B_s; inf where B_s is not positive, or where the flow from there stays bounded."""
    pull = token_pull(one.problem, one.p, 0)
    end = run(Flow(one.problem, 1e4, PIECES, LOOSE), one.p, 1000)
    if pull.sign <= 0 or end.status is not Status.FAR_ENOUGH:
        return np.inf
    gap = _log_least_pull(one, 0) + float(np.log(by)) - pull.log
    return max(gap, -0.01 - gap) if one.attained else gap


# --- exact forms -----------------------------------------------------------------------------------------------------


def _ideal(rng: np.random.Generator, data: Classes, size: float = 1.0) -> Point:
    """p = 0, orthonormal embeddings, and heads of one length that are orthogonal to them and to each other."""
    V, K = data.counts.shape[1], data.K
    frame = np.linalg.qr(rng.normal(size=(V + K, V + K)))[0]
    return Point(data, frame[:V], np.zeros(V + K), size * frame[V:])


def barrier(one: Point) -> float:
    """(1/n) of the least loss of a document whose attention is off its important token: each of its leads is then at
    most that of the best other token. Below this value every document selects its important token.
    """
    b, least = one.E @ one.v.T, []
    for shares, token, y in zip(one.data.shares, one.data.important, one.data.y, strict=True):
        others = np.setdiff1d(np.flatnonzero(shares), [token])
        leads = np.delete(rival_leads(b[others], np.full(len(others), y)).max(axis=0), y)
        least.append(float(np.log1p(np.exp(-leads).sum())))
    return min(least) / len(least)


@dataclass(frozen=True, eq=False)
class Ideal:
    """An ideal start and the size of its step."""

    start: Point
    eta: float

    @property
    def needed(self) -> float:
        """A sufficient step: T log((K - 1) n / log K) / (freq_min |v|^2)."""
        data, size = self.start.data, float(np.linalg.norm(self.start.v[0]))
        least = float(data.shares.mean(axis=0)[data.important].min())
        chances = float(np.log((data.K - 1) * len(data.y) / np.log(data.K)))
        return float(data.counts.sum(axis=1).max()) * chances / (least * size**2)


def _large_step(rng: np.random.Generator, most: float = 10.0) -> Ideal:
    """As large as is sufficient, or up to ten times that."""
    K, own = int(rng.integers(2, 5)), int(rng.integers(1, 3))
    data = planted_classes(rng, own * int(rng.integers(1, 4)), int(rng.integers(2, 5)), [own] * K, 4)
    start = _ideal(rng, data, float(rng.uniform(0.5, 2)))
    return Ideal(start, float(rng.uniform(1, most)) * Ideal(start, 0.0).needed)


def _exact_step(share: float = 1.0) -> Ideal:
    one = _large_step(np.random.default_rng(0), 1.0)
    return replace(one, eta=share * one.eta)


_LARGE = Hypothesis[Ideal](
    "eta >= T log((K - 1) n / log K) / (freq_min |v|^2)", lambda one: one.eta >= (1 - 1e-12) * one.needed
)
_NEUTRAL = Hypothesis[Ideal](
    "irrelevant tokens are as frequent under every class",
    lambda one: bool(np.abs(np.delete(class_frequencies(one.start.data), one.start.data.important, 0)).max() < 1e-12),
)


def _leaning() -> Ideal:
    """The last token is beside the important ones of class 0, and only there."""
    one = _exact_step()
    data, counts = one.start.data, one.start.data.counts.toarray()
    counts[data.y == 0, -4:] = [0, 0, 0, counts[0].sum() - 1]
    counts[data.y != 0, -2] += counts[data.y != 0, -1]
    counts[data.y != 0, -1] = 0
    return replace(one, start=replace(one.start, data=replace(data, counts=sparse.csr_matrix(counts))))


@claim(
    "te.multiclass-selection",
    says="From p_0 = 0, E_0 v_k = 0 and orthogonal v_k of one length, a step of T log((K - 1) n / log K) over freq_min "
    "|v|^2 or more puts the start of the flow below the barrier. Every document then selects its important token, and "
    "the limit is the max-margin direction.",
    source="keytokens",
    constant="the step that suffices",
    hypotheses=(_NEUTRAL, _LARGE),
    tolerance=1e-3,  # L over the barrier, less 1, is below 0; 1 - cos is about (|p_*|/|p|)^2
    known=(_exact_step,),
    draw=_large_step,
    seeds=24,
    counters=(
        Counter("nine tenths of that step", _LARGE.says, lambda: _exact_step(0.9)),
        Counter("an irrelevant token of class 0 alone", _NEUTRAL.says, _leaning),
    ),
)
def _not_selected(one: Ideal, by: float = 1.0) -> float:
    """L at the start of the flow over the barrier, less 1; important tokens that are missed; and 1 - cos."""
    after = one.start.after(one.eta / by)
    above = float(multiclass_gradient(after.data, after.E, after.p, after.v)[1].loss) / barrier(after) - 1
    target = solve(MarginProblem.from_vocabulary(after.E, after.data.counts, after.data.important))
    # forces of documents differ by exp(lead), up to exp(100) on the way: a longer piece of so thin a path may get lost
    end = run(Flow(after.problem, 3000 * target.norm, PIECES / 4, LOOSE), after.p, 1000).state
    missed = after.data.counts.indices[end.reading.selected] != after.data.important
    return float(max(above, missed.sum(), misalignment(end.p, target.p)))


# --- a document that needs two tokens --------------------------------------------------------------------------------


def _needs_two(rng: np.random.Generator, alone: bool = False) -> Point:
    """Documents of class 0: tokens 0 and 1 together, and each of them with each of the others.

    Token 0 speaks for class 0 against class 1 and for class 2, token 1 the other way round; the others for the rivals.
    `alone`: token 0 leads over both.
    """
    V, low = int(rng.integers(3, 6)), -4.0
    values = np.full((V, 3), [low, 0, 0]) + 0.1 * rng.normal(size=(V, 3))
    for token, rival in ((0, 1), (1, 2)):
        values[token] = [0.0, 0, 0]
        values[token, rival], values[token, 3 - rival] = -rng.uniform(1, 3), rng.uniform(0.5, 1)
    if alone:
        values[0] = [0, -3, -3]
    rows = [[0, 1], *([first, other] for other in range(2, V) for first in (0, 1))]
    E = np.linalg.qr(rng.normal(size=(V + 3, V + 3)))[0][:V] + 0.1 * rng.normal(size=(V, V + 3))
    v = np.asarray(np.linalg.lstsq(E, values, rcond=None)[0].T, np.float64)
    return Point(_documents(rows, [0] * len(rows), V, 3), E, np.zeros(V + 3), v)


def _loss_of_share(one: Point, share: float) -> float:
    """Of the document of tokens 0 and 1, if token 0 has so much of the attention."""
    b = one.E[:2] @ one.v.T
    f = share * b[0] + (1 - share) * b[1]
    return float(np.logaddexp.reduce(f - f[0]))


_TOGETHER = Hypothesis[Point](
    "the loss of a document is least where two tokens share the attention, either with 5 % at least",
    lambda one: bool(0.05 < _best_share(one) < 0.95),
)


def _best_share(one: Point) -> float:
    found = minimize_scalar(
        lambda share: _loss_of_share(one, share), bounds=(0, 1), method="bounded", options={"xatol": 1e-10}
    )
    return float(found.x)


@claim(
    "te.multiclass-pair",
    says="With three classes a document may need two tokens, each against one rival. The flow then keeps both, in the "
    "shares for which the loss of that document is least, and tends to the max-margin direction with the tie as an "
    "equality.",
    source="keytokens",
    constant="the log odds of the shares",
    hypotheses=(_TOGETHER,),
    # in units of 1e-3 for log odds: at most 3 others pull like 6 exp(-12) each, against a curvature of 0.1 or more;
    # and of 5e-3 for 1 - cos of the chord between 8 and 12 |p_*|, where rows without much pull still find their place
    tolerance=1.0,
    draw=_needs_two,
    seeds=24,
    counters=(
        Counter(
            "one token leads over both rivals", _TOGETHER.says, lambda: _needs_two(np.random.default_rng(0), alone=True)
        ),
    ),
)
def _off_pair(one: Point, by: float = 1.0) -> float:
    """The log odds of the shares against a search on a line; 1 - cos of the chord to the direction with the tie."""
    tokens = [[0, 1] if held[:2].all() else [int(np.flatnonzero(held)[0])] for held in one.data.shares > 0]
    target = solve(MarginProblem.from_vocabulary(one.E, one.data.counts, tokens))
    at, ends = one.p, []
    for share in SHORT:
        at = run(Flow(one.problem, share * target.norm, PIECES, 1e-6), at, 1000).state.p
        ends.append(at)
    best = _best_share(one)
    odds = float((one.E[0] - one.E[1]) @ at) - by * float(np.log(best / (1 - best)))
    return float(max(abs(odds) / 1e-3, misalignment(ends[1] - ends[0], target.p) / 5e-3))
