"""Is a budget of memory kept? `python -m benchmarks.budget [CASE ...] --memory 500MB`.

Each case is a file of JSON lines that is hard on the memory in another way. `keytokens fit --memory` learns from it in
a process of its own, of which the peak of the resident memory is reported beside the budget. A refusal is reported in
its own words, and the fit is tried again with the budget that it advises. `results/budget.csv` has a line for each.

classes    20,000 texts of 12 words, 5,000 classes
long       200 texts of 500,000 words
huge       one text of 9,000,000 words among 2,000 short ones
short      5,000,000 texts of 5 words
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.large import RUN
from benchmarks.measure import RESULTS, write_csv
from benchmarks.synthetic import CHUNK, VOCABULARY, spelled, zipf

SEED = 0
Rows = Iterator[tuple[str, int]]


def texts_of(lengths: np.ndarray, rng: np.random.Generator) -> Iterator[str]:
    """Words drawn from a Zipf law, some thousand texts at a time."""
    law = zipf(VOCABULARY)
    for at in range(0, len(lengths), CHUNK):
        some = lengths[at : at + CHUNK]
        yield from spelled(law[rng.integers(0, len(law), int(some.sum()))], some)


def classes(rng: np.random.Generator) -> Rows:
    labels = rng.permutation(np.arange(20_000) % 5_000).tolist()
    return (
        (f"{text} own{label}", label) for text, label in zip(texts_of(np.full(20_000, 11), rng), labels, strict=True)
    )


def long(rng: np.random.Generator) -> Rows:
    return ((text, number % 2) for number in range(200) for text in texts_of(np.array([500_000]), rng))


def huge(rng: np.random.Generator) -> Rows:
    lengths = np.full(2_000, 20)
    lengths[1_000] = 9_000_000
    return ((text, number % 2) for number, text in enumerate(texts_of(lengths, rng)))


def short(rng: np.random.Generator) -> Rows:
    return ((text, number % 2) for number, text in enumerate(texts_of(np.full(5_000_000, 5), rng)))


CASES: dict[str, Callable[[np.random.Generator], Rows]] = {
    "classes": classes,
    "long": long,
    "huge": huge,
    "short": short,
}


def figures(path: Path, model: Path, memory: str) -> dict[str, object]:
    """What came of one fit: the peak and the tokens, or the refusal."""
    command = [sys.executable, "-c", RUN, "fit", str(path), "-o", str(model), "--json", "--memory", memory]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    lines = done.stdout.strip().splitlines()
    end = json.loads(lines[-1])
    if end["code"]:
        return {**end, "tokens": None, "dropped": None, "accuracy": None, "said": done.stderr.strip().splitlines()[-1]}
    record = json.loads(lines[-2])
    score, said = record["score"] or {}, " ".join(record.get("warnings", []))
    dropped = record.get("dropped") or {}
    return {
        **end,
        "tokens": record["tokens"],
        "dropped": dropped.get("tokens"),
        "accuracy": score.get("accuracy"),
        "said": said,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", choices=[[], *CASES], default=[])
    parser.add_argument("--memory", nargs="+", default=["500MB"])
    parser.add_argument("--folder", type=Path, default=None, help="where the files and the work lie")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    records = []
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for name in options.cases or CASES:
            path = Path(folder) / f"{name}.jsonl"
            with path.open("w", encoding="utf-8") as file:
                for text, label in CASES[name](np.random.default_rng(SEED)):
                    file.write(json.dumps({"text": text, "label": label}) + "\n")
            size = path.stat().st_size / 1e6
            budgets = list(options.memory)
            for memory in budgets:
                found = figures(path, Path(folder) / "model", memory)
                records.append({"case": name, "megabytes": size, "budget": memory, **found})
                print(json.dumps(records[-1]), flush=True)
                advised = re.search("Give ([^ ]+) or more", str(found["said"]))
                if advised and advised[1] not in budgets:
                    budgets.append(advised[1])
            path.unlink()
    write_csv(options.output / "budget.csv", records)


if __name__ == "__main__":
    main()
