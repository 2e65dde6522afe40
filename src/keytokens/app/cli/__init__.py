"""The terminal: parse, call, show, exit code. One file a command."""

from __future__ import annotations

import os
import signal
import sys

__all__ = ["leave_at_once", "main"]


def main(arguments: list[str] | None = None) -> None:
    """Run a command; exit code 0 for success, 1 for a failed check, 2 for bad input, 130 for Ctrl-C."""
    try:
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, leave_at_once)
    except ValueError:  # signals belong to the main thread
        pass
    from .app import run  # takes half a second, in which only the handler above speaks

    sys.exit(run(arguments))


def leave_at_once(*_: object) -> None:
    """Answer Ctrl-C while modules load. An exception would come out of an extension module as any other one."""
    os.write(2, b"keytokens: interrupted; what was there before is unchanged.\n")
    os._exit(130)
