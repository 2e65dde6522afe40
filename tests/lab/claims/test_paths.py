"""The constants behind the claims on paths, each by a second road."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from keytokens.lab.claims import instances as known
from keytokens.lab.claims.max_margin import neighbours
from keytokens.lab.claims.max_margin import paths as balls
from keytokens.lab.claims.max_margin import paths as optimal_sets
from keytokens.lab.claims.max_margin.assumptions import LOSSES
from keytokens.lab.claims.max_margin.neighbours import ConeAround, View, compared, keeps_away, unit
from keytokens.lab.claims.max_margin.paths import Limit, least_margin
from keytokens.lab.paths import Decomposition, regularisation_path, set_path
from keytokens.lab.problems.geometry import misalignment
from keytokens.lab.problems.heads import Linear
from keytokens.lab.problems.losses import Correlation, Logistic, Scaled
from keytokens.lab.problems.problem import Problem
from keytokens.lab.selection import directional_neighbours, local_optimum
from keytokens.lab.svm import MarginProblem, solve
from keytokens.model.ragged import Bags

seeds = st.integers(0, 2**32 - 1)


def random_problem(rng, n=2, T=3, d=3):
    return Problem.of(Bags.of(rng.normal(size=(n, T, d))), rng.normal(size=n * T), LOSSES[rng.integers(4)])


def plain_loss(problem, p):
    """L, straight from its definition."""
    total = 0.0
    for i in range(len(problem.keys)):
        a = problem.keys[i] @ p
        s = np.exp(a - a.max()) / np.exp(a - a.max()).sum()
        gamma = problem.scores[problem.keys.bag == i]
        total += float(problem.loss.value(np.array(s @ gamma)))
    return total / len(problem.keys)


# --- leading: E(p) between its bounds --------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None, derandomize=True)
@given(seeds, st.floats(0.1, 20.0))
def test_the_loss_far_out_stays_between_its_bounds(seed, R):
    rng = np.random.default_rng(seed)
    problem = random_problem(rng)
    view = View(problem, unit(rng.normal(size=3)))
    E = view.change(R * view.direction)
    everything = math.exp(view.log_everything - R * view.margin)
    assert abs(float(E.plain)) <= everything * (1 + 1e-9)
    alone = problem.loss.value(problem.scores[view.chosen]).mean()
    assert float(E.plain) == pytest.approx(plain_loss(problem, R * view.direction) - alone, rel=1e-6, abs=1e-12)
    found = directional_neighbours(problem.keys, problem.scores, view.direction)
    assert found.margin == pytest.approx(view.margin)
    assert found.neighbours[view.others].tolist() == view.near.tolist()
    signs = np.sign(view.gaps[view.near])
    begin = view.radius(view.step)
    if (signs == signs[0]).all():  # neighbours on one side decide the sign, and bring at least one's share
        for far in (begin, 2 * begin):
            E = view.change(far * view.direction)
            assert E.sign == signs[0]
            assert E.log >= view.log_neighbour - far * view.margin - math.log(2)


def test_tokens_that_tie_for_the_lead_are_taken_by_score():
    problem = Problem.of(Bags.of([[[1.0, 1.0], [1.0, -1.0], [0.0, 0.0]]]), np.array([0.0, 1.0, 2.0]))
    view = View(problem, np.array([1.0, 0.0]))
    assert view.selection.tolist() == [1]
    assert view.margin == 0
    assert view.near.tolist() == [True, False]


@given(st.integers(-40, 40), st.integers(-40, 40), st.integers(-2000, 2000))
@settings(derandomize=True)
def test_compared_is_the_relative_difference(x, y, shift):
    wanted = (x - y) / max(abs(x), abs(y)) if x or y else 0.0
    assert compared(Scaled(np.array(x), shift), Scaled(np.array(y), shift)) == pytest.approx(wanted, abs=1e-9)


# --- nearness: what a small loss proves ------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None, derandomize=True)
@given(seeds, st.floats(0.5, 60.0))
def test_a_small_loss_means_a_large_margin_and_a_near_direction(seed, R):
    """Any p of the ball at all: on its margin, its direction, and the floor of the loss."""
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, d=4)
    limit = Limit.of(problem)
    if not limit.solutions:
        return
    rows = MarginProblem.from_selection(problem.keys, problem.keys.argmax(problem.scores))
    for spread in (1.0, 0.1, 0.01):
        p = R * rng.uniform(0.5, 1) * unit(limit.shortest.p / limit.shortest.norm + spread * rng.normal(size=4))
        gap = problem.gap(problem.read((p,))).log
        assert float(rows.times(p).min()) >= limit.proved_margin(gap) - 1e-9
        assert misalignment(p, limit.shortest.p) <= limit.proved_misalignment(R, gap) + 1e-9
        assert gap >= limit.log_floor(R) - 1e-9


@given(st.lists(st.floats(-30, 30), min_size=2, max_size=6), st.integers(1, 5))
@settings(derandomize=True)
def test_attention_outside_bounds_the_margin(logits, winners):
    a = np.array(logits)
    winners = min(winners, len(a) - 1)
    s = np.exp(a - a.max()) / np.exp(a - a.max()).sum()
    margin = a[:winners].max() - a[winners:].max()
    inside, outside = float(s[:winners].sum()), float(s[winners:].sum())
    log_outside = math.log(outside) if outside < 0.5 else math.log1p(-inside)
    assert margin >= least_margin(log_outside, winners) - 1e-9
    assert least_margin(0.1, winners) == -math.inf


def test_the_bound_is_attained_by_one_input_of_two_tokens():
    """L - L* = q and q = 1/(1 + exp(m)): the margin is exactly the one that is proved."""
    problem = Problem.of(Bags.of([[[1.0], [0.0]]]), np.array([1.0, 0.0]), Correlation())
    gap = problem.gap(problem.read((np.array([3.0]),))).log
    assert Limit.of(problem).proved_margin(gap) == pytest.approx(3.0)


def test_another_choice_of_winners_leaves_the_limit_open():
    keys = Bags.of([[[1.0, 0.0], [0.0, 0.99], [0.0, 0.0]]])
    limit = Limit(keys, [[0, 1]], 0.0)
    assert [one.norm for one in limit.solutions] == pytest.approx([1.0, 1 / 0.99])
    assert limit.proved_misalignment(100.0, -50.0) == 2.0
    assert limit.proved_misalignment(100.0, -99.9) == pytest.approx((0.1 + math.log(2)) / 100, abs=1e-4)
    assert limit.proved_misalignment(1.0, 1.0) == 2.0
    assert not Limit(keys, [[0, 1]], -math.inf).proves


def test_the_set_path_says_the_same():
    """`paths.set_path` bounds its points by itself; with one best token and the same constants that is the same."""
    rng = np.random.default_rng(3)
    keys, scores = Bags.of(rng.normal(size=(2, 3, 4))), np.array([1.0, 0.2, -0.3, 0.1, 1.0, 0.4])
    plain = Problem.of(keys, scores)
    with_head = Problem.with_sets([1, 1], keys.with_rows(scores[:, None]), Linear(np.ones(1)), keys, None, Logistic())
    (point,) = set_path(with_head, [50.0], starts=2)
    (other,) = regularisation_path(plain, [50.0], starts=2)
    assert point.log_gap == pytest.approx(other.log_gap, abs=1e-6)
    log_least = math.log(min(0.6, 0.8)) + float(plain.loss.log_abs_slope(np.array(1.0))) - math.log(2)
    limit = Limit(keys, with_head.sets, log_least)
    assert point.lower == pytest.approx(limit.log_floor(50.0))
    assert point.turn == pytest.approx(limit.proved_misalignment(50.0, point.log_gap))
    assert Limit.of(plain).log_least == pytest.approx(log_least)


# --- Lemma 10 --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(10))
def test_corners_found_by_linear_programmes_have_no_more_neighbours(seed):
    rng = np.random.default_rng(seed)
    tokens = neighbours._tokens(rng)
    keys = tokens.problem.keys
    problem = MarginProblem.from_selection(keys, tokens.selection)
    A = problem.rows(np.arange(len(problem)))
    most = 0
    for _ in range(20):
        cost = rng.uniform(0.1, 1, len(A)) @ A  # in the dual cone, so the programme is bounded
        q = linprog(cost, A_ub=-A, b_ub=-np.ones(len(A)), bounds=(None, None)).x
        found = directional_neighbours(keys, np.zeros(len(keys.rows)), q)
        most = max(most, int(found.neighbours.sum()))
    assert most == problem.dim
    assert neighbours._most_neighbours(tokens) == pytest.approx(0.0, abs=1e-9)


# --- Theorem 4: a plane, scanned -------------------------------------------------------------------------------------


def lowest_in_cone(cone, R, least=1.0):
    """The best p with cos(p, q) >= 1 - eps and least <= |p| <= R in the plane, on a grid of angles and radii."""
    half, middle = math.acos(1 - cone.eps), math.atan2(cone.q[1], cone.q[0])
    angles = middle + half * np.linspace(-1, 1, 61)
    best, at = None, None
    for radius in np.geomspace(least, R, 20):
        for angle in angles:
            p = radius * np.array([math.cos(angle), math.sin(angle)])
            E = cone.view.change(p)
            if best is None or compared(E, best) < 0:
                best, at = E, p
    return at


@pytest.mark.parametrize("seed", range(5))
def test_in_the_plane_the_scanned_path_keeps_away(seed):
    rng = np.random.default_rng(seed)
    while True:
        cone = neighbours._cone_around(rng)
        if len(cone.q) == 2 and cone.eps > 0.02:
            break
    assert keeps_away(cone) < 1e-9
    rival, view = cone.rival, cone.view
    assert rival.direction @ cone.q >= 1 - cone.eps
    R = 10 * view.radius(max(1e-3, min(abs(rival.margin - view.margin), view.step) / 4))
    assert np.linalg.norm(lowest_in_cone(cone, R) / R - cone.q) > 1e-3


def test_in_the_plane_the_scanned_path_goes_to_a_locally_optimal_direction():
    cone = ConeAround(known.one_bag(0.0), known.LMM, 0.001)
    assert cone.locally_optimal
    assert np.linalg.norm(lowest_in_cone(cone, 200.0) / 200 - known.LMM) < 1e-3
    assert keeps_away(cone) > 0.5


def test_which_directions_are_locally_optimal():
    for third, wanted in ((0.0, True), (0.9, False)):
        assert ConeAround(known.one_bag(third), known.LMM, 0.1).locally_optimal is wanted
    assert ConeAround(known.one_bag(0.9), unit(known.GMM), 0.1).locally_optimal
    assert not ConeAround(known.one_bag(0.0), unit(np.array([1.0, 0.2])), 0.1).locally_optimal


def test_every_kind_of_direction_is_drawn():
    """So that all cases of the theorem occur."""

    def kind(cone):
        if abs(cone.view.margin) < 1e-9:
            return "tie"
        found = local_optimum(cone.problem.keys, cone.problem.scores, cone.view.selection)
        return "max-margin" if misalignment(found.direction, cone.q) < 1e-12 else "random"

    drawn = [kind(neighbours._cone_around(np.random.default_rng(seed))) for seed in range(30)]
    assert min(drawn.count(wanted) for wanted in ("tie", "max-margin", "random")) >= 4


# --- Lemma 14 --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_the_attention_asked_for_is_given(seed):
    rng = np.random.default_rng(seed)
    problem = optimal_sets._with_sets(rng, free=True)
    wanted = -rng.uniform(0.1, 90, len(problem.keys))
    tokens = np.array([np.flatnonzero(~problem.inside[problem.keys.bag == i])[0] for i in range(len(problem.keys))])
    p = optimal_sets._p_with(problem, wanted, tokens, rng.normal(size=len(problem.keys.rows)))
    np.testing.assert_allclose(problem.read((p,)).log_outside, wanted, rtol=1e-9)


def test_half_of_rho_is_not_enough():
    """Tight constants: one input in two, all of C+ and no more than C- are used."""
    values = Bags.of([[[1.0], [0.9]], [[1.0], [0.0]]])
    keys = Bags.of(np.eye(4).reshape(2, 2, 4))
    problem = Problem.with_sets([1, 1], values, Linear(np.ones(1)), keys, [[0], [0]], Correlation())
    one = optimal_sets.Decomposed(problem, Decomposition(problem.nu, 0.0, 0.1))
    assert optimal_sets._bounded(one)
    assert optimal_sets._pairs_compared(one) < 0
    assert optimal_sets._pairs_compared(optimal_sets.Decomposed(problem, WeakRho(problem.nu, 0.0, 0.1))) > 0


class WeakRho(Decomposition):
    def rho(self, delta, loss):
        return 0.4 * super().rho(delta, loss)


# --- counters --------------------------------------------------------------------------------------------------------


def test_best_tokens_that_cannot_win_are_no_error():
    """The best token is the middle one of three on a line."""
    keys = Bags.of([[[0.0, 0.0], [1.0, 0.0], [-1.0, 0.0]]])
    assert not balls._CAN_WIN.holds(Problem.of(keys, np.array([1.0, 0.0, 0.0])))


def test_the_counters_fail_by_themselves_and_not_for_want_of_a_proof():
    problem = balls._two_winners()
    assert not Limit.of(problem).proves
    (point,) = regularisation_path(problem, [1e3], starts=2)
    assert misalignment(point.p, [1.0, 0.0, 0.0]) < 1e-9
    assert solve(MarginProblem.from_selection(problem.keys, [0])).p == pytest.approx([-1.0, 0.0, 0.0])
