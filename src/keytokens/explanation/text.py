"""The record of one explained text."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import certificate as proofs
from ..certificate import Ballot, Counts, Sentence, TokenSet, WordSet
from .attention import holding_half
from .certificate import Proof
from .later import Later
from .prediction import Prediction
from .record import Explained
from .sets import ProvedSet
from .together import Together

__all__ = ["Certificate", "Document", "Explanation", "FormalItem", "FormalSet", "KeyToken", "TokenUse", "TokenUses"]

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

    def __init__(self, names: Sequence[str], token: NDArray[np.intp], **columns: NDArray[Any]) -> None:
        super().__init__(len(token), self._rows)
        self._names, self._token = names, token
        self.start: NDArray[np.intp] = columns["start"]  # each (O,), with what `TokenUse` says
        self.end: NDArray[np.intp] = columns["end"]
        self.attention: NDArray[Any] = columns["attention"]
        self.value: NDArray[Any] = columns["value"]
        self.contribution: NDArray[Any] = columns["contribution"]
        self.selected: NDArray[np.bool_] = columns["selected"]

    @property
    def text(self) -> list[str]:
        names = self._names
        return [names[t] for t in self._token.tolist()]

    def _rows(self) -> Iterable[TokenUse]:
        columns = (self.start, self.end, self.attention, self.value, self.contribution, self.selected)
        return map(_named_row, zip(self.text, *(column.tolist() for column in columns), strict=True))


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


class FormalSet(ProvedSet[FormalItem]):
    """The items of a formal set of a text."""

    def to_dict(self) -> dict[str, Any]:
        items = [{**item._asdict(), "spans": [list(span) for span in item.spans]} for item in self.items]
        return {"items": items, **self._proved()}


class Certificate(Proof):
    """What is proved of the label of one text."""

    unit = "tokens"
    leaves = "a known token"
    covers = "Deletions only: nothing is said of added or replaced words."

    @property
    def tokens(self) -> int:
        """Known tokens of the text."""
        return self.items


@dataclass(frozen=True, eq=False)
class Document:
    """One text before the model: its words, the known n-grams on them, and what the model says of each token."""

    text: str
    words: NDArray[np.intp]  # (L, 2) start and end of every word, known or not
    first: NDArray[np.intp]  # (O,) first word of each known n-gram, in text order, shorter ones first
    size: NDArray[np.intp]  # (O,) how many words it has
    token: NDArray[np.intp]  # (O,) which token: an index into the next four
    names: Sequence[str]  # (T,) in order of first occurrence
    log_weight: NDArray[Any]  # (T,) log phi(count) + a
    values: NDArray[Any]  # (T, K) class scores, intercept folded in; two classes: 0 and b + c
    occurrences: NDArray[np.intp]  # (T,)
    sink_log_weight: float
    sink_values: NDArray[Any]  # (K,) the intercepts
    scores: NDArray[Any]  # (K,) f of the document; two classes: 0 and f
    probabilities: NDArray[Any]  # (K,)
    classes: Sequence[Any]
    counts: Counts


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

    document: Document
    read_with: tuple[Together, int, int] | None = None  # texts, which of them this is, and its first occurrence

    @functools.cached_property
    def _place(self) -> tuple[Together, int, int]:
        if self.read_with is not None:
            return self.read_with
        d = self.document
        ends, winner = np.array([0, len(d.log_weight)]), np.array([self.prediction.winner])
        alone = (d.log_weight, d.values, d.occurrences, d.token, ends, d.sink_log_weight, d.sink_values, winner)
        return Together(*alone), 0, 0

    def _own(self, of_tokens: NDArray[Any]) -> NDArray[Any]:
        """What belongs to this text of what is known of all tokens."""
        together, text, _ = self._place
        return of_tokens[together.token_ends[text] : together.token_ends[text + 1]]

    @functools.cached_property
    def prediction(self) -> Prediction:
        return Prediction(self.document.scores, self.document.probabilities, self.document.classes)

    @property
    def text(self) -> str:
        return self.document.text

    @functools.cached_property
    def _attention(self) -> tuple[NDArray[Any], float]:
        """Q of each token, and of the sink; they add up to 1."""
        together, text, _ = self._place
        return self._own(together.attention), together.sink_attention(text)

    @property
    def sink(self) -> float:
        """The sink's own contribution: its attention times the intercept."""
        return self._attention[1] * float(self.document.sink_values[self.prediction.explained])

    @functools.cached_property
    def _contributions(self) -> NDArray[Any]:
        return self._own(self._place[0].contributions)

    @functools.cached_property
    def tokens(self) -> TokenUses:
        """Every occurrence of a known token, in text order."""
        d = self.document
        together, _, first = self._place
        attention, value, contribution = together.uses
        own = slice(first, first + len(d.token))
        return TokenUses(
            d.names,
            d.token,
            start=d.words[d.first, 0],
            end=d.words[d.first + d.size - 1, 1],
            attention=attention[own],
            value=value[own],
            contribution=contribution[own],
            selected=holding_half(self._attention[0])[d.token],
        )

    @functools.cached_property
    def _spans(self) -> list[list[Span]]:
        """Of every token, where it occurs, in text order."""
        places: list[list[Span]] = [[] for _ in self.document.names]
        uses = self.tokens
        for token, *span in zip(self.document.token.tolist(), uses.start.tolist(), uses.end.tolist(), strict=True):
            places[token].append((span[0], span[1]))
        return places

    @functools.cached_property
    def _ballot(self) -> Ballot:
        d = self.document
        return Ballot.trusted(d.log_weight, d.values, self.prediction.winner, d.sink_log_weight, d.sink_values)

    @functools.cached_property
    def _sets(self) -> tuple[TokenSet, TokenSet]:
        together, text, _ = self._place
        return together.sets(text) or super()._sets

    @functools.cached_property
    def _sentence(self) -> Sentence:
        d = self.document
        return Sentence(len(d.words), d.first, d.size, d.token, self._ballot, d.counts)

    @functools.cached_property
    def sufficient(self) -> FormalSet:
        """The fewest tokens that fix the label: whatever other tokens are deleted, it stays."""
        return self._tokens_of(self._sets[0])

    @functools.cached_property
    def flip(self) -> FormalSet:
        """The fewest tokens whose deletion changes the label; empty, with status "none", if there are none."""
        return self._tokens_of(self._sets[1])

    @functools.cached_property
    def sufficient_words(self) -> FormalSet:
        """The fewest words that fix the label: whatever other words are masked, it stays."""
        return self._words_of(proofs.sufficient_words(self._sentence) if len(self.document.names) else None)

    @functools.cached_property
    def flip_words(self) -> FormalSet:
        """The fewest words to mask (each becomes `keytokens.MASK`) so that the label changes."""
        return self._words_of(proofs.flip_words(self._sentence) if len(self.document.names) else None)

    def _tokens_of(self, found: TokenSet) -> FormalSet:
        after = self.prediction.name(found.label_after)
        items = Later(len(found.indices), functools.partial(self._items, found.indices))
        return FormalSet(items, found.size, found.lower, found.status, "tokens", found.tight, after)

    def _items(self, tokens: Sequence[int]) -> Iterable[FormalItem]:
        names, places, contributions = self.document.names, self._spans, self._contributions.tolist()
        for i in tokens:
            yield FormalItem(names[i], *places[i][0], tuple(places[i]), contributions[i])

    def _words_of(self, found: WordSet | None) -> FormalSet:
        if found is None:
            return FormalSet((), 0, 0, "none", "words")
        after = self.prediction.name(found.label_after)
        items = Later(len(found.positions), functools.partial(self._word_items, found.positions))
        return FormalSet(items, found.size, found.lower, found.status, "words", found.tight, after)

    def _word_items(self, positions: Sequence[int]) -> Iterable[FormalItem]:
        text, words, touching = self.text, self.document.words, self._touching
        for word in positions:
            start, end = words[word].tolist()
            yield FormalItem(text[start:end], start, end, ((start, end),), float(touching[word]))

    @functools.cached_property
    def _touching(self) -> NDArray[Any]:
        """For every word, the contributions of the occurrences that cover it: what masking it takes away."""
        d = self.document
        each = (self._contributions / d.occurrences)[d.token]
        total = np.zeros(len(d.words))
        for offset in range(int(d.size.max(initial=0))):
            inside = d.size > offset
            total += np.bincount(d.first[inside] + offset, each[inside], len(d.words))
        return total

    @functools.cached_property
    def certificate(self) -> Certificate:
        """What is proved of this prediction."""
        votes = self._ballot
        why = "the intercept alone decides" if votes.has_sink else "the label is the most frequent one"
        silent = "" if votes.tokens else f"The text has no known token: {why}."
        together, text, _ = self._place
        return Certificate(self.prediction, votes, *self._sets, votes.tokens, silent, together.margins(text))

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
