"""From texts and a model to the records that explain the predictions."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence, Sized
from copy import copy
from dataclasses import dataclass
from itertools import accumulate, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..base.checks import check_texts
from ..explain.documents import Documents
from ..explain.prediction import Later
from ..explain.text import Explanation
from ..model.attention import Parameters, scores
from ..model.blocks import Float
from ..model.losses import probabilities
from ..model.weighting import WEIGHTINGS
from ..text.vocabulary import Vocabulary
from ..text.words import Words, read_words, spans

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
    order = sorted(range(len(texts)), key=lambda i: not texts[i].isascii())  # plain ones first: see `_places`
    documents = _read([texts[i] for i in order], vocabulary, theta, classes, counts)
    place = sorted(range(len(texts)), key=order.__getitem__)
    return [Explanation(documents, k) for k in place]


@dataclass(frozen=True, eq=False)
class Located:
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
    word_ends: NDArray[np.intp]  # (n + 1,) words up to the end of each text
    use_ends: NDArray[np.intp]  # (n + 1,) uses up to the end of each text
    token_ends: NDArray[np.intp]  # (n + 1,) tokens up to the end of each text

    @classmethod
    def of(cls, words: Words, vocabulary: Vocabulary) -> Located:
        grid = vocabulary.grid(words)
        columns = grid.ravel()
        place = (columns >= 0).nonzero()[0]
        column = columns[place]
        first, size = np.divmod(place, grid.shape[1])
        size += 1
        word_ends = np.zeros(len(words.ends) + 1, np.intp)
        word_ends[1:] = words.ends
        use_ends = place.searchsorted(word_ends * grid.shape[1])
        keys = column.astype(np.int64)
        if len(words.ends) > 1:
            keys += np.repeat(np.arange(len(words.ends)) * len(vocabulary), np.diff(use_ends))
        use, heads = _grouped(keys, len(words.ends) * len(vocabulary))
        seen_first = use[heads]  # of each token, in the order of columns
        is_first = np.zeros(len(use), np.bool_)
        is_first[seen_first] = True
        starts = is_first.nonzero()[0]
        number = np.empty(len(use), np.intp)  # of each token, where it is first seen
        number[starts] = np.arange(len(starts))
        by_column = number[seen_first]
        times = np.empty(len(heads), np.intp)
        times[:-1], times[-1:] = heads[1:], len(use)
        times -= heads
        occurrences, token = np.empty_like(times), np.empty_like(use)
        occurrences[by_column] = times
        token[use] = by_column.repeat(times)
        ends = word_ends, use_ends, starts.searchsorted(use_ends)
        return cls(first, size, token, column[starts], occurrences, by_column, *ends)


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
    fresh = np.empty(len(keys), np.bool_)
    fresh[:1] = True
    np.not_equal(keys[1:], keys[:-1], out=fresh[1:])
    return order, fresh.nonzero()[0]


def _read(
    texts: Sequence[str], vocabulary: Vocabulary, theta: Parameters, classes: Sequence[Any], counts: str
) -> Documents:
    words = read_words(texts)
    uses = Located.of(words, vocabulary)
    column = uses.column
    weight = WEIGHTINGS[counts](uses.occurrences)
    # f as `predict` computes it, to the bit: the same matrix
    C = copy(_no_entries(len(texts), len(vocabulary)))
    C.data, C.indices, C.indptr = weight[uses.by_column], column[uses.by_column], uses.token_ends.astype(np.int32)
    F = scores(C, theta)
    return Documents(
        texts=texts,
        words=_places(texts, words),
        first=uses.first,
        size=uses.size,
        token=uses.token,
        names=Later(len(column), functools.partial(vocabulary.names, column)),
        log_weight=np.log(weight) + theta.a.take(column),
        values=_by_class(theta.B.take(column, axis=1) + theta.c[:, None]).T,
        occurrences=uses.occurrences,
        word_ends=uses.word_ends,
        use_ends=uses.use_ends,
        token_ends=uses.token_ends,
        sink_log_weight=theta.log_sink,
        sink_values=_by_class(theta.c[:, None])[:, 0],
        scores=_by_class(F).T,
        probabilities=probabilities(F).T,
        classes=classes,
        counts=counts,
    )


def _places(texts: Sequence[str], words: Words) -> NDArray[np.intp]:
    """(W, 2) start and end of every word in its text. All ASCII texts come first."""
    plain = sum(map(str.isascii, texts))
    places, end = words.places, words.ends[plain - 1] if plain else 0
    if plain > 1:  # they are read as they are, one after the other with one byte between them
        begins = np.array([0, *accumulate(len(text) + 1 for text in texts[: plain - 1])])
        places[:end] -= begins.repeat(np.diff(words.ends[:plain], prepend=0))[:, None]
    if plain < len(texts):  # the others are rewritten first
        places[end:] = np.concatenate([spans(text) for text in texts[plain:]])
    return places


@functools.lru_cache(maxsize=8)
def _no_entries(rows: int, columns: int) -> sparse.csr_matrix:
    """A matrix to be copied and filled: to make one from its parts takes longer than all that is done with it."""
    return sparse.csr_matrix((rows, columns))


def _by_class(x: Float) -> Float:
    """One row a class: a single row of logits speaks for the second of two classes, the first having 0."""
    return np.concatenate([np.zeros_like(x), x]) if len(x) == 1 else x
