"""Max-margin matrices in the Frobenius norm: both roads of the solver against two others, on rows written out."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from keytokens.lab.svm import (
    MarginProblem,
    NotSeparable,
    matrix_problem,
    solve,
    solve_matrix,
    tied_matrix_problem,
)
from keytokens.lab.svm import matrix as module
from keytokens.lab.svm.problem import Kronecker
from keytokens.lab.svm.solution import Rank

from .reference import interior_point, is_feasible, least_distance, one_minus_cos

seeds = st.integers(0, 10_000)


def drawn(seed, most=5):
    """Values, queries, and a selection; sizes on both sides of what can be separated."""
    rng = np.random.default_rng(seed)
    n, T, d, e = rng.integers([1, 2, 1, 1], [most, most + 1, most, most])
    return rng.normal(size=(n, T, d)), rng.normal(size=(n, e)), rng.integers(0, T, n)


def written_out(values, queries, selection):
    """(m, d e): outer products, one by one."""
    return np.array(
        [
            np.outer(values[i, chosen] - values[i, t], queries[i]).ravel()
            for i, chosen in enumerate(selection)
            for t in range(values.shape[1])
            if t != chosen
        ]
    )


@given(seeds)
def test_rows_are_outer_products(seed):
    values, queries, selection = drawn(seed)
    problem, A = matrix_problem(values, queries, selection), written_out(values, queries, selection)
    rng = np.random.default_rng(seed)
    p, lam, every = rng.normal(size=A.shape[1]), rng.normal(size=len(A)), np.arange(len(A))
    assert_allclose(problem.rows(every), A, atol=1e-15)
    assert_allclose(problem.times(p), A @ p, atol=1e-12)
    assert_allclose(problem.inequalities.transposed_times(lam), lam @ A, atol=1e-12)
    assert_allclose(problem.inequalities.gram(), A @ A.T, atol=1e-12)
    assert np.abs(A).max() <= problem.inequalities.largest() * (1 + 1e-12)
    assert [(i, t) for i, t in problem.names] == [
        (i, t) for i, chosen in enumerate(selection) for t in range(values.shape[1]) if t != chosen
    ]


@settings(max_examples=60)
@given(seeds)
def test_against_two_other_solvers(seed):
    values, queries, selection = drawn(seed)
    A = written_out(values, queries, selection)
    b, no_ties = np.ones(len(A)), np.zeros((0, A.shape[1]))
    problem = matrix_problem(values, queries, selection)
    if not is_feasible(A, b, no_ties):
        with pytest.raises(NotSeparable, match="no matrix separates") as refused:
            solve_matrix(problem)
        assert refused.value.witness.is_proof()
        return
    found = solve_matrix(problem)
    assert found.is_optimal(1e-9), found.residuals()
    assert found.W.shape == (values.shape[2], queries.shape[1])
    assert found.margin == pytest.approx(1 / np.linalg.norm(found.W))
    assert one_minus_cos(found.p, least_distance(A, b, no_ties)) < 1e-10
    status, other = interior_point(A, b, no_ties)
    assert status != "Solved" or one_minus_cos(found.p, other) < 1e-8


@settings(max_examples=40)
@given(seeds)
def test_sets_against_two_other_solvers(seed):
    rng = np.random.default_rng(seed)
    n, T, d = rng.integers([1, 2, 1], [5, 6, 5])  # on both sides of what can be separated
    values, queries = rng.normal(size=(n, T, d)), rng.normal(size=(n, d))
    sets = [set(rng.choice(T, rng.integers(1, T), replace=False).tolist()) for _ in range(n)]
    rows, ties = [], []
    for i, tokens in enumerate(sets):
        first, *others = sorted(tokens)
        ties += [np.outer(values[i, first] - values[i, t], queries[i]).ravel() for t in others]
        rows += [np.outer(values[i, first] - values[i, u], queries[i]).ravel() for u in range(T) if u not in tokens]
    A, C = np.array(rows), np.array(ties).reshape(-1, d * d)
    b, problem = np.ones(len(A)), tied_matrix_problem(values, queries, sets)
    if not is_feasible(A, b, C):
        with pytest.raises(NotSeparable, match="no matrix separates") as refused:
            solve_matrix(problem)
        assert refused.value.witness.is_proof(), refused.value.witness.residuals()
        return
    found = solve_matrix(problem)
    assert found.is_optimal(1e-9), found.residuals()
    assert one_minus_cos(found.p, least_distance(A, b, C)) < 1e-9
    status, other = interior_point(A, b, C)
    assert status != "Solved" or one_minus_cos(found.p, other) < 1e-8
    assert np.abs(C @ found.p).max(initial=0.0) < 1e-9
    assert found.residuals()["stationary"] < 1e-9, "with the multipliers of the ties"


@pytest.mark.parametrize("n, T, d", [(3, 3, 6), (8, 6, 3), (5, 4, 2)])
def test_both_roads_agree(n, T, d, monkeypatch):
    rng = np.random.default_rng(0)
    direction = rng.normal(size=(d, d))
    values, queries = rng.normal(size=(n, T, d)), rng.normal(size=(n, d))
    selection = np.einsum("ntd,de,ne->nt", values, direction, queries).argmax(axis=1)
    problem = matrix_problem(values, queries, selection)
    usual = solve_matrix(problem)
    monkeypatch.setattr(module, "_by_gram", lambda *given: None)
    assert_allclose(solve_matrix(problem).W, usual.W, rtol=1e-9, atol=1e-12)
    assert_allclose(solve(problem).p.reshape(d, d), usual.W, rtol=1e-9, atol=1e-12)
    dense = solve(MarginProblem.from_rows(written_out(values, queries, selection)))
    assert_allclose(dense.lam, usual.lam, rtol=1e-8, atol=1e-10)


def test_long_rows_are_not_formed(monkeypatch):
    """60 rows of 640,000 numbers: the Gram matrix is 60 by 60."""
    rng = np.random.default_rng(0)
    values, queries = rng.normal(size=(15, 5, 800)), rng.normal(size=(15, 800))

    def refuse(self, index):
        raise AssertionError("rows were formed")

    monkeypatch.setattr(Kronecker, "rows", refuse)
    found = solve_matrix(matrix_problem(values, queries, np.zeros(15, int)))
    assert found.is_optimal(1e-9)
    assert found.rank == Rank(15, 15)


def test_exchanges_that_go_round_in_circles_are_given_up(monkeypatch):
    monkeypatch.setattr(module, "PIVOTS", 0)
    values, queries, selection = np.random.default_rng(0).normal(size=(2, 3, 4)), np.eye(4)[:2], [0, 1]
    assert solve_matrix(matrix_problem(values, queries, selection)).is_optimal(1e-9)


def test_one_input_is_the_problem_of_a_vector():
    keys, z = np.array([[[-0.1, 1.0], [1.0, 0.0], [0.0, 0.0]]]), np.array([[3.0, 4.0]])
    found = solve_matrix(matrix_problem(keys, z, [0]))
    assert_allclose(found.W, np.outer([-10 / 101, 100 / 101], z[0]) / 25, atol=1e-14)
    assert found.support_tokens == [(0, 2)]
    assert found.rank == Rank(1, 1)


def test_nothing_to_separate():
    found = solve_matrix(matrix_problem([[[1.0, 2.0]]], [[1.0]], [0]))
    assert found.W.tolist() == [[0.0], [0.0]]
    assert found.margin == np.inf
    assert found.rank == Rank(0, 0)


def test_ranks_may_disagree():
    assert Rank.of(np.array([1.0, 1e-4])) == Rank(2, 1)
    assert not Rank(2, 1).agrees
    assert Rank(2, 2).agrees


def test_bad_sets_and_problems():
    with pytest.raises(ValueError, match=r"tied_matrix_problem: `sets\[0\]` must hold at least one token"):
        tied_matrix_problem([[[1.0], [0.0]]], [[1.0]], [[]])
    with pytest.raises(ValueError, match="solve_matrix: `problem` must be a problem of a matrix"):
        solve_matrix(MarginProblem.from_rows([[1.0]]))
