"""Max-margin matrices in the nuclear norm: against a semidefinite program, and certificates that cannot be forged."""

from dataclasses import replace

import clarabel
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse

from keytokens.lab.svm import NotSeparable, NotSolved, matrix_problem, solve_matrix, solve_nuclear, tied_matrix_problem
from keytokens.lab.svm import nuclear as module
from keytokens.lab.svm.solution import Rank

from .test_matrix import drawn, written_out

seeds = st.integers(0, 10_000)


def by_semidefinite_program(A: np.ndarray, shape: tuple[int, int]) -> float:
    """min tr(X)/2 over X = [[., W], [W', .]] >= 0 with A vec(W) >= 1, by Clarabel; X by its upper triangle, columns."""
    d, e = shape
    size = d + e
    places = {(i, j): k for k, (i, j) in enumerate((i, j) for j in range(size) for i in range(j + 1))}
    cost = np.zeros(len(places))
    cost[[places[i, i] for i in range(size)]] = 0.5
    rows = np.zeros((len(A), len(places)))
    for i in range(d):
        for j in range(e):
            rows[:, places[i, d + j]] = A[:, i * e + j]
    scale = np.array([1.0 if i == j else np.sqrt(2) for i, j in places])
    M = sparse.csc_matrix(np.vstack([-rows, -np.diag(scale)]))
    q = np.concatenate([-np.ones(len(A)), np.zeros(len(places))])
    cones = [clarabel.NonnegativeConeT(len(A)), clarabel.PSDTriangleConeT(size)]
    options = clarabel.DefaultSettings()
    options.verbose = False
    zero = sparse.csc_matrix((len(places), len(places)))
    answer = clarabel.DefaultSolver(zero, cost, M, q, cones, options).solve()
    return float(cost @ np.array(answer.x)) if "Solved" in str(answer.status) else np.nan


@settings(max_examples=40)
@given(seeds)
def test_against_a_semidefinite_program(seed):
    values, queries, selection = drawn(seed)
    problem = matrix_problem(values, queries, selection)
    try:
        short = solve_matrix(problem)
    except NotSeparable:
        with pytest.raises(NotSeparable) as refused:
            solve_nuclear(problem)
        assert refused.value.witness.is_proof()
        return
    found = solve_nuclear(problem)
    assert found.is_optimal(1e-8), found.residuals()
    assert found.norm <= short.singular_values.sum() * (1 + 1e-9)
    other = by_semidefinite_program(written_out(values, queries, selection), found.W.shape)
    assert np.isnan(other) or found.norm == pytest.approx(other, rel=1e-6)


@given(seeds)
def test_the_certificate_by_hand(seed):
    rng = np.random.default_rng(seed)
    values, queries, selection = rng.normal(size=(3, 4, 4)), rng.normal(size=(3, 4)), rng.integers(0, 4, 3)
    found = solve_nuclear(matrix_problem(values, queries, selection))
    A = written_out(values, queries, selection)
    M = (found.lam @ A).reshape(4, 4)
    assert found.bound == pytest.approx(found.lam.sum() / np.linalg.svd(M)[1][0], rel=1e-12)
    assert (A @ found.W.ravel()).min() >= 1 - 1e-9
    assert found.gap == pytest.approx(1 - found.bound / np.linalg.norm(found.W, "nuc"), abs=1e-12)
    assert found.margin == pytest.approx(1 / np.linalg.norm(found.W, "nuc"))
    for _ in range(20):  # no other matrix that separates is shorter
        other = found.W + 0.1 * rng.normal(size=(4, 4))
        least = (A @ other.ravel()).min()
        assert least <= 0 or np.linalg.norm(other, "nuc") / least >= found.bound


@given(seeds)
def test_low_rank_and_tight_rows(seed):
    """In general position the rank r has r (r + 1)/2 free numbers at most as many as tight rows."""
    rng = np.random.default_rng(seed)
    found = solve_nuclear(matrix_problem(rng.normal(size=(5, 4, 6)), rng.normal(size=(5, 6)), rng.integers(0, 4, 5)))
    assert found.rank.relative * (found.rank.relative + 1) / 2 <= len(found.support)
    assert found.rank.relative <= 5


