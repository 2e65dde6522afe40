"""Fewest words to keep so that no masking of the others makes the label lose, for occurrences counted one by one.

The words are read from left to right. For every number k of kept words there is a front of vectors: the opponent's
least sum for each run length. Keeping a word takes the entry "run 0" away from the opponent, leaving it free does
not. A vector that another one with the same k exceeds in every entry is dropped. For n <= 2 a front at word i has at
most i + 1 vectors.

The search for at most K words is cut by *responses*. Let the opponent mask from here on the words of a fixed set M, as
far as they are not kept. The sum that results is known, and q more kept words raise it by at most the q largest of d_j,
the supporting n-grams whose last word in M is j. If even that loses, the vector is dropped. Two responses: mask
nothing, and the best mask against no kept words at all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import accumulate
from operator import add, ge, itemgetter

import numpy as np

from keytokens.certificate.programme import Programme, advanced, cheapest_mask
from keytokens.certificate.votes import BoolArray, FloatArray

__all__ = ["Keeping", "fewest_kept_words"]

VECTORS = 40_000  # work limit: vectors extended in one search, well under a second

Link = tuple["Link", int] | None  # kept words, last first
Vector = tuple[list[float], Link]
Key = tuple[int, int]  # kept words, and what is known of them: see _Holding
Fronts = dict[Key, list[Vector]]


@dataclass(frozen=True)
class Keeping:
    words: tuple[int, ...] | None
    complete: bool  # the search was not cut short: without `words` there is no set within the limit


@dataclass(frozen=True, eq=False)
class _Holding:
    """The rule that the kept words must spell a known n-gram by themselves.

    Needed only where the label wins ties and an empty document has no score; otherwise a set that wins spells one
    anyway. The tag of a set is the length of its own last run until it spells something known, then DONE.
    """

    programme: Programme
    needed: bool
    DONE = -1

    def start(self) -> int:
        return 0 if self.needed else self.DONE

    def free(self, tag: int) -> int:
        return tag if tag == self.DONE else 0

    def kept(self, tag: int, i: int) -> int:
        if tag == self.DONE or self.programme.known[i, tag]:
            return self.DONE
        return min(tag + 1, self.programme.order - 1)


def fewest_kept_words(programme: Programme, most: int) -> Keeping:
    """Fewest words, at most `most`, that no masking of the others can overcome."""
    holding = _Holding(programme, not programme.strict and not programme.may_empty)
    responses = [_Response.of(programme, mask, most) for mask in (cheapest_mask(programme), ())]
    start = [programme.constant] + [math.inf] * (programme.order - 1)
    fronts: Fronts = {(0, holding.start()): [(start, None)]}
    work = 0
    for i, row in enumerate(programme.rows):
        work += sum(map(len, fronts.values()))
        if work > VECTORS:
            return Keeping(None, False)
        fronts = _extended(fronts, i, row, most, holding)
        for one in responses:
            fronts = _hopeful(fronts, programme, one.ahead[i + 1], one.raised[i + 1], most)
        fronts = {key: _undominated(vectors) for key, vectors in fronts.items()}
    return Keeping(_smallest(fronts, programme), True)


def _extended(fronts: Fronts, i: int, row: list[float], most: int, holding: _Holding) -> Fronts:
    new: Fronts = {}
    for (k, tag), vectors in fronts.items():
        free = new.setdefault((k, holding.free(tag)), [])
        kept = new.setdefault((k + 1, holding.kept(tag, i)), []) if k < most else None
        for sums, words in vectors:
            stay = advanced(sums, row)
            if kept is not None:
                kept.append((stay, (words, i)))
            free.append(([min(min(sums), stay[0]), *stay[1:]], words))
    return new


def _hopeful(fronts: Fronts, programme: Programme, ahead: list[float], raised: list[float], most: int) -> Fronts:
    """The vectors that do not lose to this response."""
    out: Fronts = {}
    for key, vectors in fronts.items():
        rest = raised[most - key[0]]
        if programme.strict:
            alive = [v for v in vectors if min(map(add, v[0], ahead)) + rest > programme.slack]
        else:
            alive = [v for v in vectors if min(map(add, v[0], ahead)) + rest >= -programme.slack]
        if alive:
            out[key] = alive
    return out


def _undominated(vectors: list[Vector]) -> list[Vector]:
    if len(vectors) == 1:
        return vectors
    front: list[Vector] = []
    for v in sorted(vectors, key=itemgetter(0), reverse=True):
        for o in front:
            if all(map(ge, o[0], v[0])):
                break
        else:
            front.append(v)
    return front


@dataclass(frozen=True, eq=False)
class _Response:
    """What the opponent gets by masking a fixed set of words from word i on."""

    ahead: list[list[float]]  # [i][r]: sum of the words from i on when the run before them is r
    raised: list[list[float]]  # [i][q]: the most that q kept words from i on add to it

    @classmethod
    def of(cls, programme: Programme, mask: tuple[int, ...], most: int) -> _Response:
        masked = np.zeros(programme.length, dtype=bool)
        masked[list(mask)] = True
        return cls(_ahead(programme, masked.tolist()), _raised(_revived(programme, masked), most))


def _ahead(programme: Programme, masked: list[bool]) -> list[list[float]]:
    n = programme.order
    ahead = [[0.0] * n]
    for row, gone in zip(reversed(programme.rows), reversed(masked), strict=True):
        later = ahead[-1]
        if gone:
            ahead.append([later[0]] * n)
        else:
            ahead.append([row[r] + later[min(r + 1, n - 1)] for r in range(n)])
    return ahead[::-1]


def _revived(programme: Programme, masked: BoolArray) -> FloatArray:
    """(L,) d_j: votes of the supporting n-grams whose last masked word is j; none of them is back before j is kept."""
    last = np.full(len(programme.first), -1)
    for offset in range(programme.order):
        word = programme.first + np.minimum(offset, programme.size - 1)
        last = np.where(masked[word], word, last)
    counts = (last >= 0) & (programme.vote > 0)
    return np.bincount(last[counts], weights=programme.vote[counts], minlength=programme.length).astype(np.float64)


def _raised(gains: FloatArray, most: int) -> list[list[float]]:
    """[i][q]: sum of the q largest entries from i on."""
    top: list[float] = []
    out = [[0.0] * (most + 1)]
    for gain in reversed(gains.tolist()):
        if most and gain > 0 and (len(top) < most or gain > top[-1]):
            top = sorted([*top, gain], reverse=True)[:most]
            sums = [0.0, *accumulate(top)]
            out.append(sums + sums[-1:] * (most + 1 - len(sums)))
        else:
            out.append(out[-1])
    return out[::-1]


def _smallest(fronts: Fronts, programme: Programme) -> tuple[int, ...] | None:
    winners = [
        (k, sums, words)
        for (k, tag), vectors in fronts.items()
        for sums, words in vectors
        if tag == _Holding.DONE and not programme.loses(min(sums))
    ]
    if not winners:
        return None
    # fewest words; among them the one that leaves the opponent least
    _, _, words = min(winners, key=lambda one: (one[0], -min(one[1])))
    found = []
    while words is not None:
        words, i = words
        found.append(i)
    return tuple(reversed(found))
