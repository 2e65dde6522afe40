"""This source tree beside another one: `python -m benchmarks.beside ../before/src [--rounds 5] [--cases imdb ...]`.

Each run is a process of its own and the two trees take turns. A run fits, predicts its texts and explains some of them.
`results/beside.csv` has a line for each run; the screen shows the median ratio of a pair, this tree over the other, in
processor time (all threads), the memory that a fit adds as a multiple of the text, and both accuracies. Half of the
texts are for training, the other half for the accuracy.
"""

import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import synthetic
from benchmarks.datasets import load
from benchmarks.measure import (
    THREAD_LIMITS,
    THREADS,
    forget_peak,
    in_rounds,
    options_of,
    peak_since_megabytes,
    resident_megabytes,
    table,
    timed,
    with_range,
    write_csv,
)

# The set and the longest n-gram of each case.
CASES = {
    "imdb": ("imdb", 2),
    "imdb_3": ("imdb", 3),
    "ag_news": ("ag_news", 2),
    "yelp_sentences": ("yelp_sentences", 2),
    "short": ("short", 2),
    "twenty": ("twenty", 2),
}
MADE = {"short": (synthetic.short, 100_000), "twenty": (synthetic.twenty, 22_000)}  # and how many texts of each
EXPLAINED = 2_000
HERE = Path(__file__).parents[1] / "src"
TIMES = ("fit", "predict", "explain")


def texts_of(name: str, documents: int | None) -> synthetic.Corpus:
    """The first so many texts of a set, or all."""
    if name in MADE:
        make, usual = MADE[name]
        return make(documents or usual)
    return load(name, documents)


def run(case: str, documents: int | None) -> dict[str, float]:
    """Fit on every second text, predict the others, explain some of them."""
    from keytokens import KeyTokenClassifier

    name, longest = CASES[case]
    texts, labels = texts_of(name, documents)
    seen, seen_labels, fresh, fresh_labels = texts[::2], labels[::2], texts[1::2], labels[1::2]
    model = KeyTokenClassifier(ngrams=(1, longest), random_state=0, threads=THREADS)
    model.fit(seen[:50], seen_labels[:50])  # what loads on first use is loaded
    forget_peak()
    held = resident_megabytes()
    fit = timed(lambda: model.fit(seen, seen_labels))
    added = peak_since_megabytes() - held
    model.predict(fresh[:50])
    predict = timed(lambda: model.predict(fresh))
    explained(model, fresh[:50])
    gc.collect()  # else a collection falls into one tree's time and not into the other's, by chance
    explain = timed(lambda: explained(model, fresh[:EXPLAINED]))
    right = sum(bool(found == label) for found, label in zip(predict[2], fresh_labels, strict=True))
    clocks = dict(zip(TIMES, (fit, predict, explain), strict=True))
    return {
        **{f"{what}_s": clock[0] for what, clock in clocks.items()},
        **{f"{what}_cpu_s": clock[1] for what, clock in clocks.items()},
        "memory_texts": added / (sum(len(text.encode()) for text in seen) / 1e6),
        "accuracy": right / len(fresh),
    }


def explained(model, texts: Sequence[str]) -> list[int]:
    """The sizes of both minimum sets; a record makes what it is asked for."""
    return [e.sufficient.size + e.flip.size for e in model.explain_many(texts)]


def in_tree(source: Path, arguments: Sequence[str]) -> dict[str, float]:
    """One run in a process that imports keytokens from this folder."""
    environment = os.environ | dict.fromkeys(THREAD_LIMITS, str(THREADS)) | {"PYTHONPATH": str(source)}
    command = [sys.executable, "-m", "benchmarks.beside", *arguments]
    child = subprocess.run(command, stdout=subprocess.PIPE, env=environment, cwd=HERE.parent, check=True)
    return json.loads(child.stdout)


def compared(case: str, here: Sequence[dict[str, float]], there: Sequence[dict[str, float]]) -> list[str]:
    """A line of the table: ratios, then figures of both trees."""
    pairs = list(zip(here, there, strict=True))
    ratios = [with_range([a[f"{what}_cpu_s"] / b[f"{what}_cpu_s"] for a, b in pairs], ".2f") for what in TIMES]
    memory = [f"{statistics.median(each['memory_texts'] for each in runs):.1f}" for runs in (there, here)]
    accuracy = [f"{runs[0]['accuracy']:.4f}" for runs in (there, here)]
    return [case, *ratios, " -> ".join(memory), " -> ".join(accuracy)]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = options_of(__doc__)
    parser.add_argument("other", type=Path, nargs="?", help="the folder `src` of the other tree")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--documents", type=int, help="how many texts of each set; usually all")
    parser.add_argument("--run", choices=CASES, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.run:
        print(json.dumps(run(options.run, options.documents)))
        return
    if not (options.other and (options.other / "keytokens").is_dir()):
        parser.error(f"expected the folder `src` of another tree, found {options.other}")
    records, lines = [], []
    few = [] if options.documents is None else ["--documents", str(options.documents)]
    for case in options.cases:
        jobs = {
            who: lambda _, source=source, case=case: in_tree(source, ["--run", case, *few])
            for who, source in (("here", HERE), ("other", options.other.resolve()))
        }
        runs = in_rounds(jobs, options.rounds)
        records += [
            {"case": case, "tree": who, "round": at, **each} for who in runs for at, each in enumerate(runs[who])
        ]
        lines.append(compared(case, runs["here"], runs["other"]))
        print(" | ".join(lines[-1]), flush=True)
    write_csv(options.output / "beside.csv", records)
    print(table(["case", *(f"{what}, CPU" for what in TIMES), "memory / text", "accuracy"], lines))


if __name__ == "__main__":
    main()