def test_spoilt_answers_are_seen():
    values, queries, selection = np.random.default_rng(1).normal(size=(3, 4, 4)), np.eye(4)[:3], [0, 1, 2]
    found = solve_nuclear(matrix_problem(values, queries, selection))
    assert found.is_optimal()
    assert replace(found, p=0.999 * found.p).residuals()["primal"] == pytest.approx(1e-3, rel=1e-2)
    assert replace(found, p=1.001 * found.p).residuals()["gap"] == pytest.approx(1e-3, rel=1e-2)
    assert replace(found, lam=-found.lam).residuals()["dual"] == found.lam.max()
    assert replace(found, lam=-found.lam).bound == 0
    other = np.roll(found.lam, 1)
    assert not replace(found, lam=other).is_optimal(1e-3)


def test_a_start_changes_nothing():
    values, queries, selection = np.random.default_rng(2).normal(size=(3, 4, 5)), np.eye(5)[:3], [0, 1, 2]
    problem = matrix_problem(values, queries, selection)
    assert_allclose(solve_nuclear(problem, solve_matrix(problem)).W, solve_nuclear(problem).W)


@pytest.mark.parametrize("size", [1e-6, 1e6])
def test_units_do_not_matter(size):
    values, queries, selection = np.random.default_rng(2).normal(size=(3, 4, 5)), np.eye(5)[:3], [0, 1, 2]
    found = solve_nuclear(matrix_problem(values, queries, selection))
    scaled = solve_nuclear(matrix_problem(size * values, queries, selection))
    assert_allclose(scaled.W * size, found.W, rtol=1e-5, atol=1e-7)
    assert scaled.is_optimal(1e-8)


def test_one_input_is_the_problem_of_a_vector():
    z = np.array([[3.0, 4.0]])
    found = solve_nuclear(matrix_problem([[[-0.1, 1.0], [1.0, 0.0], [0.0, 0.0]]], z, [0]))
    assert_allclose(
        found.W, np.outer([-10 / 101, 100 / 101], z[0]) / 25, atol=1e-5
    )  # a gap of h leaves sqrt(h) of W open
    assert found.rank == Rank(1, 1)
    assert found.norm == pytest.approx(10 / np.sqrt(101) / 5, rel=1e-8)


def test_nothing_to_separate():
    found = solve_nuclear(matrix_problem([[[1.0, 2.0]]], [[1.0]], [0]))
    assert found.norm == found.gap == 0
    assert found.margin == np.inf
    assert found.is_optimal(0.0)


def test_a_path_that_ends_early_is_not_an_answer(monkeypatch):
    monkeypatch.setattr(module, "central_path", lambda *given: iter(list(path(*given))[:3]))
    problem = matrix_problem(np.random.default_rng(2).normal(size=(3, 4, 5)), np.eye(5)[:3], [0, 1, 2])
    with pytest.raises(NotSolved, match=r"solve_nuclear: the residual `gap` is .*, above 1e-08; the margin"):
        solve_nuclear(problem)


def test_a_system_that_lost_its_sign_ends_the_path():
    """Past the last digit the path stops by itself, and its best point is near."""
    points = list(path(np.eye(2), np.eye(2), np.ones(2), np.eye(2)))
    assert 5 < len(points) < 80
    assert min(abs(np.trace(point.W) - 2) for point in points) < 1e-8


@pytest.mark.parametrize(
    "start",
    [
        np.zeros((2, 2)),
        solve_matrix(matrix_problem([[[1.0], [0.0]]], [[1.0]], [0])),
        solve_matrix(matrix_problem([[[1.0, 0.0], [0.0, 0.0]]], [[0.0, 2.0]], [1])),
    ],
)
def test_another_start_is_refused(start):
    problem = matrix_problem([[[1.0, 0.0], [0.0, 0.0]]], [[0.0, 2.0]], [0])
    with pytest.raises(ValueError, match="solve_nuclear: `start` must be what solve_matrix returns for this problem"):
        solve_nuclear(problem, start)


def test_ties_are_refused():
    with pytest.raises(ValueError, match=r"solve_nuclear: `problem` must have no ties; saw '1 ties'"):
        solve_nuclear(tied_matrix_problem([[[2.0], [1.0], [0.0]]], [[3.0]], [{0, 1}]))


path = module.central_path
