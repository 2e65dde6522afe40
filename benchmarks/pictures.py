"""The pictures of the page, as SVG; each function draws one question and is given records only."""

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.runs import NAMES, OURS, Record, Spread, by_contender, distinct, spread, where

COLOURS = {  # told apart by every eye
    "keytokens": "#0072b2",
    "keytokens_bigrams": "#56b4e9",
    "fasttext": "#d55e00",
    "fasttext_5": "#d55e00",
    "tfidf_lr": "#009e73",
    "nbsvm": "#777777",
}
TITLES = {"imdb": "IMDB", "twenty": "20 classes"}
MARKS = {"keytokens": "o", "keytokens_bigrams": "D", "fasttext": "s", "fasttext_5": "s", "tfidf_lr": "^", "nbsvm": "v"}


def pyplot() -> Any:
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    matplotlib.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "keytokens", "font.size": 10}
    return pyplot


def saved(figure: Any, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None, dpi=120)
    pyplot().close(figure)
    return path


def accuracy(records: Sequence[Record], path: Path) -> Path:
    """One panel a set: a dot a fold, a line at the mean."""
    sets = distinct(records, "set")
    figure, panels = pyplot().subplots(1, len(sets), figsize=(3 * len(sets), 3.4), layout="constrained", squeeze=False)
    for panel, name in zip(panels[0], sets, strict=True):
        rows = [
            (who, way) for who in NAMES for way in ("standard", "tuned")
            if where(records, set=name, contender=who, way=way)
        ]  # fmt: skip
        for place, (who, way) in enumerate(rows):
            scores = [100 * float(each["accuracy"]) for each in where(records, set=name, contender=who, way=way)]
            panel.plot(scores, [place] * len(scores), MARKS[who], color=COLOURS[who], alpha=0.5, markersize=5)
            panel.plot([sum(scores) / len(scores)] * 2, [place - 0.3, place + 0.3], color=COLOURS[who], linewidth=2)
        labels = [NAMES[who] + (", tuned" if way == "tuned" else "") for who, way in rows]
        panel.set(title=str(name), xlabel="accuracy, %", yticks=range(len(rows)), ylim=(len(rows) - 0.5, -0.5))
        panel.set_yticklabels(labels if panel is panels[0][0] else [])
        panel.grid(axis="x", color="#dddddd", linewidth=0.6)
    return saved(figure, path)


def speed(records: Sequence[Record], path: Path) -> Path:
    """Seconds of fit and prediction, one row of panels a set."""
    sets = distinct(records, "set")
    figures = (("fit_s", "raw text to model, seconds"), ("predict_s", "predicting all, seconds"))
    size = (10, 0.6 + 1.9 * len(sets))
    figure, panels = pyplot().subplots(len(sets), 2, figsize=size, layout="constrained", squeeze=False)
    for row, name in zip(panels, sets, strict=True):
        for panel, (what, title) in zip(row, figures, strict=True):
            found = by_contender(where(records, set=name), what)
            middles = [each.median for each in found.values()]
            ends = [
                [x.median - min(x.values) for x in found.values()],
                [max(x.values) - x.median for x in found.values()],
            ]
            panel.barh(range(len(found)), middles, color=[COLOURS[who] for who in found], height=0.6)
            panel.errorbar(middles, range(len(found)), xerr=ends, fmt="none", ecolor="black", capsize=3)
            for place, each in enumerate(found.values()):
                panel.annotate(f"{each.median:.3g}", (max(each.values), place), (6, -4), textcoords="offset points")
            panel.set(
                title=f"{TITLES.get(str(name), name)}: {title}", yticks=range(len(found)), ylim=(len(found) - 0.5, -0.5)
            )
            panel.set_yticklabels([NAMES[who] for who in found])
            panel.margins(x=0.15)
    return saved(figure, path)


