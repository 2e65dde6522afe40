"""A frozen vocabulary: words and n-grams, each with a column, found by integer arithmetic.

An n-gram is a *node*: a word, or a shorter n-gram followed by a word. Nodes are numbered, words first; the key of a
longer node is `prefix * words + word`, so n-grams of any length are found level by level without making a string. A
node that is only on the way to a token has no column.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .hashing import Ids, Keys, KeyTable, factorise
from .words import Words, keys_of_slices


@dataclass(frozen=True, eq=False)
class Level:
    """The nodes of n words, for one n >= 2: node `start + i` is `keys[i]`, in increasing order of keys."""

    start: int
    keys: Keys

    @functools.cached_property
    def table(self) -> KeyTable:
        return KeyTable.build(self.keys, self.start)


def next_keys(
    nodes: Ids, words: Ids, ends: NDArray[np.intp], order: int, n_words: int
) -> tuple[NDArray[np.intp], Keys]:
    """Where nodes of `order` - 1 words go on with a known word of the same text, and the keys of what they become."""
    if len(words) < order:
        return np.empty(0, np.intp), np.empty(0, np.uint64)
    last = words[order - 1 :]
    whole = (nodes[: len(last)] >= 0) & (last >= 0)
    # a text that ends after word e - 1 cuts the n-grams that begin at e - order + 1 .. e - 1; after the last one
    # there are no words to go on with
    for back in range(1, order) if len(ends) > 1 else ():
        cut = ends - back
        whole[cut[(cut >= 0) & (cut < len(whole))]] = False
    first = whole.nonzero()[0]
    keys = nodes[first].astype(np.uint64)
    keys *= np.uint64(n_words)
    keys += last[first].astype(np.uint64)
    return first, keys


def next_nodes(order: int, n_words: int, table: KeyTable, words: Ids, nodes: Ids, ends: NDArray[np.intp]) -> Ids:
    """The known node of `order` words that begins at each word, -1 for none; `nodes` are those of one word less."""
    first, keys = next_keys(nodes, words, ends, order, n_words)
    found = np.full(len(words), -1, np.int32)
    found[first] = table.find(keys)
    return found


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Words in a fixed order, levels of longer nodes, and the column of each node (-1: not a token itself).

    After most trainings every node is a token, and its column is its number: that takes no array.
    """

    words: tuple[str, ...]
    word_keys: Keys
    levels: tuple[Level, ...]
    columns: Ids | None  # None: the numbers of the nodes

    def __post_init__(self) -> None:
        if self.columns is not None and np.array_equal(self.columns, np.arange(self._n_nodes, dtype=np.int32)):
            object.__setattr__(self, "columns", None)

    def __len__(self) -> int:
        return self._n_nodes if self.columns is None else self._n_tokens

    @functools.cached_property
    def _n_tokens(self) -> int:
        return int(np.count_nonzero(self.column >= 0))

    @property
    def _n_nodes(self) -> int:
        return len(self.words) + sum(len(level.keys) for level in self.levels)

    @property
    def column(self) -> Ids:
        """The column of each node."""
        return np.arange(self._n_nodes, dtype=np.int32) if self.columns is None else self.columns

    @property
    def order(self) -> int:
        """The longest n-gram, in words."""
        return 1 + len(self.levels)

    @functools.cached_property
    def _table(self) -> KeyTable:
        return KeyTable.build(self.word_keys)

    @functools.cached_property
    def _node_of_column(self) -> NDArray[np.intp]:
        column = self.column
        nodes = np.flatnonzero(column >= 0)
        return nodes[np.argsort(column[nodes], kind="stable")]

    @functools.cached_property
    def tokens(self) -> tuple[str, ...]:
        """The tokens by column; the words of an n-gram are separated by one space."""
        names: list[str] = list(self.words)
        for level in self.levels:
            prefix, word = np.divmod(level.keys, np.uint64(len(self.words)))
            names += [f"{names[p]} {self.words[w]}" for p, w in zip(prefix.tolist(), word.tolist(), strict=True)]
        return tuple(names if self.columns is None else [names[node] for node in self._node_of_column.tolist()])

    def names(self, columns: NDArray[np.int32]) -> list[str]:
        """The tokens of some columns, without making the others."""
        nodes = columns.copy() if self.columns is None else self._node_of_column[columns]
        ends = [""] * len(nodes)
        for level in reversed(self.levels):
            longer = np.flatnonzero(nodes >= level.start)
            prefix, last = np.divmod(level.keys[nodes[longer] - level.start], np.uint64(len(self.words)))
            nodes[longer] = prefix
            for i, word in zip(longer.tolist(), last.tolist(), strict=True):
                ends[i] = f" {self.words[word]}{ends[i]}"
        return [self.words[node] + end for node, end in zip(nodes.tolist(), ends, strict=True)]

    @functools.cached_property
    def sizes(self) -> NDArray[np.integer[Any]]:
        """How many words each token has, by column; in as few bytes as they need."""
        size = np.ones(self._n_nodes, np.min_scalar_type(self.order))
        for extra, level in enumerate(self.levels):
            size[level.start : level.start + len(level.keys)] = extra + 2
        return size if self.columns is None else size[self._node_of_column]

    @classmethod
    def from_tokens(cls, tokens: Sequence[str]) -> Vocabulary:
        """The vocabulary of these tokens, in this order of columns.

        >>> v = Vocabulary.from_tokens(["good", "not good"])
        >>> v.tokens, sorted(v.words)
        (('good', 'not good'), ['good', 'not'])
        """
        low = "\n".join(tokens).encode("utf-8")
        letters = np.frombuffer(low, np.uint8)
        breaks = np.flatnonzero((letters == ord(" ")) | (letters == ord("\n")))
        starts = np.concatenate([[0], breaks + 1]) if len(tokens) else np.empty(0, np.intp)
        stops = np.append(breaks, len(low)) if len(tokens) else starts
        keys = keys_of_slices(low, starts, stops - starts)
        where, word = factorise(keys)
        spelled = [low[i:j].decode("utf-8") for i, j in zip(starts[where].tolist(), stops[where].tolist(), strict=True)]
        # token t has the words number[first[t]], number[first[t] + 1], ...
        is_last = np.append(letters[breaks] == ord("\n"), True) if len(tokens) else np.empty(0, np.bool_)
        sizes = np.diff(np.flatnonzero(is_last), prepend=-1)
        first = np.cumsum(sizes) - sizes
        node = word[first]
        columns = [np.full(len(where), -1, np.int32)]
        columns[0][node[sizes == 1]] = np.flatnonzero(sizes == 1)
        levels: list[Level] = []
        start = len(where)
        for order in range(2, int(sizes.max(initial=1)) + 1):
            longer = np.flatnonzero(sizes >= order)
            ways = node[longer].astype(np.uint64) * np.uint64(len(where)) + word[first[longer] + order - 1].astype(
                np.uint64
            )
            level_keys, place = np.unique(ways, return_inverse=True)
            node[longer] = start + place
            levels.append(Level(start, level_keys))
            columns.append(np.full(len(level_keys), -1, np.int32))
            ending = sizes[longer] == order
            columns[-1][place[ending]] = longer[ending]
            start += len(level_keys)
        return cls(tuple(spelled), keys[where], tuple(levels), np.concatenate(columns))

    def trimmed(self) -> Vocabulary:
        """The same tokens in the same columns, without the nodes that lead to none."""
        old, words, levels = self.leading_to(self.column >= 0, lambda needed: np.flatnonzero(needed[: len(self.words)]))
        return Vocabulary(words, self.word_keys[old[: len(words)]], levels, self.column[old])

    def leading_to(
        self, is_token: NDArray[np.bool_], order: Callable[[NDArray[np.bool_]], NDArray[np.intp]]
    ) -> tuple[NDArray[np.intp], tuple[str, ...], tuple[Level, ...]]:
        """The nodes that are, or lead to, these tokens: the old number of each, and their words and levels.

        `order` gives the words among the needed nodes in their new order; longer nodes follow by their new keys.
        """
        n_words, needed = len(self.words), is_token.copy()
        for level in reversed(self.levels):
            prefix, last = np.divmod(level.keys[needed[level.start :][: len(level.keys)]].astype(np.int64), n_words)
            needed[prefix] = True
            needed[last] = True
        nodes = [order(needed)]
        number = np.full(len(needed), -1, np.int64)  # of each node that stays
        number[nodes[0]] = np.arange(len(nodes[0]))
        levels: list[Level] = []
        start = len(nodes[0])
        for level in self.levels:
            left = np.flatnonzero(needed[level.start : level.start + len(level.keys)])
            if not len(left):
                break
            prefix, last = np.divmod(level.keys[left].astype(np.int64), n_words)
            keys = number[prefix] * len(nodes[0]) + number[last]
            sort = np.argsort(keys, kind="stable")  # next to no work where the words keep their order
            nodes.append(level.start + left[sort])
            number[nodes[-1]] = start + np.arange(len(left))
            levels.append(Level(start, keys[sort].astype(np.uint64)))
            start += len(left)
        return np.concatenate(nodes), tuple(self.words[word] for word in nodes[0].tolist()), tuple(levels)

    def grid(self, words: Words) -> Ids:
        """(words, n) the column of the n-gram of 1, 2, ... words that begins at each word, -1 where none is known.

        Read row by row, the known n-grams stand in text order, shorter ones first. A mask is never known.
        """
        ids = nodes = self._table.find(words.keys)
        grid = np.empty((len(ids), self.order), np.int32)
        grid[:, 0] = self._columns_of(ids)
        for order, level in enumerate(self.levels, start=2):
            nodes = next_nodes(order, len(self.words), level.table, ids, nodes, words.ends)
            grid[:, order - 1] = self._columns_of(nodes)
        return grid

    def _columns_of(self, nodes: Ids) -> Ids:
        """The columns of nodes; -1 stays -1."""
        return nodes if self.columns is None else self._column_or_none[nodes]

    @functools.cached_property
    def _column_or_none(self) -> Ids:
        return np.append(self.column, np.int32(-1))
