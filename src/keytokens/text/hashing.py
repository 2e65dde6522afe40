"""Hash tables of 64-bit keys as whole-array operations: number distinct keys, and look keys up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.uint64]
Ids = NDArray[np.int32]

# arrays: with a few keys at a time, much of the time went to wrapping plain numbers
_FOLD = np.array(29, np.uint64)
_MULTIPLIERS = tuple(
    np.array(f, np.uint64) for f in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0xD6E8FEB86659FD93, 0xA0761D6478BD642F)
)


def _slots(keys: Keys, bits: int, turn: int) -> NDArray[np.int64]:
    """Multiply and keep the high bits; the fold first, so that keys that differ only in high bits part ways too."""
    mixed: Keys = keys >> _FOLD
    mixed ^= keys
    mixed *= _MULTIPLIERS[turn % len(_MULTIPLIERS)]
    mixed >>= np.uint64(64 - bits)
    return mixed.view(np.int64)


def factorise(keys: Keys) -> tuple[NDArray[np.intp], Ids]:
    """Number the distinct keys: (where each first-numbered key stands, the number of every key).

    Every key writes its place into a table and reads back who won the slot; a key that finds its equal there takes the
    winner's number, the others go round again with another hash.

    >>> where, number = factorise(np.array([7, 9, 7, 7], np.uint64))
    >>> bool((np.array([7, 9, 7, 7])[where][number] == [7, 9, 7, 7]).all()), len(where)
    (True, 2)
    """
    bits = max(8, len(keys).bit_length())
    table = np.empty(1 << bits, np.int32)
    winner = np.empty(len(keys), np.int32)
    left: NDArray[np.intp] | slice = slice(None)
    places, some = np.arange(len(keys), dtype=np.int32), keys
    turn = 0
    while len(some):
        slots = _slots(some, bits, turn)
        table[slots] = places
        found = table[slots]
        winner[left] = found
        missed = np.flatnonzero(keys[found] != some)
        places, some, turn = places[missed], some[missed], turn + 1
        left = places.astype(np.intp)
    is_first = np.zeros(len(keys), np.bool_)
    is_first[winner] = True
    number = np.cumsum(is_first, dtype=np.int32) - np.int32(1)
    return np.flatnonzero(is_first), number[winner]


@dataclass(frozen=True, eq=False)
class KeyTable:
    """Distinct keys to numbers: keys[i] has the number `start` + i. Open addressing, a quarter full at most."""

    keys: Keys
    places: Ids  # (slots,) of a key in `keys`, -1 where the slot is empty
    bits: int
    start: int

    @classmethod
    def build(cls, keys: Keys, start: int = 0) -> KeyTable:
        bits = max(4, (4 * len(keys)).bit_length())
        places = np.full(1 << bits, -1, np.int32)
        slots, left = _slots(keys, bits, 0), np.arange(len(keys), dtype=np.int32)
        while len(left):
            free = np.flatnonzero(places[slots] < 0)
            places[slots[free]] = left[free]  # several may write here: the last one stays
            lost = np.flatnonzero(places[slots] != left)
            left, slots = left[lost], (slots[lost] + 1) & ((1 << bits) - 1)
        return cls(keys if len(keys) else np.zeros(1, np.uint64), places, bits, start)  # keys[-1] must be there

    def __reduce__(self) -> tuple[Any, ...]:
        """To another process go the keys alone."""
        return KeyTable.build, (self.keys if (self.places >= 0).any() else self.keys[:0], self.start)

    def find(self, keys: Keys) -> Ids:
        """The number of each key, -1 where it is unknown."""
        slots = _slots(keys, self.bits, 0)
        places = self.places[slots]
        taken = self.keys[places] != keys
        taken &= places >= 0  # another key sits here: try the next slot
        on = taken.nonzero()[0]
        slots, wanted = slots[on], keys[on]
        while len(on):
            slots += 1
            slots &= (1 << self.bits) - 1
            found = self.places[slots]
            places[on] = found
            taken = self.keys[found] != wanted
            taken &= found >= 0
            on, slots, wanted = on[taken], slots[taken], wanted[taken]
        if self.start:
            np.add(places, np.int32(self.start), out=places, where=places >= 0)
        return places
