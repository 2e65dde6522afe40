"""The helpers of the claims by other roads."""

from decimal import Context, Decimal, localcontext
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import brentq

from keytokens.base.errors import InputError
from keytokens.lab.claims.claim import claims
from keytokens.lab.claims.instances import one_bag, two_limits
from keytokens.lab.claims.max_margin import assumptions
from keytokens.lab.claims.max_margin import lemmas as margins
from keytokens.lab.claims.max_margin.assumptions import (
    LOSSES,
    Local,
    Sigmoid,
    along,
    can_win,
    draw_local,
    equal_scores,
    log_missed,
    near,
    slopes,
)
from keytokens.lab.problems.geometry import misalignment
from keytokens.lab.problems.losses import Logistic
from keytokens.lab.problems.problem import Problem
from keytokens.model.ragged import Bags, softmax

seeds = st.integers(0, 10_000)
each_loss = pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)


# The loss that is not convex


@pytest.mark.parametrize("x", [-700.0, -30.0, -0.3, 0.0, 2.0, 50.0, 900.0])
@pytest.mark.parametrize("sign, log_delta", [*product([-1.0, 1.0], [1.0, -18.4, -18.5, -400.0])])
def test_sigmoid_in_many_digits(x, sign, log_delta):
    loss = Sigmoid()
    with localcontext(Context(prec=1300, Emin=-(10**9), Emax=10**9)):
        exact = lambda at: 1 / (1 + at.exp())  # noqa: E731
        value, delta = exact(Decimal(x)), int(sign) * Decimal(log_delta).exp()
        change = exact(Decimal(x) + delta) - value
        assert loss.log_value(np.array(x)) == pytest.approx(float(value.ln()), rel=1e-14, abs=1e-13)
        assert loss.log_abs_slope(np.array(x)) == pytest.approx(float((value * (1 - value)).ln()), rel=1e-14)
        seen_sign, seen_log = loss.change(np.array(x), np.array(sign), np.array(log_delta))
        assert seen_sign == (1 if change > 0 else -1)
        assert float(seen_log) == pytest.approx(float(abs(change).ln()), rel=1e-14, abs=1e-13)


def test_sigmoid_value_and_slope():
    x, loss = np.linspace(-5, 5, 41), Sigmoid()
    assert_allclose(loss.slope(x), (loss.value(x + 1e-6) - loss.value(x - 1e-6)) / 2e-6, rtol=1e-8)
    assert_allclose(np.exp(loss.log_value(x)), loss.value(x))


# Assumptions


@each_loss
@given(low=st.floats(-4, 4), width=st.floats(0.1, 4))
def test_bounds_on_the_slope_are_attained(loss, low, width):
    x = np.linspace(low, low + width, 2001)
    bounds = slopes(Problem.of(Bags.of([[[0.0], [1.0]]]), x[[0, -1]], loss))
    size = -loss.slope(x)
    assert bounds.least == pytest.approx(size.min())
    assert bounds.largest == pytest.approx(size.max(), rel=1e-5)  # 0 may lie between two points of the grid
    steepest = np.abs(np.diff(size) / np.diff(x)).max()
    assert steepest <= bounds.curvature * (1 + 1e-9)


@each_loss
def test_curvatures_are_sharp(loss):
    x = np.linspace(-3, 3, 4001)
    bounds = slopes(Problem.of(Bags.of([[[0.0], [1.0]]]), x[[0, -1]], loss))
    assert np.abs(np.diff(loss.slope(x)) / np.diff(x)).max() == pytest.approx(bounds.curvature, rel=2e-3)


def test_assumptions_can_fail():
    assert equal_scores(one_bag(0.9))
    assert not equal_scores(one_bag(0.0))
    tie = Problem.of(Bags.of([[[0.0], [1.0], [-1.0]]]), np.array([1.0, 1.0, 0.0]))
    assert not equal_scores(tie)
    assert can_win(one_bag(0.9))
    assert not can_win(Problem.of(tie.keys, np.eye(3)[0]))

    assert assumptions.falls(one_bag(0.9)) is True
    assert assumptions.falls(Problem.of(tie.keys, np.eye(3)[0], Logistic("unknown"))) is None


@given(seeds)
def test_slopes_and_missed_attention_near_the_origin(seed):
    rng = np.random.default_rng(seed)
    problem = assumptions.draw_equal_scores(rng, 3, 3, 4)
    p, q = rng.normal(size=(2, 4))
    there, back = (problem.read((p + h * q,)).value for h in (1e-6, -1e-6))
    assert float(along(problem, p, q).plain) == pytest.approx((back - there) / 2e-6, abs=1e-7)
    rows = problem.keys.chosen([0, 1, 2])
    missed = 1 - softmax(problem.keys, problem.keys.rows @ p)[rows]
    assert_allclose(np.exp(log_missed(problem.read((p,)), rows)), missed, rtol=1e-10)


def test_missed_attention_far_out():
    reading = one_bag(0.9).read((np.array([0.0, 1e5]),))
    assert_allclose(log_missed(reading, np.array([0])), -1e5 + np.log(2))


# Lemmas 3 and 5: the identities behind the bounds


@given(seeds)
def test_the_key_lemma_is_a_product(seed):
    """sum_t (a_1 - a_t) s_t (g_1 - g_t) - a'S'g = (sum_t s_t (a_1 - a_t)) (sum_t s_t (g_1 - g_t))."""
    rng = np.random.default_rng(seed)
    s, a, g = rng.dirichlet(np.ones(5)), rng.normal(size=5), rng.normal(size=5)
    covariance = a @ (np.diag(s) - np.outer(s, s)) @ g
    first = (a[0] - a) * s @ (g[0] - g)
    assert first - covariance == pytest.approx((s @ (a[0] - a)) * (s @ (g[0] - g)), abs=1e-13)


