"""Occurrences instead of tokens, additions instead of deletions, against enumeration."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from keytokens.certificate import (
    Ballot,
    fewest_additions,
    flip,
    flip_occurrences,
    phi,
    sufficient,
    sufficient_occurrences,
)

from .reference import Document, argmax, document, random_document, weight_of


def counted(rng: np.random.Generator, counts: str, classes: int = 2) -> tuple[Document, Document, list[int]]:
    """A document whose weights are those of one occurrence, the same with its counts in, and the counts."""
    unit = random_document(rng, classes, most=3)
    c = rng.integers(1, 4, unit.tokens).tolist()
    weights = tuple(w * weight_of(k, counts) for w, k in zip(unit.weights, c, strict=True))
    return unit, Document(weights, unit.values, unit.sink, unit.intercepts), c


def labels(unit: Document, c: list[int], counts: str) -> dict[tuple[int, ...], int | None]:
    out: dict[tuple[int, ...], int | None] = {}
    for left in product(*(range(k + 1) for k in c)):
        scores = unit.scores([w * weight_of(k, counts) for w, k in zip(unit.weights, left, strict=True)])
        out[left] = None if scores is None else argmax(scores)
    return out


def suffices(held: tuple[int, ...], table: dict[tuple[int, ...], int | None], label: int, sink: bool) -> bool:
    if not any(held) and not sink:
        return False
    return all(
        other in (label, None) for left, other in table.items() if all(k >= h for k, h in zip(left, held, strict=True))
    )


@pytest.mark.parametrize("counts", ["raw", "log", "binary"])
@pytest.mark.parametrize("classes", [2, 3])
def test_fewest_occurrences(counts: str, classes: int) -> None:
    rng = np.random.default_rng(50 + classes)
    for _ in range(80):
        unit, doc, c = counted(rng, counts, classes)
        table, y = labels(unit, c, counts), doc.label
        kept = sufficient_occurrences(doc.ballot, c, counts)  # type: ignore[arg-type]
        gone = flip_occurrences(doc.ballot, c, counts)  # type: ignore[arg-type]
        fewest = min(sum(held) for held in table if suffices(held, table, y, bool(doc.sink)))
        held = tuple(np.bincount(np.array(kept.indices, dtype=int), minlength=doc.tokens).tolist())
        assert suffices(held, table, y, bool(doc.sink))
        assert kept.lower <= fewest <= kept.size == sum(held)
        if classes == 2:
            assert kept.size == fewest
        flips = [sum(c) - sum(left) for left, label in table.items() if label not in (y, None) and sum(left) < sum(c)]
        assert (gone.size if gone.status != "none" else None) == (min(flips) if flips else None)
        if flips:
            left = np.array(c) - np.bincount(np.array(gone.indices, dtype=int), minlength=doc.tokens)
            assert table[tuple(left.tolist())] == gone.label_after != y


def test_a_token_set_holds_against_the_deletion_of_single_occurrences() -> None:
    rng = np.random.default_rng(53)
    for _ in range(120):
        unit, doc, c = counted(rng, "raw")
        table = labels(unit, c, "raw")
        kept, gone = sufficient(doc.ballot), flip(doc.ballot)
        held = tuple(c[s] if s in kept.indices else 0 for s in range(doc.tokens))
        assert suffices(held, table, doc.label, bool(doc.sink))
        # deleting only some occurrences of a token never saves a token
        touched = [
            sum(k < full for k, full in zip(left, c, strict=True))
            for left, label in table.items()
            if label not in (doc.label, None) and list(left) != c
        ]
        assert (gone.size if gone.status != "none" else None) == (min(touched) if touched else None)


def test_tokens_and_occurrences_are_different_questions() -> None:
    ballot = Ballot.of(np.log([1.0, 2.0, 1.0]), [[0, 3.0], [0, 2.0], [0, -3.5]], label=1)
    assert sufficient(ballot).size == 1
    assert sufficient_occurrences(ballot, [1, 2, 1]).size == 2


def test_greedy_is_wrong_for_sublinear_counts() -> None:
    """Each further deletion of a token removes more than the last: one by one, the single token looks better."""
    c = [2, 1, 1]
    values = [[0, 1.0], [0, 0.8], [0, -0.85]]
    ballot = Ballot.of(np.log(phi(c, "log")), values, label=1)
    found = flip_occurrences(ballot, c, "log")
    assert found.indices == (0, 0)
    assert found.size == 2


@pytest.mark.parametrize("counts", ["raw", "binary"])
def test_fewest_additions(counts: str) -> None:
    rng = np.random.default_rng(54)
    found_some = 0
    for _ in range(200):
        doc = random_document(rng, int(rng.integers(2, 4)), most=4)
        classes = len(doc.intercepts)
        number = int(rng.integers(1, 4))
        b = rng.integers(-3, 4, (number, classes))
        if classes == 2:
            b[:, 0] = 0
        extra = document(rng.integers(1, 3, number).tolist(), b.tolist(), doc.intercepts, 0)
        values = np.array([[float(x) for x in row] for row in extra.values])
        y, rivals = doc.label, doc.ballot.rivals
        margin = values[:, [y]] - values[:, rivals]
        log_weight = np.array([math.log(w) for w in extra.weights])
        found = fewest_additions(doc.ballot, log_weight, margin, counts)  # type: ignore[arg-type]
        most = 12 if counts == "raw" else number
        truth = _by_trial(doc, extra, most, counts)
        found_some += truth is not None
        if truth is not None:
            assert found.size == truth
        else:
            assert found.status == "none" or found.size > most
    assert found_some > 40


def _by_trial(doc: Document, extra: Document, most: int, counts: str) -> int | None:
    """Fewest added occurrences: for raw counts copies of one candidate are tried up to `most`, and mixtures up to 3."""
    copies = range(2) if counts == "binary" else range(4)
    mixed = set(product(copies, repeat=extra.tokens))
    if counts == "raw":
        mixed |= {
            tuple(k if s == t else 0 for s in range(extra.tokens)) for t in range(extra.tokens) for k in range(13)
        }
    joined = Document(doc.weights + extra.weights, doc.values + extra.values, doc.sink, doc.intercepts)
    for added in sorted(mixed, key=sum):
        weights = [*doc.weights, *(w * Fraction(k) for w, k in zip(extra.weights, added, strict=True))]
        scores = joined.scores(weights)
        if sum(added) <= most and scores is not None and sum(added) and argmax(scores) != doc.label:
            return sum(added)
    return None


def test_refusals() -> None:
    ballot = Ballot.of([0.0], [[0, 1]], label=1)
    with pytest.raises(ValueError, match="raw or binary"):
        fewest_additions(ballot, [0.0], [[-1.0]], "log")
    with pytest.raises(ValueError, match="positive integer per token"):
        sufficient_occurrences(ballot, [0])
