"""The constants behind the claims on joint training, each by a second road."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from keytokens.lab.claims import instances as known
from keytokens.lab.claims.max_margin import joint
from keytokens.lab.claims.max_margin.joint import JointLimit, _log_expm1, _lowest
from keytokens.lab.paths import joint_path
from keytokens.lab.problems.geometry import angle, misalignment
from keytokens.lab.problems.problem import Problem
from keytokens.model.ragged import Bags, softmax

A = JointLimit(known.joint((0.5, 1.0)), np.array([1, 1, 1]))
B = JointLimit(known.joint((0.5, 1.5)), np.array([1, 1, 1]))


def plain_margin(labels, values, attention):
    """The label margin by a search over the sphere of heads, from many starts."""
    features = labels[:, None] * values.sum(attention[:, None] * values.rows)

    def height(w):
        return -float((features @ w).min()) / float(np.linalg.norm(w))

    rng = np.random.default_rng(0)
    starts = [features.mean(axis=0), *rng.normal(size=(4, features.shape[1]))]
    found = (minimize(height, w, method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 1e-12}) for w in starts)
    return max(-one.fun for one in found)


@pytest.mark.parametrize("seed", range(4))
def test_label_margin_by_a_search(seed):
    rng = np.random.default_rng(seed)
    one = joint._trained(rng, off=bool(seed % 2))
    values = one.problem.values
    attention = softmax(values, rng.normal(size=len(values.rows)))
    wanted = plain_margin(one.problem.labels, values, attention)
    assert joint.label_margin(one.problem.labels, values, attention) == pytest.approx(max(wanted, 0.0), abs=1e-6)


# --- the figures -----------------------------------------------------------------------------------------------------


def test_fig_3a_all_inputs_support_the_head():
    assert A.head.p == pytest.approx([0.0, 1.0], abs=1e-12)
    assert A.margins == pytest.approx(np.ones(3))
    assert A.support.tolist() == [0, 1, 2]
    assert A.weights == pytest.approx([1 / 2, 1 / 2, 2 / 3])  # (1, 1) with (-1, 1), or (0.5, 1) with (-1, 1)
    assert A.nu == pytest.approx(0.5)
    assert A.strict.p == pytest.approx([4 / 3, 1 / 3])
    assert A.relaxed.p == pytest.approx([4 / 3, 1 / 3])
    assert angle(A.attention.p) == pytest.approx(math.degrees(math.atan(1 / 4)))


def test_fig_3b_the_third_input_is_off_the_margin():
    assert B.support.tolist() == [0, 1]
    assert B.weights == pytest.approx([0.5, 0.5, 0.0])
    assert B.relaxed.p == pytest.approx([1.0, 0.0], abs=1e-12)
    assert B.strict.p == pytest.approx([5 / 4, 1 / 4])
    assert B.least_ratio == pytest.approx(1.0)


@pytest.mark.parametrize("ratio", [0.01, 0.1, 1 / 3, 0.7, 0.99])
def test_fig_3b_the_limit_depends_on_the_ratio(ratio):
    limit = JointLimit(B.problem, B.selection, ratio)
    theta = math.radians(angle(limit.attention.p))
    assert math.cos(theta) - 5 * math.sin(theta) == pytest.approx(ratio, abs=1e-9)


def test_the_ends_of_the_ratio():
    none = JointLimit(B.problem, B.selection, 0.0)
    assert misalignment(none.attention.p, B.strict.p) < 1e-20
    for ratio in (1.0, 2.0, 50.0):
        assert misalignment(JointLimit(B.problem, B.selection, ratio).attention.p, B.relaxed.p) < 1e-20


@pytest.mark.parametrize("limit, angles", [(A, (11.82, 12.45, 13.43)), (B, (5.54, 2.76, 0.94))], ids=["a", "b"])
def test_settled_points_are_those_of_the_joint_path(limit, angles):
    """At R = 10 and 30 log L still has the digits to find p."""
    path = joint_path(limit.problem, [10.0, 30.0], ratio=1.0, starts=4)
    for point, wanted in zip(path, angles[1:], strict=True):
        v, p = limit.settled(point.radius, rounds=4)
        rough = 10 / point.radius**2  # what the leading terms leave out falls like exp(-R)
        assert angle(p) == pytest.approx(wanted, abs=rough)
        assert angle(v) == pytest.approx(angle(point.blocks[0]), abs=rough)
        reading = limit.problem.read((v, p))
        assert limit.problem.gap(reading).log <= point.log_gap + 1e-3


# --- what is proved --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
def test_no_better_point_lies_outside_what_is_proved(seed):
    """Minima by general search at a moderate radius; and any point no worse than the limit's own ray."""
    rng = np.random.default_rng(seed)
    while True:
        one = joint._trained(rng, off=bool(seed % 2))
        if joint._SEPARABLE.holds(one) and one.selects(one.attention.p):
            break
    R = 12 * one.strict.norm
    r = one.ratio * R
    proved = one.proved(R)
    ray = one.problem.gap(one.problem.read((r * one.unit, R * one.attention.p))).log
    (point,) = joint_path(one.problem, [R], one.ratio, starts=4)
    points = [point.blocks]
    for spread in (1.0, 0.3, 0.1, 0.03) * 5:
        v, p = (x / np.linalg.norm(x) + spread * rng.normal(size=len(x)) for x in (one.unit, one.attention.p))
        points.append((r * v / np.linalg.norm(v), R * p / np.linalg.norm(p)))
    for v, p in points:
        if one.problem.gap(one.problem.read((v, p))).log <= ray:
            assert misalignment(v, one.unit) <= proved[0] + 1e-12
            assert misalignment(p, one.attention.p) <= proved[1] + 1e-12


