"""Embeddings and the two scalars are the same model."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from keytokens.model.attention import scores
from keytokens.model.embeddings import embed

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
