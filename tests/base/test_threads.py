"""Work in threads: results in order, errors as they are."""

from __future__ import annotations

import itertools
import os
import platform
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

from keytokens.base import threads as parallel
from keytokens.base.threads import cores, ordered_map, ordered_stream, over_spans


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


def test_an_error_waits_for_what_has_begun():
    """Work that goes on after the error would write where nobody expects it."""
    begun, ended = threading.Event(), []

    def work(part: int) -> None:
        if threading.current_thread() is threading.main_thread():
            assert begun.wait(20)
            raise ZeroDivisionError
        begun.set()
        time.sleep(0.05)
        ended.append(part)

    with pytest.raises(ZeroDivisionError):
        ordered_map(work, [0, 1], 2)
    assert len(ended) == 1


def test_helpers_that_are_busy_hold_nobody_up():
    """Work within work, and two callers at once: who asks does the work where no helper comes."""
    assert ordered_map(lambda part: sum(ordered_map(abs, [part, part, part], 2)), range(8), 2) == list(range(0, 24, 3))
    barrier, let_go = threading.Barrier(3, timeout=20), threading.Event()

    def long(part: int) -> None:
        barrier.wait()
        assert let_go.wait(20)

    caller = threading.Thread(target=ordered_map, args=(long, [0, 1], 2))
    caller.start()
    barrier.wait()  # the caller and the only helper are at work
    try:
        assert ordered_map(abs, [-1, 2, -3], 2) == [1, 2, 3]
        assert list(ordered_stream(abs, iter([-1, 2, -3]), 2)) == [1, 2, 3]
    finally:
        let_go.set()
        caller.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_fork_finds_helpers_of_its_own():
    body = """
        import os, threading
        from keytokens.base.threads import ordered_map
        def together():
            barrier = threading.Barrier(2, timeout=10)
            return len(ordered_map(lambda part: barrier.wait(), [0, 1], 2))
        together()
        child = os.fork()
        if not child:
            os._exit(together())
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(body)], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("2\n", "")


def test_cores():
    assert 1 <= cores() <= (os.cpu_count() or 1)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_a_stream_keeps_its_order_and_holds_few_parts(threads):
    taken, given = [], []

    def endless():
        for part in itertools.count():
            taken.append(part)
            yield part

    for result in ordered_stream(lambda part: part * part, endless(), threads):
        given.append(result)
        assert len(taken) <= len(given) + threads
        if len(given) == 30:
            break
    assert given == [part * part for part in range(30)]


@pytest.mark.parametrize("threads", [1, 3])
def test_an_error_in_a_stream_comes_in_its_turn(threads):
    stream = ordered_stream(lambda part: 1 // (3 - part), iter(range(10)), threads)
    assert [next(stream) for _ in range(3)] == [0, 0, 1]
    with pytest.raises(ZeroDivisionError):
        next(stream)


def test_a_stream_works_side_by_side_with_its_reader():
    """One helper, and the thread that waits for the answers."""
    barrier = threading.Barrier(2, timeout=20)
    assert len(list(ordered_stream(lambda part: barrier.wait(), iter(range(6)), 2))) == 6


def test_a_stream_that_is_left_waits_for_what_has_begun():
    begun, ended = threading.Event(), []

    def work(part: int) -> int:
        if part == 1:
            begun.set()
            time.sleep(0.05)
            ended.append(part)
        elif part == 0:
            assert begun.wait(20)
        return part

    stream = ordered_stream(work, itertools.count(), 2)
    assert next(stream) == 0
    stream.close()
    assert ended == [1]


def test_an_interruption_between_two_lines_does_not_hang(monkeypatch):
    """Ctrl-C may come when a part has been taken and its work not begun: its answer never comes."""
    take = parallel._Queue.take

    def taken_and_interrupted(queue):
        if threading.current_thread() is threading.main_thread() and queue._waiting:
            queue._waiting.popleft()
            raise KeyboardInterrupt
        return take(queue)

    monkeypatch.setattr(parallel._Queue, "take", taken_and_interrupted)
    stream = ordered_stream(lambda part: time.sleep(0.05), itertools.count(), 2)
    with pytest.raises(KeyboardInterrupt):
        next(stream)


def test_an_interruption_is_not_kept_for_later():
    def interrupted(part: int) -> None:
        if threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt
        time.sleep(0.05)

    stream = ordered_stream(interrupted, itertools.count(), 2)
    with pytest.raises(KeyboardInterrupt):
        next(stream)


@pytest.mark.parametrize("length", [0, 1, 9, 10, 11, 500])
@pytest.mark.parametrize("rows", [1, 3, 20])
def test_spans_depend_on_the_matrix_alone(monkeypatch, length, rows):
    """One after the other they are the whole, whoever takes which."""
    monkeypatch.setattr(parallel, "_SPAN", 10)
    alone = over_spans(lambda at: (at.start, at.stop), length, 1, rows)
    assert [place for span in alone for place in range(*span)] == list(range(length))
    assert len(alone) == max(1, -(-length // max(1, 10 // rows)))
    for threads in (2, 3, 8):
        assert over_spans(lambda at: (at.start, at.stop), length, threads, rows) == alone


@pytest.mark.parametrize("shape", [(0,), (3,), (2, 400_000)])
def test_arrays_on_pages_of_their_own(shape):
    array = parallel.on_own_pages(shape, np.float32)
    assert array.shape == shape
    assert array.dtype == np.float32
    array[...] = 1
    assert array.flags.c_contiguous
    assert array.flags.aligned
    assert array.sum() == array.size


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another library of C: its malloc is left as it is")
def test_memory_that_is_freed_is_used_again():
    """Arrays of two megabytes, seven at a time: as malloc begins, each round is fresh memory."""
    code = """
        import resource, sys, numpy as np
        from keytokens.base.threads import keep_freed_memory
        if "keep" in sys.argv:
            keep_freed_memory()
        faults = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        some = lambda: [np.ones(1 << 18) for _ in range(7)]
        some()
        before = faults()
        for _ in range(20):
            some()
        print(faults() - before)
    """
    own = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}

    def counted(*how: str) -> int:
        command = [sys.executable, "-c", textwrap.dedent(code), *how]
        return int(subprocess.run(command, capture_output=True, check=True, env=own).stdout)

    as_it_begins, kept = counted(), counted("keep")
    assert as_it_begins > 20_000
    assert kept < 5_000
