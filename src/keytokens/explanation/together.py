"""Texts that were read together: what their records have in common to compute, for all of them at once.

What is computed of one text is the same, to the bit, whichever texts it was read with.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..certificate import TokenSet
from ..certificate.many import Answers, Weights, answers, relative_weights

__all__ = ["Together"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Together:
    """The tokens of some texts, one text after the other."""

    log_weight: NDArray[Any]  # (T,)
    values: NDArray[Any]  # (T, K) class scores, intercept folded in; two classes: 0 and b + c
    occurrences: NDArray[np.intp]  # (T,)
    token: NDArray[np.intp]  # (O,) which token each occurrence is of
    token_ends: NDArray[np.intp]  # (n + 1,) tokens up to the end of each text
    sink_log_weight: float
    sink_values: NDArray[Any]  # (K,)
    winner: NDArray[np.intp]  # (n,) the predicted class

    @functools.cached_property
    def _row(self) -> NDArray[np.intp]:
        """(n,) the number of each text among those that have tokens; -1 for the others."""
        filled = self.token_ends[1:] > self.token_ends[:-1]
        return np.where(filled, filled.cumsum() - 1, -1)

    @functools.cached_property
    def _ends(self) -> NDArray[np.intp]:
        """Tokens up to the end of each text that has any."""
        return self.token_ends[np.append(True, self._row >= 0)]

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
        return float(self._shares[1][row]) if row >= 0 else float(self.sink_log_weight > -np.inf)

    @functools.cached_property
    def said(self) -> Array:
        """(T,) the value of each token for the class that is explained."""
        if self.values.shape[1] == 2 or not len(self.values):
            return self.values[:, 1]
        own = self.winner[self._row >= 0][self._weights.owner]
        return np.asarray(self.values[np.arange(len(own)), own])

    @functools.cached_property
    def contributions(self) -> Array:
        """(T,) attention times value."""
        return self.attention * self.said

    @functools.cached_property
    def uses(self) -> tuple[Array, Array, Array]:
        """(O,) attention, value and contribution of every occurrence."""
        attention = (self.attention / self.occurrences)[self.token]
        value = self.said[self.token]
        return attention, value, attention * value

    @functools.cached_property
    def _answers(self) -> Answers | None:
        if self.values.shape[1] != 2 or not len(self.values):
            return None
        sign = np.where(self.winner[self._row >= 0] == 1, 1.0, -1.0)
        margin = self.values[:, 1] * sign[self._weights.owner]
        sink_margin = (self.sink_values[1] - self.sink_values[0]) * sign
        return answers(self.log_weight, margin, self._ends, self._weights, sink_margin)

    def _clear(self, text: int) -> tuple[Answers, int] | None:
        row, found = self._row[text], self._answers
        return (found, int(row)) if found is not None and row >= 0 and found.clear[row] else None

    def sets(self, text: int) -> tuple[TokenSet, TokenSet] | None:
        """The sufficient set and the flip set of one text, as indices of its own tokens; None: ask for it alone."""
        clear = self._clear(text)
        if clear is None:
            return None
        found, row = clear
        begin, kept, gone = int(found.begin[row]), int(found.kept[row]), int(found.gone[row])
        order = (found.order[begin : begin + max(kept, gone)] - self._ends[row]).tolist()
        return (
            TokenSet(tuple(order[:kept]), kept, kept, "minimum", False),
            TokenSet(tuple(order[:gone]), gone, gone, "minimum", False, 1 - int(self.winner[text])),
        )

    def margins(self, text: int) -> tuple[float, float] | None:
        """What `Proof` calls `margins`."""
        clear = self._clear(text)
        return None if clear is None else (float(clear[0].least[clear[1]]), float(clear[0].after[clear[1]]))
