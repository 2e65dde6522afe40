"""One input: how it ended, in what time and memory, and what it touched besides its own folder.

Python reports what a program does to the world by audit events. While an input is read, none of these may run a
program, open a connection or change a file outside the folder.
"""

import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from keytokens.base.errors import KeyTokensError

ENDS = ("accepted", "refused", "crashed", "slow", "memory", "escaped", "broken", "died")
GOOD = ENDS[:2]
SECONDS = 10.0  # of one input, of the processor: a machine may be busy with other things
GROWTH = 100 * 2**20  # bytes by which one input may raise the peak of the memory

_RUNS = ("os.system", "subprocess.", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.startfile", "ctypes.")
_LOADS = ("pickle.", "code.__new__")
_TALKS = ("socket.connect", "socket.bind", "socket.sendto", "urllib.", "http.client.", "ftplib.", "smtplib.")
_CHANGES = ("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.chmod", "os.truncate")
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Broken(AssertionError):
    """An input was taken, and something that must hold does not."""


class _Slow(BaseException):
    pass


class Watch:
    """Reads inputs; `allowed` is the folder in which they may write."""

    def __init__(self, allowed: Path, sockets: bool = False, every: int = 16) -> None:
        self._turn, self._every, self._peak = 0, every, peak()  # to look at the memory takes time
        self._allowed = str(allowed.resolve()) + os.sep
        self._forbidden = _RUNS + _LOADS + (() if sockets else _TALKS)
        self._armed = False
        self._seen: list[str] = []
        sys.addaudithook(self._hear)

    def read(self, read: Callable[[bytes], None], content: bytes) -> tuple[str, str]:
        """How it ended, one of ENDS, and what was said."""
        self._seen.clear()
        end, said = self._outcome(read, content)
        if self._seen:
            return "escaped", self._seen[0]
        self._turn += 1
        if self._turn % self._every == 0:
            grown, self._peak = peak() - self._peak, max(self._peak, peak())
            if grown > GROWTH:
                return "memory", f"the peak rose by {grown >> 20} MB within {self._every} inputs"
        return end, said

    def _outcome(self, read: Callable[[bytes], None], content: bytes) -> tuple[str, str]:
        try:
            with _alarm(SECONDS):
                self._armed = True
                try:
                    read(content)
                finally:
                    self._armed = False
        except KeyTokensError as error:
            message = str(error)
            plain = message.isprintable() and 0 < len(message) < 2000
            return ("refused", message) if plain else ("broken", f"the refusal is no plain line: {message[:300]!r}")
        except Broken as error:
            return "broken", str(error)
        except _Slow:
            return "slow", f"more than {SECONDS:g} seconds"
        except MemoryError as error:
            return "memory", _where(error)
        except (KeyboardInterrupt, SystemExit, GeneratorExit):
            raise
        except BaseException as error:  # a panic inside of an extension is no Exception
            return "crashed", _where(error)
        return "accepted", ""

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._armed:
            return
        touched: list[Any] = []
        if event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITES:
            touched = [arguments[0]]
        elif event.startswith(_CHANGES):
            touched = [path for path in arguments if isinstance(path, (str, bytes, os.PathLike))]
        if event.startswith(self._forbidden) or not all(map(self._inside, touched)):
            self._seen.append(f"{event} {arguments!r:.200}")

    def _inside(self, path: Any) -> bool:
        if isinstance(path, int):
            return True
        return (os.path.realpath(os.fsdecode(path)) + os.sep).startswith(self._allowed)


def peak() -> int:
    """The largest memory of this process so far, in bytes."""
    if sys.platform == "linux":  # where the other figure would begin with what the parent had
        with open("/proc/self/status", "rb") as file:
            status = file.read()
        return int(status[status.index(b"VmHWM:") + 6 :].split(None, 1)[0]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    """What waits for ever uses no processor: `run` sees that nothing goes on."""

    def rings(*_: object) -> None:
        raise _Slow

    before = signal.signal(signal.SIGPROF, rings)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _where(error: BaseException) -> str:
    """The error and the places of ours that it came through: what tells one finding from another."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f"{Path(f.filename).name}:{f.lineno}" for f in frames if "keytokens" in f.filename]
    return f"{type(error).__name__}: {' '.join(str(error).split())[:160]} [{' '.join(ours[-3:])}]"
