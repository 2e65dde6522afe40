"""Fewest tokens that fix the label, fewest whose deletion changes it.

Two classes, both by one sort: the worst sub-document that contains K drops every supporter outside K and keeps every
opponent, so K is sufficient iff the support inside K beats all opposition, and no k tokens have more support than the
k largest; a deletion of m tokens leaves at least the support outside the m largest. More classes: K must do so
against every rival at once (the minimum is NP-hard, so a subset-minimal set and a lower bound), while a flip needs
only *some* rival (still a minimum).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from keytokens.certificate.cover import cover
from keytokens.certificate.duels import fewest_deleted, fewest_kept
from keytokens.certificate.votes import Ballot, Duel, IntArray, label_of

__all__ = ["NOTHING", "Status", "TokenSet", "flip", "sufficient"]

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
