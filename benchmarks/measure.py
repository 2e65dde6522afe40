"""What the benchmarks share: fresh processes that take turns, clocks, memory, tables."""

import argparse
import contextlib
import csv
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

THREADS = 2
THREAD_LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
RESULTS = Path(__file__).parent / "results"

Key = TypeVar("Key", bound=Hashable)
Record = TypeVar("Record")
Result = TypeVar("Result")


def options_of(about: str | None, repeats: int | None = None) -> argparse.ArgumentParser:
    """The options that the benchmarks share: the folder of results, and, where there are rounds, their number."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=RESULTS, help="the folder of the results")
    if repeats is not None:
        parser.add_argument("--repeats", type=int, default=repeats)
    return parser


def publish(path: Path, text: str) -> None:
    """Into a file and onto the screen."""
    path.write_text(text, encoding="utf-8")
    print(text, flush=True)


def in_rounds(jobs: Mapping[Key, Callable[[int], Record]], repeats: int) -> dict[Key, list[Record]]:
    """Call every job with 0, 1, ..., the jobs in turn, so that a busy minute hurts them all."""
    records: dict[Key, list[Record]] = {key: [] for key in jobs}
    for number in range(repeats):
        for key, job in jobs.items():
            records[key].append(job(number))
    return records


def in_fresh_process(arguments: Sequence[str], module: str, threads: int = THREADS) -> Any:
    """What a child prints as its last line, a JSON document."""
    command = [sys.executable, "-m", module, *arguments]
    limits = dict.fromkeys(THREAD_LIMITS, str(threads))
    child = subprocess.run(command, stdout=subprocess.PIPE, env=os.environ | limits, check=False)
    if child.returncode:
        raise SystemExit(f"benchmarks: `{' '.join(command[1:])}` failed with exit code {child.returncode}, see above")
    return json.loads(child.stdout.splitlines()[-1])


def seconds(action: Callable[[], object]) -> float:
    return timed(action)[0]


def timed(action: Callable[[], Result]) -> tuple[float, float, Result]:
    """Seconds by the clock, seconds of processor time (all threads), and what came back."""
    start, before = time.perf_counter(), time.process_time()
    result = action()
    return time.perf_counter() - start, time.process_time() - before, result


def peak_megabytes() -> float:
    unit = 1 if sys.platform == "darwin" else 1024  # bytes there, kilobytes elsewhere
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def resident_megabytes() -> float:
    """What the process holds now; its peak where the system does not say."""
    return _status("VmRSS") or peak_megabytes()


def forget_peak() -> None:
    """Let the peak begin at what the process holds now, where the system can do that."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_since_megabytes() -> float:
    """The largest size since `forget_peak`, or since the start where that is not possible."""
    return _status("VmHWM") or peak_megabytes()


def _status(field: str) -> float | None:
    path = Path("/proc/self/status")
    lines = path.read_text().splitlines() if path.exists() else []
    return next((int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith(field + ":")), None)


def use_processors(number: int = THREADS) -> None:
    """Keep this process to the first processors that it may use."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:number])


def with_range(values: Iterable[float], form: str) -> str:
    """Median, least and largest.

    >>> with_range([3.0, 1.0, 2.0], ".1f")
    '2.0 (1.0 to 3.0)'
    """
    known = sorted(values)
    return f"{statistics.median(known):{form}} ({known[0]:{form}} to {known[-1]:{form}})"


def verdict(kept: bool) -> str:
    return "kept" if kept else "MISSED"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Markdown that is straight on the screen too.

    >>> print(table(["", "seconds"], [["ours", "1.5"]]))
    |      | seconds |
    |------|---------|
    | ours | 1.5     |
    """
    lines = [list(header), *map(list, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    drawn = ["| " + " | ".join(map(str.ljust, line, widths)) + " |" for line in lines]
    return "\n".join([drawn[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *drawn[1:]])


def write_csv(path: Path, records: Sequence[Mapping[str, object]]) -> None:
    """One line a record; a figure that a record lacks is left empty."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        fields = dict.fromkeys(field for record in records for field in record)
        writer = csv.DictWriter(file, fields, lineterminator="\n")
        writer.writeheader()
        writer.writerows(records)


def installed(libraries: Mapping[str, str]) -> list[str]:
    """Those contenders whose library is here; the others are named on the screen, not passed over in silence."""
    present = [contender for contender, library in libraries.items() if find_spec(library)]
    if missing := [contender for contender in libraries if contender not in present]:
        print(f"left out, not installed: {'; '.join(missing)}")
    return present


def surroundings(libraries: Iterable[str]) -> str:
    """The versions and the number of processors that the figures belong to."""
    python = f"Python {platform.python_version()}"
    known = [f"{library} {version(library)}" for library in dict.fromkeys(libraries)]
    return ", ".join([python, *known, f"{os.cpu_count()} processors"])
