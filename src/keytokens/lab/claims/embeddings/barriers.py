"""When the flow on p with trained embeddings selects the tokens that decide: below a barrier of the loss.

Also which step of the embeddings is large enough for that, where p then goes in closed form, which bad optimum waits
above the barrier, and the same with several classes.
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

    return guarded(small_enough(start, lambda start: bool(_BELOW.holds(guarded(start)))))


_BELOW = Hypothesis[Guarded](
    "the loss at the start of the flow is below the barrier",
    lambda one: loss(one.data, one.step.E, one.start, one.step.start.v) < barrier(one.data, one.step.b),
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


def _ideal(rng: np.random.Generator, share: float = 0.5, most: float = 100.0) -> Ideal:
    """Enough documents for every important token to meet every irrelevant one, mostly; eta up to `most`."""
    positives, negatives, others = int(rng.integers(1, 4)), int(rng.integers(1, 4)), int(rng.integers(2, 6))
    n = 40
    data = planted(rng, n, 8, positives, negatives, others, n_positive=round(share * n))
    start = ideal_start(rng, data.V, data.V + 1 + int(rng.integers(0, 5)))
    size = float(rng.uniform(0.5, 2))
    return Ideal(data, replace(start, v=size * start.v), float(rng.uniform(1, most)))


_ORTHONORMAL = Hypothesis[Ideal](
    "E_0 has orthonormal rows, orthogonal to v, and p_0 = 0",
    lambda one: bool(
        np.abs(one.start.E @ one.start.E.T - np.eye(one.data.V)).max() < 1e-12
        and np.abs(one.start.E @ one.start.v).max() < 1e-12
        and not one.start.p.any()
    ),
)
_MEET = Hypothesis[Ideal]("every important token meets every irrelevant one", lambda one: one.data.cooccurs)
_EVEN = Hypothesis[Ideal]("both labels are equally frequent", lambda one: one.data.labels.sum() == 0)
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
    """A mirrored set and a step just as large as is sufficient, up to 5 %."""
    n, T = 2 * int(rng.integers(2, 20)), int(rng.integers(2, 8))
    data = planted(rng, n, T, int(rng.integers(1, 4)), int(rng.integers(1, 4)), int(rng.integers(1, 9)), mirrored=True)
    start = ideal_start(rng, data.V, data.V + 1)
    v = float(rng.uniform(0.5, 2)) * start.v
    eta = float(rng.uniform(1, 1.05)) * sufficient_step(data, float(np.linalg.norm(v)))
    return Ideal(data, replace(start, v=v), eta)


_LARGE = Hypothesis[Ideal](
    "eta >= 2 T log(n / log 2) / (alpha_min |v|^2)",
    lambda one: one.eta >= sufficient_step(one.data, float(np.linalg.norm(one.start.v))),
)
_NEUTRAL = Hypothesis[Ideal](
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
    says="If the flow starts with a loss below (1/n) log(1 + exp(-u)), u the largest y b of an irrelevant token, "
    "every document selects its important token.",
    source=PAPER + ", exact selection; the constant keytokens",
    hypotheses=(_BELOW, _DIVERGES),
    tolerance=1e-12,
    draw=_guarded,
    seeds=24,
    counters=(Counter("a start far along v", _BELOW.says, _trapped),),
)
def _breaks_in(one: Guarded) -> float:
    """Documents without their important token; and, for any values, the barrier against the least of what one costs."""
    b = 3 * np.sin(1 + np.arange(one.data.V))
    costs = [
        np.logaddexp(0, -y * b[token]) / len(one.data)
        for row, y in zip(one.data.tokens, one.data.labels, strict=True)
        for token in row[one.data.kinds[row] == 0]
    ]
    return max(float(one.left_out), abs(barrier(one.data, b) - min(costs)))


@claim(
    "te.sufficient-step",
    says="From p_0 = 0 and E_0 v = 0, a step of 2 T log(n / log 2) / (alpha_min |v|^2) or more puts the start of "
    "the flow below the barrier.",
    source=AFTER + ", exact selection",
    hypotheses=(_ORTHONORMAL, _NEUTRAL, _LARGE),
    tolerance=0.0,
    draw=_large_step,
    seeds=60,
    counters=(Counter("nine tenths of that step", _LARGE.says, _small_step),),
)
def _above_barrier(one: Ideal) -> float:
    """L at the start of the flow over the barrier, less 1."""
    return loss(one.data, one.step.E, one.start.p, one.start.v) / barrier(one.data, one.step.b) - 1


@claim(
    "te.closed-form",
    says="With K important and M irrelevant tokens that all meet, balanced labels and orthonormal embeddings, p_* "
    "gives M/(K + M) to important tokens of both signs, -K/(K + M) to the others, nothing to v; its margin is "
    "sqrt(1/K + 1/M).",
    source="keytokens",
    hypotheses=(_ORTHONORMAL, _MEET, _EVEN),
    tolerance=1e-8,
    draw=_ideal,
    seeds=40,
    counters=(
        Counter("three positive documents to one", _EVEN.says, lambda: _ideal(np.random.default_rng(0), 0.75)),
        Counter("tokens that never meet", _MEET.says, _never_meet),
        Counter("Gaussian embeddings, d = 16", _ORTHONORMAL.says, _gaussian),
    ),
)
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


@claim(
    "te.unbalanced-form",
    says="With unbalanced labels p_* still has one logit on all important tokens and one, lower by 1, on all "
    "others; its part along v solves two linear equations.",
    source="keytokens",
    hypotheses=(_ORTHONORMAL, _MEET, _SIGNS),
    tolerance=1e-8,
    draw=lambda rng: _ideal(rng, float(rng.uniform(0.3, 0.7)), 15.0),  # larger steps spoil the signs
    seeds=40,
    counters=(Counter("tokens that never meet", _MEET.says, lambda: _never_meet(0.75)),),
)
def _off_unbalanced_form(one: Ideal) -> float:
    form = closed_form(one.data, one.start.E, one.start.v, one.eta)
    along = one.solution.p @ one.start.v / np.linalg.norm(one.start.v)
    logits = np.abs(one.step.E @ one.solution.p - form.logits).max()
    sizes = abs(along - form.along_v), abs(one.solution.margin - form.margin)
    return float(max(np.abs(one.solution.p - form.p).max(), logits, *sizes))


@claim(
    "te.alternative-optimum",
    says="From p_0 = c v, c large, the flow may leave every negative document on irrelevant tokens; it then ends "
    "in the max-margin direction of that selection, at the loss of positive documents plus log 2 for each other.",
    source="keytokens",
    hypotheses=(_WORTHLESS, _DIVERGES, _MISSED),
    tolerance=1.0,
    known=(lambda: _trapped(100, 4), lambda: _trapped(400, 0.5), lambda: _trapped(400, 4)),
    draw=_far_along_v,
    seeds=20,
    counters=(
        Counter("p_0 = 0", _MISSED.says, lambda: _trapped(100, 0)),
        Counter("p_0 = v/2", _MISSED.says, lambda: _trapped(100, 0.5)),
    ),
)
def _off_alternative(one: Guarded) -> float:
    """L against L_alt in units of 1e-9, the direction against the bad selection's own max margin in units of 1e-3.

    And L_alt must be above the barrier: 1 + their relative distance is below 1.
    """
    expected = alternative_loss(one.data, one.step.b)
    above = 1 + (barrier(one.data, one.step.b) - expected) / expected
    return float(max(abs(one.run.loss - expected) / 1e-9, one.run.misalignment() / 1e-3, above))
