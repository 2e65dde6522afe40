"""One dynamic program over the words of a text: least sums of votes when words are changed.

An n-gram that ends at word i survives iff the run of unchanged words that ends at i is at least as long as it. So the
only state is the length of that run, capped at n - 1. A_i(r) are the votes of the n-grams that end at word i and have
at most r + 1 words. Two things can happen to word i:

    it is changed:  run r -> run 0,               adds change[i]
    it stays:       run r -> run min(r + 1, n-1), adds A_i(r)

`change` is a table with a cost for each word: 0 for a masked word, infinity for a word that must stay, a price where
changed words are paid for. `walked` finds the least sums, `counted` finds them for each number of changed words, and
`changed` reads from either which words were changed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import add

import numpy as np

from .votes import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class RunLengthProgram:
    """The votes of the n-grams of one text for the label against one rival, each occurrence for itself."""

    length: int
    first: IntArray  # (O,) first word of each occurrence
    size: IntArray  # (O,) number of its words
    vote: FloatArray  # (O,) what it adds while it survives
    constant: float  # what is there whatever is changed
    strict: bool  # the rival wins ties
    slack: float  # sums this close to 0 are ties
    may_empty: bool  # a change may leave no known n-gram

    @cached_property
    def runs(self) -> int:
        """How many run lengths are told apart: n, the most words an n-gram has, and at least 2."""
        return max(2, int(self.size.max(initial=1)))

    @cached_property
    def gain(self) -> FloatArray:
        """(L, n) A_i(r)."""
        table = np.zeros((self.length, self.runs))
        np.add.at(table, (self.first + self.size - 1, self.size - 1), self.vote)
        total: FloatArray = table.cumsum(axis=1)
        return total

    @cached_property
    def rows(self) -> list[list[float]]:
        rows: list[list[float]] = self.gain.tolist()
        return rows

    @cached_property
    def known(self) -> BoolArray:
        """(L, n) some n-gram ends at word i and has at most r + 1 words."""
        table = np.zeros((self.length, self.runs), dtype=bool)
        table[self.first + self.size - 1, self.size - 1] = True
        return np.logical_or.accumulate(table, axis=1)

    @property
    def start(self) -> list[float]:
        """The sums before the first word."""
        return [self.constant] + [math.inf] * (self.runs - 1)

    def loses(self, total: float) -> bool:
        """Whether the label loses with this sum."""
        return total <= self.slack if self.strict else total < -self.slack

    def near(self, total: float) -> bool:
        """Whether this sum is a tie to rounding."""
        return self.slack > 0 and abs(total) <= self.slack

    def survives(self, words: Sequence[int]) -> bool:
        """Whether some known n-gram has none of these words."""
        return bool(inside(~flags(words, self.length), self.first, self.size).any())

    def walked(self, change: Sequence[float]) -> list[list[float]]:
        """(L + 1, n) least sum of the first i words, by the run that ends there."""
        sums = self.start
        table = [sums]
        for row, cost in zip(self.rows, change, strict=True):
            sums = [min(sums) + cost, *stayed(sums, row)]
            table.append(sums)
        return table

    def counted(self, change: FloatArray, most: int) -> Iterator[FloatArray]:
        """For m = 0, 1, ..., most changed words what `walked` gives: (L + 1, n).

        All words at once: every run but the longest comes from the run before it, and the longest one either begins
        here or goes on, which is a running minimum once the sum of what always goes on is taken out.
        """
        gain, n = self.gain, self.runs
        going_on = np.cumsum(gain[:, n - 1])
        before = np.full(self.length + 1, math.inf)
        for m in range(most + 1):
            sums = np.full((n, self.length + 1), math.inf)
            sums[0, 1:] = before[:-1] + change
            if m == 0:
                sums[0, 0] = self.constant
            for r in range(1, n - 1):
                sums[r, 1:] = sums[r - 1, :-1] + gain[:, r - 1]
            begins = sums[n - 2, :-1] + gain[:, n - 2]
            sums[n - 1, 1:] = np.minimum.accumulate(begins - going_on) + going_on
            before = sums.min(axis=0)
            yield sums.T

    def changed(self, tables: Sequence[Sequence[Sequence[float]] | FloatArray]) -> tuple[int, ...]:
        """The words that were changed on the way to the best end of the last table: one of `walked`, or of `counted`.

        The same additions are made again, so equality is exact.
        """
        n, words, m = self.runs, [], len(tables) - 1
        run = _least(tables[m][self.length])
        for i in range(self.length - 1, -1, -1):
            if run == 0:
                words.append(i)
                m = max(m - 1, 0)
                run = _least(tables[m][i])
            elif run < n - 1:
                run -= 1
            else:
                here, row = tables[m][i], self.rows[i]
                run = n - 1 if here[n - 1] + row[n - 1] <= here[n - 2] + row[n - 2] else n - 2
        return tuple(reversed(words))


def flags(words: Sequence[int], length: int) -> BoolArray:
    """(L,) whether a word is among these."""
    found = np.zeros(length, dtype=bool)
    found[list(words)] = True
    return found


def inside(words: BoolArray, first: IntArray, size: IntArray) -> BoolArray:
    """(O,) the n-grams all of whose words are flagged."""
    before = np.concatenate([[0], np.cumsum(words)])
    found: BoolArray = before[first + size] - before[first] == size
    return found


def over(amount: FloatArray, first: IntArray, size: IntArray, length: int) -> FloatArray:
    """For each of `length` words the sum of an amount that each n-gram has, over those that cover it."""
    total = np.zeros(length)
    for offset in range(int(size.max(initial=0))):
        inside = size > offset
        total += np.bincount(first[inside] + offset, amount[inside], length)
    return total


def stayed(sums: Sequence[float], row: Sequence[float]) -> list[float]:
    """Least sums by run 1, 2, ... after a word that stays: the two longest runs become one."""
    if len(sums) == 3:  # the usual case written out: sets of words take a quarter less time
        begins, goes_on = sums[1] + row[1], sums[2] + row[2]
        return [sums[0] + row[0], begins if begins < goes_on else goes_on]
    after = list(map(add, sums, row))
    longest = after.pop()
    if longest < after[-1]:
        after[-1] = longest
    return after


def _least(sums: Sequence[float] | FloatArray) -> int:
    """The run with the least sum, the shortest among equals."""
    return min(range(len(sums)), key=sums.__getitem__)
