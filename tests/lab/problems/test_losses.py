"""Losses of a margin, against finite differences and against their formulas in many digits."""

from decimal import Context, Decimal, localcontext

import numpy as np
import pytest
from numpy.testing import assert_allclose

from keytokens.base.errors import InputError
from keytokens.lab.problems.losses import Correlation, Exponential, Logistic, Scaled

LOSSES = [Logistic(), Exponential(), Correlation()]
DIGITS = Context(prec=80, Emin=-(10**9), Emax=10**9)

each_loss = pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)


def slope_80(loss, x: Decimal) -> Decimal:
    if loss.name == "logistic":
        return 1 / (1 + x.exp())
    return (-x).exp() if loss.name == "exponential" else Decimal(1)


def value_80(loss, x: Decimal) -> Decimal:
    if loss.name == "logistic":
        return (1 + (-x).exp()).ln()
    return (-x).exp() if loss.name == "exponential" else -x


@each_loss
def test_slopes_are_derivatives(loss):
    x = np.linspace(-8, 8, 41)
    assert_allclose(loss.slope(x), (loss.value(x + 1e-6) - loss.value(x - 1e-6)) / 2e-6, rtol=1e-6, atol=1e-9)
    assert_allclose(loss.log_abs_slope(x), np.log(-loss.slope(x)), atol=1e-12)


@pytest.mark.parametrize("loss", [Logistic(), Exponential()], ids=lambda loss: loss.name)
@pytest.mark.parametrize("x", [-700.0, -3.0, 0.0, 30.0, 39.9, 40.1, 150.0])
def test_logarithms_for_any_margin(loss, x):
    with localcontext(DIGITS):
        value, slope = value_80(loss, Decimal(x)), slope_80(loss, Decimal(x))
        assert loss.log_value(np.array(x)) == pytest.approx(float(value.ln()), rel=1e-14, abs=1e-14)
        assert loss.log_abs_slope(np.array(x)) == pytest.approx(float(slope.ln()), rel=1e-14, abs=1e-14)


@each_loss
@pytest.mark.parametrize("x", [-20.0, 0.3, 50.0, 900.0])
@pytest.mark.parametrize("log_delta", [6.0, 1.0, -18.4, -18.5, -900.0])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_a_change_of_the_loss_keeps_its_digits(loss, x, log_delta, sign):
    with localcontext(Context(prec=900, Emin=-(10**9), Emax=10**9)):
        delta = int(sign) * Decimal(log_delta).exp()
        change = value_80(loss, Decimal(x) + delta) - value_80(loss, Decimal(x))
        seen_sign, seen_log = loss.change(np.array(x), np.array(sign), np.array(log_delta))
        assert seen_sign == (1 if change > 0 else -1)
        assert float(seen_log) == pytest.approx(float(abs(change).ln()), rel=1e-14, abs=1e-13)


def test_scaled_zero():
    zero = Scaled.total(np.ones(1), np.array([-np.inf]))
    assert (zero.log, zero.sign, float(zero.plain)) == (-np.inf, 0, 0)


def test_a_loss_without_infimum_has_no_logarithm():
    with pytest.raises(InputError, match="have an infimum"):
        Correlation().log_value(np.ones(1))
