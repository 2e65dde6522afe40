"""Fewest masks by an integer program: exact for any counts, on required, and never trusted without evaluation.

One 0/1 variable per word (masked), one per occurrence (survives), and for each token that votes one per count j (at
least j occurrences survive), with

    survives <= 1 - masked          for each word of the occurrence
    survives >= 1 - sum of masked   over its words
    sum of survives = sum of "at least j",  "at least j" >= "at least j + 1"
    sum of votes of the steps + sink <= 0
    sum of survives >= 1            without a sink: else the empty text would be an answer
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array

from keytokens.proof.masking import Search
from keytokens.proof.phrase import Phrase
from keytokens.proof.votes import FloatArray
from keytokens.proof.words import ProvedSet, _smallest_flip

TOLERANCE = 1e-6  # the solver's own
SECONDS = 30.0


def flip_words_exact(phrase: Phrase) -> ProvedSet:
    """The question of `flip_words`, given to an integer program; its bound holds to the solver's 1e-6.

    The solver proposes: a mask is returned only after it was evaluated with the true counts.
    """
    answers = [exact_mask(phrase, r) for r in range(len(phrase.votes.rivals))]
    return _smallest_flip(phrase, answers)


def exact_mask(phrase: Phrase, rival: int) -> Search:
    """Fewest masks that let this rival win, as far as the solver's tolerance goes.

    The bound comes from the program with ties allowed, which every flip satisfies. Where the label wins ties such a
    mask may be a tie; then a second run asks for a clear loss.
    """
    rows = _Rows(phrase, rival)
    words, bound, infeasible = rows.solve(0.0)
    if infeasible:
        return Search(None, phrase.length + 1, True, False)
    if words is None or not _changes(phrase, words):
        words, _, infeasible = rows.solve(10.0 * TOLERANCE)
    if words is not None and not _changes(phrase, words):
        words = None
    return Search(words, bound, infeasible or (words is not None and len(words) == bound), infeasible)


def _changes(phrase: Phrase, words: tuple[int, ...]) -> bool:
    return phrase.label_after(words) not in (None, phrase.votes.label)


class _Rows:
    """The program, row by row."""

    def __init__(self, phrase: Phrase, rival: int) -> None:
        self.phrase = phrase
        self.words, self.occurrences = phrase.length, len(phrase.first)
        self.columns = self.words + self.occurrences
        self.entries: list[tuple[int, int, float]] = []
        self.low: list[float] = []
        self.high: list[float] = []
        votes = phrase.against(rival)
        self.scale = float(np.abs(votes).max(initial=0.0)) or 1.0
        for o in range(self.occurrences):
            self._survival(o)
        tally = self._tally(votes[:-1])
        if not phrase.votes.has_sink:
            self._row([(self.words + o, 1.0) for o in range(self.occurrences)], 1.0, math.inf)
        self.sink = float(votes[-1]) / self.scale
        self._row(tally, -math.inf, -self.sink)  # last row: the label does not win

    def solve(self, guard: float) -> tuple[tuple[int, ...] | None, int, bool]:
        """Mask, lower bound, and whether there is proved to be none."""
        high = np.array(self.high)
        high[-1] -= guard
        row, column, value = zip(*self.entries, strict=True) if self.entries else ((), (), ())
        shape = (len(self.low), self.columns)
        matrix = coo_array((value, (row, column)), shape=shape).tocsr()
        cost = np.zeros(self.columns)
        cost[: self.words] = 1.0
        found = milp(
            cost,
            integrality=np.ones(self.columns, dtype=np.int64),
            bounds=Bounds(0.0, 1.0),
            constraints=LinearConstraint(matrix, np.array(self.low), high),
            options={"time_limit": SECONDS},
        )
        if found.x is None:
            return None, 1, found.status == 2
        dual = found.mip_dual_bound if found.mip_dual_bound is not None else 1.0
        words = tuple(np.flatnonzero(found.x[: self.words] > 0.5).tolist())
        return words, max(1, math.ceil(float(dual) - TOLERANCE)), False

    def _row(self, entries: list[tuple[int, float]], low: float, high: float) -> None:
        self.entries.extend((len(self.low), column, value) for column, value in entries)
        self.low.append(low)
        self.high.append(high)

    def _survival(self, o: int) -> None:
        start, size = int(self.phrase.first[o]), int(self.phrase.size[o])
        survives = (self.words + o, 1.0)
        for w in range(start, start + size):
            self._row([survives, (w, 1.0)], -math.inf, 1.0)
        self._row([survives, *((w, 1.0) for w in range(start, start + size))], 1.0, math.inf)

    def _tally(self, votes: FloatArray) -> list[tuple[int, float]]:
        """Counts of the tokens that vote; returns the row of their votes."""
        tally: list[tuple[int, float]] = []
        for s in np.flatnonzero(votes).tolist():
            mine = np.flatnonzero(self.phrase.token == s)
            added = np.diff(self.phrase.phi(np.arange(len(mine) + 1))) * votes[s] / (self.phrase.weight[s] * self.scale)
            levels = range(self.columns, self.columns + len(mine))
            self.columns += len(mine)
            tally.extend(zip(levels, added.tolist(), strict=True))
            self._row([*((self.words + int(o), 1.0) for o in mine), *((j, -1.0) for j in levels)], 0.0, 0.0)
            for j in levels[:-1]:
                self._row([(j, 1.0), (j + 1, -1.0)], 0.0, math.inf)
        return tally
