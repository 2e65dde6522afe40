"""Counting occurrences instead of tokens.

A token that occurs c times weighs phi(c) (`model.weighting`); phi(0) = 0 and each further occurrence adds less.
Occurrence j of a token adds the *step* phi(j) - phi(j - 1).

Keeping: k kept occurrences of a supporter are sure of phi(k), and the steps shrink, so the largest steps taken first
are best: a sort. Deleting: each further deletion of the same token removes *more* than the last, so a sort is wrong
and the minimum is a knapsack with unit costs. With an additive weighting all steps are equal and both are sorts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from ..base.errors import refusal
from ..model.weighting import weighting
from .tokens import NOTHING, ProvedSet, flip, sufficient
from .votes import FloatArray, IntArray, Pair, Votes, beats, label_of, near


def itemised(votes: Votes, occurrences: IntArray, counts: str) -> tuple[Votes, IntArray]:
    """One item per occurrence that adds weight, and the token of each item."""
    _check(votes, occurrences)
    index = np.arange(len(occurrences)).repeat(occurrences)
    before = np.arange(len(index)) - (occurrences.cumsum() - occurrences)[index]  # occurrences of the same token
    phi = weighting(counts)
    step = phi(before + 1) - phi(before)
    index, step = index[step > 0], step[step > 0]
    unit = votes.log_weight - np.log(phi(occurrences))
    return replace(votes, log_weight=unit[index] + np.log(step), margin=votes.margin[index]), index


def sufficient_occurrences(votes: Votes, occurrences: ArrayLike, counts: str = "raw") -> ProvedSet:
    """Find the fewest occurrences that fix the label.

    Parameters
    ----------
    votes : Votes
    occurrences : array-like of int
        How often each token occurs.
    counts : str
        The name of the weighting.

    Returns
    -------
    ProvedSet
        `indices` names the token of each occurrence.

    Examples
    --------
    Tokens of votes 3 (once), 2 (twice) against 3.5: one token, but two occurrences.

    >>> votes = Votes.of(np.log([1.0, 2.0, 1.0]), [[0, 3.0], [0, 2.0], [0, -3.5]], label=1)
    >>> sufficient(votes).indices, sufficient_occurrences(votes, [1, 2, 1]).indices
    ((1,), (0, 1))
    """
    items, token = itemised(votes, np.asarray(occurrences, dtype=np.intp), counts)
    found = sufficient(items)
    return replace(found, indices=tuple(int(token[i]) for i in found.indices))


def flip_occurrences(votes: Votes, occurrences: ArrayLike, counts: str = "raw") -> ProvedSet:
    """Find the fewest occurrences whose deletion changes the label; parameters as for `sufficient_occurrences`.

    Returns
    -------
    ProvedSet
        A minimum, or status "none"; `indices` names the token of each occurrence.
    """
    occurrences = np.asarray(occurrences, dtype=np.intp)
    if weighting(counts).additive:
        items, token = itemised(votes, occurrences, counts)
        found = flip(items)
        return replace(found, indices=tuple(int(token[i]) for i in found.indices))
    _check(votes, occurrences)
    best: ProvedSet = NOTHING
    for pair in votes.pairs:
        one = _fewest_removed(pair, occurrences, counts)
        if one is not None and (best.status == "none" or one.size < best.size):
            best = one
    if best.status == "none":
        return NOTHING
    left = occurrences - np.bincount(np.array(best.indices, dtype=np.intp), minlength=votes.tokens)
    return replace(best, label_after=label_of(recounted(votes, occurrences, left, counts)))


def recounted(votes: Votes, occurrences: IntArray, left: IntArray, counts: str) -> Votes:
    """The document in which `left` of the occurrences of each token are left."""
    phi, stays = weighting(counts), np.flatnonzero(left > 0)
    shift = np.log(phi(left[stays])) - np.log(phi(occurrences[stays]))
    return replace(votes, log_weight=votes.log_weight[stays] + shift, margin=votes.margin[stays])


def _fewest_removed(pair: Pair, occurrences: IntArray, counts: str) -> ProvedSet | None:
    """Knapsack: left[m] = least support that m deletions can leave, over the supporters one by one.

    Sums of what is left, never of what is gone: nothing is subtracted. Opponents are never deleted. Only if every
    token is a supporter can a deletion of all of them leave nothing, and then no flip exists, for fewer deletions
    leave some support.
    """
    if len(pair.order) == pair.tokens and not pair.may_empty:
        return None
    limit = int(occurrences[pair.order].sum())
    left = np.full(limit + 1, math.inf)
    left[0] = pair.given
    choices = []
    for s, vote in zip(pair.order.tolist(), pair.support.tolist(), strict=True):
        weight = weighting(counts)(np.arange(int(occurrences[s]), -1, -1))  # after 0, 1, ... deletions
        left, choice = _one_more(left, vote * (weight / weight[0]))
        choices.append(choice)
    lost = np.flatnonzero(~beats(left[1:], pair.against, pair.strict)) + 1
    if not len(lost):
        return None
    m = int(lost[0])
    tight = near(float(left[m]), pair.against) or near(float(left[m - 1]), pair.against)
    return ProvedSet(_traced(choices, pair.order, m), m, "minimum", tight)


def _one_more(left: FloatArray, options: FloatArray) -> tuple[FloatArray, IntArray]:
    """Put one more token into the knapsack: options[d] is what it leaves after d deletions."""
    table = np.full((len(options), len(left)), math.inf)
    for d, rest in enumerate(options.tolist()):
        table[d, d:] = left[: len(left) - d] + rest
    choice = table.argmin(axis=0)
    return np.take_along_axis(table, choice[None], axis=0)[0], choice


def _traced(choices: Sequence[IntArray], order: IntArray, m: int) -> tuple[int, ...]:
    """The deletions behind left[m], largest supporters first."""
    taken: list[int] = []
    for s, choice in zip(reversed(order.tolist()), reversed(choices), strict=True):
        d = int(choice[m])
        taken.extend([s] * d)
        m -= d
    return tuple(reversed(taken))


def _check(votes: Votes, occurrences: IntArray) -> None:
    if occurrences.shape != (votes.tokens,) or (occurrences < 1).any():
        raise refusal("occurrences", "occurrences", "be a positive integer per token", occurrences.tolist())
