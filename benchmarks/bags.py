"""`BagClassifier` on bags of vectors, ten times ten-fold: `python -m benchmarks.bags`.

Scaling and landmarks are always learnt inside the training folds. Options come in two ways:
fixed    set before the folds are made: the defaults, or a variant of them
nested   chosen by cross-validation inside each training part, three-fold or five-fold, from the values in `GRID`
"""

import argparse
import ast
import csv
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from benchmarks.datasets import BAG_FILES, load_bags
from keytokens import BagClassifier

FIXED = {
    "default": {},
    "linear": {"features": "linear"},
    "quadratic": {"features": "quadratic"},
    "tanh": {"head": "tanh"},
    "linear tanh": {"features": "linear", "head": "tanh"},
    "three starts": {"n_starts": 3},
    "balanced": {"class_weight": "balanced"},
    "not scaled": {"scale": False},
}
GRID = {"width": [1.0, 3.0], "value_penalty": [0.01, 0.1]}
NESTED = {"nested": 3, "nested 5": 5}  # folds inside a training part
NUMBERS = ["accuracy", "auc", "balanced", "log_loss", "seconds"]  # seconds of one processor
FIELDS = ["set", "options", "seed", *NUMBERS, "chosen"]

Make = Callable[[int], ClassifierMixin]  # a seed to an estimator


def fixed(options: dict) -> Make:
    return lambda seed: BagClassifier(random_state=seed, **options)


def nested(folds: int, options: dict) -> Make:
    """The value with the least log loss in an inner cross-validation, then a fit to the whole training part."""

    def make(seed: int) -> GridSearchCV:
        inner = StratifiedKFold(folds, shuffle=True, random_state=seed)
        model = BagClassifier(random_state=seed, **options)
        return GridSearchCV(model, GRID, scoring="neg_log_loss", cv=inner, error_score="raise")

    return make


def measured(make: Make, bags: Sequence[np.ndarray], y: np.ndarray, seed: int) -> dict[str, float | str]:
    """One ten-fold cross-validation: every bag is judged by a model that has not seen it."""
    start = time.process_time()
    logits, chosen = np.zeros(len(y)), Counter()
    for train, test in StratifiedKFold(10, shuffle=True, random_state=seed).split(y, y):
        model = make(seed).fit([bags[i] for i in train], y[train])
        logits[test] = model.decision_function([bags[i] for i in test])
        chosen.update(f"{name} {value:g}" for name, value in getattr(model, "best_params_", {}).items())
    return {
        "accuracy": float(np.mean((logits > 0) == y)),
        "auc": float(roc_auc_score(y, logits)),
        "balanced": float(balanced_accuracy_score(y, logits > 0)),
        "log_loss": float(np.logaddexp(0, np.where(y == 1, -logits, logits)).mean()),
        "seconds": time.process_time() - start,
        "chosen": ", ".join(f"{value}: {times}" for value, times in sorted(chosen.items())),
    }


def summary(records: Sequence[dict[str, str]]) -> str:
    """Means over the repeats, for the accuracy its standard deviation too; all repeats' choices together."""
    column = {name: np.array([float(record[name]) for record in records]) for name in NUMBERS}
    quality = f"{column['accuracy'].mean():.4f} ± {column['accuracy'].std():.4f}"
    others = "".join(f"{column[name].mean():10.4f}" for name in NUMBERS[1:-1])
    chosen = Counter()
    for pair in (pair for record in records for pair in record["chosen"].split(", ") if pair):
        value, _, times = pair.rpartition(": ")
        chosen[value] += int(times)
    tally = ", ".join(f"{value}: {times}" for value, times in sorted(chosen.items()))
    return f"{quality}{others}{column['seconds'].mean():13.2f}  {tally}".rstrip()


def known(output: Path) -> dict[tuple[str, str, int], dict[str, str]]:
    """What the file holds already; it is not measured again."""
    if not output.exists():
        return {}
    with output.open(encoding="utf-8") as file:
        return {(row["set"], row["options"], int(row["seed"])): row for row in csv.DictReader(file)}


def run(sets: Sequence[str], ways: dict[str, Make], repeats: int, output: Path) -> None:
    """Print the table line by line, and write every repeat to `output` as soon as it is known."""
    output.parent.mkdir(parents=True, exist_ok=True)
    rows = known(output)
    with output.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS)
        if not file.tell():
            writer.writeheader()
        heads = "".join(f"{head:>10}" for head in ("AUC", "balanced", "log loss"))
        print(f"{'set':9}{'options':16}{'accuracy':15}{heads}{'s a 10-fold':>13}  chosen")
        for name in sets:
            bags, y = load_bags(name)
            for way, make in ways.items():
                for seed in range(repeats):
                    if (name, way, seed) not in rows:
                        record = {"set": name, "options": way, "seed": seed, **measured(make, bags, y, seed)}
                        writer.writerow(record)
                        file.flush()
                        rows[name, way, seed] = {field: str(value) for field, value in record.items()}
                print(f"{name:9}{way:16}{summary([rows[name, way, seed] for seed in range(repeats)])}", flush=True)


def parsed(pairs: Sequence[str]) -> dict:
    """`name=value` pairs as options; a value that is no Python literal is a string."""
    options = {}
    for pair in pairs:
        name, _, text = pair.partition("=")
        try:
            options[name] = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            options[name] = text
    return options


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", choices=BAG_FILES, default=list(BAG_FILES))
    parser.add_argument("--ways", nargs="+", choices=[*FIXED, *NESTED], default=["default", "nested"])
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--options", nargs="*", default=[], metavar="NAME=VALUE", help="for every way")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "bags.csv")
    asked = parser.parse_args(arguments)
    options = parsed(asked.options)
    named = "".join(f" {pair}" for pair in asked.options)
    makes = {way: fixed(FIXED[way] | options) if way in FIXED else nested(NESTED[way], options) for way in asked.ways}
    run(asked.sets, {way + named: make for way, make in makes.items()}, asked.repeats, asked.output)


if __name__ == "__main__":
    main()
