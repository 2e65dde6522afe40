"""A corpus larger than a budget of memory: `python -m benchmarks.large --gigabytes 2 --memory 1GB`.

The texts are made of sentences of IMDB reviews, drawn by lot from reviews of one label, so that words and n-grams are
those of language. `keytokens fit --memory` learns from the file in a process of its own, of which the peak of the
resident memory is reported; a tenth of the file is fitted in memory for the time per text. `results/large.csv` has a
line for each.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.datasets import load
from benchmarks.measure import RESULTS, write_csv

SENTENCES = 10  # in a text
SEED = 0
RUN = """
import json, resource, sys, time
from keytokens.app.cli import main
begin, code = time.perf_counter(), 0
try:
    main(sys.argv[1:])
except SystemExit as end:
    code = end.code or 0
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(json.dumps({"seconds": time.perf_counter() - begin, "peak_mb": peak / 1e6, "code": code}))
"""


def rows(size: int) -> Iterator[str]:
    """JSON lines of together about so many bytes."""
    texts, labels = load("imdb")
    pools = [
        [
            sentence
            for text, y in zip(texts, labels, strict=True)
            if y == k
            for sentence in re.split(r"(?<=[.!?]) ", text)
        ]
        for k in (0, 1)
    ]
    rng = np.random.default_rng(SEED)
    written = 0
    while written < size:
        label = int(rng.integers(2))
        drawn = rng.integers(0, len(pools[label]), SENTENCES)
        line = json.dumps({"text": " ".join(pools[label][i] for i in drawn.tolist()), "label": label}) + "\n"
        written += len(line)
        yield line


def fitted(path: Path, model: Path, *options: str) -> dict[str, float]:
    """One fit of the command line in a process of its own."""
    command = [sys.executable, "-c", RUN, "fit", str(path), "-o", str(model), "--holdout", "0", "--json", *options]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    record, figures = (json.loads(line) for line in done.stdout.strip().splitlines())
    assert not figures.pop("code"), done.stderr
    return {"texts": record["texts"], "tokens": record["tokens"], "steps": record["steps"], **figures}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=2.0)
    parser.add_argument("--memory", default="1GB")
    parser.add_argument("--folder", type=Path, default=None, help="where the corpus and the work lie")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    records = []
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        whole, part = Path(folder) / "whole.jsonl", Path(folder) / "part.jsonl"
        for path, size in ((part, options.gigabytes / 10), (whole, options.gigabytes)):
            with path.open("w", encoding="utf-8") as file:
                file.writelines(rows(int(size * 1e9)))
        for name, path, more in (("files", whole, ["--memory", options.memory]), ("memory", part, [])):
            begin = time.perf_counter()
            figures = fitted(path, Path(folder) / name, *more)
            size = os.path.getsize(path)
            record = {"road": name, "megabytes": size / 1e6, "budget": options.memory if more else "", **figures}
            record["microseconds_a_text"] = 1e6 * figures["seconds"] / figures["texts"]
            records.append(record)
            print(json.dumps(record), f"({time.perf_counter() - begin:.0f} s)", flush=True)
    write_csv(options.output / "large.csv", records)


if __name__ == "__main__":
    main()
