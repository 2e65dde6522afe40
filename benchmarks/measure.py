"""Time and memory of one contender on IMDB, in a process of its own.

`take_turns` runs in the parent, `python -m benchmarks.measure` is the child. The parent never loads the data: on Linux
the peak memory of a child starts from that of its parent.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Hashable, Mapping, Sequence

from benchmarks.datasets import load
from benchmarks.peers import CONTENDERS, KeyTokens

THREADS = 2
LIMITS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(THREADS))
TYPICAL_WORDS = 174  # the median IMDB review
SINGLES = 200  # reviews predicted and explained one by one


def take_turns(jobs: Mapping[Hashable, Sequence[str]], repeats: int) -> dict[Hashable, dict[str, float]]:
    """Run every job `repeats` times, the jobs in turn, so that a busy minute hurts them all; medians of each figure."""
    records = {key: [] for key in jobs}
    for _ in range(repeats):
        for key, arguments in jobs.items():
            records[key].append(in_fresh_process(arguments))
    return {
        key: {figure: statistics.median(run[figure] for run in runs) for figure in runs[0]}
        for key, runs in records.items()
    }


def in_fresh_process(arguments: Sequence[str]) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.measure", *arguments]
    child = subprocess.run(command, stdout=subprocess.PIPE, env=os.environ | LIMITS, check=False)
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
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def median_milliseconds(action: Callable[[str], object], texts: Sequence[str]) -> float:
    return 1000 * statistics.median(seconds(lambda text=text: action(text)) for text in texts)


def peak_megabytes() -> float:
    unit = 1 if sys.platform == "darwin" else 1024  # bytes there, kilobytes elsewhere
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


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
