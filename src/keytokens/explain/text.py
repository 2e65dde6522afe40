"""The record of one explained text."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import proof as proofs
from ..proof.phrase import Sentence
from ..proof.tokens import TokenSet
from ..proof.votes import Ballot
from ..proof.words import WordSet
from .certificate import Proof, said
from .documents import Together, Uses
from .prediction import Later, Prediction, ProvedSet
from .record import Explained

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

    def __init__(self, names: Sequence[str], token: NDArray[np.intp], uses: Uses) -> None:
        super().__init__(len(token), functools.partial(_rows, names, token, uses))
        self._names, self._token = names, token
        self.start, self.end, self.attention, self.value, self.contribution, self.selected = uses

    @property
    def text(self) -> list[str]:
        return _spelled(self._names, self._token)


def _rows(names: Sequence[str], token: NDArray[np.intp], uses: Uses) -> Iterable[TokenUse]:
    return map(_named_row, zip(_spelled(names, token), *(column.tolist() for column in uses), strict=True))


def _spelled(names: Sequence[str], token: NDArray[np.intp]) -> list[str]:
    return [names[t] for t in token.tolist()]


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
    counts: str


@dataclass(frozen=True, eq=False, repr=False, init=False)
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

    together: Together  # the texts that were read with this one
    index: int  # which of them it is

    def __init__(self, document: Document) -> None:
        vars(self).update(together=_alone(document), index=0, document=document)

    @classmethod
    def among(cls, together: Together, index: int) -> Explanation:
        """The explanation of one of some texts that were read together."""
        one = cls.__new__(cls)
        vars(one).update(together=together, index=index)
        return one

    def __reduce__(self) -> tuple[Any, ...]:
        """Copied and stored without the other texts."""
        return type(self), (self.document,)

    @functools.cached_property
    def _names(self) -> Later[str]:
        tokens = self.together.tokens_of[self.index]
        return Later(tokens.stop - tokens.start, functools.partial(self.together.spelled, tokens))

    @functools.cached_property
    def document(self) -> Document:
        """What was read."""
        together, i = self.together, self.index
        words, uses, tokens = together.words_of[i], together.uses_of[i], together.tokens_of[i]
        return Document(
            text=together.texts[i],
            words=together.words[words],
            first=together.first[uses] - words.start,
            size=together.size[uses],
            token=together.own_token[uses],
            names=self._names,
            log_weight=together.log_weight[tokens],
            values=together.values[tokens],
            occurrences=together.occurrences[tokens],
            sink_log_weight=together.sink_log_weight,
            sink_values=together.sink_values,
            scores=together.scores[i],
            probabilities=together.probabilities[i],
            classes=together.classes,
            counts=together.counts,
        )

    @functools.cached_property
    def prediction(self) -> Prediction:
        together, i = self.together, self.index
        return Prediction(together.scores[i], together.probabilities[i], together.classes, together.winners[i])

    @property
    def text(self) -> str:
        return self.together.texts[self.index]

    @functools.cached_property
    def _attention(self) -> tuple[NDArray[Any], float]:
        """Q of each token, and of the sink; they add up to 1."""
        together, i = self.together, self.index
        return together.attention[together.tokens_of[i]], together.sink_attention(i)

    @property
    def sink(self) -> float:
        """The sink's own contribution: its attention times the intercept."""
        return self._attention[1] * float(self.together.sink_values[self.prediction.explained])

    @functools.cached_property
    def tokens(self) -> TokenUses:
        """Every occurrence of a known token, in text order."""
        together = self.together
        own = together.uses_of[self.index]
        return TokenUses(self._names, together.own_token[own], Uses._make([column[own] for column in together.uses]))

    @functools.cached_property
    def _votes(self) -> Sequence[Ballot]:
        return Later(1, functools.partial(_ballots, self.together, self.index))

    @property
    def _ballot(self) -> Ballot:
        return self._votes[0]

    @functools.cached_property
    def _sets(self) -> tuple[TokenSet, TokenSet]:
        return self.together.sets(self.index) or super()._sets

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
        return self._words_of(proofs.sufficient_words(self._sentence) if len(self._names) else None)

    @functools.cached_property
    def flip_words(self) -> FormalSet:
        """The fewest words to mask (each becomes `keytokens.MASK`) so that the label changes."""
        return self._words_of(proofs.flip_words(self._sentence) if len(self._names) else None)

    def _tokens_of(self, found: TokenSet) -> FormalSet:
        after = self.prediction.name(found.label_after)
        make = functools.partial(_token_items, self.together, self.index, self._names, found.indices)
        items = Later(len(found.indices), make)
        return FormalSet(items, found.size, found.lower, found.status, "tokens", found.tight, after)

    def _words_of(self, found: WordSet | None) -> FormalSet:
        if found is None:
            return FormalSet((), 0, 0, "none", "words")
        after = self.prediction.name(found.label_after)
        make = functools.partial(_word_items, self.together, self.index, found.positions)
        items = Later(len(found.positions), make)
        return FormalSet(items, found.size, found.lower, found.status, "words", found.tight, after)

    @functools.cached_property
    def certificate(self) -> Certificate:
        """What is proved of this prediction."""
        together, i = self.together, self.index
        tokens, has_sink, silent = len(self._names), together.has_sink, ""
        if not tokens:
            silent = said("no token, sink" if has_sink else "no token", {})
        return Certificate(self.prediction, self._votes, *self._sets, tokens, has_sink, silent, together.margins(i))

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


def _alone(d: Document) -> Together:
    """A document as the only one that was read."""
    return Together(
        texts=(d.text,),
        words=d.words,
        first=d.first,
        size=d.size,
        token=d.token,
        spelled=d.names.__getitem__,
        log_weight=d.log_weight,
        values=d.values,
        occurrences=d.occurrences,
        word_ends=np.array([0, len(d.words)]),
        use_ends=np.array([0, len(d.token)]),
        token_ends=np.array([0, len(d.log_weight)]),
        sink_log_weight=d.sink_log_weight,
        sink_values=d.sink_values,
        scores=d.scores[None],
        probabilities=d.probabilities[None],
        classes=d.classes,
        counts=d.counts,
    )


def _ballots(together: Together, index: int) -> tuple[Ballot]:
    own, sink = together.tokens_of[index], (together.sink_log_weight, together.sink_values)
    return (Ballot.trusted(together.log_weight[own], together.values[own], together.winners[index], *sink),)


def _token_items(together: Together, index: int, names: Sequence[str], tokens: Sequence[int]) -> Iterator[FormalItem]:
    uses, own = together.uses_of[index], together.tokens_of[index]
    token, start, end = together.own_token[uses], together.uses.start[uses], together.uses.end[uses]
    by_token = token.argsort(kind="stable")
    bounds = token[by_token].searchsorted(np.arange(own.stop - own.start + 1)).tolist()
    contributions = together.contributions[own]
    for t in tokens:
        places = by_token[bounds[t] : bounds[t + 1]]
        spans = tuple(zip(start[places].tolist(), end[places].tolist(), strict=True))
        yield FormalItem(names[t], *spans[0], spans, float(contributions[t]))


def _word_items(together: Together, index: int, positions: Sequence[int]) -> Iterator[FormalItem]:
    text, words, touching = together.texts[index], together.words[together.words_of[index]], together.touching(index)
    for word in positions:
        start, end = words[word].tolist()
        yield FormalItem(text[start:end], start, end, ((start, end),), float(touching[word]))
