"""What loss, start and steps decide, by other roads; a wrong pace is noticed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from keytokens.lab.claims.claim import claims
from keytokens.lab.claims.instances import flow_path, one_bag
from keytokens.lab.claims.max_margin import cones as influences
from keytokens.lab.claims.max_margin.assumptions import best_solution
from keytokens.lab.descent import Descent, Normalised, Plain, run
from keytokens.lab.problems.losses import Correlation, Exponential, Logistic

(RATES,) = claims(["mm.rates"])


# Fig 5


@pytest.mark.parametrize(
    "loss, C, offset",
    [
        *((Correlation(), C, offset) for C, offset in ((1, 0), (2, 0.3465), (5, 0.805), (10, 1.151), (100, 2.303))),
        *((Logistic(), C, offset) for C, offset in ((2, -0.060), (5, -1.042), (10, -3.192), (100, -47.0408))),
        *((Exponential(), C, offset) for C, offset in ((2, -0.153), (5, -1.195), (10, -3.349))),
    ],
)
def test_the_offsets_in_numbers(loss, C, offset):
    p = flow_path(influences.Drift(C, loss, np.zeros(2)).problem, np.zeros(2), 1e3)[-1].p
    assert p[1] == pytest.approx(offset, abs=6e-4)
    assert influences._offset(influences.Drift(C, loss, np.zeros(2))) < 1e-4


# Rates


def test_the_law_of_plain_descent():
    """eta t (L - L*) / |p_mm|^2 tends to 1."""
    problem = one_bag(0.9)
    solution, eta = best_solution(problem), 5.0
    state = run(Descent(problem, Plain(eta)), np.zeros(2), 3000).state
    gap = np.exp(problem.gap(state.reading).log)
    assert eta * 3000 * gap / solution.norm**2 == pytest.approx(1, abs=0.05)


def test_steps_that_are_too_long_zigzag():
    x = next(x for x in RATES.instances() if isinstance(x.rule, Normalised) and x.clock(2.0) == 2.0)
    assert influences.off_the_law(x) < 0.01
    long = replace(x, rule=Normalised(30 * x.pace), pace=30 * x.pace)
    assert influences.off_the_law(long) > 0.05


def test_spoilt_pace():
    wrong = [replace(x, pace=1.1 * x.pace) for x in RATES.instances(8)]
    assert min(influences.off_the_law(x) for x in wrong) > RATES.tolerance


def test_all_four_rules_are_drawn():
    drawn = list(RATES.instances())
    assert (
        len({(type(x.rule).__name__, float(x.clock(np.array(16.0)))) for x in drawn if x.clock(16.0) in (8, 16)}) == 3
    )
    assert any(isinstance(x.rule, Plain) for x in drawn)
