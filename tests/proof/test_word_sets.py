"""Word sets against enumeration of all masks in exact arithmetic."""

import math
from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

from keytokens.proof import Phrase, ProvedSet, Votes, flip_words, sufficient_words
from keytokens.proof.masking import fewest_kept_words, fewest_masks, priced_masks
from keytokens.proof.phrase import equal_shares, moved_shares, pessimistic
from keytokens.proof.program import RunLengthProgram, inside
from keytokens.proof.votes import label_of
from keytokens.proof.words import _Check

from .reference import Text, random_text, texts

BINARY_CASES = [(n, classes) for n in (2, 3) for classes in (2, 3)]


def check_flip(text: Text, found: ProvedSet) -> None:
    fewest = text.fewest_flip()
    if found.status == "none":
        assert fewest is None
        return
    assert fewest is not None
    assert text.is_flip(found.indices)
    assert found.lower <= fewest <= found.size == len(found.indices)
    assert found.status == ("minimum" if found.lower == found.size else "bounds")
    kept = tuple(int(i not in found.indices) for i in range(text.length))
    assert found.label_after == text.labels[kept]


def check_sufficient(text: Text, found: ProvedSet) -> None:
    assert text.is_sufficient(found.indices)
    assert found.lower <= text.fewest_sufficient() <= found.size == len(found.indices)
    assert (found.status == "minimum") == (found.lower == found.size)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("classes", [2, 3])
def test_raw_counts(n: int, classes: int) -> None:
    for text in texts(70 + n, 60, n, "raw", classes):
        gone, kept = flip_words(text.phrase), sufficient_words(text.phrase)
        check_flip(text, gone)
        assert gone.status in ("minimum", "none")
        check_sufficient(text, kept)
        if classes == 2:
            assert kept.status == "minimum"
        elif kept.status == "subset-minimal":
            assert not any(text.is_sufficient(set(kept.indices) - {w}) for w in kept.indices)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_fewest_masks_that_leave_something_known(n: int) -> None:
    """Half of these rivals win ties, so a mask that leaves nothing would lose: against all masks."""
    for text in texts(80 + n, 60, n, "raw"):
        phrase = text.phrase
        found = fewest_masks(pessimistic(phrase, 0, equal_shares(phrase)), phrase.length)
        assert found.complete
        assert (None if found.words is None else len(found.words)) == text.fewest_flip()
        assert found.words is None or text.is_flip(found.words)


def test_something_known_must_survive() -> None:
    """All words support: masking them all leaves nothing, which is no flip; one neutral word makes it one."""
    votes = Votes.of([0.0, 0.0, 0.0], [[0, 1], [0, 1], [0, 1]], label=1)
    first, size = np.array([0, 1, 0]), np.array([1, 1, 2])
    phrase = Phrase(2, first, size, np.array([0, 1, 2]), votes, "raw")
    assert flip_words(phrase).status == "none"
    neutral = Votes.of([0.0, 0.0, 0.0], [[0, 1], [0, 0], [0, 1]], label=1)
    assert flip_words(Phrase(2, first, size, np.array([0, 1, 2]), neutral, "raw")).indices == (0,)
    sunk = Votes.of([0.0, 0.0, 0.0], [[0, 1], [0, 1], [0, 1]], 1, 0.0, [0.0, 0.0])
    assert flip_words(Phrase(2, first, size, np.array([0, 1, 2]), sunk, "raw")).size == 2


@pytest.mark.parametrize("counts", ["binary", "log"])
@pytest.mark.parametrize("classes", [2, 3])
def test_single_words_are_exact_for_any_counts(counts: str, classes: int) -> None:
    for text in texts(90, 60, 1, counts, classes):
        gone, kept = flip_words(text.phrase), sufficient_words(text.phrase)
        check_flip(text, gone)
        assert gone.status in ("minimum", "none")
        check_sufficient(text, kept)
        if classes == 2:
            assert kept.size == text.fewest_sufficient()


@pytest.mark.parametrize(("n", "classes"), BINARY_CASES)
@pytest.mark.parametrize("counts", ["binary", "log"])
def test_bounds_enclose_the_truth(n: int, classes: int, counts: str) -> None:
    for text in texts(100 + n, 60, n, counts, classes):
        check_flip(text, flip_words(text.phrase))
        check_sufficient(text, sufficient_words(text.phrase))


