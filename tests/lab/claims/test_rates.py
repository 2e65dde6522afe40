"""Fitted exponents: exact laws, laws with an offset, noise, and what cannot be fitted."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from keytokens.base.errors import InputError
from keytokens.lab.claims.instances import one_bag
from keytokens.lab.claims.rates import fitted_growth, fitted_power, followed, log_attention_gap
from keytokens.lab.descent import Descent, Normalised, run
from keytokens.lab.problems.geometry import misalignment

T = np.geomspace(10, 1e4, 60)


@given(st.floats(-3, 3), st.floats(1e-6, 1e6))
def test_exact_powers(a, c):
    fit = fitted_power(T, c * T**a)
    assert_allclose([fit.exponent, fit.low, fit.high], a, atol=1e-9)


@given(st.floats(0.05, 2), st.floats(-100, 100), st.floats(0.01, 100))
def test_growth_does_not_see_an_offset(a, b, c):
    assert fitted_growth(T, b + c * T**a).exponent == pytest.approx(a, abs=2e-2)
    assert fitted_growth(T, b + c * np.log(T)).exponent == pytest.approx(0, abs=1e-6)


def test_intervals_cover_noise():
    """95 of 100 intervals should; blocks are few, so no fewer than 88."""
    rng = np.random.default_rng(0)
    fits = [fitted_power(T, T**-0.5 * np.exp(0.1 * rng.normal(size=len(T)))) for _ in range(200)]
    assert 0.88 <= np.mean([fit.low <= -0.5 <= fit.high for fit in fits]) <= 0.99
    widths = [fit.high - fit.low for fit in fits]
    assert max(widths) < 0.2


def test_an_interval_is_wide_where_the_slope_changes():
    bent, straight = fitted_power(T, T**-0.5 + 0.05), fitted_power(T, T**-0.5)
    assert bent.high - bent.low > 0.05 > straight.high - straight.low
    assert fitted_power(T, T**-0.5 + 0.05, since=1000).exponent > bent.exponent


def test_the_course_is_that_of_the_run():
    target = np.array([-10.0, 100.0])
    course = followed(one_bag(0.9), Normalised(0.1), np.zeros(2), 300, target)
    state = run(Descent(one_bag(0.9), Normalised(0.1)), np.zeros(2), 300).state
    assert course.t[-1] == 300
    assert course.norm[-1] == pytest.approx(state.norm)
    assert course.away[-1] == pytest.approx(misalignment(state.p, target))
    others = np.delete(state.reading.attention, state.reading.selected)
    assert np.exp(course.log_gap[-1]) == pytest.approx(others.sum(), rel=1e-9)


def test_attention_far_below_any_float():
    problem = one_bag(0.9)
    reading = problem.read((np.array([-100.0, 5000.0]),))
    assert log_attention_gap(reading) == pytest.approx(-5010)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: fitted_power([1.0], [1.0, 2.0]), "fitted_power: `x` must have one number for each step"),
        (lambda: fitted_power(T, T, since=9000.0), "`since` must leave at least 16 points"),
        (lambda: fitted_power(T, T - 20), "fitted_power: `x` must be above 0 on the tail"),
        (lambda: fitted_growth(T, -T), "fitted_growth: `x` must rise on the tail"),
        (lambda: followed(one_bag(0.9), Normalised(0.1), np.zeros(2), 0, np.ones(2)), "`steps` must be a whole number"),
    ],
)
def test_refusals(make, message):
    with pytest.raises(InputError, match=message):
        make()
