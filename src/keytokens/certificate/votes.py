"""One document as votes: what each token weighs, and whom it helps.

The margin of the label y over a rival k is a weighted mean, f_y - f_k = sum_s W_s m_s / sum_s W_s with m_s the
difference of the two values (intercepts folded in). Its sign is the sign of sum_s h_s, h_s = W_s m_s: every token
*votes*, and the decision is linear. A token with h_s > 0 supports the label, with h_s < 0 opposes it, with h_s = 0 is
neutral. A sink is one more vote that nobody can delete.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keytokens.errors import refusal

__all__ = ["ROUNDING", "Ballot", "BoolArray", "Duel", "FloatArray", "IntArray", "label_of", "relative_votes"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]

ROUNDING = (
    1e-12  # two sums closer than this, relative to the opposition, are a tie; an answer that hangs on it is `tight`
)


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


@dataclass(frozen=True, eq=False)
class Ballot:
    """One document before the certificate: what each token weighs and how it votes for the label against each rival."""

    log_weight: FloatArray  # (T,) log W_s = log phi(c_s) + a_s, of any size
    margin: FloatArray  # (T, R) value of the label minus value of the rival, intercepts folded in
    strict: BoolArray  # (R,) the rival wins ties: it has a lower class index than the label
    rivals: IntArray  # (R,) class index of each rival
    label: int
    sink_log_weight: float  # log w0; -inf without a sink
    sink_margin: FloatArray  # (R,) c_y - c_k

    @classmethod
    def of(
        cls,
        log_weight: ArrayLike,
        values: ArrayLike,
        label: int,
        sink_log_weight: float = -math.inf,
        sink_values: ArrayLike | None = None,
    ) -> Ballot:
        """The ballot of a document from its class scores.

        `values` (T, K) holds the score of each token for each class with the intercept folded in (two classes: column
        0 is zero, column 1 is b_s + c0); `sink_values` (K,) the intercepts alone, since the sink has value 0.

        >>> Ballot.of([0.0, 1.0], [[0.0, 2.0], [0.0, -1.0]], label=1).margin.tolist()
        [[2.0], [-1.0]]
        """
        weight = np.asarray(log_weight, dtype=np.float64)
        scores = np.asarray(values, dtype=np.float64)
        _check(weight, scores, label)
        classes = scores.shape[1]
        intercepts = np.zeros(classes) if sink_values is None else np.asarray(sink_values, dtype=np.float64)
        if intercepts.shape != (classes,):
            raise refusal("Ballot.of", "sink_values", f"have one entry per class ({classes})", intercepts.shape)
        rivals = np.delete(np.arange(classes), label)
        return cls(
            log_weight=weight,
            margin=scores[:, [label]] - scores[:, rivals],
            strict=rivals < label,
            rivals=rivals,
            label=int(label),
            sink_log_weight=float(sink_log_weight),
            sink_margin=intercepts[label] - intercepts[rivals],
        )

    @property
    def tokens(self) -> int:
        """Number T of tokens, the sink not among them."""
        return len(self.log_weight)

    @property
    def has_sink(self) -> bool:
        return self.sink_log_weight > -math.inf

    @cached_property
    def log_size(self) -> FloatArray:
        """(T, R) log |h_s|: -inf where a token is neutral."""
        return self.log_weight[:, None] + _log_abs(self.margin)

    @cached_property
    def duels(self) -> tuple[Duel, ...]:
        """The label against each rival."""
        return tuple(_duel(self, r) for r in range(len(self.rivals)))

    def take(self, tokens: Any) -> Ballot:
        """The sub-document of the given tokens (indices or a mask); the sink stays."""
        return self.reweighted(self.log_weight[tokens], self.margin[tokens])

    def reweighted(self, log_weight: FloatArray, margin: FloatArray) -> Ballot:
        """Other tokens before the same question: same label, rivals and sink."""
        return Ballot(log_weight, margin, self.strict, self.rivals, self.label, self.sink_log_weight, self.sink_margin)


def _check(weight: FloatArray, scores: FloatArray, label: int) -> None:
    if weight.ndim != 1 or scores.ndim != 2 or len(weight) != len(scores):
        raise refusal("Ballot.of", "values", "have one row per token and one column per class", scores.shape)
    if scores.shape[1] < 2:
        raise refusal("Ballot.of", "values", "have at least two columns", scores.shape)
    if not 0 <= label < scores.shape[1]:
        raise refusal("Ballot.of", "label", f"be a class index below {scores.shape[1]}", label)
    if not (np.isfinite(weight).all() and np.isfinite(scores).all()):
        raise refusal("Ballot.of", "log_weight and values", "be finite", "inf or nan", "leave absent tokens out")


def _log_abs(x: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.log(np.abs(x))


def _duel(ballot: Ballot, rival: int) -> Duel:
    """Votes of the label against the rival in column `rival`, scaled so that any logits are safe.

    Only supporters are ever deleted in a worst case, so what matters is each supporter *relative to the opposition*:
    sizes are taken in the log domain and divided by the largest opponent. Softmax weights would lose the opponent of
    the pair (a, b) = (0, 1), (-800, -1), which decides as soon as the first token is gone.
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


