"""Which texts go into the page, and their container."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .overview import Judged
from .pack import pack

AVERAGE = 1_500  # characters a text may have on average before fewer texts are taken


@dataclass(frozen=True)
class Chosen:
    """Rows of the given data that go into the page, in their order, and how they were chosen, in a sentence."""

    rows: NDArray[np.intp]
    why: str


def choose(texts: Sequence[str], judged: Judged, most: int) -> Chosen:
    """All texts if they fit; else wrong ones (the surest first), unsure ones, and others drawn by lot."""
    n, room = len(texts), AVERAGE * most
    if n <= most and sum(map(len, texts)) <= room:
        return Chosen(np.arange(n), "All the given texts are in this page.")
    p = judged.probability
    wrong = np.flatnonzero(~judged.right)
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


def packed_documents(texts: Sequence[str], judged: Judged, chosen: Chosen) -> bytes:
    """The container `documents` of the page; what the model says of each text in full the page computes itself."""
    rows = chosen.rows
    facts = {"texts": [texts[row] for row in rows.tolist()], "names": judged.names, "why": chosen.why}
    arrays = {
        "row": rows.astype(np.uint32),
        "truth": judged.truth[rows],
        "label": judged.label[rows],
        "probability": np.asarray(judged.probability[rows], np.float64),
    }
    return pack(facts, arrays)