def growth(records: Sequence[Record], path: Path) -> Path:
    """Time and memory against the number of texts (above) and against their length (below)."""
    figures = (
        ("fit_s", "fit, seconds"),
        ("predict_s", "prediction, seconds"),
        ("fit_mb", "peak memory of the fit, MB"),
    )
    cases = (("short", "documents", "texts of about 24 words"), ("length", "words", "words in each of 1,000 texts"))
    figure, panels = pyplot().subplots(2, 3, figsize=(12, 7), layout="constrained")
    for row, (name, axis, said) in zip(panels, cases, strict=True):
        for panel, (what, title) in zip(row, figures, strict=True):
            for who in [who for who in NAMES if where(records, set=name, contender=who)]:
                curve(panel, where(records, set=name, contender=who), axis, what, who)
            panel.set(xscale="log", yscale="log", xlabel=said, title=title)
            panel.grid(which="major", color="#dddddd", linewidth=0.6)
    figure.legend(*panels[0][0].get_legend_handles_labels(), frameon=False, ncols=5, loc="outside upper center")
    return saved(figure, path)


def curve(panel: Any, records: Sequence[Record], axis: str, what: str, who: str) -> None:
    """Medians, with bars from the least to the largest run."""
    found = {float(x): spread(where(records, **{axis: x}), what) for x in distinct(records, axis)}
    points = {x: each for x, each in found.items() if each and each.median > 0}
    low = [each.median - min(each.values) for each in points.values()]
    high = [max(each.values) - each.median for each in points.values()]
    middle = [each.median for each in points.values()]
    look = {"color": COLOURS[who], "marker": MARKS[who], "markersize": 5, "capsize": 3, "label": NAMES[who]}
    panel.errorbar(list(points), middle, yerr=[low, high], **look)


def explaining(records: Sequence[Record], path: Path) -> Path:
    """The time of one explanation, on a logarithmic scale."""
    titles = {
        "keytokens": "keytokens",
        "keytokens_many": "keytokens, many at a time",
        "keytokens_words": "keytokens, with sets of words",
        "lime": "LIME",
        "shap": "SHAP",
    }
    found: dict[str, Spread] = {}
    for method in titles:
        each = spread(where(records, method=method), "seconds")
        if each:
            found[method] = each
    figure, panel = pyplot().subplots(figsize=(8, 0.9 + 0.5 * len(found)), layout="constrained")
    for place, (method, each) in enumerate(found.items()):
        colour = COLOURS["keytokens"] if method.startswith(OURS[0]) else "#777777"
        milliseconds = [1000 * x for x in each.values]
        panel.plot(milliseconds, [place] * len(milliseconds), "|", color=colour, alpha=0.3, markersize=12)
        panel.plot([1000 * each.median], [place], "o", color=colour)
    panel.set(
        xscale="log", xlabel="milliseconds for one review", yticks=range(len(found)), ylim=(len(found) - 0.5, -0.5)
    )
    panel.set_yticklabels([titles[method] for method in found])
    panel.grid(axis="x", color="#dddddd", linewidth=0.6)
    return saved(figure, path)


def frontier(records: Sequence[Record], path: Path) -> Path:
    """Accuracy against the sizes of the sufficient and of the flip set as brevity grows, one curve a set of texts."""
    figure, panels = pyplot().subplots(1, 2, figsize=(9, 4.2), sharey=True, layout="constrained")
    for panel, size, title in zip(panels, ("sufficient", "flips"), ("sufficient", "flip"), strict=True):
        for name in distinct(records, "set"):
            own = where(records, set=name)
            points = [
                (value, _mean(where(own, brevity=value), size), 100 * _mean(where(own, brevity=value), "accuracy"))
                for value in distinct(own, "brevity")
            ]
            panel.plot([x for _, x, _ in points], [y for *_, y in points], "o-", label=str(name), markersize=4)
            for value, x, y in (points[0], points[-1]):
                panel.annotate(f"{value:g}", (x, y), (4, 4), textcoords="offset points", fontsize=7)
        panel.set(xlabel=f"median size of the {title} set, tokens (numbers: brevity)", xlim=(0, None))
        panel.grid(color="#dddddd", linewidth=0.6)
    panels[0].set_ylabel("accuracy, %")
    panels[1].legend(frameon=False, fontsize=9)
    return saved(figure, path)


def _mean(records: Sequence[Record], column: str) -> float:
    return statistics.mean(float(each[column]) for each in records if each[column] != "")
