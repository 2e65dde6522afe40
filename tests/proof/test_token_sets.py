"""Sufficient sets and flips of tokens, against enumeration in exact arithmetic."""

import math
from dataclasses import replace

import numpy as np
import pytest

from keytokens.proof import Votes, flip, label_of, sufficient

from .reference import Document, bits, documents


def whole(doc: Document) -> int:
    return (1 << doc.tokens) - 1


@pytest.mark.parametrize("seed", range(2))
def test_two_classes(seed: int) -> None:
    """Minima; with a sink a sufficient set may be empty and a flip may delete everything, and both occur."""
    empty = everything = 0
    for doc in documents(seed, 500):
        kept, gone, fewest = sufficient(doc.votes), flip(doc.votes), doc.fewest_flip()
        assert label_of(doc.votes) == doc.label
        assert doc.is_sufficient(bits(kept.indices))
        assert kept.size == kept.lower == len(kept.indices) == doc.fewest_sufficient()
        assert kept.status == "minimum"
        if fewest is None:
            assert (gone.indices, gone.status) == ((), "none")
        else:
            assert doc.is_flip(bits(gone.indices))
            assert gone.size == gone.lower == len(gone.indices) == fewest
            assert (gone.label_after, gone.status) == (1 - doc.label, "minimum")
        empty += not kept.size
        everything += gone.size == doc.tokens
    assert min(empty, everything) > 10


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


def test_order_and_shift_change_no_set() -> None:
    rng = np.random.default_rng(10)
    for doc in documents(10, 100):
        votes, shift = doc.votes, float(rng.integers(-40, 41))
        mixed = votes.take(rng.permutation(doc.tokens).tolist())
        moved = replace(votes, log_weight=votes.log_weight + shift, sink_log_weight=votes.sink_log_weight + shift)
        for ask in (sufficient, flip):
            here = ask(votes)
            for there in (ask(mixed), ask(moved)):
                assert (there.size, there.status, there.label_after) == (here.size, here.status, here.label_after)
        assert sufficient(moved).indices == sufficient(votes).indices


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


@pytest.mark.parametrize("classes", range(2, 9))
def test_a_flip_set_speaks_for_the_label_against_its_rival(classes: int) -> None:
    """Against the class that it leads to, and, of each rival alone, against that rival.

    A token that does not could be left out: its class would be ahead all the same, with one deletion less.
    """
    third = 0
    for doc in documents(classes, 120, classes, most=6):
        votes, gone = doc.votes, flip(doc.votes)
        if gone.label_after is not None:
            column = votes.rivals.tolist().index(gone.label_after)
            assert (votes.margin[list(gone.indices), column] > 0).all()
        for column, rival in enumerate(votes.rivals.tolist()):
            one = slice(column, column + 1)
            alone = replace(
                votes,
                margin=votes.margin[:, one],
                sink_margin=votes.sink_margin[one],
                strict=votes.strict[one],
                rivals=votes.rivals[one],
            )
            found = flip(alone)
            assert (votes.margin[list(found.indices), column] > 0).all()
            if rival == gone.label_after:
                assert found.size == gone.size
                third += found.indices != gone.indices
    assert third or classes < 5, "flips that were sought against another class than they lead to"
