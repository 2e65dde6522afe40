"""The lq solver against a power-cone formulation, SLSQP, the Euclidean solver and closed forms, on random problems."""

from dataclasses import replace

import clarabel
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.optimize import minimize

from keytokens.base.errors import InputError
from keytokens.lab.problems.geometry import conjugate, divergence, mirror, norm
from keytokens.lab.problems.logits import outer_keys
from keytokens.lab.svm import MarginProblem, NotSeparable, NotSolved, solve, solve_lq
from keytokens.lab.svm import lq as lq_module
from keytokens.lab.svm.solution import Lq, Solution
from keytokens.model.ragged import Bags

from .reference import is_feasible
from .test_solver import check_proof, systems

exponents = st.sampled_from([1.1, 1.3, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 8.0])


def power_cone_norm(A, b, C, q) -> float:
    """min |p|_q by Clarabel: minimise t with sum z_j = t and z_j^(1/q) t^(1-1/q) >= |p_j|; unknowns (p, z, t)."""
    m, d = A.shape
    size = 2 * d + 1
    zero, end = np.zeros, np.eye(size)[-1]
    equal = [np.concatenate([zero(d), np.ones(d), [-1.0]])]
    equal += [np.concatenate([row, zero(d + 1)]) for row in C]
    above = [np.concatenate([-row, zero(d + 1)]) for row in A]
    power = [-part for j in range(d) for part in (np.eye(size)[d + j], end, np.eye(size)[j])]
    right = np.concatenate([zero(1 + len(C)), -b, zero(3 * d)])
    cones = [clarabel.ZeroConeT(1 + len(C)), clarabel.NonnegativeConeT(m)]
    cones += [clarabel.PowerConeT(1 / q)] * d
    wanted = clarabel.DefaultSettings()
    wanted.verbose = False
    matrix = sparse.csc_matrix(np.array(equal + above + power))
    nothing = sparse.csc_matrix((size, size))
    answer = clarabel.DefaultSolver(nothing, end, matrix, right, cones, wanted).solve()
    assert str(answer.status) in ("Solved", "AlmostSolved"), answer.status
    return float(answer.x[-1])


def check_minimiser(solution: Solution, A, b, C, q):
    """The optimality conditions and the bound from below, from the matrices alone."""
    p, lam, nu = solution.p, solution.lam, solution.nu
    assert solution.is_optimal(1e-8), solution.residuals()
    assert (b - A @ p).max(initial=0) <= 1e-8
    assert np.abs(C @ p).max(initial=0) <= 1e-8
    assert lam.min(initial=0) >= 0
    if p.any():
        g = A.T @ lam + C.T @ nu
        bound = lam @ b / norm(g, conjugate(q))
        assert bound == pytest.approx(norm(p, q), rel=1e-8)
        assert solution.bound == pytest.approx(bound, rel=1e-12)
        assert_allclose(mirror(g / np.abs(g).max(), conjugate(q)), p / np.abs(p).max(), atol=1e-5)


@given(systems(), exponents, st.sampled_from([0.0, 0.0, 3.0]))
def test_certified_or_proved_impossible(system, q, uneven):
    """Rows of one length, or of lengths between 1e-3 and 1e3."""
    A, b, C = system
    A = A * 10.0 ** np.random.default_rng(0).uniform(-uneven, uneven, (len(A), 1))
    problem = MarginProblem.from_rows(A, b, C)
    try:
        solution = solve_lq(problem, q)
    except NotSeparable as refuted:
        assert not is_feasible(A, b, C)
        check_proof(refuted.witness, A, b, C)
        return
    check_minimiser(solution, A, b, C, q)


@given(systems(), exponents)
@settings(max_examples=25)
def test_the_norm_is_that_of_a_power_cone_programme(system, q):
    A, b, C = system
    if not is_feasible(A, b, C):
        return
    found = solve_lq(MarginProblem.from_rows(A, b, C), q).norm
    assert power_cone_norm(A, b, C, q) == pytest.approx(found, rel=2e-5, abs=2e-5)


@pytest.mark.parametrize("q", [1.5, 1.75, 3.0, 5.0])
@pytest.mark.parametrize("seed", range(4))
def test_the_point_is_that_of_slsqp(seed, q):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(5, 6))
    found = solve_lq(MarginProblem.from_rows(A), q)
    other = minimize(
        lambda p: np.sum(np.abs(p) ** q),
        solve(MarginProblem.from_rows(A)).p,
        jac=lambda p: q * mirror(p, q),
        constraints={"type": "ineq", "fun": lambda p: A @ p - 1, "jac": lambda p: A},
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 2000},
    )
    assert norm(other.x, q) == pytest.approx(found.norm, rel=1e-6)
    assert_allclose(other.x, found.p, atol=2e-3 * np.abs(found.p).max())


