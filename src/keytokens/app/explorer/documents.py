"""Which texts go into the page, and their container."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...estimators.evaluation import KINDS, Evaluation
from ...explain.format import label_name
from .pack import pack

AVERAGE = 1_500  # characters a text may have on average before fewer texts are taken


@dataclass(frozen=True)
class Chosen:
    """Rows of the given data that go into the page, in their order, and how they were chosen, in a sentence."""

    rows: NDArray[np.intp]
    why: str


def choose(texts: Sequence[str], found: Evaluation, most: int) -> Chosen:
    """All texts if they fit; else wrong ones (the surest first), unsure ones, and others drawn by lot."""
    n, room = len(texts), AVERAGE * most
    if n <= most and sum(map(len, texts)) <= room:
        return Chosen(np.arange(n), "All the given texts are in this page.")
    p = found.given.p
    wrong = np.flatnonzero(found.given.said != found.given.truth)
    groups = {
        "wrong": wrong[np.argsort(-p[wrong], kind="stable")][: most // 2],
        "unsure": np.argsort(p, kind="stable")[: most // 4],
        "drawn by lot": np.random.RandomState(0).permutation(n),
    }
    taken: dict[int, str] = {}
    for name, rows in groups.items():
        for row in rows.tolist():
            if row not in taken and len(taken) < most and len(texts[row]) <= room:
                taken[row] = name
                room -= len(texts[row])
    numbers = ", ".join(f"{list(taken.values()).count(name):,} {name}" for name in groups)
    why = f"{len(taken):,} of the {n:,} given texts are in this page: {numbers}."
    return Chosen(np.array(sorted(taken), np.intp), why)


def packed_documents(texts: Sequence[str], found: Evaluation, chosen: Chosen) -> bytes:
    """The container `documents` of the page; what the model says of each text in full the page computes itself."""
    rows, names = chosen.rows, [label_name(label) for label in found.names]
    facts = {"texts": [texts[row] for row in rows.tolist()], "names": names, "why": chosen.why, "kinds": list(KINDS)}
    answers = found.given.only(rows)
    arrays: dict[str, NDArray[Any]] = {
        "row": rows.astype(np.uint32),
        "truth": answers.truth.astype(np.int32),
        "label": answers.said.astype(np.int32),
        "probability": answers.p.astype(np.float64),
        "kind": found.kind_of[rows].astype(np.uint8),
    }
    return pack(facts, arrays)
