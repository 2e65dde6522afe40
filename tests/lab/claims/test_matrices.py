"""The claims about attention by a matrix: their second roads, by hand and by a search."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from keytokens.lab.claims.matrices import margins as matrix_margins
from keytokens.lab.claims.matrices.training import best_shares
from keytokens.lab.problems.heads import Quadratic
from keytokens.model.ragged import Bags


@pytest.mark.parametrize("seed", range(5))
def test_best_shares_by_a_search(seed):
    """A quadratic programme, by a general method."""
    rng = np.random.default_rng(seed)
    X, head = rng.normal(size=(4, 3)), Quadratic(rng.normal(size=3), 0.5)
    shares, tokens, losses = best_shares(X, head)
    assert shares.sum() == pytest.approx(1)
    assert (shares[list(tokens)] > 0).all()
    assert (losses > 0).all()
    whole = {"type": "eq", "fun": lambda s: s.sum() - 1}
    found = minimize(
        lambda s: -head.value((X.T @ s)[None])[0], np.full(4, 0.25), bounds=[(0, 1)] * 4, constraints=whole, tol=1e-12
    )
    assert_allclose(X.T @ shares, X.T @ found.x, atol=1e-5)


def test_least_distance_by_hand():
    p, lam = matrix_margins._least_distance(np.array([[2.0, 0.0], [0.0, 1.0], [2.0, 1.0]]))
    assert_allclose(p, [0.5, 1.0])
    assert_allclose(lam, [0.25, 1.0, 0.0], atol=1e-12)


def test_factors_of_rank_one_by_hand():
    """k q >= 1/2 in one dimension: |k|^2 + |q|^2 is least for k = q."""
    one = matrix_margins.Factored(Bags.of([[[2.0], [0.0]]]), np.ones((1, 1)), np.array([0]), 1)
    assert one.shortest == pytest.approx(0.5)


def test_the_constructed_matrix_has_equal_margins():
    """Two inputs along the axes: W z_i = w_i, margins of 1."""
    wanted = matrix_margins.Wanted(
        Bags.of([[[2.0, 0.0], [0.0, 0.0]], [[0.0, 4.0], [0.0, 0.0]]]), np.eye(2), np.array([0, 0])
    )
    assert_allclose(matrix_margins._constructed(wanted), np.diag([0.5, 0.25]))
    assert matrix_margins._feasibility(wanted) < 1e-12


def test_feasibility_fails_below_the_threshold():
    """Ten tokens on a line, a middle one wanted: d = 1 < T - 1."""
    wanted = matrix_margins.Wanted(Bags.of([np.arange(10.0)[:, None]]), np.ones((1, 1)), np.array([4]))
    assert not matrix_margins.TOKENS.holds(wanted)
    assert wanted.frobenius is None
    assert wanted.nuclear is None
    assert matrix_margins._feasibility(wanted) >= 1
