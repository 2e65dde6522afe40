"""Choosing a vocabulary and counting it, against counting by hand."""

import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from scipy import sparse

from keytokens.text import MASK, Limits, Vocabulary, count, ngrams, spans, words
from keytokens.text.ngrams import Grams, merge_grams
from keytokens.text.spill import Threads
from keytokens.text.words import MOST_TEXTS, blocks

from .reference import built, hostile_texts, key_of, ngrams_of, words_of

LIMITS = [
    Limits((1, 1), (1,)),
    Limits((1, 1), (2,)),
    Limits((1, 2), (1,)),
    Limits((1, 2), (1, 2)),
    Limits((1, 2), (3, 1)),  # a bigram may be more welcome than its words
    Limits((1, 3), (1, 2, 3)),
    Limits((1, 3), (2, 3, 1)),
    Limits((1, 3), (4, 2)),
    Limits((2, 2), (1, 2)),
    Limits((2, 2), (5, 1)),
    Limits((2, 4), (1,)),
    Limits((2, 4), (1, 2, 2, 3)),
    Limits((3, 3), (1,)),
    Limits((1, 2), (1,), max_df=0.5),
    Limits((1, 3), (1, 2), max_df=0.25),
    Limits((1, 2), (1, 2), max_tokens=7),
    Limits((1, 3), (1,), max_tokens=1),
    Limits((2, 4), (1,), max_tokens=20),
    Limits((1, 2), (1,), max_df=0.5, max_tokens=5),
    Limits((1, 2), (1,), max_tokens=10**6),
    Limits((1, 2), (10**6,)),
]


def by_hand(texts: list[str], limits: Limits) -> tuple[list[str], np.ndarray]:
    """Tokens in the order of columns, and the dense counts."""
    words = [words_of(text) for text in texts]
    total = Counter(word for each in words for word in each if word != MASK)
    rank = {w: i for i, w in enumerate(sorted(total, key=lambda w: (-total[w], key_of(w.encode()))))}
    found = [ngrams_of(each, *limits.ngrams) for each in words]
    frequency = Counter(gram for each in found for gram in each)

    def place(gram: tuple[str, ...]) -> tuple[int, list[int]]:
        return len(gram), [rank[word] for word in gram]

    chosen = [
        gram
        for gram, df in frequency.items()
        if df >= limits.min_df[min(len(gram), len(limits.min_df)) - 1] and df <= limits.max_df * len(texts)
    ]
    chosen = sorted(chosen, key=lambda gram: (-frequency[gram], place(gram)))[: limits.max_tokens]
    chosen.sort(key=place)
    counts = np.array([[each[gram] for gram in chosen] for each in found], float).reshape(len(texts), len(chosen))
    return [" ".join(gram) for gram in chosen], counts


def check_matrix(matrix: sparse.csr_matrix, expected: np.ndarray, dtype: type) -> None:
    assert matrix.dtype == dtype
    assert matrix.shape == expected.shape
    assert np.array_equal(matrix.toarray(), expected)
    fresh = sparse.csr_matrix((matrix.data, matrix.indices, matrix.indptr), matrix.shape)
    assert fresh.has_canonical_format  # sorted columns, each once, as the matrix claims
    assert matrix.data.all()


def check(texts: list[str], limits: Limits) -> None:
    tokens, expected = by_hand(texts, limits)
    vocabulary, counts = built(texts, limits)
    assert list(vocabulary.tokens) == tokens
    assert len(vocabulary) == len(tokens)
    check_matrix(counts, expected, np.float32)
    check_matrix(count(texts, vocabulary), expected, np.float64)
    again, same = built(texts, limits, Threads(2))
    assert again.tokens == vocabulary.tokens
    for name in ("data", "indices", "indptr"):
        assert getattr(counts, name).tobytes() == getattr(same, name).tobytes()


