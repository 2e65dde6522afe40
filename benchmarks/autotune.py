"""The default options against those that `autotune` finds, on texts neither saw: `python -m benchmarks.autotune`."""

import argparse
import csv
import statistics
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold

from benchmarks.datasets import FILES, load
from keytokens import KeyTokenClassifier, autotune

FIELDS = ["set", "fold", "options", "accuracy", "log_loss", "tuned_accuracy", "tuned_log_loss"]
FIELDS += ["gain", "gain_error", "trials", "seconds"]


def folds(texts: Sequence[str], labels: Sequence[int], n_folds: int, seconds: float) -> Iterator[dict[str, Any]]:
    """One record for each of the first folds of five; the folds are those of the other benchmarks."""
    documents, y = np.array(texts, dtype=object), np.asarray(labels)
    splits = StratifiedKFold(5, shuffle=True, random_state=0).split(documents, y)
    for number, (train, test) in enumerate(islice(splits, n_folds)):
        known, held_out = documents[train].tolist(), documents[test].tolist()
        tuned = autotune(known, y[train], seconds=seconds)
        plain = KeyTokenClassifier().fit(known, y[train])
        before, after = (model.predict_proba(held_out) for model in (plain, tuned.model))
        was_right, is_right = (plain.classes_[P.argmax(axis=1)] == y[test] for P in (before, after))
        differences = is_right.astype(float) - was_right
        yield {
            "fold": number,
            "options": " ".join(f"{name}={value!r}" for name, value in tuned.changed.items()) or "defaults",
            "accuracy": float(was_right.mean()),
            "log_loss": log_loss(y[test], before, labels=plain.classes_),
            "tuned_accuracy": float(is_right.mean()),
            "tuned_log_loss": log_loss(y[test], after, labels=plain.classes_),
            "gain": float(differences.mean()),
            "gain_error": float(differences.std() / np.sqrt(len(test))),
            "trials": len(tuned.trials),
            "seconds": tuned.seconds,
        }


def line(name: str, record: dict[str, Any]) -> str:
    return (
        f"{name:14}  {record['fold']:4}  {record['accuracy']:.4f}  {record['tuned_accuracy']:.4f}  "
        f"{record['gain']:+.4f} ± {record['gain_error']:.4f}  {record['trials']:6}  {record['seconds']:7.1f}  "
        f"{record['options']}"
    )


def run(sets: Sequence[str], n_folds: int, seconds: float, output: Path) -> None:
    """Print every fold, and write it to `output`, as soon as it is known."""
    output.parent.mkdir(parents=True, exist_ok=True)
    gains = []
    with output.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        print(f"{'set':14}  fold  before  tuned   gain, paired error  trials  seconds  options")
        for name in sets:
            for record in folds(*load(name), n_folds, seconds):
                gains.append(record["gain"])
                writer.writerow({"set": name, **record})
                file.flush()
                print(line(name, record), flush=True)
    print(f"mean gain in accuracy: {statistics.mean(gains):+.4f}")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", choices=FILES, default=list(FILES))
    parser.add_argument("--folds", type=int, choices=range(1, 6), default=2)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "autotune.csv")
    options = parser.parse_args(arguments)
    run(options.sets, options.folds, options.seconds, options.output)


if __name__ == "__main__":
    main()
