"""Sufficient sets and flips of tokens, against enumeration in exact arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keytokens.proof import Votes, flip, label_of, sufficient
from keytokens.proof.tokens import Requirement, relaxation

from .reference import INTERCEPTS, Document, bits, document, documents, random_document

small = st.integers(-3, 3)


@st.composite
def two_class_documents(draw: st.DrawFn) -> Document:
    b = draw(st.lists(small, min_size=1, max_size=6))
    weights = draw(st.lists(st.integers(1, 3), min_size=len(b), max_size=len(b)))
    intercepts = [Fraction(0), draw(st.sampled_from(INTERCEPTS))]
    return document(weights, [[0, x] for x in b], intercepts, draw(st.integers(0, 2)))


def whole(doc: Document) -> int:
    return (1 << doc.tokens) - 1


@given(two_class_documents())
def test_the_sign_of_the_score_is_the_sign_of_the_summed_votes(doc: Document) -> None:
    votes = [w * row[1] for w, row in zip(doc.weights, doc.values, strict=True)] + [doc.sink * doc.intercepts[1]]
    total = sum(doc.weights) + doc.sink
    assert sum(votes) / total == doc.scores_of(whole(doc))[1]
    assert label_of(doc.votes) == int(sum(votes) > 0) == doc.label
    sign = 1 if doc.label == 1 else -1
    weight = np.exp(doc.votes.log_weight)
    ours = weight @ doc.votes.margin[:, 0] + float(doc.sink) * doc.votes.sink_margin[0]
    assert ours == pytest.approx(sign * float(sum(votes)), abs=1e-12)


@given(two_class_documents())
def test_a_sufficient_set_is_sufficient_and_a_minimum(doc: Document) -> None:
    found = sufficient(doc.votes)
    assert doc.is_sufficient(bits(found.indices))
    assert found.size == found.lower == len(found.indices) == doc.fewest_sufficient()
    assert found.status == "minimum"


@given(two_class_documents())
def test_a_flip_changes_the_label_and_is_a_minimum(doc: Document) -> None:
    found, fewest = flip(doc.votes), doc.fewest_flip()
    if fewest is None:
        assert (found.indices, found.status) == ((), "none")
    else:
        assert doc.is_flip(bits(found.indices))
        assert found.size == found.lower == len(found.indices) == fewest
        assert found.label_after == 1 - doc.label


@pytest.mark.parametrize("seed", range(2))
def test_many_documents_of_two_classes(seed: int) -> None:
    for doc in documents(seed, 400):
        kept, gone = sufficient(doc.votes), flip(doc.votes)
        assert kept.size == doc.fewest_sufficient()
        assert doc.is_sufficient(bits(kept.indices))
        assert (gone.size if gone.status != "none" else None) == doc.fewest_flip()


@pytest.mark.parametrize("empty_label", [0, 1])
def test_what_an_empty_document_is_called_changes_no_set(empty_label: int) -> None:
    """With emptiness allowed exactly two answers change: the ones stated here."""
    for doc in documents(3, 300):
        if doc.sink:
            continue
        labels = list(doc.labels)
        labels[0] = empty_label
        y, full = doc.label, whole(doc)
        empty_suffices = all(label == y for label in labels)
        each_alone = all(labels[1 << s] == y for s in range(doc.tokens))
        assert empty_suffices == (each_alone and empty_label == y)
        fewest = doc.fewest_flip()
        if fewest is None:
            assert any(labels[full - gone] != y for gone in range(1, full + 1)) == (empty_label != y)
        kept = sufficient(doc.votes)
        assert kept.size >= 1
        assert flip(doc.votes).size < doc.tokens or flip(doc.votes).status == "none"


def test_a_bias_token_is_a_constant_vote() -> None:
    """With a sink a sufficient set may be empty and a flip may delete everything: both occur."""
    empty = everything = 0
    for doc in documents(4, 500, most=4):
        if not doc.sink:
            continue
        kept, gone = sufficient(doc.votes), flip(doc.votes)
        assert kept.size == doc.fewest_sufficient()
        assert (gone.size if gone.status != "none" else None) == doc.fewest_flip()
        empty += kept.size == 0
        everything += gone.size == doc.tokens
    assert empty > 10
    assert everything > 10


def test_sufficient_sets_are_the_minimal_sets_that_meet_all_flips() -> None:
    for doc in documents(5, 120, most=5):
        if doc.sink:
            continue
        every = range(1, whole(doc) + 1)
        flips = [gone for gone in every if doc.is_flip(gone)]
        hitting = [held for held in every if all(held & gone for gone in flips)]
        assert hitting == [held for held in every if doc.is_sufficient(held)]
        if doc.tokens > 1:
            in_all = [s for s in range(doc.tokens) if all(held >> s & 1 for held in hitting)]
            assert in_all == [s for s in range(doc.tokens) if doc.is_flip(1 << s)]
            assert set(in_all) <= set(sufficient(doc.votes).indices)


def test_two_documents_of_one_label_together_keep_it() -> None:
    rng = np.random.default_rng(6)
    pairs = 0
    while pairs < 150:
        c = rng.integers(0, 3, (2, 5))
        a, b = np.log(rng.integers(1, 4, 5)), rng.integers(-3, 4, 5) + 0.5 * rng.integers(-1, 2)
        several = []
        for count in (c[0], c[1], c[0] + c[1]):
            here = count > 0
            values = np.stack([np.zeros(here.sum()), b[here]], axis=1)
            several.append(Votes.of(np.log(count[here]) + a[here], values, 0) if here.any() else None)
        if any(one is None for one in several):
            continue
        one, other, both = (label_of(votes) for votes in several if votes is not None)
        if one == other:
            assert both == one
            pairs += 1


@pytest.mark.parametrize("classes", [3, 4])
def test_more_classes(classes: int) -> None:
    for doc in documents(classes, 250, classes, most=5):
        kept, gone = sufficient(doc.votes), flip(doc.votes)
        held = bits(kept.indices)
        assert doc.is_sufficient(held)
        assert not any(doc.is_sufficient(held - (1 << s)) for s in kept.indices)
        assert kept.lower <= doc.fewest_sufficient() <= kept.size == len(kept.indices)
        assert (kept.status == "minimum") == (kept.lower == kept.size)
        if kept.size <= 2 or doc.fewest_sufficient() == 1:  # one token is looked for among all
            assert kept.status == "minimum"
        fewest = doc.fewest_flip()
        assert (gone.size if gone.status != "none" else None) == fewest
        if fewest is not None:
            rest = whole(doc) - bits(gone.indices)
            assert doc.is_flip(bits(gone.indices))
            assert gone.label_after == doc.labels[rest]


def test_each_rival_has_its_own_tie_rule() -> None:
    """Against a lower index a tie is lost, against a higher one it is won."""
    values = [[0, 1, 0], [0, -1, 0]]  # the label 1 ties with both rivals on the whole; by weights it wins
    votes = Votes.of(np.log([2.0, 1.0]), values, label=1)
    assert flip(votes).indices == (0,)
    tied = Votes.of([0.0, 0.0, 0.0], [[1, 1, 0], [0, 0, 1], [0, 0, -1]], label=0)
    assert sufficient(tied).indices == (0,)
    lost = Votes.of([0.0, 0.0, 0.0], [[1, 0, 1], [0, 1, 0], [0, 0, 1]], label=2)
    assert sufficient(lost).size == 2


def test_a_third_class_may_win_the_rest() -> None:
    values = [[9, 0, 0], [0, 2, 1], [0, 1, 3]]
    gone = flip(Votes.of([0.0, 0.0, 0.0], values, label=0))
    assert (gone.indices, gone.label_after) == ((0,), 2)


def test_rounding_the_relaxation_up_is_near_the_minimum() -> None:
    rng = np.random.default_rng(7)
    for _ in range(60):
        classes = int(rng.integers(3, 5))
        doc = random_document(rng, classes, most=6)
        votes = doc.votes
        required = Requirement.of(votes.pairs, 0 if doc.sink else 1)
        x = relaxation(required)
        assert x is not None
        fractional = (x > 1e-6) & (x < 1 - 1e-6)
        assert fractional.sum() <= classes - 1
        fewest = doc.fewest_sufficient()
        assert x.sum() <= fewest + 1e-6
        if not votes.strict.any():  # against a strict rival a whole solution may be a tie
            rounded = np.flatnonzero(x > 1e-6)
            assert len(rounded) <= max(fewest + classes - 2, 1)
            assert len(rounded) == 0 or required.met(rounded.tolist())


def covers(sets: list[set[int]], elements: int) -> int:
    return next(
        k
        for k in range(1, len(sets) + 1)
        if any(set().union(*chosen) == set(range(elements)) for chosen in combinations(sets, k))
    )


def test_set_cover_texts() -> None:
    """A token is a set, a rival an element: the minimum is never claimed without a bound that meets it."""
    rng = np.random.default_rng(8)
    for _ in range(40):
        elements, number = 4, int(rng.integers(3, 7))
        sets = [set(np.flatnonzero(rng.random(elements) < 0.5).tolist()) for _ in range(number)]
        sets[0] |= set(range(elements)) - set().union(*sets)
        # class 0 is the label; class k + 1 loses 2 by a token that contains k, and one opponent gives each rival 1
        values = np.zeros((number + 1, elements + 1))
        for s, members in enumerate(sets):
            values[s, [k + 1 for k in members]] = -2.0
        values[number, 1:] = 1.0
        found = sufficient(Votes.of(np.zeros(number + 1), values, label=0))
        fewest = covers(sets, elements)
        assert found.lower <= fewest <= found.size
        assert found.status == ("minimum" if found.lower == found.size else "subset-minimal")


def test_partition_texts() -> None:
    """Half of the tokens suffice iff some half of the numbers sums to half: NP-hard, so the bound may stay below."""
    rng = np.random.default_rng(9)
    for _ in range(40):
        k = 3
        x = rng.integers(1, 9, 2 * k)
        if x.sum() % 2:
            x[0] += 1
        big = int(x.sum()) + 1
        values = np.zeros((2 * k + 1, 3))
        values[: 2 * k, 1], values[: 2 * k, 2] = -(big + x), -(big - x)
        values[2 * k, 1], values[2 * k, 2] = k * big + x.sum() / 2, k * big - x.sum() / 2
        found = sufficient(Votes.of(np.zeros(2 * k + 1), values, label=0))
        halves = any(2 * sum(half) == x.sum() for half in combinations(x.tolist(), k))
        assert found.lower <= (k if halves else k + 1) <= found.size
        if found.status == "minimum":
            assert found.size == (k if halves else k + 1)


@given(two_class_documents(), st.randoms(use_true_random=False), st.integers(-40, 40))
def test_order_scale_and_shift_change_no_set(doc: Document, random: object, shift: int) -> None:
    votes = doc.votes
    order = list(range(doc.tokens))
    random.shuffle(order)  # type: ignore[attr-defined]
    mixed = votes.take(order)
    moved = Votes(
        votes.log_weight + shift,
        votes.margin,
        votes.strict,
        votes.rivals,
        votes.label,
        votes.sink_log_weight + shift,
        votes.sink_margin,
    )
    for ask in (sufficient, flip):
        here = ask(votes)
        for there in (ask(mixed), ask(moved)):
            assert (there.size, there.status, there.label_after) == (here.size, here.status, here.label_after)
    assert sufficient(moved).indices == sufficient(votes).indices


def test_swapped_classes_give_the_same_sets_except_on_ties() -> None:
    for doc in documents(10, 200):
        if any(scores is not None and scores[1] == 0 for scores in map(doc.scores_of, range(1 << doc.tokens))):
            continue
        votes = doc.votes
        mirror = Votes(
            votes.log_weight,
            votes.margin,
            ~votes.strict,
            1 - votes.rivals,
            1 - votes.label,
            votes.sink_log_weight,
            votes.sink_margin,
        )
        assert sufficient(mirror).indices == sufficient(votes).indices
        assert flip(mirror).indices == flip(votes).indices


def test_equal_votes_come_in_document_order() -> None:
    votes = Votes.of(np.zeros(4), [[0, 1], [0, 2], [0, 2], [0, -3]], label=1)
    assert sufficient(votes).indices == (1, 2)
    assert flip(votes).indices == (1,)


def test_ties_are_marked_and_clear_answers_are_not() -> None:
    tie = Votes.of(np.log([3.0, 1.0, 1.0, 1.0]), [[0, -1], [0, 1], [0, 1], [0, 1]], label=0)
    assert sufficient(tie).tight
    assert sufficient(tie).size == 1
    clear = Votes.of(np.zeros(3), [[0, 3], [0, 2], [0, -4]], label=1)
    assert not sufficient(clear).tight
    assert not flip(clear).tight


@pytest.mark.parametrize(
    "call",
    [
        lambda: Votes.of([0.0], [[0.0, 1.0]], label=2),
        lambda: Votes.of([0.0, 1.0], [[0.0, 1.0]], label=1),
        lambda: Votes.of([0.0], [[1.0]], label=0),
        lambda: Votes.of([-math.inf], [[0.0, 1.0]], label=1),
        lambda: Votes.of([0.0], [[0.0, 1.0]], 1, 0.0, [0.0]),
    ],
)
def test_refusals_say_what_was_seen(call: object) -> None:
    with pytest.raises(ValueError, match=r"Votes\.of: `.*` must .*; saw"):
        call()  # type: ignore[operator]


def test_an_empty_document_has_no_sets_without_a_sink() -> None:
    nothing = np.zeros((0, 2))
    assert sufficient(Votes.of([], nothing, label=0)).status == "none"
    assert flip(Votes.of([], nothing, label=0)).status == "none"
    assert sufficient(Votes.of([], nothing, 1, 0.0, [0.0, 1.0])).status == "minimum"
