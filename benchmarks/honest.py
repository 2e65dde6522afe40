"""The score that a cross-fitted model shows of its own training, beside the truth: `python -m benchmarks.honest`.

For each set four fifths are trained on; the other fifth is unseen. Texts that are in both are left out of the truth.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

import keytokens as kt
from benchmarks.datasets import folder
from benchmarks.measure import table, timed
from keytokens.io import read_table

SETS = ("messages", "questions", "ag_news", "yelp_reviews", "yelp_sentences", "phrases", "imdb", "movie_rationales")
HEAD = ["set", "kind", "training", "shown", "unseen", "unseen - shown", "error before", "error after", "fits more"]


def load(name: str) -> tuple[list[str], list[object]]:
    """Texts and labels of one set."""
    path = folder() / f"{name}_train.parquet"
    columns = read_table(str(path if path.exists() else folder() / f"{name}.parquet")).columns
    return columns["text"], columns["label"]


def measured(texts: Sequence[str], labels: Sequence[object], seed: int = 0) -> dict[str, object]:
    """Three scores, the calibration error before and after, and the cost of cross-fitting in plain fits."""
    order = np.random.default_rng(seed).permutation(len(texts)).tolist()
    own, new = order[: len(order) * 4 // 5], order[len(order) * 4 // 5 :]
    seen, given = [texts[i] for i in own], [labels[i] for i in own]
    kt.KeyTokenClassifier(threads=1).fit(seen[:200], given[:200])  # what loads on first use is loaded
    plain_seconds = timed(lambda: kt.KeyTokenClassifier(threads=1).fit(seen, given))[1]
    _, seconds, clf = timed(lambda: kt.KeyTokenClassifier(threads=1, cross_fit=5).fit(seen, given))
    shown, answers = clf.evaluate(seen, given), clf.predict([texts[i] for i in new])
    known = set(seen)
    right = [answer == labels[i] for answer, i in zip(answers.tolist(), new, strict=True) if texts[i] not in known]
    unseen, kept = float(np.mean(right)), clf.unseen_
    clf.unseen_ = replace(kept, scale=1.0, noise=0.0)
    before = clf.evaluate().calibration["error"]
    return {
        "kind": shown.kind,
        "training": float(np.mean(clf.predict(seen) == np.array(given))),
        "shown": shown.accuracy,
        "unseen": unseen,
        "difference": 100 * (unseen - shown.accuracy),
        "before": before,
        "after": shown.calibration["error"],
        "fits": seconds / plain_seconds - 1,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    formats = ("{}", "{:.4f}", "{:.4f}", "{:.4f}", "{:+.2f}", "{:.4f}", "{:.4f}", "{:.2f}")
    rows = []
    for name in parser.parse_args(arguments).sets:
        found = measured(*load(name)).values()
        rows.append([name, *(how.format(value) for how, value in zip(formats, found, strict=True))])
    print(table(HEAD, rows))


if __name__ == "__main__":
    main()
