"""Counting gives the order that sorting gives."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from keytokens.text import sorting
from keytokens.text.sorting import in_order


@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 60), st.integers(0, 2**32 - 1), st.booleans())
def test_as_sorted(n_high, n_low, n_keys, seed, many):
    rng = np.random.default_rng(seed)
    high, low = (rng.integers(0, n, n_keys).astype(np.int32) for n in (n_high, n_low))
    rows = np.sort(rng.integers(0, 100, n_keys)).astype(np.uint64)  # which never fall, as the texts of a piece
    keys = ((high.astype(np.uint64) * np.uint64(n_low) + low.astype(np.uint64)) << np.uint64(40)) | rows
    before = keys.copy()
    found = in_order(keys, high, low, 10**6 if many else n_high, n_low)  # with as many numbers they are sorted
    assert found.dtype == np.uint64
    assert found.tolist() == sorted(before.tolist())
    assert (keys == before).all()


def test_enough_keys_are_counted(monkeypatch):
    """So that the test above does not sort throughout."""
    monkeypatch.setattr(sorting.np, "sort", None)
    keys, high = np.array([5, 3], np.uint64), np.array([1, 0], np.int32)
    assert in_order(keys, high, np.zeros(2, np.int32), 8, 1).tolist() == [3, 5]
