"""Arrays that pass between processes without a message: whole, or a clear refusal."""

from __future__ import annotations

import errno
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from .conftest import skip_or_fail

try:
    from keytokens.dask.sharing import GoneError, Lent, Shared, can_share
except ImportError:
    skip_or_fail("the extra `dask` is not installed")

if not hasattr(os, "memfd_create"):
    pytest.skip("this system has no files that are only in memory", allow_module_level=True)


def seen(lent: Lent) -> Shared:
    found = pickle.loads(pickle.dumps(lent))
    assert isinstance(found, Shared)
    return found


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(0,), (1,), (100_000,), (3, 7), (2, 500_000), (5, 0)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_what_is_lent_can_be_read(shape, order, dtype):
    array = np.asarray(np.random.default_rng(0).normal(size=shape) * 100, dtype, order)
    lent = Lent(array)
    found = seen(lent).read()
    assert (found.dtype, found.shape, found.flags.c_contiguous) == (dtype, shape, array.flags.c_contiguous)
    assert found.tobytes("A") == array.tobytes("A")
    room = np.full_like(array, 7)
    for one in (lent, seen(lent)):
        assert one.read(room) is room
        assert room.tobytes("A") == array.tobytes("A")
        copy = one.copy()
        assert copy.tobytes("A") == array.tobytes("A")
        assert not np.shares_memory(copy, array)
        room[...] = 7


def test_another_process_reads_it():
    lent = Lent(np.arange(1000.0))
    code = "import pickle, sys; print(pickle.load(sys.stdin.buffer).read().sum())"
    shown = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(lent), capture_output=True, check=True)
    assert float(shown.stdout) == 499_500


def test_it_is_gone_with_its_owner():
    files = len(os.listdir("/proc/self/fd"))
    lent = Lent(np.ones(10))
    first = seen(lent)
    assert seen(lent) == first, "written once"
    assert len(os.listdir("/proc/self/fd")) == files + 1
    del lent
    assert len(os.listdir("/proc/self/fd")) == files
    with pytest.raises(GoneError, match=rf"^an array of process {os.getpid()} cannot be read$"):
        first.read()
    other = Lent(np.zeros(10))
    second = seen(other)
    assert second.file == first.file, "the system gives the lowest free number"
    with pytest.raises(GoneError):
        first.read()
    assert second.read().tolist() == [0] * 10


def test_one_that_is_too_short_is_refused():
    lent = Lent(np.ones(1000))
    found = seen(lent)
    os.truncate(f"/proc/self/fd/{found.file}", 4000)
    with pytest.raises(GoneError):
        found.read()


def test_who_never_sends_it_has_no_file():
    files = os.listdir("/proc/self/fd")
    assert Lent(np.ones(3)).read().tolist() == [1, 1, 1]
    assert os.listdir("/proc/self/fd") == files


def test_without_room_for_a_file_it_travels(monkeypatch):
    def full(name: str) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(os, "memfd_create", full)
    array = np.arange(6.0).reshape(2, 3, order="F")
    found = pickle.loads(pickle.dumps(Lent(array)))
    assert isinstance(found, Lent)
    assert found.read().tolist() == array.tolist()
    assert found.read().flags.f_contiguous


class Workers:
    """A client, as far as it is asked."""

    def __init__(self, *answers: object) -> None:
        self.answers = answers

    def run(self, work, lent, on_error):
        assert on_error == "return"
        true = work(pickle.loads(pickle.dumps(lent)))
        return {str(number): true if answer == "true" else answer for number, answer in enumerate(self.answers)}


def test_all_workers_must_be_able_to_read(monkeypatch):
    assert can_share(Workers("true", "true"))
    assert not can_share(Workers("true", b"something else"))
    assert not can_share(Workers(GoneError("elsewhere"), "true"))
    monkeypatch.delattr(os, "memfd_create")
    assert not can_share(Workers("true"))


def test_nothing_is_left_behind():
    """Such files have no name in any folder."""
    lent = Lent(np.ones(5))
    place = Path(f"/proc/self/fd/{seen(lent).file}")
    assert os.readlink(place) == "/memfd:keytokens (deleted)"