def fewest_masks_by_integer_program(phrase: Phrase) -> int | None:
    """A second solver, for texts too long to enumerate: masked words, and occurrences that survive while no word is."""
    occurrences = len(phrase.token)
    votes = phrase.against(0)
    own = (votes[:-1] / phrase.occurrences)[phrase.token]
    rows, bounds = [], []
    for o, (first, size) in enumerate(zip(phrase.first.tolist(), phrase.size.tolist(), strict=True)):
        row = np.zeros(phrase.length + occurrences)
        row[first : first + size], row[phrase.length + o] = 1, 1
        rows.append(row)  # an occurrence none of whose words is masked survives
        bounds.append((1, np.inf))
        for word in range(first, first + size):
            row = np.zeros(phrase.length + occurrences)
            row[word] = row[phrase.length + o] = 1
            rows.append(row)  # and it does not survive a mask on one of them
            bounds.append((0, 1))
    rows.append(np.r_[np.zeros(phrase.length), own])
    bounds.append((-np.inf, -votes[-1] - 1e-6))
    low, high = np.array(bounds).T
    cost = np.r_[np.ones(phrase.length), np.zeros(occurrences)]
    found = milp(
        cost,
        constraints=LinearConstraint(np.array(rows), low, high),
        integrality=np.ones(len(cost)),
        bounds=Bounds(0, 1),
    )
    return None if found.x is None else round(found.fun)


@pytest.mark.parametrize("seed", range(6))
def test_flips_of_long_texts_are_those_of_an_integer_program(seed: int) -> None:
    rng = np.random.default_rng(seed)
    places = [(first, size) for size in (1, 2, 3) for first in range(41 - size) if rng.random() < 0.6]
    first, size = np.array(places).T
    _, token = np.unique(rng.integers(0, 40, len(places)), return_inverse=True)
    values = np.stack([np.zeros(token.max() + 1), rng.normal(0.4, 1, token.max() + 1)], axis=1)
    votes = Votes.of(rng.normal(0, 0.7, len(values)), values, 1, 0.0, [0.0, 0.1])
    phrase = Phrase(40, first, size, token, votes, "raw")
    assert label_of(votes) == 1
    found = flip_words(phrase)
    assert found.status in ("minimum", "none")
    assert (found.size if found.status == "minimum" else None) == fewest_masks_by_integer_program(phrase)


def test_an_empty_rest_is_never_an_answer() -> None:
    """Masking word 1 would empty the text; the fewest masks that leave the neutral word 1 are two."""
    votes = Votes.of(np.zeros(3), [[0, 2], [0, 2], [0, 0]], label=1)
    first, size = np.array([0, 1, 1]), np.array([2, 3, 1])
    found = flip_words(Phrase(4, first, size, np.arange(3), votes, "binary"))
    assert (found.size, found.status, found.label_after) == (2, "minimum", 0)
    assert 1 not in found.indices


def test_moved_shares_stay_below_the_truth() -> None:
    """For every mask the pessimistic sum is at most the true one, whatever shares were moved."""
    rng = np.random.default_rng(111)
    for counts in ("binary", "log"):
        for _ in range(25):
            text = random_text(rng, 2, counts, most=6)
            phrase = text.phrase
            shares = equal_shares(phrase)
            for _ in range(3):
                mask = tuple(np.flatnonzero(rng.random(text.length) < 0.5).tolist())
                shares = moved_shares(phrase, shares, mask, rate=float(rng.uniform(0.3, 1.0)))
            program = pessimistic(phrase, 0, shares)
            votes = phrase.against(0)
            for kept in text.labels:
                words = np.array(kept, dtype=bool)
                survives = inside(words, phrase.first, phrase.size)
                left = np.bincount(phrase.token[survives], minlength=phrase.votes.tokens)
                from_left = np.where(left > 0, 1.0 if counts == "binary" else 1.0 + np.log(np.maximum(left, 1)), 0.0)
                truth = float(votes[:-1] @ (from_left / phrase.weight) + votes[-1])
                bound = program.constant + float(program.vote[survives].sum())
                assert bound <= truth + 1e-9 or program.vote.max() >= 2e12 * program.slack


def test_the_check_of_kept_words_is_sound() -> None:
    """Whatever set of words is proved to fix a label does, against all masks."""
    proved = 0
    for text in texts(112, 60, 2, "binary", most=6):
        check = _Check.of(text.phrase)
        for k in range(1, text.length + 1):
            for words in combinations(range(text.length), k):
                if check.proves(words):
                    proved += 1
                    assert text.is_sufficient(words)
    assert proved > 300


