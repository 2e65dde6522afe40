"""The CSV files as records, and what the page needs of them: medians, spreads, ratios round by round."""

import csv
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

Record = Mapping[str, float | str]

NAMES = {
    "keytokens": "keytokens",
    "keytokens_bigrams": "keytokens (bigrams)",
    "fasttext": "fastText",
    "fasttext_5": "fastText",
    "tfidf_lr": "TF-IDF + LR",
    "nbsvm": "NB-SVM",
    "lime": "LIME",
    "shap": "SHAP",
}
OURS = ("keytokens", "keytokens_bigrams")


@dataclass(frozen=True)
class Spread:
    """Some measurements of one thing.

    >>> print(Spread((3.0, 1.0, 2.0)))
    2.00 (1.00 to 3.00)
    """

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    def __str__(self) -> str:
        if len(self.values) == 1:
            return figure(self.median)
        return f"{figure(self.median)} ({figure(min(self.values))} to {figure(max(self.values))})"


def figure(x: float) -> str:
    """Three digits that count, thousands apart.

    >>> [figure(x) for x in (12345.6, 42.31, 1.234, 0.01234, 0.0)]
    ['12,346', '42.3', '1.23', '0.0123', '0']
    """
    if x == 0 or abs(x) >= 100:
        return f"{x:,.0f}"
    places = 2 if abs(x) >= 1 else 3
    if abs(x) >= 10:
        places = 1
    return f"{x:.{places}f}" if abs(x) >= 0.1 else f"{x:.3g}"


def read(path: Path) -> list[Record]:
    """The lines of a file, numbers as numbers, without what is empty; nothing if there is no such file."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [{name: number(x) for name, x in line.items() if x} for line in csv.DictReader(file)]


def number(x: str) -> float | str:
    try:
        return float(x)
    except ValueError:
        return x


def where(records: Iterable[Record], **wanted: float | str) -> list[Record]:
    """Those records that have all these values."""
    return [record for record in records if all(record.get(name) == value for name, value in wanted.items())]


def distinct(records: Iterable[Record], name: str) -> list[float | str]:
    """The values of one column, in the order in which they come."""
    return list(dict.fromkeys(record[name] for record in records if name in record))


def spread(records: Iterable[Record], name: str) -> Spread | None:
    found = tuple(float(record[name]) for record in records if name in record)
    return Spread(found) if found else None


def by_contender(records: Sequence[Record], name: str) -> dict[str, Spread]:
    """One spread a contender, where there are measurements."""
    everyone = {str(who): spread(where(records, contender=who), name) for who in distinct(records, "contender")}
    return {who: each for who, each in everyone.items() if each}


def ratios(records: Sequence[Record], name: str, ours: str, theirs: str) -> Spread | None:
    """Ours divided by theirs, round by round: both met the same busy minutes."""
    mine, yours = (
        {record["round"]: float(record[name]) for record in where(records, contender=who) if name in record}
        for who in (ours, theirs)
    )
    shared = [number for number in mine if number in yours]
    return Spread(tuple(mine[number] / yours[number] for number in shared)) if shared else None


def bigrams_of(records: Sequence[Record]) -> str:
    """The name of our bigram model: its own where the defaults are something else."""
    return "keytokens_bigrams" if where(records, contender="keytokens_bigrams") else "keytokens"
