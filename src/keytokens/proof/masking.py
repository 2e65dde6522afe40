"""Masking words as a walk along the text: exact programmes for occurrences that are counted one by one.

An n-gram that ends at word i survives iff the unmasked run that ends at i is at least as long. So the only state is
the run length, capped at n - 1, and what a word adds is A_i(r), the votes of the n-grams that end at i and have at
most r + 1 words:

    mask word i:  (run r, m masks) -> (run 0, m + 1 masks), adds 0
    keep word i:  (run r, m masks) -> (run min(r + 1, n - 1), m masks), adds A_i(r)

Fewest words to keep so that no masking of the others makes the label lose, for occurrences counted one by one.

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
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from operator import add, ge, itemgetter

import numpy as np

from .votes import BoolArray, FloatArray, IntArray

CELLS = 4_000_000  # largest table of sums (32 MB); beyond it prices give bounds
STEPS = 4_000_000  # words read while a price is sought: very long texts get looser bounds, not longer waits
FIRST_LIMIT = 16  # masks tried at first; most texts need fewer


@dataclass(frozen=True, eq=False)
class Programme:
    """The votes of the n-grams of one text for the label against one rival, each occurrence for itself."""

    length: int
    first: IntArray  # (O,) first word of each occurrence
    size: IntArray  # (O,) number of its words
    vote: FloatArray  # (O,) what it adds while it survives
    constant: float  # what is there under every mask
    strict: bool  # the rival wins ties
    slack: float  # sums this close to 0 are ties
    may_empty: bool  # a mask may leave no known n-gram

    @property
    def order(self) -> int:
        """n, the most words an n-gram has."""
        return int(self.size.max(initial=1))

    @cached_property
    def gain(self) -> FloatArray:
        """(L, n) A_i(r)."""
        table = np.zeros((self.length, self.order))
        np.add.at(table, (self.first + self.size - 1, self.size - 1), self.vote)
        total: FloatArray = table.cumsum(axis=1)
        return total

    @cached_property
    def known(self) -> BoolArray:
        """(L, n) some n-gram ends at word i and has at most r + 1 words."""
        table = np.zeros((self.length, self.order), dtype=bool)
        table[self.first + self.size - 1, self.size - 1] = True
        return np.logical_or.accumulate(table, axis=1)

    @cached_property
    def rows(self) -> list[list[float]]:
        rows: list[list[float]] = self.gain.tolist()
        return rows

    def loses(self, total: float) -> bool:
        return total <= self.slack if self.strict else total < -self.slack

    def near(self, total: float) -> bool:
        return self.slack > 0 and abs(total) <= self.slack


@dataclass(frozen=True)
class Masking:
    """An answer about masks: which words, below which number nothing works, and whether the search was complete."""

    words: tuple[int, ...] | None  # None: no mask found
    lower: int  # no mask of fewer words makes the label lose
    complete: bool  # the search left nothing out: `words` is a minimum, or there is no mask at all
    tight: bool


def fewest_masks(programme: Programme, most: int) -> Masking:
    """Fewest masked words, at most `most`, that make the label lose; something known survives if it must.

    All masks of m = 1, 2, ... words are compared, so the first m that loses is the minimum. Where the rival wins ties
    an empty rest (sum 0) would lose too; only if the best mask leaves one is the bit "something known survives" needed.
    """
    most = min(most, programme.length)
    if programme.order == 1 or programme.slack == 0:
        return _by_table(programme, most, 1)
    rows: list[FloatArray] = []
    tight = False
    for m, row in enumerate(_rows(programme, most)):
        if len(rows) * row.size > CELLS:
            return Masking(None, max(m, 1), False, tight)
        rows.append(row)
        best = float(row[:, -1].min())
        tight = tight or (m > 0 and programme.near(best))
        if m > 0 and programme.loses(best):
            words = _traced_rows(programme, rows)
            if _bits(programme) == 1 or _survives(programme, words):
                return Masking(words, m, True, tight)
            return _by_table(programme, most, m)
    return Masking(None, most + 1, True, tight)


def _rows(programme: Programme, most: int) -> Iterator[FloatArray]:
    """For m = 0, 1, ...: (n, L + 1) least sum of the first i words with m masks, by run length, empty rests included.

    All words at once: every run but the longest comes from the run before it, and the longest one either begins here or
    goes on, which is a running minimum once the sum of what always goes on is taken out.
    """
    gain, n = programme.gain, programme.order
    going_on = np.cumsum(gain[:, n - 1])
    before = np.full(programme.length + 1, math.inf)
    for m in range(most + 1):
        row = np.full((n, programme.length + 1), math.inf)
        row[0, 1:] = before[:-1]
        if m == 0:
            row[0, 0] = programme.constant
        for r in range(1, n - 1):
            row[r, 1:] = row[r - 1, :-1] + gain[:, r - 1]
        begins = row[n - 2, :-1] + gain[:, n - 2]
        row[n - 1, 1:] = np.minimum.accumulate(begins - going_on) + going_on
        before = row.min(axis=0)
        yield row


def _traced_rows(programme: Programme, rows: list[FloatArray]) -> tuple[int, ...]:
    """The mask behind the best end of the last row."""
    gain, n = programme.gain, programme.order
    m, words = len(rows) - 1, []
    run = int(rows[m][:, -1].argmin())
    for i in range(programme.length - 1, -1, -1):
        if run == 0:
            words.append(i)
            m -= 1
            run = int(rows[m][:, i].argmin())
        elif run == n - 1:
            begins, goes_on = rows[m][n - 2, i] + gain[i, n - 2], rows[m][n - 1, i] + gain[i, n - 1]
            run = n - 1 if goes_on <= begins else n - 2
        else:
            run -= 1
    return tuple(reversed(words))


def _survives(programme: Programme, mask: tuple[int, ...]) -> bool:
    """Some known n-gram has no masked word."""
    masked = np.zeros(programme.length, dtype=bool)
    masked[list(mask)] = True
    before = np.concatenate([[0], np.cumsum(masked)])
    return bool(np.any(before[programme.first + programme.size] == before[programme.first]))


def _by_table(programme: Programme, most: int, lower: int) -> Masking:
    """The same, word by word, with the bit "something known survives" where it is needed and no subtraction."""
    tight = False
    for limit in _limits(programme, most):
        table = _sweep(programme, limit)
        ends = table[-1, -1].min(axis=0)
        for m in range(lower, limit + 1):
            tight = tight or programme.near(float(ends[m]))
            if programme.loses(float(ends[m])):
                return Masking(_traced(programme, table, m), m, True, tight)
        lower = max(lower, limit + 1)
    return Masking(None, lower, lower > most, tight)


def _limits(programme: Programme, most: int) -> Iterator[int]:
    """How many masks to allow, growing while the table fits."""
    limit = 0
    while limit < most:
        limit = min(max(FIRST_LIMIT, 4 * limit), most)
        if _bits(programme) * programme.order * (programme.length + 1) * (limit + 1) > CELLS:
            return
        yield limit


def _bits(programme: Programme) -> int:
    return 2 if programme.strict and not programme.may_empty else 1


def _sweep(programme: Programme, limit: int) -> FloatArray:
    """(L + 1, bits, n, limit + 1): least sum of the first i words, by survival of something known, run, masks."""
    n, bits = programme.order, _bits(programme)
    table = np.full((programme.length + 1, bits, n, limit + 1), math.inf)
    table[0, 0, 0, 0] = programme.constant
    gains = programme.gain[:, :, None]
    known = programme.known
    something = known[:, -1].tolist()
    for i in range(programme.length):
        old, new = table[i], table[i + 1]
        kept = old + gains[i]
        if bits == 2 and something[i]:
            here = known[i]
            kept[1, here] = np.minimum(kept[0, here], kept[1, here])
            kept[0, here] = math.inf
        if n == 1:
            new[:] = kept
        else:
            new[:, 1:] = kept[:, :-1]
            np.minimum(new[:, -1], kept[:, -1], out=new[:, -1])
        np.minimum(new[:, 0, 1:], old.min(axis=1)[:, :-1], out=new[:, 0, 1:])
    return table


def _traced(programme: Programme, table: FloatArray, m: int) -> tuple[int, ...]:
    """The mask behind the best sum with m masks: the same additions are redone, so equality is exact."""
    bit = table.shape[1] - 1
    run = int(table[-1, bit, :, m].argmin())
    words = []
    for i in range(programme.length - 1, -1, -1):
        bit, run, masked = _step_back(programme, table, i, (bit, run, m))
        if masked:
            words.append(i)
            m -= 1
    return tuple(reversed(words))


def _step_back(programme: Programme, table: FloatArray, i: int, state: tuple[int, int, int]) -> tuple[int, int, bool]:
    bit, run, m = state
    value, old, n = table[i + 1, bit, run, m], table[i], programme.order
    for r in range(n):
        if min(r + 1, n - 1) != run:
            continue
        before = range(bit + 1) if bit == 1 and programme.known[i, r] else range(bit, bit + 1)
        for b in before:
            if old[b, r, m] + programme.gain[i, r] == value:
                return b, r, False
    return bit, int(old[bit, :, m - 1].argmin()), True


def least_sum(programme: Programme, kept: BoolArray | list[bool]) -> float:
    """Least sum over all masks that spare the words `kept`: the programme without a count of masks."""
    if programme.order == 3:
        return _least_sum_triples(programme, kept)
    sums = [programme.constant] + [math.inf] * (programme.order - 1)
    for row, stays in zip(programme.rows, kept, strict=True):
        lowest = math.inf if stays else min(sums)
        sums = advanced(sums, row)
        if lowest < sums[0]:
            sums[0] = lowest
    return min(sums)


def _least_sum_triples(programme: Programme, kept: BoolArray | list[bool]) -> float:
    """The same for n = 3, the usual case, written out: the last word masked, one word after a mask, two or more."""
    masked, one, more = programme.constant, math.inf, math.inf
    for (alone, second, third), stays in zip(programme.rows, kept, strict=True):
        lowest = masked if masked < one else one
        lowest = lowest if lowest < more else more
        begun, gone_on = one + second, more + third
        one = masked + alone
        more = begun if begun < gone_on else gone_on
        masked = math.inf if stays else lowest
    return min(masked, one, more)


def advanced(sums: list[float], row: list[float]) -> list[float]:
    """Least sums per run length after a word that is not masked."""
    if len(sums) == 1:
        return [sums[0] + row[0]]
    if len(sums) == 3:  # the usual case, written out
        begun, gone_on = sums[1] + row[1], sums[2] + row[2]
        return [math.inf, sums[0] + row[0], begun if begun < gone_on else gone_on]
    kept = [s + a for s, a in zip(sums, row, strict=True)]
    return [math.inf, *kept[:-2], min(kept[-2:])]


def priced_masks(programme: Programme) -> Masking:
    """Bounds for texts too long for the table: a price per masked word instead of a count.

    For a price z > 0 let G(z) be the least sum plus z times the number of masks. A mask of m words has a sum of at
    least G(z) - z m, so it cannot lose while m < G(z) / z: a lower bound for every z. A mask found on the way that
    loses is an upper bound. If no opponent has two words or more, the least sum is convex in m and the two meet at
    the best price.
    """
    low, high = 1e-300, max(1e-299, 2.0 * float(np.abs(programme.vote).sum()))
    best: tuple[int, ...] | None = None
    lower = 1
    for _ in range(max(4, min(40, STEPS // max(1, programme.length)))):
        price = math.sqrt(low) * math.sqrt(high)
        cost, words = _priced(programme, price)
        # sums within the slack count as lost, and the quotient carries rounding: only a bound that clears both counts
        needed = (cost - programme.slack) / price * (1.0 - 1e-9) - 1e-6
        lower = max(lower, math.ceil(min(needed, programme.length + 1)))
        if programme.loses(cost - price * len(words)):
            low = price
            if words and (best is None or len(words) < len(best)):
                best = words
        else:
            high = price
    complete = lower > programme.length if best is None else len(best) == lower
    return Masking(best, lower, complete, False)


def _priced(programme: Programme, price: float) -> tuple[float, tuple[int, ...]]:
    """Least sum plus price times masks, and its mask: the walk with run lengths only."""
    n = programme.order
    sums = [programme.constant] + [math.inf] * (n - 1)
    trail: list[tuple[int, int]] = []  # per word: the run to mask from, and which of the two longest runs was extended
    for row in programme.rows:
        source = min(range(n), key=sums.__getitem__)
        masked = sums[source] + price
        kept = [s + a for s, a in zip(sums, row, strict=True)]
        if n == 1:
            trail.append((source, int(masked < kept[0])))
            sums = [min(masked, kept[0])]
        else:
            longest = n - 1 if kept[-1] <= kept[-2] else n - 2
            trail.append((source, longest))
            sums = [masked, *kept[:-2], kept[longest]]
    run = min(range(n), key=sums.__getitem__)
    return sums[run], _walked_back(trail, run, n)


def cheapest_mask(programme: Programme) -> tuple[int, ...]:
    """A mask with the least sum of all."""
    return _priced(programme, 0.0)[1]


def _walked_back(trail: list[tuple[int, int]], run: int, n: int) -> tuple[int, ...]:
    words = []
    for i in range(len(trail) - 1, -1, -1):
        source, choice = trail[i]
        if choice if n == 1 else run == 0:
            words.append(i)
            run = source
        elif n > 1:
            run = choice if run == n - 1 else run - 1
    return tuple(reversed(words))


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
