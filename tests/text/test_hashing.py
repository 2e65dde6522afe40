"""Numbering and looking up keys, against sorting."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keytokens.text import hashing as tables
from keytokens.text.hashing import KeyTable, factorise

u64 = st.integers(0, 2**64 - 1)
few = st.sampled_from([0, 1, 2, 2**63, 2**64 - 1, 0xFF])


def array(keys: list[int]) -> np.ndarray:
    return np.array(keys, np.uint64)


def crowded(bits: int, size: int) -> np.ndarray:
    """Distinct keys that all begin at slot 3 or at the last slot of a table of this size, where chains wrap."""
    keys = np.random.default_rng(0).integers(0, 2**64, size << (bits + 1), np.uint64)
    slots = tables._slots(keys, bits, 0)
    chosen = np.unique(keys[(slots == (1 << bits) - 1) | (slots == 3)])[:size]
    assert len(chosen) == size
    return chosen


def check_numbering(keys: np.ndarray) -> None:
    where, number = factorise(keys)
    values, inverse = np.unique(keys, return_inverse=True)
    assert len(where) == len(values)
    assert np.array_equal(np.sort(keys[where]), values)
    assert np.array_equal(keys[where][number], keys)
    assert len(np.unique(number)) == len(values)
    assert np.array_equal(np.unique(number * (len(keys) + 1) + inverse).shape, values.shape)  # one to one
    assert (np.diff(where) > 0).all()


@given(st.lists(st.one_of(u64, few), max_size=60))
def test_factorise_is_unique(keys):
    check_numbering(array(keys))


def test_factorise_many_keys():
    rng = np.random.default_rng(1)
    check_numbering(rng.integers(0, 30_000, 100_000).astype(np.uint64))
    check_numbering(rng.integers(0, 30_000, 100_000).astype(np.uint64) << np.uint64(44))
    check_numbering(rng.integers(0, 2**64, 50_000, np.uint64))


def test_factorise_keys_that_share_a_slot():
    keys = crowded(8, 100)
    check_numbering(np.concatenate([keys, keys[::-1]]))


@given(
    st.lists(st.one_of(u64, few), unique=True, max_size=40),
    st.lists(st.one_of(u64, few), max_size=40),
    st.sampled_from([0, 7]),
)
def test_table_finds_its_keys_and_no_other(known, asked, start):
    table = KeyTable.build(array(known), start)
    expected = {key: number for number, key in enumerate(known, start)}
    everything = [*known, *asked]
    assert table.find(array(everything)).tolist() == [expected.get(key, -1) for key in everything]


@pytest.mark.parametrize("known", [1, 3, 16, 40])
def test_table_with_keys_that_share_a_slot(known):
    """Chains that run into each other and round the end of the table."""
    bits = max(4, (4 * known).bit_length())
    keys = crowded(bits, 3 * known)
    table = KeyTable.build(keys[:known])
    assert table.bits == bits
    assert table.find(keys).tolist() == [*range(known), *[-1] * (2 * known)]


def test_zero_is_a_key_like_any_other():
    """An empty slot is compared with the last key."""
    assert KeyTable.build(array([5])).find(array([0, 5])).tolist() == [-1, 0]
    assert KeyTable.build(array([0]), 3).find(array([0, 5])).tolist() == [3, -1]
    assert KeyTable.build(array([5, 0])).find(array([0, 5, 7])).tolist() == [1, 0, -1]


def test_an_empty_table_finds_nothing():
    table = KeyTable.build(array([]), 4)
    assert table.find(array([0, 1, 2**64 - 1])).tolist() == [-1, -1, -1]
