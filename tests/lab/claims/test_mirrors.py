"""The helpers of the claims on mirror descent by other roads."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from keytokens.base.errors import InputError
from keytokens.lab.claims.claim import claims
from keytokens.lab.claims.instances import cross_spheres, one_bag, two_inputs
from keytokens.lab.claims.matrices import mirrors
from keytokens.lab.claims.matrices.mirrors import joint_target
from keytokens.lab.descent import MirrorDescent, Normalised, run
from keytokens.lab.descent.stack import Stack
from keytokens.lab.problems.geometry import bregman, mirror, norm


@pytest.fixture(scope="module")
def problems():
    return [cross_spheres(np.random.default_rng(seed), 3, 4, 3) for seed in range(3)]


@pytest.mark.parametrize("q", [1.5, 3.0])
@pytest.mark.parametrize("floor", [0.0, 1e-3])
def test_many_runs_are_each_by_itself(problems, q, floor):
    start = np.random.default_rng(0).normal(size=(3, 9))
    early, late = Stack.of(problems).mirror_path(q, [7, 60], start, 0.1, floor)
    for k, problem in enumerate(problems):
        method = MirrorDescent(problem, Normalised(0.1, floor=floor), q=q)
        for seen, steps in ((early, 7), (late, 60)):
            alone = run(method, start[k].reshape(3, 3), steps).state.p
            assert_allclose(seen[k], alone.ravel(), rtol=1e-9, atol=1e-12)


def test_two_inputs_in_the_plane():
    """Two rows and two unknowns: v solves both label equations, whatever the norm, where both are tight."""
    problem = two_inputs()
    found = joint_target(problem, [1, 0], 1.75)
    rows = problem.labels[:, None] * np.array([[1.4, 2.1], [0.4, -2.2]])
    both = np.linalg.solve(rows, np.ones(2))
    assert norm(found.head.p, 1.75) <= norm(both, 1.75) + 1e-12
    W = found.attention.p.reshape(2, 2)
    X, Z = problem.values.rows.reshape(2, 3, 2), problem.queries
    margins = [(X[i, a] - X[i, t]) @ W @ Z[i] for i, a in ((0, 1), (1, 0)) for t in range(3) if t != a]
    assert min(margins) == pytest.approx(1, abs=1e-9)
    assert_allclose(found.divergences((found.head.p, W)), 0, atol=1e-15)


def test_bad_numbers(problems):
    for q, eta, floor, why in ((1.0, 0.1, 0.0, "`q`"), (2.0, 0.0, 0.0, "`eta`"), (2.0, 0.1, -1.0, "`floor`")):
        with pytest.raises(InputError, match=f"Stack.mirror_path: {why} must be"):
            Stack.of(problems).mirror_path(q, [1], np.zeros((3, 9)), eta, floor)


def test_attention_far_below_any_float():
    reading = one_bag(0.9).read((np.array([-100.0, 5000.0]),))
    assert mirrors.log_attention_gap(reading) == pytest.approx(-5010)


def test_spoilt_limit():
    (claim,) = claims(["fu.mirror-direction"])
    other = [replace(x, measured=4.0 if x.q < 2.5 else 1.5) for x in claim.instances(3)]
    assert min(map(claim.excess, other)) > claim.tolerance


def test_spoilt_selection():
    assert mirrors._off_both(mirrors._two(3.0, 1, 0)) == 1.0


@pytest.mark.parametrize("q", [1.5, 2.0, 3.0])
def test_mirrors_that_are_off_by_a_little_diverge_as_little_as_said(q):
    """D(a, b) of unit vectors, from the mirrors: e = |y_a - y_b|_r."""
    rng = np.random.default_rng(0)
    for spread in (0.1, 0.01, 0.001) * 20:
        a = rng.normal(size=6)
        a /= norm(a, q)
        y = mirror(a, q)
        moved = y + spread * rng.normal(size=6)
        b = mirror(moved, q / (q - 1))
        e = norm(moved - y, q / (q - 1))
        allowed = mirrors.settled_divergence(q, np.inf, e)
        assert bregman(a, b, q) <= allowed * (1 + 5 * e)