def chatter(n_texts: int, seed: int = 0, longest: int = 12) -> list[str]:
    """Texts of few words, so that n-grams return; some empty, some with masks, tags and words beyond ASCII."""
    rng = random.Random(seed)
    words = ["a", "b", "C", "not", "good", "bad!!", "été", "漢字", "extraordinary", "extraordinarily"]
    words += [MASK, "<br />", "?", "'"]
    weights = [9, 8, 7, 6, 5, 5, 3, 3, 2, 2, 2, 2, 1, 1]
    return [" ".join(rng.choices(words, weights, k=rng.randint(0, longest))) for _ in range(n_texts)]


@pytest.mark.parametrize("limits", LIMITS, ids=repr)
def test_build_and_count(limits):
    check(chatter(40), limits)


@given(st.lists(hostile_texts, max_size=8), st.sampled_from(LIMITS))
def test_build_and_count_hostile_texts(texts, limits):
    check(texts, limits)


def test_a_word_in_every_text_of_a_piece():
    """The number of texts of a full piece takes all of its bits."""
    vocabulary, counts = built(["a a b"] * MOST_TEXTS + ["a"], Limits((1, 2), (MOST_TEXTS,)))
    assert vocabulary.tokens == ("a", "b", "a a", "a b")
    assert counts.sum(axis=0).tolist() == [[2 * MOST_TEXTS + 1, MOST_TEXTS, MOST_TEXTS, MOST_TEXTS]]
    assert built(["a a b"] * MOST_TEXTS + ["a"], Limits((1, 2), (MOST_TEXTS + 1,)))[0].tokens == ("a",)


@pytest.mark.parametrize("n_texts", [MOST_TEXTS - 1, MOST_TEXTS, MOST_TEXTS + 1])
def test_texts_to_the_edge_of_a_piece(n_texts):
    check([f"a w{i % 50}" for i in range(n_texts)], Limits((1, 2), (1,)))


def test_ties_go_to_the_shorter_then_to_the_more_frequent_first_word():
    texts = ["x y", "x y", "z", "z z z"]  # z occurs four times, x and y twice; all are in two texts
    everything = ["z", "x", "y", "x y"]
    assert list(built(texts, Limits((1, 2), (2,)))[0].tokens) == everything
    for most in range(1, 5):
        assert list(built(texts, Limits((1, 2), (2,), max_tokens=most))[0].tokens) == everything[:most]
    assert built(["x y p", "x y p", "q"], Limits((2, 2), (1,), max_tokens=1))[0].tokens == ("x y",)


@pytest.mark.parametrize("texts", [[], [""], ["", " ", "<br />", "\u0301", "."], [MASK, MASK * 3]])
@pytest.mark.parametrize("limits", [Limits(), Limits((1, 1)), Limits((2, 3))], ids=repr)
def test_no_words(texts, limits):
    vocabulary, counts = built(texts, limits)
    assert (len(vocabulary), vocabulary.tokens) == (0, ())
    assert (counts.shape, counts.nnz) == ((len(texts), 0), 0)
    assert count(["some words"], vocabulary).shape == (1, 0)
    assert count(texts, Vocabulary.from_tokens(["a", "a b"])).toarray().tolist() == [[0, 0]] * len(texts)


def test_a_document_of_ten_megabytes():
    repeats = 550_000
    unit = "Good bad, not good! "
    vocabulary, counts = built([unit * repeats, "good"], Limits((1, 2), (1,)))
    got = dict(zip(vocabulary.tokens, counts.toarray()[0].tolist(), strict=True))
    assert len(unit) * repeats > 10**7
    assert got == {
        **{"good": 2 * repeats, "bad": repeats, "not": repeats, "!": repeats},
        **{"good bad": repeats, "bad not": repeats, "not good": repeats, "good !": repeats, "! good": repeats - 1},
    }
    assert count([unit * repeats], vocabulary).toarray()[0].tolist() == counts.toarray()[0].tolist()


