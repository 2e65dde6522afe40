"""Losses: derivatives, extreme scores, probabilities."""

from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose

from keytokens.model.losses import CrossEntropy, Logistic, log_probabilities, loss_for, probabilities

LOSSES = [(Logistic(), 1), (CrossEntropy(), 2), (CrossEntropy(), 4)]
IDS = ["logistic", "two scores", "four scores"]


@pytest.mark.parametrize("loss, m", LOSSES, ids=IDS)
@given(data=st.data())
def test_slope_is_the_derivative(loss, m, data):
    F = data.draw(arrays(float, (m, 3), elements=st.floats(-15, 15)))
    y = np.array(data.draw(st.lists(st.integers(0, max(m - 1, 1)), min_size=3, max_size=3)))
    slope = loss.slope(F, y)
    assert slope.shape == F.shape
    h = 1e-4
    for k in range(m):
        step = np.zeros((m, 1))
        step[k] = h
        one, two, less, least = (loss.value(F + j * step, y) for j in (1, 2, -1, -2))
        assert_allclose(slope[k], (8 * (one - less) - two + least) / (12 * h), rtol=1e-8, atol=2e-10)


@pytest.mark.parametrize("loss, m", LOSSES, ids=IDS)
@pytest.mark.parametrize("size", [0.0, 1.0, 30.0, 700.0, 1e4])
def test_extreme_scores(loss, m, size):
    rng = np.random.default_rng(0)
    F = rng.choice([-size, 0.0, size], (m, 200))
    y = rng.integers(0, max(m, 2), 200)
    value, slope = loss.value(F, y), loss.slope(F, y)
    assert np.isfinite(value).all()
    assert np.isfinite(slope).all()
    wide = np.concatenate([np.zeros((1, 200)), F]) if m == 1 else F
    away = (wide - wide[y, np.arange(200)]).astype(np.longdouble)
    expected = np.logaddexp.reduce(away, axis=0).astype(float)
    assert_allclose(value, expected, rtol=1e-12, atol=1e-11)
    assert (np.abs(slope) <= 1 + 1e-15).all()
    assert (value >= 0).all()


def test_logistic_slope_does_not_die_early():
    """sigma(-m) is positive as long as a float64 can say so."""
    F = np.array([[40.0, 100.0, 700.0, -40.0]])
    slope = Logistic().slope(F, np.array([1, 1, 1, 0]))
    assert_allclose(slope, [[-np.exp(-40.0), -np.exp(-100.0), -np.exp(-700.0), np.exp(-40.0)]], rtol=1e-10)


def test_logistic_of_known_scores():
    F = np.array([[0.0, 0.0, np.log(3), np.log(3)]])
    y = np.array([0, 1, 0, 1])
    assert_allclose(Logistic().value(F, y), np.log([2, 2, 4, 4 / 3]), rtol=1e-14)
    assert_allclose(Logistic().slope(F, y), [[0.5, -0.5, 0.75, -0.25]], rtol=1e-14)


@given(arrays(float, (3, 4), elements=st.floats(-30, 30)), st.lists(st.integers(0, 1), min_size=4, max_size=4))
def test_two_scores_are_one_logit(F, y):
    """Cross-entropy of two scores is the logistic loss of their difference."""
    y = np.array(y)
    logit = F[1:2] - F[:1]
    assert_allclose(CrossEntropy().value(F[:2], y), Logistic().value(logit, y), rtol=1e-9, atol=1e-12)
    assert_allclose(CrossEntropy().slope(F[:2], y)[1:], Logistic().slope(logit, y), rtol=1e-9, atol=1e-12)


@given(arrays(float, (4, 5), elements=st.floats(-1e4, 1e4)), st.sampled_from([1, 2, 4]))
def test_probabilities_sum_to_one(F, m):
    P = probabilities(F[:m])
    assert P.shape == (max(m, 2), 5)
    assert_allclose(P.sum(axis=0), 1, rtol=1e-14)
    assert (P >= 0).all()
    scores = np.concatenate([np.zeros((1, 5)), F[:1]]) if m == 1 else F[:m]
    best = P.argmax(axis=0)
    assert (scores[best, np.arange(5)] >= scores.max(axis=0) - 1e-12).all()


def test_one_logit_is_the_log_odds_of_the_second_class():
    P = probabilities(np.array([[-2.0, 0.0, 3.0]]))
    assert_allclose(np.log(P[1] / P[0]), [-2.0, 0.0, 3.0], rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("loss, m", LOSSES, ids=IDS)
def test_the_type_of_the_scores_is_kept(loss, m, dtype):
    F, y = np.ones((m, 2), dtype), np.array([0, 1])
    assert loss.value(F, y).dtype == loss.slope(F, y).dtype == probabilities(F).dtype == dtype


def test_loss_for():
    assert isinstance(loss_for(2), Logistic)
    assert isinstance(loss_for(3), CrossEntropy)


def test_cross_entropy_never_dies_early():
    """Where the class is nearly sure the loss and its slope keep their digits, in float32 too."""
    F, y = np.array([[15.0], [-5.0], [-10.0]], np.float32), np.array([0])
    expected = np.exp(-20.0) + np.exp(-25.0)
    np.testing.assert_allclose(CrossEntropy().value(F, y), expected, rtol=1e-5)
    np.testing.assert_allclose(CrossEntropy().slope(F, y)[0], -expected, rtol=1e-5)


@pytest.mark.parametrize("m", [1, 2, 5])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0, 700.0, 1e4])
def test_log_probabilities_to_the_last_digits(m, scale):
    """Beside 400 digits: also where the probability rounds to 0, and where it rounds to 1."""
    F = np.random.default_rng(0).normal(size=(m, 20)) * scale
    found = log_probabilities(F)
    with localcontext() as context:
        context.prec, context.Emin = 400, -(10**9)
        for j, given in enumerate((F if m > 1 else np.vstack([0 * F, F])).T.tolist()):
            total = sum(Decimal(f).exp() for f in given).ln()
            for k, f in enumerate(given):
                exact = float(Decimal(f) - total)
                assert found[k, j] == pytest.approx(exact, rel=1e-14 * max(1, scale), abs=1e-300)
                assert np.isfinite(found[k, j])
