"""Many runs at once against one run at a time; the data of the notebooks against the generator itself."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from keytokens.lab.claims.instances import cross_spheres, few_tokens, linear_start, more_tokens, on_sphere
from keytokens.lab.descent import Descent, Normalised, run
from keytokens.lab.descent.stack import Stack, softmax_first
from keytokens.lab.problems.heads import Head
from keytokens.lab.problems.losses import Logistic
from keytokens.lab.problems.problem import Problem

seeds = st.integers(0, 10_000)


class Relu(Head):
    """psi(r) = sum_j max(0, V_j'r), V (d, h) by columns."""

    def __init__(self, V):
        self.V = V

    def value(self, z):
        return np.maximum(z @ self.V, 0.0).sum(axis=1)

    def gradient(self, z):
        return (z @ self.V > 0) @ self.V.T


def problems(seed, count=3):
    rng = np.random.default_rng(seed)
    return [cross_spheres(rng, 3, 4, 3) for _ in range(count)]


@settings(max_examples=10)
@given(seeds)
def test_W_one_by_one(seed):
    every = problems(seed)
    start = np.random.default_rng(seed).normal(size=(3, 9))
    together = Stack.of(every).descend(40, 0.2, start=start)
    for problem, begin, end in zip(every, start, together, strict=True):
        alone = run(Descent(problem, Normalised(0.2)), begin.reshape(3, 3), 40).state.p
        assert_allclose(end.reshape(3, 3), alone, atol=1e-10)


@settings(max_examples=10)
@given(seed=seeds)
def test_factors_one_by_one(seed):
    """Twenty steps: a longer path may pass a saddle, where a unit step makes much of the last digit."""
    every, steps = problems(seed), 20
    K, Q = np.random.default_rng(seed).normal(size=(2, 3, 3, 2))
    (ends,) = Stack.of(every).factor_path([steps], 0.1, K, Q)
    for k, problem in enumerate(every):
        alone = run(Descent(problem.factors(2), Normalised(0.1)), (K[k], Q[k]), steps).state.blocks
        for mine, other in zip((ends[0][k], ends[1][k]), alone, strict=True):
            assert_allclose(mine, other, atol=1e-10)


@settings(max_examples=10)
@given(seeds)
def test_relu_heads_one_by_one(seed):
    rng = np.random.default_rng(seed)
    values, queries, V = rng.normal(size=(2, 3, 4, 3)), rng.normal(size=(2, 3, 3)), rng.normal(size=(2, 3, 5))
    labels, start = rng.choice([-1.0, 1.0], (2, 3)), rng.normal(size=(2, 9))
    trials = Stack.under_relu(values, queries, labels, V, Logistic())
    together = trials.descend(20, 0.1, start=start)
    for k in range(2):
        problem = Problem.under(trials.bags(k), queries[k], labels[k], Relu(V[k]))
        alone = run(Descent(problem, Normalised(0.1)), start[k].reshape(3, 3), 20).state
        assert_allclose(together[k].reshape(3, 3), alone.p, atol=1e-9)
        attention = softmax_first(trials.logits(together)).transpose(1, 2, 0)[k].ravel()
        assert_allclose(attention, alone.reading.attention, atol=1e-9)


@pytest.mark.parametrize("d", [2, 5])
def test_the_span_of_the_keys_is_enough(d):
    """Twelve keys of 4 or 25 numbers: the same logits, and what is outside the span stays."""
    rng = np.random.default_rng(d)
    values, queries, V = on_sphere(rng, 6, 3, 4, d), on_sphere(rng, 6, 3, d), rng.normal(size=(6, d, d)) / d
    trials = Stack.under_relu(values, queries, rng.choice([-1.0, 1.0], (6, 3)), V, Logistic())
    start = rng.normal(size=(6, d * d))
    small, basis = trials.on_span()
    assert small.keys.shape[-1] == min(12, d * d)
    within = np.einsum("mk,mkj->mj", start, basis)
    ends = trials.descend(200, 0.1, start=start), small.descend(200, 0.1, start=within)
    assert_allclose(small.logits(ends[1]), trials.logits(ends[0]), atol=1e-9)
    assert_allclose(start + np.einsum("mj,mkj->mk", ends[1] - within, basis), ends[0], atol=1e-9)


# Data


@pytest.mark.parametrize("make, tokens, best", [(few_tokens, 3, [0, 2]), (more_tokens, 5, [0, 0])])
def test_problems_in_the_plane(make, tokens, best):
    problem = make()
    assert problem.values.sizes.tolist() == [tokens, tokens]
    assert_allclose(np.linalg.norm(problem.queries, axis=1), 1, rtol=1e-6)
    assert problem.values.argmax(problem.scores).tolist() == best


def test_random_problems():
    problem = cross_spheres(np.random.default_rng(0), 3, 4, 5, self_attention=True)
    assert_allclose(problem.queries, problem.values.rows.reshape(3, 4, 5)[:, 0])
    start = linear_start(np.random.default_rng(0), 200, 4)
    assert np.abs(start).max() <= 0.5
    assert start.std() == pytest.approx(0.5 / np.sqrt(3), rel=0.05)
