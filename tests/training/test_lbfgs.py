"""L-BFGS on problems with known answers, and how it says that it has ended."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose

from keytokens.lab.descent import Status, run
from keytokens.training.lbfgs import LBFGS


def quadratic(seed: int, size: int = 12, spread: float = 1.0):
    """1/2 x'Ax - b'x with A positive definite, and its minimiser."""
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(size, size))
    scale = 10.0 ** rng.uniform(-spread, spread, size)
    A = (half @ half.T + np.eye(size)) * scale[:, None] * scale
    b = rng.normal(size=size) * scale
    return (lambda x: (0.5 * x @ A @ x - b @ x, A @ x - b)), np.linalg.solve(A, b), np.diag(A)


def rosenbrock(x: np.ndarray) -> tuple[float, np.ndarray]:
    u, w = x[1] - x[0] ** 2, 1 - x[0]
    return 100 * u**2 + w**2, np.array([-400 * x[0] * u - 2 * w, 200 * u])


@pytest.mark.parametrize("seed", range(6))
def test_convex_quadratics(seed):
    objective, answer, diagonal = quadratic(seed, spread=0.0)
    outcome = run(LBFGS(objective, 1 / diagonal, tolerance=1e-15), np.zeros(12), 500)
    assert outcome.status in (Status.CONVERGED, Status.STALLED)
    assert_allclose(outcome.state.theta, answer, rtol=1e-5, atol=1e-6)
    assert outcome.state.value == pytest.approx(objective(answer)[0], rel=1e-13)


@pytest.mark.parametrize("start", [(-1.2, 1.0), (3.0, -4.0), (0.0, 0.0), (-30.0, 20.0)])
def test_rosenbrock(start):
    outcome = run(LBFGS(rosenbrock, np.ones(2), tolerance=0.0), np.array(start), 2000)
    assert_allclose(outcome.state.theta, 1, rtol=1e-6)
    assert outcome.state.value < 1e-12


@pytest.mark.parametrize("seed", range(4))
def test_a_good_diagonal_repairs_bad_scales(seed):
    objective, answer, diagonal = quadratic(seed, spread=3.0)
    lowest = objective(answer)[0]
    scaled = run(LBFGS(objective, 1 / diagonal, tolerance=1e-14), np.zeros(12), 3000)
    plain = run(LBFGS(objective, np.ones(12), tolerance=1e-14), np.zeros(12), 3000)
    assert scaled.state.value == pytest.approx(lowest, rel=1e-9)
    assert plain.state.value <= 0.15 * lowest  # lowest < 0: some of the way without any help
    assert scaled.steps < plain.steps


def test_values_never_rise_and_watch_sees_every_state():
    seen, points = [], []

    def watch(state):
        seen.append(state)
        points.append(state.theta.tolist())  # the next step writes over it

    outcome = run(LBFGS(rosenbrock, np.ones(2)), np.array([-1.2, 1.0]), 500, watch)
    assert len(seen) == outcome.steps + 1
    assert points[0] == [-1.2, 1.0]
    assert seen[-1] is outcome.state
    values = [state.value for state in seen]
    assert all(after <= before for before, after in pairwise(values))
    assert [state.evaluations for state in seen] == sorted(state.evaluations for state in seen)


def test_the_first_step_promises_little():
    """However wrong the size of the diagonal, the first step lowers a linear objective by a twentieth."""
    state = LBFGS(lambda x: (float(x[0]), np.ones(1)), np.full(1, 1e9)).init(np.array([100.0]))
    after = LBFGS(lambda x: (float(x[0]), np.ones(1)), np.full(1, 1e9)).step(state)
    assert after.value == pytest.approx(95)


def test_float32_stays_float32():
    def objective(x):
        return float(x @ x), 2 * x

    outcome = run(LBFGS(objective, np.ones(3, np.float32)), np.ones(3, np.float32), 20)
    assert outcome.state.theta.dtype == outcome.state.gradient.dtype == np.float32


# how a run ends


def test_converged_within_the_tolerance():
    objective, _, diagonal = quadratic(2, spread=0.0)
    loose, tight = (run(LBFGS(objective, 1 / diagonal, tolerance=t), np.zeros(12), 500) for t in (1e-2, 1e-10))
    assert loose.status is tight.status is Status.CONVERGED
    assert loose.steps < tight.steps
    assert loose.state.small_steps == tight.state.small_steps == 1


def test_patience_asks_for_several_small_steps_in_a_row():
    objective, _, diagonal = quadratic(2, spread=0.0)
    values: list[float] = []
    patient = LBFGS(objective, 1 / diagonal, tolerance=1e-2, patience=3)
    outcome = run(patient, np.zeros(12), 500, lambda state: values.append(state.value))
    small = [before - after <= 1e-2 * abs(after) for before, after in pairwise(values)]
    assert outcome.status is Status.CONVERGED
    assert small[-3:] == [True] * 3
    assert not any(all(small[i : i + 3]) for i in range(len(small) - 3))


def test_memory_is_forgotten_where_it_points_uphill():
    method = LBFGS(lambda x: (1.0 + float(x @ x), 2 * x), np.ones(2))
    misled = replace(method.init(np.ones(2)), pairs=[(np.ones(2), np.ones(2), -5.0)])
    assert method.step(misled).theta.tolist() == method.step(method.init(np.ones(2))).theta.tolist()


def test_memory_is_forgotten_where_no_step_along_it_descends():
    """Finite only along the diagonal, off which the memory leads."""

    def objective(x):
        return (1.0 + float(x @ x) if x[0] == x[1] else np.inf), 2 * x

    method = LBFGS(objective, np.ones(2))
    start = replace(method.init(np.ones(2)), pairs=[(np.array([1.0, 0.0]), np.array([1.0, 0.5]), 1.0)])
    second = method.step(start)
    assert (second.pairs, second.stalled, second.evaluations) == ([], False, 31)
    assert second.theta.tolist() == [1, 1]
    assert method.verdict(second) is None
    assert method.step(second).value < start.value


def bowl(x: np.ndarray) -> tuple[float, np.ndarray]:
    return float(x @ x), 2 * x


ENDS = {  # objective, start, sign of the diagonal, most steps; status, steps (None: any number), evaluations (likewise)
    "the gradient vanishes": (bowl, [0.0, 0.0], 1, 10, Status.CONVERGED, 0, 1),
    "the value is zero": (bowl, [1.0, 1.0], 1, 100, Status.CONVERGED, None, None),
    # it points the wrong way: rounding, carried to the extreme
    "no step descends": (lambda x: (1.0 + float(x @ x), -2 * x), [1.0, 1.0], 1, 100, Status.STALLED, None, 31),
    "the diagonal is negative": (lambda x: (1 + bowl(x)[0], 2 * x), [1.0, 1.0], -1, 100, Status.STALLED, 1, None),
    "out of steps": (rosenbrock, [-1.2, 1.0], 1, 3, Status.OUT_OF_STEPS, 3, None),
    "no step at all": (rosenbrock, [-1.2, 1.0], 1, 0, Status.OUT_OF_STEPS, 0, 1),
    "not a number": (lambda x: (np.nan, x), [1.0, 1.0], 1, 10, Status.NOT_FINITE, 0, 1),
    "infinite": (lambda x: (np.inf, x), [1.0, 1.0], 1, 10, Status.NOT_FINITE, 0, 1),
    "no lower bound": (lambda x: (-np.inf if x[0] > 2 else -float(x[0]), -np.ones(1)), [1.0], 1, 1000,
                       Status.NOT_FINITE, None, None),
}  # fmt: skip


@pytest.mark.parametrize("objective, start, sign, most, status, steps, evaluations", ENDS.values(), ids=ENDS)
def test_how_a_run_ends(objective, start, sign, most, status, steps, evaluations):
    calls = []
    method = LBFGS(lambda x: calls.append(x) or objective(x), sign * np.ones(len(start)), tolerance=0.0)
    outcome = run(method, np.array(start), most)
    assert outcome.status is status
    assert steps in (None, outcome.steps)
    assert evaluations in (None, outcome.state.evaluations)
    assert outcome.state.evaluations == len(calls)


def test_a_step_into_the_infinite_is_halved():
    def objective(x):
        return (float("inf"), x) if x[0] <= 0 else (float(x[0] - np.log(x[0])), 1 - 1 / x)

    outcome = run(LBFGS(objective, np.full(1, 1e6), tolerance=1e-14), np.full(1, 20.0), 200)
    assert_allclose(outcome.state.theta, 1, rtol=1e-5)


@pytest.mark.parametrize("memory", [1, 3])
def test_the_direction_solves_the_secant_equations(memory):
    """BFGS updates of the scaled diagonal, as matrices, times the gradient."""
    rng = np.random.default_rng(memory)
    n = 7
    curvature = rng.uniform(0.5, 2, n)
    method = LBFGS(lambda x: (0.5 * float(x @ (curvature * x)), curvature * x), 1 / rng.uniform(0.5, 2, n), memory)
    state = method.init(rng.standard_normal(n))
    for _ in range(memory + 1):
        state = method.step(state)
    s, y, rho = state.pairs[-1]
    H = np.diag(method.inverse_hessian) / (rho * (y @ (method.inverse_hessian * y)))
    for s, y, rho in state.pairs:
        left = np.eye(n) - rho * np.outer(s, y)
        H = left @ H @ left.T + rho * np.outer(s, s)
    assert_allclose(H @ y, s, rtol=1e-9, atol=1e-12)
    assert_allclose(method._direction(state), -H @ state.gradient, rtol=1e-9, atol=1e-12)


def test_the_mean_of_the_last_points():
    seen, method = [], LBFGS(rosenbrock, np.ones(2))
    outcome = run(method, np.array([-1.2, 1.0]), 9, lambda state: seen.append(state.theta.copy()))
    for points in (1, 2, 3, 4):
        assert_allclose(outcome.state.mean_of_last(points), np.mean(seen[-points:], axis=0), rtol=1e-12)
    short = replace(outcome.state, pairs=outcome.state.pairs[-2:])
    assert_allclose(short.mean_of_last(99), np.mean(seen[-3:], axis=0), rtol=1e-12)


def test_far_below_the_start_small_gains_are_not_worth_a_step():
    objective, _, diagonal = quadratic(1)
    lifted = lambda x: (objective(x)[0] - objective(answer)[0] + 1e-6, objective(x)[1])  # noqa: E731
    answer = quadratic(1)[1]
    eager = run(LBFGS(lifted, 1 / diagonal, tolerance=0.04), np.zeros(12), 500)
    content = run(LBFGS(lifted, 1 / diagonal, tolerance=0.04, floor=0.25), np.zeros(12), 500)
    assert content.steps < eager.steps
    assert content.state.value < 0.04 * content.state.first
