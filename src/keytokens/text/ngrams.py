"""A vocabulary from training texts, and their counts.

Texts come in blocks, which are worked on one by one, wherever the executor has them. What is merged are sums of
integers and sorted sets, so the answer depends neither on the blocks nor on the executor.

    texts -> readings      the words of each block: distinct ones, and the text in their numbers
          -> words         those of all blocks, most frequent first; then the texts in these numbers
          -> n-grams       for n = 1, 2, ...: those of each block, then those of all that are frequent enough, then
                           the n-gram that begins at each word
          -> rows          the counts of the n-grams that are chosen as tokens
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..base.memory import give_back_memory
from .hashing import Ids, Keys, KeyTable, factorise
from .matrix import Rows, Weigh, parts_of, row_numbers, rows_of, run_starts, stacked
from .spill import Executor, Threads, loaded
from .vocabulary import Level, Vocabulary, next_keys, next_nodes
from .words import MASK_KEY, MOST_TEXTS, read_words

_WAITING = 1 << 20  # words that may wait before they are merged: a merge takes some hundred bytes for each
_RANGE = 1 << 20  # n-grams that are merged at a time, by each thread
_SAMPLED = 1 << 10  # one n-gram of so many says where ranges begin
_ROW_BITS = np.uint64(MOST_TEXTS.bit_length() - 1)
_END = 1 << 63  # beyond all keys of n-grams


@dataclass(frozen=True)
class Limits:
    """Which n-grams become tokens."""

    ngrams: tuple[int, int] = (1, 2)
    min_df: tuple[int, ...] = (1, 2, 3)  # least number of texts, for n = 1, 2, ...; the last entry goes on for ever
    max_df: float = 1.0  # largest share of the texts
    max_tokens: int | None = None

    def least(self, order: int) -> int:
        """The least number of texts of a token of so many words."""
        return self.min_df[min(order, len(self.min_df)) - 1]

    def least_on_the_way(self, order: int) -> int:
        """A node of `order` words in fewer texts leads nowhere: an n-gram is no more frequent than its parts."""
        last = min(self.ngrams[1], len(self.min_df))  # longer ones have the last limit
        return min(self.least(longer) for longer in range(order, max(order, last) + 1))


class Allowance:
    """Hears how large a vocabulary is before memory is taken for it, and may refuse; this one allows anything."""

    def holds_words(self, n: int) -> bool:
        """Whether there may be so many different words."""
        return True

    def words(self, n: int) -> None:
        """There are so many different words."""

    def grams(self, n: int, longer: int) -> None:
        """There are so many different n-grams more, of one length; those of so many greater lengths come after."""

    def keep(self, n_tokens: int) -> int:
        """How many of the tokens to keep."""
        return n_tokens


ANYTHING = Allowance()


@dataclass(frozen=True, eq=False)
class Built:
    """The vocabulary of some texts, and their counts, block by block, wherever the executor has them."""

    vocabulary: Vocabulary
    rows: list[Any]  # `Rows` of each block
    n_texts: int

    @functools.cached_property
    def sizes(self) -> list[NDArray[np.int32]]:
        """The number of tokens of each text, by block."""
        return [loaded(rows).sizes.copy() for rows in self.rows]

    def matrix(
        self, weigh: Weigh = lambda counts: counts, first: int = 0, last: int | None = None
    ) -> sparse.csr_matrix:
        """(texts, tokens) float32, weighed: of all texts, or of texts first .. last - 1."""
        parts = parts_of([len(own) for own in self.sizes], first, self.n_texts if last is None else last)
        return stacked([(self.rows[number], *span) for number, *span in parts], len(self.vocabulary), weigh)


def build(texts: Any, limits: Limits, run: Executor | None = None, allowance: Allowance = ANYTHING) -> Built:
    """The vocabulary that texts, wherever the executor has them, give within the limits, and their counts.

    >>> built = build(["a b a", "b a"], Limits())
    >>> built.vocabulary.tokens, built.matrix().toarray().tolist()
    (('a', 'b', 'b a'), [[2.0, 1.0, 1.0], [1.0, 1.0, 1.0]])
    """
    run = run or Threads()
    readings = run.map(read_block, (), run.blocks(texts))
    found = run.call(most_frequent_first, run.fold(functools.partial(merge_words, allowance=allowance), readings))
    table = run.call(KeyTable.build, run.call(attrgetter("keys"), found))
    words = run.map(number_block, (table,), readings)
    ends = run.map(attrgetter("ends"), (), readings)
    del readings, table
    give_back_memory()
    n_words, n_texts = run.value([run.call(len, found), run.call(attrgetter("n_texts"), found)])
    grams, nodes = _frequent(run, words, ends, n_words, limits, allowance)
    column = run.call(choose, grams, limits, n_texts)
    n_tokens = int(run.value(run.call(np.max, column))) + 1
    kept = allowance.keep(n_tokens)
    if kept < n_tokens:
        column = run.call(choose, grams, replace(limits, max_tokens=kept), n_texts)
    rows = run.map(count_block, (column,), ends, *nodes)
    keys = [run.call(attrgetter("keys"), own) for own in grams]
    del words, ends, grams, nodes
    give_back_memory()
    return Built(vocabulary_of(*run.value([found, keys, column])), rows, n_texts)


def _frequent(
    run: Executor, words: list[Any], ends: list[Any], n_words: int, limits: Limits, allowance: Allowance
) -> tuple[list[Any], list[list[Any]]]:
    """By order: the n-grams that are tokens or lead to one, and of each block the node that begins at each word."""
    grams: list[Any] = []
    nodes, n_nodes, longest = [words], 0, limits.ngrams[1]
    for order in range(1, longest + 1):
        least = limits.least_on_the_way(order) if order > 1 else 1  # every word is a node
        grams.append(_merged(run, run.map(ngrams_of, (order, n_words), words, nodes[-1], ends), least))
        n_own = run.value(run.call(len, grams[-1]))
        allowance.grams(n_own, longest - order)
        if not n_own:  # nothing longer either
            break
        if order > 1:
            table = run.call(KeyTable.build, run.call(attrgetter("keys"), grams[-1]), n_nodes)
            nodes.append(run.map(next_nodes, (order, n_words, table), words, nodes[-1], ends))
        n_nodes += n_own
    return grams, nodes


# Words ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class WordCounts:
    """Distinct words of some texts: how often each occurs, and how it is spelled."""

    keys: Keys
    times: NDArray[np.int64]
    letters: NDArray[np.uint8]  # one word after the other
    sizes: Ids  # bytes of each
    n_texts: int

    def __len__(self) -> int:
        return len(self.keys)

    def only(self, which: NDArray[np.intp]) -> WordCounts:
        """Some of them, in this order."""
        starts = np.cumsum(self.sizes, dtype=np.int64) - self.sizes
        sizes = self.sizes[which]
        letters = _slices(self.letters, starts[which], sizes)
        return WordCounts(self.keys[which], self.times[which], letters, sizes, self.n_texts)

    def sample(self, left_out: int) -> WordCounts:
        """One in 2**left_out: those whose bits, mixed, begin with zeros."""
        if not left_out:
            return self
        mixed = self.keys * np.uint64(0x9E3779B97F4A7C15)
        return self.only(np.flatnonzero(mixed >> np.uint64(64 - left_out) == 0))

    @property
    def spelled(self) -> tuple[str, ...]:
        """The words."""
        low, ends = self.letters.tobytes(), np.cumsum(self.sizes, dtype=np.int64)
        both = zip((ends - self.sizes).tolist(), ends.tolist(), strict=True)
        words = b"\n".join([low[i:j] for i, j in both]).decode("utf-8")
        return tuple(words.split("\n")) if len(self) else ()


@dataclass(frozen=True, eq=False)
class Reading(WordCounts):
    """One block as it was read: its distinct words, and its texts in their numbers."""

    words: Ids
    ends: NDArray[np.intp]


def read_block(texts: Sequence[str]) -> Reading:
    """The words of one block."""
    words = read_words(texts)
    where, number = factorise(words.keys)
    times = np.bincount(number, minlength=len(where))
    sizes = words.sizes[where].astype(np.int32)
    letters = _slices(np.frombuffer(words.low, np.uint8), words.starts[where], sizes)
    return Reading(words.keys[where], times, letters, sizes, len(texts), number, words.ends)


def _slices(letters: NDArray[np.uint8], starts: NDArray[np.signedinteger[Any]], sizes: Ids) -> NDArray[np.uint8]:
    """Slices of these sizes, one after the other."""
    begins = np.cumsum(sizes, dtype=np.int64) - sizes
    return letters[np.repeat(starts - begins, sizes) + np.arange(int(sizes.sum(dtype=np.int64)))]


def merge_words(parts: Iterable[WordCounts], allowance: Allowance = ANYTHING) -> WordCounts:
    """The distinct words of all parts, which may flow by.

    Of more than the memory holds, it goes on with a sample, one in 2**left_out, which says how many there are.
    """
    waiting: list[WordCounts] = []
    size, most, left_out, too_many = 0, _WAITING, 0, 0
    for part in parts:
        waiting.append(part.sample(left_out))
        size += len(waiting[-1])
        if size > most:
            merged = _merged_words(waiting)
            if not allowance.holds_words(len(merged)):
                too_many, left_out = max(too_many, len(merged)), left_out + 4
                merged = merged.sample(left_out)
            waiting, size = [merged], len(merged)
            # in proportion: where most words differ, a merge for every part would never end
            most = max(_WAITING, size + size // 2)
    merged = _merged_words(waiting)
    allowance.words(max(len(merged) << left_out, too_many))
    return merged


def _merged_words(parts: Sequence[WordCounts]) -> WordCounts:
    none = WordCounts(np.empty(0, np.uint64), np.empty(0, np.int64), np.empty(0, np.uint8), np.empty(0, np.int32), 0)
    parts = [none, *parts]
    found = WordCounts(
        np.concatenate([part.keys for part in parts]),
        np.concatenate([part.times for part in parts]),
        np.concatenate([part.letters for part in parts]),
        np.concatenate([part.sizes for part in parts]),
        sum(part.n_texts for part in parts),
    )
    where, number = factorise(found.keys)
    times = np.zeros(len(where), np.int64)
    np.add.at(times, number, found.times)
    return replace(found.only(where), times=times)


def most_frequent_first(found: WordCounts) -> WordCounts:
    """The words in the order of their numbers: as frequent ones by key; a mask is no word."""
    often = np.where(found.keys == MASK_KEY, 0, found.times)
    return found.only(np.lexsort((found.keys, -often))[: int(np.count_nonzero(often))])


def number_block(table: KeyTable, reading: Reading) -> Ids:
    """The number of each word of a block, -1 for a mask."""
    return table.find(reading.keys)[reading.words]


# N-grams --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Grams:
    """N-grams of so many words each, by their sorted keys, and the number of texts that hold each."""

    keys: Keys
    texts: Ids

    def __len__(self) -> int:
        return len(self.keys)

    def between(self, first: np.uint64, last: np.uint64) -> Grams:
        """Those with keys in a range: copies, so that what lies in a file is let go."""
        i, j = np.searchsorted(self.keys, np.array([first, last], np.uint64))
        return Grams(self.keys[i:j].copy(), self.texts[i:j].copy())


def ngrams_of(order: int, n_words: int, words: Ids, nodes: Ids, ends: NDArray[np.intp]) -> Grams:
    """Those of one block; `nodes` of one word less begin at each word."""
    if order == 1:
        first = np.flatnonzero(words >= 0)
        keys = words[first].astype(np.uint64)
    else:
        first, keys = next_keys(nodes, words, ends, order, n_words)
    keys <<= _ROW_BITS
    keys |= row_numbers(ends)[first]
    keys.sort()
    keys = keys[run_starts(keys)]  # each n-gram once in each text
    keys >>= _ROW_BITS
    heads = run_starts(keys)
    return Grams(keys[heads], np.diff(heads, append=len(keys)).astype(np.int32))


def _merged(run: Executor, blocks: list[Any], least: int) -> Any:
    """The n-grams of all blocks that are in at least so many texts: ranges of keys are merged side by side."""
    sample = np.sort(run.value(run.fold(_chained, run.map(_sampled, (), blocks))))
    n_ranges = max(run.width, len(sample) * _SAMPLED // _RANGE + 1)
    inner = sample[np.linspace(0, len(sample), n_ranges + 1)[1:-1].astype(np.intp)] if len(sample) else sample
    bounds = np.array([np.uint64(0), *inner, np.uint64(_END)], np.uint64)
    return run.call(_joined, run.exchange(Grams.between, merge_grams, blocks, bounds, least))


def _sampled(grams: Grams) -> Keys:
    return grams.keys[::_SAMPLED].copy()


def _chained(parts: Iterable[Keys]) -> Keys:
    return np.concatenate([np.empty(0, np.uint64), *parts])


def merge_grams(parts: Sequence[Grams], least: int) -> Grams:
    """What several hold together, without those in fewer texts."""
    keys = _chained(part.keys for part in parts)
    order = np.argsort(keys, kind="stable")
    keys, texts = keys[order], np.concatenate([np.empty(0, np.int32), *(part.texts for part in parts)])[order]
    heads = run_starts(keys)
    total = np.add.reduceat(texts, heads, dtype=np.int32) if len(heads) else texts
    often = total >= least
    return Grams(keys[heads[often]], total[often])


def _joined(ranges: Sequence[Grams]) -> Grams:
    """Of ranges in their order."""
    return Grams(np.concatenate([one.keys for one in ranges]), np.concatenate([one.texts for one in ranges]))


# Tokens ---------------------------------------------------------------------------------------------------------------


def choose(grams: Sequence[Grams], limits: Limits, n_texts: int) -> Ids:
    """The column of every node, -1 for those that are no token; and one more -1, at -1, for what is no node."""
    most = limits.max_df * n_texts * (1 + 1e-12)  # a share of exactly max_df is allowed, whatever the rounding
    chosen = [
        (own.texts >= limits.least(order)) & (own.texts <= most) & (order >= limits.ngrams[0])
        for order, own in enumerate(grams, start=1)
    ]
    everyone, frequency = np.concatenate(chosen), np.concatenate([own.texts for own in grams])
    if limits.max_tokens is not None and np.count_nonzero(everyone) > limits.max_tokens:
        least = np.partition(frequency[everyone], -limits.max_tokens)[-limits.max_tokens]
        ties = np.flatnonzero(everyone & (frequency == least))
        everyone &= frequency > least
        everyone[ties[: limits.max_tokens - np.count_nonzero(everyone)]] = True
    everyone = np.append(everyone, False)
    return np.where(everyone, np.cumsum(everyone, dtype=np.int32) - np.int32(1), np.int32(-1))


def count_block(column: Ids, ends: NDArray[np.intp], *nodes: Ids) -> Rows:
    """The counts of one block, from its nodes by order."""
    return rows_of((column[own] for own in nodes), ends)


def vocabulary_of(found: WordCounts, keys: Sequence[Keys], column: Ids) -> Vocabulary:
    """The vocabulary of these nodes, by order, without those that lead to no token; see `choose`."""
    column = column[:-1]
    starts = np.cumsum([0, *map(len, keys)]).tolist()
    levels = [Level(start, own) for start, own in zip(starts[1:], keys[1:], strict=False) if len(own)]
    vocabulary = Vocabulary(found.spelled, found.keys, tuple(levels), column)
    return vocabulary.trimmed() if (column < 0).any() else vocabulary
