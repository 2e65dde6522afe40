"""When the flow on p with trained embeddings selects the tokens that decide: below a barrier of the loss.

Also where p then goes in closed form, and which bad optimum waits above the barrier.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...svm.problem import MarginProblem
from ...svm.solution import Solution
from ...svm.solver import solve
from ..claim import Counter, Hypothesis, claim
from ..instances import EPS, worst
from .data import ClosedForm, Planted, alternative_loss, barrier, closed_form, planted
from .flows import Frozen
from .stages import (
    PAPER,
    Start,
    Step,
    gaussian_start,
    ideal_start,
    loss,
    small_enough,
)

# --- the barrier -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Guarded(Frozen):
    """Planted documents: forces of documents differ by exp(value), so the path is thinner here."""

    documents: Planted
    norms: tuple[float, ...] = (1e2, 1e3)
    tolerance: float = 1e-6

    @property
    def kept(self) -> NDArray[np.bool_]:
        """(n,) whether each document selects its important token."""
        pairs = zip(self.run.sets, self.documents.important.tolist(), strict=True)
        return np.array([token in tokens for tokens, token in pairs])

    @property
    def is_below(self) -> bool:
        return loss(self.documents, self.E, self.start, self.v) < barrier(self.documents, self.b)


def _guarded(rng: np.random.Generator) -> Guarded:
    """Steps about as large as the sufficient one, from p = 0 or from a Gaussian p, small enough for the barrier.

    At p = 0 and E v = 0, where a small start tends to, the step is sufficient: so te.multiclass-selection with K = 2.
    """
    data = planted(
        rng, 2 * int(rng.integers(2, 5)), int(rng.integers(2, 4)), 2, 2, int(rng.integers(2, 5)), mirrored=True
    )
    least = float(np.abs(data.signed_frequency()[data.important]).min())
    eta = float(rng.uniform(1.1, 1.5)) * 2 * data.lengths.max() * np.log(len(data) / np.log(2)) / least
    start, share = gaussian_start(rng, data.V, 4096), float(rng.random() < 0.5)

    def guarded(start: Start) -> Guarded:
        return Guarded(data, Step(data, start, eta).E, start.v, share * start.p)

    return guarded(small_enough(start, lambda start: guarded(start).is_below))


def _stuck(rng: np.random.Generator) -> Guarded:
    """Two positive documents, and the flow leaves one of them on its irrelevant token: just above the barrier.

    The token left out lies opposite to the one that the other document selects, kappa > 2 times as far: so it falls
    behind faster than that one gains, and nothing pulls it back.
    """
    d, kappa = int(rng.integers(4, 8)), float(rng.uniform(4, 6))
    frame = np.linalg.qr(rng.normal(size=(d, d)))[0]
    E = np.stack([-kappa * frame[0], frame[0], frame[1], frame[2]])
    values = np.array([*rng.uniform(6, 12, 2), 0.0, 0.0])
    v = np.linalg.lstsq(E[1:], values[1:], rcond=None)[0] + 6 * frame[3]
    E[0] += frame[3] * (values[0] - E[0] @ v) / (frame[3] @ v)
    data = Planted((np.array([0, 2]), np.array([1, 3])), np.ones(2), 4, np.array([0, 1]), 2, 0)
    return Guarded(data, E, v, float(rng.uniform(10, 14)) * (E[1] - E[3]))


def _two_of_a_kind() -> Guarded:
    """The first document holds both positive tokens, and may do without the one that is called important."""
    tokens = (np.array([0, 1, 2]), np.array([1, 3]))
    data = Planted(tokens, np.ones(2), 4, np.array([0, 1]), 2, 0)
    return Guarded(data, np.eye(4), np.array([2.0, 8.0, 0, 0]), np.zeros(4))


_BELOW_OR_LOST = Hypothesis[Guarded](
    "the flow starts below the barrier, or ends without an important token",
    lambda one: one.is_below or not one.kept.all(),
)
_ONE_IMPORTANT = Hypothesis[Guarded](
    "each document holds one important token, all others are irrelevant",
    lambda one: all(len(set(row[one.documents.kinds[row] != 0].tolist())) == 1 for row in one.documents.tokens),
)
_DIVERGES = Hypothesis[Guarded]("the flow reaches the given norm", lambda one: one.run.arrived)


def _trapped(eta: float = 100.0, c: float = 4.0) -> Guarded:
    """Few, frequent negative tokens, and a start far along v: 5 positive tokens, 1 negative one."""
    rng = np.random.default_rng(0)
    data = planted(rng, 20, 4, 5, 1, 8, mirrored=True)
    start = ideal_start(rng, data.V, data.V + 1)
    return Guarded(data, Step(data, start, eta).E, start.v, c * start.v)


# --- exact forms -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Ideal(Step):
    """One step on planted documents from orthonormal embeddings that are orthogonal to v, p = 0."""

    documents: Planted

    @cached_property
    def form(self) -> ClosedForm:
        return closed_form(self.documents, self.start.E, self.start.v, self.eta)

    @cached_property
    def solution(self) -> Solution:
        return solve(MarginProblem.from_vocabulary(self.E, self.documents.counts, self.documents.important))


def _ideal(rng: np.random.Generator) -> Ideal:
    """Enough documents for every important token to meet every irrelevant one, mostly; half of the sets balanced.

    Where labels are not balanced, large steps spoil the signs.
    """
    positives, negatives, others = int(rng.integers(1, 4)), int(rng.integers(1, 4)), int(rng.integers(2, 6))
    n, balanced = 40, rng.random() < 0.5
    above = n // 2 if balanced else round(n * rng.uniform(0.3, 0.7))
    data = planted(rng, n, 8, positives, negatives, others, n_positive=above)
    start = ideal_start(rng, data.V, data.V + 1 + int(rng.integers(0, 5)))
    size = float(rng.uniform(0.5, 2))
    return Ideal(data, replace(start, v=size * start.v), float(rng.uniform(1, 100 if balanced else 15)))


_ORTHONORMAL = Hypothesis[Ideal](
    "E_0 has orthonormal rows, orthogonal to v, and p_0 = 0",
    lambda one: bool(
        np.abs(one.start.E @ one.start.E.T - np.eye(one.documents.V)).max() < 1e-12
        and np.abs(one.start.E @ one.start.v).max() < 1e-12
        and not one.start.p.any()
    ),
)
_MEET = Hypothesis[Ideal]("every important token meets every irrelevant one", lambda one: one.documents.cooccurs)
_SIGNS = Hypothesis[Ideal](
    "the multipliers of the form are not negative",
    lambda one: one.form.valid,
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


# --- a bad optimum ---------------------------------------------------------------------------------------------------


def _far_along_v(rng: np.random.Generator) -> Guarded:
    """From p = c v, c large, with few negative tokens; the step is from p = 0."""
    positives = int(rng.integers(4, 7))
    data = planted(rng, 2 * positives, 4, positives, 1, int(rng.integers(4, 7)), mirrored=True)
    start = ideal_start(rng, data.V, data.V + 1)
    E = Step(data, start, float(rng.uniform(90, 300))).E
    return Guarded(data, E, start.v, float(rng.uniform(4, 6)) * start.v)


_WORTHLESS = Hypothesis[Guarded](
    "irrelevant tokens have the value 0", lambda one: bool(np.abs(one.b[one.documents.kinds == 0]).max() < 1e-12)
)


_MISSED = Hypothesis[Guarded](
    "the flow ends with the important tokens of the positive documents only",
    lambda one: bool((one.kept == (one.documents.labels > 0)).all()),
)


@claim(
    "te.barrier",
    says="A flow that leaves out the important token of a document ends above (1/n) log(1 + exp(-u)), u the largest "
    "y b of an irrelevant token; so if it starts below, every document selects its important token.",
    source=PAPER + ", exact selection; the constant keytokens",
    hypotheses=(_ONE_IMPORTANT, _DIVERGES, _BELOW_OR_LOST),
    tolerance=1e-12,  # the loss falls to what it ends at by rounding
    constant="the barrier",
    draw=lambda rng: _stuck(rng) if rng.random() < 0.4 else _guarded(rng),
    seeds=30,
    counters=(Counter("a document with two important tokens", _ONE_IMPORTANT.says, _two_of_a_kind),),
)
def _breaks_in(one: Guarded, by: float = 1.0) -> float:
    """The barrier over the loss at the end, less 1, where a token is left out; and, for any values, what one costs."""
    b, data = 3 * np.sin(1 + np.arange(one.documents.V)), one.documents
    rows = zip(data.tokens, data.labels, strict=True)
    costs = [np.logaddexp(0, -y * b[token]) / len(data) for row, y in rows for token in row[data.kinds[row] == 0]]
    above = by * barrier(data, one.b) / one.run.loss - 1 if not one.kept.all() else -1.0
    return worst(above, abs(barrier(data, b) / min(costs) - 1))


@claim(
    "te.closed-form",
    says="With orthonormal embeddings p_* gives one logit to the K important tokens of both signs and one, lower by 1, "
    "to the M others, if all meet; its part along v solves two linear equations. With balanced labels that part is 0, "
    "the logits are M/(K + M) and -K/(K + M), and the margin is sqrt(1/K + 1/M).",
    source="keytokens",
    hypotheses=(_ORTHONORMAL, _MEET, _SIGNS),
    tolerance=1.0,  # in units of what the solver's own certificate leaves open
    constant="the logits",
    draw=_ideal,
    seeds=60,
    counters=(
        Counter("tokens that never meet", _MEET.says, _never_meet),
        Counter("tokens that never meet, and unbalanced labels", _MEET.says, lambda: _never_meet(0.75)),
        Counter("Gaussian embeddings, d = 16", _ORTHONORMAL.says, _gaussian),
    ),
)
def _off_closed_form(one: Ideal, by: float = 1.0) -> float:
    """p_*, its logits, its margin and its part along v against the form; a balanced form against these numbers."""
    form, p = one.form, one.solution.p
    along = p @ one.start.v / np.linalg.norm(one.start.v)
    off = [np.abs(p - form.p).max(), np.abs(one.E @ p - by * form.logits).max()]
    off += [abs(along - form.along_v), abs(one.solution.margin - form.margin)]
    if one.documents.labels.sum() == 0:
        important, M = one.documents.kinds != 0, one.documents.irrelevants
        K = int(important.sum())
        off += [np.abs(form.logits - np.where(important, M, -K) / (K + M)).max(), abs(form.along_v)]
        off.append(abs(form.margin - np.sqrt(1 / K + 1 / M)))
    # a point is off the minimiser by |p - p_*|^2 <= |p|^2 - |p_*|^2 <= 2 gap |p|^2, up to rounding
    lost = max(one.solution.gap, 0.0) + max(-float(one.solution.slack.min(initial=0.0)), 0.0) + 8 * EPS
    return worst(*off) / float(one.solution.norm * np.sqrt(2 * lost) * (1 + np.abs(one.E).sum(axis=1).max()))


@claim(
    "te.alternative-optimum",
    says="From p_0 = c v, c large, the flow may leave every negative document on irrelevant tokens; it then ends "
    "in the max-margin direction of that selection, at the loss of positive documents plus log 2 for each other.",
    source="keytokens",
    hypotheses=(_WORTHLESS, _DIVERGES, _MISSED),
    tolerance=1.0,
    constant="the loss",
    known=(lambda: _trapped(100, 4), lambda: _trapped(400, 0.5), lambda: _trapped(400, 4)),
    draw=_far_along_v,
    seeds=20,
    counters=(
        Counter("p_0 = 0", _MISSED.says, lambda: _trapped(100, 0)),
        Counter("p_0 = v/2", _MISSED.says, lambda: _trapped(100, 0.5)),
    ),
)
def _off_alternative(one: Guarded, by: float = 1.0) -> float:
    """L against L_alt in units of rounding; 1 - cos to the bad selection's own max margin, which falls like |p|^-2, so
    by 100 from the one norm to the other, in units of half that; and the barrier, which must be below L_alt.
    """
    expected = alternative_loss(one.documents, one.b)
    falls = one.run.misalignment() / one.run.misalignment(-2) / (2 * (one.norms[0] / one.norms[1]) ** 2)
    lost = abs(one.run.loss - by * expected) / (EPS * (len(one.documents) + 8))
    return worst(lost, falls, barrier(one.documents, one.b) / expected)
