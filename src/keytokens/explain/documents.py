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
from ..proof.program import over
from ..proof.tokens import ProvedSet
from ..proof.votes import Votes
from .record import Proved

Array = NDArray[np.float64]


class Uses(NamedTuple):
    """Of every occurrence of a token what `TokenUse` says; each (O,)."""

    start: NDArray[np.intp]
    end: NDArray[np.intp]
    attention: Array
    value: Array
    contribution: Array
    selected: NDArray[np.bool_]


class Own(NamedTuple):
    """What belongs to one text."""

    words: slice
    uses: slice
    tokens: slice


class Told(NamedTuple):
    """What the model says of each token; each (T,)."""

    attention: Array
    value: Array  # for the class that is explained
    contribution: Array  # attention times value
    selected: NDArray[np.bool_]  # among the fewest of its text that hold half of the attention on tokens


class Rows(NamedTuple):
    """Sums over the tokens of a text are made for the texts that have some: a row each."""

    of: list[int]  # (n,) the row of each text; -1 for those without tokens
    ends: NDArray[np.intp]  # tokens up to the end of each row; 0 first
    label: NDArray[np.intp]  # the predicted class of each row
    weights: Weights
    total: Array  # of the weights of each row, that of the sink included


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
    noise : float
        The share of labels that the probabilities take for drawn by lot.
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
    noise: float = 0.0

    # ---- one text

    @functools.cached_property
    def own(self) -> list[Own]:
        """(n,) the words, occurrences and tokens of each text."""
        ends = self.word_ends, self.use_ends, self.token_ends
        return list(map(Own, *([slice(*span) for span in pairwise(one.tolist())] for one in ends)))

    def only(self, text: int) -> Documents:
        """One text without the others."""
        words, uses, tokens = self.own[text]
        alone = slice(text, text + 1)
        return replace(
            self,
            texts=self.texts[alone],
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
            scores=self.scores[alone],
            probabilities=self.probabilities[alone],
        )

    def votes(self, text: int) -> Votes:
        """How the tokens of one text vote."""
        own, sink = self.own[text].tokens, (self.sink_log_weight, self.sink_values)
        return Votes.trusted(self.log_weight[own], self.values[own], self.winners[text], *sink)

    def sink_attention(self, text: int) -> float:
        rows, row = self._rows, self._rows.of[text]
        return float(rows.weights.of_sink[row] / rows.total[row]) if row >= 0 else float(self.has_sink)

    def touching(self, text: int) -> Array:
        """For every word of a text, the contributions of the occurrences that cover it: what masking it takes away."""
        words, uses, _ = self.own[text]
        token = self.token[uses]
        each = self.told.contribution[token] / self.occurrences[token]
        return over(each, self.first[uses] - words.start, self.size[uses], words.stop - words.start)

    def proved(self, text: int) -> Proved | None:
        """What is proved of one text; None: ask for it alone."""
        row, found = self._rows.of[text], self._answers
        if row < 0 or found is None or not found.clear[row]:
            return None
        begin, kept, gone = int(found.begin[row]), int(found.kept[row]), int(found.gone[row])
        order = (found.order[begin : begin + max(kept, gone)] - self.own[text].tokens.start).tolist()
        return Proved(
            ProvedSet(tuple(order[:kept]), kept, "minimum"),
            ProvedSet(tuple(order[:gone]), gone, "minimum", label_after=1 - self.winners[text]),
            (float(found.least[row]), float(found.after[row])),
        )

    # ---- all texts at once

    @property
    def has_sink(self) -> bool:
        return self.sink_log_weight > -np.inf

    @functools.cached_property
    def told(self) -> Told:
        """What the model says of each token."""
        rows, owner = self._rows, self._rows.weights.owner
        attention = rows.weights.of_tokens / rows.total[owner]
        # indexed by class, a column takes longer than the slice that two classes allow
        value = self.values[:, 1] if len(self.classes) == 2 else self.values[np.arange(len(owner)), rows.label[owner]]
        least = least_holding_half(attention, rows.ends.tolist())
        return Told(attention, value, attention * value, attention >= least[owner])

    @functools.cached_property
    def uses(self) -> Uses:
        told, token = self.told, self.token
        attention, value = (told.attention / self.occurrences)[token], told.value[token]
        start, end = self.words[:, 0][self.first], self.words[:, 1][self.first + self.size - 1]
        return Uses(start, end, attention, value, attention * value, told.selected[token])

    @functools.cached_property
    def winners(self) -> list[int]:
        """(n,) the predicted class of each text."""
        winners: list[int] = self.probabilities.argmax(axis=1).tolist()
        return winners

    @functools.cached_property
    def _rows(self) -> Rows:
        filled = np.flatnonzero(np.diff(self.token_ends))
        row = np.full(len(self.texts), -1)
        row[filled] = np.arange(len(filled))
        ends = np.append(0, self.token_ends[filled + 1])
        weights = relative_weights(self.log_weight, ends, self.sink_log_weight)
        total = np.add.reduceat(weights.of_tokens, ends[:-1])
        total += weights.of_sink
        return Rows(row.tolist(), ends, np.array(self.winners)[filled], weights, total)

    @functools.cached_property
    def _answers(self) -> Answers | None:
        """What is proved of each row; None for more than two classes."""
        if len(self.classes) != 2 or not len(self.values):
            return None
        rows = self._rows
        sign = np.where(rows.label == 1, 1.0, -1.0)
        margin = self.values[:, 1] * sign[rows.weights.owner]
        sink_margin = (self.sink_values[1] - self.sink_values[0]) * sign
        return answers(self.log_weight, margin, rows.ends, rows.weights, sink_margin)
