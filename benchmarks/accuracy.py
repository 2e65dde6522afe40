"""Five-fold accuracy of every contender on every set: `python -m benchmarks.accuracy`."""

import argparse
import csv
import statistics
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold

from benchmarks.datasets import FILES, load
from benchmarks.peers import CONTENDERS, KeyTokens, installed

FIELDS = ["set", "contender", "fold", "accuracy", "seconds", "log_loss", "calibration_error", "sufficient_size"]
EXPLAINED = 500  # held-out texts of each fold whose sufficient set is measured
BINS = 15  # of equal width, for the calibration error


def calibration_error(probabilities: np.ndarray, is_right: np.ndarray) -> float:
    """Expected calibration error: the mean gap between confidence and accuracy, over bins of confidence."""
    confidence = probabilities.max(axis=1)
    which = np.minimum((confidence * BINS).astype(int), BINS - 1)
    gaps = np.bincount(which, weights=confidence - is_right, minlength=BINS)
    return float(np.abs(gaps).sum() / len(confidence))


def quality(contender: KeyTokens, texts: Sequence[str], labels: np.ndarray) -> dict[str, float]:
    """What only keytokens is asked for: how good its probabilities are, and how small its explanations."""
    model = contender.model
    probabilities = model.predict_proba(texts)
    is_right = model.classes_[probabilities.argmax(axis=1)] == labels
    return {
        "log_loss": log_loss(labels, probabilities, labels=model.classes_),
        "calibration_error": calibration_error(probabilities, is_right),
        "sufficient_size": statistics.median(model.explain(text).sufficient.size for text in texts[:EXPLAINED]),
    }


def folds(texts: Sequence[str], labels: Sequence[int], contender: str) -> Iterator[dict[str, float]]:
    """One record per fold; the folds are the same for every contender."""
    documents, y = np.array(texts, dtype=object), np.asarray(labels)
    splits = StratifiedKFold(5, shuffle=True, random_state=0).split(documents, y)
    for number, (train, test) in enumerate(splits):
        model = CONTENDERS[contender]()
        start = time.perf_counter()
        model.fit(documents[train].tolist(), y[train])
        record = {"fold": number, "seconds": time.perf_counter() - start}
        held_out = documents[test].tolist()
        record["accuracy"] = float(np.mean(model.predict(held_out) == y[test]))
        if isinstance(model, KeyTokens):
            record |= quality(model, held_out, y[test])
        yield record


def summary(records: Sequence[dict[str, float]]) -> str:
    """Mean and standard deviation over the folds, in one line of the table."""
    accuracies = [record["accuracy"] for record in records]
    seconds = statistics.median(record["seconds"] for record in records)
    cells = [f"{statistics.mean(accuracies):.4f} ± {statistics.stdev(accuracies):.4f}", f"{seconds:8.1f}"]
    for field, width in (("log_loss", 8), ("calibration_error", 11), ("sufficient_size", 10)):
        values = [record[field] for record in records if field in record]
        cells.append(f"{statistics.mean(values):{width}.4g}" if values else " " * width)
    return "  ".join(cells)


def run(sets: Sequence[str], contenders: Sequence[str], output: Path) -> None:
    """Print the table line by line, and write every fold to `output` as soon as it is known."""
    output.parent.mkdir(parents=True, exist_ok=True)
    with output.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        print(f"{'set':14}  {'contender':9}  {'accuracy':15}  {'fit, s':>8}  log loss  calibration  sufficient")
        for name in sets:
            texts, labels = load(name)
            for contender in contenders:
                records = []
                for record in folds(texts, labels, contender):
                    records.append(record)
                    writer.writerow({"set": name, "contender": contender, **record})
                    file.flush()
                print(f"{name:14}  {contender:9}  {summary(records)}", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", choices=FILES, default=list(FILES))
    parser.add_argument("--contenders", nargs="+", choices=CONTENDERS, default=list(CONTENDERS))
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "accuracy.csv")
    options = parser.parse_args(arguments)
    run(options.sets, installed(options.contenders), options.output)


if __name__ == "__main__":
    main()
