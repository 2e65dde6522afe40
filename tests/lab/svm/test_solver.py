"""The solver against three independent roads, on random problems of every shape; none is skipped."""

from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from keytokens.lab.svm import MarginProblem, NotSeparable, NotSolved, Solution, Witness, solve
from keytokens.lab.svm import solver as solver_module
from keytokens.lab.svm.active import ActiveSet

from .reference import interior_point, is_feasible, least_distance, one_minus_cos


@st.composite
def systems(draw, ties: bool = True):
    """A, b, C: whole numbers (duplicates, zero rows, degenerate vertices) or Gaussian, separable by shift or not."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    m, d = draw(st.integers(0, 25)), draw(st.integers(1, 12))
    A = rng.integers(-2, 3, (m, d)).astype(float) if draw(st.booleans()) else rng.normal(size=(m, d))
    A += draw(st.sampled_from([0.0, 1.0, 3.0])) * np.linalg.norm(rng.normal(size=d)) * rng.choice([-1, 1], d) / d
    if m and draw(st.booleans()):
        A = A[rng.integers(0, m, m + 3)]  # duplicated rows
    if draw(st.integers(0, 9)) == 0:
        A = np.vstack([A, np.zeros((1, d))])
    b = (rng.random(len(A)) < draw(st.sampled_from([1.0, 1.0, 0.5]))).astype(float)
    C = np.zeros((0, d))
    if ties and draw(st.booleans()):
        C = rng.integers(-1, 2, (draw(st.integers(1, 4)), d)).astype(float)  # may be dependent, or all zero
    return A, b, C


def check_minimiser(solution, A, b, C):
    assert solution.is_optimal(1e-9), solution.residuals()
    # the contract's formulas, from the matrices alone
    p, lam, nu = solution.p, solution.lam, solution.nu
    assert (b - A @ p).max(initial=0) <= 1e-9
    assert np.abs(C @ p).max(initial=0) <= 1e-9
    assert lam.min(initial=0) >= 0
    assert np.abs(p - A.T @ lam - C.T @ nu).max() <= 1e-9 * (1 + np.abs(p).max())
    assert abs(lam @ (A @ p - b)) <= 1e-9 * (1 + p @ p)
    assert one_minus_cos(p, least_distance(A, b, C)) <= 1e-12
    status, other = interior_point(A, b, C)
    assert status == "Solved"
    if p.any():
        assert one_minus_cos(p, other) <= 1e-12
    assert np.linalg.norm(p) == pytest.approx(np.linalg.norm(other), rel=1e-6, abs=1e-4)  # |p|^2 is what it bounds


def check_proof(witness: Witness, A, b, C):
    lam, nu = witness.lam, witness.nu
    assert lam.min() >= 0
    assert lam @ b == pytest.approx(1)
    assert np.linalg.norm(A.T @ lam + C.T @ nu) <= 1e-9 * np.linalg.norm(A, axis=1).max(initial=0)
    assert witness.is_proof()
    assert interior_point(A, b, C)[0] == "PrimalInfeasible"


@settings(max_examples=400)
@given(systems(), st.sampled_from([1, 2, 256]))
def test_minimiser_or_proof(system, batch):
    A, b, C = system
    problem = MarginProblem.from_rows(A, b, C)
    with mock.patch.object(solver_module, "_batch", return_value=batch):  # small: rows come and go
        if is_feasible(A, b, C):
            check_minimiser(solve(problem), A, b, C)
        else:
            with pytest.raises(NotSeparable, match="no direction separates") as caught:
                solve(problem)
            check_proof(caught.value.witness, A, b, C)


@settings(max_examples=100)
@given(systems(), st.integers(-100, 100))
def test_units_change_nothing(system, power):
    A, b, C = system
    unit = 10.0**power
    try:
        plain = solve(MarginProblem.from_rows(A, b, C))
    except NotSeparable:
        with pytest.raises(NotSeparable):
            solve(MarginProblem.from_rows(A * unit, b, C * unit))
    else:
        scaled = solve(MarginProblem.from_rows(A * unit, b, C * unit))
        assert_allclose(scaled.p * unit, plain.p, rtol=1e-9, atol=1e-9 * (1 + np.abs(plain.p).max()))


def separable(n: int, T: int, d: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian keys; the selected token of each bag is shifted along a hidden direction until it wins."""
    rng = np.random.default_rng(seed)
    q = rng.normal(size=d)
    q /= np.linalg.norm(q)
    keys, selection = rng.normal(size=(n, T, d)), rng.integers(0, T, n)
    a, each = keys @ q, np.arange(n)
    lift = a.max(axis=1) - a[each, selection] + 0.1 + rng.exponential(size=n)
    keys[each, selection] += lift[:, None] * q
    return keys, selection


