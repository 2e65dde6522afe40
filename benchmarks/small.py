"""What a size budget costs: `python -m benchmarks.small`."""

import argparse
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
from sklearn.model_selection import StratifiedKFold

import keytokens as kt
from benchmarks.datasets import FILES, load
from benchmarks.measure import RESULTS, table, timed, verdict, write_csv

BUDGETS = (2_000_000, 1_000_000, 500_000)
LOADS = 11  # of each saved model, of which the median counts: the first reads the disk
MOST_LOST = 0.3  # points of accuracy that the largest budget may cost
MOST_MILLISECONDS = 50  # in which a model of the largest budget is loaded


def on_disk(model: kt.KeyTokenClassifier) -> dict[str, float]:
    """What the saved model takes: bytes, and milliseconds to load, by the clock and of the processor."""
    with tempfile.TemporaryDirectory() as folder:
        model.save(folder)
        size = sum(file.stat().st_size for file in Path(folder).iterdir())
        times = [timed(lambda: kt.load(folder))[:2] for _ in range(LOADS)]
    clock, processor = (1000 * statistics.median(column) for column in zip(*times, strict=True))
    return {"bytes": size, "load_ms": clock, "load_processor_ms": processor}


def judged(model: kt.KeyTokenClassifier, texts: Sequence[str], labels: np.ndarray) -> dict[str, float]:
    right = float(np.mean(model.predict(texts) == labels))
    return {"tokens": len(model.vocabulary_), "accuracy": right, **on_disk(model)}


def folds(name: str, number: int, budgets: Sequence[int], options: dict[str, object]) -> Iterator[dict[str, object]]:
    """For each of the first folds the whole model, with budget 0, and then each small one made of it."""
    texts, labels = load(name)
    documents, y = np.array(texts, dtype=object), np.asarray(labels)
    splits = StratifiedKFold(5, shuffle=True, random_state=0).split(documents, y)
    for fold, (train, test) in enumerate(islice(splits, number)):
        held_out = documents[test].tolist()
        whole = kt.KeyTokenClassifier(**options).fit(documents[train].tolist(), y[train])
        for budget in (0, *budgets):
            seconds, _, model = timed(lambda budget=budget, whole=whole: whole.compressed(budget) if budget else whole)
            record = {"set": name, "fold": fold, "budget": budget, **judged(model, held_out, y[test])}
            yield record | {"compress_s": seconds if budget else 0.0}


def mean(records: Sequence[dict[str, object]], field: str) -> float:
    return statistics.mean(float(record[field]) for record in records)


def lines(records: Sequence[dict[str, object]]) -> Iterator[list[str]]:
    """One line of the table for each set and budget, mean over the folds."""
    for name in dict.fromkeys(record["set"] for record in records):
        own = [record for record in records if record["set"] == name]
        whole = mean([record for record in own if not record["budget"]], "accuracy")
        for budget in dict.fromkeys(record["budget"] for record in own):
            some = [record for record in own if record["budget"] == budget]
            accuracy = mean(some, "accuracy")
            yield [
                str(name),
                f"{budget:,}" if budget else "none",
                f"{mean(some, 'bytes'):,.0f}",
                f"{mean(some, 'tokens'):,.0f}",
                f"{accuracy:.4f}",
                f"{100 * (whole - accuracy):+.2f}",
                f"{mean(some, 'load_ms'):.0f} ({mean(some, 'load_processor_ms'):.0f})",
            ]


def promises(records: Sequence[dict[str, object]]) -> str:
    """Whether the largest budget keeps what is asked of it, in the worst of the sets."""
    largest = max(record["budget"] for record in records)
    lost, slowest = 0.0, 0.0
    for name in dict.fromkeys(record["set"] for record in records):
        own = [record for record in records if record["set"] == name]
        whole, small = ([record for record in own if record["budget"] == budget] for budget in (0, largest))
        lost = max(lost, 100 * (mean(whole, "accuracy") - mean(small, "accuracy")))
        slowest = max(slowest, mean(small, "load_ms"))
    return (
        f"{largest:,} bytes lose {lost:.2f} points (at most {MOST_LOST}: {verdict(lost <= MOST_LOST)}) and load in "
        f"{slowest:.0f} ms (less than {MOST_MILLISECONDS}: {verdict(slowest < MOST_MILLISECONDS)})"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", choices=FILES, default=["imdb", "yelp_sentences", "ag_news"])
    parser.add_argument("--folds", type=int, choices=range(1, 6), default=2, help="how many of the five")
    parser.add_argument("--budgets", nargs="+", type=int, default=list(BUDGETS), help="bytes on disk")
    parser.add_argument("--ngrams", type=int, help="longest n-gram; the classifier's default if not given")
    parser.add_argument("--output", type=Path, default=RESULTS / "small.csv")
    given = parser.parse_args(arguments)
    options = {"ngrams": (1, given.ngrams)} if given.ngrams else {}
    records = [record for name in given.sets for record in folds(name, given.folds, given.budgets, options)]
    write_csv(given.output, records)
    header = ["set", "budget", "bytes", "tokens", "accuracy", "points lost", "load, ms (of processor)"]
    print(table(header, lines(records)))
    print(promises(records))


if __name__ == "__main__":
    main()