@given(hostile_texts.filter(lambda text: len(spans(text))), st.data())
def test_masking_a_word_removes_the_ngrams_that_touch_it(text, data):
    places, words = spans(text).tolist(), words_of(text)
    at = data.draw(st.integers(0, len(places) - 1))
    start, end = places[at]
    masked = text[:start] + MASK + text[end:]
    # not where the word was half of a tag: that would be another text altogether
    assume(words_of(masked) == [*words[:at], MASK, *words[at + 1 :]])
    grams = set(ngrams_of(words, 1, 3)) | set(
        ngrams_of(words[:at] + words[at + 1 :], 1, 3)
    )  # the gap makes none of these
    tokens = [gram for gram in sorted(grams) if MASK not in gram]
    vocabulary = Vocabulary.from_tokens([" ".join(gram) for gram in tokens])
    touched = [
        sum(tuple(words[i : i + len(gram)]) == gram for i in range(max(0, at - len(gram) + 1), at + 1))
        for gram in tokens
    ]
    before, after = (count([t], vocabulary).toarray()[0] for t in (text, masked))
    assert (before - after).tolist() == touched


def test_limits_go_on_for_ever():
    limits = Limits((1, 5), (4, 2, 3))
    assert [limits.least(n) for n in range(1, 6)] == [4, 2, 3, 3, 3]
    assert [limits.least_on_the_way(n) for n in range(1, 6)] == [2, 2, 3, 3, 3]
    assert [Limits((1, 1), (4, 2, 3)).least_on_the_way(n) for n in (1, 2, 5)] == [4, 2, 3]


def test_ngrams_longer_than_any_text():
    """Where no n-gram is left, none that is longer is looked for."""
    texts = ["a b c d", "a b c", "b c d", "e"]
    for min_df in ((1, 2), (1, 1), (5,)):
        vocabulary, counts = built(texts, Limits((1, 10**20), min_df))
        expected, matrix = built(texts, Limits((1, 5), min_df))
        assert vocabulary.tokens == expected.tokens
        assert (counts != matrix).nnz == 0


some_texts = st.lists(hostile_texts, max_size=12)
some_limits = st.builds(
    Limits,
    st.sampled_from([(1, 1), (1, 2), (1, 3), (2, 4)]),
    st.sampled_from([(1,), (1, 2), (2, 1, 2)]),
    st.sampled_from([1.0, 0.5]),
    st.sampled_from([None, 3]),
)


@given(some_texts, some_limits, st.integers(1, 30), st.sampled_from([1, 3]), st.booleans())
@example(["", "a b a", "b a"], Limits(), 1, 3, True)
def test_the_same_from_any_blocks_ranges_and_files(tmp_path_factory, texts, limits, characters, width, spilled):
    vocabulary, counts = built(texts, limits)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(words, "CHARACTERS", characters)
        patch.setattr(ngrams, "_SAMPLED", 1)
        patch.setattr(ngrams, "_RANGE", 3)
        run = Threads(width, Path(tmp_path_factory.getbasetemp()) if spilled else None)
        again, same = built(texts, limits, run)
    assert (again.tokens, again.words) == (vocabulary.tokens, vocabulary.words)
    for name in ("data", "indices", "indptr"):
        assert getattr(counts, name).tobytes() == getattr(same, name).tobytes()


@given(st.lists(st.dictionaries(st.integers(0, 40), st.integers(1, 10**8), max_size=30), min_size=1, max_size=4))
def test_numbers_of_texts_add_up(parts):
    found = [
        Grams(np.array(sorted(part), np.uint64), np.array([part[key] for key in sorted(part)], np.int32))
        for part in parts
    ]
    both = merge_grams(found, 5)
    total = sum(map(Counter, parts), Counter())
    expected = {key: texts for key, texts in sorted(total.items()) if texts >= 5}
    assert list(zip(both.keys.tolist(), both.texts.tolist(), strict=True)) == list(expected.items())


@given(st.lists(st.integers(0, 9), max_size=30), st.integers(1, 12), st.integers(1, 4))
def test_blocks_are_the_texts_in_their_order(lengths, characters, most):
    texts = [str(i % 10) * length for i, length in enumerate(lengths)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(words, "CHARACTERS", characters)
        patch.setattr(words, "MOST_TEXTS", most)
        found = list(blocks(texts))
    assert [text for block in found for text in block] == texts
    for block in found:
        assert 1 <= len(block) <= most
        assert sum(map(len, block[:-1])) < characters
    for block in found[:-1]:
        assert len(block) == most or sum(map(len, block)) >= characters
