"""Work in threads: results in order, errors as they are."""

from __future__ import annotations

import os
import threading
import time

import pytest

from keytokens.parallel import cores, ordered_map


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
@pytest.mark.parametrize("size", [0, 1, 2, 20])
def test_results_come_in_the_order_of_the_parts(threads, size):
    def slow_at_first(part: int) -> int:
        time.sleep(0.002 * (size - part) / max(size, 1))
        return part * part

    assert ordered_map(slow_at_first, iter(range(size)), threads) == [part * part for part in range(size)]


def test_threads_work_side_by_side():
    barrier = threading.Barrier(2, timeout=20)
    assert len(ordered_map(lambda part: barrier.wait(), [0, 1], 2)) == 2


def test_one_thread_is_this_thread():
    names = ordered_map(lambda part: threading.current_thread().name, range(3), 1)
    assert names == [threading.current_thread().name] * 3


def test_no_more_threads_than_asked():
    assert len(set(ordered_map(lambda part: threading.get_ident(), range(50), 3))) <= 3


@pytest.mark.parametrize("threads", [1, 2])
def test_an_error_comes_through_and_stops_the_rest(threads):
    begun = []

    def work(part: int) -> None:
        begun.append(part)
        if part == 0:
            raise ZeroDivisionError("the first part")
        time.sleep(0.01)

    with pytest.raises(ZeroDivisionError, match=r"^the first part$"):
        ordered_map(work, range(200), threads)
    assert len(begun) < 100


def test_cores():
    assert 1 <= cores() <= (os.cpu_count() or 1)
