"""From texts and a model to predictions, and to the records that explain them: both see the same counts."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence, Sized
from copy import copy
from dataclasses import dataclass
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..base.checks import check_texts
from ..model.attention import Parameters, scores
from ..model.blocks import Float
from ..model.losses import probabilities
from ..model.weighting import WEIGHTINGS
from ..text.vocabulary import Vocabulary
from ..text.words import Words, read_words, spans

if TYPE_CHECKING:  # loaded with the first explanation: a prediction needs no proof
    from ..explain.text import Explanation

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
    texts: Sequence[str],
    vocabulary: Vocabulary,
    theta: Parameters,
    classes: Sequence[Any],
    counts: str,
    noise: float = 0.0,
) -> list[Explanation]:
    """Read the texts as `predict` does and put what the model says of each token into one record a text."""
    from ..explain.documents import Documents
    from ..explain.record import Later
    from ..explain.text import Explanation

    order = sorted(range(len(texts)), key=lambda i: not texts[i].isascii())  # plain ones first: see `_places`
    ordered = [texts[i] for i in order]
    words = read_words(ordered)
    found = locate(words, vocabulary)
    F = scores(found.matrix(counts), theta)
    token, starts, by_column = _numbered(found)
    column, occurrences = found.column[starts], np.empty_like(found.times)
    occurrences[by_column] = found.times
    documents = Documents(
        texts=ordered,
        words=_places(ordered, words),
        first=found.first,
        size=found.size,
        token=token,
        names=Later(len(column), functools.partial(vocabulary.names, column)),
        log_weight=np.log(WEIGHTINGS[counts](occurrences)) + theta.a.take(column),
        values=_by_class(theta.B.take(column, axis=1) + theta.c[:, None]).T,
        occurrences=occurrences,
        word_ends=found.word_ends,
        use_ends=found.use_ends,
        token_ends=found.token_ends,
        sink_log_weight=theta.log_sink,
        sink_values=_by_class(theta.c[:, None])[:, 0],
        scores=_by_class(F).T,
        probabilities=probabilities(F, noise).T,
        classes=classes,
        counts=counts,
        noise=noise,
    )
    place = sorted(range(len(texts)), key=order.__getitem__)
    return [Explanation(documents, k) for k in place]


@dataclass(frozen=True, eq=False)
class Located:
    """The known n-grams of some texts, and the same grouped by text and column; `locate` makes it.

    A *use* is one occurrence of a known n-gram. Uses are numbered in text order, shorter ones first.
    """

    shape: tuple[int, int]  # texts, columns
    first: NDArray[np.intp]  # (O,) first word of each use
    size: NDArray[np.intp]  # (O,) how many words it has
    column: NDArray[np.int32]  # (O,) its column
    word_ends: NDArray[np.intp]  # (n + 1,) words up to the end of each text; 0 first
    use_ends: NDArray[np.intp]  # (n + 1,) uses up to the end of each text
    grouped: NDArray[np.intp]  # (O,) the uses by text, then by column; equal ones in text order
    heads: NDArray[np.intp]  # (T,) where each token of a text begins among them
    times: NDArray[np.intp]  # (T,) how often it occurs
    token_ends: NDArray[np.intp]  # (n + 1,) tokens up to the end of each text

    def matrix(self, counts: str) -> sparse.csr_matrix:
        """(texts, columns) the counts, weighed."""
        C = copy(_no_entries(*self.shape))
        C.data, C.indices = WEIGHTINGS[counts](self.times), self.column[self.grouped[self.heads]]
        C.indptr = self.token_ends.astype(np.int32)
        return C


def locate(words: Words, vocabulary: Vocabulary) -> Located:
    """Find the known n-grams of some texts: the one search that predictions and explanations share."""
    grid = vocabulary.grid(words)
    columns = grid.ravel()
    place = (columns >= 0).nonzero()[0]
    first, size = np.divmod(place, grid.shape[1])
    size += 1
    column = columns[place]
    word_ends = np.append(0, words.ends)
    use_ends = place.searchsorted(word_ends * grid.shape[1])
    n, keys = len(words.ends), column.astype(np.int64)
    if n > 1:
        keys += np.repeat(np.arange(n) * len(vocabulary), np.diff(use_ends))
    grouped, heads = _grouped(keys, n * len(vocabulary))
    times, token_ends = np.diff(heads, append=len(grouped)), heads.searchsorted(use_ends)
    shape = n, len(vocabulary)
    return Located(shape, first, size, column, word_ends, use_ends, grouped, heads, times, token_ends)


def predicted(texts: Sequence[str], vocabulary: Vocabulary, theta: Parameters, counts: str) -> Float:
    """The logits of some texts, a row a class."""
    return scores(locate(read_words(texts), vocabulary).matrix(counts), theta)


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


def _numbered(found: Located) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """The tokens numbered as they first occur: of each use, the first use of each, and in the order of `heads`."""
    seen_first = found.grouped[found.heads]
    is_first = np.zeros(len(found.grouped), np.bool_)
    is_first[seen_first] = True
    starts = is_first.nonzero()[0]
    number = np.empty(len(found.grouped), np.intp)  # of each token, where it is first seen
    number[starts] = np.arange(len(starts))
    by_column = number[seen_first]
    token = np.empty_like(found.grouped)
    token[found.grouped] = by_column.repeat(found.times)
    return token, starts, by_column


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
