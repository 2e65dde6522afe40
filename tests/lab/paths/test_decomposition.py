"""Bounds of what a head loses outside the optimal sets, against random attention; the lemma and what it promises."""

import math
import re

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from keytokens.base.errors import InputError
from keytokens.lab.paths import Decomposition, decomposition, falls
from keytokens.lab.problems.heads import Linear, Quadratic, Tanh
from keytokens.lab.problems.losses import Correlation, Exponential, Logistic
from keytokens.lab.problems.problem import Problem
from keytokens.model.ragged import softmax

from ..problems.given import Given

LOSSES = [Logistic(), Exponential(), Correlation()]
seeds = st.integers(0, 2**32 - 1)
heads = st.sampled_from(["linear", "tanh", "quadratic"])


def draw(seed: int, kind: str, positive: bool = False, loss=None) -> Problem:
    """Three bags of four tokens, of which two tie at the top."""
    rng = np.random.default_rng(seed)
    keys, values, labels = rng.normal(size=(3, 4, 5)), rng.normal(size=(3, 4, 2)), rng.choice([-1, 1], 3)
    v = rng.normal(size=2)
    if positive:  # a best token on the right side, by far
        values[:, 0] = 3 * labels[:, None] * v / (v @ v)
    head = {"linear": Linear(v), "tanh": Tanh(v), "quadratic": Quadratic(v, 0.02)}[kind]
    for i in range(3):
        best = int((labels[i] * head.value(values[i])).argmax())
        values[i, (best + 1) % 4] = values[i, best]
    try:
        return Problem.with_sets(labels, values, head, keys, loss=loss)
    except InputError:  # the bend of the quadratic head may prefer shared attention
        assume(False)
        raise


def margins_and_mass(problem: Problem, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """f_i and q_i, from the plain formulas."""
    s = softmax(problem.keys, problem.keys.rows @ p)
    z = problem.values.sum(s[:, None] * problem.values.rows)
    return problem.labels * problem.head.value(z), problem.keys.sum(np.where(problem.inside, 0.0, s))


@given(seeds, heads)
def test_falls_are_between_their_bounds(seed, kind):
    problem, rng = draw(seed, kind), np.random.default_rng(seed)
    known = falls(problem)
    assume(known is not None)
    for size in (0.1, 1.0, 4.0):
        f, q = margins_and_mass(problem, size * rng.normal(size=5))
        assert (known.least * q <= problem.nu - f + 1e-12).all()
        assert (problem.nu - f <= known.most * q + 1e-12).all()


@given(seeds, heads, st.sampled_from(LOSSES))
def test_the_loss_is_squeezed(seed, kind, loss):
    """log C_minus <= log(L - L*) - log q_max <= log C_plus, however far out; by the lemma's constants too."""
    problem, rng = draw(seed, kind, positive=True, loss=loss), np.random.default_rng(seed)
    known = falls(problem)
    assume(known is not None)
    for size in (0.3, 3.0, 300.0, 3e4):
        reading = problem.read((size * rng.normal(size=5),))
        ratio = reading.above_limit.log - float(reading.log_outside.max())
        for low, high in (known.log_constants(loss), decomposition(problem).log_constants(loss)):
            assert low <= ratio + 1e-9
            assert ratio <= high + 1e-9


def test_a_linear_head_by_hand():
    """Scores (2, 2, -1) and (3, 1): nu = (2, 3), C = 1, eps = min(1 + 1/2, 1 - 1/3) = 2/3."""
    problem = Problem.with_sets([1, 1], [[[2.0], [2.0], [-1.0]], [[3.0], [1.0]]], Linear(np.ones(1)))
    found = decomposition(problem)
    assert found.nu.tolist() == [2, 3]
    assert (found.C, found.eps) == pytest.approx((1, 2 / 3))
    # A and B: |loss'| at 3 and at -1; C_plus = B (1 + 3), C_minus = A (2/3) 2 / 2
    A, B = (1 / (1 + math.exp(x)) for x in (3, -1))
    low, high = found.log_constants(Logistic())
    assert (math.exp(low), math.exp(high)) == pytest.approx((A * 2 / 3, 4 * B))
    assert found.rho(0.5, Logistic()) == pytest.approx(-6 * math.log(4 * B / (A * 2 / 3)))
    known = falls(problem)
    assert (known.least.tolist(), known.most.tolist()) == (pytest.approx([3, 2]), pytest.approx([3, 2]))


def test_tanh_by_hand():
    """tanh(1) - tanh(0) over the way 1: slopes between those at 1 and at 0."""
    problem = Problem.with_sets([1], [[[1.0], [0.0]]], Tanh(np.ones(1)))
    found = decomposition(problem)
    assert (found.C, found.eps) == pytest.approx((1 - math.tanh(1), (1 - math.tanh(1) ** 2) / math.tanh(1)))


def test_bags_that_are_all_set_have_no_fall():
    problem = Problem.with_sets([1, 1], [[[1.0], [0.0]], [[2.0], [2.0]]], Linear(np.ones(1)))
    known = falls(problem)
    assert (known.bags, known.nu.tolist()) == (2, [1.0])
    assert decomposition(problem).nu.tolist() == [1, 2]


def test_equal_constants_still_give_a_negative_rho():
    assert -1e-100 < Decomposition(np.ones(1), 0.0, 1.0).rho(1.0, Correlation()) < 0


SLOPE = Given(lambda z: z[:, 0], lambda z: np.ones_like(z))
REFUSED = [
    (lambda: Decomposition(np.array([1.0, 0.0]), 0.0, 0.5), "`nu` must be numbers above 0, one a bag; saw"),
    (lambda: Decomposition(np.ones(1), -1.0, 0.5), "`C` must be a finite number of at least 0; saw -1.0."),
    (lambda: Decomposition(np.ones(1), 1.0, 0.0), "`eps` must be a finite number above 0; saw 0.0."),
    (lambda: Decomposition(np.ones(1), 1.0, 0.5).rho(0.0, Logistic()), "`delta` must be a finite number above 0"),
    (
        lambda: decomposition(Problem.with_sets([1], [[[1.0], [0.0]]], SLOPE)),
        "`problem` must have a head with bounds, and equal tokens in each set; saw \"head 'given', limit EXACT\".",
    ),
    (
        lambda: decomposition(Problem.with_sets([1], [[[-1.0], [-2.0]]], Linear(np.ones(1)))),
        "`problem` must have f_i > 0 with all attention on the sets, as the lemma presumes; saw [-1.0]. "
        "Use `falls`, which needs no sign.",
    ),
]


@pytest.mark.parametrize("make, message", REFUSED, ids=[message[:30] for _, message in REFUSED])
def test_refusals(make, message):
    with pytest.raises(InputError, match=re.escape(message)):
        make()
