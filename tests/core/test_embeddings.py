"""Embeddings and the two scalars are the same model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from keytokens.core.attention import Gradient, Parameters, evaluate, scores
from keytokens.core.counts import Block
from keytokens.core.embeddings import embed, pull_back
from keytokens.core.losses import Logistic, loss_for

from .reference import random_counts, random_parameters


@pytest.mark.parametrize("scale", [1.0, 300.0])
@pytest.mark.parametrize("sink", [False, True])
@pytest.mark.parametrize("m", [1, 2, 3, 5])
@pytest.mark.parametrize("extra", [1, 2, 20])
def test_embed_gives_the_same_scores(m, sink, scale, extra):
    rng = np.random.default_rng(m)
    C, theta = random_counts(rng, n=40), random_parameters(rng, m, sink=sink, scale=scale)
    embedded = embed(theta, m + extra)
    F = embedded.scores(C)
    assert F.shape == ((40,) if m == 1 else (40, m))
    assert_allclose(F.reshape(40, m).T, scores(C, theta), rtol=1e-12, atol=1e-12)
    E, p, v = embedded
    assert (E.shape, p.shape, v.shape) == ((7, m + extra), (m + extra,), (m + extra,) if m == 1 else (m + extra, m))
    assert (embedded.cls is not None) == sink


@pytest.mark.parametrize("sink", [False, True])
def test_embeddings_are_a_softmax_over_rows(sink):
    """f = softmax(p'E_X')E_X v, spelled out, with the sink as a row of its own."""
    rng = np.random.default_rng(5)
    C, theta = random_counts(rng), random_parameters(rng, 3, sink=sink)
    E, p, v = embedded = embed(theta, 6)
    for counts, f in zip(C.toarray().astype(int), embedded.scores(C), strict=True):
        X = np.repeat(E, counts, axis=0)
        X = np.vstack([X, embedded.cls]) if sink else X
        if len(X):
            attention = np.exp(X @ p) / np.exp(X @ p).sum()
            assert_allclose(f, attention @ X @ v, rtol=1e-11)
        else:
            assert_allclose(f, theta.empty)


def test_random_embeddings_with_any_sink_value():
    """The sink's own value is not zero here."""
    rng = np.random.default_rng(6)
    C = random_counts(rng)
    start = embed(random_parameters(rng, 2), 5)
    E, p, v, cls = rng.normal(size=(7, 5)), rng.normal(size=5), rng.normal(size=(5, 2)), rng.normal(size=5)
    F = replace(start, E=E, p=p, v=v, cls=cls).scores(C)
    for counts, f in zip(C.toarray().astype(int), F, strict=True):
        X = np.vstack([np.repeat(E, counts, axis=0), cls])
        assert_allclose(f, np.exp(X @ p) @ X @ v / np.exp(X @ p).sum(), rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("m", [1, 3])
@pytest.mark.parametrize("sink", [False, True])
def test_pull_back_is_the_derivative(m, sink):
    rng = np.random.default_rng(7)
    C, dim = random_counts(rng), 4
    y, weight = rng.integers(0, max(2, m), C.shape[0]), rng.random(C.shape[0])
    point = {"E": rng.normal(size=(7, dim)), "p": rng.normal(size=dim), "v": rng.normal(size=(m, dim))}
    c, block, loss = rng.normal(size=m), Block.of(C), loss_for(max(2, m))

    def at(E, p, v) -> Gradient:
        return evaluate(block, y, weight, loss, Parameters(E @ p, v @ E.T, c, c, 0.3 if sink else -np.inf))

    pulled = dict(zip("Epv", pull_back(at(**point), **point), strict=True))
    h = 1e-4
    for name, value in point.items():
        numeric = np.zeros_like(value)
        for place in np.ndindex(value.shape):
            unit = np.zeros_like(value)
            unit[place] = h
            one, two, less, least = (at(**{**point, name: value + k * unit}).loss for k in (1, 2, -1, -2))
            numeric[place] = (8 * (one - less) - two + least) / (12 * h)
        assert_allclose(pulled[name], numeric, rtol=1e-8, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("lengths", ["equal", "different"])
def test_one_step_is_a_count(lengths):
    """p_0 = 0, E_0 v = 0, no sink: -dE v = alpha / 2 |v|^2 with alpha_s = (1/n) sum_i y_i c_s / T_i; rows along v."""
    rng = np.random.default_rng(8)
    n, V, dim = 50, 9, 6
    T = np.full(n, 8) if lengths == "equal" else rng.integers(1, 30, n)
    C = np.stack([np.bincount(rng.integers(0, V, t), minlength=V) for t in T]).astype(float)
    y = rng.integers(0, 2, n)
    v = rng.normal(size=(1, dim))
    E = rng.normal(size=(V, dim))
    E -= np.outer(E @ v[0], v[0]) / (v[0] @ v[0])
    zero = np.zeros(1)
    theta = Parameters(np.zeros(V), np.zeros((1, V)), zero, zero)
    gradient = evaluate(Block.of(sparse.csr_matrix(C)), y, np.full(n, 1 / n), Logistic(), theta)
    dE, dp, dv = pull_back(gradient, E, np.zeros(dim), v)
    alpha = (np.where(y == 1, 1, -1)[:, None] * C / T[:, None]).mean(axis=0)
    assert_allclose(-dE @ v[0], alpha / 2 * (v[0] @ v[0]), rtol=1e-13, atol=1e-15)
    assert_allclose(-dE, np.outer(alpha / 2, v[0]), rtol=1e-13, atol=1e-15)
    assert_allclose(dp, 0, atol=1e-15)
    assert_allclose(-dv[0], E.T @ alpha / 2, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("m", [1, 3, 4])
def test_one_step_moves_rows_in_the_span_of_p_and_v(m):
    rng = np.random.default_rng(9)
    C, dim = random_counts(rng, n=40), 12
    E, p, v = rng.normal(size=(7, dim)), rng.normal(size=dim), rng.normal(size=(m, dim))
    theta = Parameters(E @ p, v @ E.T, np.zeros(m), np.zeros(m))
    gradient = evaluate(Block.of(C), rng.integers(0, max(2, m), 40), np.ones(40), loss_for(max(2, m)), theta)
    sizes = np.linalg.svd(pull_back(gradient, E, p, v)[0], compute_uv=False)
    assert sizes[m + 1] < 1e-13 * sizes[0]
