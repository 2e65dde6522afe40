"""The shared cases, `cases.json`: small questions with the truth by enumeration, for Python and for the page.

`python -m tests.proof.cases` writes the file anew. A case has for each token the weight of a unit of it, its amount,
and its score for each class; on a text also the known n-grams: first word, words, token.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from .reference import (
    Document,
    Text,
    document,
    labels_of_amounts,
    occurrences_suffice,
    random_document,
    random_text,
    weight_of,
)

FILE = Path(__file__).with_name("cases.json")
DELETIONS = (1, 2, 3)
Case = dict[str, Any]


def document_of(case: Case) -> Document:
    """The tokens of a case with their weights."""
    weights = [
        Fraction(u) * weight_of(c, case["weighting"]) for u, c in zip(case["unit"], case["amounts"], strict=True)
    ]
    values = tuple(tuple(map(Fraction, row)) for row in case["values"])
    return Document(tuple(weights), values, Fraction(case["sink"]), tuple(map(Fraction, case["intercepts"])))


def text_of(case: Case) -> Text:
    unit = replace(document_of(case), weights=tuple(map(Fraction, case["unit"])))
    return Text(case["length"], tuple(map(tuple, case["ngrams"])), unit, case["weighting"])


def _truth(case: Case) -> Case:
    doc = document_of(case)
    whole = (1 << doc.tokens) - 1
    truth: Case = {"label": doc.label}
    if doc.tokens:
        truth |= {"sufficient": doc.fewest_sufficient(), "flip": doc.fewest_flip()}
        truth["deleting"] = [
            [[float(pick(column)) for pick in (min, max)] for column in zip(*margins, strict=True)]
            for m in DELETIONS
            for margins in [[doc.margins(s) for s in range(whole + 1) if bin(whole - s).count("1") <= m]]
            for margins in [[some for some in margins if some is not None]]
        ]
    if "ngrams" in case and doc.tokens:
        text, total = text_of(case), sum(case["amounts"])
        labels = labels_of_amounts(text.unit, case["amounts"], case["weighting"])
        changed = [total - sum(left) for left, label in labels.items() if label not in (truth["label"], None)]
        truth["occurrences"] = {
            "sufficient": min(
                sum(held) for held in labels if occurrences_suffice(held, labels, doc.label, bool(doc.sink))
            ),
            "flip": min(changed, default=None),
        }
        truth["words"] = {"sufficient": text.fewest_sufficient(), "flip": text.fewest_flip()}
    return truth


def _case(name: str, weighting: str, doc: Document, amounts: Sequence[float], **more: Any) -> Case:
    case: Case = {
        "name": name,
        "weighting": weighting,
        "unit": [int(w) for w in doc.weights],
        "amounts": list(amounts),
        "values": [[float(x) for x in row] for row in doc.values],
        "intercepts": [float(c) for c in doc.intercepts],
        "sink": int(doc.sink),
        **more,
    }
    return {**case, "truth": _truth(case)}


def _bags(rng: np.random.Generator) -> Iterator[Case]:
    for classes in (2, 2, 2, 3, 3, 4, 5, 8, 13, 20):
        for weighting in ("raw", "log", "binary"):
            doc = random_document(rng, classes, most=5 if classes < 8 else 4)
            fractions = rng.choice([0.25, 0.5, 1.0, 1.5, 2.0, 3.25], doc.tokens).tolist()
            whole = rng.integers(1, 4, doc.tokens).tolist()
            yield _case(f"{classes} classes, whole amounts, {weighting}", weighting, doc, whole)
            yield _case(f"{classes} classes, fractional amounts, {weighting}", weighting, doc, fractions)


def _texts(rng: np.random.Generator) -> Iterator[Case]:
    for classes in (2, 2, 2, 2, 3, 4, 20):
        for weighting in ("raw", "log", "binary"):
            for n in (1, 2, 3):
                text = random_text(rng, n, weighting, classes, most=5)
                amounts = np.bincount([t for _, _, t in text.ngrams], minlength=text.unit.tokens).tolist()
                places = {"length": text.length, "ngrams": [list(one) for one in text.ngrams]}
                yield _case(f"{classes} classes, up to {n} words, {weighting}", weighting, text.unit, amounts, **places)


def _special() -> Iterator[Case]:
    nothing = {"length": 2, "ngrams": []}
    for classes in (2, 3):
        intercepts = [Fraction(k == 1) for k in range(classes)]
        yield _case(f"no token, {classes} classes", "raw", document([], [], intercepts, 1), [], **nothing)
    for label, sink in product((0, 1), (0, 1)):
        sign = 2 * label - 1
        zero, one = [Fraction(0)] * 2, {"length": 1, "ngrams": [[0, 1, 0]]}
        alone = document([1], [[0, sign]], zero, sink)
        yield _case(f"one word, label {label}, sink {sink}", "raw", alone, [1], **one)
        two = {"length": 2, "ngrams": [[0, 1, 0], [0, 2, 1], [1, 1, 2]]}
        tied = document([1, 1, 1], [[0, sign], [0, -2 * sign], [0, sign]], zero, sink)
        yield _case(f"a tie, side {label}, sink {sink}", "raw", tied, [1, 1, 1], **two)
        neutral = document([1, 1, 1], [[0, sign], [0, 0], [0, sign]], zero, sink)
        yield _case(f"nobody opposes, label {label}, sink {sink}", "raw", neutral, [1, 1, 1], **two)
    far = document([10**12, 1, 1], [[0, 1], [0, -3], [0, 2]], [Fraction(0)] * 2, 0)
    yield _case("weights far apart", "raw", far, [1, 1, 1])
    ties = document([1] * 4, [[2, 2, 1]] * 2 + [[2, 1, 2]] * 2, [Fraction(0)] * 3, 0)
    yield _case("three classes, all tied", "binary", ties, [1, 2, 1, 2])


def made() -> list[Case]:
    """All cases, the same whenever they are made."""
    rng = np.random.default_rng(11)
    return [*_special(), *_bags(rng), *_texts(rng)]


def written(cases: Sequence[Case]) -> str:
    """One case a line."""
    return "[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n"


if __name__ == "__main__":
    FILE.write_text(written(made()), "ascii")
