"""A sign, a factor 2, a swapped operation in a formula: some claim must notice. `make mutants` breaks every one."""

import numpy as np
import pytest

from .mutants import FORMULAS, Mutant, is_harmless, mutants, noticed

SAMPLE = 3  # of each module


def _sample() -> list[tuple[Mutant, tuple[str, ...]]]:
    chosen = []
    for module, (functions, ids) in FORMULAS.items():
        every = [mutant for mutant in mutants(module, functions) if not is_harmless(mutant)]
        for k in np.random.default_rng(0).permutation(len(every))[:SAMPLE]:
            chosen.append((every[k], ids))
    return chosen


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mutant, ids", _sample(), ids=lambda one: one.function if isinstance(one, Mutant) else "")
def test_a_broken_formula_is_noticed(mutant, ids):
    assert noticed(mutant, ids, seeds=8), f"{mutant.module}.{mutant.function} {mutant.what}"


def test_whole_formulas_pass():
    """What is noticed is the broken formula: with nothing broken all these claims hold."""
    from keytokens.lab.claims import claims
    from keytokens.lab.claims.claim import judge

    for claim in claims([id for _, ids in FORMULAS.values() for id in ids]):
        assert judge(claim, 8).holds, claim.id
