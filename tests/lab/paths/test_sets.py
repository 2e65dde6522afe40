"""Paths under any head, towards sets of optimal tokens: where they end, and how much of it is proved."""

import math

import numpy as np
import pytest

from keytokens.base.errors import InputError
from keytokens.lab.paths import Proof, regularisation_path, set_path
from keytokens.lab.problems.heads import Linear, Quadratic, Tanh
from keytokens.lab.problems.losses import Correlation, Exponential, Logistic
from keytokens.lab.problems.problem import Problem
from keytokens.lab.problems.sets import Limit
from keytokens.lab.svm import solve_set_valued

from ..problems.given import Given
from ..problems.test_sets import lines

ONE = np.ones(1)


def two_at_the_top(seed: int, head, loss=None, n: int = 2, T: int = 5, d: int = 6) -> Problem:
    """Random keys and scores; the two best scores of each input are one."""
    rng = np.random.default_rng(seed)
    keys, scores = rng.normal(size=(n, T, d)), rng.normal(size=(n, T))
    for row in scores:
        order = np.argsort(-row)
        row[order[1]] = row[order[0]]
    return Problem.with_sets([1] * n, scores[:, :, None], head, keys, loss=loss)


def checked(path):
    """What must hold of every path, whatever the problem."""
    for point in path:
        assert np.linalg.norm(point.p) <= point.radius * (1 + 1e-12)
        assert point.lower <= point.log_gap
        if point.turn is not None:
            assert point.one_minus_cos <= point.turn
    return path


@pytest.mark.parametrize("head", [Linear(ONE), Tanh(ONE), Quadratic(ONE, 0.1)], ids=lambda head: head.name)
@pytest.mark.parametrize("seed", [2, 3, 7])
def test_the_path_comes_to_the_set_valued_max_margin(head, seed):
    """1 - cos falls like 1/R^2: of the order of 2.5e-3, 1.1e-5, 6.3e-7 at R = 5, 20, 80, as the draw has it."""
    problem = two_at_the_top(seed, head)
    assert all(len(tokens) == 2 for tokens in problem.sets)
    path = checked(set_path(problem, [5, 20, 80, 320], starts=3))
    away = [point.one_minus_cos for point in path]
    assert away[0] < 2e-2
    assert away[0] > away[1] > away[2] > away[3]
    assert away[2] < 5e-5
    assert away[3] < away[2] / 10
    assert [point.distance for point in path] == sorted((point.distance for point in path), reverse=True)
    assert path[-1].distance < 2e-3
    assert path[-1].log_gap * path[-1].nearest.norm / 320 == pytest.approx(-1, abs=0.05)
    assert all(point.proof is Proof.BOUNDED for point in path)
    assert path[-1].turn < 0.02
    assert problem.limit is Limit.EXACT


@pytest.mark.parametrize("loss", [Exponential(), Correlation()], ids=lambda loss: loss.name)
def test_other_losses(loss):
    path = checked(set_path(two_at_the_top(3, Tanh(ONE), loss), [20, 80], starts=3))
    assert path[1].one_minus_cos < path[0].one_minus_cos / 5


def test_the_problem_of_sets_is_not_convex():
    """Keys 1 and -1 optimal, 0 not: two solutions, and the path ends in either."""
    keys, values = [[[1.0], [-1.0], [0.0]]], [[[1.0], [1.0], [0.0]]]
    path = checked(set_path(Problem.with_sets([1], values, Linear(ONE), keys), [1.0, 10.0, 100.0]))
    assert sorted(solution.p.item() for solution in solve_set_valued(keys, [{0, 1}]).solutions) == [-1.0, 1.0]
    assert [abs(point.p.item()) for point in path] == pytest.approx([1, 10, 100])
    assert [point.distance for point in path] == pytest.approx([0, 0, 0], abs=1e-12)


def test_no_p_of_the_ball_is_below_the_bound_or_the_point():
    rng = np.random.default_rng(0)
    for head in (Linear(ONE), Tanh(ONE)):
        problem = two_at_the_top(4, head, d=3)
        for point in checked(set_path(problem, [2.0, 6.0], starts=6)):
            for _ in range(150):
                p = rng.normal(size=3)
                p *= point.radius * rng.uniform() ** (1 / 3) / np.linalg.norm(p)
                assert problem.gap(problem.read((p,))).log >= max(point.lower, point.log_gap - 1e-9)


