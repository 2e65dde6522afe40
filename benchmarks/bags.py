"""`BagClassifier` on bags of vectors, ten times ten-fold: `python -m benchmarks.bags`.

Every option is fixed before the folds are made; scaling and landmarks are learnt inside the training folds.
"""

import argparse
import ast
import time
from collections.abc import Sequence

import numpy as np
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.model_selection import StratifiedKFold

from benchmarks.datasets import _folder
from keytokens import BagClassifier

FILES = {"musk1": "musk1_bags.parquet", "protein": "protein_bags.parquet"}
VARIANTS = {
    "default": {},
    "linear": {"features": "linear"},
    "quadratic": {"features": "quadratic"},
    "tanh": {"head": "tanh"},
    "linear tanh": {"features": "linear", "head": "tanh"},
    "three starts": {"n_starts": 3},
    "balanced": {"class_weight": "balanced"},
    "not scaled": {"scale": False},
}


def load(name: str) -> tuple[list[np.ndarray], np.ndarray]:
    """The bags and labels of one set: rows with columns label, bag, x0, x1, ..."""
    from pyarrow import parquet

    table = parquet.read_table(_folder() / FILES[name])
    features = [column for column in table.column_names if column not in ("label", "bag")]
    rows = np.column_stack([table[column].to_numpy().astype(float) for column in features])
    bag, label = table["bag"].to_numpy(), table["label"].to_numpy()
    members = [np.flatnonzero(bag == number) for number in np.unique(bag)]
    return [rows[each] for each in members], np.array([label[each[0]] for each in members])


def held_out(bags: Sequence[np.ndarray], y: np.ndarray, options: dict, seed: int) -> np.ndarray:
    """The logit of every bag from a model that has not seen it."""
    logits = np.zeros(len(y))
    for train, test in StratifiedKFold(10, shuffle=True, random_state=seed).split(y, y):
        model = BagClassifier(random_state=seed, **options).fit([bags[i] for i in train], y[train])
        logits[test] = model.decision_function([bags[i] for i in test])
    return logits


def figures(bags: Sequence[np.ndarray], y: np.ndarray, options: dict, repeats: int) -> dict[str, float]:
    """Means over the repeats; `spread` is the standard deviation of the accuracy over them."""
    start = time.perf_counter()
    runs = [held_out(bags, y, options, seed) for seed in range(repeats)]
    seconds = (time.perf_counter() - start) / repeats
    accuracy = [np.mean((logits > 0) == y) for logits in runs]
    return {
        "accuracy": float(np.mean(accuracy)),
        "spread": float(np.std(accuracy)),
        "auc": float(np.mean([roc_auc_score(y, logits) for logits in runs])),
        "balanced": float(np.mean([balanced_accuracy_score(y, logits > 0) for logits in runs])),
        "seconds": seconds,
    }


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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", choices=FILES, default=list(FILES))
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--options", nargs="*", default=[], metavar="NAME=VALUE", help="for every variant")
    chosen = parser.parse_args(arguments)
    print(f"{'set':9}{'variant':14}{'accuracy':>10}{'spread':>8}{'AUC':>8}{'balanced':>10}{'s a 10-fold':>13}")
    for name in chosen.sets:
        bags, y = load(name)
        for variant in chosen.variants:
            found = figures(bags, y, VARIANTS[variant] | parsed(chosen.options), chosen.repeats)
            quality = f"{found['accuracy']:10.4f}{found['spread']:8.4f}{found['auc']:8.4f}{found['balanced']:10.4f}"
            print(f"{name:9}{variant:14}{quality}{found['seconds']:13.2f}", flush=True)


if __name__ == "__main__":
    main()
