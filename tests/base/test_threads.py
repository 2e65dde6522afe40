"""Work in threads: results in order, errors as they are."""

import _thread
import itertools
import os
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from keytokens.base.threads import cores, ordered_map, ordered_stream

BOTH = pytest.mark.parametrize("run", [ordered_map, lambda *given: list(ordered_stream(*given))], ids=["map", "stream"])


@BOTH
@pytest.mark.parametrize("threads", [1, 2, 3, 8])
@pytest.mark.parametrize("size", [0, 1, 2, 20])
def test_results_come_in_the_order_of_the_parts(run, threads, size):
    def slow_at_first(part: int) -> int:
        time.sleep(0.002 * (size - part) / max(size, 1))
        return part * part

    assert run(slow_at_first, iter(range(size)), threads) == [part * part for part in range(size)]


@BOTH
def test_threads_work_side_by_side(run):
    barrier = threading.Barrier(2, timeout=20)
    assert len(run(lambda part: barrier.wait(), range(6), 2)) == 6


@BOTH
def test_no_more_threads_than_asked(run):
    assert run(lambda part: threading.get_ident(), range(3), 1) == [threading.get_ident()] * 3
    assert len(set(run(lambda part: threading.get_ident(), range(50), 3))) <= 3


@BOTH
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_an_error_comes_through_and_stops_the_rest(run, threads, error):
    begun = []

    def work(part: int) -> None:
        begun.append(part)
        if part == 0:
            if error is KeyboardInterrupt:
                _thread.interrupt_main()
            else:
                raise ZeroDivisionError("the first part")
        time.sleep(0.005)

    with pytest.raises(error, match="the first part" if error is ZeroDivisionError else None):
        run(work, range(200), threads)
    assert len(begun) < 100


def test_an_error_waits_for_what_has_begun():
    """Work that goes on after the error would write where nobody expects it."""
    begun, ended = threading.Event(), []

    def work(part: int) -> None:
        if part == 0:
            assert begun.wait(20)
            raise ZeroDivisionError
        begun.set()
        time.sleep(0.05)
        ended.append(part)

    with pytest.raises(ZeroDivisionError):
        ordered_map(work, [0, 1], 2)
    assert len(ended) == 1


def test_threads_that_are_busy_hold_nobody_up():
    """Work within work, and two callers at once."""
    assert ordered_map(lambda part: sum(ordered_map(abs, [part, part, part], 2)), range(8), 2) == list(range(0, 24, 3))
    barrier, let_go = threading.Barrier(3, timeout=20), threading.Event()

    def long(part: int) -> None:
        barrier.wait()
        assert let_go.wait(20)

    caller = threading.Thread(target=ordered_map, args=(long, [0, 1], 2))
    caller.start()
    barrier.wait()  # both threads are at work
    try:
        assert ordered_map(abs, [-1, 2, -3], 2) == [1, 2, 3]
        assert list(ordered_stream(abs, iter([-1, 2, -3]), 2)) == [1, 2, 3]
    finally:
        let_go.set()
        caller.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_threads_work_after_a_fork():
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
def test_a_stream_holds_few_parts_and_gives_its_error_in_its_turn(threads):
    taken, given = [], []

    def endless():
        for part in itertools.count():
            taken.append(part)
            yield part

    stream = ordered_stream(lambda part: 900 // (30 - part), endless(), threads)
    for _ in range(30):
        given.append(next(stream))
        assert len(taken) <= len(given) + threads
    with pytest.raises(ZeroDivisionError):
        next(stream)
    assert given == [900 // (30 - part) for part in range(30)]


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
