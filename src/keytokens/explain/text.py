"""The record of one explained text."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import proof as proofs
from ..proof.phrase import Phrase, least_keeping_words
from ..proof.program import over
from ..proof.tokens import NOTHING, ProvedSet
from ..proof.votes import Votes
from ..text.words import MASK
from .certificate import Proof, Said, Told, label_facts, said
from .documents import Documents
from .record import Explained, ItemSet, Later, Prediction, Proved, frame

Span = tuple[int, int]
MOST_WORDS = 5_000  # sets of words take a second per thousand words or so: longer texts are shown without them


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


class KeyTokens(dict[Any, list[KeyToken]]):
    """The most decisive tokens of each class, as a dict that notebooks show."""

    def to_frame(self) -> Any:
        """A pandas data frame with a row for each token of a class."""
        return frame([{"label": label, **token._asdict()} for label, tokens in self.items() for token in tokens])

    def _repr_html_(self) -> str:
        from .html import key_tokens_fragment  # a door: rendering lives above

        return key_tokens_fragment(self)


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


class InWords:
    """What is proved of the words of one text, found when it is first asked for."""

    def __init__(self, documents: Documents, text: int, votes: Sequence[Votes]) -> None:
        self.documents, self.text, self._votes = documents, text, votes

    def __reduce__(self) -> tuple[Any, ...]:
        """Copied and stored without the other texts."""
        return type(self), (self.documents.only(self.text), 0, self._votes)

    @functools.cached_property
    def phrase(self) -> Phrase:
        """The words and the n-grams on them."""
        documents, (words, uses, tokens) = self.documents, self.documents.own[self.text]
        first, token = documents.first[uses] - words.start, documents.token[uses] - tokens.start
        length, size = words.stop - words.start, documents.size[uses]
        return Phrase(length, first, size, token, self._votes[0], documents.counts)

    @functools.cached_property
    def kept(self) -> ProvedSet:
        return proofs.sufficient_words(self.phrase)

    @functools.cached_property
    def gone(self) -> ProvedSet:
        return proofs.flip_words(self.phrase)

    @property
    def spelled(self) -> list[str]:
        """Every word as it is written."""
        text = self.documents.texts[self.text]
        return [text[start:end] for start, end in self.documents.words[self.documents.own[self.text].words].tolist()]

    def unknown(self) -> tuple[int, int]:
        """How many words are in no known token, and how many there are; masks are no words."""
        words, uses, _ = self.documents.own[self.text]
        first, size = self.documents.first[uses] - words.start, self.documents.size[uses]
        masks = self.spelled.count(MASK)
        total = words.stop - words.start
        covered = np.count_nonzero(over(np.ones(len(first)), first, size, total))
        return total - covered - masks, total - masks


@dataclass(frozen=True, eq=False)
class Certificate(Proof):
    """What is proved of the label of one text."""

    unit = "tokens"
    in_words: InWords | None = None

    @functools.cached_property
    def units(self) -> tuple[str, str]:
        """What the sentences count in the two sets: words where these sets are more than bounds, else tokens."""
        if self.silent or self.in_words is None or self.in_words.phrase.length > MOST_WORDS:
            return self.unit, self.unit
        kept, gone = (found.status == "bounds" for found in (self.in_words.kept, self.in_words.gone))
        return "tokens" if kept else "words", "tokens" if gone else "words"

    @functools.cached_property
    def said(self) -> Said:
        """What is proved, as sentences."""
        in_words = self.in_words
        if in_words is None or "words" not in self.units:
            return self.of_items
        spelled, kept, gone = in_words.spelled, (self.kept, in_words.kept), (self.gone, in_words.gone)
        told = (
            Told(unit, words, [spelled[i] for i in words.indices])
            if unit == "words"
            else Told(unit, tokens, self._names(tokens.indices))
            for unit, (tokens, words) in zip(self.units, (kept, gone), strict=True)
        )
        least = least_keeping_words(in_words.phrase, kept[1].indices) if self.units[0] == "words" else self._least
        first, second = told
        return self._say(first, second, np.asarray(least))

    def _names(self, indices: Sequence[int]) -> list[str]:
        assert self.in_words is not None
        documents, text = self.in_words.documents, self.in_words.text
        own = documents.own[text].tokens.start
        return [documents.names[own + t] for t in indices]

    def _unknown(self) -> str:
        assert self.in_words is not None
        unknown, words = self.in_words.unknown()
        facts = {"unknown": unknown, "words": words}
        return said("unknown one" if unknown == 1 else "unknown", facts) if unknown else ""

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
    chosen: int | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Copied and stored without the other texts."""
        return type(self), (self.documents.only(self.index), 0, self.chosen)

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
    def _in_words(self) -> InWords:
        return InWords(self.documents, self.index, self._votes)

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
        return self._set("words", _word_items, self._in_words.kept if self.tokens else NOTHING)

    @functools.cached_property
    def flip_words(self) -> FormalSet:
        """The fewest words to mask (each becomes `keytokens.MASK`) so that the label changes."""
        return self._set("words", _word_items, self._in_words.gone if self.tokens else NOTHING)

    @property
    def named(self) -> tuple[FormalSet, FormalSet]:
        """The sufficient set and the flip set that the sentence names: of words, or of tokens."""
        kept, gone = self.certificate.units
        return (
            self.sufficient_words if kept == "words" else self.sufficient,
            self.flip_words if gone == "words" else self.flip,
        )

    def told(self) -> Explanation:
        """The same with the class for a rival that the sentence leads to, as it is shown, unless one was chosen."""
        after = self.named[1].label_after  # fewest words may lead to another class than fewest tokens
        return self if self.chosen is not None or after in (None, self.rival) else self.against(after)

    def _set(self, unit: str, make: Callable[..., Iterable[FormalItem]], found: ProvedSet) -> FormalSet:
        items = Later(found.size, functools.partial(make, self.documents, self.index, found.indices))
        after = self.prediction.name(found.label_after)
        return FormalSet(items, unit, found.size, found.lower, found.status, found.tight, after)

    @functools.cached_property
    def certificate(self) -> Certificate:
        """What is proved of this prediction."""
        has_sink, own = self.documents.has_sink, self.documents.own[self.index].tokens
        tokens = own.stop - own.start
        silent = "" if tokens else self._why_silent()
        return Certificate(self.prediction, self._votes, *self._sets, tokens, has_sink, silent, self._in_words)

    def _why_silent(self) -> str:
        """What decides the label of a text without a known token."""
        _, words = self._in_words.unknown()
        name = {0: "no word", 1: "only word unknown"}.get(words, "no known word")
        return said(name, {**label_facts(self.prediction), "words": words})

    def _lead(self, rival: int) -> tuple[NDArray[Any], float]:
        documents, (_, uses, tokens) = self.documents, self.documents.own[self.index]
        label, values, intercepts = self.prediction.winner, documents.values[tokens], documents.sink_values
        each = documents.told.attention[tokens] * (values[:, label] - values[:, rival]) / documents.occurrences[tokens]
        of_sink = documents.sink_attention(self.index) * float(intercepts[label] - intercepts[rival])
        return each[documents.token[uses] - tokens.start], of_sink

    def _rows(self) -> list[dict[str, Any]]:
        differences = self.contributions_against().tolist()
        return [{**use._asdict(), "difference": x} for use, x in zip(self.tokens, differences, strict=True)]

    def to_dict(self, words: bool = True) -> dict[str, Any]:
        """Everything, as plain data for JSON; without the sets of words, which take longest, if they are not wanted."""
        found = {"sufficient_words": self.sufficient_words, "flip_words": self.flip_words} if words else {}
        return {
            "schema": 1,
            "text": self.text,
            **self._verdict(),
            "sink": self.sink,
            "tokens": self._rows(),
            "sufficient": self.sufficient.to_dict(),
            "flip": self.flip.to_dict(),
            **{name: one.to_dict() for name, one in found.items()},
            "certificate": self.certificate.to_dict(words),
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
