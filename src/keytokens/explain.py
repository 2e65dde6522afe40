"""From a text and a model to the record that explains the prediction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .certificate import Counts
from .core.attention import Parameters, scores
from .core.counts import COUNTS, Float
from .core.losses import probabilities
from .explanation import Document, Explanation
from .text import Vocabulary, Words, read_words, spans

__all__ = ["explain_text"]


def explain_text(
    text: str, vocabulary: Vocabulary, theta: Parameters, classes: Sequence[Any], counts: str
) -> Explanation:
    """Read the text as `predict` does and put what the model says of each token into one record."""
    words = read_words([text])
    found = vocabulary.find(words)
    first = np.concatenate([one.first for one in found])
    size = np.concatenate([np.full(len(one.first), n) for n, one in enumerate(found, start=1)])
    column = np.concatenate([one.column for one in found])
    in_order = np.lexsort((size, first))
    first, size, column = first[in_order], size[in_order], column[in_order]
    columns, seen_first, token, occurrences = np.unique(
        column, return_index=True, return_inverse=True, return_counts=True
    )
    weight = COUNTS[counts](occurrences.astype(np.float64))
    F = _scores(columns, weight, len(vocabulary), theta)
    # tokens in the order in which they first occur
    order = np.argsort(seen_first, kind="stable")
    rank = np.empty(len(order), np.intp)
    rank[order] = np.arange(len(order))
    columns = columns[order]
    return Explanation(
        Document(
            text=text,
            words=words.places if text.isascii() else spans(text),
            first=first,
            size=size,
            token=rank[token],
            names=_names(words, first[seen_first[order]], size[seen_first[order]]),
            log_weight=np.log(weight[order]) + theta.a[columns],
            values=_by_class(theta.B[:, columns] + theta.c[:, None]).T,
            occurrences=occurrences[order],
            sink_log_weight=theta.log_sink,
            sink_values=_by_class(theta.c[:, None])[:, 0],
            scores=_by_class(F)[:, 0],
            probabilities=probabilities(F)[:, 0],
            classes=classes,
            counts=cast(Counts, counts),
        )
    )


def _names(words: Words, first: NDArray[np.intp], size: NDArray[np.intp]) -> list[str]:
    """N-grams as they are known: their words with spaces between them."""
    spelled = [word.decode("utf-8", "replace") for word in words.spelled()]  # a mask is in no n-gram
    return [" ".join(spelled[i : i + n]) for i, n in zip(first.tolist(), size.tolist(), strict=True)]


def _scores(columns: NDArray[np.int32], weight: Float, n_tokens: int, theta: Parameters) -> Float:
    """f as `predict` computes it, to the bit: one row of the same matrix."""
    pointer = np.array([0, len(columns)], np.int32)
    return scores(sparse.csr_matrix((weight, columns, pointer), shape=(1, n_tokens)), theta)


def _by_class(x: Float) -> Float:
    """One row a class: a single row of logits speaks for the second of two classes, the first having 0."""
    return np.concatenate([np.zeros_like(x), x]) if len(x) == 1 else x