@pytest.mark.parametrize("n, T, d", [(1, 5, 3), (60, 6, 5), (300, 8, 20), (30, 10, 60), (5, 3, 200), (400, 20, 40)])
@pytest.mark.parametrize("seed", [0, 1])
def test_larger_problems(n, T, d, seed):
    keys, selection = separable(n, T, d, seed)
    problem = MarginProblem.from_selection(keys, selection)
    solution = solve(problem)
    assert solution.is_optimal(1e-12)
    A = problem.rows(np.arange(len(problem)))
    assert one_minus_cos(solution.p, least_distance(A, problem.b, np.zeros((0, d)))) <= 1e-12


def row_by_row(monkeypatch):
    """No guess: rows enter one after the other."""
    monkeypatch.setattr(solver_module, "softened", lambda rows, b, p, levels: (p, np.zeros(len(b))))


@pytest.mark.parametrize("batch", [1, 5, 40])
def test_rows_come_and_go(batch, monkeypatch):
    """With a small working set rows are dropped and taken in again; the end is the same."""
    keys, selection = separable(300, 10, 6, 0)
    problem = MarginProblem.from_selection(keys, selection)
    dropped = []
    worth_keeping = solver_module._Search._worth_keeping

    def watched(search):
        kept = worth_keeping(search)
        dropped.append(len(search.working.index) - len(kept))
        return kept

    expected = solve(problem)
    monkeypatch.setattr(solver_module, "_batch", lambda dim: batch)
    monkeypatch.setattr(solver_module, "FIRST", 0)
    monkeypatch.setattr(solver_module._Search, "_worth_keeping", watched)
    assert_allclose(solve(problem).p, expected.p, rtol=0, atol=1e-12)
    assert sum(dropped) > 0 or batch > 1


def test_larger_contradiction():
    keys, selection = separable(200, 10, 20, 0)
    keys[7] = keys[7][selection[7]]  # one bag of equal tokens: a zero row is hidden among 1800
    with pytest.raises(NotSeparable) as caught:
        solve(MarginProblem.from_selection(keys, selection))
    assert caught.value.witness.is_proof(1e-12)
    rng = np.random.default_rng(0)
    with pytest.raises(NotSeparable) as caught:
        solve(MarginProblem.from_selection(rng.normal(size=(200, 10, 20)), rng.integers(0, 10, 200)))
    assert caught.value.witness.is_proof(1e-12)


@pytest.mark.parametrize("keep", ["solution", "all rows"])
def test_warm_start_ends_at_the_same_point(keep, monkeypatch):
    keys, selection = separable(300, 10, 30, 3)
    problem = MarginProblem.from_selection(keys, selection)
    entered = []
    enter = ActiveSet.enter
    monkeypatch.setattr(ActiveSet, "enter", lambda *arguments: entered.append(1) or enter(*arguments))
    cold = solve(problem)
    needed = len(entered)
    warm = solve(problem, start=cold if keep == "solution" else replace(cold, lam=np.ones(len(problem))))
    assert_allclose(warm.p, cold.p, rtol=0, atol=1e-12)
    assert cold.steps >= needed
    if keep != "all rows":
        assert (warm.steps, len(entered) - needed) == (0, 0)  # nothing was left to do


