"""Regularisation paths: towards the max-margin direction, proved minima where they can be, and the joint limits."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest

from keytokens.base.errors import InputError
from keytokens.lab.paths import PathPoint, Proof, joint_path, regularisation_path
from keytokens.lab.paths.minima import Place
from keytokens.lab.problems.losses import Correlation, Exponential, Logistic
from keytokens.lab.problems.problem import Problem
from keytokens.lab.svm import MarginProblem, solve
from keytokens.model.ragged import Bags


def random_problem(seed, n=3, T=4, d=8, loss=None):
    rng = np.random.default_rng(seed)
    keys = Bags.of(rng.normal(size=(n, T, d)))
    return Problem.of(keys, rng.normal(size=n * T), loss or Logistic())


def limit(problem):
    return solve(MarginProblem.from_selection(problem.keys, problem.keys.argmax(problem.scores))).p


@pytest.mark.parametrize("loss", [Logistic(), Exponential(), Correlation()], ids=lambda loss: loss.name)
@pytest.mark.parametrize("seed", range(4))
def test_the_path_turns_to_the_max_margin_direction(seed, loss):
    """1 - cos falls like 1/R^2 and log(L - L*) like -R / |p_mm|."""
    problem = random_problem(seed, loss=loss)
    target = limit(problem)
    path = regularisation_path(problem, [10, 50, 200], starts=4)
    away = [1 - point.direction @ target / np.linalg.norm(target) for point in path]
    assert away[0] > away[1] > away[2]
    assert away[2] < 1e-4
    assert -np.linalg.norm(target) * path[-1].log_gap / 200 == pytest.approx(1, abs=0.05)
    assert not any(point.inside for point in path)
    assert all(point.proof is Proof.STARTS for point in path)


def test_no_sampled_point_is_lower():
    rng = np.random.default_rng(0)
    for seed in range(3):
        problem = random_problem(seed, n=2, T=3, d=3)
        (point,) = regularisation_path(problem, [6.0])
        for _ in range(300):
            p = rng.normal(size=3)
            p *= 6.0 * rng.uniform() ** (1 / 3) / np.linalg.norm(p)
            assert problem.gap(problem.read((p,))).log >= point.log_gap - 1e-9


def test_one_input_with_two_tokens_is_closed():
    problem = Problem.of(Bags.of([[[1.0, 2.0, 0.0], [0.0, 0.0, 1.0]]]), np.array([0.3, -0.5]))
    (point,) = regularisation_path(problem, [3.0])
    assert point.proof is Proof.CLOSED
    np.testing.assert_allclose(point.p, 3 * np.array([1, 2, -1]) / math.sqrt(6))


@pytest.mark.parametrize("seed", range(3))
def test_two_dimensions_are_scanned(seed):
    problem = random_problem(seed, n=2, T=3, d=2, loss=Correlation())
    (point,) = regularisation_path(problem, [2.0], starts=2)
    if not point.inside:
        assert point.proof is Proof.SCAN
        angles = np.linspace(-math.pi, math.pi, 1001)
        values = [problem.gap(problem.read((2.0 * np.array([math.cos(t), math.sin(t)]),))).log for t in angles]
        assert point.log_gap <= min(values) + 1e-4


VALUES = np.array([[[0.0, 0.0], [1.0, 1.0]], [[0.0, 0.0], [1.0, -1.0]], [[0.0, 0.0], [0.5, 1.0]]])
LABELS = [1.0, -1.0, 1.0]


def angle(point):
    return math.degrees(math.atan2(point.p[1], point.p[0]))


@pytest.mark.parametrize("radii", [[], [0.0, 1.0], [2.0, 1.0], [1.0, math.inf]])
def test_wrong_radii(radii):
    with pytest.raises(InputError, match="regularisation_path: `radii` must be increasing positive numbers"):
        regularisation_path(random_problem(0), radii)


def test_wrong_ratio():
    bags = Bags.of(VALUES)
    with pytest.raises(InputError, match=r"joint_path: `ratio` must be a number above 0; saw 0\."):
        joint_path(Problem.joint(np.array(LABELS), bags, bags), [1.0], ratio=0)


def fig_3b():
    values = VALUES.copy()
    values[2, 1] = [0.5, 1.5]
    return Problem.joint(LABELS, values, values)


@pytest.mark.parametrize("ratio", [0.1, 1.0, 10.0])
def test_every_seed_finds_the_same_joint_path(ratio):
    """Out at R = 30 what p does to log L is below its rounding; the gradient of p alone knows where p belongs."""
    radii = [1.0, 10.0, 30.0, 100.0]
    paths = [joint_path(fig_3b(), radii, ratio, starts=4, seed=seed) for seed in range(4)]
    for points in zip(*paths, strict=True):
        assert all(point.converged for point in points), [point.residual for point in points]
        assert [angle(point) for point in points] == pytest.approx([angle(points[0])] * 4, abs=1e-8)


def by_digits(radius, v, p):
    """The slope of the loss along the circle of p, with 200 digits; v and p as degrees. A second road."""
    with localcontext() as context:
        context.prec = 200
        R, slope = Decimal(radius), Decimal(0)
        (v1, v2), (p1, p2) = (_on_circle(Decimal(math.tan(math.radians(degrees) / 2))) for degrees in (v, p))
        for (a, b), sign in zip([("1", "1"), ("1", "-1"), ("0.5", "1.5")], LABELS, strict=True):
            x1, x2, y = Decimal(a), Decimal(b), Decimal(sign)
            s = 1 / (1 + (-R * (x1 * p1 + x2 * p2)).exp())
            score = y * R * (x1 * v1 + x2 * v2)
            slope -= score * s * (1 - s) * R * (x2 * p1 - x1 * p2) / (1 + (s * score).exp())
        return slope


def _on_circle(t):
    return (1 - t * t) / (1 + t * t), 2 * t / (1 + t * t)


@pytest.mark.parametrize("radius, degrees", [(10, 2.763315691), (30, 0.942870724), (100, 0.287502842)])
def test_the_joint_minimum_with_two_hundred_digits(radius, degrees):
    """The slope along the circle of p changes its sign within 1e-6 degrees of the angle found."""
    (point,) = joint_path(fig_3b(), [radius], ratio=1.0, starts=3, seed=2)
    v = point.blocks[0]
    turn = math.degrees(math.atan2(v[1], v[0]))
    assert angle(point) == pytest.approx(degrees, abs=1e-8)
    assert by_digits(radius, turn, angle(point) - 1e-6) < 0 < by_digits(radius, turn, angle(point) + 1e-6)


def test_a_point_that_is_no_minimum_says_so():
    problem, R = fig_3b(), 30.0
    (point,) = joint_path(problem, [R], ratio=1.0, starts=2)
    turned = R * np.array([math.cos(math.radians(2.763)), math.sin(math.radians(2.763))])
    assert Place(problem, (R, R), point.blocks).residual < 1e-12
    assert 0.01 < Place(problem, (R, R), (point.blocks[0], turned)).residual <= 1
    assert Place(problem, (R, R), (point.blocks[0], -turned)).residual == 1  # the descent of p points inside
    short = (point.blocks[0], 0.5 * turned)
    assert Place(problem, (R, R), short).residual > 0
    wrong = PathPoint(R, short, 0.0, True, Proof.STARTS, residual=0.5)
    assert not wrong.converged
    assert point.converged


@pytest.mark.parametrize("seed", range(4))
def test_plain_paths_are_stationary_far_out(seed):
    """Where no direction separates the best tokens, the minimum keeps two tokens of a bag level."""
    rng = np.random.default_rng(seed)
    problem = Problem.of(rng.normal(size=(4, 4, 3)), rng.normal(size=(4, 4)))
    path = regularisation_path(problem, [0.1, 1, 10, 100, 1000], starts=4)
    assert [point.converged for point in path] == [True] * 5, [point.residual for point in path]


def test_a_minimum_inside_the_ball():
    """Scores of two bags that want opposite things: the best p is short, and the point says both."""
    problem = Problem.of([[[1.0], [0.0]], [[-1.0], [0.0]]], [[1.0, 0.0], [2.0, 0.0]])
    (point,) = regularisation_path(problem, [50.0], starts=2)
    labels_contradict = Problem.joint([1, -1, 1], [[[1.0]], [[1.0]], [[1.0]]], [[[1.0]], [[1.0]], [[1.0]]])
    (joint,) = joint_path(labels_contradict, [50.0], ratio=1.0, starts=2)
    assert joint.inside
    assert joint.converged
    assert joint.blocks[0][0] == pytest.approx(math.log(2))  # two of three say +1
    assert point.inside
    assert point.converged
    heights = [problem.gap(problem.read((np.array([p]),))).log for p in np.linspace(-50, 50, 1001)]
    assert point.log_gap <= min(heights) + 1e-12


def test_large_margins_do_not_overflow():
    sign, log_size = Exponential().change(np.zeros(2), np.array([-1.0, 1.0]), np.log([1000.0, 1000.0]))
    assert sign.tolist() == [1, -1]
    assert log_size.tolist() == pytest.approx([1000.0, 0.0])
