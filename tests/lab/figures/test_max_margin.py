"""Numbers of the figures of the max-margin paper, by another road."""

from decimal import Decimal, getcontext

import numpy as np
import pytest

from keytokens.lab.claims.instances import joint, three_bags
from keytokens.lab.figures.joint import path_angles
from keytokens.lab.figures.max_margin import edge_line, ends_locally
from keytokens.lab.figures.tables import difference
from keytokens.lab.problems.geometry import angle, misalignment
from keytokens.lab.svm import MarginProblem, solve

from .made import made


def plain_softmax_descent(keys, scores, start, steps, floor=0.0):
    """Normalised descent on the logistic loss by the textbook gradient, in the numbers as they come."""
    p, path = np.array(start, float), []
    for _ in range(steps + 1):
        path.append(p)
        a = np.einsum("ntd,d->nt", keys, p)
        s = np.exp(a - a.max(axis=1, keepdims=True))
        s /= s.sum(axis=1, keepdims=True)
        # K'(diag s - s s')gamma = sum over pairs t < u of s_t s_u (gamma_t - gamma_u)(k_t - k_u)
        pairs = s[:, :, None] * s[:, None, :] * (scores[:, :, None] - scores[:, None, :])
        slope = 1 / (1 + np.exp((s * scores).sum(axis=1)))
        g = np.einsum("n,ntu,ntud->d", slope, pairs, keys[:, :, None] - keys[:, None, :]) / 2 / len(keys)
        p = p + 0.1 * g / (np.linalg.norm(g) + floor)
    return np.array(path)


def test_the_exact_numbers_of_three_inputs():
    """|p| = 19.79 after 199 steps and cos = 0.99977 after 1,000: so says the textbook gradient without a floor."""
    keys, scores = three_bags().keys.rows.reshape(3, 7, 2), three_bags().scores.reshape(3, 7)
    from_zero = plain_softmax_descent(keys, scores, [0.0, 0.0], 199)
    norm = made("4b").tables["normalised"]["norm"]
    np.testing.assert_allclose(np.linalg.norm(from_zero, axis=1), norm, atol=1e-6)
    target = solve(MarginProblem.from_selection(three_bags().keys, [0, 0, 0])).p
    long = plain_softmax_descent(keys, scores, [-1.5, 0.0], 1000)[-1]
    assert 1 - misalignment(long, target) == pytest.approx(0.99977, abs=6e-6)
    floored = plain_softmax_descent(keys, scores, [-1.5, 0.0], 1000, floor=1e-12)[-1]
    assert 1 - misalignment(floored, target) == pytest.approx(0.99994, abs=6e-6)


@pytest.mark.parametrize("name, third", [("3a", (0.5, 1.0)), ("3b", (0.5, 1.5))])
def test_the_exact_numbers_of_joint_training(name, third):
    """With a zero token and one other, f = s(x'p) v'x: gradients are products, and nothing cancels."""
    x, y = np.array([(1.0, 1.0), (1.0, -1.0), third]), np.array([1.0, -1.0, 1.0])
    v, p = np.array([-1.0, 0.0]), np.array([0.0, -1.0])
    for _ in range(1000):
        s, rest = 1 / (1 + np.exp(-x @ p)), 1 / (1 + np.exp(x @ p))
        pull = y / (1 + np.exp(y * s * (x @ v)))
        down_v, down_p = (pull * s) @ x, (pull * s * rest * (x @ v)) @ x
        v, p = v + 0.1 * down_v / np.linalg.norm(down_v), p + 0.1 * down_p / np.linalg.norm(down_p)
    run = made(name).tables["run"]
    assert angle(p) == pytest.approx(run["degrees"][-1], abs=1e-6)
    assert v.tolist() == pytest.approx([run["v1"][-1], run["v2"][-1]], abs=1e-6)


def test_the_flat_minimum_of_the_joint_path():
    """|v|, |p| <= 30: the loss, with fifty digits and v straight up, is lowest at 0.943 degrees of p."""
    getcontext().prec = 50
    points = [(Decimal(1), Decimal(1)), (Decimal(1), Decimal(1)), (Decimal("0.5"), Decimal("1.5"))]
    signs = [1, -1, 1]

    def loss(degrees: str) -> Decimal:
        turn = Decimal(degrees) * Decimal("3.14159265358979323846264338327950288419716939937510") / 180
        sin = turn - turn**3 / 6 + turn**5 / 120 - turn**7 / 5040 + turn**9 / 362880
        cos = 1 - turn**2 / 2 + turn**4 / 24 - turn**6 / 720 + turn**8 / 40320
        total = Decimal(0)
        for (a, b), sign in zip(points, signs, strict=True):
            s = 1 / (1 + (-30 * (a * cos + sign * b * sin)).exp())
            total += (1 + (-30 * s * b).exp()).ln()
        return total

    found = path_angles(joint((0.5, 1.5)), [(30.0, 30.0)], starts=4)["degrees"][0]
    assert loss("0.9428") > loss("0.9429") < loss("0.9430")
    assert found == pytest.approx(0.9429, abs=1e-4)


def test_the_edge_of_the_basin_is_a_line_whatever_the_steps():
    radius = np.array([10.0, 50.0, 107.0])
    edge = edge_line(radius)
    assert edge.tolist() == pytest.approx([4.515, 5.471, 5.599], abs=6e-4)
    p = radius[:, None] * np.stack([np.cos(np.radians(edge)), np.sin(np.radians(edge))], axis=1)
    np.testing.assert_allclose(p[:, 1], p[:, 0] / 10 + np.log(30 / 37), atol=1e-12)
    assert ends_locally(radius, edge - 0.01).all()
    assert not ends_locally(radius, edge + 0.01).any()


def test_the_tolerance_of_two_shares():
    """3.5 standard deviations: nearly all pairs of samples of one population are within it, few within a third."""
    rng = np.random.default_rng(0)
    one, other = rng.binomial(1000, 0.3, 400) / 1000, rng.binomial(500, 0.3, 400) / 500
    allowed = np.array([difference(a, 1000, b, 500) for a, b in zip(one, other, strict=True)])
    assert (np.abs(one - other) <= allowed).mean() > 0.99
    assert (np.abs(one - other) <= allowed / 3.5).mean() < 0.8
    assert difference(0.0, 1000, 0.0, 1000) == 0
