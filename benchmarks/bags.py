"""`BagClassifier` on bags of vectors, ten times ten-fold: `python -m benchmarks.bags`.

Scaling and landmarks are always learnt inside the training folds. Options come in two ways:
fixed    set before the folds are made: the defaults, or a variant of them
nested   chosen by cross-validation inside each training part, three-fold or five-fold, from the values in `GRID`
pooled   the usual baseline: mean and maximum of each feature, standardised, into logistic regression

Beside the two real sets there are made ones of 200 bags in 230 dimensions, drawn anew for each repeat: 2 to 13 regions
of an image, of 20 kinds, seen through features that are correlated, skewed and partly 0. A label is told
images     by one or more regions of kinds of its own, and by which other kinds are frequent
rare       by such regions more, by the others less
context    by the frequencies alone
extremes   by features that reach farther, each in some region
sparse     as images, through features that are 0 mostly and large now and then
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
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from benchmarks.datasets import BAG_FILES, load_bags
from keytokens import BagClassifier

FIXED = {
    "default": {},
    "attention": {"pooling": "attention"},
    "width 3": {"pooling": "attention", "width": 3.0},
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
MADE = {  # how far kinds of regions lean to a label, kinds of its own, and features that reach farther
    "images": {"lean": 1.0, "own": 3},
    "rare": {"lean": 0.3, "own": 5},
    "context": {"lean": 2.0, "own": 0},
    "extremes": {"lean": 0.8, "own": 0, "far": 7},
    "sparse": {"lean": 1.0, "own": 3, "sparse": True},
}
NUMBERS = ["accuracy", "auc", "balanced", "log_loss", "seconds"]  # seconds of one processor
FIELDS = ["set", "options", "seed", *NUMBERS, "chosen"]

Make = Callable[[int], ClassifierMixin]  # a seed to an estimator


def made_bags(
    seed: int, lean: float, own: int, far: int = 0, sparse: bool = False
) -> tuple[list[np.ndarray], np.ndarray]:
    """200 bags; half of them positive."""
    rng = np.random.default_rng([seed, 7])
    kinds, hidden, d = 20, 30, 230
    centres = rng.normal(size=(kinds + own, hidden))
    centres[kinds:] = centres[:own] + 0.8 * rng.normal(size=(own, hidden))  # near a kind that all bags may hold
    mix, shift, gain = rng.normal(size=(hidden, d)) / np.sqrt(hidden), 0.6 * rng.normal(size=d), rng.lognormal(size=d)
    base, leaning, reaching = rng.normal(size=kinds), lean * rng.normal(size=kinds), rng.choice(d, 20)
    y, bags = np.arange(200) % 2, []
    for label in y:
        size = rng.integers(2, 14)
        odds = np.exp(base + (label - 0.5) * leaning + 0.7 * rng.normal(size=kinds))
        kind = rng.choice(kinds, size, p=odds / odds.sum())
        if label and own:
            kind[: 1 + rng.binomial(size // 4, 0.4)] = kinds + rng.integers(own)
        z = (centres[kind] + 0.9 * rng.normal(size=(size, hidden)) + 0.5 * rng.normal(size=hidden)) @ mix
        if sparse:
            bag = (np.maximum(z - 2 * np.abs(shift), 0) * gain) ** 1.5
        else:
            bag = np.maximum(z - shift - 0.3, 0) * gain
            bag[:, ::3] = np.tanh(z[:, ::3] + 0.3 * rng.normal(size=z[:, ::3].shape))
        for j in rng.choice(reaching, far) if label else ():
            bag[rng.integers(size), j] += 1.5 * gain[j]
        bags.append(rng.permutation(bag))
    return bags, y


def pooled(bags: Sequence[np.ndarray]) -> np.ndarray:
    return np.array([np.concatenate([bag.mean(axis=0), bag.max(axis=0)]) for bag in bags])


def baseline(seed: int) -> ClassifierMixin:
    return make_pipeline(FunctionTransformer(pooled), StandardScaler(), LogisticRegression(C=0.03, max_iter=2000))


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
            for way, make in ways.items():
                for seed in range(repeats):
                    if (name, way, seed) not in rows:
                        bags, y = made_bags(seed, **MADE[name]) if name in MADE else load_bags(name)
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
    parser.add_argument("--sets", nargs="+", choices=[*BAG_FILES, *MADE], default=[*BAG_FILES, *MADE])
    parser.add_argument("--ways", nargs="+", choices=[*FIXED, *NESTED, "pooled"], default=["default", "pooled"])
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--options", nargs="*", default=[], metavar="NAME=VALUE", help="for every way")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "bags.csv")
    asked = parser.parse_args(arguments)
    options = parsed(asked.options)
    named = "".join(f" {pair}" for pair in asked.options)
    makes = {
        way: baseline
        if way == "pooled"
        else fixed(FIXED[way] | options)
        if way in FIXED
        else nested(NESTED[way], options)
        for way in asked.ways
    }
    run(asked.sets, {way + named: make for way, make in makes.items()}, asked.repeats, asked.output)


if __name__ == "__main__":
    main()
