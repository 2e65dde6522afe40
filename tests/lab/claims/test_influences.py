"""What loss, start and steps decide, by other roads; a wrong pace is noticed."""

from dataclasses import replace

import numpy as np
import pytest

from keytokens.lab.claims.claim import claims
from keytokens.lab.claims.instances import one_bag
from keytokens.lab.claims.max_margin import cones as influences
from keytokens.lab.claims.max_margin.assumptions import best_solution
from keytokens.lab.descent import Descent, Normalised, Plain, run

(RATES,) = claims(["mm.rates"])


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
