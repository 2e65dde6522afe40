"""A vocabulary from training texts, and their counts.

Texts are read in pieces, which are independent and run in threads. What is merged afterwards is a sum of integers or a
sorted set, so the answer depends neither on the pieces nor on the threads. Between the stages the arrays of the pieces
wait on shelves: in memory, or in files, and then the memory holds only the vocabulary and a few pieces.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..base.memory import give_back_memory
from ..base.threads import ordered_map
from .allowance import ANYTHING, Allowance
from .assembly import AnyRoom, Cut, Entries, MemoryRoom, Weigh, assemble, assemble_by_token
from .hashing import Ids, Keys
from .matrix import row_numbers, run_starts
from .numbering import Piece, number_texts
from .pieces import ROW_BITS, made, slices
from .sorting import in_order
from .spill import MemoryShelf, Shelf, ShelfMaker
from .vocabulary import Level, Vocabulary, next_keys

# a sort key: the key of an n-gram, then a row within its piece
_ROW_BITS, _ROW, _KEY_BITS = np.uint64(ROW_BITS), np.uint64((1 << ROW_BITS) - 1), np.uint64(64 - ROW_BITS)
_RANGE = 1 << 18  # keys that are merged at a time, by each thread


@dataclass(frozen=True)
class Limits:
    """Which n-grams become tokens."""

    ngrams: tuple[int, int] = (1, 2)
    min_df: tuple[int, ...] = (1, 2, 3)  # least number of texts, for n = 1, 2, ...; the last entry goes on for ever
    max_df: float = 1.0  # largest share of the texts
    max_tokens: int | None = None

    def least(self, order: int) -> int:
        return self.min_df[min(order, len(self.min_df)) - 1]

    def least_on_the_way(self, order: int) -> int:
        """A node of `order` words in fewer texts leads nowhere: an n-gram is no more frequent than its parts."""
        last = min(self.ngrams[1], len(self.min_df))  # longer ones have the last limit
        return min(self.least(longer) for longer in range(order, max(order, last) + 1))

    @property
    def orders(self) -> range:
        return range(1, self.ngrams[1] + 1)

    def looks_up(self, order: int) -> bool:
        """Whether nodes of so many words must be found in the texts: longer ones begin with them, and are no words."""
        return 1 < order < self.ngrams[1]

    def least_to_keep(self, order: int) -> int:
        """The least number of texts of a node: every word is one, longer ones only where they lead to a token."""
        return self.least_on_the_way(order) if order > 1 else 1


@dataclass(frozen=True, eq=False)
class _Tally:
    """The n-grams of one piece, for one n: sorted keys, the number of rows that hold each, and these rows in turn."""

    keys: Keys
    frequency: NDArray[np.unsignedinteger[Any]]
    rows: NDArray[np.uint16]
    counts: NDArray[np.unsignedinteger[Any]]

    def entries(self, keys: Keys, first: int) -> Entries:
        """What is left if only these keys, sorted, are kept; key i is node `first + i`."""
        if not len(keys) or not len(self.keys):
            return Entries(np.empty(0, np.int32), np.empty(0, np.uint8), np.empty(0, np.uint16), np.empty(0, np.uint8))
        if self.keys[-1] <= keys[-1] == len(keys) - 1:  # all numbers up to the last: every word is kept
            nodes = self.keys.astype(np.int32) + np.int32(first)
            return Entries(nodes, self.frequency, self.rows, self.counts)
        place = np.minimum(np.searchsorted(keys, self.keys), len(keys) - 1)
        kept = keys[place] == self.keys
        nodes = place.astype(np.int32) + np.int32(first)
        return Entries(nodes, self.frequency, self.rows, self.counts).only(kept)


@dataclass(frozen=True, eq=False)
class _Nodes:
    """The node that begins at each word of a piece, -1 for none."""

    ids: Ids


@dataclass(frozen=True, eq=False)
class Grams:
    """The nodes of n words of all texts, for one n: sorted keys, and the number of texts that hold each."""

    keys: Keys
    texts: Ids


@dataclass(frozen=True, eq=False)
class Shard:
    """Some texts on their way to counts: n-grams of `order` words are tallied, shorter ones are entries already."""

    n_words: int
    order: int
    start: int  # nodes of fewer words
    texts: Shelf[Piece]
    nodes: Shelf[_Nodes] | None  # of `order` - 1 words; None: the words themselves
    tallies: Shelf[_Tally]
    entries: tuple[Shelf[Entries], ...]
    sizes: list[int]  # texts of each piece


def build(
    texts: Sequence[str],
    limits: Limits,
    threads: int = 1,
    weigh: Weigh = lambda counts: counts,
) -> tuple[Vocabulary, sparse.csr_matrix]:
    """The vocabulary that these texts give within the limits, and their counts (float32), weighed.

    >>> vocabulary, counts = build(["a b a", "b a"], Limits())
    >>> vocabulary.tokens, counts.toarray().tolist()
    (('a', 'b', 'b a'), [[2.0, 1.0, 1.0], [1.0, 1.0, 1.0]])
    """
    found = find(texts, limits, threads)
    return found.vocabulary, found.by_text(threads, weigh)


def build_from(
    pieces: Iterable[Sequence[str]],
    limits: Limits,
    threads: int = 1,
    shelves: ShelfMaker = MemoryShelf,
    room: Callable[[int, Any], AnyRoom] = MemoryRoom,  # type: ignore[assignment]
    weigh: Weigh = lambda counts: counts,
    allowance: Allowance = ANYTHING,
) -> tuple[Vocabulary, sparse.csr_matrix, tuple[AnyRoom, AnyRoom]]:
    """The same from pieces that flow by, with the rooms in which the indices and the weighed counts lie."""
    found = _found(pieces, limits, threads, shelves, allowance)
    counts, rooms = assemble(found.shard.entries, found.shard.sizes, found.column, threads, room, weigh)
    give_back_memory()
    return found.vocabulary, counts, rooms


def find(texts: Sequence[str], limits: Limits, threads: int = 1) -> Found:
    """The first half of `build`: the vocabulary, before the texts are counted in one way or another."""
    return _found((texts[piece] for piece in slices(texts)), limits, threads)


@dataclass(frozen=True, eq=False)
class Found:
    """All texts, their tokens chosen; they can be counted once."""

    words: tuple[str, ...]
    word_keys: Keys
    node_keys: list[Keys]  # by order
    column: Ids  # of every node
    shard: Shard

    @property
    def n_tokens(self) -> int:
        return int(np.count_nonzero(self.column >= 0))

    @functools.cached_property
    def vocabulary(self) -> Vocabulary:
        return vocabulary_of(self.words, self.word_keys, self.node_keys, self.column)

    def by_text(self, threads: int, weigh: Weigh) -> sparse.csr_matrix:
        """(texts, tokens), weighed."""
        counts, _ = assemble(self.shard.entries, self.shard.sizes, self.column, threads, MemoryRoom, weigh)
        give_back_memory()
        return counts

    def by_token(self, cut: Cut, threads: int, weigh: Weigh) -> list[list[sparse.csr_matrix]]:
        """(tokens, texts) for each slice of consecutive texts, in groups, weighed.

        `cut` says for each group where its slices begin and where the last one ends, given the number of entries before
        each text and that of all.

        >>> [[first, second]] = find(["a b a", "b a"], Limits()).by_token(lambda before: [[0, 1, 2]], 1, np.square)
        >>> first.toarray().tolist(), second.toarray().tolist()
        ([[4.0], [1.0], [1.0]], [[1.0], [1.0], [1.0]])
        """
        counts = assemble_by_token(self.shard.entries, self.shard.sizes, self.column, cut, threads, weigh)
        give_back_memory()
        return counts


def _found(
    pieces: Iterable[Sequence[str]],
    limits: Limits,
    threads: int,
    shelves: ShelfMaker = MemoryShelf,
    allowance: Allowance = ANYTHING,
) -> Found:
    words, word_keys, texts = number_texts(pieces, threads, shelves, allowance)
    give_back_memory()
    shard = first_tallies(texts, len(words), threads, shelves)
    grams: list[Grams] = []  # by order
    for order in limits.orders:
        tell = functools.partial(allowance.grams, longer=limits.orders[-1] - order)
        grams.append(_merge(shard.tallies, limits.least_to_keep(order), threads, tell))
        shard = next_tallies(shard, grams[-1], limits, threads, shelves)
        if not len(grams[-1].keys):  # nothing longer either
            shard.tallies.close()
            break
    shard.texts.close()
    if shard.nodes is not None:
        shard.nodes.close()
    frequencies, n_texts = [one.texts for one in grams], sum(shard.sizes)
    column = choose(frequencies, limits, n_texts)
    n_tokens = int(np.count_nonzero(column >= 0))
    kept = allowance.keep(n_tokens)
    if kept < n_tokens:
        column = choose(frequencies, replace(limits, max_tokens=kept), n_texts)
    return Found(words, word_keys, [one.keys for one in grams], column, shard)


def vocabulary_of(words: tuple[str, ...], word_keys: Keys, node_keys: list[Keys], column: Ids) -> Vocabulary:
    """The vocabulary of these nodes, by order, without those that lead to no token."""
    starts = np.cumsum([0, *map(len, node_keys)])
    levels = tuple(Level(int(at), keys) for at, keys in zip(starts[1:], node_keys[1:], strict=False))
    vocabulary = Vocabulary(words, word_keys, levels, column)
    return vocabulary.trimmed() if (column < 0).any() else vocabulary


def _replaced(old: Shelf[_Nodes] | None, new: Shelf[_Nodes] | None) -> Shelf[_Nodes] | None:
    if old is not None:
        old.close()
    return new


def first_tallies(texts: Shelf[Piece], n_words: int, threads: int, shelves: ShelfMaker) -> Shard:
    """The words, tallied."""
    sizes = [texts.size(at, "ends") for at in range(len(texts))]
    tallies = made(shelves, _Tally, len(texts), threads, _tally_of(texts, None, 1, n_words, last=False))
    return Shard(n_words, 1, 0, texts, None, tallies, (), sizes)


def next_tallies(
    shard: Shard, found: Grams, limits: Limits, threads: int, shelves: ShelfMaker, level: Level | None = None
) -> Shard:
    """The n-grams that were found become entries, and those of one word more are tallied, if they are asked for.

    `level` is their level, where it has been made for several shards.
    """
    texts, nodes, order, n_words = shard.texts, shard.nodes, shard.order, shard.n_words
    if order == 1:  # every word is a node, but those too rare for any n-gram go no further
        texts = _blanked(texts, found.texts >= limits.least_on_the_way(2), shelves, threads)
    entries = made(shelves, Entries, len(texts), threads, _entries_of(shard.tallies, found.keys, shard.start))
    shard.tallies.close()
    give_back_memory()
    if limits.looks_up(order):
        find = _nodes_of(texts, nodes, level or Level(shard.start, found.keys), order, n_words)
        nodes = _replaced(nodes, made(shelves, _Nodes, len(texts), threads, find))
        del find  # and a table with it
    more = len(texts) if order < limits.ngrams[1] else 0
    last = order + 1 == limits.ngrams[1]
    tallies = made(shelves, _Tally, more, threads, _tally_of(texts, nodes, order + 1, n_words, last))
    start = shard.start + len(found.keys)
    return Shard(n_words, order + 1, start, texts, nodes, tallies, (*shard.entries, entries), shard.sizes)


def _tallied(piece: Piece, first: NDArray[np.intp], keys: Keys, n_words: int) -> _Tally:
    pairs = _in_order(keys, row_numbers(piece.ends)[first], n_words)
    begins = run_starts(pairs)
    counts = np.diff(begins, append=len(pairs))
    counts = counts.astype(np.min_scalar_type(counts.max(initial=0)))  # nearly always one byte
    pairs = pairs[begins]
    keys = pairs >> _ROW_BITS
    heads = run_starts(keys)
    frequency = np.diff(heads, append=len(keys))
    frequency = frequency.astype(np.min_scalar_type(frequency.max(initial=0)))
    return _Tally(keys[heads], frequency, (pairs & _ROW).astype(np.uint16), counts)


def _in_order(keys: Keys, rows: Keys, n_words: int) -> Keys:
    """Keys, each with a row, packed and sorted; `rows` never fall."""
    n_before = int(keys.max(initial=0)) // max(n_words, 1) + 1
    if n_before == 1:  # single words
        n_before, n_words = n_words, 1
    base = np.uint64(n_words)
    before = keys // base
    last = keys - before * base
    return in_order((keys << _ROW_BITS) | rows, before.astype(np.int32), last.astype(np.int32), n_before, n_words)


def _tally_of(
    texts: Shelf[Piece], nodes: Shelf[_Nodes] | None, order: int, n_words: int, last: bool
) -> Callable[[int], _Tally]:
    """The tally of each piece; after the last one its text and its nodes are not needed any more."""

    def tally(at: int) -> _Tally:
        piece = texts.get(at)
        if order == 1:
            first = np.flatnonzero(piece.words >= 0)
            return _tallied(piece, first, piece.words[first].astype(np.uint64), n_words)
        ids = piece.words if nodes is None else nodes.get(at).ids
        if last:
            texts.drop(at)
            if nodes is not None:
                nodes.drop(at)
        return _tallied(piece, *next_keys(ids, piece.words, piece.ends, order, n_words), n_words)

    return tally


def _nodes_of(
    texts: Shelf[Piece], nodes: Shelf[_Nodes] | None, level: Level, order: int, n_words: int
) -> Callable[[int], _Nodes]:
    """The node of `order` words, two or more, that begins at each word, -1 for none."""

    def find(at: int) -> _Nodes:
        piece = texts.get(at)
        ids = piece.words if nodes is None else nodes.get(at).ids
        first, keys = next_keys(ids, piece.words, piece.ends, order, n_words)
        found = np.full(len(piece.words), -1, np.int32)
        found[first] = level.table.find(keys)
        return _Nodes(found)

    return find


def _entries_of(tallies: Shelf[_Tally], keys: Keys, first: int) -> Callable[[int], Entries]:
    """The entries of these keys, piece by piece; a tally is let go as soon as it has been read."""

    def entries(at: int) -> Entries:
        kept = tallies.get(at).entries(keys, first)
        tallies.drop(at)
        return kept

    return entries


def _blanked(texts: Shelf[Piece], usable: NDArray[np.bool_], shelves: ShelfMaker, threads: int) -> Shelf[Piece]:
    """The same texts without the words that can be in no n-gram."""

    def blank(at: int) -> Piece:
        piece = texts.get(at)
        texts.drop(at)
        words = piece.words
        kept = np.where(usable[words] & (words >= 0), words, np.int32(-1)) if len(usable) else words
        return Piece(kept, piece.ends)

    blanked: Shelf[Piece] = made(shelves, Piece, len(texts), threads, blank)
    texts.close()
    return blanked


def _merge(tallies: Shelf[_Tally], least: int, threads: int, tell: Callable[[int], None]) -> Grams:
    """All keys in at least so many texts. Ranges of keys are merged side by side."""
    total = sum(tallies.size(at, "keys") for at in range(len(tallies)))
    bounds = bounds_of_ranges(tallies, max(8, total // _RANGE + 1))
    ranges = merged_ranges(tallies, bounds, least, threads)
    tell(sum(len(one.keys) for one in ranges))
    return joined(ranges)


def bounds_of_ranges(tallies: Shelf[_Tally], n_ranges: int) -> Keys:
    """Bounds between which these tallies hold about the same number of keys."""
    sizes = [tallies.size(at, "keys") for at in range(len(tallies))]
    largest = int(np.argmax(sizes)) if sizes else 0
    sample = tallies.part(largest, "keys", 0, sizes[largest]) if sum(sizes) else np.zeros(1, np.uint64)
    inner = sample[np.linspace(0, len(sample), n_ranges + 1)[1:-1].astype(np.intp)]
    return np.array([np.uint64(0), *inner, np.uint64(1) << _KEY_BITS], np.uint64)


def joined(ranges: Sequence[Grams]) -> Grams:
    """Of ranges in their order."""
    return Grams(np.concatenate([one.keys for one in ranges]), np.concatenate([one.texts for one in ranges]))


def merged_ranges(tallies: Shelf[_Tally], bounds: Keys, least: int, threads: int) -> list[Grams]:
    """For each range of keys those in at least so many texts."""
    sizes = [tallies.size(at, "keys") for at in range(len(tallies))]
    # where each range begins in each tally
    cuts = ordered_map(
        lambda at: np.searchsorted(tallies.part(at, "keys", 0, sizes[at]), bounds), range(len(sizes)), threads
    )

    def merge(number: int) -> Grams:
        packed = []
        for at, cut in enumerate(cuts):
            i, j = int(cut[number]), int(cut[number + 1])
            texts = tallies.part(at, "frequency", i, j).astype(np.uint64) - np.uint64(1)
            packed.append((tallies.part(at, "keys", i, j) << _ROW_BITS) | texts)
        return merged(packed, least)

    return ordered_map(merge, range(len(bounds) - 1), threads)


def packed(found: Grams) -> Keys:
    """A key and its number of texts, less one, in one integer; beyond 2**14 texts the key stands there repeatedly."""
    full, rest = np.divmod(found.texts.astype(np.uint64) - np.uint64(1), _ROW + np.uint64(1))
    high = found.keys << _ROW_BITS
    many = np.flatnonzero(full)
    together = np.concatenate([high | rest, np.repeat(high[many] | _ROW, full[many].astype(np.intp))])
    if len(many):
        together.sort(kind="stable")
    return together


def merged(packed: Sequence[Keys], least: int) -> Grams:
    """What several such arrays, each sorted, hold together, without the keys in fewer texts.

    Large ones are merged a range at a time, which takes the same memory again and again.
    """
    total = sum(map(len, packed))
    if total <= 2 * _RANGE:
        return _merged(np.concatenate([np.empty(0, np.uint64), *packed]), least)
    largest = max(packed, key=len)
    inner = largest[np.linspace(0, len(largest), total // _RANGE + 1)[1:-1].astype(np.intp)] & ~_ROW
    cuts = [[0, *np.searchsorted(part, inner).tolist(), len(part)] for part in packed]
    ranges = zip(*(pairwise(cut) for cut in cuts), strict=True)
    parts = ([part[i:j] for part, (i, j) in zip(packed, ends, strict=True)] for ends in ranges)
    return joined([_merged(np.concatenate(some), least) for some in parts])


def _merged(both: Keys, least: int) -> Grams:
    both.sort(kind="stable")  # which finds the sorted arrays and merges them: a fifth of the time
    keys, texts = both >> _ROW_BITS, (both & _ROW).astype(np.int32) + np.int32(1)
    heads = run_starts(keys)
    if not len(heads):
        return Grams(keys, texts)
    total = np.add.reduceat(texts, heads, dtype=np.int32)
    often = total >= least
    return Grams(keys[heads[often]], total[often])


def choose(frequencies: list[Ids], limits: Limits, n_texts: int) -> Ids:
    """The column of every node; -1 for those that are no token."""
    most = limits.max_df * n_texts * (1 + 1e-12)  # a share of exactly max_df is allowed, whatever the rounding
    chosen = [
        (frequency >= limits.least(order)) & (frequency <= most) & (order >= limits.ngrams[0])
        for order, frequency in enumerate(frequencies, start=1)
    ]
    everyone, all_frequencies = np.concatenate(chosen), np.concatenate(frequencies)
    if limits.max_tokens is not None and np.count_nonzero(everyone) > limits.max_tokens:
        least = np.partition(all_frequencies[everyone], -limits.max_tokens)[-limits.max_tokens]
        ties = np.flatnonzero(everyone & (all_frequencies == least))
        everyone &= all_frequencies > least
        everyone[ties[: limits.max_tokens - np.count_nonzero(everyone)]] = True
    return np.where(everyone, np.cumsum(everyone, dtype=np.int32) - np.int32(1), np.int32(-1))
