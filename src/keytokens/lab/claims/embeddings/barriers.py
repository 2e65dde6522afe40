"""When the flow on p with trained embeddings selects the tokens that decide: below a barrier of the loss.

Also which step of the embeddings is large enough for that, where p then goes in closed form, and which bad optimum
waits above the barrier.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ....model.ragged import Vector
from ...svm.problem import MarginProblem
from ...svm.solution import Solution
from ...svm.solver import solve
from ..claim import Counter, Hypothesis, claim
from ..instances import EPS, worst
from .data import Planted, alternative_loss, barrier, closed_form, planted, sufficient_step
from .flows import PIECES
from .stages import (
    AFTER,
    PAPER,
    Run,
    Start,
    Step,
    gaussian_start,
    ideal_start,
    loss,
    second_stage,
    small_enough,
)

# --- the barrier -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Guarded:
    """Planted documents, a step, and where the flow starts."""

    data: Planted
    step: Step
    start: Vector
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

    @property
    def is_below(self) -> bool:
        return loss(self.data, self.step.E, self.start, self.step.start.v) < barrier(self.data, self.step.b)


def _guarded(rng: np.random.Generator) -> Guarded:
    """Steps about as large as the sufficient one, from p = 0 or from a Gaussian p, small enough for the barrier.

    At p = 0 and E v = 0, where a small start tends to, the step is sufficient: so te.sufficient-step.
    """
    data = planted(
        rng, 2 * int(rng.integers(2, 5)), int(rng.integers(2, 4)), 2, 2, int(rng.integers(2, 5)), mirrored=True
    )
    eta = float(rng.uniform(1.1, 1.5)) * sufficient_step(data)
    start, share = gaussian_start(rng, data.V, 4096), float(rng.random() < 0.5)

    def guarded(start: Start) -> Guarded:
        return Guarded(data, Step(data, start, eta), share * start.p)

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
    return Guarded(data, Step(data, Start(E, np.zeros(d), v), 0.0), float(rng.uniform(10, 14)) * (E[1] - E[3]))


def _two_of_a_kind() -> Guarded:
    """The first document holds both positive tokens, and may do without the one that is called important."""
    tokens = (np.array([0, 1, 2]), np.array([1, 3]))
    data = Planted(tokens, np.ones(2), 4, np.array([0, 1]), 2, 0)
    return Guarded(data, Step(data, Start(np.eye(4), np.zeros(4), np.array([2.0, 8.0, 0, 0])), 0.0), np.zeros(4))


_BELOW_OR_LOST = Hypothesis[Guarded](
    "the flow starts below the barrier, or ends without an important token",
    lambda one: one.is_below or one.left_out > 0,
)
_ONE_IMPORTANT = Hypothesis[Guarded](
    "each document holds one important token, all others are irrelevant",
    lambda one: all(len(set(row[one.data.kinds[row] != 0].tolist())) == 1 for row in one.data.tokens),
)
_DIVERGES = Hypothesis[Guarded]("the flow reaches the given norm", lambda one: one.run.arrived)


def _trapped(eta: float = 100.0, c: float = 4.0) -> Guarded:
    """Few, frequent negative tokens, and a start far along v: 5 positive tokens, 1 negative one."""
    rng = np.random.default_rng(0)
    data = planted(rng, 20, 4, 5, 1, 8, mirrored=True)
    start = ideal_start(rng, data.V, data.V + 1)
    return Guarded(data, Step(data, start, eta), c * start.v)


# --- exact forms -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Ideal:
    """Planted documents after one step from orthonormal embeddings that are orthogonal to v, p = 0."""

    data: Planted
    start: Start
    eta: float

    @cached_property
    def step(self) -> Step:
        return Step(self.data, self.start, self.eta)

    @cached_property
    def solution(self) -> Solution:
        return solve(MarginProblem.from_vocabulary(self.step.E, self.data.counts, self.data.important))


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
        np.abs(one.start.E @ one.start.E.T - np.eye(one.data.V)).max() < 1e-12
        and np.abs(one.start.E @ one.start.v).max() < 1e-12
        and not one.start.p.any()
    ),
)
_MEET = Hypothesis[Ideal]("every important token meets every irrelevant one", lambda one: one.data.cooccurs)
_SIGNS = Hypothesis[Ideal](
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
    """A mirrored set and a step up to a hundred times as large as is sufficient."""
    n, T = 2 * int(rng.integers(2, 20)), int(rng.integers(2, 8))
    data = planted(rng, n, T, int(rng.integers(1, 4)), int(rng.integers(1, 4)), int(rng.integers(1, 9)), mirrored=True)
    start = ideal_start(rng, data.V, data.V + 1)
    v = float(rng.uniform(0.5, 2)) * start.v
    eta = float(100 ** rng.random()) * sufficient_step(data, float(np.linalg.norm(v)))
    return Ideal(data, replace(start, v=v), eta)


_LARGE = Hypothesis[Ideal](
    "eta >= 2 T log(n / log 2) / (alpha_min |v|^2)",
    lambda one: one.eta >= sufficient_step(one.data, float(np.linalg.norm(one.start.v))),
)
_NEUTRAL = Hypothesis[Ideal](
    "irrelevant tokens have average signed frequency 0",
    lambda one: bool(np.abs(one.data.signed_frequency()[one.data.kinds == 0]).max() < 1e-15),
)


def _exact_step(share: float, negatives: int = 2) -> Ideal:
    """With all alpha of one size the sufficient step is nearly necessary at p = 0."""
    rng = np.random.default_rng(0)
    data = planted(rng, 24, 4, 2, negatives, 4, mirrored=True)
    return Ideal(data, ideal_start(rng, data.V, data.V + 1), share * sufficient_step(data))


# --- a bad optimum ---------------------------------------------------------------------------------------------------


def _far_along_v(rng: np.random.Generator) -> Guarded:
    """From p = c v, c large, with few negative tokens; the step is from p = 0."""
    positives = int(rng.integers(4, 7))
    data = planted(rng, 2 * positives, 4, positives, 1, int(rng.integers(4, 7)), mirrored=True)
    start = ideal_start(rng, data.V, data.V + 1)
    return Guarded(data, Step(data, start, float(rng.uniform(90, 300))), float(rng.uniform(4, 6)) * start.v)


_WORTHLESS = Hypothesis[Guarded](
    "irrelevant tokens have the value 0", lambda one: bool(np.abs(one.step.b[one.data.kinds == 0]).max() < 1e-12)
)


def _misses(one: Guarded) -> bool:
    """Whether positive documents, and only they, end with their important token."""
    kept = np.array([token in tokens for tokens, token in zip(one.run.sets, one.data.important.tolist(), strict=True)])
    return bool((kept == (one.data.labels > 0)).all())


_MISSED = Hypothesis[Guarded]("the flow ends with the important tokens of the positive documents only", _misses)


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
    b, data = 3 * np.sin(1 + np.arange(one.data.V)), one.data
    rows = zip(data.tokens, data.labels, strict=True)
    costs = [np.logaddexp(0, -y * b[token]) / len(data) for row, y in rows for token in row[data.kinds[row] == 0]]
    above = by * barrier(data, one.step.b) / one.run.loss - 1 if one.left_out else -1.0
    return worst(above, abs(barrier(data, b) / min(costs) - 1))


@claim(
    "te.sufficient-step",
    says="From p_0 = 0 and E_0 v = 0, a step of 2 T log(n / log 2) / (alpha_min |v|^2) or more puts the start of "
    "the flow below the barrier.",
    source=AFTER + ", exact selection",
    hypotheses=(_ORTHONORMAL, _NEUTRAL, _LARGE),
    tolerance=0.0,
    constant="the step",
    known=(lambda: _exact_step(1.0), lambda: _exact_step(1.0, negatives=6)),
    draw=_large_step,
    seeds=60,
    counters=(Counter("nine tenths of that step", _LARGE.says, lambda: _exact_step(0.9)),),
)
def _above_barrier(one: Ideal, by: float = 1.0) -> float:
    """L at the start of the flow over the barrier, less 1."""
    step = Step(one.data, one.start, one.eta / by)
    return loss(one.data, step.E, one.start.p, one.start.v) / barrier(one.data, step.b) - 1


def _certified(solution: Solution) -> float:
    """How far a point may be from the minimiser: |p - p_*|^2 <= |p|^2 - |p_*|^2 <= 2 gap |p|^2, up to rounding."""
    lost = max(solution.gap, 0.0) + max(-float(solution.slack.min(initial=0.0)), 0.0) + 8 * EPS
    return float(solution.norm * np.sqrt(2 * lost))


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
    form, p = closed_form(one.data, one.start.E, one.start.v, one.eta), one.solution.p
    along = p @ one.start.v / np.linalg.norm(one.start.v)
    off = [np.abs(p - form.p).max(), np.abs(one.step.E @ p - by * form.logits).max()]
    off += [abs(along - form.along_v), abs(one.solution.margin - form.margin)]
    if one.data.labels.sum() == 0:
        important, M = one.data.kinds != 0, one.data.irrelevants
        K = int(important.sum())
        off += [np.abs(form.logits - np.where(important, M, -K) / (K + M)).max(), abs(form.along_v)]
        off.append(abs(form.margin - np.sqrt(1 / K + 1 / M)))
    return worst(*off) / float(_certified(one.solution) * (1 + np.abs(one.step.E).sum(axis=1).max()))


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
    expected = alternative_loss(one.data, one.step.b)
    falls = one.run.misalignment() / one.run.misalignment(-2) / (2 * (one.norms[0] / one.norms[1]) ** 2)
    lost = abs(one.run.loss - by * expected) / (EPS * (len(one.data) + 8))
    return worst(lost, falls, barrier(one.data, one.step.b) / expected)
