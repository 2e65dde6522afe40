"""What was asked, what was measured, and whether it is enough: each bar is judged by its median."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.runs import NAMES, OURS, Record, Spread, bigrams_of, distinct, ratios, spread, where

Runs = Mapping[str, Sequence[Record]]

MILLION = 1_000_000
LESS_TEXT = 6  # times the raw text that a fit may take
PRODUCT = 2.5  # times the reading that an evaluation may take
EXPLAIN = 1_000  # times faster than LIME and SHAP
AHEAD = ("imdb",)  # of every peer; elsewhere a tenth of a point counts as level


@dataclass(frozen=True)
class Bar:
    """`at_most` says on which side of the bar one must be."""

    what: str
    bar: float
    measured: Spread | None
    at_most: bool = True
    asked: str = ""
    form: str = ""

    @property
    def met(self) -> bool | None:
        if self.measured is None:
            return None
        return self.measured.median <= self.bar if self.at_most else self.measured.median >= self.bar

    def cells(self) -> list[str]:
        asked = self.asked or f"at {'most' if self.at_most else 'least'} {self.bar:,g}"
        said = {True: "met", False: "**MISSED**", None: "not measured"}[self.met]
        return [self.what, asked, self.form or ("–" if self.measured is None else str(self.measured)), said]


def all_bars(runs: Runs) -> list[Bar]:
    return [*accuracy_bars(runs), *time_bars(runs), *explain_bars(runs), *evaluation_bars(runs), *memory_bars(runs)]


def accuracy_bars(runs: Runs) -> Iterator[Bar]:
    for name in distinct(runs["accuracy"], "set"):
        gaps = paired_gaps(where(runs["accuracy"], set=name))
        if gaps:
            peer, gap = min(gaps.items(), key=lambda each: each[1].mean)
            best = NAMES[peer[0]] + (", tuned" if peer[1] == "tuned" else "")
            form = f"{100 * gap.mean:+.2f} points, ahead in {gap.ahead} of {len(gap.values)} folds ({best})"
            mean = Spread((gap.mean,))
            least, asked = (0.0, "at least 0") if name in AHEAD else (-0.001, "at least −0.1 points")
            yield Bar(f"accuracy on {name}, less that of the best peer", least, mean, False, asked, form)


@dataclass(frozen=True)
class Gap:
    """Our accuracy less that of a peer, fold by fold."""

    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        return sum(self.values) / len(self.values)

    @property
    def ahead(self) -> int:
        return sum(value > 0 for value in self.values)


def paired_gaps(records: Sequence[Record]) -> dict[tuple[str, str], Gap]:
    """The gap to each peer and way on one set."""
    ours = {record["fold"]: float(record["accuracy"]) for record in where(records, contender="keytokens")}
    found: dict[tuple[str, str], dict[float | str, float]] = {}
    for record in records:
        if record["contender"] not in OURS and record["fold"] in ours:
            key = str(record["contender"]), str(record["way"])
            found.setdefault(key, {})[record["fold"]] = ours[record["fold"]] - float(record["accuracy"])
    return {key: Gap(tuple(gaps.values())) for key, gaps in found.items()}


def time_bars(runs: Runs) -> Iterator[Bar]:
    imdb, twenty = (where(runs["speed"], set=name) for name in ("imdb", "twenty"))
    million = where(runs["scaling"], set="short", documents=MILLION)
    for what, records, bar in (
        ("raw text to bigram model, IMDB", imdb, 0.4),
        ("raw text to bigram model, a million short texts", million, 0.6),
        ("raw text to bigram model, 20 classes", twenty, 0.6),
    ):
        yield Bar(f"{what}, in times of fastText", bar, ratios(records, "fit_s", bigrams_of(records), "fasttext_5"))
    faster = ratios(imdb, "predict_s", "fasttext_5", bigrams_of(imdb))
    yield Bar("bulk prediction from raw text, IMDB, times as fast as fastText", 1.5, faster, False)


def explain_bars(runs: Runs) -> Iterator[Bar]:
    for method, name in (("lime", "LIME"), ("shap", "SHAP's partition explainer")):
        for ours, how in (("keytokens", "one text at a time"), ("keytokens_many", "many texts")):
            times = explain_ratios(runs["explain"], method, ours)
            yield Bar(f"explanation with its sets, {how}, times as fast as {name}", EXPLAIN, times, False)


def explain_ratios(records: Sequence[Record], method: str, ours: str = "keytokens") -> Spread | None:
    """Text by text: its time with the other method over the median of ours."""
    found = []
    for record in where(records, method=method):
        mine = spread(where(records, method=ours, text=record["text"]), "seconds")
        if mine:
            found.append(float(record["seconds"]) / mine.median)
    return Spread(tuple(found)) if found else None


def evaluation_bars(runs: Runs) -> Iterator[Bar]:
    for threads in distinct(runs["evaluation"], "threads"):
        records = where(runs["evaluation"], threads=threads)
        found = Spread(tuple(float(each["evaluate_s"]) / float(each["read_s"]) for each in records))
        what = f"loss and gradient, in times of reading its arrays, {threads:g} thread{'s' * (threads != 1)}"
        yield Bar(what, PRODUCT, found)


def memory_bars(runs: Runs) -> Iterator[Bar]:
    sets = {
        "IMDB": where(runs["speed"], set="imdb"),
        "20 classes": where(runs["speed"], set="twenty"),
        "a million short texts": where(runs["scaling"], set="short", documents=MILLION),
    }
    for what, records in sets.items():
        for how, contender in (("", "keytokens"), (" of bigrams", bigrams_of(records))):
            mine = where(records, contender=contender)
            used = tuple(float(each["fit_mb"]) / float(each["text_mb"]) for each in mine)
            name = f"peak memory of a fit{how}, in sizes of the raw text, {what}"
            yield Bar(name, LESS_TEXT, Spread(used) if used else None)
