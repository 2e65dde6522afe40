"""The claims about attention by a matrix: swapped norms, too few runs, and their constructions by hand."""

from dataclasses import replace

import numpy as np
from numpy.testing import assert_allclose

from keytokens.lab.claims.claim import claims, judge
from keytokens.lab.claims.matrices import margins as matrix_margins
from keytokens.lab.claims.matrices import training as matrix_training
from keytokens.model.ragged import Bags

from .broken import fails


def test_swapped_norms_are_noticed(monkeypatch):
    honest = matrix_training._distances
    monkeypatch.setattr(matrix_training, "_distances", lambda p, one: honest(p, one)[::-1])
    (claim,) = claims(["fu.norms"])
    assert fails(replace(claim, known=claim.known[:1]))


def test_too_few_runs_are_noticed(monkeypatch):
    honest = matrix_training._endings(4, 125)
    monkeypatch.setattr(matrix_training, "_endings", lambda d, draws: honest[:5])
    assert judge(claims(["fu.several"])[0]).failures == ("the hypotheses hold on 0 of 2 known instances",)


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
    assert matrix_training._distances(np.ones(1), wanted) == (np.inf, np.inf)
    assert matrix_training._apart(wanted) == 0
