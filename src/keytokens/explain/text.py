"""The record of one explained text."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import proof as proofs
from ..proof.phrase import Phrase
from ..proof.tokens import NOTHING, ProvedSet
from ..proof.votes import Votes
from .certificate import Proof, said
from .documents import Documents
from .record import Explained, ItemSet, Later, Prediction, Proved

Span = tuple[int, int]


class TokenUse(NamedTuple):
    """One occurrence of a known token in the text."""

    text: str
    start: int
    end: int
    attention: float  # its token's, divided by the number of occurrences
    value: float  # what the token says for f, intercept folded in
    contribution: float  # attention * value; with the sink's they add up to the logit
    selected: bool  # among the fewest tokens that hold half of the attention on tokens


# TokenUse._make without its Python frame: there are hundreds of tokens in a text
_named_row: Callable[[Iterable[Any]], TokenUse] = functools.partial(tuple.__new__, TokenUse)


class TokenUses(Later[TokenUse]):
    """Every occurrence of a known token, in text order: rows that are made when one is read, or arrays at once."""

    def __init__(self, documents: Documents, own: slice) -> None:
        super().__init__(own.stop - own.start, functools.partial(_rows, documents, own))
        self._names, self._token = documents.names, documents.token[own]
        self.start, self.end, self.attention, self.value, self.contribution, self.selected = (
            column[own] for column in documents.uses
        )

    @property
    def text(self) -> list[str]:
        return [self._names[t] for t in self._token.tolist()]


def _rows(documents: Documents, own: slice) -> Iterable[TokenUse]:
    names = [documents.names[t] for t in documents.token[own].tolist()]
    return map(_named_row, zip(names, *(column[own].tolist() for column in documents.uses), strict=True))


class KeyToken(NamedTuple):
    """One entry of the vocabulary's most decisive tokens."""

    token: str
    contribution: float  # to the class, mean over the training documents
    attention: float  # mean over the training documents
    value: float  # for the class, intercept folded in
    counts: dict[Any, int]  # training documents of each class that hold it


class FormalItem(NamedTuple):
    """A token (or a word) of a formal set."""

    text: str
    start: int
    end: int  # of its first occurrence
    spans: tuple[Span, ...]  # of all
    contribution: float


class FormalSet(ItemSet[FormalItem]):
    """The items of a formal set of a text."""

    def to_dict(self) -> dict[str, Any]:
        items = [{**item._asdict(), "spans": [list(span) for span in item.spans]} for item in self.items]
        return {"items": items, **self._facts()}


class Certificate(Proof):
    """What is proved of the label of one text."""

    unit = "tokens"

    @property
    def tokens(self) -> int:
        """Known tokens of the text."""
        return self.items


