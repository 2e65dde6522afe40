"""Texts that were read together: what their records have in common to compute, for all of them at once.

What is computed of one text is the same, to the bit, whichever texts it was read with.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..model.attention import least_holding_half
from ..proof.batch import Answers, Weights, answers, relative_weights
from ..proof.tokens import TokenSet

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
class Together:
    """Some texts, one after the other: what `Document` has of one. All but places are numbered through all texts."""

    texts: Sequence[str]
    words: NDArray[np.intp]  # (W, 2) start and end of every word in its own text
    first: NDArray[np.intp]  # (O,) first word of each known n-gram
    size: NDArray[np.intp]  # (O,)
    token: NDArray[np.intp]  # (O,) which token
    spelled: Callable[[slice], Sequence[str]]  # the names of some tokens
    log_weight: NDArray[Any]  # (T,)
    values: NDArray[Any]  # (T, K) class scores, intercept folded in; two classes: 0 and b + c
    occurrences: NDArray[np.intp]  # (T,)
    word_ends: NDArray[np.intp]  # (n + 1,) words up to the end of each text
    use_ends: NDArray[np.intp]  # (n + 1,) occurrences
    token_ends: NDArray[np.intp]  # (n + 1,) tokens
    sink_log_weight: float
    sink_values: NDArray[Any]  # (K,)
    scores: NDArray[Any]  # (n, K)
    probabilities: NDArray[Any]  # (n, K)
    classes: Sequence[Any]
    counts: str

    @functools.cached_property
    def words_of(self) -> list[slice]:
        """(n,) the words of each text."""
        return _slices(self.word_ends)

    @functools.cached_property
    def uses_of(self) -> list[slice]:
        """(n,) the occurrences of each text."""
        return _slices(self.use_ends)

    @functools.cached_property
    def tokens_of(self) -> list[slice]:
        """(n,) the tokens of each text."""
        return _slices(self.token_ends)

    @functools.cached_property
    def own_token(self) -> NDArray[np.intp]:
        """(O,) which token of its text each occurrence is of."""
        return self.token - self.token_ends[:-1].repeat(self.use_ends[1:] - self.use_ends[:-1])

    @functools.cached_property
    def winners(self) -> list[int]:
        """(n,) the predicted class of each text."""
        winners: list[int] = self.probabilities.argmax(axis=1).tolist()
        return winners

    @property
    def has_sink(self) -> bool:
        return self.sink_log_weight > -np.inf

    @functools.cached_property
    def _row(self) -> list[int]:
        """(n,) the number of each text among those that have tokens; -1 for the others."""
        number = count()
        return [next(number) if own.stop > own.start else -1 for own in self.tokens_of]

    @functools.cached_property
    def _filled(self) -> list[int]:
        """The texts that have tokens."""
        return [text for text, row in enumerate(self._row) if row >= 0]

    @functools.cached_property
    def _ends(self) -> NDArray[np.intp]:
        """Tokens up to the end of each text that has any."""
        filled = self._filled
        return self.token_ends if len(filled) == len(self.texts) else self.token_ends[[0, *(i + 1 for i in filled)]]

    @functools.cached_property
    def _label(self) -> NDArray[np.intp]:
        """The predicted class of each text that has tokens."""
        return np.array([self.winners[i] for i in self._filled])

    @functools.cached_property
    def _weights(self) -> Weights:
        return relative_weights(self.log_weight, self._ends, self.sink_log_weight)

    @functools.cached_property
    def _shares(self) -> tuple[Array, Array]:
        """Attention of each token, and of the sink in each text that has tokens."""
        weights = self._weights
        total = np.add.reduceat(weights.of_tokens, self._ends[:-1])
        total += weights.of_sink
        return weights.of_tokens / total[weights.owner], weights.of_sink / total

    @property
    def attention(self) -> Array:
        """(T,) Q of each token."""
        return self._shares[0] if len(self.log_weight) else np.zeros(0)

    def sink_attention(self, text: int) -> float:
        row = self._row[text]
        return float(self._shares[1][row]) if row >= 0 else float(self.has_sink)

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
    def _selected(self) -> NDArray[np.bool_]:
        """(T,) among the fewest tokens of their text that hold half of the attention on its tokens."""
        if not len(self.log_weight):
            return np.zeros(0, np.bool_)
        least = least_holding_half(self.attention, self._ends.tolist())
        return np.asarray(self.attention >= least[self._weights.owner])

    @functools.cached_property
    def uses(self) -> Uses:
        attention = (self.attention / self.occurrences)[self.token]
        value = self.said[self.token]
        start, end = self.words[:, 0][self.first], self.words[:, 1][self.first + self.size - 1]
        return Uses(start, end, attention, value, attention * value, self._selected[self.token])

    def touching(self, text: int) -> Array:
        """For every word of a text, the contributions of the occurrences that cover it: what masking it takes away."""
        words, own = self.words_of[text], self.uses_of[text]
        token, first, size = self.token[own], self.first[own] - words.start, self.size[own]
        each = self.contributions[token] / self.occurrences[token]
        total = np.zeros(words.stop - words.start)
        for offset in range(int(size.max(initial=0))):
            inside = size > offset
            total += np.bincount(first[inside] + offset, each[inside], len(total))
        return total

    @functools.cached_property
    def _answers(self) -> Answers | None:
        if self.values.shape[1] != 2 or not len(self.values):
            return None
        sign = np.where(self._label == 1, 1.0, -1.0)
        margin = self.values[:, 1] * sign[self._weights.owner]
        sink_margin = (self.sink_values[1] - self.sink_values[0]) * sign
        return answers(self.log_weight, margin, self._ends, self._weights, sink_margin)

    @functools.cached_property
    def _found(self) -> list[_Found | None]:
        """(n,) the answers for each text that has clear ones."""
        found = self._answers
        if found is None:
            return [None] * len(self.texts)
        columns = (found.begin, found.kept, found.gone, found.least, found.after)
        rows = [*map(_Found, *(column.tolist() for column in columns))]
        clear = found.clear.tolist()
        return [rows[row] if row >= 0 and clear[row] else None for row in self._row]

    def sets(self, text: int) -> tuple[TokenSet, TokenSet] | None:
        """The sufficient set and the flip set of one text, as indices of its own tokens; None: ask for it alone."""
        found = self._found[text]
        if found is None or self._answers is None:
            return None
        begin, kept, gone, _, _ = found
        order = (self._answers.order[begin : begin + max(kept, gone)] - self.tokens_of[text].start).tolist()
        return (
            TokenSet(tuple(order[:kept]), kept, kept, "minimum", False),
            TokenSet(tuple(order[:gone]), gone, gone, "minimum", False, 1 - self.winners[text]),
        )

    def margins(self, text: int) -> tuple[float, float] | None:
        """What `Proof` calls `margins`."""
        found = self._found[text]
        return None if found is None else (found.least, found.after)


class _Found(NamedTuple):
    """The `Answers` for one text."""

    begin: int
    kept: int
    gone: int
    least: float
    after: float


def _slices(ends: NDArray[np.intp]) -> list[slice]:
    return [slice(begin, end) for begin, end in pairwise(ends.tolist())]
