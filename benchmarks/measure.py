"""What the benchmarks share: fresh processes that take turns, clocks, memory, tables.

`take_turns` runs in the parent, `python -m benchmarks.measure` is the child that measures one contender on IMDB. The
parent never loads the data: on Linux the peak memory of a child starts from that of its parent.
"""

import argparse
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

from benchmarks.datasets import load
from benchmarks.peers import CONTENDERS, KeyTokens

THREADS = 2
THREAD_LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
RESULTS = Path(__file__).parent / "results"
TYPICAL_WORDS = 174  # the median IMDB review
SINGLES = 200  # reviews predicted and explained one by one


Key = TypeVar("Key", bound=Hashable)
Record = TypeVar("Record")
Result = TypeVar("Result")


def take_turns(jobs: Mapping[Hashable, Sequence[str]], repeats: int) -> dict[Hashable, dict[str, float]]:
    """Run every job `repeats` times, the jobs in turn; medians of each figure."""
    children = {key: lambda _, given=arguments: in_fresh_process(given) for key, arguments in jobs.items()}
    return {
        key: {figure: statistics.median(run[figure] for run in runs) for figure in runs[0]}
        for key, runs in in_rounds(children, repeats).items()
    }


def in_rounds(jobs: Mapping[Key, Callable[[int], Record]], repeats: int) -> dict[Key, list[Record]]:
    """Call every job with 0, 1, ..., the jobs in turn, so that a busy minute hurts them all."""
    records: dict[Key, list[Record]] = {key: [] for key in jobs}
    for number in range(repeats):
        for key, job in jobs.items():
            records[key].append(job(number))
    return records


def in_fresh_process(arguments: Sequence[str], module: str = "benchmarks.measure", threads: int = THREADS) -> Any:
    """What a child prints as its last line, a JSON document."""
    command = [sys.executable, "-m", module, *arguments]
    limits = dict.fromkeys(THREAD_LIMITS, str(threads))
    child = subprocess.run(command, stdout=subprocess.PIPE, env=os.environ | limits, check=False)
    if child.returncode:
        raise SystemExit(f"benchmarks: `{' '.join(command[1:])}` failed with exit code {child.returncode}, see above")
    return json.loads(child.stdout.splitlines()[-1])


def measure_fit(contender, texts: Sequence[str], labels: Sequence[int]) -> dict[str, float]:
    """Raw text to fitted model. `loaded_mb` is the memory that libraries and texts took before the fit."""
    loaded = peak_megabytes()
    return {
        "loaded_mb": loaded,
        "fit_s": seconds(lambda: contender.fit(texts, labels)),
        "peak_mb": peak_megabytes(),
    }


def measure_use(contender, texts: Sequence[str]) -> dict[str, float]:
    """Prediction of all texts at once, then of typical texts one by one; explanations where there are any."""
    typical = sorted(texts, key=lambda text: abs(len(text.split()) - TYPICAL_WORDS))[:SINGLES]
    figures = {
        "predict_s": seconds(lambda: contender.predict(texts)),
        "peak_mb": peak_megabytes(),
        "predict_one_ms": median_milliseconds(lambda text: contender.predict([text]), typical),
    }
    if isinstance(contender, KeyTokens):
        figures["explain_one_ms"] = median_milliseconds(lambda text: read(contender.model.explain(text)), typical)
    return figures


def read(explanation) -> tuple:
    """What a reader sees first; parts that are computed on first use are computed here. No sets of words."""
    return explanation.tokens, explanation.sufficient.size, explanation.flip.size, explanation.certificate.sentence


def seconds(action: Callable[[], object]) -> float:
    return timed(action)[0]


def timed(action: Callable[[], Result]) -> tuple[float, float, Result]:
    """Seconds by the clock, seconds of processor time (all threads), and what came back."""
    start, before = time.perf_counter(), time.process_time()
    result = action()
    return time.perf_counter() - start, time.process_time() - before, result


def median_milliseconds(action: Callable[[str], object], texts: Sequence[str]) -> float:
    return 1000 * statistics.median(seconds(lambda text=text: action(text)) for text in texts)


def peak_megabytes() -> float:
    unit = 1 if sys.platform == "darwin" else 1024  # bytes there, kilobytes elsewhere
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


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
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, records[0], lineterminator="\n")
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


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("contender", choices=CONTENDERS)
    parser.add_argument("documents", type=int, help="how many reviews, from the first on")
    parser.add_argument("--use", action="store_true", help="measure prediction and explanation too")
    options = parser.parse_args(arguments)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:THREADS])
    texts, labels = (column[: options.documents] for column in load("imdb"))
    contender = CONTENDERS[options.contender]()
    figures = measure_fit(contender, texts, labels)
    if options.use:
        figures |= measure_use(contender, texts)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
