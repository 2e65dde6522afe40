"""One document as votes: how much each token weighs, and whether it speaks for the label or against it.

The margin of the label y over a rival k is a weighted mean: f_y - f_k = sum_s W_s m_s / sum_s W_s. Here W_s is the
weight of token s, and m_s is how much more it says for y than for k, intercepts included. The denominator is positive,
so the sign of the margin is the sign of sum_s h_s with h_s = W_s m_s: every token *votes*, and the decision is linear
in the votes. A token with h_s > 0 supports the label, one with h_s < 0 opposes it. A sink is one more vote, which
nobody can delete.

`Votes` holds a document. `Pair` holds the label against one rival: the supporting votes in order, and the sum of the
opposing ones. With two classes there is one pair, and two sorts answer both questions: `fewest_kept` and
`fewest_deleted`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..base.errors import refusal

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]

ROUNDING = (
    1e-12  # two sums closer than this, relative to the opposition, are a tie; an answer that hangs on it is `tight`
)


@dataclass(frozen=True, eq=False)
class Pair:
    """The label against one rival: the votes of all tokens, up to one common positive factor."""

    order: IntArray  # the supporters, largest vote first, equal ones in document order
    support: FloatArray  # their votes, in that order
    given: float  # support of the sink: it counts whatever is deleted
    against: float  # sum of all opposing votes, that of the sink included
    strict: bool  # the label must have more than N, not merely as much
    may_empty: bool  # every token may be deleted: with a sink the empty document has a score
    tokens: int


@dataclass(frozen=True, eq=False)
class Votes:
    """How each token of one document weighs and votes for the label against each rival; made by `Votes.of`.

    Attributes
    ----------
    log_weight : (T,) array
        log W_s = log phi(c_s) + a_s, of any size.
    margin : (T, R) array
        Value of the label minus value of the rival, intercepts included.
    strict : (R,) array of bool
        The rival wins ties: it has a lower class index than the label.
    rivals : (R,) array of int
        Class index of each rival.
    label : int
    sink_log_weight : float
        -inf without a sink.
    sink_margin : (R,) array
        Intercept of the label minus that of the rival.
    """

    log_weight: FloatArray
    margin: FloatArray
    strict: BoolArray
    rivals: IntArray
    label: int
    sink_log_weight: float
    sink_margin: FloatArray

    @classmethod
    def of(
        cls,
        log_weight: ArrayLike,
        values: ArrayLike,
        label: int,
        sink_log_weight: float = -math.inf,
        sink_values: ArrayLike | None = None,
    ) -> Votes:
        """Make the votes of a document from the class scores of its tokens.

        Parameters
        ----------
        log_weight : array-like of shape (T,)
        values : array-like of shape (T, K)
            Score of each token for each class, intercept included (two classes: column 0 is zero).
        label : int
            Class index of the label.
        sink_log_weight : float, default -inf
            No sink.
        sink_values : array-like of shape (K,), optional
            The intercepts alone, since the sink has value 0.

        Raises
        ------
        InputError
            If shapes do not fit together, or a number is not finite.

        >>> Votes.of([0.0, 1.0], [[0.0, 2.0], [0.0, -1.0]], label=1).margin.tolist()
        [[2.0], [-1.0]]
        """
        weight = np.asarray(log_weight, dtype=np.float64)
        scores = np.asarray(values, dtype=np.float64)
        _check(weight, scores, label)
        classes = scores.shape[1]
        intercepts = np.zeros(classes) if sink_values is None else np.asarray(sink_values, dtype=np.float64)
        if intercepts.shape != (classes,):
            raise refusal("Votes.of", "sink_values", f"have one entry per class ({classes})", intercepts.shape)
        return cls.trusted(weight, scores, int(label), float(sink_log_weight), intercepts)

    @classmethod
    def trusted(
        cls, log_weight: FloatArray, values: FloatArray, label: int, sink_log_weight: float, sink_values: FloatArray
    ) -> Votes:
        """Make them from arrays that a model made: nothing is checked."""
        rivals, strict = _rivals(values.shape[1], label)
        # of two classes the other one is a slice, which costs less than a list of columns
        others = slice(1 - label, 2 - label) if values.shape[1] == 2 else rivals
        margin = values[:, label : label + 1] - values[:, others]
        sink_margin = sink_values[label] - sink_values[others]
        return cls(log_weight, margin, strict, rivals, label, sink_log_weight, sink_margin)

    @property
    def tokens(self) -> int:
        """Number T of tokens, the sink not among them."""
        return len(self.log_weight)

    @property
    def has_sink(self) -> bool:
        return self.sink_log_weight > -math.inf

    @cached_property
    def with_sink(self) -> tuple[FloatArray, FloatArray]:
        """Log weights and margins of the tokens and, last, of the sink where there is one."""
        if not self.has_sink:
            return self.log_weight, self.margin
        log_weight = np.empty(self.tokens + 1)
        log_weight[:-1], log_weight[-1] = self.log_weight, self.sink_log_weight
        margin = np.empty((self.tokens + 1, len(self.rivals)), order="F")
        margin[:-1], margin[-1] = self.margin, self.sink_margin
        return log_weight, margin

    @cached_property
    def pairs(self) -> tuple[Pair, ...]:
        """The label against each rival."""
        return tuple(map(self._pair, range(len(self.rivals))))

    def _pair(self, rival: int) -> Pair:
        """The votes against the rival in column `rival`, scaled so that any logits are safe.

        Only supporters are ever deleted in a worst case, so what matters is each supporter *relative to the
        opposition*: sizes are taken in the log domain and divided by the largest opponent. Softmax weights would lose
        the opponent of the pair (a, b) = (0, 1), (-800, -1), which decides as soon as the first token is gone.
        """
        log_weight, margins = self.with_sink
        margin = margins[:, rival]
        size = log_weight + log_abs(margin)
        h = relative_votes(log_weight, margin, size)
        against = -math.fsum(h[h < 0].tolist())
        given = max(float(h[-1]), 0.0) if self.has_sink else 0.0
        supporters = (h[: self.tokens] > 0).nonzero()[0]
        order = supporters[(-size[supporters]).argsort(kind="stable")]
        return Pair(order, h[order], given, against, bool(self.strict[rival]), self.has_sink, self.tokens)

    def take(self, tokens: Any) -> Votes:
        """The sub-document of the given tokens (indices or a mask); the sink stays."""
        return replace(self, log_weight=self.log_weight[tokens], margin=self.margin[tokens])


@cache
def _rivals(classes: int, label: int) -> tuple[IntArray, BoolArray]:
    """The other classes, and which of them win ties."""
    rivals = np.delete(np.arange(classes), label)
    strict = rivals < label
    for one in (rivals, strict):
        one.flags.writeable = False
    return rivals, strict


def _check(weight: FloatArray, scores: FloatArray, label: int) -> None:
    if weight.ndim != 1 or scores.ndim != 2 or len(weight) != len(scores):
        raise refusal("Votes.of", "values", "have one row per token and one column per class", scores.shape)
    if scores.shape[1] < 2:
        raise refusal("Votes.of", "values", "have at least two columns", scores.shape)
    if not 0 <= label < scores.shape[1]:
        raise refusal("Votes.of", "label", f"be a class index below {scores.shape[1]}", label)
    if not (np.isfinite(weight).all() and np.isfinite(scores).all()):
        raise refusal("Votes.of", "log_weight and values", "be finite", "inf or nan", "leave absent tokens out")


def log_abs(x: FloatArray) -> FloatArray:
    size = np.abs(x)
    if size.all():  # nearly always; to allow zeros takes longer than the logarithms
        return np.asarray(np.log(size))
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(size))


def relative_votes(log_weight: FloatArray, margin: FloatArray, size: FloatArray) -> FloatArray:
    """h_s = W_s m_s up to one positive factor, with every sign kept; `size` is log |h_s|.

    Near the scale the vote is the product m_s e^{...}, so that integer votes of equal weight stay integers; beyond
    e^300 only the log size counts, cut to [-690, 600], which changes no comparison with a sum of opponents that
    contains the scale itself.
    """
    if not len(size):
        return np.zeros(0)
    opposed = np.where(margin < 0, size, -math.inf)
    anchor = opposed.argmax()
    if opposed[anchor] == -math.inf:
        anchor = size.argmax()
    if size[anchor] == -math.inf:
        return np.zeros_like(size)
    shift = log_weight - log_weight[anchor]
    if shift.min() >= -300.0 and shift.max() <= 300.0:
        return np.asarray(margin * np.exp(shift))
    h = margin * np.exp(np.clip(shift, -300.0, 300.0))
    far = np.abs(shift) > 300.0
    apart = np.exp(np.clip(size[far] - size[anchor], -690.0, 600.0)) * abs(margin[anchor])
    h[far] = np.sign(margin[far]) * np.where(size[far] > -math.inf, np.maximum(apart, 1e-305), 0.0)
    return np.asarray(h)


def label_of(votes: Votes) -> int:
    """Find the class of a document: the one with the largest score, the lowest index among equals.

    Parameters
    ----------
    votes : Votes
        For whichever label.

    Returns
    -------
    int
        A class index.

    Notes
    -----
    Each lead f_k - f_y is taken as sign and logarithm, so that no vote underflows.
    """
    best, top = votes.label, (0, -math.inf)
    for column, rival in enumerate(votes.rivals.tolist()):
        lead = _lead(votes, column)
        if _exceeds(lead, top) or (rival < best and not _exceeds(top, lead)):
            best, top = rival, lead
    return int(best)


Lead = tuple[int, float]  # sign and log size of a difference of scores, up to the common denominator


def _lead(votes: Votes, rival: int) -> Lead:
    log_weight, margins = votes.with_sink
    margin = margins[:, rival]
    size = log_weight + log_abs(margin)
    top = float(size.max(initial=-math.inf))
    if top == -math.inf:
        return 0, -math.inf
    h = np.sign(margin) * np.exp(size - top)
    total = -math.fsum(h.tolist())
    if abs(total) <= ROUNDING * float(np.abs(h).sum()):
        return 0, -math.inf
    return (1 if total > 0 else -1), top + math.log(abs(total))


def _exceeds(one: Lead, other: Lead) -> bool:
    if one[0] != other[0]:
        return one[0] > other[0]
    return one[0] != 0 and one[0] * (one[1] - other[1]) > ROUNDING


def beats(support: Any, against: Any, strict: Any) -> Any:
    """Does this much support win? Sums within ROUNDING of each other tie, and a tie goes to a strict rival.

    >>> bool(beats(3.0, 3.0, False)), bool(beats(3.0, 3.0, True))
    (True, False)
    """
    slack = ROUNDING * against
    return np.where(strict, support - against > slack, support - against >= -slack)[()]


def near(support: float, against: float) -> bool:
    """The comparison hangs on rounding."""
    return against > 0 and abs(support - against) <= ROUNDING * against


def fewest_kept(pair: Pair) -> tuple[int, bool] | None:
    """First k for which the k largest supporters beat all opposition, and whether that hangs on rounding."""
    support = pair.support.tolist()
    guess = int(pair.support.cumsum().searchsorted(pair.against - pair.given)) + 1
    return _first(pair, lambda k: support[:k], True, guess, 0)


def fewest_deleted(pair: Pair) -> tuple[int, bool] | None:
    """First m >= 1 for which the label loses without its m largest supporters, and whether that hangs on rounding.

    None if there is no such m. The rest is summed as such, never as total minus prefix: with logits far apart the
    difference would be noise.
    """
    support = pair.support.tolist()
    guess = len(support) - int(pair.support[::-1].cumsum().searchsorted(pair.against - pair.given))
    found = _first(pair, lambda m: support[m:], False, guess, 1)
    return None if found is not None and found[0] == pair.tokens and not pair.may_empty else found


def _first(
    pair: Pair, supporters: Callable[[int], list[float]], wins: bool, guess: int, low: int
) -> tuple[int, bool] | None:
    """First n from `low` on where the label wins, or loses, with `supporters(n)`, by steps from a good guess."""
    slack = ROUNDING * pair.against

    @cache
    def total(n: int) -> float:
        return math.fsum([pair.given, *supporters(n)])

    def holds(n: int) -> bool:
        lead = total(n) - pair.against  # the rule of `beats` for one sum
        return (lead > slack if pair.strict else lead >= -slack) is wins

    high = len(pair.support)
    if low > high:
        return None
    n = max(low, min(guess, high))
    while n > low and holds(n - 1):
        n -= 1
    while n < high and not holds(n):
        n += 1
    if not holds(n):
        return None
    return n, near(total(n), pair.against) or (n > 0 and near(total(n - 1), pair.against))
