"""The gradient flow in arc length: where it goes, how far it stays exact, how it says that it has ended."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from keytokens.base.errors import InputError
from keytokens.lab.claims.instances import joint, one_bag, three_bags, tied, two_limits
from keytokens.lab.descent import Descent, Flow, Plain, Run, Status, flow, run
from keytokens.lab.problems.geometry import misalignment
from keytokens.lab.problems.problem import Problem
from keytokens.model.ragged import Bags

from .least_distance import max_margin

FAR = [(one_bag(0.9), 1), (three_bags(), 3), (tied(0), 4), (two_limits(), 2)]


@pytest.mark.parametrize("problem, n", FAR, ids=["one bag", "three bags", "tied", "two limits"])
def test_to_a_million(problem, n):
    path = Run.of(Flow(problem, 1e6), np.zeros(problem.keys.dim), 10_000, range(10_000))
    target = max_margin(problem.keys, np.zeros(n, int))
    assert path.status is Status.FAR_ENOUGH
    assert path.end.norm == pytest.approx(1e6)
    assert path.distance(target)[-1] < 1e-9
    assert (np.diff(path["log_excess"][path["norm"] > 30]) < 0).all()
    assert path["min_attention"][-1] == 1
    # log(L - L_inf) = -|p|/|p_mm| to leading order
    assert -path["log_excess"][-1] * np.linalg.norm(target) / 1e6 == pytest.approx(1, rel=1e-4)
    # 1 - cos = O(1/|p|^2)
    late = path["norm"] > 1e4
    assert_allclose(np.polyfit(np.log(path["norm"][late]), np.log(path.distance(target)[late]), 1)[0], -2, atol=0.02)


def test_small_gradient_steps_stay_on_the_path():
    problem, start = three_bags(), np.array([-1.0, 0.0])
    state = run(Descent(problem, Plain(0.05), norm=3.0), start, 100_000).state
    assert_allclose(flow(problem, start, state.norm).state.p, state.p, atol=0.02)


def test_a_matrix_follows_its_vector():
    """The flow of W stays p u'/|u|^2 of the flow of p."""
    keys, u = three_bags().keys, np.array([1.0, -2.0, 0.5])
    scores = three_bags().scores
    W = flow(Problem.cross(keys, u, scores), np.zeros((2, 3)), 50.0).state.p
    p = flow(Problem.of(keys, scores), np.zeros(2), 50.0 * np.linalg.norm(u)).state.p
    assert_allclose(W, np.outer(p, u) / (u @ u), atol=1e-4)


def test_head_and_attention_together():
    state = flow(joint((0.5, 1.0)), (np.array([-1.0, 0.0]), np.array([0.0, -1.0])), 30.0).state
    v, p = state.blocks
    assert misalignment(v, np.array([0.0, 1.0])) < 1e-2
    assert state.reading.attention[state.reading.selected].min() > 0.9
    assert np.hypot(np.linalg.norm(v), np.linalg.norm(p)) == pytest.approx(30)


def test_a_vocabulary_in_its_row_space():
    """More dimensions than tokens: only the row space of E moves, and the limit is the max-margin direction."""
    rng = np.random.default_rng(2)
    documents = np.zeros((12, 20))
    for row in documents:
        row[rng.choice(20, 4, replace=False)] = rng.integers(1, 3, 4)
    E, v = rng.normal(size=(20, 300)) / np.sqrt(300), rng.normal(size=300)
    labels = np.where(rng.random(12) < 0.5, -1, 1)
    problem, start = Problem.vocabulary(E, sparse.csr_matrix(documents), labels, v), rng.normal(size=300) / 20
    outcome = flow(problem, start, 1e5)
    bags = Bags.of([E[row > 0] for row in documents])
    target = max_margin(bags, outcome.state.reading.selection)
    assert misalignment(outcome.state.p, target) < 1e-6
    moved = outcome.state.p - start
    assert_allclose(moved - problem.span.T @ (problem.span @ moved), 0, atol=1e-6)


def test_it_stops_at_a_finite_minimum():
    """Two inputs that want opposite keys: the loss has a minimum, and the path ends there."""
    problem = Problem.of(Bags.of([[[1.0], [0.0]], [[-1.0], [0.0]]]), np.array([1.0, 0.0, 2.0, 0.0]))
    outcome = flow(problem, np.array([0.5]), 1e3)
    assert outcome.status is Status.STATIONARY
    best = run(Descent(problem, Plain(1.0)), np.array([0.5]), 3000).state.p
    assert_allclose(outcome.state.p, best, atol=1e-6)


def test_a_flat_start_is_stationary():
    flat = Problem.of(Bags.of([[[1.0], [2.0]]]), np.ones(2))
    assert flow(flat, np.zeros(1), 10.0).status is Status.STATIONARY


@pytest.mark.parametrize(
    "seed, norm, exponents, most, status",
    [
        (1, 100, (6, 7, 8, 9), 5000, Status.FAR_ENOUGH),
        (8, 100, (6, 7, 8, 9), 5000, Status.FAR_ENOUGH),
        (8, 300, (6, 9), 5000, Status.FAR_ENOUGH),  # the second try takes up to 28,000 evaluations of a piece
        (27, 100, (6, 9), 300, Status.LOST),
    ],
)
def test_the_status_does_not_depend_on_the_tolerance(seed, norm, exponents, most, status):
    """Of seed 8 p rests in a valley across which the loss bends like |v|^2; of seed 27 it is thinner than any float."""
    rng = np.random.default_rng(500 + seed)
    n, T, d = (int(rng.integers(low, high)) for low, high in ((1, 6), (2, 5), (1, 6)))
    rng.normal(size=(n, T, d)), rng.normal(size=(n, T))  # the instances come after these draws
    x, y = rng.normal(size=(n, T, d)), rng.choice([-1, 1], n)
    start = rng.normal(size=d), rng.normal(size=d)
    flows = [Flow(Problem.joint(y, x, x), norm, tolerance=10.0**-k, most_evaluations=most) for k in exponents]
    ends = [run(one, start, 100) for one in flows]
    assert {end.status for end in ends} == {status}


def test_a_minimum_is_one_at_every_tolerance():
    """Newton's step is short at a minimum, and long in a valley along which the loss falls for ever."""
    problem = Problem.of(Bags.of([[[1.0, 0.5], [0.0, 0.0]], [[-1.0, 0.0], [0.0, 0.0]]]), np.array([1.0, 0.0, 2.0, 0.0]))
    ends = [run(Flow(problem, 1e3, tolerance=10.0**-k), np.array([0.5, 0.0]), 100) for k in (6, 7, 8, 9)]
    assert len({end.status for end in ends}) == 1
    one = Problem.of(Bags.of([[[1.0], [0.0]], [[-1.0], [0.0]]]), np.array([1.0, 0.0, 2.0, 0.0]))
    ends = [run(Flow(one, 1e3, tolerance=10.0**-k), np.array([0.5]), 100) for k in (6, 7, 8, 9)]
    assert [end.status for end in ends] == [Status.STATIONARY] * 4


def test_a_path_that_cannot_be_followed_says_so():
    outcome = run(Flow(three_bags(), 1e6, most_evaluations=20), np.zeros(2), 10)
    assert outcome.status is Status.LOST
    assert outcome.status.value == "stopped: the path cannot be followed any further in this arithmetic"


@pytest.mark.parametrize("name", ["norm", "growth", "tolerance"])
def test_refusals(name):
    with pytest.raises(InputError, match=f"Flow: `{name}` must be a finite number above 0"):
        Flow(one_bag(0.9), **{"norm": 1.0, name: 0.0})
