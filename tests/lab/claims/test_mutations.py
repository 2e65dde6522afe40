"""A sign, a factor 2, a swapped operation in a formula: some claim must notice. `make mutants` breaks every one."""

import sys

import numpy as np
import pytest

from keytokens.lab.claims.claim import claims

from .mutants import Rests, imported, lines_run, noticed, noticed_by, sample

SAMPLE = 2  # of each module
QUICK = ("te.gradient", "te.one-step", "te.closed-form", "te.p-gradient")
TRIED = (*(claim.id for claim in claims(["kt."])), *QUICK)
RESTS = Rests.of(TRIED)


@pytest.mark.filterwarnings("ignore")
def test_most_broken_formulas_are_noticed():
    """By the quick claims alone; what they miss is the way to a solution, not the solution: tolerances, orders, caches.

    `make mutants` tries all claims, and names what none of them notices.
    """
    tried = [pair for module in RESTS.modules for pair in sample(RESTS, module, SAMPLE)]
    missed = [f"{one.module}.{one.function} {one.what}" for one, ids in tried if not noticed(one, ids, None, 3.0)]
    assert len(tried) > 40
    assert len(missed) < len(tried) / 3, "\n".join(missed)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "module, function",
    [
        ("keytokens.model.attention", "scores"),
        ("keytokens.lab.problems.embeddings", "pull_back"),
        ("keytokens.proof.ranges", "drop"),
        ("keytokens.lab.claims.embeddings.stages", "embedding_gradient"),
        ("keytokens.lab.claims.embeddings.stages", "token_pulls"),
        ("keytokens.lab.claims.embeddings.data", "closed_form"),
    ],
)
def test_a_broken_formula_is_noticed(module, function):
    pairs = [(one, ids) for one, ids in RESTS.mutants(module) if one.function == function and not one.is_equivalent]
    assert pairs
    assert [one.what for one, ids in pairs if not noticed(one, ids, None)] == []


def test_whole_formulas_pass():
    """What is noticed is the broken formula: with nothing broken all these claims hold."""
    assert [claim.id for claim in claims(TRIED) if noticed_by(claim, None)] == []


def test_a_claim_rests_on_the_lines_that_it_runs():
    (one,) = claims(["te.one-step"])
    files = {file.rsplit("/", 1)[-1] for file in lines_run(one)}
    assert {"data.py", "one_step.py"} <= files
    assert "svm" not in " ".join(lines_run(one))
    assert sys.gettrace() is None or "coverage" in sys.modules


def test_modules_are_found_by_import():
    """What claims run is among what they import."""
    known = set().union(*(imported(claim.excess.__module__) for claim in claims(TRIED)))
    assert set(RESTS.modules) <= known | {"keytokens.lab.claims.claim"}
    assert {"keytokens.model.attention", "keytokens.proof.votes", "keytokens.lab.svm.active"} <= set(RESTS.modules)


def test_mutants_change_one_expression():
    found = [pair[0] for pair in RESTS.mutants("keytokens.model.attention")]
    assert len({mutant.what for mutant in found}) > 10
    assert np.all([mutant.code.co_name == mutant.function.split(".")[-1] for mutant in found])
