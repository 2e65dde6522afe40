"""Texts in shards: the same vocabulary and the same rows as all of them together."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import sparse

from keytokens.text import Limits, Vocabulary, build, pieces, shards
from keytokens.text import ngrams as building
from keytokens.text.hashing import Ids
from keytokens.text.ngrams import Grams, merged, packed

from .reference import HOSTILE

texts_of_a_shard = st.lists(
    st.lists(st.sampled_from([*HOSTILE, "a", "b", "c d"]), max_size=6).map(" ".join), max_size=5
)
limits_of_a_fit = st.builds(
    Limits,
    st.sampled_from([(1, 1), (1, 2), (1, 3), (2, 4)]),
    st.sampled_from([(1,), (1, 2), (2, 1, 2)]),
    st.sampled_from([1.0, 0.5]),
    st.sampled_from([None, 3]),
)


def built(parts: list[list[str]], limits: Limits, n_ranges: int) -> tuple[Vocabulary, list[shards.Entered], Ids]:
    """As a cluster does it, each step of each shard by itself: the vocabulary, the shards, the column of every node."""
    readings = [shards.read_shard(part) for part in parts]
    words = shards.merge_words([shards.words_of(reading) for reading in readings])
    numbering = shards.number_words(words)
    now = [shards.begin(reading, numbering) for reading in readings]
    grams = []
    for order in limits.orders:
        ends = shards.bounds(now[0], n_ranges)
        cuts = [shards.cut(own, ends) for own in (now[:2], now[2:]) if own]  # two shards lie together
        ranges = [shards.merge_ranges(own, limits.least_to_keep(order)) for own in zip(*cuts, strict=True)]
        grams.append(shards.join_ranges(ranges))
        for shard in now:  # a step may be made twice
            shards.advance(shard, grams[-1], limits)
        level = shards.level_of(grams) if limits.looks_up(order) else None  # one for all shards
        now = [shards.advance(shard, grams[-1], limits, level) for shard in now]
    column = shards.columns(grams, limits, words.n_texts)
    found = shards.vocabulary(words, [one.keys for one in grams], column)
    return found, [shards.entered(shard) for shard in now], column


def equal(one: sparse.csr_matrix, other: sparse.csr_matrix) -> None:
    assert one.shape == other.shape
    assert one.dtype == other.dtype == np.float32
    for name in ("indptr", "indices", "data"):
        assert getattr(one, name).tolist() == getattr(other, name).tolist()


@given(st.lists(texts_of_a_shard, min_size=1, max_size=5), limits_of_a_fit, st.integers(1, 4))
@example([[], ["a b a", "b a"]], Limits(), 2)
@example([[]], Limits(), 3)
def test_shards_give_what_all_texts_give(parts, limits, n_ranges):
    vocabulary, texts, column = built(parts, limits, n_ranges)
    whole, expected = build([text for part in parts for text in part], limits)
    assert vocabulary.tokens == whole.tokens
    assert vocabulary.words == whole.words
    rows = [shards.by_text(one, column, lambda counts: counts) for one in texts]
    equal(sparse.vstack(rows, "csr"), expected)
    sizes = [shards.row_sizes(one, column) for one in texts]
    assert np.concatenate(sizes).tolist() == np.diff(expected.indptr).tolist()


@given(st.lists(texts_of_a_shard, min_size=1, max_size=5), limits_of_a_fit, st.lists(st.integers(0, 25), max_size=4))
@example([["a b", "a b a"], [], ["b a", "a b", "c"]], Limits(), [1, 4])
def test_blocks_of_texts_from_several_shards(parts, limits, cuts):
    """Whatever pieces and shards a block begins and ends in, text by text and token by token."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "_CHARACTERS", 8)
        _, texts, column = built(parts, limits, 2)
    n_texts = sum(map(len, parts))
    _, expected = build([text for part in parts for text in part], limits)
    starts = np.cumsum([0, *map(len, parts)]).tolist()
    for first, last in pairwise(sorted({0, n_texts, *(cut for cut in cuts if cut < n_texts)})):
        own = [
            (one, max(first, begin) - begin, min(last, end) - begin)
            for one, (begin, end) in zip(texts, pairwise(starts), strict=True)
            if max(first, begin) < min(last, end)
        ]
        some = shards.some_texts(own)
        equal(shards.by_text(some, column, np.square), expected[first:last].multiply(expected[first:last]).tocsr())
        bounds = sorted({0, (last - first) // 2, last - first})
        (slices,) = shards.by_token(some, column, lambda _, own=bounds: [own], np.square)
        equal(sparse.hstack(slices, "csr"), expected[first:last].multiply(expected[first:last]).T.tocsr())


@pytest.mark.parametrize("times", [1, 2**14 - 1, 2**14, 2**14 + 1, 2**14 * 3, 100_000])
def test_packed_numbers_of_texts_add_up(times):
    """A key in more texts than fourteen bits hold stands there repeatedly."""
    found = Grams(np.array([3, 7, 2**49], np.uint64), np.array([times, 1, 5], np.int32))
    twice = merged([packed(found), packed(found)], 3)
    often = 2 * found.texts >= 3
    assert twice.keys.tolist() == found.keys[often].tolist()
    assert twice.texts.tolist() == (2 * found.texts)[often].tolist()


@pytest.mark.parametrize("size", [1, 3, 50])
@given(st.lists(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 2**15)), max_size=30), min_size=1, max_size=4))
def test_ranges_of_keys_are_merged_as_all_at_once(size, lists):
    """Whatever the size of a range: a key is never cut in two."""
    found = [dict(one) for one in lists]
    expected: dict[int, int] = {}
    for one in found:
        for key, texts in one.items():
            expected[key] = expected.get(key, 0) + texts
    parts = [
        packed(Grams(np.array(sorted(one), np.uint64), np.array([one[key] for key in sorted(one)], np.int32)))
        for one in found
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(building, "_RANGE", size)
        both = merged(parts, 5)
    assert dict(zip(both.keys.tolist(), both.texts.tolist(), strict=True)) == {
        key: texts for key, texts in sorted(expected.items()) if texts >= 5
    }
    assert (np.diff(both.keys.astype(np.int64)) > 0).all()
