"""Occurrences instead of tokens, additions instead of deletions, against enumeration."""

import numpy as np
import pytest

from keytokens.model.weighting import weighting
from keytokens.proof import ProvedSet, Votes, flip_occurrences, sufficient_occurrences

from .reference import Document, labels_of_amounts, occurrences_suffice, random_document, weight_of


def counted(rng: np.random.Generator, counts: str, classes: int = 2) -> tuple[Document, Document, list[int]]:
    """A document whose weights are those of one occurrence, the same with its counts in, and the counts."""
    unit = random_document(rng, classes, most=3)
    c = rng.integers(1, 4, unit.tokens).tolist()
    weights = tuple(w * weight_of(k, counts) for w, k in zip(unit.weights, c, strict=True))
    return unit, Document(weights, unit.values, unit.sink, unit.intercepts), c


@pytest.mark.parametrize("counts", ["raw", "log", "binary"])
@pytest.mark.parametrize("classes", [2, 3])
def test_fewest_occurrences(counts: str, classes: int) -> None:
    rng = np.random.default_rng(50 + classes)
    for _ in range(80):
        unit, doc, c = counted(rng, counts, classes)
        table = labels_of_amounts(unit, c, counts)
        kept = sufficient_occurrences(doc.votes, c, counts)  # type: ignore[arg-type]
        gone = flip_occurrences(doc.votes, c, counts)  # type: ignore[arg-type]
        end = (table, doc.label, bool(doc.sink))
        fewest = min(sum(held) for held in table if occurrences_suffice(held, *end))
        assert occurrences_suffice(tally(kept, doc), *end)
        assert kept.lower <= fewest <= kept.size == len(kept.indices)
        assert kept.size == fewest or classes > 2
        flips = [sum(c) - sum(left) for left, label in table.items() if label not in (doc.label, None)]
        assert (gone.size if gone.status != "none" else None) == min(flips, default=None)
        if flips:
            left = tuple((np.array(c) - tally(gone, doc)).tolist())
            assert table[left] == gone.label_after != doc.label


def tally(found: ProvedSet, doc: Document) -> tuple[int, ...]:
    """How many occurrences of each token."""
    return tuple(np.bincount(np.array(found.indices, dtype=int), minlength=doc.tokens).tolist())


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
