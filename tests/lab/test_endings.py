"""What became of many runs: each as by itself, and the verdicts are what independent solvers say."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import linprog

from keytokens import lab
from keytokens.base.errors import InputError
from keytokens.lab.claims.instances import spheres
from keytokens.lab.descent.stack import Stack, on_span
from keytokens.lab.endings import Endings
from keytokens.lab.problems.geometry import misalignment
from keytokens.lab.selection import SATURATED

from .descent.least_distance import max_margin
from .test_front import APART, ONE, drawn


def feasible(problem, selection) -> bool:
    chosen = problem.keys.chosen(selection)
    others = np.setdiff1d(np.arange(len(problem.keys.rows)), chosen)
    A = problem.keys.rows[chosen[problem.keys.bag[others]]] - problem.keys.rows[others]
    return linprog(np.zeros(problem.keys.dim), A_ub=-A, b_ub=-np.ones(len(A)), bounds=(None, None)).success


@pytest.mark.parametrize("d", [2, 5, 10])
def test_verdicts_by_another_road(d):
    trials = Stack.of(on_span(spheres(seed, d)) for seed in range(25))
    p = trials.descend(1000)
    ends = Endings.of(trials, p)
    kinds = set()
    for k in range(len(trials)):
        problem = trials[k]
        reading = problem.read((p[k],))
        attention = reading.attention[reading.selected].mean()
        best = problem.keys.argmax(problem.scores)
        assert ends.attention[k] == pytest.approx(attention, abs=1e-12)
        assert ends.saturated[k] == (attention >= SATURATED)
        assert ends.is_best[k] == (reading.selection == best).all()
        assert ends.separable[k] == feasible(problem, best)
        if not ends.saturated[k]:
            assert np.isnan(ends.gap[k])
            assert not ends.is_local[k]
            kinds.add("not saturated")
            continue
        target = max_margin(problem.keys, reading.selection)
        away = problem.keys.spread(problem.keys.rows[reading.selected] @ target) - problem.keys.rows @ target
        away[reading.selected] = np.inf
        gaps = (problem.keys.spread(problem.scores[reading.selected]) - problem.scores)[away < 1 + 1e-6]
        assert ends.gap[k] == pytest.approx(gaps.min(), abs=1e-12)
        assert ends.is_local[k] == (gaps.min() > 0)
        assert ends.is_global[k] == (ends.is_local[k] and ends.is_best[k])
        assert ends.distance[k] == pytest.approx(misalignment(p[k], target), abs=1e-9)
        kinds.add("global" if ends.is_global[k] else "local" if ends.is_local[k] else "neither")
    assert {"global", "local"} <= kinds
    assert d > 2 or "not saturated" in kinds


def test_many_problems_at_once_are_each_by_itself():
    make = lambda seed: lab.Problem(drawn(seed)[0], scores=np.random.default_rng(seed).normal(size=(3, 4)))  # noqa: E731
    many = lab.run_many(make, range(8), steps=300, eta=0.5)
    for seed in range(8):
        alone = make(seed).descend(steps=300, eta=0.5)
        assert_allclose(many.ends[seed], alone.p, atol=1e-9)
        assert many.columns["selection"][seed] == tuple(alone.selection)
        assert many.columns["norm"][seed] == pytest.approx(alone["norm"][-1])
        if many.saturated[seed]:
            target = make(seed).svm(alone.selection).p
            assert many.columns["correlation"][seed] == pytest.approx(alone.correlation(target)[-1], abs=1e-9)
            best = make(seed).optimal().best
            assert many.is_global[seed] == (
                best is not None and best.holds and tuple(best.selection) == tuple(alone.selection)
            )
    assert many.is_local.any()
    assert many.to_frame().seed.tolist() == list(range(8))
    flows = lab.run_many([make(0), make(1)], method="flow", norm=100.0)
    assert_allclose(flows.columns["norm"], 100.0)
    ragged = lab.Problem([[[1.0], [0.0]], [[1.0], [0.0], [-1.0]]], scores=[[1.0, 0.0], [1.0, 0.0, 0.5]])
    matrix = lab.Problem(*drawn(0)[:2], v=drawn(0)[2], trains="W")
    assert lab.run_many([ragged, ragged], steps=300, method="plain").columns["selection"] == [(0, 0)] * 2
    assert lab.run_many([matrix], steps=10).ends[0].shape == (25,)


P, X3, Y3, V3 = lab.Problem(ONE, scores=APART), *drawn(0)
REFUSED = [
    (
        lambda: lab.run_many([lab.Problem(X3, Y3, trains="vp")]),
        "run_many: `problems` must be problems with given scores",
    ),
    (lambda: lab.run_many([lab.Problem(X3, Y3, v=V3, trains="KQ")]), "run_many: `problems` must be problems"),
    (lambda: lab.run_many([P], starts=[[1.0]]), "run_many: `starts` must be one start for each of the 1 problems"),
    (lambda: lab.run_many([P], method="adam"), "run_many: `method` must be one of"),
]


@pytest.mark.parametrize("call, message", REFUSED)
def test_refusals(call, message):
    with pytest.raises(InputError, match=message):
        call()
