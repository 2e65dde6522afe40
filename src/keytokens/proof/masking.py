"""Fewest words to mask so that the label loses, fewest to keep so that it cannot, for occurrences counted one by one.

Masking: the least sums for 1, 2, ... masked words, so the first number that loses is the minimum. In texts too long
for that a price per masked word gives bounds.

Keeping: the words are read from left to right. For every number k of kept words there is a front of vectors: the
opponent's least sum for each run length. Keeping a word takes the entry "run 0" away from the opponent, leaving it
free does not. A vector that another one with the same k exceeds in every entry is dropped. For n <= 2 a front at word
i has at most i + 1 vectors.

The search for at most K words is cut by a *response*. Let the opponent mask from here on the words of a fixed set M, as
far as they are not kept. The sum that results is known, and q more kept words raise it by at most the q largest of d_j,
the supporting n-grams whose last word in M is j. If even that loses, the vector is dropped. M is the best mask against
no kept words at all. A word without supporting n-grams need not be kept: no opponent gains by masking it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from operator import add, ge, itemgetter

import numpy as np

from .program import RunLengthProgram, flags, over, stayed
from .votes import BoolArray, FloatArray

CELLS = 4_000_000  # largest table of sums (32 MB); beyond it prices give bounds
STEPS = 4_000_000  # words read while a price is sought: very long texts get looser bounds, not longer waits
VECTORS = 40_000  # work limit: vectors extended in one search, well under a second


@dataclass(frozen=True)
class Search:
    """The words that a search found, and what is known where it found none."""

    words: tuple[int, ...] | None
    lower: int  # no set of fewer words does it
    complete: bool  # nothing was left out: `words` is a minimum, or there is no such set within the limit
    tight: bool = False  # a comparison hangs on rounding


def fewest_masks(program: RunLengthProgram, most: int) -> Search:
    """Fewest masked words, at most `most`, that make the label lose; something known survives if it must.

    Where the rival wins ties, an empty rest (sum 0) would lose too. If the best mask leaves one although it must not,
    some n-gram has to be spared: each that a losing rest can hold is tried.
    """
    most = min(most, program.length)
    if program.slack == 0:  # nobody opposes: the label loses a tie, where nothing of its own survives
        if not program.strict:
            return Search(None, most + 1, True)
        program = replace(program, vote=np.sign(program.vote), constant=float(np.sign(program.constant)))
    found = _masks_from(program, 1, most, ())
    if found.words is None or program.may_empty or program.survives(found.words):
        return found
    words, answers = None, [Search(None, most + 1, True, found.tight)]
    for o in np.flatnonzero(program.vote <= max(program.slack - program.constant, 0.0)).tolist():
        spared = range(program.first[o], program.first[o] + program.size[o])
        answers.append(_masks_from(program, found.lower, most, spared))
        if answers[-1].words is not None:
            words, most = answers[-1].words, answers[-1].lower - 1
    complete, tight = all(one.complete for one in answers), any(one.tight for one in answers)
    return Search(words, min(one.lower for one in answers), complete, tight)


def _masks_from(program: RunLengthProgram, least: int, most: int, spared: Sequence[int]) -> Search:
    """Fewest masks, from `least` to `most`, that make the label lose, without masking the words `spared`."""
    change = np.zeros(program.length)
    change[list(spared)] = math.inf
    tables: list[FloatArray] = []
    tight = False
    for m, sums in enumerate(program.counted(change, most)):
        if len(tables) * sums.size > CELLS:
            return Search(None, max(m, 1), False, tight)
        tables.append(sums)
        best = float(sums[-1].min())
        if m >= least:
            tight = tight or program.near(best)
            if program.loses(best):
                return Search(program.changed(tables), m, True, tight)
    return Search(None, most + 1, True, tight)


def priced_masks(program: RunLengthProgram) -> Search:
    """Bounds for texts too long for the table: a price per masked word instead of a count.

    For a price z > 0 let G(z) be the least sum plus z times the number of masks. A mask of m words has a sum of at
    least G(z) - z m, so it cannot lose while m < G(z) / z: a lower bound for every z. A mask found on the way that
    loses is an upper bound. If no opponent has two words or more, the least sum is convex in m and the two meet at
    the best price.
    """
    low, high = 1e-300, max(1e-299, 2.0 * float(np.abs(program.vote).sum()))
    best: tuple[int, ...] | None = None
    lower = 1
    for _ in range(max(4, min(40, STEPS // max(1, program.length)))):
        price = math.sqrt(low) * math.sqrt(high)
        table = program.walked([price] * program.length)
        cost, words = min(table[-1]), program.changed([table])
        # sums within the slack count as lost, and the quotient carries rounding: only a bound that clears both counts
        needed = (cost - program.slack) / price * (1.0 - 1e-9) - 1e-6
        lower = max(lower, math.ceil(min(needed, program.length + 1)))
        if program.loses(cost - price * len(words)):
            low = price
            if words and (best is None or len(words) < len(best)):
                best = words
        else:
            high = price
    return Search(best, lower, lower > program.length if best is None else len(best) == lower)


Link = tuple["Link", int] | None  # kept words, last first
Vector = tuple[list[float], Link]
Key = tuple[int, int]  # kept words, and what they spell: see `_spelled`
Fronts = dict[Key, list[Vector]]
DONE = -1  # the kept words spell something known by themselves, or need not


def fewest_kept_words(program: RunLengthProgram, most: int) -> Search:
    """Fewest words, at most `most`, that no masking of the others can overcome.

    Where the label wins ties and an empty document has no score, the kept words must spell a known n-gram by
    themselves; otherwise a set that wins spells one anyway.
    """
    must_spell = not (program.strict or program.may_empty)
    helps = np.where(must_spell, 1.0, program.vote > 0)
    useful = over(helps, program.first, program.size, program.length) > 0
    masked = flags(program.changed([program.walked([0.0] * program.length)]), program.length)
    ahead, raised = _ahead(program, masked.tolist()), _raised(program, masked, most)
    fronts: Fronts = {(0, 0 if must_spell else DONE): [(program.start, None)]}
    work = 0
    for i, limit in enumerate(np.where(useful, most, 0).tolist()):
        work += sum(map(len, fronts.values()))
        if work > VECTORS:
            return Search(None, 0, False)
        fronts = _hopeful(_extended(fronts, program, i, limit), program, ahead[i + 1], raised[i + 1])
        fronts = {key: _undominated(vectors) for key, vectors in fronts.items()}
    words = _smallest(fronts, program)
    return Search(words, most + 1 if words is None else len(words), True)


def _spelled(program: RunLengthProgram, run: int, i: int) -> int:
    """What the kept words spell once word i is kept too: the length of their last run, or DONE."""
    return DONE if run == DONE or program.known[i, run] else min(run + 1, program.runs - 1)


def _extended(fronts: Fronts, program: RunLengthProgram, i: int, limit: int) -> Fronts:
    """The fronts one word further: word i is kept, up to `limit` kept words, or free for the opponent to mask."""
    new: Fronts = {}
    row = program.rows[i]
    for (k, run), vectors in fronts.items():
        free = new.setdefault((k, DONE if run == DONE else 0), [])
        kept = new.setdefault((k + 1, _spelled(program, run, i)), []) if k < limit else None
        for sums, words in vectors:
            after = stayed(sums, row)
            if kept is not None:
                kept.append(([math.inf, *after], (words, i)))
            free.append(([min(sums), *after], words))
    return new


def _hopeful(fronts: Fronts, program: RunLengthProgram, ahead: list[float], raised: list[float]) -> Fronts:
    """The vectors that do not lose to the response."""
    out: Fronts = {}
    for key, vectors in fronts.items():
        rest = raised[-1 - key[0]]  # what the words that may still be kept add to it
        if program.strict:
            alive = [v for v in vectors if min(map(add, v[0], ahead)) + rest > program.slack]
        else:
            alive = [v for v in vectors if min(map(add, v[0], ahead)) + rest >= -program.slack]
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


def _ahead(program: RunLengthProgram, masked: list[bool]) -> list[list[float]]:
    """[i][r]: the sum of the words from i on when the run before them is r and the opponent masks these words."""
    n = program.runs
    ahead = [[0.0] * n]
    for row, gone in zip(reversed(program.rows), reversed(masked), strict=True):
        later = ahead[-1]
        if gone:
            ahead.append([later[0]] * n)
        else:
            ahead.append([row[r] + later[min(r + 1, n - 1)] for r in range(n)])
    return ahead[::-1]


def _raised(program: RunLengthProgram, masked: BoolArray, most: int) -> list[list[float]]:
    """[i][q]: the most that q kept words from i on add to the response's sum, the q largest of these gains.

    d_j: votes of the supporting n-grams whose last masked word is j; none of them is back before j is kept.
    """
    last = np.full(len(program.first), -1)
    for offset in range(program.runs):
        word = program.first + np.minimum(offset, program.size - 1)
        last = np.where(masked[word], word, last)
    counts = (last >= 0) & (program.vote > 0)
    gains = np.bincount(last[counts], program.vote[counts], program.length)
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


def _smallest(fronts: Fronts, program: RunLengthProgram) -> tuple[int, ...] | None:
    winners = [
        (k, sums, words)
        for (k, tag), vectors in fronts.items()
        for sums, words in vectors
        if tag == DONE and not program.loses(min(sums))
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
