"""From texts and a model to the records that explain the predictions."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence, Sized
from copy import copy
from dataclasses import dataclass
from itertools import islice
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .certificate import Counts
from .core.attention import Parameters, scores
from .core.counts import COUNTS, Float
from .core.losses import probabilities
from .explanation import Document, Explanation
from .explanation.later import Later
from .explanation.together import Together
from .text import Vocabulary, Words, read_words, spans
from .validate import check_texts

__all__ = ["MANY", "SOME", "explain_texts", "read_together"]

# texts that are read together: what one costs more than its share goes away
MANY = 256  # of a list
SOME = 64  # of a generator, whose texts may be slow to come: the first waits for all of them


def read_together(texts: Iterable[str]) -> Iterator[list[str]]:
    """Texts in pieces, checked."""
    remaining, first = iter(texts), 0
    while some := list(islice(remaining, MANY if isinstance(texts, Sized) else SOME)):
        yield check_texts("explain_many", some, first)
        first += len(some)


def explain_texts(
    texts: Sequence[str], vocabulary: Vocabulary, theta: Parameters, classes: Sequence[Any], counts: str
) -> list[Explanation]:
    """Read the texts as `predict` does and put what the model says of each token into one record a text."""
    plain, other = ([i for i, text in enumerate(texts) if text.isascii() == is_plain] for is_plain in (True, False))
    done: list[Explanation | None] = [None] * len(texts)
    for some in filter(None, (plain, other)):
        for i, one in zip(some, _explained([texts[i] for i in some], vocabulary, theta, classes, counts), strict=True):
            done[i] = one
    return cast(list[Explanation], done)


@dataclass(frozen=True, eq=False)
class _Uses:
    """The known n-grams of some texts in text order, shorter ones first, and the tokens of each text.

    Tokens are numbered through all texts, in the order in which they first occur. `by_column` are the same tokens with
    those of each text in the order of their columns, as in a matrix of counts.
    """

    first: NDArray[np.intp]  # (O,) first word
    size: NDArray[np.intp]  # (O,) words
    token: NDArray[np.intp]  # (O,) which token
    column: NDArray[np.int32]  # (T,)
    occurrences: NDArray[np.intp]  # (T,)
    by_column: NDArray[np.intp]  # (T,) tokens
    use_ends: NDArray[np.intp]  # (n + 1,) uses up to the end of each text
    token_ends: NDArray[np.intp]  # (n + 1,) tokens up to the end of each text

    @classmethod
    def of(cls, words: Words, vocabulary: Vocabulary) -> _Uses:
        grid = vocabulary.grid(words)
        columns = grid.ravel()
        place = (columns >= 0).nonzero()[0]
        column = columns[place]
        first, size = np.divmod(place, grid.shape[1])
        size += 1
        use_ends = np.zeros(len(words.ends) + 1, np.intp)
        use_ends[1:] = place.searchsorted(words.ends * grid.shape[1])
        keys = column.astype(np.int64)
        if len(words.ends) > 1:
            keys += np.repeat(np.arange(len(words.ends)) * len(vocabulary), np.diff(use_ends))
        use, heads = _grouped(keys, len(words.ends) * len(vocabulary))
        seen_first = use[heads]  # of each token, in the order of columns
        is_first = np.zeros(len(use), np.bool_)
        is_first[seen_first] = True
        by_column = (is_first.cumsum() - 1)[seen_first]
        times = np.empty(len(heads), np.intp)
        times[:-1], times[-1:] = heads[1:], len(use)
        times -= heads
        occurrences, token = np.empty_like(times), np.empty_like(use)
        occurrences[by_column] = times
        token[use] = by_column.repeat(times)
        starts = is_first.nonzero()[0]
        return cls(first, size, token, column[starts], occurrences, by_column, use_ends, starts.searchsorted(use_ends))


def _grouped(keys: NDArray[np.int64], limit: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The places of keys below `limit`, equal ones side by side and in order, and where each group begins.

    A key and its place in one integer are sorted faster than places by their keys.

    >>> [found.tolist() for found in _grouped(np.array([7, 5, 7]), 8)]
    [[1, 0, 2], [0, 1]]
    """
    bits = len(keys).bit_length()
    if limit < 1 << (63 - bits):
        packed = keys << bits
        packed |= np.arange(len(keys))
        packed.sort()
        order, keys = packed & ((1 << bits) - 1), packed >> bits
    else:
        order = keys.argsort(kind="stable")
        keys = keys[order]
    fresh = np.ones(len(keys), np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=fresh[1:])
    return order, fresh.nonzero()[0]


def _explained(
    texts: Sequence[str], vocabulary: Vocabulary, theta: Parameters, classes: Sequence[Any], counts: str
) -> Iterator[Explanation]:
    """The same for texts that are all ASCII, or none of them."""
    words = read_words(texts)
    uses = _Uses.of(words, vocabulary)
    weight = COUNTS[counts](uses.occurrences.astype(np.float64))
    # f as `predict` computes it, to the bit: the same matrix
    C = copy(_no_entries(len(texts), len(vocabulary)))
    C.data, C.indices, C.indptr = weight[uses.by_column], uses.column[uses.by_column], uses.token_ends.astype(np.int32)
    F = scores(C, theta)
    log_weight = np.log(weight) + theta.a[uses.column]
    values = _by_class(theta.B[:, uses.column] + theta.c[:, None]).T
    sink_values = _by_class(theta.c[:, None])[:, 0]
    all_scores, all_probabilities = _by_class(F).T, probabilities(F).T
    winner = all_probabilities.argmax(axis=1)
    together = Together(
        log_weight, values, uses.occurrences, uses.token, uses.token_ends, theta.log_sink, sink_values, winner
    )
    places = words.places
    offset, word_at, use_at, token_at = 0, 0, 0, 0
    ends = zip(words.ends.tolist(), uses.use_ends[1:].tolist(), uses.token_ends[1:].tolist(), strict=True)
    for i, (text, (word_end, use_end, token_end)) in enumerate(zip(texts, ends, strict=True)):
        tokens, used = slice(token_at, token_end), slice(use_at, use_end)
        columns = uses.column[tokens]
        yield Explanation(
            Document(
                text=text,
                words=places[word_at:word_end] - offset if text.isascii() else spans(text),
                first=uses.first[used] - word_at,
                size=uses.size[used],
                token=uses.token[used] - token_at,
                names=Later(len(columns), functools.partial(vocabulary.names, columns)),
                log_weight=log_weight[tokens],
                values=values[tokens],
                occurrences=uses.occurrences[tokens],
                sink_log_weight=theta.log_sink,
                sink_values=sink_values,
                scores=all_scores[i],
                probabilities=all_probabilities[i],
                classes=classes,
                counts=cast(Counts, counts),
            ),
            (together, i, use_at),
        )
        offset += len(text) + 1  # plain texts are read as they are, one after the other with one byte between them
        word_at, use_at, token_at = word_end, use_end, token_end


@functools.lru_cache(maxsize=8)
def _no_entries(rows: int, columns: int) -> sparse.csr_matrix:
    """A matrix to be copied and filled: to make one from its parts takes longer than all that is done with it."""
    return sparse.csr_matrix((rows, columns))


def _by_class(x: Float) -> Float:
    """One row a class: a single row of logits speaks for the second of two classes, the first having 0."""
    return np.concatenate([np.zeros_like(x), x]) if len(x) == 1 else x
