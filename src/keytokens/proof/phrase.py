"""The words of a document with the n-grams on them, and the programs that answer for masks.

A token that occurs c times weighs phi(c) (`model.weighting`). A `RunLengthProgram` needs each occurrence to count for
itself. Where phi is not additive, it is replaced by straight lines. phi is concave on 0..c, so for r occurrences left:

    from below   phi(r) >= phi(c) times the sum of the shares of those left. Shares are an average of orders in which
                 the steps phi(1) - phi(0) >= phi(2) - phi(1) >= ... >= phi(c) - phi(c - 1) are handed out, divided by
                 phi(c): any r of the steps sum to at most the first r, which sum to phi(r). Equal shares 1 / c are the
                 average of all orders. Binary counts (steps 1, 0, ..., 0) allow any shares >= 0 of sum 1.
    from above   phi(r) <= phi(c) - (c - r) * last step: each of the c - r steps that are gone is at least the last
                 one. With binary counts and c > 1 the last step is 0, so the token counts as never lost.

A program is *pessimistic* for the label if it takes supporters from below and opponents from above. Its sum is then at
most the true one for every mask: what cannot lose there cannot lose. An *optimistic* program does it the other way
round. With an additive phi, or if no token that votes occurs twice, both are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..base.errors import refusal
from ..model.weighting import WEIGHTINGS, Weighting, weighting
from .occurrences import recounted
from .program import RunLengthProgram, flags, inside
from .ranges import least_keeping
from .votes import ROUNDING, BoolArray, FloatArray, IntArray, Votes, label_of, log_abs, relative_votes


@dataclass(frozen=True, eq=False)
class Phrase:
    """The words of one document and the known n-grams on them.

    Parameters
    ----------
    length : int
        Number of words L.
    first, size, token : (O,) arrays of int
        Of each occurrence of a known n-gram: its first word, how many words it covers, its token.
    votes : Votes
        All tokens of the same document.
    counts : str
        The name of the weighting.

    Raises
    ------
    InputError
        If the arrays do not fit together.
    """

    length: int
    first: IntArray
    size: IntArray
    token: IntArray
    votes: Votes
    counts: str

    def __post_init__(self) -> None:
        weighting(self.counts)  # refuses a name that there is not
        if not len(self.first) == len(self.size) == len(self.token):
            lengths = (len(self.first), len(self.size), len(self.token))
            raise refusal("Phrase", "first, size and token", "have one entry per occurrence", lengths)
        if len(self.first) and (self.first.min() < 0 or (self.first + self.size).max() > self.length):
            raise refusal("Phrase", "first", f"lie inside the {self.length} words", self.first.tolist())
        if len(self.occurrences) != self.votes.tokens or (self.occurrences == 0).any():
            raise refusal("Phrase", "token", "name every token of the votes, and no other", self.token.tolist())

    @cached_property
    def occurrences(self) -> IntArray:
        """(T,) how often each token occurs."""
        return np.bincount(self.token, minlength=self.votes.tokens)

    @property
    def phi(self) -> Weighting:
        return WEIGHTINGS[self.counts]

    @cached_property
    def weight(self) -> FloatArray:
        """(T,) phi of the occurrences."""
        return np.asarray(self.phi(self.occurrences), np.float64)

    @property
    def order(self) -> int:
        return int(self.size.max(initial=1))

    def against(self, rival: int) -> FloatArray:
        """(T + 1,) votes of the tokens and, last, of the sink."""
        log_weight = np.append(self.votes.log_weight, self.votes.sink_log_weight)
        margin = np.append(self.votes.margin[:, rival], self.votes.sink_margin[rival])
        return relative_votes(log_weight, margin, log_weight + log_abs(margin))

    def is_local(self, rival: int) -> bool:
        """Each occurrence counts for itself: an additive weighting, or no token that votes occurs twice."""
        return self.phi.additive or not np.any((self.occurrences > 1) & (self.votes.margin[:, rival] != 0))

    def left_by(self, mask: tuple[int, ...]) -> tuple[BoolArray, IntArray]:
        """(O,) the occurrences that survive a mask; (T,) how many of each token do."""
        survives = inside(~flags(mask, self.length), self.first, self.size)
        return survives, np.bincount(self.token[survives], minlength=self.votes.tokens)

    def label_after(self, mask: tuple[int, ...]) -> int | None:
        """Label of the masked text, with its true counts; None if nothing is left that has one."""
        rest = recounted(self.votes, self.occurrences, self.left_by(mask)[1], self.counts)
        return label_of(rest) if rest.tokens or rest.has_sink else None


def equal_shares(phrase: Phrase) -> FloatArray:
    return 1.0 / phrase.occurrences[phrase.token]


def moved_shares(phrase: Phrase, shares: FloatArray, mask: tuple[int, ...], rate: float) -> FloatArray:
    """Shares moved from the occurrences that a mask hits to those it misses.

    The q missed ones are handed the first q steps, the hit ones the rest, each averaged: an average of orders, as
    asked above, and so is any mixture with the old shares.
    """
    missed, q = phrase.left_by(mask)
    c = phrase.occurrences
    first = phrase.phi(q) / phrase.weight
    target = np.where(
        missed, (first / np.maximum(q, 1))[phrase.token], ((1 - first) / np.maximum(c - q, 1))[phrase.token]
    )
    return (1.0 - rate) * shares + rate * target


def pessimistic(phrase: Phrase, rival: int, shares: FloatArray) -> RunLengthProgram:
    """At most the true sum, whatever is masked."""
    return _straight(phrase, rival, shares, below=1.0)


def optimistic(phrase: Phrase, rival: int) -> RunLengthProgram:
    """At least the true sum, whatever is masked."""
    return _straight(phrase, rival, equal_shares(phrase), below=-1.0)


def full_votes(phrase: Phrase, rival: int) -> RunLengthProgram:
    """At least the true sum too: what is left of a supporter adds r phi(1) >= phi(r)."""
    program = optimistic(phrase, rival)
    h = phrase.against(rival)[:-1]
    full = (h / phrase.weight * float(phrase.phi(1)))[phrase.token]
    if program.slack > 0:
        full = np.minimum(full, 2.0 * program.slack / ROUNDING)
    return replace(
        program,
        vote=np.where(full > 0, full, program.vote),
        constant=float(phrase.against(rival)[-1]),
    )


def _straight(phrase: Phrase, rival: int, shares: FloatArray, below: float) -> RunLengthProgram:
    """Tokens whose vote has the sign `below` are bounded by shares, from below; the others by their last step."""
    h = phrase.against(rival)
    h, sink = h[:-1], float(h[-1])
    shared = h * below > 0
    slope = (phrase.weight - phrase.phi(phrase.occurrences - 1)) / phrase.weight  # what the last occurrence adds
    never_lost = np.where(shared, 0.0, h * (1.0 - phrase.occurrences * slope)).sum()
    vote = np.where(shared[phrase.token], shares, slope[phrase.token]) * h[phrase.token]
    against = -float(h[h < 0].sum()) + max(-sink, 0.0)
    if against > 0:
        # an occurrence with more than all the opposition wins while it survives, and does so with twice the opposition
        # too: cut there, no sum is ever large beside what it is compared with
        vote = np.minimum(vote, 2.0 * against)
    return RunLengthProgram(
        length=phrase.length,
        first=phrase.first,
        size=phrase.size,
        vote=vote,
        constant=float(never_lost) + sink,
        strict=bool(phrase.votes.strict[rival]),
        slack=ROUNDING * against,
        may_empty=phrase.votes.has_sink,
    )


def protected(phrase: Phrase, rival: int, program: RunLengthProgram, kept: BoolArray) -> RunLengthProgram:
    """The pessimistic program once the words `kept` are never masked: q occurrences inside them are sure of phi(q).

    A supporter with q sure occurrences has phi(r) >= phi(q) + (r - q) (phi(c) - phi(q)) / (c - q) for q <= r <= c:
    concave again.
    """
    h = phrase.against(rival)[:-1]
    sure = inside(kept, phrase.first, phrase.size)
    c, q = phrase.occurrences, np.bincount(phrase.token[sure], minlength=len(h))
    part = phrase.phi(q) / phrase.weight
    concerned = (h > 0) & (q > 0)
    each = np.where(concerned, h * (1.0 - part) / np.maximum(c - q, 1), 0.0)[phrase.token]
    vote = np.where(concerned[phrase.token], np.where(sure, 0.0, each), program.vote)
    return replace(program, vote=vote, constant=program.constant + float((h * part)[concerned].sum()))


def occurrences_of(phrase: Phrase, tokens: tuple[int, ...]) -> list[int]:
    """The first occurrences of each token, as many as the token is named."""
    wanted = np.bincount(np.array(tokens, dtype=np.intp), minlength=phrase.votes.tokens).tolist()
    chosen = []
    for o in np.argsort(phrase.first, kind="stable").tolist():
        s = int(phrase.token[o])
        if wanted[s] > 0:
            wanted[s] -= 1
            chosen.append(o)
    return chosen


def least_keeping_words(phrase: Phrase, kept: Sequence[int]) -> FloatArray:
    """(R,) margins below which none goes, whichever words but the `kept` ones are masked.

    Of a token with q of its c occurrences inside the kept words, phi(q) is sure; its weight lies between that and
    phi(c), and the margin, a weighted mean, is monotone in each weight. So its sure part and the rest are two items, of
    which the second one may go.
    """
    sure = inside(flags(kept, phrase.length), phrase.first, phrase.size)
    part = phrase.phi(np.bincount(phrase.token[sure], minlength=phrase.votes.tokens)) / phrase.weight
    share, token = np.append(part, 1.0 - part), np.tile(np.arange(len(part)), 2)
    some = (share > 0).nonzero()[0]
    log_weight, margin = phrase.votes.log_weight[token[some]], phrase.votes.margin[token[some]]
    items = replace(phrase.votes, log_weight=log_weight + np.log(share[some]), margin=margin)
    return least_keeping(items, np.arange(np.count_nonzero(part)))