@pytest.mark.parametrize("T", range(2, 9))
def test_entropy_gap(T):
    w = margins.entropy_gap(T)
    if T > 2:
        # another road to w exp(w) = (T - 2)/e
        assert w == pytest.approx(brentq(lambda x: x + np.log(x) + 1 - np.log(T - 2), 1e-9, 9), rel=1e-10)
    attained = np.r_[0, np.full(T - 2, 1 + w)]
    assert np.average(attained, weights=np.exp(-attained)) == pytest.approx(w, abs=1e-12)
    others = np.random.default_rng(T).exponential(2.0, (2000, T - 1))
    others -= others.min(axis=1, keepdims=True)
    weights = np.exp(-others)
    assert ((others * weights).sum(axis=1) / weights.sum(axis=1)).max(initial=0) <= w + 1e-12


# Cones


@given(seeds, st.floats(1e-9, 1.0), st.floats(0.1, 1e6))
def test_near_has_the_size_and_the_angle(seed, mu, size):
    rng = np.random.default_rng(seed)
    axis = rng.normal(size=3)
    p = near(rng, axis, mu, size)
    assert np.linalg.norm(p) == pytest.approx(size)
    assert misalignment(p, axis) == pytest.approx(mu, rel=1e-6)


def test_one_dimension_has_no_other_direction():
    assert near(np.random.default_rng(0), np.array([2.0]), 0.1, 3.0).tolist() == [3.0]


@given(seeds)
def test_constants_by_loops(seed):
    local = draw_local(np.random.default_rng(seed), 2, 3, 3)
    assert local.is_locally_optimal
    assert local.all_have_neighbours
    keys, scores = local.problem.keys, local.problem.scores.reshape(2, 3)
    p, gaps, reach, deltas = local.direction, [], 0.0, [np.inf]
    for i, chosen in enumerate(local.selection):
        margin = (keys[i][chosen] - keys[i]) @ p
        near_by = [t for t in range(3) if t != chosen and margin[t] < 1 + 1e-6]
        far = [t for t in range(3) if t != chosen and t not in near_by]
        gaps += [scores[i, chosen] - scores[i, t] for t in near_by]
        deltas += [0.5 * (keys[i][t] - keys[i][u]) @ p for t in near_by for u in far]
        reach = max(reach, *(np.linalg.norm(x - y) for x in keys[i] for y in keys[i]))
    margins_of = np.linspace(scores.min(), scores.max(), 4001)
    size = -local.problem.loss.slope(margins_of)
    assert local.reach == pytest.approx(reach)
    assert local.cone.delta == pytest.approx(min(deltas))
    mu, theta, limit = local.cone.mu, local.cone.margin, assumptions.step_limit(local.problem)
    steps = (1 - mu) * (2 * size.max() * max(gaps) * reach) ** 2 / (theta * size.min() * min(gaps) / 8) * limit
    far = max(2, 1 / min(deltas)) / theta * np.log((2 - mu) * steps * 3 / mu)
    assert local.descent_radius == pytest.approx(max(local.cone.radius, far), rel=1e-5)
    inside = near(np.random.default_rng(seed), p, 0.5 * local.cone.mu, local.cone.radius)
    assert local.holds_in_cone(inside, local.cone.radius)
    assert not local.holds_in_cone(0.9 * inside, local.cone.radius)
    assert not local.holds_in_cone(-inside, local.cone.radius)


def test_constants_of_the_figure():
    """Logistic loss on scores in [0, 1]: 1/(1 + e) <= |loss'| <= 1/2; the one neighbour is 0.9 below."""
    local = Local(one_bag(0.0), np.array([1]))
    mu, reach = (0.05**2 / 1.01) / 8, np.hypot(1.1, 1)
    assert local.reach == pytest.approx(reach)
    smooth = (0.25 * 1.81 + 3 * 0.5 * np.sqrt(1.81)) * np.linalg.norm(local.problem.keys.rows, 2) ** 2
    C2 = (1 - mu) * reach**2 * 0.9**2 / (0.9 / 8 / (1 + np.e))
    assert local.descent_radius == pytest.approx(20 * np.log((2 - mu) * C2 / smooth * 3 / mu))


def test_a_selection_that_cannot_win():
    middle = Problem.of(Bags.of([[[0.0], [1.0], [-1.0]]]), np.eye(3)[0])
    local = Local(middle, np.array([0]))
    assert not local.is_locally_optimal
    assert not local.all_have_neighbours
    assert not Local(two_limits(), np.array([0, 1])).all_have_neighbours


def test_more_inputs_than_dimensions_have_no_neighbour_each():
    with pytest.raises(InputError, match="draw_local: `d` must be at least the number of inputs, 3; saw 2"):
        draw_local(np.random.default_rng(0), 3, 2, 2)


def test_drawn_selections_are_not_always_the_best():
    drawn = [draw_local(np.random.default_rng(seed), 2, 4, 3) for seed in range(20)]
    best = [np.array_equal(x.selection, x.problem.keys.argmax(x.problem.scores)) for x in drawn]
    assert 0 < sum(best) < 20


def test_claims_come_in_the_order_of_the_paper():
    numbers = [
        int(claim.id.removeprefix("mm.lemma")) for claim in claims() if claim.excess.__module__ == margins.__name__
    ]
    assert all(a < b for a, b in pairwise(numbers))