def test_one_optimal_token_and_a_linear_head_is_the_plain_path():
    rng = np.random.default_rng(1)
    keys, scores = rng.normal(size=(3, 4, 8)), rng.normal(size=(3, 4))
    problem = Problem.with_sets([1, 1, 1], scores[:, :, None], Linear(ONE), keys)
    path = checked(set_path(problem, [5.0, 50.0], starts=4))
    plain = regularisation_path(Problem.of(problem.keys, scores.ravel()), [5.0, 50.0], starts=4)
    for one, other in zip(path, plain, strict=True):
        assert one.log_gap == pytest.approx(other.log_gap, abs=1e-9)
        np.testing.assert_allclose(one.direction, other.direction, atol=1e-5)


def test_a_head_of_two_functions_is_followed_but_not_proved():
    """psi = z1 z2 + z3 is constant between the tokens of each set, which have different values."""
    problem = lines(1)
    path = checked(set_path(problem, [5.0, 20.0, 80.0], starts=3))
    assert problem.limit is Limit.TESTED
    assert all(point.proof is Proof.STARTS and point.turn is None for point in path)
    assert all(point.lower == -math.inf for point in path)
    away = [point.one_minus_cos for point in path]
    assert away[2] < away[1] < away[0]
    assert away[2] < 1e-3


def test_sets_that_no_direction_separates():
    """The optimal key lies between the others: nothing is predicted, and the loss keeps its distance from L*."""
    keys, values = [[[0.0], [1.0], [-1.0]]], [[[1.0], [0.0], [0.0]]]
    path = set_path(Problem.with_sets([1], values, Tanh(ONE), keys), [1.0, 10.0])
    for point in path:
        assert point.inside
        assert point.nearest is None
        assert math.isnan(point.distance)
        assert math.isnan(point.one_minus_cos)
        assert point.turn is None
        assert point.lower <= point.log_gap
        assert math.exp(point.log_gap) == pytest.approx(
            float(np.logaddexp(0, -math.tanh(1 / 3)) - np.logaddexp(0, -math.tanh(1))), rel=1e-9
        )
    with pytest.raises(InputError, match="`starts` must be at least 1 where no direction separates the sets; saw 0"):
        set_path(Problem.with_sets([1], values, Tanh(ONE), keys), [1.0], starts=0)


def test_sets_that_are_not_optimal_are_found_out():
    """psi = z^2 prefers the token 2; to first order nothing is lost by staying at -1."""
    square = Given(lambda z: (z**2)[:, 0], lambda z: 2 * z)
    problem = Problem.with_sets([1], [[[-1.0], [2.0]]], square, [[[0.0], [1.0]]], sets=[{0}])
    with pytest.raises(InputError, match=r"must have optimal sets: .*; saw 'log\(L\* - L\) = -?[\d.]+ at p = \["):
        set_path(problem, [5.0])


def test_turns_are_not_claimed_where_another_choice_is_near():
    """Two choices of nearly the same norm: which one the minimiser is near to is not proved before R is large."""
    keys, values = [[[1.0], [-1.01], [0.0]]], [[[1.0], [1.0], [0.0]]]
    path = set_path(Problem.with_sets([1], values, Linear(ONE), keys), [10.0, 1000.0])
    assert [len(solve_set_valued(keys, [{0, 1}], within=w).solutions) for w in (0.0, 0.02)] == [1, 2]
    assert path[0].turn is None
    assert path[1].turn < 0.01


@pytest.mark.parametrize("head", [Tanh(ONE), Quadratic(ONE, 0.1)], ids=lambda head: head.name)
def test_a_long_path_takes_few_evaluations(head, monkeypatch):
    """18 balls: 7,500 evaluations when each ball had random starts of its own; a minimum that is followed takes 30."""
    problem, read, calls = two_at_the_top(3, head), Problem.read, []
    monkeypatch.setattr(Problem, "read", lambda self, blocks: calls.append(1) or read(self, blocks))
    radii = [1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000]
    path = checked(set_path(problem, radii))
    assert all(point.converged for point in path)
    assert len(calls) < 3000


def test_the_same_seed_gives_the_same_path():
    one, two = (set_path(two_at_the_top(5, Tanh(ONE), Logistic()), [5.0], starts=2, seed=3) for _ in range(2))
    assert one[0].p.tobytes() == two[0].p.tobytes()
