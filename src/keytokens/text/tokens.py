"""What a token is: the definition, and the two readers of it.

A *word* is a run of letters, digits and underscores with the combining marks on them; a Han or Hiragana character (with
its marks) is a word of its own; so is a symbol such as an emoji. Runs of `!` and of `?` are words too. HTML tags and
comments are not. A word's form is its lower case in composed form (NFC): `normalise(text[start:end])` is the word.

`MASK` stands for a word that has been hidden: it is never a token and no n-gram crosses it.

Reading is array arithmetic on code points: a class for each character, and a word wherever the class changes.
`spans` gives the places in one text. `canonical` rewrites texts so that plain byte classes find the same words in the
same order, which is what `words.py` needs to read thousands of texts at once.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .alphabet import IDEOGRAPHS, LETTERS, MARKS, SYMBOLS

__all__ = ["MASK", "MASK_BYTE", "canonical", "normalise", "spans"]

MASK = "\u2588"  # FULL BLOCK, exported as keytokens.MASK
MASK_BYTE = b"\xff"  # what `canonical` writes for it: a byte that no UTF-8 text holds

GAP, LETTER, BANG, QUESTION, ALONE, MARK = range(6)  # classes of characters; ALONE: a word of its own

_LAST = 0xFFFF  # no character; stands for all code points from here on

# [^<>] keeps every tag inside its own pair of brackets, so the search is linear whatever the text holds.
_TAG = r"</?[A-Za-z][A-Za-z0-9-]*(?:[ \t\r\n\f/][^<>]*)?>|<!--[^<>]*-->"
_tags = re.compile(_TAG)
_byte_tags = re.compile(_TAG.encode())


@functools.cache
def class_table() -> NDArray[np.uint8]:
    """The class of every code point."""
    table = np.zeros(0x110000, np.uint8)
    for ranges, kind in ((LETTERS, LETTER), (IDEOGRAPHS, ALONE), (SYMBOLS, ALONE), (MARKS, MARK)):
        for first, last in ranges:
            table[first : last + 1] = kind
    table[ord(MASK)] = ALONE
    table[ord("!")], table[ord("?")] = BANG, QUESTION
    return table


@functools.cache
def _takes_marks() -> NDArray[np.bool_]:
    """Which code points a mark may belong to: letters and ideographs, not symbols (an emoji's variation is no word)."""
    able = np.zeros(0x110000, np.bool_)
    for first, last in (*LETTERS, *IDEOGRAPHS):
        able[first : last + 1] = True
    return able


@functools.cache
def _simple_forms() -> NDArray[np.uint32]:
    """What stands for a code point whatever is beside it: a space, or the lower case of a letter. 0: that depends.

    A mark belongs to what stands before it, an ideograph or a symbol is a word of its own, and two capital letters are
    special: a sigma becomes another letter at the end of a word, an I with a dot becomes two characters.
    """
    kind = class_table()[: _LAST + 1]
    forms = np.where(kind == GAP, np.uint32(ord(" ")), np.uint32(0))
    letters = np.flatnonzero(kind == LETTER).astype(np.uint32)
    letters = letters[~np.isin(letters, (ord("\u03a3"), ord("\u0130")))]
    forms[letters] = _code_points(letters.tobytes().decode("utf-32-le").lower())
    forms[_LAST] = 0
    return forms


def _code_points(text: str) -> NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


def _segment(codes: NDArray[np.uint32]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Starts and ends of the words, in order."""
    kind = class_table()[codes]
    if (kind == MARK).any():
        # a mark is part of whatever stands before it: the class of the last character that is no mark
        base = np.maximum.accumulate(np.where(kind != MARK, np.arange(len(kind)), 0))
        inside = (kind == MARK) & (base < np.arange(len(kind))) & _takes_marks()[codes[base]]
        kind = np.where(kind == MARK, np.where(inside, kind[base], GAP), kind)
    else:
        inside = np.zeros(len(kind), np.bool_)
    previous = np.concatenate([[np.uint8(GAP)], kind[:-1]])
    fresh = (kind != previous) | ((kind == ALONE) & ~inside)  # a new run begins here
    begins = np.flatnonzero(fresh)
    ends = np.append(begins[1:], len(kind))
    is_word = kind[begins] != GAP
    return begins[is_word], ends[is_word]


def normalise(word: str) -> str:
    """The form under which a word is known.

    >>> normalise("Cafe\\u0301") == "caf\\u00e9"
    True
    """
    return unicodedata.normalize("NFC", word.lower())


def spans(text: str) -> NDArray[np.intp]:
    """(words, 2) start and end of every word of a text, masks included.

    >>> text = "Great!!<br />Not <3, though"
    >>> [normalise(text[start:end]) for start, end in spans(text).tolist()]
    ['great', '!!', 'not', '3', 'though']
    """
    if "<" in text:
        text = _tags.sub(lambda tag: " " * len(tag[0]), text)
    return np.stack(_segment(_code_points(text)), axis=1)


def canonical(texts: Sequence[str]) -> list[bytes]:
    """Each text as bytes in which words are runs of one byte class (see `words.py`); same words, same order.

    Plain ASCII stays as it is but for its tags. In other texts words get the lower case and the composition that each
    has alone; where it matters what stands beside them, the text becomes its words with spaces between them, because a
    space takes part in neither.
    """
    done = [_plain(text) if text.isascii() else b"" for text in texts]
    rest = [i for i, text in enumerate(texts) if not text.isascii()]
    if rest:
        for i, words in zip(rest, _rewritten([texts[i] for i in rest]), strict=True):
            done[i] = words
    return done


def _plain(text: str) -> bytes:
    raw = text.encode("ascii")
    if b"<" not in raw:
        return raw
    plain = raw.replace(b"<br />", b"      ")  # by far the most frequent tag: a plain replace costs next to nothing
    if b"<" not in plain:
        return plain
    return _byte_tags.sub(lambda tag: b" " * len(tag[0]), raw)  # from raw: in `<a <br />>` only the inner one is a tag


def _rewritten(texts: list[str]) -> list[bytes]:
    """Texts beyond ASCII: what is no letter becomes a space, letters get their lower case; the few others `_spaced`."""
    texts = [_tags.sub(" ", text) if "<" in text else text for text in texts]
    codes = _code_points("\n".join(texts)).copy()
    ends = np.cumsum([len(text) + 1 for text in texts], dtype=np.intp)
    beyond = np.flatnonzero(codes > 127)
    codes[beyond] = simple = _simple_forms()[np.minimum(codes[beyond], _LAST)]
    codes[codes == ord("\n")] = ord(" ")
    codes[ends[:-1] - 1] = ord("\n")
    words = unicodedata.normalize("NFC", codes.tobytes().decode("utf-32-le")).encode("utf-8").split(b"\n")
    special = np.unique(np.searchsorted(ends, beyond[simple == 0], side="right")).tolist()
    if special:
        for i, one in zip(special, _spaced([texts[i] for i in special]), strict=True):
            words[i] = one
    return words


def _spaced(texts: list[str]) -> list[bytes]:
    """The words of each text without tags, normalised, with spaces between them."""
    codes = _code_points("\n".join(texts))
    starts, ends = _segment(codes)
    inside = np.zeros(len(codes) + 1, np.int8)
    inside[starts] += 1
    inside[ends] -= 1  # where two words touch, the two cancel
    codes = np.where(np.cumsum(inside[:-1], dtype=np.int8) > 0, codes, np.uint32(ord(" ")))
    codes[np.cumsum([len(text) + 1 for text in texts[:-1]], dtype=np.intp) - 1] = ord("\n")
    touching = starts[1:][starts[1:] == ends[:-1]]
    codes = np.insert(codes, touching, ord(" "))
    words = normalise(codes.tobytes().decode("utf-32-le")).encode("utf-8").replace(MASK.encode(), MASK_BYTE)
    return words.split(b"\n")
