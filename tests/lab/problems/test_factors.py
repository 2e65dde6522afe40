"""Attention by two factors: gradients by differences, and steps of each factor by itself."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from keytokens.lab.descent import Descent, Normalised, Run, run
from keytokens.lab.problems.heads import Tanh
from keytokens.lab.problems.losses import Exponential
from keytokens.lab.problems.problem import Problem
from keytokens.model.ragged import Bags

seeds = st.integers(0, 10_000)


def drawn(seed, head=False):
    rng = np.random.default_rng(seed)
    n, T, d, e, width = rng.integers([1, 2, 1, 1, 1], [4, 5, 4, 4, 4])
    values, queries = Bags.of(rng.normal(size=(n, T, d))), rng.normal(size=(n, e))
    if head:
        inner = Problem.under(values, queries, rng.choice([-1.0, 1.0], n), Tanh(rng.normal(size=d)))
    else:
        inner = Problem.cross(values, queries, rng.normal(size=n * T), Exponential())
    blocks = rng.normal(size=(d, width)), rng.normal(size=(e, width))
    return inner.factors(int(width)), blocks


@pytest.mark.parametrize("head", [False, True])
@given(seed=seeds)
def test_gradients_by_differences(head, seed):
    problem, blocks = drawn(seed, head)
    found, h = problem.descent(problem.read(blocks), blocks), 1e-6
    for which, down in enumerate(found):
        for place in np.ndindex(blocks[which].shape):
            ends = []
            for sign in (1, -1):
                moved = [block.copy() for block in blocks]
                moved[which][place] += sign * h
                ends.append(problem.read(tuple(moved)).value)
            assert down.plain[place] == pytest.approx((ends[1] - ends[0]) / (2 * h), rel=1e-5, abs=1e-8)


@given(seeds)
def test_the_matrix_reads_as_one(seed):
    problem, (K, Q) = drawn(seed)
    inner = Problem(problem.logits.inner, problem.rule, problem.loss)
    assert_allclose(problem.read((K, Q)).logits, inner.read((K @ Q.T,)).logits)
    assert problem.shapes == (K.shape, Q.shape)
    assert problem.span is None
    assert problem.gap(problem.read((K, Q))).log == inner.gap(inner.read((K @ Q.T,))).log


def test_far_out_the_direction_stays():
    """The gradient is about exp(-4000): K and Q grow as they stand."""
    inner = Problem.cross(Bags.of([[[1.0, 0.0], [0.0, 1.0]]]), np.array([[1.0, 0.0]]), np.array([1.0, 0.0]))
    problem, blocks = inner.factors(1), (np.array([[50.0], [-50.0]]), np.array([[40.0], [0.0]]))
    down_K, down_Q = problem.descent(problem.read(blocks), blocks)
    assert_allclose(down_K.unit.ravel(), np.array([1, -1]) / np.sqrt(2), atol=1e-12)
    assert_allclose(down_Q.unit.ravel(), [1, 0], atol=1e-12)
    # |loss'| = 1/(1 + e) at a margin of 1, times exp(-4000), times |(1, -1)| |Q|
    assert down_K.log == pytest.approx(-4000 - np.log1p(np.e) + np.log(40 * np.sqrt(2)), abs=1e-9)


def test_each_factor_moves_by_the_length_of_a_step():
    problem, start = drawn(3)
    found = Run.of(Descent(problem, Normalised(0.1)), start, 1, range(3))
    moved = [np.linalg.norm(after - before) for after, before in zip(found.blocks, start, strict=True)]
    assert_allclose(moved, [0.1, 0.1])
    assert len(found) == 2


def test_factors_that_begin_at_zero_stay_there():
    problem, (K, Q) = drawn(3)
    state = run(Descent(problem, Normalised(0.1)), (0 * K, 0 * Q), 5).state
    assert not any(block.any() for block in state.blocks)


def test_other_problems_have_no_factors():
    with pytest.raises(ValueError, match=r"Problem.factors: `problem` must be one of cross-attention; saw 'Keys'"):
        Problem.of([[[1.0], [0.0]]], [1.0, 0.0]).factors(1)


def test_refusals():
    problem, start = drawn(0)
    inner = Problem(problem.logits.inner, problem.rule)
    with pytest.raises(ValueError, match=r"Problem.factors: `width` must be a whole number of at least 1; saw 0"):
        inner.factors(0)
    with pytest.raises(ValueError, match="Descent: `start` must have the shapes of the trained parameters"):
        run(Descent(problem, Normalised(1.0)), start[0], 1)
