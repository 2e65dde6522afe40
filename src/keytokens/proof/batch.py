"""Token sets of many documents of two classes at once, where plain sums decide them.

In one document, `sufficient` and `flip` use exact sums and a sort. Here one sort and one running sum serve all
documents: the votes of the supporters, largest first, as shares of their sum. A document is left to `sufficient` and
`flip` where a comparison is closer than the rounding of the running sum could reach, or where it is special in another
way; `clear` says so. So every set is the one that they would find.

The least margin needs no sort. Take the mean of the worst sub-document so far as a guess: exactly the free tokens of
lower value make it worse, and their mean is the next guess (Dinkelbach).

What is computed of one document does not depend on the others, to the bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .votes import BoolArray, FloatArray, IntArray

FAR = 300.0  # log weights of one document further apart than this are left to the exact road
CLOSE = 1e-9  # shares of the support that differ by less are not told apart; what counts as a tie is far below
EPSILON = float(np.finfo(np.float64).eps)
LEAST = float(np.finfo(np.float64).smallest_subnormal)  # for 0 to be divided by
# the running sum grows by 1 a document, so that T additions in n documents err by T n EPSILON at most; up to this n
# the documents that are long enough to matter are the same ones
TOGETHER = 256


@dataclass(frozen=True, eq=False)
class Answers:
    """Of each document its two sets and what is proved of them."""

    order: IntArray  # supporters by document, largest vote first, equal ones in document order
    begin: IntArray  # (n,) first supporter of each
    kept: IntArray  # (n,) size of the sufficient set: so many of the first supporters
    gone: IntArray  # (n,) size of the flip set, likewise
    least: FloatArray  # (n,) least margin while the sufficient set stays
    after: FloatArray  # (n,) margin once the flip set is gone
    clear: BoolArray  # (n,) elsewhere nothing of this is meant


@dataclass(frozen=True, eq=False)
class Weights:
    """The weights of tokens and sink relative to the heaviest of their document."""

    of_tokens: FloatArray  # (T,)
    of_sink: FloatArray  # (n,)
    breadth: FloatArray  # (n,) how far their logarithms are apart
    owner: IntArray  # (T,) the document of each token


def relative_weights(log_weight: FloatArray, ends: IntArray, sink_log_weight: float) -> Weights:
    """Tokens ends[i] : ends[i + 1] are those of document i; none is empty."""
    starts, sizes = ends[:-1], ends[1:] - ends[:-1]
    top, low = np.maximum.reduceat(log_weight, starts), np.minimum.reduceat(log_weight, starts)
    if sink_log_weight > -math.inf:
        np.maximum(top, sink_log_weight, out=top)
        np.minimum(low, sink_log_weight, out=low)
    owner = np.arange(len(starts)).repeat(sizes)
    return Weights(np.exp(log_weight - top[owner]), np.exp(sink_log_weight - top), top - low, owner)


def answers(
    log_weight: FloatArray, margin: FloatArray, ends: IntArray, weights: Weights, sink_margin: FloatArray
) -> Answers:
    """The answers for documents that have tokens, from their margins over the one rival."""
    starts, sizes, owner = ends[:-1], ends[1:] - ends[:-1], weights.owner
    votes, sink = weights.of_tokens * margin, weights.of_sink * sink_margin
    pro = np.maximum(votes, 0.0)
    support = np.add.reduceat(pro, starts)
    against = np.add.reduceat(pro - votes, starts)
    against -= sink
    np.maximum(against, 0.0, out=against)
    # as a share of the support; 1 where the support is too little
    needed = against / np.maximum(np.maximum(support, against), LEAST)

    supporters = (votes > 0.0).nonzero()[0]
    size = log_weight[supporters] + np.log(margin[supporters])  # the numbers by which one document alone is sorted
    order = supporters[_descending(size, owner[supporters])]
    whose = owner[order]
    running = np.zeros(len(order) + 1)
    (pro[order] / support[whose]).cumsum(out=running[1:])
    bounds = whose.searchsorted(np.arange(len(starts) + 1))
    begin, end = bounds[:-1], bounds[1:]
    # where it first reaches each level, and whether it stays clear of it there and one step before
    level = np.array([running[begin] + needed, running[end] - needed])
    at = np.minimum(running.searchsorted(level), len(running) - 1)
    apart = ((running[at] - level > CLOSE) & (level - running[at - 1] > CLOSE)).all(axis=0)
    kept, gone = at - begin
    clear = (needed > CLOSE) & (needed < 1.0 - CLOSE) & (weights.breadth < FAR) & apart
    clear &= sizes * (max(len(starts), TOGETHER) * EPSILON) < CLOSE / 4
    clear &= (weights.of_sink > 0.0) | (gone < sizes)

    rank = np.full(len(votes), len(votes))  # among the supporters of the document; the others come after all
    rank[order] = np.arange(len(order)) - begin[whose]

    def mean(keep: BoolArray) -> FloatArray:
        """Margins of sub-documents."""
        total = np.add.reduceat(weights.of_tokens * keep, starts)
        total += weights.of_sink
        np.maximum(total, LEAST, out=total)  # where nothing is left
        mean: FloatArray = np.add.reduceat(votes * keep, starts)
        mean += sink
        mean /= total
        return mean

    least, after = _least(mean, margin, owner, rank < kept[owner]), mean(rank >= gone[owner])
    return Answers(order, begin, kept, gone, least, after, clear)


def _descending(size: FloatArray, owner: IntArray) -> IntArray:
    """The places of the sizes by owner, largest first, equal ones in order. The owners come in order.

    One integer of owner, leading digits of the size, and place is sorted much faster than places by their sizes. In the
    rare case that digits without room in it matter, the slow way is taken.

    >>> _descending(np.array([1.0, -2.0, 3.0, 5.0, 7.0, 7.0]), np.array([0, 0, 0, 1, 1, 1])).tolist()
    [2, 0, 1, 4, 5, 3]
    """
    owners, places = int(owner[-1]).bit_length() if len(owner) else 0, len(size).bit_length()
    if not owners:
        return np.asarray((-size).argsort(kind="stable"))
    digits = 63 - owners - places
    bits = (0.0 - size).view(np.int64)
    bits ^= (bits >> 63) & (2**63 - 1)  # integers in the order of the numbers: of negative ones all but the sign turned
    packed = bits >> (64 - digits)
    packed += owner * 2**digits + 2 ** (digits - 1)
    packed <<= places
    packed |= np.arange(len(size))
    packed.sort()
    order = packed & (2**places - 1)
    ordered, whose = size[order], owner[order]
    if ((ordered[1:] > ordered[:-1]) & (whose[1:] == whose[:-1])).any():
        return np.lexsort((-size, owner))
    return order


def _least(mean: Callable[[BoolArray], FloatArray], margin: FloatArray, owner: IntArray, held: BoolArray) -> FloatArray:
    """The least mean of the held tokens, the sink and any others."""
    keep = held | (margin < 0.0)
    least = mean(keep)
    while True:
        lower = held | (margin < least[owner])
        if not (lower != keep).any():
            return least
        keep = lower
        following = mean(keep)
        if not (following < least).any():
            return least
        np.minimum(least, following, out=least)
