"""How many tokens decide against how accurate the model is, as `brevity` grows: `python -m benchmarks.frontier`.

Five folds of every set; the sizes are medians over the first held-out texts of each fold, averaged over the folds.
`results/frontier.csv` has a line for each set, value of `brevity` and fold.
"""

import statistics
from collections.abc import Iterator, Sequence

import numpy as np
from sklearn.model_selection import StratifiedKFold

from benchmarks.datasets import FILES, load
from benchmarks.measure import options_of, write_csv
from keytokens import KeyTokenClassifier

VALUES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
EXPLAINED = 400


def records(name: str, values: Sequence[float], folds: int) -> Iterator[dict[str, object]]:
    texts, labels = load(name)
    documents, y = np.array(texts, dtype=object), np.asarray(labels)
    splits = list(StratifiedKFold(5, shuffle=True, random_state=0).split(documents, y))[:folds]
    for value in values:
        for number, (train, test) in enumerate(splits):
            model = KeyTokenClassifier(brevity=value).fit(documents[train].tolist(), y[train])
            held_out = documents[test].tolist()
            explained = list(model.explain_many(held_out[:EXPLAINED]))
            flips = [each.flip.size for each in explained if each.flip is not None]
            yield {
                "set": name,
                "brevity": value,
                "fold": number,
                "accuracy": float(np.mean(model.predict(held_out) == y[test])),
                "sufficient": statistics.median(each.sufficient.size for each in explained),
                "flips": statistics.median(flips) if flips else "",
            }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = options_of(__doc__)
    parser.add_argument("--sets", nargs="+", choices=FILES, default=list(FILES))
    parser.add_argument("--values", nargs="+", type=float, default=list(VALUES))
    parser.add_argument("--folds", type=int, default=5)
    options = parser.parse_args(arguments)
    found: list[dict[str, object]] = []
    for name in options.sets:
        for record in records(name, options.values, options.folds):
            found.append(record)
            print(", ".join(f"{key} {value}" for key, value in record.items()), flush=True)
    write_csv(options.output / "frontier.csv", found)


if __name__ == "__main__":
    main()
