"""Token sets of many documents of two classes at once, where plain sums decide them.

What `sufficient` and `flip` find in one document with sums that are exact, one sort and one running sum find in all:
the votes of the supporters, largest first, in shares of their sum. A document in which some comparison is closer than
the rounding of the running sum could reach, or which is special in any other way, is left to them: `clear` says so. So
every set is the one that they would find. The least margin needs no sort: with the mean of the worst sub-document so
far as a guess, exactly the free tokens of lower value make it worse, and their mean is the next guess (Dinkelbach).

What is computed of one document does not depend on the others, to the bit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from keytokens.certificate.votes import BoolArray, FloatArray, IntArray

__all__ = ["Answers", "answers", "relative_weights"]

FAR = 300.0  # log weights of one document further apart than this are left to the exact road
CLOSE = 1e-9  # shares of the support that differ by less are not told apart; what counts as a tie is far below
EPSILON = float(np.finfo(np.float64).eps)
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
    supported = support > 0.0
    with np.errstate(over="ignore"):  # support of 1e-320: no clear answer
        needed = (against - sink) / np.where(supported, support, 1.0)

    order = _by_vote(log_weight, margin, votes, owner)
    whose = owner[order]
    running = np.zeros(len(order) + 1)
    np.cumsum(pro[order] / support[whose], out=running[1:])
    bounds = whose.searchsorted(np.arange(len(starts) + 1))
    begin, end = bounds[:-1], bounds[1:]
    clear = supported & (needed > CLOSE) & (needed < 1.0 - CLOSE) & (weights.breadth < FAR)
    clear &= sizes * (max(len(starts), TOGETHER) * EPSILON) < CLOSE / 4
    kept_at, kept_clear = _crossing(running, running[begin] + needed)
    gone_at, gone_clear = _crossing(running, running[end] - needed)
    kept, gone = kept_at - begin, gone_at - begin
    clear &= kept_clear & gone_clear & ((weights.of_sink > 0.0) | (gone < sizes))

    place = np.arange(len(order)) - begin[whose]
    means = _Means(weights, votes, sink, starts)
    held, left = np.zeros(len(votes), np.bool_), np.ones(len(votes), np.bool_)
    held[order[place < kept[whose]]] = True
    left[order[place < gone[whose]]] = False
    return Answers(order, begin, kept, gone, _least(means, margin, held), means.of(left), clear)


def _by_vote(log_weight: FloatArray, margin: FloatArray, votes: FloatArray, owner: IntArray) -> IntArray:
    """The supporters by document, largest vote first; sorted by the same numbers as in one document alone."""
    supporters = (votes > 0.0).nonzero()[0]
    size = log_weight[supporters] + np.log(margin[supporters])
    order = supporters[(-size).argsort(kind="stable")]
    if owner[-1] == 0:
        return order
    whose = owner[order]
    return order[(whose.astype(np.uint16) if owner[-1] < 2**16 else whose).argsort(kind="stable")]


def _crossing(running: FloatArray, level: FloatArray) -> tuple[IntArray, BoolArray]:
    """Where the running sum first reaches the level, and whether it stays clear of it there and one step before."""
    at = np.minimum(running.searchsorted(level), len(running) - 1)
    return at, (running[at] - level > CLOSE) & (level - running[at - 1] > CLOSE)


@dataclass(frozen=True, eq=False)
class _Means:
    """Margins of sub-documents."""

    weights: Weights
    votes: FloatArray
    sink: FloatArray
    starts: IntArray

    def of(self, keep: BoolArray) -> FloatArray:
        total = np.add.reduceat(self.weights.of_tokens * keep, self.starts)
        total += self.weights.of_sink
        total[total == 0.0] = 1.0
        mean: FloatArray = np.add.reduceat(self.votes * keep, self.starts)
        mean += self.sink
        mean /= total
        return mean


def _least(means: _Means, margin: FloatArray, held: BoolArray) -> FloatArray:
    """The least mean of the held tokens, the sink and any others."""
    least = means.of(held | (margin < 0.0))
    while True:
        following = means.of(held | (margin < least[means.weights.owner]))
        if not (following < least).any():
            return least
        np.minimum(least, following, out=least)
