"""What those who wait see of a long run: a bar on stderr, or a function of their own that is called at each step."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from tqdm.auto import tqdm

Tick = Callable[[float], None]
_listener: ContextVar[Tick | None] = ContextVar("listener", default=None)


class Bar(tqdm):  # type: ignore[misc]
    """A bar with a lock of its process alone, and without a thread that watches it.

    That of tqdm is shared with all processes that were forked: if one is killed while it holds it, the others wait for
    ever.
    """

    monitor_interval = 0


def _renew_lock() -> None:
    Bar.set_lock(threading.RLock())


_renew_lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)  # another thread may have held it


@contextmanager
def listening(tick: Tick) -> Iterator[None]:
    """Have every fit inside, of this thread, call `tick` with its objective after each step."""
    before = _listener.set(tick)
    try:
        yield
    finally:
        _listener.reset(before)


@contextmanager
def progress(verbose: int) -> Iterator[Tick]:
    """A function to call with the objective after each step; a bar on stderr (1: on a terminal only, 2: always)."""
    listener = _listener.get() or (lambda value: None)
    with Bar(desc="training", unit="step", disable=None if verbose == 1 else not verbose, leave=False) as bar:

        def tick(value: float) -> None:
            listener(value)
            bar.set_postfix(objective=f"{value:.6g}", refresh=False)
            bar.update()

        yield tick
