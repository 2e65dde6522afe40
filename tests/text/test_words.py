"""The definition of a word, against a regular expression; and words as 64-bit keys."""

import json
import sys
import unicodedata
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from keytokens.text import MASK, spans
from keytokens.text.alphabet import IDEOGRAPHS, LETTERS, MARKS, SYMBOLS
from keytokens.text.words import MASK_KEY, keys_of_slices, normalise, read_words

from .reference import key_of, spelled, texts, word_spans, words_of

CONFORMANCE = json.loads((Path(__file__).parent / "conformance.json").read_text(encoding="ascii"))
CASES = CONFORMANCE["cases"]
SURROGATES = range(0xD800, 0xE000)


def words_read(*many: str) -> list[list[str]]:
    """The words of each text by the reader of many texts, masks included."""
    read = read_words(many)
    words = [w.decode() if w != b"\xff" else MASK for w in spelled(read)]
    assert len(read.ends) == len(many)
    return [words[i:j] for i, j in pairwise([0, *read.ends])]


def words_spanned(text: str) -> list[str]:
    return [normalise(text[start:end]) for start, end in spans(text).tolist()]


@settings(max_examples=400)
@given(texts)
@example("<a x<br />>")
@example("<!-- a<br />b -->")
@example("\u0301a\u0301")
@example("ΑΣ\u0301'Σ Σ.Σ")
def test_spans_follow_the_definition(text):
    assert spans(text).tolist() == [list(span) for span in word_spans(text)]


@settings(max_examples=200)
@given(st.lists(texts, max_size=6))
@example(["<a x<br />>", "<!-- a<br />b -->é"])
@example(["", "é", "", "\u0301", "a\u0301", "\n"])
@example(["ΑΣ", "Σ", "ΑΣ.Α"])
def test_many_texts_give_the_words_of_each(many):
    assert words_read(*many) == [words_of(text) for text in many]


@pytest.mark.parametrize("frame", ["{} ", "a{}Σ "], ids=["alone", "between letters"])
def test_every_character(frame):
    """All that Unicode 14 assigns, but for private use."""
    characters = [chr(code) for code in (*range(0x32000), *range(0xE0000, 0xE0200)) if chr(code) not in "<>"]
    text = "".join(frame.format(character) for character in characters)
    assert words_read(text) == [words_of(text)]


def test_spans_of_all_characters_in_one_text():
    everything = "".join(map(chr, range(sys.maxunicode + 1)))
    assert spans(everything).tolist() == [list(span) for span in word_spans(everything)]


def test_no_word_holds_what_separates_words():
    """A word's form stays one word when words are joined by spaces and texts by newlines."""
    forms = {
        normalise(chr(code)) for first, last in (*LETTERS, *IDEOGRAPHS, *SYMBOLS) for code in range(first, last + 1)
    }
    assert not [form for form in forms if set(form) & set(" \n!?<>\0" + MASK)]


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_conformance(case):
    assert words_spanned(case["text"]) == case["words"]
    assert words_read(case["text"]) == [case["words"]]
    assert words_read("é", case["text"], "a") == [["é"], case["words"], ["a"]]  # among others, beyond ASCII or not


def test_the_table_is_unicode_14():
    later = unicodedata.unidata_version != "14.0.0"
    categories = [unicodedata.category(chr(code)) for code in range(sys.maxunicode + 1)]
    alone = [code for first, last in IDEOGRAPHS for code in range(first, last + 1)]
    han = {code for code in alone if categories[code] in ("Lo", "Lm", "Nl")}
    assert len(alone) == len(han)
    expected = {
        "letters": {c for c, kind in enumerate(categories) if kind[0] in "LN" or c == ord("_")} - han,
        "marks": {c for c, kind in enumerate(categories) if kind[0] == "M"} | {0x200C, 0x200D},
        "symbols": {c for c, kind in enumerate(categories) if kind == "So"} - {ord(MASK)},
    }
    for name, ranges in (("letters", LETTERS), ("marks", MARKS), ("symbols", SYMBOLS)):
        pinned = {code for first, last in ranges for code in range(first, last + 1)}
        assert pinned == expected[name] or (later and pinned < expected[name]), name


def test_ideographs_are_han_and_hiragana():
    names = [
        (code, unicodedata.name(chr(code), ""))
        for code in range(sys.maxunicode + 1)
        if code not in SURROGATES and unicodedata.category(chr(code)) in ("Lo", "Lm", "Nl")
    ]
    prefixes = (
        "CJK UNIFIED",
        "CJK COMPATIBILITY IDEOGRAPH",
        "HIRAGANA",
        "HENTAIGANA",
        "IDEOGRAPHIC",
        "HANGZHOU",
        "VERTICAL IDEOGRAPHIC",
    )
    named = {code for code, name in names if name.startswith(prefixes)}
    pinned = {code for first, last in IDEOGRAPHS for code in range(first, last + 1)}
    assert pinned == named or (unicodedata.unidata_version != "14.0.0" and pinned < named)


def test_classes_are_disjoint_and_sorted():
    edges = sorted((first, last) for ranges in (LETTERS, IDEOGRAPHS, MARKS, SYMBOLS) for first, last in ranges)
    assert all(first <= last for first, last in edges)
    assert all(last < first for (_, last), (first, _) in pairwise(edges))


@pytest.mark.parametrize(
    "word, form", [("Σ", "σ"), ("ΟΔΟΣ", "οδος"), ("Straße", "straße"), ("İ", "i\u0307"), ("Å", "å")]
)
def test_normalise(word, form):
    assert normalise(word) == form


# Keys -----------------------------------------------------------------------------------------------------------------


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
    assert read.keys.tolist() == [key_of(word) for word in spelled(read)]


def test_only_the_mask_has_its_key():
    read = read_words([f"a{MASK}ÿ", "\xff", "y"])
    assert (read.keys == MASK_KEY).tolist() == [False, True, False, False, False]


@given(st.lists(st.sampled_from(["a", "Bc", " ", "!", "<br />", "<i>", "<", ">", "x<3", "\n", "?"])).map("".join))
def test_places_in_plain_text_are_places_in_the_text(text):
    np.testing.assert_array_equal(read_words([text]).places, spans(text))
