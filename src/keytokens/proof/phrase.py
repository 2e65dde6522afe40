"""The words of a document, the n-grams on them, and programs that are exact or bound the truth from one side.

A token that occurs c times weighs phi(c) (`model.weighting`). Masking is local only if each occurrence counts for
itself; where phi is not additive it is replaced by straight lines. phi is concave on 0..c, hence for r
occurrences left

    from below   phi(r) >= phi(c) * (sum of the shares of those left), where the shares are an average of orders in
                 which the steps phi(1) - phi(0) >= phi(2) - phi(1) >= ... >= phi(c) - phi(c - 1) are handed out,
                 divided by phi(c): any r of the steps sum to at most the first r, which sum to phi(r). Equal shares
                 1 / c are the average of all orders; binary counts (steps 1, 0, ..., 0) allow any shares >= 0 of sum 1.
    from above   phi(r) <= phi(c) - (c - r) * last step, since each of the c - r steps that are gone is at least the
                 last one. With binary counts and c > 1 the last step is 0: the token counts as never lost.

*Pessimistic* for the label: supporters from below, opponents from above. The sum is then at most the true one for
every mask: what cannot lose there cannot lose. *Optimistic*: the other way round. With an additive phi, or if no
token that votes occurs twice, both are the truth.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..base.errors import refusal
from ..model.weighting import Weighting, weighting
from .occurrences import recounted
from .program import RunLengthProgram
from .votes import ROUNDING, Ballot, BoolArray, FloatArray, IntArray, label_of, relative_votes


@dataclass(frozen=True, eq=False)
class Sentence:
    """The words of one document and the known n-grams on them."""

    length: int  # number of word positions L
    first: IntArray  # (O,) first word of each known n-gram occurrence
    size: IntArray  # (O,) number of words it covers, 1..n
    token: IntArray  # (O,) index into the ballot's tokens
    ballot: Ballot  # all tokens of the same document
    counts: str  # the name of a weighting

    def __post_init__(self) -> None:
        if not len(self.first) == len(self.size) == len(self.token):
            lengths = (len(self.first), len(self.size), len(self.token))
            raise refusal("Sentence", "first, size and token", "have one entry per occurrence", lengths)
        if len(self.first) and (self.first.min() < 0 or (self.first + self.size).max() > self.length):
            raise refusal("Sentence", "first", f"lie inside the {self.length} words", self.first.tolist())
        if len(self.occurrences) != self.ballot.tokens or (self.occurrences == 0).any():
            raise refusal("Sentence", "token", "name every token of the ballot, and no other", self.token.tolist())

    @cached_property
    def occurrences(self) -> IntArray:
        """(T,) how often each token occurs."""
        return np.bincount(self.token, minlength=self.ballot.tokens)

    @property
    def phi(self) -> Weighting:
        return weighting(self.counts)

    @cached_property
    def weight(self) -> FloatArray:
        """(T,) phi of the occurrences."""
        return np.asarray(self.phi(self.occurrences), np.float64)

    @cached_property
    def last_step(self) -> FloatArray:
        """(T,) what the last occurrence of each token adds."""
        return self.weight - self.phi(self.occurrences - 1)

    @property
    def order(self) -> int:
        return int(self.size.max(initial=1))

    def votes(self, rival: int) -> FloatArray:
        """(T + 1,) votes of the tokens and, last, of the sink."""
        return relative_votes(
            np.append(self.ballot.log_weight, self.ballot.sink_log_weight),
            np.append(self.ballot.margin[:, rival], self.ballot.sink_margin[rival]),
        )

    def is_local(self, rival: int) -> bool:
        """Each occurrence counts for itself: an additive weighting, or no token that votes occurs twice."""
        return self.phi.additive or not np.any((self.occurrences > 1) & (self.ballot.margin[:, rival] != 0))

    def inside(self, words: BoolArray) -> BoolArray:
        """(O,) the occurrences all of whose words are in `words`."""
        before = np.concatenate([[0], np.cumsum(words)])
        inside: BoolArray = before[self.first + self.size] - before[self.first] == self.size
        return inside

    def left_by(self, mask: tuple[int, ...]) -> Ballot:
        """The document after masking, with its true counts."""
        words = np.ones(self.length, dtype=bool)
        words[list(mask)] = False
        left = np.bincount(self.token[self.inside(words)], minlength=self.ballot.tokens)
        return recounted(self.ballot, self.occurrences, left, self.counts)

    def label_after(self, mask: tuple[int, ...]) -> int | None:
        """Label of the masked text; None if nothing is left that has one."""
        rest = self.left_by(mask)
        return label_of(rest) if rest.tokens or rest.has_sink else None


def equal_shares(sentence: Sentence) -> FloatArray:
    return 1.0 / sentence.occurrences[sentence.token]


def moved_shares(sentence: Sentence, shares: FloatArray, mask: tuple[int, ...], rate: float) -> FloatArray:
    """Shares moved from the occurrences that a mask hits to those it misses.

    The q missed ones are handed the first q steps, the hit ones the rest, each averaged: an average of orders, as
    asked above, and so is any mixture with the old shares.
    """
    words = np.ones(sentence.length, dtype=bool)
    words[list(mask)] = False
    missed = sentence.inside(words)
    c, q = sentence.occurrences, np.bincount(sentence.token[missed], minlength=sentence.ballot.tokens)
    first = sentence.phi(q) / sentence.weight
    target = np.where(
        missed, (first / np.maximum(q, 1))[sentence.token], ((1 - first) / np.maximum(c - q, 1))[sentence.token]
    )
    return (1.0 - rate) * shares + rate * target


def pessimistic(sentence: Sentence, rival: int, shares: FloatArray) -> RunLengthProgram:
    """At most the true sum, whatever is masked."""
    return _straight(sentence, rival, shares, below=1.0)


def optimistic(sentence: Sentence, rival: int) -> RunLengthProgram:
    """At least the true sum, whatever is masked."""
    return _straight(sentence, rival, equal_shares(sentence), below=-1.0)


def full_votes(sentence: Sentence, rival: int) -> RunLengthProgram:
    """At least the true sum too: what is left of a supporter adds r phi(1) >= phi(r)."""
    program = optimistic(sentence, rival)
    votes = sentence.votes(rival)[:-1]
    full = (votes / sentence.weight * float(sentence.phi(1)))[sentence.token]
    if program.slack > 0:
        full = np.minimum(full, 2.0 * program.slack / ROUNDING)
    return replace(
        program,
        vote=np.where(full > 0, full, program.vote),
        constant=float(sentence.votes(rival)[-1]),
    )


def _straight(sentence: Sentence, rival: int, shares: FloatArray, below: float) -> RunLengthProgram:
    """Tokens whose vote has the sign `below` are bounded by shares, from below; the others by their last step."""
    votes = sentence.votes(rival)
    h, sink = votes[:-1], float(votes[-1])
    shared = h * below > 0
    slope = sentence.last_step / sentence.weight
    never_lost = np.where(shared, 0.0, h * (1.0 - sentence.occurrences * slope)).sum()
    vote = np.where(shared[sentence.token], shares, slope[sentence.token]) * h[sentence.token]
    against = -float(h[h < 0].sum()) + max(-sink, 0.0)
    if against > 0:
        # an occurrence with more than all the opposition wins while it survives, and does so with twice the opposition
        # too: cut there, no sum is ever large beside what it is compared with
        vote = np.minimum(vote, 2.0 * against)
    return RunLengthProgram(
        length=sentence.length,
        first=sentence.first,
        size=sentence.size,
        vote=vote,
        constant=float(never_lost) + sink,
        strict=bool(sentence.ballot.strict[rival]),
        slack=ROUNDING * against,
        may_empty=sentence.ballot.has_sink,
    )


def protected(sentence: Sentence, rival: int, program: RunLengthProgram, kept: BoolArray) -> RunLengthProgram:
    """The pessimistic program once the words `kept` are never masked: q occurrences inside them are sure of phi(q).

    A supporter with q sure occurrences has phi(r) >= phi(q) + (r - q) (phi(c) - phi(q)) / (c - q) for q <= r <= c:
    concave again.
    """
    h = sentence.votes(rival)[:-1]
    sure = sentence.inside(kept)
    c, q = sentence.occurrences, np.bincount(sentence.token[sure], minlength=len(h))
    part = sentence.phi(q) / sentence.weight
    concerned = (h > 0) & (q > 0)
    each = np.where(concerned, h * (1.0 - part) / np.maximum(c - q, 1), 0.0)[sentence.token]
    vote = np.where(concerned[sentence.token], np.where(sure, 0.0, each), program.vote)
    return replace(program, vote=vote, constant=program.constant + float((h * part)[concerned].sum()))


def occurrences_of(sentence: Sentence, tokens: tuple[int, ...]) -> list[int]:
    """The first occurrences of each token, as many as the token is named."""
    wanted = np.bincount(np.array(tokens, dtype=np.intp), minlength=sentence.ballot.tokens).tolist()
    chosen = []
    for o in np.argsort(sentence.first, kind="stable").tolist():
        s = int(sentence.token[o])
        if wanted[s] > 0:
            wanted[s] -= 1
            chosen.append(o)
    return chosen
