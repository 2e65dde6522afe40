"""The helpers of the claims on descents by other roads; and a spoilt direction, without the hypotheses."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from keytokens.lab.claims.claim import claims
from keytokens.lab.claims.max_margin import descents

from .broken import fails

seeds = st.integers(0, 10_000)


# Lemma 1


@pytest.mark.parametrize("loss, analytic", descents.ANALYTIC, ids=lambda x: getattr(x, "name", ""))
def test_analytic_losses(loss, analytic):
    x = np.linspace(-5, 5, 21)
    assert_allclose(analytic(x), loss.value(x))
    assert_allclose(analytic(x + 1e-30j).imag / 1e-30, loss.slope(x))


# Lemma 6: the sharp constant


@given(seeds)
def test_the_third_moment_is_largest_with_two_tokens(seed):
    """E max(0, w - Ew), w = (u - Eu)^2 and u between 0 and 1."""
    rng = np.random.default_rng(seed)
    for tokens in (2, 3, 4):
        u, s = np.append(rng.random(tokens), [0.0, 1.0]), rng.dirichlet(np.full(tokens + 2, 0.3))
        w = (u - s @ u) ** 2
        assert s @ np.maximum(0, w - s @ w) <= 1 / (6 * np.sqrt(3)) + 1e-15


def test_the_sharp_constant_is_attained():
    x = descents._steepest()
    second = (x.problem.read((x.start + h,)).value for h in (np.array([t, 0.0]) for t in (-1e-3, 0.0, 1e-3)))
    before, here, after = second
    assert (before - 2 * here + after) / 1e-6 == pytest.approx(descents.sharp_smoothness(x.problem), rel=1e-4)


def test_spoilt_cone(monkeypatch):
    monkeypatch.setattr(descents.Local, "direction", property(lambda local: local.problem.keys.rows[0]))
    (claim,) = claims(["mm.thm3"])
    assert fails(replace(claim, hypotheses=claim.hypotheses[:1]), 6)
