"""The bar of progress on stderr."""

from __future__ import annotations

import os
import threading

from tqdm.auto import tqdm


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
