"""Predictions, proofs and fits are those of the golden files."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np
import pytest

from ..conftest import skip_or_fail
from .golden import BAG_MODELS, N_ASKED, SETS, TEXT_MODELS, explained, fit_of, stored, stored_models, without_sentences

TOLERANCE = 1e-9
CLEAR = 0.02  # of a probability to that of the second class, beyond which the label must stay


def differences(ours: Any, theirs: Any, where: str) -> list[str]:
    """Where two records differ: sets, sizes and statuses at all, numbers by more than the tolerance."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        keys = [f"{where}.{key}" for key in set(ours) ^ set(theirs)]
        return [
            *keys,
            *(d for key in set(ours) & set(theirs) for d in differences(ours[key], theirs[key], f"{where}.{key}")),
        ]
    if isinstance(theirs, list) and isinstance(ours, list) and len(ours) == len(theirs):
        pairs = enumerate(zip(ours, theirs, strict=True))
        return [d for i, (one, other) in pairs for d in differences(one, other, f"{where}[{i}]")]
    if isinstance(theirs, float) and isinstance(ours, (int, float)):
        same = math.isclose(ours, theirs, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    else:
        same = ours == theirs
    return [] if same else [f"{where}: {ours!r} was {theirs!r}"]


def test_explanations():
    found = [list(pair) for pair in explained(stored_models())]
    wanted = without_sentences(stored("explanations.json.gz"))
    assert len(wanted) == 200
    assert {name for name, _ in wanted} == {*TEXT_MODELS, *BAG_MODELS}
    assert not differences(found, wanted, "records")[:10]


@pytest.mark.parametrize("name", SETS)
def test_fits(name):
    if "KEYTOKENS_DATA" not in os.environ:
        skip_or_fail("KEYTOKENS_DATA is not set: real data sets are not at hand")
    found, wanted = fit_of(name), stored("fits.json.gz")[name]
    for exact in ("tokens", "vocabulary", "entries", "counts"):
        assert found[exact] == wanted[exact], exact
    assert abs(found["accuracy"] - wanted["accuracy"]) <= 0.001
    ours, theirs = np.array(found["probabilities"]), np.array(wanted["probabilities"])
    assert len(theirs) == N_ASKED
    first, second = np.sort(theirs, axis=1)[:, :-3:-1].T
    clear = first - second >= CLEAR
    assert (ours.argmax(axis=1) == theirs.argmax(axis=1))[clear].all()
