"""The geometry of |.|_q against its plain formulas, in the numbers as they come and in 60 digits."""

from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from keytokens.base.errors import InputError
from keytokens.lab.problems.geometry import bregman, conjugate, divergence, dual, mirror, norm

exponents = st.sampled_from([1.1, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 7.3])
seeds = st.integers(0, 10_000)


def plain_bregman(a, b, q):
    phi_a, phi_b = np.sum(np.abs(a) ** q) / q, np.sum(np.abs(b) ** q) / q
    return phi_a + (q - 1) * phi_b - np.sum(np.sign(b) * np.abs(b) ** (q - 1) * a)


def bregman_60(a, b, q) -> float:
    """The published formula, in 60 digits."""
    with localcontext(prec=60):
        e, total = Decimal(q), Decimal(0)
        for x, y in zip(map(Decimal, map(float, a)), map(Decimal, map(float, b)), strict=True):
            slope = abs(y) ** (e - 1) * (1 if y > 0 else -1) if y else Decimal(0)
            total += (abs(x) ** e if x else Decimal(0)) / e - (abs(y) ** e if y else Decimal(0)) / e - slope * (x - y)
        return float(total)


@given(seeds, exponents)
def test_the_mirror_is_the_gradient_and_has_an_inverse(seed, q):
    x = np.random.default_rng(seed).normal(size=5)
    r = conjugate(q)
    assert 1 / q + 1 / r == pytest.approx(1)
    assert_allclose(mirror(mirror(x, q), r), x, rtol=1e-12)
    slopes = (np.abs(x * (1 + 1e-5)) ** q - np.abs(x * (1 - 1e-5)) ** q) / (2e-5 * q * x)
    assert_allclose(mirror(x, q), slopes, rtol=1e-8)


@given(seeds, exponents)
def test_norms_are_dual(seed, q):
    """<x, y> <= |x|_q |y|_r, equal for y the mirror of x."""
    x, y = np.random.default_rng(seed).normal(size=(2, 3, 2))
    r = conjugate(q)
    assert np.vdot(x, y) <= norm(x, q) * norm(y, r) * (1 + 1e-12)
    assert np.vdot(x, mirror(x, q)) == pytest.approx(norm(x, q) * norm(mirror(x, q), r))
    assert norm(x, q) == pytest.approx(np.sum(np.abs(x) ** q) ** (1 / q))


def test_norms_of_any_size():
    assert norm(np.array([1e300, 1e300]), 4.0) == pytest.approx(2**0.25 * 1e300)
    assert norm(np.array([1e-300, 0.0]), 3.0) == pytest.approx(1e-300)
    assert norm(np.zeros(3), 1.5) == norm(np.zeros(0), 1.5) == 0


@given(seeds, exponents)
def test_the_divergence_is_the_published_formula(seed, q):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, 4)) * (rng.random((2, 4)) < 0.8)
    assert bregman(a, b, q) == pytest.approx(plain_bregman(a, b, q), rel=1e-9, abs=1e-12)
    assert bregman(a, b, q) >= 0
    assert bregman(a, a, q) == 0
    assert bregman(a, b, 2.0) == pytest.approx(np.sum((a - b) ** 2) / 2, rel=1e-12)


@pytest.mark.parametrize("q", [1.1, 1.75, 2.5, 3.0, 6.0])
@pytest.mark.parametrize("apart", [0.3, 0.0101, 0.0099, 1e-4, 1e-9, 1e-13])
def test_near_points_keep_their_digits(q, apart):
    rng = np.random.default_rng(0)
    b = rng.normal(size=4)
    a = b * (1 + apart * rng.uniform(-1, 1, 4))
    assert bregman(a, b, q) == pytest.approx(bregman_60(a, b, q), rel=1e-9)


def test_directions():
    a, b = np.array([[1.0, 2.0], [0.0, -1.0]]), np.array([[2.0, 1.0], [0.5, -1.0]])
    assert divergence(3 * a, 7 * b, 1.75) == pytest.approx(divergence(a, b, 1.75))
    assert divergence(a, b, 3.0) == pytest.approx(1 - np.vdot(mirror(b / norm(b, 3.0), 3.0), a / norm(a, 3.0)))
    assert divergence(a, 0 * b, 3.0) == np.inf


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: bregman([1.0], [1.0, 2.0], 2.0), "bregman: `b` must have as many entries as `a`, 1; saw '2 entries'"),
        (lambda: bregman([1.0], [1.0], 1.0), "bregman: `q` must be a finite number above 1; saw 1.0"),
        (lambda: divergence([1.0], [1.0], np.inf), "divergence: `q` must be a finite number above 1"),
        (lambda: divergence([0.0], [1.0], 2.0), "`target` must be a direction other than 0"),
        (lambda: divergence([1.0, 0.0], [1.0], 2.0), "divergence: `point` must have as many entries as `target`, 2"),
        (lambda: divergence([1.0], [np.inf], 2.0), "divergence: `point` must be finite"),
        (lambda: divergence(None, [1.0], 2.0), "divergence: `target` must be finite"),
        (lambda: bregman("a", [1.0], 2.0), "bregman: `a` must be finite numbers; saw 'a'"),
        (lambda: conjugate(1.0), "conjugate: `q` must be a finite number above 1"),
        (lambda: conjugate(1e16), r"conjugate: `q` must be at most 1e\+15; saw 1e\+16"),
        (lambda: mirror(np.ones(1), 1.0), "mirror: `q` must be a finite number above 1"),
        (lambda: dual(np.ones(1), 1), "mirror: `q` must be a finite number above 1"),
        (lambda: norm(np.ones(1), 0), "norm: `q` must be a finite number of at least 1; saw 0"),
    ],
)
def test_refusals(make, message):
    with pytest.raises(InputError, match=message):
        make()
