"""The label against one rival: two piles of positive numbers, and the two sorts that answer for two classes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from keytokens.certificate.votes import ROUNDING, Ballot, FloatArray, IntArray, relative_votes

__all__ = ["Duel", "beats", "duel", "fewest_deleted", "fewest_kept", "near"]


@dataclass(frozen=True, eq=False)
class Duel:
    """The label against one rival: the votes of all tokens, up to one positive factor."""

    order: IntArray  # the supporters, largest vote first, equal ones in document order
    support: FloatArray  # their votes, in that order
    given: float  # support of the sink: it counts whatever is deleted
    against: float  # N, all opposition, that of the sink included
    strict: bool  # the label must have more than N, not merely as much
    may_empty: bool  # a sink makes the empty document an ordinary one
    tokens: int


def duel(ballot: Ballot, rival: int) -> Duel:
    """Votes of the label against the rival in column `rival`, scaled so that any logits are safe.

    Only supporters are ever deleted in a worst case, so what matters is each supporter *relative to the opposition*: sizes are
    taken in the log domain and divided by the largest opponent. Softmax weights would lose the opponent of the pair
    (a, b) = (0, 1), (-800, -1), which decides as soon as the first token is gone.
    """
    margin = np.append(ballot.margin[:, rival], ballot.sink_margin[rival])
    log_weight = np.append(ballot.log_weight, ballot.sink_log_weight)
    votes = relative_votes(log_weight, margin)
    h, sink_vote = votes[:-1], float(votes[-1])
    supporters = np.flatnonzero(h > 0)
    order = supporters[np.argsort(-ballot.log_size[supporters, rival], kind="stable")]
    return Duel(
        order=order,
        support=h[order],
        given=max(sink_vote, 0.0),
        against=-math.fsum([*h[h < 0].tolist(), min(sink_vote, 0.0)]),
        strict=bool(ballot.strict[rival]),
        may_empty=ballot.has_sink,
        tokens=ballot.tokens,
    )


def beats(support: Any, against: Any, strict: Any) -> Any:
    """Does this much support win? Sums within ROUNDING of each other tie, and a tie goes to a strict rival.

    >>> beats(3.0, 3.0, False), beats(3.0, 3.0, True)
    (True, False)
    """
    slack = ROUNDING * against
    return np.where(strict, support - against > slack, support - against >= -slack)[()]


def near(support: float, against: float) -> bool:
    """The comparison hangs on rounding."""
    return against > 0 and abs(support - against) <= ROUNDING * against


def fewest_kept(votes: Duel) -> tuple[int, bool] | None:
    """First k for which the k largest supporters beat all opposition, and whether it hangs on rounding; None if no k does."""
    support = votes.support.tolist()

    def total(k: int) -> float:
        return math.fsum([votes.given, *support[:k]])

    def wins(k: int) -> bool:
        return bool(beats(total(k), votes.against, votes.strict))

    guess = int(np.searchsorted(np.cumsum(votes.support), votes.against - votes.given)) + 1
    k = _first(wins, guess, 0, len(support))
    if not wins(k):
        return None
    return k, near(total(k), votes.against) or (k > 0 and near(total(k - 1), votes.against))


def fewest_deleted(votes: Duel) -> tuple[int, bool] | None:
    """First m >= 1 for which the label loses without its m largest supporters, and whether it hangs on rounding; None if none.

    The rest is summed as such, never as total minus prefix: with logits far apart the difference would be noise.
    """
    support = votes.support.tolist()

    def total(m: int) -> float:
        return math.fsum([votes.given, *support[m:]])

    def loses(m: int) -> bool:
        return not beats(total(m), votes.against, votes.strict)

    guess = len(support) - int(np.searchsorted(np.cumsum(votes.support[::-1]), votes.against - votes.given))
    m = _first(loses, guess, 1, len(support))
    if m > len(support) or not loses(m) or (m == votes.tokens and not votes.may_empty):
        return None
    return m, near(total(m), votes.against) or near(total(m - 1), votes.against)


def _first(holds: Callable[[int], bool], guess: int, low: int, high: int) -> int:
    """First n in low..high where a monotone condition holds (`high` if it never does), by steps from a good guess."""
    n = max(low, min(guess, high))
    while n > low and holds(n - 1):
        n -= 1
    while n < high and not holds(n):
        n += 1
    return n
