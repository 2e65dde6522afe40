"""Sufficient sets against several rivals: a covering problem.

For every rival the positive votes inside K must beat N_k, all the opposition there is. Divided by N_k every rival
asks for 1 (or for any supporter at all where nobody opposes and the rival wins ties). The minimum is NP-hard from
three classes on, so: greedy, then one pass of deletions, which is enough for subset-minimality because a superset of
a sufficient set is sufficient; below it the largest two-class minimum and, only if that does not meet the size, a
look at every single token and a linear programme.

Fewest tokens that fix the label, fewest whose deletion changes it.

Two classes, both by one sort: the worst sub-document that contains K drops every supporter outside K and keeps every
opponent, so K is sufficient iff the support inside K beats all opposition, and no k tokens have more support than the
k largest; a deletion of m tokens leaves at least the support outside the m largest. More classes: K must do so
against every rival at once (the minimum is NP-hard, so a subset-minimal set and a lower bound), while a flip needs
only *some* rival (still a minimum).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.optimize import linprog

from .votes import ROUNDING, Ballot, BoolArray, Duel, FloatArray, IntArray, beats, fewest_deleted, fewest_kept, label_of

LP_TOLERANCE = 1e-6  # the solver's own; a bound is rounded up only beyond it


@dataclass(frozen=True)
class Cover:
    tokens: tuple[int, ...]  # most decisive first
    lower: int
    tight: bool


@dataclass(frozen=True, eq=False)
class Demand:
    """What each rival asks for, in units of its opposition."""

    share: FloatArray  # (T, R) what each token brings
    given: FloatArray  # (R,) what the sink brings
    target: FloatArray  # (R,) 1, or 0 where the label wins anyway
    strict: BoolArray  # (R,) more than the target is asked for
    opposed: BoolArray  # (R,) somebody opposes; elsewhere shares are 0 or 1 and nothing is rounded
    least: int  # fewest tokens a set must have whatever the votes say

    @classmethod
    def of(cls, duels: Sequence[Duel], least: int) -> Demand:
        votes = np.zeros((duels[0].tokens, len(duels)))
        for r, one in enumerate(duels):
            votes[one.order, r] = one.support
        against = np.array([one.against for one in duels])
        given = np.array([one.given for one in duels])
        strict = np.array([one.strict for one in duels])
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


def cover(duels: Sequence[Duel], least: int) -> Cover:
    """A subset-minimal set that beats every rival, and a bound below every such set."""
    demand = Demand.of(duels, least)
    kept = _pruned(demand, _greedy(demand, []))
    kept_by_duel = [fewest_kept(one) for one in duels]
    lower = max(least, *(found[0] for found in kept_by_duel if found is not None), 0)
    tight = any(found is None or found[1] for found in kept_by_duel) or _hangs(demand, kept)
    if len(kept) > 1 >= lower:
        kept, lower, hangs = _by_one(demand, kept)
        tight |= hangs
    if len(kept) > lower:
        kept, lower = _by_relaxation(demand, kept, lower)
        tight |= _hangs(demand, kept)
    return Cover(tuple(kept), min(lower, len(kept)), tight)


def _greedy(demand: Demand, start: Sequence[int]) -> list[int]:
    """Add the token that brings most of what is still missing until every rival is beaten."""
    kept = list(start)
    free = np.ones(len(demand.share), dtype=bool)
    free[kept] = False
    while not demand.met(kept) and free.any():
        held = demand.held(kept)
        open_ = ~beats(held, demand.target, demand.strict)
        missing = np.where(open_, np.maximum(demand.target - held, 0.0) + ROUNDING, 0.0)
        gain = np.minimum(demand.share, missing).sum(axis=1) if open_.any() else demand.decisive()
        best = int(np.where(free, gain, -1.0).argmax())
        kept.append(best)
        free[best] = False
    return kept


def _pruned(demand: Demand, tokens: Sequence[int]) -> list[int]:
    """One pass of deletions, least decisive first; then most decisive first, equal ones in document order."""
    worth = demand.decisive()
    kept = sorted(tokens, key=lambda i: (-worth[i], i))
    for i in reversed(tuple(kept)):
        rest = [j for j in kept if j != i]
        if demand.met(rest):
            kept = rest
    return kept


def _by_one(demand: Demand, kept: list[int]) -> tuple[list[int], int, bool]:
    """The most decisive token that beats every rival by itself, or the proof that one is not enough.

    A linear programme has many optima where votes tie; which of them a solver finds must not decide this much.
    """
    held = demand.given + demand.share
    enough = beats(held, demand.target, demand.strict)
    tie = (np.abs(held - demand.target) <= ROUNDING) & demand.opposed
    hangs = bool(np.any(tie.any(axis=1) & (enough | tie).all(axis=1)))
    able = enough.all(axis=1)
    if not able.any():
        return kept, 2, hangs
    return [int(np.where(able, demand.decisive(), -1.0).argmax())], 1, hangs


def relaxation(demand: Demand) -> FloatArray | None:
    """A basic optimum x of: least sum x with 0 <= x <= 1 and, for each rival, sum_s x_s share_s >= what is missing.

    A share beyond what is missing is cut to it, which no set of whole tokens notices. Shares below 1e-9 are noise to
    the solver; granting them all at once keeps the programme a relaxation. None if the solver has no answer.
    """
    missing = demand.target - demand.given
    asked = missing > LP_TOLERANCE
    if not asked.any():
        return np.zeros(len(demand.share))
    share = np.minimum(demand.share, missing)[:, asked]
    dust = share < 1e-9
    bound = missing[asked] - np.where(dust, share, 0.0).sum(axis=0)
    found = linprog(
        np.ones(len(share)), A_ub=-np.where(dust, 0.0, share).T, b_ub=-bound, bounds=(0.0, 1.0), method="highs-ds"
    )
    return np.asarray(found.x, dtype=np.float64) if found.success else None


def _by_relaxation(demand: Demand, kept: list[int], lower: int) -> tuple[list[int], int]:
    """A basic optimum has at most one fraction per rival: rounded up it is within (classes - 2) of the minimum."""
    x = relaxation(demand)
    if x is None:
        return kept, lower
    lower = max(lower, math.ceil(float(x.sum()) - LP_TOLERANCE))
    rounded = _pruned(demand, _greedy(demand, np.flatnonzero(x > LP_TOLERANCE).tolist()))
    return (rounded if len(rounded) < len(kept) and demand.met(rounded) else kept), lower


def _hangs(demand: Demand, kept: Sequence[int]) -> bool:
    """Some comparison around this set is a tie to rounding, or the set does not win (rounding made the label)."""
    around = [list(kept), *([j for j in kept if j != i] for i in kept)]
    held = np.array([demand.held(tokens) for tokens in around])
    tie = np.abs(held - demand.target) <= ROUNDING
    return not demand.met(kept) or bool(np.any(tie & demand.opposed))


Status = Literal["minimum", "subset-minimal", "bounds", "none"]


@dataclass(frozen=True)
class TokenSet:
    """A set of tokens with what is proved of its size: no set of fewer than `lower` tokens does the same."""

    indices: tuple[int, ...]  # most decisive first, equal ones in document order
    size: int
    lower: int
    status: Status
    tight: bool  # the answer hangs on a relative difference below 1e-12: it holds to rounding
    label_after: int | None = None  # flips: the class of what is left


NOTHING = TokenSet((), 0, 0, "none", False)


def sufficient(ballot: Ballot) -> TokenSet:
    """Fewest tokens that fix the label: every sub-document that still has them all keeps it.

    At least one token, because an empty document has no score; with a sink it has one, and the set may be empty.

    >>> sufficient(Ballot.of([0.0] * 4, [[0, 3], [0, 2], [0, 2], [0, -4]], label=1)).indices
    (0, 1)
    """
    if ballot.tokens == 0 and not ballot.has_sink:
        return NOTHING
    if len(ballot.rivals) == 1:
        return _sufficient_two(ballot.duels[0])
    found = cover(ballot.duels, _least(ballot))
    status: Status = "minimum" if len(found.tokens) == found.lower else "subset-minimal"
    return TokenSet(found.tokens, len(found.tokens), found.lower, status, found.tight)


def flip(ballot: Ballot) -> TokenSet:
    """Fewest tokens whose deletion changes the label; without a sink at least one token must stay.

    The label changes iff some rival wins, so the smallest of the two-class minima is the minimum. The label that
    results may still be a third class: `label_after` is read off the remainder.

    >>> flip(Ballot.of([0.0] * 4, [[0, 3], [0, 2], [0, 2], [0, -4]], label=1)).indices
    (0,)
    """
    answers = []
    for votes in ballot.duels:
        found = fewest_deleted(votes)
        if found is not None:
            answers.append((found[0], votes, found[1]))
    if not answers:
        return NOTHING
    m, votes, _ = min(answers, key=lambda answer: answer[0])
    tight = any(hangs for size, _, hangs in answers if size <= m + 1)
    deleted = votes.order[:m]
    return TokenSet(_as_tuple(deleted), m, m, "minimum", tight, _label_without(ballot, deleted))


def _label_without(ballot: Ballot, deleted: IntArray) -> int:
    """Class of the rest, which the label is known to have lost: with one rival it is that rival."""
    if len(ballot.rivals) == 1:
        return int(ballot.rivals[0])
    return label_of(ballot.take(np.delete(np.arange(ballot.tokens), deleted)))


def _least(ballot: Ballot) -> int:
    return 0 if ballot.has_sink else 1


def _sufficient_two(votes: Duel) -> TokenSet:
    found = fewest_kept(votes)
    # the document itself wins with all its supporters; where rounding denies it, they are the answer to rounding
    k, tight = found if found is not None else (len(votes.order), True)
    if k == 0 and not votes.may_empty:  # nobody opposes: any one token will do, the most decisive one is shown
        k, chosen = 1, (votes.order[:1] if len(votes.order) else np.zeros(1, dtype=np.intp))
    else:
        chosen = votes.order[:k]
    return TokenSet(_as_tuple(chosen), k, k, "minimum", tight)


def _as_tuple(indices: IntArray) -> tuple[int, ...]:
    return tuple(indices.tolist())