@pytest.mark.parametrize("seed", range(8))
def test_every_head_that_is_allowed_leaves_p_its_margins(seed):
    """Step 3 by itself: p no worse than the limit's ray, under any head that step 2 allows, has the margins it says."""
    rng = np.random.default_rng(seed)
    while True:
        one = joint._trained(rng, off=bool(seed % 2))
        if joint._SEPARABLE.holds(one) and one.selects(one.attention.p):
            break
    problem, R, tried = one.problem, 6 * one.strict.norm, 0
    r, ray = one.ratio * R, R * one.attention.p
    for spread in (0.5, 0.2, 0.05, 0.02) * 50:
        v, p = (x + spread * np.linalg.norm(x) * rng.normal(size=len(x)) for x in (one.unit, ray))
        v *= rng.uniform(0.8, 1) * r / np.linalg.norm(v)
        p *= R / np.linalg.norm(p)
        reading = problem.read((v, p))
        mu = min(float(reading.margins.min()), one.margin * float(v @ one.unit))
        if mu > r * one.longest and problem.gap(reading).log <= problem.gap(problem.read((v, ray))).log:
            tried += 1
            least = one._least_margins(R, mu, math.sqrt(1 - (mu / (r * one.margin)) ** 2))
            assert (one.attention_margins(p) >= least - 1e-9).all()
    assert tried > 0


def test_proofs_sharpen_with_the_radius():
    for limit in (A, B, JointLimit(B.problem, B.selection, 1 / 3)):
        bounds = np.array([limit.proved(R) for R in (30.0, 3e3, 3e5, 1e10)])
        assert (np.diff(bounds, axis=0) < 0).all()
        assert bounds[-1].max() < 1e-4
    assert A.proved(0.1) == (2.0, 2.0)


def test_weights_are_those_of_a_head_that_is_a_mean():
    """Gamma u = sum_i w_i Y_i r_i: each largest weight belongs to such a mean, so no weight is above 1."""
    for seed in range(10):
        one = joint._trained(np.random.default_rng(seed), off=bool(seed % 2))
        assert (one.weights >= 0).all()
        assert (one.weights <= 1 + 1e-9).all()
        assert one.weights[one.support].sum() >= 1 - 1e-6
        off = np.setdiff1d(np.arange(len(one.margins)), one.support)
        assert not one.weights[off].any()


def test_the_cost_of_attention_elsewhere_is_attained():
    """With zero tokens beside the selected ones, to first order: margin = Gamma - w_i (1 - s_i)."""
    for i in range(3):
        attention = np.tile([0.0, 1.0], 3)
        attention[2 * i : 2 * i + 2] = 1e-4, 1 - 1e-4
        margin = joint.label_margin(A.problem.labels, A.problem.values, attention)
        assert (1 - margin) / 1e-4 == pytest.approx(A.weights[i], rel=1e-3)


def test_one_token_cannot_be_selected_by_a_head_it_does_not_support():
    """Two inputs with r_1 = r_2 = a and labels 1: each alone can carry the head."""
    values = Bags.of([[[2.0, 0.0], [0.0, 1.0]], [[2.0, 0.0], [0.0, -1.0]]])
    limit = JointLimit(Problem.joint(np.ones(2), values, values), np.array([0, 0]))
    assert limit.weights == pytest.approx([1.0, 1.0])
    assert limit.nu == pytest.approx(1.0)  # |a| - longest


def test_lowest_on_a_sphere_by_a_scan():
    rows, offsets = np.array([[1.0, 0.3], [0.5, 1.0], [1.0, -0.2]]), np.array([0.0, -3.0, 1.0])
    found = _lowest(rows, offsets, 7.0)
    angles = np.linspace(-math.pi, math.pi, 100_001)
    circle = 7 * np.column_stack([np.cos(angles), np.sin(angles)])
    heights = np.logaddexp.reduce(offsets - circle @ rows.T, axis=1)
    assert found == pytest.approx(circle[heights.argmin()], abs=1e-3)


def test_log_expm1():
    x = np.array([-1.0, 0.0, 1e-12, 0.5, 800.0])
    assert _log_expm1(x) == pytest.approx([-math.inf, -math.inf, math.log(1e-12), math.log(math.expm1(0.5)), 800.0])
