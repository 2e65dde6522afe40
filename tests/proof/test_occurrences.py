"""Occurrences instead of tokens, additions instead of deletions, against enumeration."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from keytokens.model.weighting import weighting
from keytokens.proof import Votes, flip, flip_occurrences, sufficient, sufficient_occurrences

from .reference import Document, argmax, random_document, weight_of


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
        kept = sufficient_occurrences(doc.votes, c, counts)  # type: ignore[arg-type]
        gone = flip_occurrences(doc.votes, c, counts)  # type: ignore[arg-type]
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
        kept, gone = sufficient(doc.votes), flip(doc.votes)
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
    votes = Votes.of(np.log([1.0, 2.0, 1.0]), [[0, 3.0], [0, 2.0], [0, -3.5]], label=1)
    assert sufficient(votes).size == 1
    assert sufficient_occurrences(votes, [1, 2, 1]).size == 2


def test_greedy_is_wrong_for_sublinear_counts() -> None:
    """Each further deletion of a token removes more than the last: one by one, the single token looks better."""
    c = [2, 1, 1]
    values = [[0, 1.0], [0, 0.8], [0, -0.85]]
    votes = Votes.of(np.log(weighting("log")(c)), values, label=1)
    found = flip_occurrences(votes, c, "log")
    assert found.indices == (0, 0)
    assert found.size == 2


def test_refusals() -> None:
    votes = Votes.of([0.0], [[0, 1]], label=1)
    with pytest.raises(ValueError, match="positive integer per token"):
        sufficient_occurrences(votes, [0])
