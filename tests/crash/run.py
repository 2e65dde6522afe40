"""Fork, kill, look. Half of the kills come at a random moment, half just before a random change of the disk."""

import mmap
import os
import signal
import struct
import sys
import tempfile
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from .phases import PHASES, ROUND, Broken, Known, Phase

_EVENTS = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "sqlite3.connect")
_COUNT = struct.Struct("<q")


@dataclass
class Tally:
    """What was found after the kills of one phase."""

    phase: str
    says: str
    kills: int = 0
    ended: int = 0  # acts that were done before the kill came
    found: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        found = ", ".join(f"{count} {what}" for what, count in sorted(self.found.items()))
        return f"{self.phase:12} {self.kills:>5} kills ({self.ended} came too late): {found}; broken {len(self.broken)}"


def shares(names: list[str], kills: int) -> dict[str, int]:
    """So many kills for each phase; one at least."""
    whole = sum(PHASES[name].weight for name in names)
    return {name: max(1, round(kills * PHASES[name].weight / whole)) for name in names}


def crash(name: str, kills: int, seed: int, known: Known) -> Tally:
    """Kill a phase so often; a kill that came too late does not count."""
    phase, rng = PHASES[name], Random(f"{seed}/{name}")
    tally = Tally(name, phase.says)
    seconds, calls = _measured(phase, known)
    while tally.kills < kills and tally.ended < 20 + 3 * kills:
        with tempfile.TemporaryDirectory(prefix="crash-", ignore_cleanup_errors=True) as scratch:
            folder = Path(scratch).resolve()
            phase.prepare(folder, known)
            by_call = rng.random() < 0.5 and calls > 0
            late = _kill(phase, folder, known, rng, seconds, calls if by_call else 0)
            tally.kills += not late
            tally.ended += late
            try:
                what = phase.check(folder, known)
                if not late:
                    tally.found[what] += 1
            except Exception as error:
                tally.broken.append(f"{type(error).__name__}: {error}")
    return tally


def _measured(phase: Phase, known: Known) -> tuple[float, int]:
    """How long the act takes and how often it touches the disk, when nobody kills it."""
    with tempfile.TemporaryDirectory(prefix="crash-", ignore_cleanup_errors=True) as scratch:
        folder = Path(scratch).resolve()
        phase.prepare(folder, known)
        shared = mmap.mmap(-1, _COUNT.size)
        begin = time.monotonic()
        child = _forked(phase, folder, known, shared, 0)
        if phase.endless:
            if phase.name == "serve":
                _wait_for(folder / "ready")
                begin = time.monotonic()
            _wait_for(folder / ROUND)
            seconds = 1.2 * (time.monotonic() - begin)
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            phase.check(folder, known)
            return seconds, 0 if phase.name == "serve" else _COUNT.unpack_from(shared)[0]
        _, status = os.waitpid(child, 0)
        if status:
            raise Broken(f"{phase.name} does not work even if nobody kills it: {status}")
        return time.monotonic() - begin, _COUNT.unpack_from(shared)[0]


def _kill(phase: Phase, folder: Path, known: Known, rng: Random, seconds: float, calls: int) -> bool:
    """Whether the act was done before."""
    shared = mmap.mmap(-1, _COUNT.size)
    children = [
        _forked(phase, folder, known, shared, rng.randint(1, calls) if calls else 0) for _ in range(phase.actors)
    ]
    if phase.name == "serve":
        _wait_for(folder / "ready")
    late = True
    for child in children:
        if not calls:
            time.sleep(rng.uniform(0, seconds) / phase.actors)
            if phase.name == "serve":
                os.kill(int((folder / "server.pid").read_text()), signal.SIGKILL)
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            late = False
        elif status:
            raise Broken(f"{phase.name} failed by itself: {status}")
    return late


def _wait_for(file: Path) -> None:
    end = time.monotonic() + 300
    while not file.exists():
        if time.monotonic() > end:
            raise Broken(f"{file.name} does not come")
        time.sleep(0.01)


def _forked(phase: Phase, folder: Path, known: Known, shared: mmap.mmap, die_at: int) -> int:
    """A child that acts; it kills itself just before change number `die_at` of something in the folder."""
    child = os.fork()
    if child:
        return child
    inside, count = str(folder), 0

    def hear(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal count
        if event in _EVENTS and arguments and inside in str(arguments[0]):
            count += 1
            _COUNT.pack_into(shared, 0, count)
            if count == die_at:
                os.kill(os.getpid(), signal.SIGKILL)

    try:
        sys.addaudithook(hear)
        phase.act(folder, known)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    os._exit(0)
