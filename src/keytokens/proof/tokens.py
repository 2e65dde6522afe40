"""Fewest tokens that fix the label, fewest whose deletion changes it.

Two classes: both by one sort. The worst sub-document that contains a set K drops every supporter outside K and keeps
every opponent. So K is sufficient iff the support inside K beats all opposition, and no k tokens have more support than
the k largest. A deletion of m tokens leaves at least the support outside the m largest.

More classes: a flip needs only *some* rival to win, so it is still a minimum. A sufficient set must beat every rival at
once, which is a covering problem: for every rival the positive votes inside K must beat N_k, all the opposition there
is. Divided by N_k every rival asks for 1 (or for any supporter at all where nobody opposes and the rival wins ties).
The minimum is NP-hard from three classes on. So: greedy, then one pass of deletions, which is enough for
subset-minimality because a superset of a sufficient set is sufficient. The lower bound is the largest two-class minimum
and, only if that does not meet the size, what a look at every single token and a linear program say.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.optimize import linprog

from .votes import ROUNDING, BoolArray, FloatArray, Pair, Votes, beats, fewest_deleted, fewest_kept, label_of

LP_TOLERANCE = 1e-6  # the solver's own; a bound is rounded up only beyond it


Status = Literal["minimum", "subset-minimal", "bounds", "none"]


@dataclass(frozen=True)
class ProvedSet:
    """A set of tokens, occurrences or words with what is proved of its size.

    Attributes
    ----------
    indices : tuple of int
        The members: tokens most decisive first, equal ones in document order; of occurrences the token of each; words
        in text order.
    lower : int
        No set of fewer members does the same.
    status : str
        "minimum", "subset-minimal" (no member can be left out), "bounds" (between `lower` and the size) or "none".
    tight : bool
        Whether the answer hangs on a relative difference below 1e-12: it holds to rounding.
    label_after : int or None
        Of a flip: the class of what is left.
    """

    indices: tuple[int, ...]
    lower: int
    status: Status
    tight: bool = False
    label_after: int | None = None

    @property
    def size(self) -> int:
        """How many members there are."""
        return len(self.indices)


NOTHING = ProvedSet((), 0, "none")


@dataclass(frozen=True, eq=False)
class Requirement:
    """What each rival asks for, in units of its opposition."""

    share: FloatArray  # (T, R) what each token brings
    given: FloatArray  # (R,) what the sink brings
    target: FloatArray  # (R,) 1, or 0 where the label wins anyway
    strict: BoolArray  # (R,) more than the target is asked for
    opposed: BoolArray  # (R,) somebody opposes; elsewhere shares are 0 or 1 and nothing is rounded
    least: int  # fewest tokens a set must have whatever the votes say

    @classmethod
    def of(cls, pairs: Sequence[Pair], least: int) -> Requirement:
        votes = np.zeros((pairs[0].tokens, len(pairs)))
        for r, one in enumerate(pairs):
            votes[one.order, r] = one.support
        against = np.array([one.against for one in pairs])
        given = np.array([one.given for one in pairs])
        strict = np.array([one.strict for one in pairs])
        opposed = against > 0
        unit = np.where(opposed, against, 1.0)
        return cls(
            share=np.where(opposed, votes / unit, votes > 0),
            given=np.where(opposed, given / unit, given > 0),
            target=np.where(opposed | (strict & (given == 0)), 1.0, 0.0),
            strict=strict & opposed,
            opposed=opposed,
            least=least,
        )

    def held(self, tokens: Sequence[int]) -> FloatArray:
        total: FloatArray = self.given + self.share[list(tokens)].sum(axis=0)
        return total

    def met(self, tokens: Sequence[int]) -> bool:
        return len(tokens) >= self.least and bool(np.all(beats(self.held(tokens), self.target, self.strict)))

    def decisive(self) -> FloatArray:
        """(T,) what a token brings on its own, nothing counted twice."""
        total: FloatArray = np.minimum(self.share, self.target).sum(axis=1)
        return total


def _cover(pairs: Sequence[Pair], least: int) -> ProvedSet:
    """A subset-minimal set that beats every rival, and a bound below every such set."""
    required = Requirement.of(pairs, least)
    kept = _pruned(required, _greedy(required, []))
    alone = [fewest_kept(one) for one in pairs]
    lower = max(least, *(found[0] for found in alone if found is not None), 0)
    tight = any(found is None or found[1] for found in alone) or _hangs(required, kept)
    if len(kept) > 1 >= lower:
        kept, lower, hangs = _by_one(required, kept)
        tight |= hangs
    if len(kept) > lower:
        kept, lower = _by_relaxation(required, kept, lower)
        tight |= _hangs(required, kept)
    lower = min(lower, len(kept))
    return ProvedSet(tuple(kept), lower, "minimum" if lower == len(kept) else "subset-minimal", tight)


def _greedy(required: Requirement, start: Sequence[int]) -> list[int]:
    """Add the token that brings most of what is still missing until every rival is beaten."""
    kept = list(start)
    free = np.ones(len(required.share), dtype=bool)
    free[kept] = False
    while not required.met(kept) and free.any():
        held = required.held(kept)
        open_ = ~beats(held, required.target, required.strict)
        missing = np.where(open_, np.maximum(required.target - held, 0.0) + ROUNDING, 0.0)
        gain = np.minimum(required.share, missing).sum(axis=1) if open_.any() else required.decisive()
        best = int(np.where(free, gain, -1.0).argmax())
        kept.append(best)
        free[best] = False
    return kept


def _pruned(required: Requirement, tokens: Sequence[int]) -> list[int]:
    """One pass of deletions, least decisive first; then most decisive first, equal ones in document order."""
    worth = required.decisive()
    kept = sorted(tokens, key=lambda i: (-worth[i], i))
    for i in reversed(tuple(kept)):
        rest = [j for j in kept if j != i]
        if required.met(rest):
            kept = rest
    return kept


def _by_one(required: Requirement, kept: list[int]) -> tuple[list[int], int, bool]:
    """The most decisive token that beats every rival by itself, or the proof that one is not enough.

    A linear program has many optima where votes tie; which of them a solver finds must not decide this much.
    """
    held = required.given + required.share
    enough = beats(held, required.target, required.strict)
    tie = (np.abs(held - required.target) <= ROUNDING) & required.opposed
    hangs = bool(np.any(tie.any(axis=1) & (enough | tie).all(axis=1)))
    able = enough.all(axis=1)
    if not able.any():
        return kept, 2, hangs
    return [int(np.where(able, required.decisive(), -1.0).argmax())], 1, hangs


def relaxation(required: Requirement) -> FloatArray | None:
    """A basic optimum x of: least sum x with 0 <= x <= 1 and, for each rival, sum_s x_s share_s >= what is missing.

    A share beyond what is missing is cut to it, which no set of whole tokens notices. Shares below 1e-9 are noise to
    the solver; granting them all at once keeps the program a relaxation. None if the solver has no answer.
    """
    missing = required.target - required.given
    asked = missing > LP_TOLERANCE
    if not asked.any():
        return np.zeros(len(required.share))
    share = np.minimum(required.share, missing)[:, asked]
    dust = share < 1e-9
    bound = missing[asked] - np.where(dust, share, 0.0).sum(axis=0)
    found = linprog(
        np.ones(len(share)), A_ub=-np.where(dust, 0.0, share).T, b_ub=-bound, bounds=(0.0, 1.0), method="highs-ds"
    )
    return np.asarray(found.x, dtype=np.float64) if found.success else None


def _by_relaxation(required: Requirement, kept: list[int], lower: int) -> tuple[list[int], int]:
    """A basic optimum has at most one fraction per rival: rounded up it is within (classes - 2) of the minimum."""
    x = relaxation(required)
    if x is None:
        return kept, lower
    lower = max(lower, math.ceil(float(x.sum()) - LP_TOLERANCE))
    rounded = _pruned(required, _greedy(required, np.flatnonzero(x > LP_TOLERANCE).tolist()))
    return (rounded if len(rounded) < len(kept) and required.met(rounded) else kept), lower


def _hangs(required: Requirement, kept: Sequence[int]) -> bool:
    """Some comparison around this set is a tie to rounding, or the set does not win (rounding made the label)."""
    around = [list(kept), *([j for j in kept if j != i] for i in kept)]
    held = np.array([required.held(tokens) for tokens in around])
    tie = np.abs(held - required.target) <= ROUNDING
    return not required.met(kept) or bool(np.any(tie & required.opposed))


def sufficient(votes: Votes) -> ProvedSet:
    """Find the fewest tokens that fix the label: every sub-document that still has them all keeps it.

    Parameters
    ----------
    votes : Votes

    Returns
    -------
    ProvedSet
        At least one token, because an empty document has no score; with a sink it has one, and the set may be empty.
        A minimum with two classes, else subset-minimal at least.

    Examples
    --------
    >>> sufficient(Votes.of([0.0] * 4, [[0, 3], [0, 2], [0, 2], [0, -4]], label=1)).indices
    (0, 1)
    """
    if votes.tokens == 0 and not votes.has_sink:
        return NOTHING
    if len(votes.rivals) > 1:
        return _cover(votes.pairs, 0 if votes.has_sink else 1)
    (pair,) = votes.pairs
    # the document itself wins with all its supporters; where rounding denies it, they are the answer to rounding
    k, tight = fewest_kept(pair) or (len(pair.order), True)
    chosen = pair.order[:k]
    if k == 0 and not pair.may_empty:  # nobody opposes: any one token will do, the most decisive one is shown
        k, chosen = 1, (pair.order[:1] if len(pair.order) else np.zeros(1, dtype=np.intp))
    return ProvedSet(tuple(chosen.tolist()), k, "minimum", tight)


def flip(votes: Votes) -> ProvedSet:
    """Find the fewest tokens whose deletion changes the label; without a sink at least one token must stay.

    The label changes iff some rival wins, so the smallest of the two-class minima is the minimum.

    Parameters
    ----------
    votes : Votes

    Returns
    -------
    ProvedSet
        A minimum, or status "none". `label_after` is read off the remainder: it may be a third class.

    Examples
    --------
    >>> flip(Votes.of([0.0] * 4, [[0, 3], [0, 2], [0, 2], [0, -4]], label=1)).indices
    (0,)
    """
    answers = []
    for pair in votes.pairs:
        found = fewest_deleted(pair)
        if found is not None:
            answers.append((found[0], pair, found[1]))
    if not answers:
        return NOTHING
    m, pair, _ = min(answers, key=lambda answer: answer[0])
    tight = any(hangs for size, _, hangs in answers if size <= m + 1)
    deleted = pair.order[:m]
    # the label is known to have lost: with one rival, to that rival
    if len(votes.rivals) == 1:
        after = int(votes.rivals[0])
    else:
        after = label_of(votes.take(np.delete(np.arange(votes.tokens), deleted)))
    return ProvedSet(tuple(deleted.tolist()), m, "minimum", tight, after)
