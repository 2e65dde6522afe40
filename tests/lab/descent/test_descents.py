"""Descents: records, ends and refusals, and steps that grow. The figures check the published experiments."""

import numpy as np
import pytest

from keytokens.base.errors import InputError
from keytokens.lab.claims.instances import GMM, one_bag, three_bags
from keytokens.lab.descent import Descent, Growing, Normalised, Plain, Polyak, Run, Status, log_spaced, run
from keytokens.lab.problems.geometry import misalignment
from keytokens.lab.problems.problem import Problem
from keytokens.model.ragged import Bags

from .least_distance import max_margin


@pytest.mark.parametrize("y", [1.0, -1.5])
def test_one_bag_every_start_goes_to_the_global_direction(y):
    path = Run.of(Descent(one_bag(0.9), Normalised(0.1)), np.array([0.0, y]), 1000)
    assert path.distance(GMM)[-1] < 3.1e-4
    assert path["selection"][-1].tolist() == [0]
    assert path["min_attention"][-1] == pytest.approx(1, abs=1e-12)
    assert path["soft_sparsity"][-1] == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("problem, n", [(one_bag(0.9), 1), (three_bags(), 3)], ids=["one bag", "three bags"])
def test_growing_steps_to_a_million(problem, n):
    growing = Normalised(lambda t: min(300.0, 0.1 * 1.02**t))
    outcome = run(Descent(problem, growing, norm=1e6), np.zeros(2), 10_000)
    assert outcome.status is Status.FAR_ENOUGH
    assert misalignment(outcome.state.p, max_margin(problem.keys, np.zeros(n, int))) < 1e-9
    reading = outcome.state.reading
    assert reading.excess(reading.selected).log < -1e6
    assert reading.attention[reading.selected].min() == 1


def test_growing_steps_grow_with_the_norm_only():
    """Geometric growth where p goes to infinity; around a finite minimum the steps stay short."""
    norms = []
    run(Descent(three_bags(), Growing(0.1)), np.zeros(2), 400, lambda state: norms.append(state.norm))
    assert norms[10] == pytest.approx(1, abs=0.1)
    growth = np.array(norms[301:]) / np.array(norms[300:-1])
    assert ((growth > 1.015) & (growth <= 1.02 + 1e-12)).all()
    opposite = Problem.of(Bags.of([[[1.0], [0.0]], [[-1.0], [0.0]]]), np.array([1.0, 0.0, 2.0, 0.0]))
    best = run(Descent(opposite, Plain(1.0)), np.array([0.5]), 3000).state.p
    near = run(Descent(opposite, Growing(0.1)), np.array([3.0]), 500).state.p
    assert abs(near - best).item() <= 0.1


# Ends, records, refusals


def test_ends_are_sentences():
    flat = Problem.of(Bags.of([[[1.0], [2.0]]]), np.ones(2))
    assert run(Descent(flat, Normalised(1.0)), np.zeros(1), 5).status is Status.STATIONARY
    assert run(Descent(one_bag(0.9), Plain(1.0)), np.array([0.0, 1e5]), 5).status is Status.STALLED
    assert run(Descent(one_bag(0.9), Normalised(lambda t: np.inf)), np.zeros(2), 5).status is Status.NOT_FINITE
    assert run(Descent(one_bag(0.9), Normalised(1.0)), np.zeros(2), 5).status is Status.OUT_OF_STEPS


def test_losses_fall_along_small_steps():
    path = Run.of(Descent(three_bags(), Plain(0.01)), np.zeros(2), 200, range(201))
    assert len(path) == 201
    assert (np.diff(path["loss"]) < 0).all()
    assert path["direction"][0].tolist() == [0, 0]
    assert set(path["excess_sign"]) <= {-1.0, 1.0}


def test_log_spaced_steps_by_default():
    found = Run.of(Descent(one_bag(0.9), Normalised(0.1)), np.zeros(2), 100)
    assert found["t"].tolist() == log_spaced(100).tolist()
    assert Run.of(Descent(one_bag(0.9), Normalised(0.1)), np.zeros(2), 5, [])["t"].tolist() == [5]
    assert log_spaced(0).tolist() == [0]


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: Plain(0.0), "Plain: `eta` must be a finite number above 0"),
        (lambda: Normalised(0.1, floor=-1.0), "`floor` must be a finite number of at least 0"),
        (lambda: Polyak(0.0), "`cap` must be a finite number above 0"),
        (lambda: Growing(0.0), "Growing: `eta` must be a finite number above 0"),
        (lambda: run(Descent(one_bag(0.9), Plain(1.0)), np.array([0.0, np.nan]), 1), "`start` must be finite"),
        (
            lambda: run(Descent(one_bag(0.9), Plain(1.0)), np.zeros(3), 1),
            r"the trained parameters, \(2,\); saw \(\(3,\),\)",
        ),
    ],
)
def test_refusals(make, message):
    with pytest.raises(InputError, match=message):
        make()