@settings(max_examples=200)
@given(systems(), st.integers(0, 2**32 - 1), st.sampled_from([0.0, 1e-3, 0.3]), st.sampled_from([1, 2, 256]))
def test_a_start_changes_no_answer(system, seed, size, batch):
    """Begun at the solution of a problem with other rows and bounds: the same point as from nothing, or a proof."""
    A, b, C = system
    rng = np.random.default_rng(seed)
    try:
        before = solve(MarginProblem.from_rows(A, b, C))
    except NotSeparable:
        before = Solution(MarginProblem.from_rows(A), np.zeros(A.shape[1]), rng.integers(0, 2, len(A)), np.zeros(0))
    problem = MarginProblem.from_rows(A + size * rng.normal(size=A.shape), rng.choice([0.0, 0.5, 1.0], len(A)), C)
    try:
        cold = solve(problem)
    except NotSeparable:
        with pytest.raises(NotSeparable) as caught:
            solve(problem, start=before)
        assert caught.value.witness.is_proof()
    else:
        with mock.patch.object(solver_module, "_batch", return_value=batch):
            warm = solve(problem, start=before)
        assert_allclose(warm.p, cold.p, rtol=0, atol=1e-12 * (1 + cold.norm))


@settings(max_examples=150)
@given(st.integers(0, 2**32 - 1), st.integers(1, 8), st.integers(1, 6))
def test_any_rows_begin_a_valid_state(seed, k, d):
    """u >= 0, p = N u and N'p = b on the members that stay; doubled rows are left out."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(k, d))
    rows = np.concatenate([rows, rows[:1]]) / np.linalg.norm(np.concatenate([rows, rows[:1]]), axis=1, keepdims=True)
    b, state = rng.choice([0.0, 1.0], k + 1), ActiveSet(d, d)
    left_out = state.begin(list(range(k + 1)), rows, b)
    N = rows[state.members]
    assert left_out == k + 1 - len(N) > 0
    assert state.u.min(initial=0.0) >= 0
    assert_allclose(state.u @ N, state.p, atol=1e-7 * (1 + np.abs(state.u).max(initial=0.0)))
    assert_allclose(N @ state.p, b[state.members], atol=1e-7 * (1 + np.linalg.norm(state.p)))


@pytest.mark.parametrize("n, T, d", [(60, 6, 5), (300, 8, 20), (30, 10, 60), (400, 20, 40)])
@pytest.mark.parametrize("batch", [20, 256])
def test_along_a_path_only_what_differs_is_done(n, T, d, batch, monkeypatch):
    """Keys that drift: begun at the last solution each problem takes less than a tenth of the steps, row by row."""
    row_by_row(monkeypatch)
    monkeypatch.setattr(solver_module, "_batch", lambda dim: batch)
    rng = np.random.default_rng(0)
    keys, selection = separable(n, T, d, 0)
    warm = solve(MarginProblem.from_selection(keys, selection))
    steps = np.zeros(2, int)
    for _ in range(5):
        keys = keys + 0.002 * rng.normal(size=keys.shape)
        problem = MarginProblem.from_selection(keys, selection)
        cold, warm = solve(problem), solve(problem, start=warm)
        assert_allclose(warm.p, cold.p, rtol=0, atol=1e-12 * (1 + cold.norm))
        steps += cold.steps, warm.steps
    assert steps[1] < steps[0] / 10


def test_rows_of_another_problem_are_found_by_name():
    """The first bag has fewer tokens and the last another winner: all numbers change, few names do."""
    keys, selection = np.random.default_rng(0).normal(size=(8, 6, 60)), np.array([0, 1, 2, 3, 4, 5, 0, 1])
    whole = solve(MarginProblem.from_selection(keys, selection))
    problem = MarginProblem.from_selection([keys[0][:2], *keys[1:]], [*selection[:-1], 2])
    cold, warm = solve(problem), solve(problem, start=whole)
    assert_allclose(warm.p, cold.p, rtol=0, atol=1e-12)
    assert warm.steps < cold.steps / 3
    other = MarginProblem.from_selection(keys[:1, :2], [0])  # all but one of the names are not there
    assert_allclose(solve(other, start=whole).p, solve(other).p, rtol=0, atol=1e-12)


def test_a_start_that_leads_nowhere_is_forgotten(monkeypatch):
    keys, selection = separable(30, 5, 8, 0)
    problem = MarginProblem.from_selection(keys, selection)
    cold = solve(problem)

    def spoilt(self, members, rows, b):
        raise NotSolved("a poor basis")

    monkeypatch.setattr(ActiveSet, "begin", spoilt)
    assert_allclose(solve(problem, start=cold).p, cold.p, rtol=0, atol=1e-14)


def test_nothing_to_separate():
    for problem in (
        MarginProblem.from_selection([[[1.0, 2.0]], [[3.0, 4.0]]], [0, 0]),
        MarginProblem.from_rows(np.zeros((0, 3))),
        MarginProblem.from_rows(np.eye(3), 0.0),
    ):
        solution = solve(problem)
        assert not solution.p.any()
        assert solution.margin == np.inf
        assert solution.is_optimal(0.0)


def test_ties_that_leave_no_direction():
    assert solve(MarginProblem.from_rows(np.zeros((0, 2)), equal=np.eye(2))).margin == np.inf
    with pytest.raises(NotSeparable) as caught:
        solve(MarginProblem.from_rows([[1.0, 2.0]], equal=np.eye(2)))
    assert_allclose(caught.value.witness.nu, [-1.0, -2.0])


def test_rows_of_very_different_length():
    solution = solve(MarginProblem.from_rows([[1.0, 0.0], [0.0, 1e-10]]))
    assert_allclose(solution.p, [1.0, 1e10])


def test_a_far_offset_of_the_keys():
    keys, selection = separable(50, 6, 8, 0)
    near = solve(MarginProblem.from_selection(keys, selection)).p
    far = solve(MarginProblem.from_selection(keys + 1e6, selection))
    assert far.is_optimal(1e-12)
    assert one_minus_cos(near, far.p) <= 1e-12


@pytest.mark.parametrize("seed", range(4))
def test_long_runs_with_long_answers(seed):
    """Hundreds of exchanges at |p| in the thousands: what updates lose must be renewed on the way."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(3000, 64))
    A[:, 0] = rng.uniform(0.001, 0.01, len(A))
    solution = solve(MarginProblem.from_rows(A))
    assert solution.norm > 100
    assert solution.is_optimal(1e-9)