@dataclass(frozen=True, eq=False, repr=False)
class Explanation(Explained):
    """Why one text got its label: exact contributions, formal sets, and the certificate.

    >>> import keytokens as kt
    >>> clf = kt.KeyTokenClassifier(ngrams=(1, 1)).fit(["a great film", "a dull plot"] * 4, ["good", "bad"] * 4)
    >>> e = clf.explain("a great plot, a great cast")
    >>> e.label, [item.text for item in e.sufficient], [item.text for item in e.flip]
    ('good', ['great'], ['great'])
    >>> bool(abs(sum(use.contribution for use in e.tokens) + e.sink - e.logit) < 1e-9)
    True
    """

    documents: Documents  # this text, and those that were read with it
    index: int = 0  # which of them it is

    def __reduce__(self) -> tuple[Any, ...]:
        """Copied and stored without the other texts."""
        return type(self), (self.documents.only(self.index),)

    @functools.cached_property
    def prediction(self) -> Prediction:
        documents, text = self.documents, self.index
        numbers = documents.scores[text], documents.probabilities[text]
        return Prediction.of(*numbers, documents.classes, documents.winners[text], documents.noise)

    @property
    def text(self) -> str:
        return self.documents.texts[self.index]

    @property
    def words(self) -> NDArray[np.intp]:
        """(L, 2) start and end of every word, known or not."""
        return self.documents.words[self.documents.own[self.index].words]

    @property
    def names(self) -> Sequence[str]:
        """The distinct tokens, in order of first occurrence."""
        return self.documents.names[self.documents.own[self.index].tokens]

    @property
    def sink(self) -> float:
        """The sink's own contribution: its attention times the intercept."""
        documents = self.documents
        return documents.sink_attention(self.index) * float(documents.sink_values[self.prediction.explained])

    @functools.cached_property
    def tokens(self) -> TokenUses:
        """Every occurrence of a known token, in text order."""
        return TokenUses(self.documents, self.documents.own[self.index].uses)

    @functools.cached_property
    def _votes(self) -> Sequence[Votes]:
        """Its votes, made when they are first looked at."""
        documents, text = self.documents, self.index  # not itself: a record is freed as soon as nobody holds it
        return Later(1, lambda: [documents.votes(text)])

    @functools.cached_property
    def _sets(self) -> Proved:
        return self.documents.proved(self.index) or super()._sets

    @functools.cached_property
    def _phrase(self) -> Phrase:
        """The words and the n-grams on them."""
        documents, (words, uses, tokens) = self.documents, self.documents.own[self.index]
        first, token = documents.first[uses] - words.start, documents.token[uses] - tokens.start
        length, size = words.stop - words.start, documents.size[uses]
        return Phrase(length, first, size, token, self._votes[0], documents.counts)

    @functools.cached_property
    def sufficient(self) -> FormalSet:
        """The fewest tokens that fix the label: whatever other tokens are deleted, it stays."""
        return self._set("tokens", _token_items, self._sets.kept)

    @functools.cached_property
    def flip(self) -> FormalSet:
        """The fewest tokens whose deletion changes the label; empty, with status "none", if there are none."""
        return self._set("tokens", _token_items, self._sets.gone)

    @functools.cached_property
    def sufficient_words(self) -> FormalSet:
        """The fewest words that fix the label: whatever other words are masked, it stays."""
        found = proofs.sufficient_words(self._phrase) if self.tokens else NOTHING
        return self._set("words", _word_items, found)

    @functools.cached_property
    def flip_words(self) -> FormalSet:
        """The fewest words to mask (each becomes `keytokens.MASK`) so that the label changes."""
        found = proofs.flip_words(self._phrase) if self.tokens else NOTHING
        return self._set("words", _word_items, found)

    def _set(self, unit: str, make: Callable[..., Iterable[FormalItem]], found: ProvedSet) -> FormalSet:
        items = Later(found.size, functools.partial(make, self.documents, self.index, found.indices))
        after = self.prediction.name(found.label_after)
        return FormalSet(items, unit, found.size, found.lower, found.status, found.tight, after)

    @functools.cached_property
    def certificate(self) -> Certificate:
        """What is proved of this prediction."""
        has_sink, own = self.documents.has_sink, self.documents.own[self.index].tokens
        tokens = own.stop - own.start
        silent = "" if tokens else said("no token, sink" if has_sink else "no token", {})
        return Certificate(self.prediction, self._votes, *self._sets, tokens, has_sink, silent)

    def to_dict(self, words: bool = True) -> dict[str, Any]:
        """Everything, as plain data for JSON; without the sets of words, which take longest, if they are not wanted."""
        found = {"sufficient_words": self.sufficient_words, "flip_words": self.flip_words} if words else {}
        return {
            "schema": 1,
            "text": self.text,
            **self._verdict(),
            "sink": self.sink,
            "tokens": [token._asdict() for token in self.tokens],
            "sufficient": self.sufficient.to_dict(),
            "flip": self.flip.to_dict(),
            **{name: one.to_dict() for name, one in found.items()},
            "certificate": self.certificate.to_dict(),
        }


def _token_items(documents: Documents, text: int, tokens: Sequence[int]) -> Iterator[FormalItem]:
    _, uses, own = documents.own[text]
    token, start, end = documents.token[uses], documents.uses.start[uses], documents.uses.end[uses]
    for t in tokens:
        places = (token == own.start + t).nonzero()[0]
        spans = tuple(zip(start[places].tolist(), end[places].tolist(), strict=True))
        contribution = float(documents.told.contribution[own.start + t])
        yield FormalItem(documents.names[own.start + t], *spans[0], spans, contribution)


def _word_items(documents: Documents, text: int, positions: Sequence[int]) -> Iterator[FormalItem]:
    words, touching = documents.words[documents.own[text].words], documents.touching(text)
    for word in positions:
        start, end = words[word].tolist()
        yield FormalItem(documents.texts[text][start:end], start, end, ((start, end),), float(touching[word]))
