"""What a token is: the definition, and the two readers of it.

A *word* is a run of letters, digits and underscores with the combining marks on them; a Han or Hiragana character (with
its marks) is a word of its own; so is a symbol such as an emoji. Runs of `!` and of `?` are words too. HTML tags and
comments are not. A word's form is its lower case in composed form (NFC): `normalise(text[start:end])` is the word.

`MASK` stands for a word that has been hidden: it is never a token and no n-gram crosses it.

Reading is array arithmetic: a class for each character, and a word wherever the class changes. `spans` gives the
places of the words in one text. `read_words` reads thousands of texts at once: `canonical` rewrites them as bytes that
have the same words in the same order, and each word gets a 64-bit key. A word of up to eight bytes *is* its key; a
longer one is hashed (two of a million long words collide with a chance of about 1e-7).
"""

from __future__ import annotations

import functools
import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base.memory import keep_freed_memory
from .alphabet import IDEOGRAPHS, LETTERS, MARKS, SYMBOLS
from .hashing import Keys

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
    """Each text as bytes in which words are runs of one class of bytes; same words, same order.

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


if sys.byteorder != "little":  # pragma: no cover
    raise ImportError("keytokens reads words as little-endian integers; this machine is big-endian")

CHARACTERS = 1 << 19  # of a block: its arrays stay in the cache, and Python's own part of the work is small
MOST_TEXTS = 1 << 14  # of a block

MASK_KEY = np.uint64(MASK_BYTE[0])

_CLASS = np.concatenate([class_table()[:128], np.ones(128, np.uint8)]).tobytes()  # beyond ASCII all bytes are letters
_KEEP = np.array([(1 << 8 * size) - 1 for size in range(8)] + [2**64 - 1], np.uint64)  # the low bytes of a key
_LONG = np.uint64(1 << 63)
_HUGE = 4096  # bytes
# the constants of `_mix`, as arrays: with a few words at a time, half of its time went to wrapping plain numbers
_SHIFTS = np.array(32, np.uint64), np.array(29, np.uint64)
_FACTORS = tuple(np.array(f, np.uint64) for f in (0xD6E8FEB86659FD93, 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F))


@dataclass(frozen=True, eq=False)
class Words:
    """The words of some texts, in order."""

    keys: Keys  # (words,)
    ends: NDArray[np.intp]  # (texts,) words up to the end of each text
    low: bytes  # the bytes that were read, lower case
    starts: NDArray[np.signedinteger[Any]]  # (words,) place in `low`
    sizes: NDArray[np.signedinteger[Any]]  # (words,) bytes

    @property
    def places(self) -> NDArray[np.signedinteger[Any]]:
        """(words, 2) start and end of every word in what was read; of one plain ASCII text, in the text itself."""
        both = np.empty((len(self.starts), 2), self.starts.dtype)
        both[:, 0] = self.starts
        np.add(self.starts, self.sizes, out=both[:, 1])
        return both


def blocks(texts: Iterable[str]) -> Iterator[list[str]]:
    """Consecutive texts with about CHARACTERS together, and no more than MOST_TEXTS of them."""
    block: list[str] = []
    left = CHARACTERS
    for text in texts:
        block.append(text)
        left -= len(text)
        if left <= 0 or len(block) == MOST_TEXTS:
            yield block
            block, left = [], CHARACTERS
    if block:
        yield block


def read_words(texts: Sequence[str]) -> Words:
    """Every word of every text."""
    keep_freed_memory()
    parts = canonical(texts)
    joined = b"\n".join(parts)
    kinds = np.frombuffer(joined.translate(_CLASS), np.uint8)
    within = kinds != 0  # a word
    bounds = np.empty(len(kinds) + 1, np.bool_)  # where a run of one class begins, and the end of all
    bounds[:1], bounds[-1] = True, True
    np.not_equal(kinds[1:], kinds[:-1], out=bounds[1:-1])
    starts = (bounds[:-1] & within).nonzero()[0]
    sizes = (bounds[1:] & within).nonzero()[0]  # the last byte of each word
    sizes -= starts
    sizes += 1
    low = _lower(joined)
    text_ends = np.cumsum([len(part) + 1 for part in parts], dtype=np.intp)
    return Words(keys_of_slices(low, starts, sizes), np.searchsorted(starts, text_ends), low, starts, sizes)


def _lower(letters: bytes) -> bytes:
    """As `bytes.lower`, which would keep other threads waiting."""
    codes = np.frombuffer(letters, np.uint8)
    capital = codes - np.uint8(ord("A")) < 26
    return (codes | (capital.view(np.uint8) << np.uint8(5))).tobytes()


def keys_of_slices(low: bytes, starts: NDArray[np.intp], sizes: NDArray[np.intp]) -> Keys:
    """The key of each slice of `low`."""
    # eight bytes from any place: a view that advances by one byte, over a buffer with room at its end
    padded = low + bytes(8)
    eight = np.ndarray((len(padded) - 7,), "<u8", padded, strides=(1,))
    keys: Keys = eight[starts]
    keys &= _KEEP[np.minimum(sizes, 8)]
    huge = (sizes > _HUGE).nonzero()[0]
    for at in huge.tolist():  # one by one: eight bytes at a time would take a second for every few hundred kilobytes
        word = low[starts[at] : starts[at] + sizes[at]]
        keys[at] = np.uint64(int.from_bytes(blake2b(word, digest_size=8).digest(), "little")) | _LONG
    long = ((sizes > 8) & (sizes <= _HUGE)).nonzero()[0]
    if len(long):
        place, left, hashed = starts[long], sizes[long], keys[long]
        some: NDArray[np.intp] | slice = slice(None)
        more = np.ones(len(long), np.bool_)
        while more.any():
            place, left = place[more] + 8, left[more] - 8
            chunk = eight[place] & _KEEP[np.minimum(left, 8)]
            hashed[some] = _mix(hashed[some], chunk)
            more = left > 8
            some = more.nonzero()[0] if isinstance(some, slice) else some[more]
        keys[long] = _mix(hashed, sizes[long].astype(np.uint64)) | _LONG
    return keys


def _mix(state: Keys, chunk: Keys) -> Keys:
    """Thrice: fold the high bits onto the low ones and multiply; the chunk is added before the last fold."""
    (far, near), (one, two, three) = _SHIFTS, _FACTORS
    mixed: Keys = state >> far
    mixed ^= state
    mixed *= one
    again: Keys = mixed >> near
    again ^= mixed
    again *= two
    again += chunk
    np.right_shift(again, far, out=mixed)
    mixed ^= again
    mixed *= three
    return mixed
