"""Texts to words, thousands at a time: bytes in, one 64-bit key a word out.

A word of up to eight bytes *is* its key; a longer one is hashed to 64 bits (two of a million long words collide with a
chance of about 1e-7).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..parallel import keep_freed_memory
from .tables import Keys
from .tokens import MASK_BYTE, canonical, class_table

__all__ = ["MASK_KEY", "Words", "key_of", "keys_of_slices", "read_words"]

if sys.byteorder != "little":  # pragma: no cover
    raise ImportError("keytokens reads words as little-endian integers; this machine is big-endian")

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

    def spelled(self, which: NDArray[np.intp] | slice = slice(None)) -> list[bytes]:
        """Some of the words, or all, as UTF-8; a mask as its own byte."""
        low, ends = self.low, self.starts + self.sizes
        return [low[i:j] for i, j in zip(self.starts[which].tolist(), ends[which].tolist(), strict=True)]


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


def key_of(word: bytes) -> int:
    """The key of one word.

    >>> hex(key_of(b"ab"))
    '0x6261'
    """
    return int(keys_of_slices(word, np.zeros(1, np.intp), np.array([len(word)]))[0])
