"""Executable theorems: claims with hypotheses that are tested and conclusions that can fail."""

from .claim import Claim, Counter, Hypothesis, Verdict, Verdicts, claim, claims, verify

__all__ = [
    "Claim",
    "Counter",
    "Hypothesis",
    "Verdict",
    "Verdicts",
    "claim",
    "claims",
    "verify",
]