def test_spoilt_factors_are_renewed(monkeypatch):
    keys, selection = separable(100, 5, 20, 0)
    problem = MarginProblem.from_selection(keys, selection)
    expected = solve(problem)
    row_by_row(monkeypatch)
    insert, refresh, renewed = ActiveSet._insert, ActiveSet.refresh, []

    def spoilt(self, *arguments):
        insert(self, *arguments)
        self._Q[:, 0] *= 1 + 1e-8

    monkeypatch.setattr(ActiveSet, "_insert", spoilt)
    monkeypatch.setattr(ActiveSet, "refresh", lambda *arguments: renewed.append(1) or refresh(*arguments))
    assert_allclose(solve(problem).p, expected.p, rtol=0, atol=1e-12)
    assert renewed


@pytest.mark.parametrize("angle", 10.0 ** -np.arange(2, 16))
def test_a_thin_margin_is_solved_proved_away_or_admitted(angle):
    """Two rows that all but oppose each other: never an answer that is wrong unnoticed."""
    A = np.array([[1.0, angle], [-1.0, angle]])
    try:
        solution = solve(MarginProblem.from_rows(A))
    except NotSeparable as caught:
        assert angle < 1e-7
        proved = caught.witness.is_proof()
        assert proved
    except NotSolved:
        assert angle < 1e-6
    else:
        assert_allclose(solution.p, [0, 1 / angle], rtol=1e-6, atol=1e-6 / angle)


