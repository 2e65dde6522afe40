"""Many runs at once against one run at a time; the data of the notebooks against the generator itself."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from keytokens.lab.claims.instances import cross_spheres, few_tokens, linear_start, more_tokens
from keytokens.lab.claims.matrices import training
from keytokens.lab.claims.matrices.training import draw_heads, ended_runs
from keytokens.lab.descent import Descent, Normalised, run
from keytokens.lab.descent.stack import Stack, softmax_first
from keytokens.lab.problems.heads import Head
from keytokens.lab.problems.logits import EPSILON
from keytokens.lab.problems.losses import Logistic
from keytokens.lab.problems.problem import Problem
from keytokens.model.ragged import Bags

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


def test_ended_runs_have_decided():
    kept = list(ended_runs(range(40), 3, 4, 4, 0.1, (500, 1200)))
    trials, _, start = draw_heads(range(40), 3, 4, 4)
    assert (trials.heads.labels == -1).any(axis=1).all()
    p = trials.descend(1200, 0.1, start=start, floor=EPSILON)
    attention = softmax_first(trials.logits(p)).transpose(1, 2, 0).reshape(40, -1)
    decided = ~((attention > 1e-6) & (attention <= 1e-3)).any(axis=1) & (attention <= 1e-6).any(axis=1)
    assert 3 <= len(kept) <= decided.sum()
    assert {one.seed for one in kept} <= set(np.flatnonzero(decided).tolist())
    for one in kept:
        assert one.tokens == (attention[one.seed] > 1e-3).sum()
        assert one.both[-1] <= one.direction[-1] + 1e-12, "the finite part is a projection"
        assert one.both.shape == (2,)


@pytest.mark.parametrize("d", [2, 5])
def test_the_span_of_the_keys_is_enough(d):
    """Twelve keys of 4 or 25 numbers: the same logits, and what is outside the span stays."""
    trials, _, start = draw_heads(range(6), 3, 4, d)
    small, basis = trials.on_span()
    assert small.keys.shape[-1] == min(12, d * d)
    within = np.einsum("mk,mkj->mj", start, basis)
    ends = trials.descend(200, 0.1, start=start), small.descend(200, 0.1, start=within)
    assert_allclose(small.logits(ends[1]), trials.logits(ends[0]), atol=1e-9)
    assert_allclose(start + np.einsum("mj,mkj->mk", ends[1] - within, basis), ends[0], atol=1e-9)


def test_sets_that_no_direction_keeps_are_left_out():
    """Two kept tokens, and a third between them that has lost all attention: no W does that, so no run is such."""
    bags = Bags.of([[[1.0], [-1.0], [0.0]]])
    path = [np.ones(1)]
    assert training._ended(0, bags, np.ones((1, 1)), np.array([0.5, 0.5, 0.0]), path) is None


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
