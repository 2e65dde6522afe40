"""Where results wait, in memory or in a file: they come back as they went."""

import os
import sys
from contextlib import suppress
from dataclasses import dataclass, make_dataclass
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from keytokens.text.spill import Spill, Threads, loaded


@dataclass(frozen=True)
class Numbers:
    numbers: NDArray[np.int64]
    name: str


def item(at: int) -> Numbers:
    return Numbers(np.full(at % 3 * 700, at), f"item {at}")


def plain(found: Any) -> tuple[list[int], str]:
    one = loaded(found)
    return one.numbers.tolist(), one.name


@pytest.mark.parametrize("threads", [1, 2, 4, 8])
@pytest.mark.parametrize("kind", ["memory", "file"])
def test_nothing_is_lost(tmp_path, threads, kind):
    """Threads that take turns at every byte code write and read at the same time."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(300 if kind == "memory" else 60):
            run = Threads(threads, tmp_path if kind == "file" else None)
            found = run.map(item, (), range(20))
            again = run.map(lambda more, one: Numbers(one.numbers + more, one.name), (7,), found)
            assert [sum(plain(one)[0]) for one in again] == [
                sum(plain(one)[0]) + 7 * len(plain(one)[0]) for one in found
            ]
            assert list(map(plain, found)) == list(map(plain, map(item, range(20))))
            assert run.fold(lambda items: sum(len(one.numbers) for one in items), found) == 20 // 3 * 2100 + 700
    finally:
        sys.setswitchinterval(before)


def test_several_lists_go_together(tmp_path):
    for folder in (None, tmp_path):
        run = Threads(2, folder)
        both = run.map(add, (), run.map(np.arange, (), [3, 0, 2]), run.map(np.ones, (), [3, 0, 2]))
        assert [loaded(one).tolist() for one in both] == [[1, 2, 3], [], [1, 2]]
    with pytest.raises(ValueError, match="shorter"):
        Threads().map(add, (), [1, 2], [1])


def test_ranges_are_cut_from_every_item(tmp_path):
    for folder in (None, tmp_path):
        run = Threads(2, folder)
        items = run.map(np.arange, (), [4, 6])
        found = run.exchange(
            lambda one, i, j: one[i:j].copy(), lambda parts, least: [least, *parts], items, [0, 2, 5], 9
        )
        assert [[least, *(part.tolist() for part in parts)] for least, *parts in found] == [
            [9, [0, 1], [0, 1]],
            [9, [2, 3], [2, 3, 4]],
        ]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows the open files of a process in a folder")
def test_a_file_goes_with_the_last_that_is_wanted_of_it(tmp_path):
    def is_open() -> bool:
        found = []
        for file in Path("/proc/self/fd").iterdir():
            with suppress(FileNotFoundError):  # others come and go
                found.append(os.readlink(file))
        return any(name.startswith(os.fspath(tmp_path)) for name in found)

    one = Spill(tmp_path).put(np.arange(5))
    assert not list(tmp_path.iterdir())
    array = one.get()
    assert is_open()
    del one
    assert array.tolist() == [0, 1, 2, 3, 4]
    del array
    assert not is_open()


def test_what_lies_in_a_file_is_not_changed(tmp_path):
    array = Spill(tmp_path).put(np.arange(5)).get()
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1


@pytest.mark.parametrize("sizes", [(0,), (0, 0), (3, 0), (0, 5000), (64, 0, 1, 0), (4096, 0)])
def test_arrays_of_every_size_come_back(tmp_path, sizes):
    """Also where the last of all bytes are those of an empty array."""
    kind = make_dataclass("Some", [f"array_{k}" for k in range(len(sizes))])
    arrays = [np.arange(size, dtype=np.uint8) for size in sizes]
    spill = Spill(tmp_path)
    for kept in [spill.put(kind(*arrays)) for _ in range(2)]:
        found = list(vars(kept.get()).values())
        assert [one.tolist() for one in found] == [one.tolist() for one in arrays]
        assert all(one.ctypes.data % 8 == 0 for one in found if len(one))
