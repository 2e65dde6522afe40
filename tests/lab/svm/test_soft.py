"""The max-margin problem with soft rows: its minimiser by another solver, and what it is good for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from keytokens.lab.svm import MarginProblem, solve
from keytokens.lab.svm import solver as solver_module
from keytokens.lab.svm.soft import softened

seeds = st.integers(0, 2**32 - 1)


def drawn(seed, m, d, lift):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(m, d))
    rows[:, 0] = np.abs(rows[:, 0]) + lift
    return rows / np.linalg.norm(rows, axis=1)[:, None], rng.uniform(0, 1, m)


@given(seeds, st.sampled_from([1e-2, 1e-3]))
def test_the_slope_vanishes(seed, eps):
    """p = sum_j u_j n_j with u = max(0, b - n'p) / eps: the problem is convex, so this is the minimiser."""
    rows, b = drawn(seed, 40, 5, 0.3)
    p, wide = softened(rows, b, np.zeros(5), (1e-1, 1e-2, eps))
    assert wide == pytest.approx(np.maximum(b - rows @ p, 0.0), abs=1e-12 * (1 + np.abs(p).max()))
    assert np.abs(p - wide @ rows / eps).max() <= 1e-9 * (1 + np.abs(p).max())


@pytest.mark.parametrize("seed", range(3))
def test_the_same_by_another_solver(seed):
    rows, b = drawn(seed, 30, 4, 0.3)

    def height(p):
        short = np.maximum(b - rows @ p, 0.0)
        return p @ p / 2 + short @ short / (2 * 1e-2), p - short @ rows / 1e-2

    found = minimize(height, np.zeros(4), jac=True, method="BFGS", options={"gtol": 1e-9})
    assert softened(rows, b, np.zeros(4), (1e-2,))[0] == pytest.approx(found.x, abs=1e-6)


def test_soft_rows_come_to_hard_ones():
    """|p_soft - p|^2 <= 2 eps sum u^2: of order sqrt(eps), and here of order eps."""
    rows, b = drawn(0, 60, 6, 0.3)
    hard = solve(MarginProblem.from_rows(rows, b))
    for eps in (1e-3, 1e-5, 1e-7):
        p = softened(rows, b, np.zeros(6), (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7)[: round(-np.log10(eps))])[0]
        assert np.linalg.norm(p - hard.p) ** 2 <= eps * float(hard.lam @ hard.lam) + 1e-12


def test_nothing_to_do():
    rows, b = drawn(0, 10, 3, 0.3)
    p, wide = softened(rows, 0 * b, np.zeros(3), (1e-2,))
    assert not p.any()
    assert not wide.any()


@pytest.mark.parametrize("seed", range(4))
def test_it_saves_most_steps_and_changes_no_answer(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(3000, 40))
    rows[:, 0] = np.abs(rows[:, 0]) + 0.1
    ties = np.concatenate([np.zeros((seed, 1)), rng.normal(size=(seed, 39))], axis=1)
    problem = MarginProblem.from_rows(rows, 1.0, ties if seed else None)
    fast = solve(problem)
    monkeypatch.setattr(solver_module, "softened", lambda rows, b, p, levels: (p, np.zeros(len(b))))
    slow = solve(problem)
    assert fast.norm == pytest.approx(slow.norm, rel=1e-12)
    assert fast.is_optimal(1e-11)
    assert 3 * fast.steps < slow.steps
