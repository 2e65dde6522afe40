"""Every claim is a test; and a claim is able to fail."""

import json
from dataclasses import replace

import numpy as np
import pytest

from keytokens.base.errors import InputError
from keytokens.lab.claims import Claim, Counter, Hypothesis, claims, verify
from keytokens.lab.claims import claim as register
from keytokens.lab.claims.claim import ENOUGH, judge

REQUIRED = (
    *(f"mm.lemma{k}" for k in (*range(1, 11), 14)),
    *(f"mm.thm{k}" for k in (1, 2, 3, 4, 5, 6, 8)),
    *(f"mm.{name}" for name in ("loss-drift", "rates")),
    *("te.gradient", "te.one-step", "te.one-step-bound", "te.rank-two"),
    *("te.p-gradient", "te.divergence", "te.max-margin", "te.rates", "te.barrier", "te.closed-form"),
    "te.alternative-optimum",
    *(f"fu.{name}" for name in ("lq-svm", "mirror-direction", "mirror-joint")),
    *(f"fu.{name}" for name in ("feasible", "frobenius-rank", "nuclear", "norms", "finite-part")),
    *(f"kt.{name}" for name in ("two-scalars", "sufficient", "flip", "flip-words", "drop-bound")),
)
SHORT = ENOUGH + 5  # random instances of each claim here; `keytokens verify` runs more
SLOW = {"te.ties": 6, "te.barrier": 8, "te.rates": 8, "te.alternative-optimum": 8}  # fewer of these
RARE = {"te.divergence": 32, "te.max-margin": 36}  # more of these: some do not meet the hypotheses


@pytest.mark.parametrize("claim", claims(), ids=lambda claim: claim.id)
def test_claim(claim):
    verdict = judge(claim, None if claim.draw is None else min(claim.seeds, {**SLOW, **RARE}.get(claim.id, SHORT)))
    assert verdict.holds, verdict.sentence
    assert verdict.hypotheses_met, "nothing was decided"


def test_all_required_claims_are_there():
    ids = [claim.id for claim in claims()]
    assert len(ids) == len(set(ids))
    assert set(REQUIRED) <= set(ids)


def test_a_thousand_instances():
    assert sum(claim.size() for claim in claims()) >= 1000


def test_claims_speak_in_sentences():
    for claim in claims():
        assert claim.says.endswith("."), claim.id
        assert claim.source, claim.id


EVEN = Hypothesis("the number is even", lambda number: number % 2 == 0)
HALVES = Claim(
    id="halves",
    says="Half of it is whole.",
    source="here",
    hypotheses=(EVEN,),
    excess=lambda number, by=1.0: abs(by * number / 2 - round(number / 2)),
    tolerance=0.0,
    draw=lambda rng: int(rng.integers(0, 100)) * 2,
    constant="one half",
    counters=(Counter("three", EVEN.says, lambda: 3),),
)


def test_a_claim_that_holds():
    verdict = judge(HALVES)
    assert verdict.holds
    assert verdict.instances == verdict.hypotheses_met == 25
    assert verdict.worst_excess == 0


@pytest.mark.parametrize(
    "change, why",
    [
        ({"excess": lambda number, by=1.0: 1.0}, "the excess 1 is above 0"),
        ({"excess": lambda number, by=1.0: float("nan")}, "the excess inf is above 0"),
        ({"draw": lambda rng: 1}, "fewer than 20"),
        ({"draw": None, "known": (lambda: 2, lambda: 3)}, "the hypotheses hold on 1 of 2 instances"),
        ({"draw": None, "known": (lambda: 2, lambda: 4)}, "it has fewer than 20 instances"),
        ({"counters": ()}, "no counter-instance shows that it can fail"),
        ({"constant": ""}, "no constant is named that could be stronger"),
        ({"excess": lambda number, by=1.0: abs(number / 2 - round(number / 2))}, "nothing notices a constant 10 %"),
        ({"counters": (Counter("four", EVEN.says, lambda: 4),)}, "meets the hypothesis it should drop"),
        ({"counters": (Counter("three", "it is odd", lambda: 3),)}, "that there is not"),
        ({"excess": lambda number, by=1.0: 0.0}, "the conclusion still holds"),
        (
            {"hypotheses": (EVEN, Hypothesis("it is not 3", lambda number: number != 3))},
            "also breaks 'it is not 3'",
        ),
    ],
)
def test_a_claim_that_fails(change, why):
    assert why in judge(replace(HALVES, **change)).sentence


def test_what_is_not_decided_does_not_count():
    undecided = (Hypothesis("for all p", lambda number: None), EVEN)
    verdict = judge(replace(HALVES, hypotheses=undecided))
    assert verdict.holds
    assert verdict.hypotheses_met == 0
    assert verdict.undecided == 25
    assert verdict.sentence == "conclusion observed, hypothesis not decided"
    assert verdict.to_dict()["worst_excess"] is None


def test_a_claim_needs_a_counter_to_be_registered():
    with pytest.raises(InputError, match="claim: `counters` must hold an instance on which the conclusion fails"):
        register("kt.nothing", says="", source="", tolerance=0.0)


def test_every_claim_has_what_it_must_have():
    """A counter, a constant, at least 20 instances."""
    lacking = {claim.id: claim.lacks for claim in claims() if claim.lacks}
    assert not lacking


def test_processes_find_the_same():
    alone, shared = (verify(["kt.flip", "kt.drop-bound"], 20, jobs=jobs) for jobs in (1, 2))
    assert [replace(one, seconds=0.0) for one in alone] == [replace(one, seconds=0.0) for one in shared]


def test_instances_do_not_depend_on_each_other():
    few, more = list(HALVES.instances(2)), list(HALVES.instances(5))
    assert few == more[:2]


def test_another_seed_draws_other_instances():
    (flip,) = claims(["kt.flip"])
    plain, other = (next(flip.instances(1, base)) for base in (0, 1))
    assert not np.array_equal(plain.weights, other.weights) or not np.array_equal(plain.values, other.values)
    assert verify(["kt.flip"], seeds=20, seed=1).holds


def test_verify_a_family_and_its_record():
    found = verify("kt.", seeds=2)
    assert [verdict.id for verdict in found] == [id for id in REQUIRED if id.startswith("kt.")]
    record = json.loads(json.dumps(found.to_dict(), allow_nan=False))["claims"][0]
    assert {"id", "says", "source", "instances", "hypotheses_met", "worst_excess", "holds", "seconds"} <= set(record)
    assert "5 of 5 claims hold; 10 of 10 instances count" in str(found)
    assert found.holds
    assert len(found[:2]) == 2


def test_progress_is_told():
    ticks = []
    verify(["kt.flip"], seeds=3, tick=ticks.append)
    assert ticks[:3] == [None] * 3
    assert ticks[3].id == "kt.flip"


@pytest.mark.parametrize("ids, seeds, why", [(["nonsense"], None, "be the id of a claim"), ((), 0, "be at least 1")])
def test_bad_input(ids, seeds, why):
    with pytest.raises(InputError, match=why):
        verify(ids, seeds)


def test_random_instances_are_the_same_everywhere():
    first = next(claims(["kt.flip"])[0].instances(1))
    again = next(claims(["kt.flip"])[0].instances(1))
    assert np.array_equal(first.weights, again.weights)
