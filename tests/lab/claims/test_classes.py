"""Several classes: the parts that the claims rest on, each by another road."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from keytokens.lab.claims.embeddings import classes
from keytokens.lab.problems.embeddings import multiclass_gradient

from ..differences import central_differences


@pytest.mark.parametrize("seed", range(6))
def test_one_step_by_differences(seed):
    """The loss document by document, position by position."""
    one = classes._any_start(np.random.default_rng(seed))

    def loss(E):
        total = 0.0
        for row, y in zip(one.data.counts.toarray().astype(int), one.data.y, strict=True):
            X = E[np.repeat(np.arange(len(E)), row)]
            weight = np.exp(X @ one.p) / np.exp(X @ one.p).sum()
            f = weight @ X @ one.v.T
            total += np.log(np.exp(f - f[y]).sum())
        return total / len(one.data.y)

    assert_allclose(one.moved, -central_differences(loss, one.E), atol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_the_barrier(seed):
    """The least loss over all ways to leave out one important token, attention on any mixture of the others."""
    ideal = classes._large_step(np.random.default_rng(seed))
    one, rng, least = ideal.start.after(ideal.eta), np.random.default_rng(5), np.inf
    b, y = one.E @ one.v.T, one.data.y
    for i, counts in enumerate(one.data.counts.toarray()):
        others = np.setdiff1d(np.flatnonzero(counts), one.data.important[i])
        for mixture in rng.dirichlet(np.ones(len(others)), 50):
            f = mixture @ b[others]
            least = min(least, np.log(np.exp(f - f[y[i]]).sum()) / len(y))
    assert classes.barrier(one) <= least + 1e-12
    assert classes.barrier(one) == pytest.approx(np.log(one.data.K) / len(y), rel=1e-9)  # irrelevant values are 0


@pytest.mark.parametrize("seed", range(6))
def test_the_pull_of_a_token(seed):
    """By pairs and in logarithms, against the gradient in the logits."""
    one = classes._dominant(np.random.default_rng(seed))
    p = one.p / np.linalg.norm(one.p)
    _, gradient = multiclass_gradient(one.data, one.E, p, one.v)
    found = [float(classes.token_pull(one.problem, p, token).plain) for token in range(len(one.E))]
    assert_allclose(found, -gradient.a, atol=1e-13)


@pytest.mark.parametrize("seed", range(6))
def test_no_start_leaves_the_bound(seed):
    """A search for a start that is farther from alpha_s v than the bound says."""
    one = classes._any_start(np.random.default_rng(seed))
    d, K = one.E.shape[1], one.data.K

    def short(x):
        E, p, v = np.split(x, [one.E.size, one.E.size + d])
        other = classes.Point(one.data, 0.1 * E.reshape(one.E.shape), p, v.reshape(K, d))
        return -classes._above_step_bound(other)

    x = np.concatenate([10 * one.E.ravel(), one.p, one.v.ravel()])
    found = minimize(short, x, method="Powell", options={"maxfev": 300})
    assert found.fun >= -1e-9


def test_the_best_share_by_its_derivative():
    one = classes._needs_two(np.random.default_rng(1))
    best, h = classes._best_share(one), 1e-5
    slope = classes._loss_of_share(one, best + h) - classes._loss_of_share(one, best - h)
    assert abs(slope) < 1e-10
