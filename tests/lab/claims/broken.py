"""Whether a claim notices a formula that a test has broken."""

from dataclasses import replace
from typing import Any

from keytokens.lab.claims.claim import Claim, claims, judge


def fails(claim: str | Claim[Any], seeds: int = 20) -> bool:
    """Whether the conclusion is wrong on an instance that meets the hypotheses; the claim, or its id."""
    known = claims([claim])[0] if isinstance(claim, str) else claim
    verdict = judge(replace(known, counters=()), seeds)
    return verdict.worst_excess > verdict.tolerance
