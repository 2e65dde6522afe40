"""From texts and a model to the records that explain the predictions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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

__all__ = ["SOME", "explain_texts"]

SOME = 64  # texts that are read together: what one costs more than its share goes away, and little waits for it


def explain_texts(
    texts: Sequence[str], vocabulary: Vocabulary, theta: Parameters, classes: Sequence[Any], counts: str
) -> list[Explanation]:
    """Read the texts as `predict` does and put what the model says of each token into one record a text."""
    plain = [i for i, text in enumerate(texts) if text.isascii()]
    if len(plain) in (0, len(texts)):
        return list(_explained(texts, vocabulary, theta, classes, counts))
    done: list[Explanation | None] = [None] * len(texts)
    other = [i for i, text in enumerate(texts) if not text.isascii()]
    for some in (plain, other):
        for i, one in zip(some, _explained([texts[i] for i in some], vocabulary, theta, classes, counts), strict=True):
            done[i] = one
    return cast(list[Explanation], done)


@dataclass(frozen=True, eq=False)
class _Uses:
    """The known n-grams of some texts in text order, shorter ones first, and the tokens of each text.

    Tokens are numbered through all texts: those of one text stand together, in the order of their columns.
    """

    first: NDArray[np.intp]  # (O,) first word
    size: NDArray[np.intp]  # (O,) words
    token: NDArray[np.intp]  # (O,) which token
    column: NDArray[np.int32]  # (T,)
    seen_first: NDArray[np.intp]  # (T,) its first use
    occurrences: NDArray[np.intp]  # (T,)
    use_ends: NDArray[np.intp]  # (n + 1,) uses up to the end of each text
    token_ends: NDArray[np.intp]  # (n + 1,) tokens up to the end of each text

    @classmethod
    def of(cls, words: Words, vocabulary: Vocabulary) -> _Uses:
        found = vocabulary.find(words)
        first = np.concatenate([one.first for one in found])
        size = np.repeat(np.arange(1, len(found) + 1), [len(one.first) for one in found])
        # every n has its places in order already, which the stable sort makes use of
        in_order = np.argsort(first * (len(found) + 1) + size, kind="stable")
        first, size = first[in_order], size[in_order]
        column = np.concatenate([one.column for one in found])[in_order]
        use_ends = np.searchsorted(first, np.concatenate([[0], words.ends]))
        text = np.repeat(np.arange(len(words.ends)), np.diff(use_ends))
        keys, seen_first, token, occurrences = np.unique(
            (text << 32) | column, return_index=True, return_inverse=True, return_counts=True
        )
        token_ends = np.searchsorted(keys, np.arange(len(words.ends) + 1) << 32)
        own = (keys & 0xFFFFFFFF).astype(np.int32)
        return cls(first, size, token, own, seen_first, occurrences, use_ends, token_ends)


def _explained(
    texts: Sequence[str], vocabulary: Vocabulary, theta: Parameters, classes: Sequence[Any], counts: str
) -> Iterator[Explanation]:
    """The same for texts that are all ASCII, or none of them."""
    words = read_words(texts)
    uses = _Uses.of(words, vocabulary)
    weight = COUNTS[counts](uses.occurrences.astype(np.float64))
    # f as `predict` computes it, to the bit: the same matrix
    C = sparse.csr_matrix((weight, uses.column, uses.token_ends), shape=(len(texts), len(vocabulary)))
    F = scores(C, theta)
    # tokens in the order in which they first occur
    order = np.argsort(uses.seen_first, kind="stable")
    rank = np.empty(len(order), np.intp)
    rank[order] = np.arange(len(order))
    token, occurrences, columns = rank[uses.token], uses.occurrences[order], uses.column[order]
    names = vocabulary.names(columns) if len(texts) == 1 else _names(vocabulary, columns)
    log_weight = np.log(weight[order]) + theta.a[columns]
    values = _by_class(theta.B[:, columns] + theta.c[:, None]).T
    sink_values = _by_class(theta.c[:, None])[:, 0]
    all_scores, all_probabilities = _by_class(F).T, probabilities(F).T
    places = words.places
    offset, word_at, use_at, token_at = 0, 0, 0, 0
    ends = zip(words.ends.tolist(), uses.use_ends[1:].tolist(), uses.token_ends[1:].tolist(), strict=True)
    for i, (text, (word_end, use_end, token_end)) in enumerate(zip(texts, ends, strict=True)):
        tokens, used = slice(token_at, token_end), slice(use_at, use_end)
        yield Explanation(
            Document(
                text=text,
                words=places[word_at:word_end] - offset if text.isascii() else spans(text),
                first=uses.first[used] - word_at,
                size=uses.size[used],
                token=token[used] - token_at,
                names=names[tokens],
                log_weight=log_weight[tokens],
                values=values[tokens],
                occurrences=occurrences[tokens],
                sink_log_weight=theta.log_sink,
                sink_values=sink_values,
                scores=all_scores[i],
                probabilities=all_probabilities[i],
                classes=classes,
                counts=cast(Counts, counts),
            )
        )
        offset += len(text) + 1  # plain texts are read as they are, one after the other with one byte between them
        word_at, use_at, token_at = word_end, use_end, token_end


def _names(vocabulary: Vocabulary, columns: NDArray[np.int32]) -> list[str]:
    """The tokens of some columns, which may repeat: each is spelled once."""
    different, which = np.unique(columns, return_inverse=True)
    spelled = vocabulary.names(different)
    return [spelled[i] for i in which.tolist()]


def _by_class(x: Float) -> Float:
    """One row a class: a single row of logits speaks for the second of two classes, the first having 0."""
    return np.concatenate([np.zeros_like(x), x]) if len(x) == 1 else x
