"""A frozen vocabulary: tokens in, the same tokens out, found wherever they stand."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from keytokens.text import MASK, Vocabulary, count
from keytokens.text.words import read_words

from .reference import HOSTILE, ngrams_of, words_of

words = st.sampled_from(sorted({w for piece in HOSTILE for w in words_of(piece) if words_of(w) == [w]} - {MASK}))
ngrams = st.lists(words, min_size=1, max_size=4).map(" ".join)
vocabularies = st.lists(ngrams, unique=True, max_size=12)


@given(vocabularies)
@example([])
@example(["a b c d"])
@example(["b a", "a", "a b a", "b"])
def test_tokens_come_back_in_their_order(tokens):
    vocabulary = Vocabulary.from_tokens(tokens)
    assert list(vocabulary.tokens) == tokens
    assert len(vocabulary) == len(tokens)
    assert vocabulary.sizes.tolist() == [token.count(" ") + 1 for token in tokens]
    assert vocabulary.order == max([token.count(" ") + 1 for token in tokens], default=1)
    assert sorted(vocabulary.words) == sorted({word for token in tokens for word in token.split(" ")})


@given(vocabularies, st.data())
def test_names_are_tokens(tokens, data):
    vocabulary = Vocabulary.from_tokens(tokens)
    columns = data.draw(st.lists(st.integers(0, max(0, len(tokens) - 1)), max_size=5 if tokens else 0))
    assert vocabulary.names(np.array(columns, np.int32)) == [tokens[column] for column in columns]


@given(vocabularies, st.lists(st.lists(words, max_size=8).map(" ".join), max_size=4))
def test_every_known_ngram_is_found_and_no_other(tokens, texts):
    vocabulary = Vocabulary.from_tokens(tokens)
    expected = [
        [grams[tuple(t.split(" "))] for t in tokens] for grams in (ngrams_of(t.split(" "), 1, 4) for t in texts)
    ]
    assert count(texts, vocabulary).toarray().tolist() == expected


def test_found_places_are_those_of_the_first_words():
    vocabulary = Vocabulary.from_tokens(["good", "not good", "so not good"])
    grid = vocabulary.grid(read_words(["so not good", "good", "not", "good so not good"]))
    one, two, three = (
        dict(zip(np.flatnonzero(own >= 0).tolist(), own[own >= 0].tolist(), strict=True)) for own in grid.T
    )
    assert (one, two, three) == ({2: 0, 3: 0, 5: 0, 8: 0}, {1: 1, 7: 1}, {0: 2, 6: 2})


def test_a_mask_in_a_token_matches_nothing():
    vocabulary = Vocabulary.from_tokens([MASK, f"a {MASK}", "a"])
    assert count([f"a {MASK}"], vocabulary).toarray().tolist() == [[0, 0, 1]]


def test_long_words_that_share_all_but_one_letter():
    tokens = ["x" * 40 + c for c in "abcdefghij"]
    vocabulary = Vocabulary.from_tokens(tokens)
    assert count([tokens[3].upper()], vocabulary).toarray().tolist() == [[0, 0, 0, 1, 0, 0, 0, 0, 0, 0]]
