"""Words and n-grams by the plainest means, and the strings to try them on."""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st
from scipy import sparse

from keytokens.text import MASK, Limits, Vocabulary, build
from keytokens.text.alphabet import IDEOGRAPHS, LETTERS, MARKS, SYMBOLS, Ranges
from keytokens.text.spill import Executor
from keytokens.text.words import Words, keys_of_slices


def character_class(*classes: Ranges) -> str:
    """The inside of a regular expression's [...] for these classes."""
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for ranges in classes for first, last in ranges)


letters, ideographs, marks = character_class(LETTERS), character_class(IDEOGRAPHS), character_class(MARKS)
WORD = re.compile(f"[{letters}][{letters}{marks}]*|[{ideographs}][{marks}]*|[{character_class(SYMBOLS)}{MASK}]|!+|[?]+")


def without_tags(text: str) -> str:
    """Tags and comments as blanks: what stands between a `<` and the next bracket decides."""
    at = text.find("<")
    while at >= 0:
        end = next((j for j in range(at + 1, len(text)) if text[j] in "<>"), None)
        if end is None:
            break
        if text[end] == ">" and is_tag(text[at + 1 : end]):
            text = text[:at] + " " * (end + 1 - at) + text[end + 1 :]
        at = text.find("<", at + 1)
    return text


def is_tag(body: str) -> bool:
    if body.startswith("!--"):
        return body.endswith("--") and len(body) >= 5
    body = body.removeprefix("/")
    name = body
    for space in " \t\r\n\f/":
        name = name.partition(space)[0]
    return name[:1].isalpha() and name.isascii() and name.replace("-", "a").isalnum()


def word_spans(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in WORD.finditer(without_tags(text))]


def words_of(text: str) -> list[str]:
    """The words of a text in order, masks included."""
    return [unicodedata.normalize("NFC", text[start:end].lower()) for start, end in word_spans(text)]


def ngrams_of(words: Sequence[str], least: int, most: int) -> Counter[tuple[str, ...]]:
    """How often each n-gram occurs; a mask is in none."""
    return Counter(
        gram
        for n in range(least, most + 1)
        for i in range(len(words) - n + 1)
        if MASK not in (gram := tuple(words[i : i + n]))
    )


def key_of(word: bytes) -> int:
    """The key of one word."""
    return int(keys_of_slices(word, np.zeros(1, np.intp), np.array([len(word)]))[0])


def spelled(words: Words) -> list[bytes]:
    """The words that were read, as UTF-8; a mask as its own byte."""
    ends = words.starts + words.sizes
    return [words.low[i:j] for i, j in zip(words.starts.tolist(), ends.tolist(), strict=True)]


def built(texts: Sequence[str], limits: Limits, run: Executor | None = None) -> tuple[Vocabulary, sparse.csr_matrix]:
    """The vocabulary of texts, and their counts."""
    found = build(texts, limits, run)
    return found.vocabulary, found.matrix()


# Characters and snippets between which words begin, end, join and vanish.
HOSTILE = [
    *["a", "B", "é", "e\u0301", "\u0301", "\u0323", "İ", "ı", "Σ", "σ", "ς", "ß", "ẞ", "J\u030c", "_", "0"],
    *["9", "²", "½", "٣", "Ａ", "漢", "字", "ひ", "が", "か\u3099", "カ", "ー", "々", "〇"],
    *["한", "\u1112\u1161\u11ab", "😀", "❤", "\ufe0f", "\u200d", "\u200c", "👩", "🏽", "🇫", "🇷", "©", "™"],
    *["\uf900", "\U00020000", "ﾊﾟ"],
    *["\U0001d15e", "\u212a", "\u212b", "\u2126", "कि", "\u093f", "ا", "\u064b", "ก", "\u0e31", "!", "!!", "?"],
    *["?!", "'", "’", "-", ".", ",", " ", "\t", "\r\n", "\n", "\0", "\x1c", "\x85", "\xa0", "\u2028", "\ufeff"],
    *["\u200b", "\u200f", "\u202e", "\u00ad", "\ud800", "\udfff", "\U0010ffff", "\u0378", "\xff", "\x7f", "<"],
    *[">", "/", "<br />", "<br/>", "<BR>", "</p>", "<p class='x'>", "<a", "<é>", "<3", "< b>", "<!--", "-->"],
    *["--", "<!---->", "<!-- x -->", "<b\t>", "<h1>", "<x-y>", "<x_y>", "</", "<!", "<a/", MASK, MASK * 2, "▉"],
    *['="', "x" * 9],
]
hostile_texts = st.lists(st.sampled_from(HOSTILE), max_size=12).map("".join)
any_texts = st.text(st.characters(), max_size=20)  # surrogates included
tag_texts = st.text("<>/!- ab1\n\fé", max_size=20)
texts = st.one_of(hostile_texts, any_texts, tag_texts)
