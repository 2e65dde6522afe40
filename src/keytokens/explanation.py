"""The record of one explained prediction: terminal, JSON and page read it. It holds what is proved, renders nothing."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from . import certificate as proofs
from .certificate import Ballot, Counts, Sentence

__all__ = ["Certificate", "Document", "Explanation", "FormalItem", "FormalSet", "KeyToken", "TokenUse"]

Span = tuple[int, int]
DELETIONS = (1, 2, 3, 5, 10)  # for how many deleted tokens the certificate gives the range of the probability
COVERS = "Deletions only: nothing is said of added or replaced words."


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


@dataclass(frozen=True)
class FormalSet(Sequence[FormalItem]):
    """The items of a formal set, most decisive first (words: in text order), and what is proved of its size."""

    items: tuple[FormalItem, ...]
    size: int
    lower: int  # no smaller set than this does the same
    status: str  # "minimum", "subset-minimal", "bounds" (between lower and size) or "none"
    unit: str  # "tokens" or "words"
    tight: bool = False  # holds to rounding
    label_after: Any = None  # flips: what `predict` says of the rest

    @overload
    def __getitem__(self, index: int) -> FormalItem: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[FormalItem]: ...
    def __getitem__(self, index: int | slice) -> FormalItem | Sequence[FormalItem]:
        return self.items[index]

    def __len__(self) -> int:
        return len(self.items)

    def to_dict(self) -> dict[str, Any]:
        return {
            "items": [{**item._asdict(), "spans": [list(span) for span in item.spans]} for item in self.items],
            "size": self.size,
            "lower": self.lower,
            "status": self.status,
            "unit": self.unit,
            "tight": self.tight,
            "label_after": self.label_after,
        }


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


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why one text got its label: exact contributions, formal sets, and the certificate."""

    document: Document

    @functools.cached_property
    def _label(self) -> int:
        return int(self.document.probabilities.argmax())

    @property
    def text(self) -> str:
        return self.document.text

    @property
    def label(self) -> Any:
        return _plain(self.document.classes[self._label])

    @property
    def probability(self) -> float:
        """Of the label."""
        return float(self.document.probabilities[self._label])

    @property
    def probabilities(self) -> dict[Any, float]:
        both = zip(self.document.classes, self.document.probabilities.tolist(), strict=True)
        return {_plain(label): p for label, p in both}

    @property
    def _explained(self) -> int:
        """The class whose score the contributions add up to: the second of two, the predicted one of more."""
        return 1 if len(self.document.classes) == 2 else self._label

    @property
    def logit(self) -> float:
        """f: two classes, positive for the second one; more, the score of the label."""
        return float(self.document.scores[self._explained])

    @functools.cached_property
    def _attention(self) -> tuple[NDArray[Any], float]:
        """Q of each token, and of the sink; they add up to 1."""
        logs = np.append(self.document.log_weight, self.document.sink_log_weight)
        if logs.max() == -np.inf:
            return logs[:-1], 0.0
        W = np.exp(logs - logs.max())
        Q = W / W.sum()
        return Q[:-1], float(Q[-1])

    @property
    def sink(self) -> float:
        """The sink's own contribution: its attention times the intercept."""
        return self._attention[1] * float(self.document.sink_values[self._explained])

    @functools.cached_property
    def _contributions(self) -> NDArray[Any]:
        return self._attention[0] * self.document.values[:, self._explained]

    @functools.cached_property
    def tokens(self) -> tuple[TokenUse, ...]:
        """Every occurrence of a known token, in text order."""
        d = self.document
        share = self._attention[0] / d.occurrences
        value = d.values[:, self._explained]
        columns = (share, value, share * value, _half(self._attention[0]))
        names = [d.names[t] for t in d.token.tolist()]
        rows = zip(names, *self._ends, *(column[d.token].tolist() for column in columns), strict=True)
        return tuple(map(_named_row, rows))

    @functools.cached_property
    def _ends(self) -> tuple[list[int], list[int]]:
        """Starts and ends of every occurrence."""
        d = self.document
        return d.words[d.first, 0].tolist(), d.words[d.first + d.size - 1, 1].tolist()

    @functools.cached_property
    def _by_token(self) -> tuple[list[int], list[int]]:
        """Occurrences sorted by token, in text order; those of token i stand at ends[i] : ends[i + 1]."""
        ends = np.concatenate([[0], np.cumsum(self.document.occurrences)])
        return np.argsort(self.document.token, kind="stable").tolist(), ends.tolist()

    @functools.cached_property
    def _ballot(self) -> Ballot:
        d = self.document
        return Ballot.of(d.log_weight, d.values, self._label, d.sink_log_weight, d.sink_values)

    @functools.cached_property
    def _sentence(self) -> Sentence:
        d = self.document
        return Sentence(len(d.words), d.first, d.size, d.token, self._ballot, d.counts)

    @functools.cached_property
    def _sets(self) -> tuple[proofs.TokenSet, proofs.TokenSet]:
        if not len(self.document.names):
            nothing = proofs.TokenSet((), 0, 0, "none", False)
            return nothing, nothing
        return proofs.sufficient(self._ballot), proofs.flip(self._ballot)

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

    def _tokens_of(self, found: proofs.TokenSet) -> FormalSet:
        order, bounds = self._by_token
        starts, ends = self._ends
        names, contributions = self.document.names, self._contributions.tolist()
        items = []
        for i in found.indices:
            own = tuple([(starts[o], ends[o]) for o in order[bounds[i] : bounds[i + 1]]])
            items.append(FormalItem(names[i], *own[0], own, contributions[i]))
        after = self._name(found.label_after)
        return FormalSet(tuple(items), found.size, found.lower, found.status, "tokens", found.tight, after)

    def _words_of(self, found: proofs.WordSet | None) -> FormalSet:
        if found is None:
            return FormalSet((), 0, 0, "none", "words")
        text, words, touching = self.text, self.document.words, self._touching
        items = []
        for word in found.positions:
            start, end = words[word].tolist()
            items.append(FormalItem(text[start:end], start, end, ((start, end),), float(touching[word])))
        after = self._name(found.label_after)
        return FormalSet(tuple(items), found.size, found.lower, found.status, "words", found.tight, after)

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

    def _name(self, index: int | None) -> Any:
        return None if index is None else _plain(self.document.classes[index])

    @functools.cached_property
    def certificate(self) -> Certificate:
        """What is proved of this prediction."""
        return Certificate(self)

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain data for JSON; the sets of words included."""
        return {
            "schema": 1,
            "text": self.text,
            "label": self.label,
            "probability": self.probability,
            "probabilities": [{"label": k, "probability": p} for k, p in self.probabilities.items()],
            "logit": self.logit,
            "sink": self.sink,
            "tokens": [token._asdict() for token in self.tokens],
            "sufficient": self.sufficient.to_dict(),
            "flip": self.flip.to_dict(),
            "sufficient_words": self.sufficient_words.to_dict(),
            "flip_words": self.flip_words.to_dict(),
            "certificate": self.certificate.to_dict(),
        }

    def to_html(self, path: str | Path | None = None) -> str:
        """A page that stands alone, as a string; written to `path` too, if there is one."""
        from .report.page import explanation_page  # a door: rendering lives above

        page = explanation_page(self)
        if path is not None:
            from .files import write_whole

            write_whole(Path(path), page.encode("utf-8", "xmlcharrefreplace"))
        return page

    def _repr_html_(self) -> str:
        from .report.page import explanation_fragment  # a door: rendering lives above

        return explanation_fragment(self)

    def __repr__(self) -> str:
        head = f"Explanation({self.label!r}, probability {self.probability:.3f}, logit {self.logit:+.3f})"
        return f"{head}\n  {self.certificate.sentence}"


@dataclass(frozen=True, eq=False)
class Certificate:
    """What is proved of one prediction, in numbers and in `sentence`; each is computed when it is first asked for."""

    explanation: Explanation
    unit = "tokens"
    covers = COVERS

    @property
    def label(self) -> Any:
        return self.explanation.label

    @property
    def logit(self) -> float:
        return self.explanation.logit

    @property
    def probability(self) -> float:
        return self.explanation.probability

    @property
    def _ballot(self) -> Ballot:
        return self.explanation._ballot

    @property
    def tokens(self) -> int:
        """Known tokens of the text."""
        return self._ballot.tokens

    @property
    def exact(self) -> bool:
        """Whether the ranges are exact (two classes) or bounds that contain the truth (more)."""
        return len(self._ballot.rivals) == 1

    @functools.cached_property
    def _votes(self) -> NDArray[Any]:
        """(T + 1, R) what each token, and last the sink, adds to the margin over each rival."""
        Q, sink = self.explanation._attention
        return np.append(Q, sink)[:, None] * np.vstack([self._ballot.margin, self._ballot.sink_margin])

    def _by_rival(self, numbers: NDArray[Any]) -> dict[Any, float]:
        names = (self.explanation._name(k) for k in self._ballot.rivals.tolist())
        return dict(zip(names, numbers.tolist(), strict=True))

    @property
    def support(self) -> dict[Any, float]:
        """Against each rival, what the tokens (and the sink) for the label add to its margin."""
        return self._by_rival(np.maximum(self._votes, 0).sum(axis=0))

    @property
    def opposition(self) -> dict[Any, float]:
        """Against each rival, what those against the label take from its margin: less than the support."""
        return self._by_rival(np.maximum(-self._votes, 0).sum(axis=0))

    @functools.cached_property
    def keeping(self) -> tuple[float, float] | None:
        """Least and greatest probability of the label, whatever is deleted outside the sufficient set."""
        if not self.tokens:
            return None
        return proofs.probability_range(proofs.range_keeping(self._ballot, self.explanation._sets[0].indices))

    @functools.cached_property
    def at_least(self) -> float | None:
        """The least of these probabilities."""
        if not self.tokens:
            return None
        margins = proofs.least_keeping(self._ballot, self.explanation._sets[0].indices)
        return proofs.probability_range(np.stack([margins, margins], axis=1))[0]

    @functools.cached_property
    def deleting(self) -> dict[int, tuple[float, float]]:
        """The same when at most m tokens are deleted, whichever they are."""
        if not self.tokens:
            return {}
        ends = proofs.ranges_deleting(self._ballot, DELETIONS)
        return {m: proofs.probability_range(both) for m, both in zip(DELETIONS, ends, strict=True)}

    @functools.cached_property
    def _drop(self) -> proofs.Drop | None:
        kept = self.explanation._sets[0].indices
        return proofs.drop(self._ballot, kept) if self.tokens and (kept or self._ballot.has_sink) else None

    @property
    def attention_outside(self) -> float | None:
        """delta, the attention outside the sufficient set."""
        return None if self._drop is None else self._drop.delta

    @property
    def drop(self) -> float | None:
        """How far f moves when everything outside the sufficient set goes: delta (f_rest - f_kept).

        Two classes: of the logit; more: of the margin over the first rival.
        """
        if self._drop is None:
            return None
        fall = float(self._drop.whole[0] - self._drop.kept[0])
        # margins speak for the label, the logit for the second of two classes
        return -fall if self.exact and self._ballot.label == 0 else fall

    @functools.cached_property
    def probability_after_flip(self) -> float | None:
        """Of the label, once the flip set is deleted."""
        flipped = self.explanation._sets[1]
        if flipped.status == "none":
            return None
        return proofs.probability_without(self._ballot, flipped.indices)

    @property
    def label_after_flip(self) -> Any:
        return self.explanation.flip.label_after

    @property
    def tight(self) -> bool:
        """A comparison hangs on a relative difference below 1e-12."""
        return any(found.tight for found in self.explanation._sets)

    @functools.cached_property
    def sentence(self) -> str:
        return _sentence(self, self.explanation.sufficient, self.explanation.flip, self._ballot)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "label": self.label,
            "logit": self.logit,
            "probability": self.probability,
            "tokens": self.tokens,
            "support": [{"rival": k, "value": v} for k, v in self.support.items()],
            "opposition": [{"rival": k, "value": v} for k, v in self.opposition.items()],
            "keeping": None if self.keeping is None else list(self.keeping),
            "deleting": {str(m): list(both) for m, both in self.deleting.items()},
            "exact": self.exact,
            "attention_outside": self.attention_outside,
            "drop": self.drop,
            "probability_after_flip": self.probability_after_flip,
            "label_after_flip": self.label_after_flip,
            "tight": self.tight,
            "unit": self.unit,
            "covers": self.covers,
            "sentence": self.sentence,
        }

    def __repr__(self) -> str:
        return f"Certificate({self.sentence!r})"


def _half(attention: NDArray[Any]) -> NDArray[np.bool_]:
    """The fewest tokens that together hold at least half of the attention on tokens, and all that tie with the last."""
    if not len(attention):
        return np.zeros(0, np.bool_)
    order = np.sort(attention)[::-1]
    held = np.cumsum(order)
    least = order[int(np.searchsorted(held, held[-1] / 2 * (1 - 1e-12)))]
    return np.asarray(attention >= least)


def _times(number: int, unit: str) -> str:
    return f"{number} {unit if number != 1 else unit[:-1]}"


def _no_fewer(size: int) -> str:
    return {1: "Nothing less does.", 2: "No single token does."}.get(size, f"No {size - 1} tokens do.")


def _rounded_down(probability: float | None) -> str:
    """Two decimals, rounded down: what is said must be true."""
    return f"{math.floor((probability or 0.0) * 100) / 100:.2f}"


def _sentence(c: Certificate, kept: FormalSet, gone: FormalSet, ballot: Ballot) -> str:
    if not c.tokens:
        why = "the intercept alone decides" if ballot.has_sink else "the label is the most frequent one"
        return f"The text has no known token: {why}."
    label = f"{c.label!r}"
    stays = f"it stays {label} and its probability stays at least {_rounded_down(c.at_least)}"
    if kept.size == 0:
        parts = [f"The label is fixed without any token: whatever is deleted, {stays}."]
    elif kept.status == "minimum":
        verb = "fixes" if kept.size == 1 else "fix"
        of_all = f"{kept.size} of {_times(c.tokens, 'tokens')}"
        parts = [f"{of_all} {verb} the label: whatever other tokens are deleted, {stays}."]
        if kept.size > 1 or ballot.has_sink:
            parts.append(_no_fewer(kept.size))
    else:
        parts = [
            f"These {kept.size} of {_times(c.tokens, 'tokens')} fix the label against all {len(c.support)} rivals: "
            f"whatever other tokens are deleted, {stays}. "
            f"None of them can be left out (at least {kept.lower} are needed)."
        ]
    if gone.status == "none":
        where = "" if ballot.has_sink else " that leaves a known token"
        parts.append(f"No deletion{where} changes the label.")
    else:
        fewer = f" {_no_fewer(gone.size)}" if gone.size > 1 else ""
        these = "this token" if gone.size == 1 else f"these {gone.size} tokens"
        parts.append(
            f"Deleting {these} makes it {gone.label_after!r} (the probability of {label} is then "
            f"{c.probability_after_flip:.2f}).{fewer}"
        )
    if c.tight:
        parts.append("To rounding: a comparison hangs on a relative difference below 1e-12.")
    return " ".join([*parts, c.covers])