@given(systems())
@settings(max_examples=30)
def test_the_euclidean_norm_is_one_of_them(system):
    A, b, C = system
    if not is_feasible(A, b, C):
        return
    problem = MarginProblem.from_rows(A, b, C)
    assert_allclose(solve_lq(problem, 2.0).p, solve(problem).p, atol=1e-7 * (1 + solve(problem).norm))


@given(st.integers(0, 10_000), exponents, st.sampled_from([1e-100, 1e-6, 1.0, 1e6, 1e100]))
@settings(max_examples=30)
def test_one_row_has_a_closed_form(seed, q, scale):
    """p = mirror(a, r) / |a|_r^r, of norm 1/|a|_r: whatever the unit of the keys."""
    a = np.random.default_rng(seed).normal(size=4)
    found = solve_lq(MarginProblem.from_rows(scale * a[None]), q)
    r = conjugate(q)
    assert_allclose(scale * found.p, mirror(a, r) / np.sum(np.abs(a) ** r), rtol=1e-8, atol=1e-12)
    assert scale * found.norm == pytest.approx(1 / norm(a, r))


def test_many_rows_are_taken_in_as_they_are_needed(monkeypatch):
    A = np.random.default_rng(0).normal([3, 3, 0, 0, 0], size=(400, 5))
    whole = solve_lq(MarginProblem.from_rows(A), 1.5)
    begun = []
    honest = lq_module._Newton
    monkeypatch.setattr(lq_module, "_Newton", lambda *data: begun.append(data[1]) or honest(*data))
    monkeypatch.setattr(lq_module, "_BATCH", 1)
    few = solve_lq(MarginProblem.from_rows(A), 1.5)
    check_minimiser(few, A, np.ones(400), np.zeros((0, 5)), 1.5)
    assert_allclose(few.p, whole.p, rtol=1e-8)
    assert 1 == len(begun[0]) < len(begun[-1]) < 20


def test_matrices_by_products_as_keys():
    """min |W|_q under (x_a - x_t)'W z >= 1, against the rows written out."""
    rng = np.random.default_rng(1)
    values, queries = Bags.of(rng.normal(size=(2, 3, 3))), rng.normal(size=(2, 2))
    found = solve_lq(MarginProblem.from_selection(outer_keys(values, queries), [0, 2]), 1.75)
    W = found.p.reshape(3, 2)
    margins = [(values[i][a] - values[i][t]) @ W @ queries[i] for i, a in ((0, 0), (1, 2)) for t in range(3) if t != a]
    assert min(margins) == pytest.approx(1, abs=1e-9)
    assert len(found.support_tokens) <= 4
    assert divergence(found.p, 5 * W.ravel(), 1.75) == pytest.approx(0, abs=1e-15)
    assert divergence(found.p, W.ravel() + 0.1, 1.75) > 0


def test_nothing_to_separate():
    found = solve_lq(MarginProblem.from_rows(np.zeros((0, 3))), 3.0)
    assert (found.norm, found.margin) == (0, np.inf)
    assert found.is_optimal(0.0)


def test_a_spoilt_answer_has_residuals():
    A = np.array([[2.0, 1.0], [1.0, 3.0]])
    found = solve_lq(MarginProblem.from_rows(A), 3.0)
    assert replace(found, p=1.01 * found.p).residuals()["gap"] == pytest.approx(0.01, rel=0.02)
    assert replace(found, p=0.99 * found.p).residuals()["primal"] == pytest.approx(0.01)
    assert replace(found, lam=-found.lam).residuals()["dual"] > 0.01
    assert replace(found, measure=Lq(2.0)).residuals()["stationary"] > 0.01
    assert replace(found, lam=0 * found.lam).bound == 0


def test_exponents_beyond_arithmetic():
    A = np.random.default_rng(0).normal(size=(20, 25))
    with pytest.raises(NotSolved, match=r"for q = 1e\+06\. Take a q nearer to 2"):
        solve_lq(MarginProblem.from_rows(A), 1e6)


@pytest.mark.parametrize("q", [1.0, 0.5, np.inf, np.nan, "2", True])
def test_refused_exponents(q):
    with pytest.raises(InputError, match="solve_lq: `q` must be a finite number above 1"):
        solve_lq(MarginProblem.from_rows([[1.0]]), q)
