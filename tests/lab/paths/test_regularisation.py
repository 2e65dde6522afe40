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
    with pytest.raises(InputError, match="regularisation_path: `radii` must "):
        regularisation_path(random_problem(0), radii)


def test_wrong_ratio():
    bags = Bags.of(VALUES)
    with pytest.raises(InputError, match=r"joint_path: `ratio` must be a finite number above 0; saw 0"):
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


def by_digits(radius, v, p, ratio=1.0, third="1.5"):
    """The slope of the loss along the circle of p, with 200 digits; v and p as degrees. A second road."""
    with localcontext() as context:
        context.prec = 200
        R, r, slope = Decimal(radius), Decimal(ratio) * Decimal(radius), Decimal(0)
        (v1, v2), (p1, p2) = (_on_circle(Decimal(math.tan(math.radians(degrees) / 2))) for degrees in (v, p))
        for (a, b), sign in zip([("1", "1"), ("1", "-1"), ("0.5", third)], LABELS, strict=True):
            x1, x2, y = Decimal(a), Decimal(b), Decimal(sign)
            s = 1 / (1 + (-R * (x1 * p1 + x2 * p2)).exp())
            score = y * r * (x1 * v1 + x2 * v2)
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


@pytest.mark.parametrize("third", ["1", "1.5"])
@pytest.mark.parametrize("ratio", [0.1, 0.3, 1.0, 3.0, 10.0])
@pytest.mark.parametrize("radius", [1, 5, 20, 100])
def test_joint_minima_from_any_seed_with_two_hundred_digits(radius, ratio, third):
    """Within 1e-5 degrees the slope of p changes its sign, in the half plane where all inputs attend to the labels."""
    values = VALUES.copy()
    values[2, 1, 1] = float(third)
    seed = round(7 * radius + 10 * ratio)
    (point,) = joint_path(Problem.joint(LABELS, values, values), [radius], ratio, starts=1, seed=seed)
    assert point.converged
    assert not point.inside
    assert abs(angle(point)) < 45
    v = point.blocks[0]
    turn = math.degrees(math.atan2(v[1], v[0]))
    below, above = (by_digits(radius, turn, angle(point) + off, ratio, third) for off in (-1e-5, 1e-5))
    assert below < 0 < above


# R and r/R, then the angle of p on Fig 3(b): both angles by Newton's method with 80 digits, from a scan of the circle
BY_SCAN = [
    (1, 0.1, 37.865560954215), (1, 10, 3.05578805391778), (5, 3, 0.27948353743047), (10, 0.3, 9.34514361158417),
    (20, 0.1, 10.8665776558119), (20, 3, 6.35180183988486e-9), (20, 10, 0.0), (30, 10, 0.0), (50, 1, 0.570979147718699),
    (100, 0.3, 8.07875255872044), (100, 10, 0.0),
]  # fmt: skip


@pytest.mark.parametrize("radius, ratio, degrees", BY_SCAN)
def test_joint_minima_are_global(radius, ratio, degrees):
    """At (20, 3) and (20, 10) there is a second minimum, at -135 and -139 degrees: seeds 1 and 2 used to end there."""
    for seed, starts in ((1, 1), (2, 4)):
        (point,) = joint_path(fig_3b(), [radius], ratio, starts=starts, seed=seed)
        assert angle(point) == pytest.approx(degrees, abs=1e-9)


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


def test_more_dimensions_than_the_method_of_newton_takes(monkeypatch):
    """Descent alone then finds the same minima, with fewer digits."""
    problem = random_problem(0)
    expected = regularisation_path(problem, [2.0, 20.0], starts=3)
    monkeypatch.setattr("keytokens.lab.paths.minima.MOST_DIMENSIONS", 1)
    for one, other in zip(regularisation_path(problem, [2.0, 20.0], starts=3), expected, strict=True):
        assert one.log_gap == pytest.approx(other.log_gap, abs=1e-6)
        assert one.direction == pytest.approx(other.direction, abs=1e-3)