def test_a_supporter_with_a_kept_occurrence_counts_in_full() -> None:
    """The same token three times: one kept occurrence is as good as all three."""
    votes = Votes.of([0.0, 0.0], [[0, 3.0], [0, -2.0]], label=1)
    first, size, token = np.array([0, 3, 6, 2]), np.array([2, 2, 2, 1]), np.array([0, 0, 0, 1])
    found = sufficient_words(Phrase(8, first, size, token, votes, "binary"))
    assert found.indices == (0, 1)


def program_of(length: int, ngrams: list[tuple[int, int, float]]) -> RunLengthProgram:
    first, size, vote = (np.array(column) for column in zip(*ngrams, strict=True))
    slack = 1e-12 * float(-vote[vote < 0].sum())
    return RunLengthProgram(length, first, size, vote.astype(float), 0.0, False, slack, False)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_prices_bound_the_exact_answer(n: int) -> None:
    for text in texts(115 + n, 60, n, "raw"):
        phrase = text.phrase
        priced = priced_masks(pessimistic(phrase, 0, equal_shares(phrase)))
        fewest = text.fewest_flip()
        if fewest is not None:
            assert priced.lower <= fewest
            if priced.words is not None and text.is_flip(priced.words):
                assert fewest <= len(priced.words)


def test_long_texts_come_back_with_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keytokens.proof.masking.CELLS", 500)
    monkeypatch.setattr("keytokens.proof.masking.VECTORS", 100)
    rng = np.random.default_rng(141)
    length = 120
    spots = [(i, size) for size in (1, 2) for i in range(length - size + 1)]
    values = np.stack([np.zeros(len(spots)), rng.normal(size=len(spots)) + 0.3], axis=1)
    first, size = (np.array(column) for column in zip(*spots, strict=True))
    phrase = Phrase(length, first, size, np.arange(len(spots)), Votes.of(np.zeros(len(spots)), values, 1), "raw")
    gone, kept = flip_words(phrase), sufficient_words(phrase)
    monkeypatch.undo()
    exact = flip_words(phrase)
    assert gone.lower <= exact.size <= gone.size
    assert phrase.label_after(gone.indices) == 0
    assert kept.lower <= sufficient_words(phrase).size <= kept.size
    assert kept.status in ("subset-minimal", "bounds")


def test_a_search_within_a_limit_is_complete() -> None:
    for text in texts(142, 40, 2, "raw"):
        program = pessimistic(text.phrase, 0, equal_shares(text.phrase))
        fewest = text.fewest_sufficient()
        for most in range(text.length + 1):
            found = fewest_kept_words(program, most)
            assert found.complete
            assert (found.words is None) == (most < fewest)


@pytest.mark.parametrize("n", [2, 3])
def test_the_search_for_kept_words_loses_no_candidate(n: int) -> None:
    """Longer texts with real votes, where fronts hold several vectors: against all sets, each checked alone."""
    rng = np.random.default_rng(143)
    for _ in range(40):
        length = 9
        ngrams = [(i, size, float(rng.normal() + 0.2)) for size in range(1, n + 1) for i in range(length - size + 1)]
        program = program_of(length, ngrams)
        fewest = next(
            (
                k
                for k in range(1, length + 1)
                for words in combinations(range(length), k)
                if not program.loses(min(program.walked([math.inf if i in words else 0.0 for i in range(length)])[-1]))
            ),
            None,
        )
        found = fewest_kept_words(program, length)
        assert (None if found.words is None else len(found.words)) == fewest


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"first": np.array([0])}, "one entry per occurrence"),
        ({"length": 1}, "inside the 1 words"),
        ({"token": np.array([0, 0])}, "name every token"),
    ],
)
def test_refusals(change: dict[str, object], message: str) -> None:
    votes = Votes.of([0.0, 0.0], [[0, 1], [0, 1]], label=1)
    fields: dict[str, object] = {
        "length": 2,
        "first": np.array([0, 1]),
        "size": np.array([1, 1]),
        "token": np.array([0, 1]),
        "votes": votes,
        "counts": "raw",
    }
    with pytest.raises(ValueError, match=message):
        Phrase(**{**fields, **change})  # type: ignore[arg-type]
