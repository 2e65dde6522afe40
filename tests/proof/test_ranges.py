"""Ranges, drops and guarantees, against enumeration in exact arithmetic."""

import math
from fractions import Fraction

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from keytokens.proof import Votes, probability_range, range_keeping, ranges_deleting, sufficient
from keytokens.proof.ranges import Items, breach, drop, guarantee, probability_without

from .reference import Document, bits, documents


def ends(doc: Document, allowed: list[int]) -> list[list[float]]:
    """(R, 2) least and greatest margins over the sub-documents listed."""
    margins = [m for kept in allowed if (m := doc.margins(kept)) is not None]
    return [[float(min(column)), float(max(column))] for column in zip(*margins, strict=True)]


def every(doc: Document) -> range:
    return range(1 << doc.tokens)


@pytest.mark.parametrize("classes", [2, 3])
def test_range_keeping(classes: int) -> None:
    rng = np.random.default_rng(classes)
    for doc in documents(20 + classes, 150, classes):
        kept = np.flatnonzero(rng.random(doc.tokens) < 0.4)
        if not len(kept) and not doc.sink:
            kept = np.array([0])
        held = bits(kept.tolist())
        truth = ends(doc, [s for s in every(doc) if s & held == held])
        assert range_keeping(doc.votes, kept) == pytest.approx(np.array(truth), abs=1e-12)


@pytest.mark.parametrize("classes", [2, 3])
def test_ranges_deleting(classes: int) -> None:
    for doc in documents(30 + classes, 90, classes):
        whole = (1 << doc.tokens) - 1
        for m in range(doc.tokens + 2):
            gone = {s: bin(whole - s).count("1") for s in every(doc)}
            at_most = ends(doc, [s for s in every(doc) if gone[s] <= m])
            assert ranges_deleting(doc.votes, [m])[0] == pytest.approx(np.array(at_most), abs=1e-12)


def test_the_probability_of_the_label_stays_inside_its_range() -> None:
    for doc in documents(37, 150, 3, most=5):
        kept = sufficient(doc.votes).indices
        low, high = probability_range(range_keeping(doc.votes, kept)) if kept or doc.sink else (0.0, 1.0)
        held = bits(kept)
        for s in every(doc):
            margins = doc.margins(s)
            if s & held == held and margins is not None:
                p = 1.0 / (1.0 + sum(math.exp(-float(m)) for m in margins))
                assert low - 1e-12 <= p <= high + 1e-12


def test_two_classes_have_the_exact_range_of_the_probability() -> None:
    votes = Votes.of([0.0, 0.0, 0.0], [[0, 1], [0, 3], [0, -3]], label=1)
    low, high = probability_range(range_keeping(votes, [0]))
    assert low == pytest.approx(1 / (1 + math.exp(1)))
    assert high == pytest.approx(1 / (1 + math.exp(-2)))


@pytest.mark.parametrize("classes", [2, 3])
def test_drop_identity_and_bound(classes: int) -> None:
    rng = np.random.default_rng(40 + classes)
    for doc in documents(40 + classes, 120, classes):
        kept = np.flatnonzero(rng.random(doc.tokens) < 0.5)
        if not len(kept) and not doc.sink:
            kept = np.array([0])
        held, whole = bits(kept.tolist()), (1 << doc.tokens) - 1
        found = drop(doc.votes, kept)
        inside = sum((w for s, w in enumerate(doc.weights) if held >> s & 1), doc.sink)
        assert found.delta == pytest.approx(float(1 - inside / (sum(doc.weights) + doc.sink)), abs=1e-12)
        alone, full = doc.margins(held), doc.margins(whole)
        assert alone is not None
        assert full is not None
        assert found.whole == pytest.approx([float(f) for f in full], abs=1e-12)
        assert found.kept == pytest.approx([float(f) for f in alone], abs=1e-12)
        outside = Document(doc.weights, doc.values, Fraction(0), doc.intercepts).scores_of(whole - held)
        if outside is not None:
            rest = [outside[doc.label] - f for k, f in enumerate(outside) if k != doc.label]
            for f, f_kept, f_rest in zip(full, alone, rest, strict=True):
                assert float(f - f_kept) == pytest.approx(found.delta * float(f_rest - f_kept), abs=1e-12)
        for s in every(doc):
            if s & held == held:
                margins = doc.margins(s)
                assert margins is not None
                moved = [abs(float(f - f_kept)) for f, f_kept in zip(margins, alone, strict=True)]
                assert np.all(np.array(moved) <= found.bound + 1e-12)


def test_a_threshold_is_an_intercept_and_a_guarantee_holds_and_is_minimal() -> None:
    thetas = (0.2, 0.5, 0.6, 0.75, 0.9)
    held_some = 0
    for number, doc in enumerate(documents(46, 180)):
        theta = thetas[number % len(thetas)]
        limit = math.log(theta / (1 - theta))

        def above(kept: int, doc: Document = doc, limit: float = limit) -> bool:
            margins = doc.margins(kept)
            return margins is None or float(margins[0]) > limit + 1e-12

        def holds(held: int, doc: Document = doc) -> bool:
            return (held > 0 or doc.sink > 0) and all(above(s) for s in every(doc) if s & held == held)

        whole = (1 << doc.tokens) - 1
        found, broken = guarantee(doc.votes, theta), breach(doc.votes, theta)
        sets = [bin(held).count("1") for held in every(doc) if holds(held)]
        assert (found.size if found.status != "none" else None) == (min(sets) if sets else None)
        held_some += bool(sets)
        if sets:
            assert holds(bits(found.indices))
            breaks = [bin(whole - s).count("1") for s in every(doc) if not above(s)]
            assert (broken.size if broken.status != "none" else None) == (min(breaks) if breaks else None)
    assert held_some > 50


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda b: range_keeping(b, []), "at least one token"),
        (lambda b: ranges_deleting(b, [-1]), "not be negative"),
        (lambda b: ranges_deleting(b, [2, 1]), "not decrease"),
        (lambda b: guarantee(b, 1.0), "strictly between 0 and 1"),
        (lambda b: guarantee(Votes.of([0.0], [[0, 1, 2]], label=2), 0.5), "two classes"),
    ],
)
def test_refusals(call: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(Votes.of([0.0], [[0, 1]], label=1))  # type: ignore[operator]


def test_long_documents_have_the_same_bits_however_many_threads_blas_has() -> None:
    """Of sums over some ten thousand tokens, BLAS would give each thread a part."""
    rng = np.random.default_rng(44)

    def found(threads: int, spread: float) -> str:
        votes = Votes.of(spread * logits, np.column_stack([np.zeros(60_000), values]), label=1)
        with threadpool_limits(threads, "blas"):
            whole = Items.of(votes, 0).whole
            return repr((whole, probability_without(votes, gone), ranges_deleting(votes, [1, 50]).tolist()))

    for spread in (1.0, 200.0):
        for _ in range(5):
            logits, values = rng.normal(size=60_000), rng.normal(0, 1, size=60_000)
            gone = rng.permutation(60_000)[:30_000]
            assert found(2, spread) == found(1, spread)
