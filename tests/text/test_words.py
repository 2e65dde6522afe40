"""Words as 64-bit keys."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keytokens.text import MASK, spans
from keytokens.text.words import MASK_KEY, key_of, keys_of_slices, read_words

from .reference import texts, words_of


def keys_of(words: list[bytes]) -> np.ndarray:
    sizes = np.array([len(word) for word in words])
    return keys_of_slices(b"".join(words), np.cumsum(sizes) - sizes, sizes)


@given(st.binary(min_size=1, max_size=8))
def test_a_short_word_is_its_key(word):
    assert key_of(word) == int.from_bytes(word, "little")


@given(st.lists(st.binary(min_size=1, max_size=40), min_size=1, max_size=20))
def test_a_key_depends_on_the_word_alone(words):
    """Not on what stands before or after it."""
    assert keys_of(words).tolist() == [key_of(word) for word in words]


@pytest.mark.parametrize("size", [*range(9, 34), 64, 1000])
def test_every_byte_of_a_long_word_counts(size):
    word = b"a" * size
    others = [word[:i] + b"b" + word[i + 1 :] for i in range(size)]
    keys = keys_of([word, word + b"a", word[:-1], *others])
    assert len(set(keys.tolist())) == size + 3
    assert (keys[[0, 1]] >> np.uint64(63) == 1).all()  # no ASCII word of eight bytes has this bit


def test_distinct_words_have_distinct_keys():
    short = [bytes(letters) for letters in product(b"abcxyz019_", repeat=4)]
    words = [prefix + word for prefix in (b"", b"abcd", b"abcde", b"abcdefgh", b"z" * 24) for word in short]
    words += [word + b"q" * 20 for word in short]
    words += [str(number).encode() for number in range(10**10, 10**10 + 10**5)]
    assert len(set(words)) == len(words)
    assert len(np.unique(keys_of(words))) == len(words)


@given(st.lists(texts, max_size=6))
def test_ends_count_the_words_of_each_text(many):
    read = read_words(many)
    assert read.ends.tolist() == np.cumsum([len(words_of(text)) for text in many], dtype=int).tolist()
    assert len(read.keys) == len(read.starts) == len(read.sizes) == (read.ends[-1] if many else 0)
    spelled = read.spelled(np.arange(len(read.keys)))
    assert read.keys.tolist() == [key_of(word) for word in spelled]


@pytest.mark.parametrize("many", [[], [""], ["", ""], ["\n"], ["<br />", "\u0301"]])
def test_no_word_at_all(many):
    read = read_words(many)
    assert len(read.keys) == 0
    assert read.ends.tolist() == [0] * len(many)
    assert read.spelled(np.arange(0)) == []


def test_only_the_mask_has_its_key():
    read = read_words([f"a{MASK}ÿ", "\xff", "y"])
    assert (read.keys == MASK_KEY).tolist() == [False, True, False, False, False]


def test_case_does_not_matter():
    upper, lower = read_words(["GOOD ÉTÉ EXTRAORDINARILY"]), read_words(["good été extraordinarily"])
    assert upper.keys.tolist() == lower.keys.tolist()


@given(st.lists(st.sampled_from(["a", "Bc", " ", "!", "<br />", "<i>", "<", ">", "x<3", "\n", "?"])).map("".join))
def test_places_in_plain_text_are_places_in_the_text(text):
    np.testing.assert_array_equal(read_words([text]).places, spans(text))
