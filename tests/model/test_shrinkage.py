"""Soft thresholding of contributions, against the minimum that defines it."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose
from scipy.optimize import minimize_scalar

from keytokens.model.attention import Parameters
from keytokens.model.shrinkage import contributing_values, kept_shares

numbers = st.floats(-3, 3).map(lambda x: round(x, 3))


@given(arrays(float, 5, elements=numbers), arrays(float, (1, 5), elements=numbers), st.floats(0.05, 2))
def test_two_classes_minimise_the_penalised_distance(a, values, threshold):
    df = np.array([1.0, 4.0, 2.0, 3.0, 5.0])
    e = np.exp(a) * values[0]
    kept = kept_shares(a, values, df, threshold)
    assert ((kept >= 0) & (kept <= 1)).all()
    penalty = min(threshold * float(df @ np.abs(e)) / 15, float(np.abs(e).max()) / 2)
    for s in range(5):
        best = minimize_scalar(
            lambda x, s=s: (x - e[s]) ** 2 / 2 + penalty * abs(x), bounds=(-70, 70), options={"xatol": 1e-9}
        )
        assert_allclose(kept[s] * e[s], best.x, atol=1e-5)


@given(arrays(float, (4, 5), elements=numbers), st.floats(0.05, 2), st.floats(-5, 5))
def test_more_classes_fall_silent_together(B, threshold, shift):
    """By their largest number, wherever attention has its zero; two opposite classes are the case of two."""
    a, df = np.linspace(-1, 1, 5), np.arange(1.0, 6.0)
    theta = Parameters(a, B, np.array([0.3, -0.2, 0.1, -0.2]), np.zeros(4))
    values = contributing_values(theta)
    assert_allclose(values.sum(axis=0), 0, atol=1e-12)
    assert_allclose(np.diff(values, axis=0), np.diff(B + theta.c[:, None], axis=0), atol=1e-12)
    kept = kept_shares(a, values, df, threshold)
    assert_allclose(kept, kept_shares(a + shift, values, df, threshold), atol=1e-9)
    top = np.abs(values).max(axis=0, keepdims=True)
    assert_allclose(kept, kept_shares(a, top, df, threshold), atol=1e-12)


def test_something_is_always_left():
    kept = kept_shares(np.zeros(3), np.array([[1.0, -1.0, 1.0]]), np.ones(3), 100.0)
    assert_allclose(kept, 0.5)


def test_nothing_to_shrink():
    assert kept_shares(np.zeros(0), np.zeros((1, 0)), np.zeros(0), 1.0).shape == (0,)
    assert kept_shares(np.zeros(2), np.ones((1, 2)), np.zeros(2), 1.0).tolist() == [1.0, 1.0]
    assert kept_shares(np.zeros(2), np.zeros((1, 2)), np.ones(2), 1.0).tolist() == [0.0, 0.0]
