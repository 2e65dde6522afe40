"""Five-fold accuracy of every contender on every set, the peers also tuned: `python -m benchmarks.accuracy`.

Two folds run side by side, each in a process of its own. `results/accuracy.csv` has a line for each set, fold,
contender and way (usual options, or chosen inside the training part, see `tuning`); `results/tuning.csv` has all that
was tried.
"""

import json
import statistics
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import product
from pathlib import Path

import numpy as np
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold

from benchmarks import tuning
from benchmarks.datasets import FILES, load
from benchmarks.explaining import mixed
from benchmarks.measure import THREADS, in_fresh_process, options_of, table, timed, use_processors, write_csv
from benchmarks.peers import CONTENDERS, OURS, KeyTokens, distinct, installed

FOLDS = 5
PEERS = ["fasttext", "tfidf_lr", "nbsvm"]
EXPLAINED = 500  # held-out texts of each fold whose sufficient set is measured
BINS = 15  # of equal width, for the calibration error
QUICK = 400  # texts of each set

Record = dict[str, object]
Found = dict[str, list[Record]]  # "accuracy" and "tuning": one record a line


def calibration_error(probabilities: np.ndarray, is_right: np.ndarray) -> float:
    """Expected calibration error: the mean gap between confidence and accuracy, over bins of confidence."""
    confidence = probabilities.max(axis=1)
    which = np.minimum((confidence * BINS).astype(int), BINS - 1)
    gaps = np.bincount(which, weights=confidence - is_right, minlength=BINS)
    return float(np.abs(gaps).sum() / len(confidence))


def quality(contender: KeyTokens, texts: Sequence[str], labels: np.ndarray) -> dict[str, float]:
    """Accuracy, and what only keytokens is asked for: how good its probabilities are, how small its explanations."""
    model = contender.model
    probabilities = model.predict_proba(texts)
    is_right = model.classes_[probabilities.argmax(axis=1)] == labels
    return {
        "accuracy": float(np.mean(is_right)),
        "log_loss": log_loss(labels, probabilities, labels=model.classes_),
        "calibration_error": calibration_error(probabilities, is_right),
        "sufficient_size": statistics.median(model.explain(text).sufficient.size for text in texts[:EXPLAINED]),
    }


def fold_of(texts: Sequence[str], labels: Sequence[int], number: int) -> tuning.Fold:
    """One of five stratified folds, the same for every contender."""
    y = np.asarray(labels)
    train, test = list(StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(y, y))[number]
    return tuning.Fold([texts[k] for k in train], y[train], [texts[k] for k in test], y[test])


def judged(fold: tuning.Fold, contenders: Sequence[str]) -> Found:
    """Every contender on one fold."""
    found: Found = {"accuracy": [], "tuning": []}
    for name in [each for each in contenders if each in OURS]:
        model = CONTENDERS[name]().fit(fold.train, fold.y_train)
        found["accuracy"].append(
            {"contender": name, "way": "standard", "options": "defaults", **quality(model, fold.test, fold.y_test)}
        )
    counted = tuning.Counted(fold) if {"tfidf_lr", "nbsvm"} & set(contenders) else None
    ways = {"fasttext": lambda: tuning.fasttext(fold)}
    if counted:
        ways |= {"tfidf_lr": counted.logistic, "nbsvm": counted.nbsvm}
    for name in [each for each in contenders if each in ways]:
        _, spent, verdict = timed(ways[name])
        print(f"{name}: {spent:.0f} s of one processor", file=sys.stderr)
        for way, (options, score) in (("standard", verdict.standard), ("tuned", verdict.tuned)):
            found["accuracy"].append(
                {"contender": name, "way": way, "options": tuning.said(options), "accuracy": score}
            )
        found["tuning"] += [
            {"contender": name, "options": tuning.said(options), "accuracy": score} for options, score in verdict.trials
        ]
    return found


def one(name: str, number: int, contenders: Sequence[str], documents: int | None) -> Found:
    """What the process of one fold does."""
    texts, labels = load(name)
    if documents:
        texts, labels = mixed(texts, labels, documents)
    found = judged(fold_of(texts, labels, number), contenders)
    return {part: [{"set": name, "fold": number, **record} for record in records] for part, records in found.items()}


def run(jobs: Sequence[tuple[str, int]], contenders: Sequence[str], quick: bool, output: Path) -> Found:
    """The folds, two at a time; the files are written anew after each, so that a stopped run leaves what it found."""
    together: Found = {"accuracy": [], "tuning": []}
    start = time.perf_counter()
    with ThreadPoolExecutor(THREADS) as pool:
        extra = ["--contenders", *contenders, *(["--quick"] if quick else [])]
        arguments = {job: ["--one", job[0], str(job[1]), *extra] for job in jobs}
        waiting = [pool.submit(in_fresh_process, given, "benchmarks.accuracy", 1) for given in arguments.values()]
        for done, future in enumerate(as_completed(waiting), start=1):
            for part, records in future.result().items():
                together[part] = sorted(together[part] + records, key=lambda record: (record["set"], record["fold"]))
                if together[part]:
                    write_csv(output / f"{part}.csv", together[part])
            print(f"{done} of {len(jobs)} folds after {time.perf_counter() - start:.0f} s", flush=True)
    return together


def summary(records: Sequence[Record]) -> str:
    """Mean and standard deviation over the folds."""
    rows: dict[tuple[object, ...], list[float]] = {}
    for record in records:
        rows.setdefault((record["set"], record["contender"], record["way"]), []).append(float(record["accuracy"]))
    lines = [
        [*map(str, key), f"{statistics.mean(scores):.4f} ± {statistics.stdev(scores) if len(scores) > 1 else 0:.4f}"]
        for key, scores in rows.items()
    ]
    return table(["set", "contender", "options", "accuracy"], lines)


def main(arguments: Sequence[str] | None = None) -> None:
    everyone = [*OURS, *PEERS]
    parser = options_of(__doc__)
    parser.add_argument("--sets", nargs="+", choices=FILES, default=list(FILES))
    parser.add_argument("--contenders", nargs="+", choices=everyone, default=everyone)
    parser.add_argument("--quick", action="store_true", help=f"one fold of {QUICK} texts of each set")
    parser.add_argument("--one", nargs=2, metavar=("SET", "FOLD"), help="one fold, as JSON: what a child does")
    options = parser.parse_args(arguments)
    if options.one:
        name, number = options.one
        print(json.dumps(one(name, int(number), options.contenders, QUICK if options.quick else None)))
        return
    use_processors()
    contenders = distinct(installed(options.contenders))
    jobs = list(product(options.sets, range(1 if options.quick else FOLDS)))
    print(summary(run(jobs, contenders, options.quick, options.output)["accuracy"]))


if __name__ == "__main__":
    main()
