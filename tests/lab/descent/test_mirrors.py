"""Mirror descent against gradient descent, the published formula in plain numbers, closed forms and other solvers."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from keytokens.base.errors import InputError
from keytokens.lab.descent import Descent, MirrorDescent, Normalised, Plain, Polyak, Run, Status, run
from keytokens.lab.problems.geometry import conjugate, divergence, mirror, norm
from keytokens.lab.problems.problem import Problem
from keytokens.lab.svm import MarginProblem, solve_lq
from keytokens.model.ragged import Bags

EXPONENTS = [1.25, 1.75, 2.0, 3.0, 4.0]


def random_problem(seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    return Problem.cross(Bags.of(rng.normal(size=(3, 4, 3))), rng.normal(size=(3, 2)), rng.normal(size=12))


def plain_gradient(problem: Problem, W: np.ndarray) -> np.ndarray:
    """Of the logistic loss, as it is written: mean of loss' X'(diag(s) - ss')gamma z'."""
    total = np.zeros(W.shape)
    for i in range(len(problem.values)):
        X, z = problem.values[i], problem.queries[i]
        gamma = problem.scores[problem.values.starts[i] : problem.values.starts[i + 1]]
        s = np.exp(X @ W @ z - (X @ W @ z).max())
        s /= s.sum()
        slope = -1 / (1 + np.exp(gamma @ s))
        total += slope * np.outer(X.T @ (s * (gamma - gamma @ s)), z)
    return total / len(problem.values)


@pytest.mark.parametrize("rule", [Plain(0.5), Normalised(0.1), Polyak(3.0)], ids=lambda rule: type(rule).__name__)
def test_the_exponent_two_is_gradient_descent(rule):
    problem, start = random_problem(0), np.random.default_rng(0).normal(size=(3, 2))
    steps = 20 if isinstance(rule, Polyak) else 200  # its zigzag magnifies rounding
    one, other = (run(method, start, steps).state for method in (MirrorDescent(problem, rule), Descent(problem, rule)))
    assert_allclose(one.p, other.p, atol=1e-10 * other.norm)


@pytest.mark.parametrize("q", EXPONENTS)
@pytest.mark.parametrize("normalised", [True, False])
def test_steps_by_the_published_formula(q, normalised):
    """sign(W)|W|^(q-1) - eta g/(|g|_r + eps), then back, in the numbers as they come."""
    problem, W = random_problem(1), np.random.default_rng(1).normal(size=(3, 2))
    rule = Normalised(0.1, floor=1e-6) if normalised else Plain(0.1)
    state = run(MirrorDescent(problem, rule, q=q), W, 30).state
    for _ in range(30):
        g = plain_gradient(problem, W)
        size = np.sum(np.abs(g) ** (q / (q - 1))) ** ((q - 1) / q) + 1e-6 if normalised else 1.0
        y = np.sign(W) * np.abs(W) ** (q - 1) - 0.1 * g / size
        W = np.sign(y) * np.abs(y) ** (1 / (q - 1))
    assert_allclose(state.p, W, rtol=1e-8, atol=1e-10)


@given(st.integers(0, 1000), st.sampled_from(EXPONENTS))
@settings(max_examples=25)
def test_normalised_steps_have_their_dual_length(seed, q):
    """However far the softmax has saturated."""
    problem = random_problem(seed)
    W = np.random.default_rng(seed).normal(size=(3, 2)) * 10.0 ** np.random.default_rng(seed).integers(0, 5)
    method = MirrorDescent(problem, Normalised(0.7), q=q)
    before = method.init(W)
    after = method.step(before)
    moved = after.mirrors[0] - before.mirrors[0]
    assert norm(moved, conjugate(q)) == pytest.approx(0.7, rel=1e-9, abs=1e-12 * norm(before.mirrors[0], conjugate(q)))
    assert_allclose(mirror(after.p, q), after.mirrors[0], rtol=1e-9)


@pytest.mark.parametrize("q", EXPONENTS)
def test_one_bag_two_tokens_has_a_closed_form(q):
    """All gradients are multiples of one row a, so from 0 the mirror is one too: W in proportion to mirror(a, r)."""
    a = np.array([3.0, -1.0, 0.5])
    problem = Problem.of(Bags.of([[a, np.zeros(3)]]), np.array([1.0, 0.0]))
    state = run(MirrorDescent(problem, Normalised(0.1), q=q), np.zeros(3), 100).state
    assert_allclose(state.mirrors[0], 10 * a / norm(a, conjugate(q)), rtol=1e-10)
    target = solve_lq(MarginProblem.from_selection(problem.keys, [0]), q)
    assert divergence(target.p, state.p, q) < 1e-15
    assert state.norm == pytest.approx(10 ** (1 / (q - 1)))


@pytest.mark.parametrize("q", [1.5, 2.0, 3.0])
def test_nothing_overflows_where_every_gradient_has_underflowed(q):
    """Joint training, |v| and |W| beyond 1,000: losses of exp(-1e6), still steps of one length in both blocks."""
    rng = np.random.default_rng(2)
    problem = Problem.cross_joint(Bags.of(rng.normal(size=(2, 3, 3))), rng.normal(size=(2, 3)), [1, -1])
    first = run(MirrorDescent(problem, Normalised(0.1), q=q), (np.zeros(3), np.zeros((3, 3))), 100).state
    start = tuple(1e4 * block / norm(block, q) for block in first.blocks)
    seen = []
    outcome = run(MirrorDescent(problem, Normalised(1.0), q=q), start, 200, seen.append)
    assert outcome.status is Status.OUT_OF_STEPS
    assert seen[-1].log_sizes.max() < -1000
    assert np.exp(seen[-1].log_sizes).max() == 0
    for one, other in pairwise(seen):
        for old, new in zip(one.mirrors, other.mirrors, strict=True):
            assert norm(new - old, conjugate(q)) == pytest.approx(1, rel=1e-6)
    assert seen[-1].reading.attention[seen[-1].reading.selected].min() == 1


def test_each_norm_goes_to_its_own_direction():
    problem, start = random_problem(3), np.zeros((3, 2))
    pace = Normalised(lambda t: min(100.0, 0.1 * 1.03**t))
    ends = {q: run(MirrorDescent(problem, pace, q=q), start, 500).state for q in (1.5, 3.0)}
    for q, end in ends.items():
        margins = MarginProblem.from_selection(problem.keys, end.reading.selection)
        own, other = (divergence(solve_lq(margins, e).p, end.p.ravel(), e) for e in (q, 4.5 - q))
        assert own < 0.01
        assert own < other / 5


def test_records_and_ends():
    problem = random_problem(4)
    assert Run.of(MirrorDescent(problem, Normalised(0.1), q=3.0), np.zeros((3, 2)), 10, [0, 10])["norm"][1] > 0
    flat = Problem.of(Bags.of([[[1.0], [2.0]]]), np.ones(2))
    assert run(MirrorDescent(flat, Normalised(1.0), q=3.0), np.zeros(1), 5).status is Status.STATIONARY
    far = MirrorDescent(problem, Normalised(1.0), norm=2.0, q=3.0)
    assert run(far, np.zeros((3, 2)), 100).status is Status.FAR_ENOUGH


@pytest.mark.parametrize("q", [1.0, np.nan, "2"])
def test_refusals(q):
    with pytest.raises(InputError, match="MirrorDescent: `q` must be a finite number above 1"):
        MirrorDescent(random_problem(0), Normalised(0.1), q=q)
    with pytest.raises(InputError, match="MirrorDescent: `start` must have the shapes"):
        run(MirrorDescent(random_problem(0), Normalised(0.1)), np.zeros(3), 1)


def test_what_is_no_problem_and_what_is_no_step():
    with pytest.raises(InputError, match="MirrorDescent: `problem` must have a descent, as Problem has; saw None"):
        MirrorDescent(None, Normalised(0.1))
    with pytest.raises(InputError, match=r"MirrorDescent: `step_rule` must be a step rule; saw 0.1. For example"):
        MirrorDescent(random_problem(0), 0.1)
