"""The label against one rival: two piles of positive numbers, and the two sorts that answer for two classes."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from keytokens.certificate.votes import ROUNDING, Duel

__all__ = ["beats", "fewest_deleted", "fewest_kept", "near", "wins"]


def beats(support: Any, against: Any, strict: Any) -> Any:
    """Does this much support win? Sums within ROUNDING of each other tie, and a tie goes to a strict rival.

    >>> bool(beats(3.0, 3.0, False)), bool(beats(3.0, 3.0, True))
    (True, False)
    """
    slack = ROUNDING * against
    return np.where(strict, support - against > slack, support - against >= -slack)[()]


def wins(votes: Duel, support: float) -> bool:
    """Does this much support win the duel? The same rule for one sum."""
    slack = ROUNDING * votes.against
    return support - votes.against > slack if votes.strict else support - votes.against >= -slack


def near(support: float, against: float) -> bool:
    """The comparison hangs on rounding."""
    return against > 0 and abs(support - against) <= ROUNDING * against


def fewest_kept(votes: Duel) -> tuple[int, bool] | None:
    """First k for which the k largest supporters beat all opposition, and whether that hangs on rounding."""
    support = votes.support.tolist()

    @cache
    def total(k: int) -> float:
        return math.fsum([votes.given, *support[:k]])

    def enough(k: int) -> bool:
        return wins(votes, total(k))

    guess = int(votes.support.cumsum().searchsorted(votes.against - votes.given)) + 1
    k = _first(enough, guess, 0, len(support))
    if not enough(k):
        return None
    return k, near(total(k), votes.against) or (k > 0 and near(total(k - 1), votes.against))


def fewest_deleted(votes: Duel) -> tuple[int, bool] | None:
    """First m >= 1 for which the label loses without its m largest supporters, and whether that hangs on rounding.

    None if there is no such m. The rest is summed as such, never as total minus prefix: with logits far apart the
    difference would be noise.
    """
    support = votes.support.tolist()

    @cache
    def total(m: int) -> float:
        return math.fsum([votes.given, *support[m:]])

    def loses(m: int) -> bool:
        return not wins(votes, total(m))

    guess = len(support) - int(votes.support[::-1].cumsum().searchsorted(votes.against - votes.given))
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