@settings(max_examples=150)
@given(st.integers(0, 2**32 - 1), st.floats(1, 17))
def test_random_thin_margins(seed, digits):
    """Rows of which two all but oppose each other, in a random frame: each end is certified or admitted."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(6, 4)) + 3 * np.eye(4)[0]
    A[1] = -A[0] * rng.uniform(0.5, 2) + 10**-digits * rng.normal(size=4)
    problem = MarginProblem.from_rows(A)
    try:
        solution = solve(problem)
    except NotSeparable as caught:
        proved = caught.witness.is_proof()
        assert proved
        assert digits > 7 or not is_feasible(A, problem.b, np.zeros((0, 4)))
    except NotSolved:
        assert digits > 6
    else:
        assert solution.is_optimal(1e-8)
        assert is_feasible(A, problem.b, np.zeros((0, 4))) or digits > 6  # HiGHS stops at 1e-7


def test_an_uncertified_point_is_never_given_out(monkeypatch):
    problem = MarginProblem.from_rows(np.eye(2))
    monkeypatch.setattr(solver_module._Search, "first_rows", lambda self: np.zeros(0, np.intp))
    monkeypatch.setattr(solver_module._Search, "violated_rows", lambda self, p: np.zeros(0, np.intp))
    with pytest.raises(NotSolved, match=r"`primal` is 1\.0e"):
        solve(problem)


def test_residuals_judge_any_point():
    solution = solve(MarginProblem.from_rows([[2.0, 0.0], [0.0, 1.0]], equal=[[0.0, 0.0]]))
    assert_allclose(solution.p, [0.5, 1.0])
    assert_allclose(solution.lam, [0.25, 1.0])
    short = replace(solution, p=np.array([0.5, 0.4]))
    assert short.residuals() == pytest.approx({"primal": 0.6, "dual": 0, "stationary": 0.4, "gap": 0.6 / 1.41})
    negative = replace(solution, lam=np.array([0.25, -1.0]))
    assert negative.residuals()["dual"] == 1
    assert not negative.is_optimal(0.5)
    tied = replace(solution, problem=MarginProblem.from_rows([[2.0, 0.0], [0.0, 1.0]], equal=[[1.0, 0.0]]))
    assert tied.residuals()["primal"] == 0.5


def test_distance_of_directions():
    solution = solve(MarginProblem.from_rows([[2.0, 0.0]]))
    assert [solution.distance(np.array(q)) for q in ([3.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, 0.0])] == [0, 1, 2, 1]
    assert solution.distance(np.array([1.0, 1e-9])) == pytest.approx(5e-19, rel=1e-6)
    assert solve(MarginProblem.from_rows(np.zeros((0, 2)))).distance(np.ones(2)) == 0


def test_a_false_witness_is_seen_through():
    problem = MarginProblem.from_rows([[1.0], [-1.0]], [1.0, 0.0])
    assert Witness(problem, np.array([1.0, 1.0]), np.zeros(0)).is_proof()
    for lam in ([1.0, 0.5], [0.0, 1.0], [-1.0, -1.0], [1.0, 1 + 1e-6]):
        assert not Witness(problem, np.array(lam), np.zeros(0)).is_proof()


def test_a_start_of_another_size():
    """Rows that are not there are left out."""
    whole = solve(MarginProblem.from_rows(np.eye(3)))
    assert_allclose(solve(MarginProblem.from_rows(np.eye(3)[:2]), start=whole).p, [1, 1, 0], atol=1e-14)


@pytest.mark.parametrize("start", [[0], np.ones(2), "x"])
def test_start_is_checked(start):
    with pytest.raises(ValueError, match="solve: `start` must be a Solution; saw"):
        solve(MarginProblem.from_rows(np.eye(2)), start=start)
