"""Many inputs for one reader, in a process of their own: it may die, and what killed it is known."""

import json
import mmap
import os
import resource
import shutil
import signal
import struct
import sys
import tempfile
import time
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from . import models, tables, web, working
from .watch import ENDS, GOOD, Watch, peak

READERS: dict[str, Any] = {**models.READERS, **tables.READERS, **web.READERS, **working.READERS}
MEMORY = 2 * 2**30  # bytes of address space beyond what a reader has at its start
_UNREADY = 3  # exit code of a child that failed outside of an input
STUCK = 300.0  # seconds after which a reader that does not answer is ended
_TALKERS = ("wire", "web")  # these hold sockets of their own
_LINE = struct.Struct(f"<{2 + len(ENDS)}q")  # the next index, the peak of the memory, and how many ended each way


@dataclass
class Summary:
    """What became of the inputs of one reader."""

    reader: str
    seed: int
    inputs: int = 0
    ends: dict[str, int] = field(default_factory=dict)
    peak_mb: int = 0
    seconds: float = 0.0
    findings: list[dict[str, Any]] = field(default_factory=list)

    def __str__(self) -> str:
        ends = ", ".join(f"{count:,} {end}" for end, count in self.ends.items() if count)
        rate = self.inputs / max(self.seconds, 1e-9)
        return f"{self.reader:14} {self.inputs:>9,} inputs  {ends}; {rate:,.0f} a second, peak {self.peak_mb} MB"


def one_input(name: str, seed: int, index: int, reader: Any) -> bytes:
    return bytes(reader.make(Random(f"{seed}/{name}/{index}"), index))


def fuzz(name: str, inputs: int, seed: int, seconds: float = 1e9, begin: int = 0) -> Summary:
    """Give a reader so many inputs, for so long at most."""
    summary, start = Summary(name, seed), time.monotonic()
    shared = mmap.mmap(-1, _LINE.size)
    at = begin
    seen: Counter[str] = Counter()
    while at < begin + inputs and time.monotonic() - start < seconds:
        folder = Path(tempfile.mkdtemp(prefix="fuzz-", dir=_memory_folder()))
        _LINE.pack_into(shared, 0, at, 0, *[0] * len(ENDS))
        found = folder.with_suffix(".found")
        child = os.fork()
        if child == 0:
            _child(name, seed, at, begin + inputs, start + seconds, folder, shared, found)
        status = _wait(child, shared)
        at, most, *ends = _LINE.unpack_from(shared)
        summary.peak_mb = max(summary.peak_mb, most >> 20)
        for end, count in zip(ENDS, ends, strict=True):
            summary.ends[end] = summary.ends.get(end, 0) + count
        _take_findings(summary, found, seen)
        if status and os.waitstatus_to_exitcode(status) == _UNREADY:
            raise RuntimeError(f"the reader {name} could not be made ready; see above")
        if status:
            summary.ends["died"] += 1
            summary.findings.append({"index": at, "end": "died", "said": f"wait status {status}"})
            at += 1
        shutil.rmtree(folder, ignore_errors=True)
    summary.inputs, summary.seconds = at - begin, time.monotonic() - start
    return summary


def _memory_folder() -> str | None:
    return "/dev/shm" if os.path.isdir("/dev/shm") else None


def _take_findings(summary: Summary, found: Path, seen: Counter[str]) -> None:
    """Each finding once, by what was said."""
    if found.exists():
        for line in found.read_text("utf-8").splitlines():
            finding = json.loads(line)
            seen[finding["said"]] += 1
            if seen[finding["said"]] == 1 and len(summary.findings) < 200:
                summary.findings.append(finding)
        found.unlink()


def _wait(child: int, shared: mmap.mmap) -> int:
    """The status of a child that ended, or was ended because it got stuck."""
    last, since = -1, time.monotonic()
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status
        now = _LINE.unpack_from(shared)[0]
        if now != last:
            last, since = now, time.monotonic()
        elif time.monotonic() - since > STUCK:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.1)


def _child(
    name: str, seed: int, begin: int, end: int, until: float, folder: Path, shared: mmap.mmap, found: Path
) -> None:
    try:
        tempfile.tempdir = str(folder)
        os.chdir(folder)
        warnings.simplefilter("error")
        reader = READERS[name](folder)
        for index in range(-20, 0):  # what is imported late is imported now
            _tried(reader, one_input(name, seed, index, reader))
        _limit_memory()
        watch = Watch(folder, sockets=name in _TALKERS)
        counts = dict.fromkeys(ENDS, 0)
        with open(found, "w", encoding="utf-8") as out:
            for index in range(begin, end):
                content = one_input(name, seed, index, reader)
                how, said = watch.read(reader.read, content)
                counts[how] += 1
                if how not in GOOD:
                    out.write(json.dumps({"index": index, "end": how, "said": said}) + "\n")
                    out.flush()
                _LINE.pack_into(shared, 0, index + 1, peak(), *counts.values())
                if time.monotonic() > until:
                    break
    except BaseException:
        import traceback

        traceback.print_exc()
        sys.stderr.flush()
        os._exit(_UNREADY)
    os._exit(0)


def _tried(reader: Any, content: bytes) -> None:
    try:
        reader.read(content)
    except Exception:
        return


def _limit_memory() -> None:
    if sys.platform == "linux":
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