def relative_votes(log_weight: FloatArray, margin: FloatArray) -> FloatArray:
    """h_s = W_s m_s up to one positive factor, with every sign kept.

    Near the scale the vote is the product m_s e^{...}, so that integer votes of equal weight stay integers; beyond
    e^300 only the log size counts, cut to [-690, 600], which changes no comparison with a sum of opponents that
    contains the scale itself.
    """
    size = log_weight + _log_abs(margin)
    if not len(size) or size.max() == -math.inf:
        return np.zeros_like(size)
    opposed = np.where(margin < 0, size, -math.inf)
    anchor = int((opposed if opposed.max() > -math.inf else size).argmax())
    shift = log_weight - log_weight[anchor]
    h = margin * np.exp(np.clip(shift, -300.0, 300.0))
    far = np.abs(shift) > 300.0
    if far.any():
        apart = np.exp(np.clip(size[far] - size[anchor], -690.0, 600.0)) * abs(margin[anchor])
        h[far] = np.sign(margin[far]) * np.where(size[far] > -math.inf, np.maximum(apart, 1e-305), 0.0)
    return np.asarray(h)


def label_of(ballot: Ballot) -> int:
    """The class of a document: the largest score, the lowest index among equals.

    Each lead f_k - f_y is taken as sign and logarithm, so that no vote underflows.
    """
    leads = [_lead(ballot, r) for r in range(len(ballot.rivals))]
    best, top = ballot.label, (0, -math.inf)
    for rival, lead in zip(ballot.rivals.tolist(), leads, strict=True):
        if _exceeds(lead, top) or (rival < best and not _exceeds(top, lead)):
            best, top = rival, lead
    return int(best)


Lead = tuple[int, float]  # sign and log size of a difference of scores, up to the common denominator


def _lead(ballot: Ballot, rival: int) -> Lead:
    margin = np.append(ballot.margin[:, rival], ballot.sink_margin[rival])
    size = np.append(ballot.log_weight, ballot.sink_log_weight) + _log_abs(margin)
    top = float(size.max())
    if top == -math.inf:
        return 0, -math.inf
    votes = np.sign(margin) * np.exp(size - top)
    total = -math.fsum(votes.tolist())
    if abs(total) <= ROUNDING * float(np.abs(votes).sum()):
        return 0, -math.inf
    return (1 if total > 0 else -1), top + math.log(abs(total))


def _exceeds(one: Lead, other: Lead) -> bool:
    if one[0] != other[0]:
        return one[0] > other[0]
    return one[0] != 0 and one[0] * (one[1] - other[1]) > ROUNDING
