"""Texts that were read together: what the model says of their tokens, and what is proved of all of them at once.

What is computed of one text is the same, to the bit, whichever texts it was read with.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..model.attention import least_holding_half
from ..proof.batch import Answers, Weights, answers, relative_weights
from ..proof.phrase import Phrase
from ..proof.program import over
from ..proof.tokens import ProvedSet
from ..proof.votes import Votes
from .record import Prediction

Array = NDArray[np.float64]


class Uses(NamedTuple):
    """Of every occurrence of a token what `TokenUse` says; each (O,)."""

    start: NDArray[np.intp]
    end: NDArray[np.intp]
    attention: Array
    value: Array
    contribution: Array
    selected: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Documents:
    """Some texts before the model, one after the other: their words, the known n-grams on them, and their tokens.

    Words, occurrences and tokens are numbered through all texts.

    Parameters
    ----------
    texts : sequence of str
    words : (W, 2) array
        Start and end of every word, known or not, in its own text.
    first, size, token : (O,) arrays
        Of every known n-gram in text order, shorter ones first: its first word, how many words it has, its token.
    names : sequence of str
        The tokens of each text in order of first occurrence, and so for the next three.
    log_weight : (T,) array
        The logarithm of the weight of the count, plus the attention logit.
    values : (T, K) array
        Class scores, intercept folded in; two classes: 0 and b + c.
    occurrences : (T,) array
    word_ends, use_ends, token_ends : (n + 1,) arrays
        Words, occurrences and tokens up to the end of each text; 0 first.
    sink_log_weight : float
        -inf without a sink.
    sink_values : (K,) array
        The intercepts.
    scores, probabilities : (n, K) arrays
        Of each text; two classes: 0 and f.
    classes : sequence
    counts : str
        The name of the weighting.
    """

    texts: Sequence[str]
    words: NDArray[np.intp]
    first: NDArray[np.intp]
    size: NDArray[np.intp]
    token: NDArray[np.intp]
    names: Sequence[str]
    log_weight: NDArray[Any]
    values: NDArray[Any]
    occurrences: NDArray[np.intp]
    word_ends: NDArray[np.intp]
    use_ends: NDArray[np.intp]
    token_ends: NDArray[np.intp]
    sink_log_weight: float
    sink_values: NDArray[Any]
    scores: NDArray[Any]
    probabilities: NDArray[Any]
    classes: Sequence[Any]
    counts: str

    # ---- one text

    @functools.cached_property
    def words_of(self) -> list[slice]:
        """(n,) the words of each text."""
        return [slice(*span) for span in pairwise(self.word_ends.tolist())]

    @functools.cached_property
    def uses_of(self) -> list[slice]:
        """(n,) the occurrences of each text."""
        return [slice(*span) for span in pairwise(self.use_ends.tolist())]

    @functools.cached_property
    def tokens_of(self) -> list[slice]:
        """(n,) the tokens of each text."""
        return [slice(*span) for span in pairwise(self.token_ends.tolist())]

    def only(self, text: int) -> Documents:
        """One text without the others."""
        words, uses, tokens = self.words_of[text], self.uses_of[text], self.tokens_of[text]
        own = slice(text, text + 1)
        return replace(
            self,
            texts=self.texts[own],
            words=self.words[words],
            first=self.first[uses] - words.start,
            size=self.size[uses],
            token=self.token[uses] - tokens.start,
            names=self.names[tokens],
            log_weight=self.log_weight[tokens],
            values=self.values[tokens],
            occurrences=self.occurrences[tokens],
            word_ends=np.array([0, words.stop - words.start]),
            use_ends=np.array([0, uses.stop - uses.start]),
            token_ends=np.array([0, tokens.stop - tokens.start]),
            scores=self.scores[own],
            probabilities=self.probabilities[own],
        )

    def prediction(self, text: int) -> Prediction:
        return Prediction(self.scores[text], self.probabilities[text], self.classes, self._winners[text])

    def votes(self, text: int) -> Votes:
        """How the tokens of one text vote."""
        own, sink = self.tokens_of[text], (self.sink_log_weight, self.sink_values)
        return Votes.trusted(self.log_weight[own], self.values[own], self._winners[text], *sink)

    def phrase(self, text: int, votes: Votes) -> Phrase:
        """The words of one text and the n-grams on them."""
        words, own, first_token = self.words_of[text], self.uses_of[text], self.tokens_of[text].start
        places = self.first[own] - words.start, self.size[own], self.token[own] - first_token
        return Phrase(words.stop - words.start, *places, votes, self.counts)

    def sink_attention(self, text: int) -> float:
        row = self._row[text]
        return float(self._shares[1][row]) if row >= 0 else float(self.has_sink)

    def touching(self, text: int) -> Array:
        """For every word of a text, the contributions of the occurrences that cover it: what masking it takes away."""
        words, own = self.words_of[text], self.uses_of[text]
        token = self.token[own]
        each = self.contributions[token] / self.occurrences[token]
        return over(each, self.first[own] - words.start, self.size[own], words.stop - words.start)

    def sets(self, text: int) -> tuple[ProvedSet, ProvedSet] | None:
        """The sufficient set and the flip set of one text, as indices of its own tokens; None: ask for it alone."""
        row, found = self._row[text], self._answers
        if row < 0 or found is None or not found.clear[row]:
            return None
        begin, kept, gone = int(found.begin[row]), int(found.kept[row]), int(found.gone[row])
        order = (found.order[begin : begin + max(kept, gone)] - self.tokens_of[text].start).tolist()
        flipped = ProvedSet(tuple(order[:gone]), gone, "minimum", label_after=1 - self._winners[text])
        return ProvedSet(tuple(order[:kept]), kept, "minimum"), flipped

    def margins(self, text: int) -> tuple[float, float] | None:
        """What `Proof` calls `margins`."""
        row, found = self._row[text], self._answers
        if row < 0 or found is None or not found.clear[row]:
            return None
        return float(found.least[row]), float(found.after[row])

    # ---- all texts at once

    @property
    def has_sink(self) -> bool:
        return self.sink_log_weight > -np.inf

    @property
    def attention(self) -> Array:
        """(T,) Q of each token."""
        return self._shares[0] if len(self.log_weight) else np.zeros(0)

    @functools.cached_property
    def said(self) -> Array:
        """(T,) the value of each token for the class that is explained."""
        if self.values.shape[1] == 2 or not len(self.values):
            return self.values[:, 1]
        own = self._label[self._weights.owner]
        return np.asarray(self.values[np.arange(len(own)), own])

    @functools.cached_property
    def contributions(self) -> Array:
        """(T,) attention times value."""
        return self.attention * self.said

    @functools.cached_property
    def uses(self) -> Uses:
        attention = (self.attention / self.occurrences)[self.token]
        value = self.said[self.token]
        start, end = self.words[:, 0][self.first], self.words[:, 1][self.first + self.size - 1]
        return Uses(start, end, attention, value, attention * value, self._selected[self.token])

    @functools.cached_property
    def _selected(self) -> NDArray[np.bool_]:
        """(T,) among the fewest tokens of their text that hold half of the attention on its tokens."""
        if not len(self.log_weight):
            return np.zeros(0, np.bool_)
        least = least_holding_half(self.attention, self._ends.tolist())
        return np.asarray(self.attention >= least[self._weights.owner])

    @functools.cached_property
    def _winners(self) -> list[int]:
        """(n,) the predicted class of each text."""
        winners: list[int] = self.probabilities.argmax(axis=1).tolist()
        return winners

    # sums over the tokens of a text are made for the texts that have some: a row each

    @functools.cached_property
    def _filled(self) -> NDArray[np.intp]:
        """The texts that have tokens."""
        return np.flatnonzero(np.diff(self.token_ends))

    @functools.cached_property
    def _row(self) -> list[int]:
        """(n,) the row of each text; -1 for those without tokens."""
        row = np.full(len(self.texts), -1)
        row[self._filled] = np.arange(len(self._filled))
        rows: list[int] = row.tolist()
        return rows

    @functools.cached_property
    def _ends(self) -> NDArray[np.intp]:
        """Tokens up to the end of each row; 0 first."""
        return np.append(0, self.token_ends[self._filled + 1])

    @functools.cached_property
    def _label(self) -> NDArray[np.intp]:
        """The predicted class of each row."""
        return np.array(self._winners)[self._filled]

    @functools.cached_property
    def _weights(self) -> Weights:
        return relative_weights(self.log_weight, self._ends, self.sink_log_weight)

    @functools.cached_property
    def _shares(self) -> tuple[Array, Array]:
        """Attention of each token, and of the sink in each row."""
        weights = self._weights
        total = np.add.reduceat(weights.of_tokens, self._ends[:-1])
        total += weights.of_sink
        return weights.of_tokens / total[weights.owner], weights.of_sink / total

    @functools.cached_property
    def _answers(self) -> Answers | None:
        """What is proved of each row; None for more than two classes."""
        if self.values.shape[1] != 2 or not len(self.values):
            return None
        sign = np.where(self._label == 1, 1.0, -1.0)
        margin = self.values[:, 1] * sign[self._weights.owner]
        sink_margin = (self.sink_values[1] - self.sink_values[0]) * sign
        return answers(self.log_weight, margin, self._ends, self._weights, sink_margin)
