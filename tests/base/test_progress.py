"""The bar of progress, and processes that are forked while it is drawn."""

import multiprocessing
import os
import signal
import threading
from pathlib import Path

import pytest

from keytokens.base.progress import Bar

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")


def _drawn() -> None:
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere, Bar(total=1, disable=False, file=nowhere) as bar:
        bar.update()


def _dies_with_the_lock() -> None:
    Bar.get_lock().acquire()
    os.kill(os.getpid(), signal.SIGKILL)


def _ended(target) -> int:
    child = multiprocessing.get_context("fork").Process(target=target)
    child.start()
    child.join(20)
    if child.is_alive():
        child.kill()
        pytest.fail("a forked process waits for a lock that nobody will give back")
    return child.exitcode


def test_a_process_that_is_killed_takes_no_lock_with_it():
    assert _ended(_dies_with_the_lock) == -signal.SIGKILL
    assert _ended(_drawn) == 0
    assert Bar.get_lock().acquire(blocking=False)
    Bar.get_lock().release()


def test_a_lock_that_another_thread_holds_is_not_inherited():
    held, enough = threading.Event(), threading.Event()

    def hold() -> None:
        with Bar.get_lock():
            held.set()
            enough.wait(20)

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        assert held.wait(20)
        assert _ended(_drawn) == 0
    finally:
        enough.set()
        thread.join()


def test_no_thread_watches_a_bar():
    _drawn()
    assert not [thread for thread in threading.enumerate() if thread.name == "tqdm_monitor"]
