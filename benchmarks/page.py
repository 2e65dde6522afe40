"""The page of benchmarks from the CSV files: `python -m benchmarks.page` writes docs/benchmarks.md and its pictures.

Every number and every sentence about a number comes from the files; nothing is measured here.
"""

import argparse
import os
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks import pictures
from benchmarks.bars import MILLION, Gap, Runs, all_bars, explain_ratios, paired_gaps
from benchmarks.measure import RESULTS, table
from benchmarks.runs import (
    NAMES,
    OURS,
    Record,
    bigrams_of,
    by_contender,
    distinct,
    figure,
    ratios,
    read,
    spread,
    where,
)
from benchmarks.scaling import REPEATS as SCALING_REPEATS
from benchmarks.scaling import SLOW_DOCUMENTS, SLOW_LENGTH, SLOW_REPEATS
from benchmarks.speed import REPEATS as SPEED_REPEATS
from benchmarks.tuning import BETAS, LR_C, SVM_C

DOCS = RESULTS.parents[1] / "docs"
FILES = ("machine", "speed", "scaling", "explain", "evaluation", "accuracy", "tuning")
EXTRA = {
    "frontier": "Accuracy against brevity",
    "small": "Small models",
    "autotune": "Options chosen by `autotune`",
    "tried": "What was tried for accuracy",
}
BY_HAND = ("tried",)
REPEATED = ("fold", "round", "seed")  # columns that number repetitions
SETS = {"imdb": "IMDB, {} reviews", "twenty": "20 classes, {} texts made by lot"}
COSTS = {  # column: what it is called, and in what a peer that has less of it is better
    "fit_s": ("raw text to fitted model, s", "learns faster"),
    "predict_s": ("prediction of all texts, s", "predicts all texts faster"),
    "predict_one_ms": ("prediction of one text, ms", "predicts one text faster"),
    "fit_mb": ("peak memory of the fit, MB", "needs less memory to learn"),
    "whole_size_mb": ("model on disk, MB", "has a smaller model"),
    "small_size_mb": ("its compressed form, MB", "has a smaller compressed model"),
}
COMPARED = [  # a peer's column, ours, and the sentence if the first is less
    *((column, column, wins) for column, (_, wins) in COSTS.items()),
    ("fit_alone_s", "fit_s", "without writing its file learns faster than keytokens from raw text"),
    ("predict_alone_s", "predict_s", "with its lines ready predicts faster than keytokens from raw text"),
]
ALONE = {
    "fit_alone_s": "fit of fastText when its file is written, s",
    "predict_alone_s": "prediction of fastText when its lines are ready, s",
}


def _listed(values: Sequence[float]) -> str:
    """Numbers as a sentence has them.

    >>> _listed((0.1, 1.0, 10.0))
    '0.1, 1 or 10'
    """
    *most, last = (f"{value:g}" for value in values)
    return f"{', '.join(most)} or {last}"


def files(results: Path) -> dict[str, Path]:
    """Where each table is; what is written by hand lies beside the folder of results."""
    return {name: (results.parent if name in BY_HAND else results) / f"{name}.csv" for name in (*FILES, *EXTRA)}


def loaded(results: Path) -> Runs:
    return {name: read(path) for name, path in files(results).items()}


def page(runs: Runs, drawn: Mapping[str, str], raw: Mapping[str, str]) -> str:
    """The whole page; `drawn` and `raw` say where pictures and CSV files are, seen from the page."""
    parts = [
        "# Benchmarks",
        "keytokens beside fastText, TF-IDF with logistic regression, NB-SVM, LIME and SHAP: the same texts, the same "
        "cores, one part after another. This page is written by `make bench` from the CSV files; only the record of "
        "what was tried for accuracy is kept by hand. The defaults of keytokens were chosen on folds of these four "
        "sets, the options of the peers inside each training fold: differences of a tenth of a point say nothing.",
        machine(runs["machine"]),
        "## Asked and measured",
        "A bar is judged by the median; in brackets the least and the largest run. Ratios are taken round by round.",
        table(["", "asked", "measured", ""], [bar.cells() for bar in all_bars(runs)]),
        "## Where a peer wins",
        "\n".join(f"- {sentence}" for sentence in peers_win(runs)) or "Nowhere in this run.",
        *accuracy(runs, drawn),
        *speed(runs, drawn),
        *growth(runs, drawn),
        *explaining(runs, drawn),
        *evaluation(runs),
        *extras(runs, drawn),
        "## How it was measured",
        METHOD,
        "## Raw numbers",
        ", ".join(f"[{name}.csv]({path})" for name, path in raw.items()),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


METHOD = f"""\
```sh
export KEYTOKENS_DATA=/folder/with/the/parquet/files
make bench         # all of this page
make bench-quick   # the same in a few minutes on a few texts, into build/: figures that mean nothing
```

- Times and memory: every run is a process of its own, pinned to two cores, and the contenders take turns. Imports and
  reading the data are not counted. keytokens and fastText run {SPEED_REPEATS} times ({SCALING_REPEATS} times where the
  number or the length of texts grows), the contenders of scikit-learn {SLOW_REPEATS} times.
- fastText: words in lower case with spaces between them, bigrams, dim 10, lr 0.5, 2,000,000 buckets, two threads. Times
  are those of 5 epochs. It learns from a file, so making that file counts, as does making lines out of texts when it
  predicts; what it takes without that is shown too.
- TF-IDF with logistic regression: uni- and bigrams in two texts or more, sublinear, C = 10. NB-SVM: presence of the
  same tokens, C = 1, interpolation 0.25, one model a class.
- keytokens: its defaults, not tuned to these sets.
- Tuned peers: chosen on a fifth of each training fold that is set aside, then fitted to the whole training fold.
  fastText: lr 0.1, 0.5 or 1, then n-grams up to 1, 2 or 3 words, then 5 or 25 epochs, each with the best so far, or the
  usual options.
  Logistic regression: C of {_listed(LR_C)}. NB-SVM: C of {_listed(SVM_C)}, interpolation {_listed(BETAS)}. A choice
  made on a fifth of the texts can turn out worse than the usual one.
- fastText with usual options has 25 epochs below 20,000 texts where accuracy is measured, and one thread, so that a run
  can be repeated.
- Memory of a fit: the largest resident size during the fit less the size before it, which holds libraries and texts.
- Texts made by lot: words drawn independently from a Zipf law over 100,000 made-up words, a tenth of them from words of
  the class. Pairs of words recur less often than in language.
- The contenders of scikit-learn stop at {SLOW_DOCUMENTS:,} short texts, and at 1,000 texts of {SLOW_LENGTH:,} words, to
  save time.
- LIME and SHAP are as they come (5,000 samples; at most 500 evaluations), on the same fitted keytokens model, which
  they ask in batches. They explain the first few of the reviews that keytokens explains.
- Sizes: a folder of keytokens, a pickle of scikit-learn, a `.bin` of fastText; compressed are `compressed(2_000_000)`
  and a `.ftz` with 100,000 features. Both lose something."""


def machine(records: Sequence[Record]) -> str:
    facts = {str(record["what"]): record["value"] for record in records}
    return table(["", ""], [[what, _plain(value)] for what, value in facts.items()]) if facts else ""


def _plain(value: float | str) -> str:
    return f"{value:g}" if isinstance(value, float) else value


def titled(name: str, records: Sequence[Record]) -> str:
    return SETS[name].format(f"{records[0]['documents']:,.0f}")


def costs(runs: Runs) -> Iterator[tuple[str, Sequence[Record]]]:
    """All cases in which contenders were timed on the same texts, with a name."""
    for name in SETS:
        records = where(runs["speed"], set=name)
        if records:
            yield titled(name, records), records
    for size in distinct(where(runs["scaling"], set="short"), "documents"):
        yield f"{size:,.0f} short texts", where(runs["scaling"], set="short", documents=size)
    for words in distinct(where(runs["scaling"], set="length"), "words"):
        yield f"1,000 texts of {words:,.0f} words", where(runs["scaling"], set="length", words=words)


def peers_win(runs: Runs) -> Iterator[str]:
    """One sentence for each peer and figure in which its median is better than ours, with all the cases."""
    won: dict[str, list[str]] = {}
    for title, records in costs(runs):
        ours = bigrams_of(records)
        for column, against, wins in COMPARED:
            mine, found = by_contender(records, against).get(ours), by_contender(records, column)
            for who, theirs in found.items():
                if mine and who not in OURS and theirs.median < mine.median:
                    unit = column.rsplit("_", 1)[1].replace("mb", "MB")
                    case = f"{title}: {figure(theirs.median)} against {figure(mine.median)} {unit}"
                    won.setdefault(f"{NAMES[who]} {wins}", []).append(case)
    for name in distinct(runs["accuracy"], "set"):
        for (who, way), gap in paired_gaps(where(runs["accuracy"], set=name)).items():
            if gap.mean < 0:
                key = f"{NAMES[who]} with {'its usual' if way == 'standard' else 'chosen'} options is right more often"
                won.setdefault(key, []).append(f"{name}: by {-100 * gap.mean:.2f} points")
    return (f"{sentence} ({'; '.join(cases)})." for sentence, cases in won.items())


def accuracy(runs: Runs, drawn: Mapping[str, str]) -> Iterator[str]:
    records = runs["accuracy"]
    if not records:
        return
    yield "## Accuracy"
    yield (
        "Percent right, mean and standard deviation over the same stratified folds; each peer with its usual options "
        "and with options chosen inside each training fold. In bold the best mean."
    )
    columns = [(w, way) for w in NAMES for way in ("standard", "tuned") if where(records, contender=w, way=way)]
    header = ["", *(NAMES[who] + (", tuned" if way == "tuned" else "") for who, way in columns)]
    yield table(header, [_scores(records, name, columns) for name in distinct(records, "set")])
    yield from _picture(drawn, "accuracy", "Accuracy of every fold")
    yield "keytokens less each peer, in points: mean and standard deviation of the differences fold by fold."
    yield _gaps(records)
    chosen = [
        [str(name), NAMES[str(who)], _most_common(where(records, set=name, contender=who, way="tuned"))]
        for name in distinct(records, "set")
        for who in distinct(where(records, way="tuned"), "contender")
    ]
    yield "The options that were chosen most often:"
    yield table(["", "", "options (folds)"], chosen)
    yield from _our_quality(records)


def _scores(records: Sequence[Record], name: float | str, columns: Sequence[tuple[str, str]]) -> list[str]:
    found = [
        [100 * float(each["accuracy"]) for each in where(records, set=name, contender=who, way=way)]
        for who, way in columns
    ]
    best = max(statistics.mean(scores) for scores in found if scores)
    cells = [f"{_mean(scores)} ± {_deviation(scores)}" if scores else "" for scores in found]
    marked = [
        f"**{cell}**" if scores and statistics.mean(scores) == best else cell
        for cell, scores in zip(cells, found, strict=True)
    ]
    return [str(name), *marked]


def _mean(scores: Sequence[float]) -> str:
    return f"{statistics.mean(scores):.2f}"


def _deviation(scores: Sequence[float]) -> str:
    return f"{statistics.stdev(scores) if len(scores) > 1 else 0:.2f}"


def _gaps(records: Sequence[Record]) -> str:
    by_set = {name: paired_gaps(where(records, set=name)) for name in distinct(records, "set")}
    peers = list(dict.fromkeys(key for gaps in by_set.values() for key in gaps))
    header = ["", *(f"less {NAMES[who]}{', tuned' if way == 'tuned' else ''}" for who, way in peers)]
    return table(header, [[str(name), *(_gap(gaps.get(key)) for key in peers)] for name, gaps in by_set.items()])


def _gap(gap: Gap | None) -> str:
    return f"{100 * gap.mean:+.2f} ± {_deviation([100 * x for x in gap.values])}" if gap else ""


def _most_common(records: Sequence[Record]) -> str:
    counts = Counter(str(record["options"]) for record in records)
    return "; ".join(f"`{options}` ({times})" for options, times in counts.most_common(2))


def _our_quality(records: Sequence[Record]) -> Iterator[str]:
    rows = []
    for name in distinct(records, "set"):
        mine = where(records, set=name, contender="keytokens")
        found = [spread(mine, column) for column in ("log_loss", "calibration_error", "sufficient_size")]
        if all(found):
            rows.append([str(name), *(figure(statistics.mean(each.values)) for each in found if each)])
    if rows:
        yield "What only keytokens is asked for, means over the folds:"
        yield table(["", "log loss", "calibration error", "median sufficient set, tokens"], rows)


def speed(runs: Runs, drawn: Mapping[str, str]) -> Iterator[str]:
    if not runs["speed"]:
        return
    yield "## Time, memory, size"
    yield "Medians, with the least and the largest run in brackets; in bold the least median."
    for name in SETS:
        records = where(runs["speed"], set=name)
        if records:
            raw = spread(records, "text_mb")
            yield f"### {titled(name, records)}" + (f" ({figure(raw.median)} MB of text)" if raw else "")
            yield cost_table(records)
            yield ratio_table(records)
    yield from _picture(drawn, "speed", "Seconds of fit and prediction")


def cost_table(records: Sequence[Record]) -> str:
    contenders = [str(who) for who in distinct(records, "contender")]
    rows = []
    for column, title in {**{c: t for c, (t, _) in COSTS.items()}, **ALONE}.items():
        found = by_contender(records, column)
        least = min((each.median for each in found.values()), default=0)
        cells = [str(found[who]) if who in found else "" for who in contenders]
        if found:
            bold = [who in found and found[who].median == least and column not in ALONE for who in contenders]
            rows.append([title, *(f"**{cell}**" if b else cell for cell, b in zip(cells, bold, strict=True))])
    used = {who: spread(_per_text(where(records, contender=who)), "times") for who in contenders}
    rows.insert(4, ["peak memory of the fit, in sizes of the raw text", *(str(used[who] or "") for who in contenders)])
    return table(["", *(NAMES[who] for who in contenders)], rows)


def _per_text(records: Sequence[Record]) -> list[Record]:
    return [{"times": float(each["fit_mb"]) / float(each["text_mb"])} for each in records if "fit_mb" in each]


def ratio_table(records: Sequence[Record]) -> str:
    """Ours over each peer, so that less than 1 is a win."""
    ours = [who for who in OURS if where(records, contender=who)]
    peers = [str(who) for who in distinct(records, "contender") if who not in OURS]
    rows = []
    for mine in ours:
        for column in ("fit_s", "predict_s", "predict_one_ms", "fit_mb"):
            cells = [str(ratios(records, column, mine, peer) or "") for peer in peers]
            rows.append([f"{NAMES[mine]}: {COSTS[column][0].rsplit(', ', 1)[0]}", *cells])
    return table(["ratio", *(f"to {NAMES[peer]}" for peer in peers)], rows) if peers and rows else ""


def growth(runs: Runs, drawn: Mapping[str, str]) -> Iterator[str]:
    records = runs["scaling"]
    if not records:
        return
    yield "## Cost against the number and the length of texts"
    yield from _picture(drawn, "growth", "Time and memory against the number of texts and against their length")
    for name, axis, title in (("short", "documents", "texts"), ("length", "words", "words a text, 1,000 texts")):
        own = where(records, set=name)
        contenders = [str(who) for who in distinct(own, "contender")]
        for column in ("fit_s", "predict_s", "fit_mb"):
            rows = []
            for x in distinct(own, axis):
                found = by_contender(where(own, **{axis: x}), column)
                rows.append([f"{x:,.0f}", *(str(found.get(who, "")) for who in contenders)])
            what = COSTS[column][0]
            yield f"{what[0].upper()}{what[1:]}, against {title}:"
            yield table([title, *(NAMES[who] for who in contenders)], rows)
    million = where(records, set="short", documents=MILLION)
    ratio = ratios(million, "fit_s", bigrams_of(million), "fasttext_5")
    if ratio:
        yield f"A million texts: keytokens takes {ratio} times the time of fastText to learn."


def explaining(runs: Runs, drawn: Mapping[str, str]) -> Iterator[str]:
    records = runs["explain"]
    if not records:
        return
    yield "## One explanation"
    yield (
        "IMDB reviews of about 174 words. An explanation by keytokens has all tokens with their attention, a minimum "
        "sufficient set, a minimum flip set and the certificate of both; sets of words are the harder question."
    )
    rows = []
    for method in distinct(records, "method"):
        found = where(records, method=method)
        milliseconds = spread([{"ms": 1000 * float(each["seconds"])} for each in found], "ms")
        times = "" if str(method).startswith("keytokens") else str(explain_ratios(records, str(method)))
        ours = {"keytokens_many": "keytokens, many at a time", "keytokens_words": "keytokens, with sets of words"}
        title = NAMES.get(str(method)) or ours[str(method)]
        rows.append([title, str(len(distinct(found, "text"))), str(milliseconds), times])
    yield table(["", "reviews", "ms", "times as long as keytokens, review by review"], rows)
    yield from _picture(drawn, "explain", "Milliseconds of one explanation")


def evaluation(runs: Runs) -> Iterator[str]:
    records = runs["evaluation"]
    if not records:
        return
    yield "## One loss and gradient beside the memory limit"
    yield (
        f"IMDB, bigrams. The products of one evaluation read {figure(float(records[0]['read_mb']))} MB; reading is a "
        "sum over the same bytes, in the same number of threads."
    )
    rows = []
    for threads in distinct(records, "threads"):
        own = where(records, threads=threads)
        cells = [str(spread([{"ms": 1000 * float(each[c])} for each in own], "ms")) for c in ("evaluate_s", "read_s")]
        ratio = spread([{"r": float(each["evaluate_s"]) / float(each["read_s"])} for each in own], "r")
        rows.append([f"{threads:g}", *cells, str(ratio)])
    yield table(["threads", "evaluation, ms", "reading, ms", "ratio"], rows)


def extras(runs: Runs, drawn: Mapping[str, str]) -> Iterator[str]:
    """Tables of other benchmarks, where their files are there."""
    for name, title in EXTRA.items():
        if runs[name]:
            yield f"## {title}"
            yield any_table(runs[name])
            yield from _picture(drawn, name, title)


def any_table(records: Sequence[Record]) -> str:
    """A file as it stands, or with the means over its repetitions if lines differ in nothing else but figures."""
    columns = list(dict.fromkeys(name for record in records for name in record))
    measured = [c for c in columns if any(_is_measured(record.get(c)) for record in records)]
    groups: dict[tuple[float | str, ...], list[Record]] = {}
    for record in records:
        fixed = [c for c in columns if c not in (*measured, *REPEATED)]
        groups.setdefault(tuple(record.get(c, "") for c in fixed), []).append(record)
    if len(groups) == len(records) or not any(name in columns for name in REPEATED):
        return table(columns, [[_short(record.get(c, "")) for c in columns] for record in records])
    kept = [c for c in columns if c not in REPEATED]
    return table(kept, [[_averaged(group, c, c in measured) for c in kept] for group in groups.values()])


def _averaged(group: Sequence[Record], column: str, measured: bool) -> str:
    found = [x for x in (record.get(column, "") for record in group) if isinstance(x, float)]
    return _short(statistics.mean(found) if measured and found else group[0].get(column, ""))


def _is_measured(x: object) -> bool:
    """A number that is not whole: whole ones are taken for settings."""
    return isinstance(x, float) and not x.is_integer()


def _short(x: float | str) -> str:
    if not isinstance(x, float):
        return x.replace("|", "\\|")
    return f"{x:,.0f}" if x.is_integer() else f"{x:.4g}"


def _picture(drawn: Mapping[str, str], name: str, title: str) -> Iterator[str]:
    if name in drawn:
        yield f"![{title}]({drawn[name]})"


def draw(runs: Runs, folder: Path) -> dict[str, Path]:
    """Every picture for which there are records."""
    todo = {
        "accuracy": (pictures.accuracy, "accuracy"),
        "speed": (pictures.speed, "speed"),
        "growth": (pictures.growth, "scaling"),
        "explain": (pictures.explaining, "explain"),
        "frontier": (pictures.frontier, "frontier"),
    }
    return {
        name: drawing(runs[file], folder / f"bench-{name}.svg") for name, (drawing, file) in todo.items() if runs[file]
    }


def write(results: Path, target: Path) -> str:
    """The page and, in a folder `pictures` beside it, what it shows."""
    runs = loaded(results)
    if not any(runs.values()):
        raise SystemExit(f"benchmarks: {results} holds no results. Run `make bench`, or name another folder.")
    drawn = draw(runs, target.parent / "pictures")
    raw = {name: path for name, path in files(results).items() if runs[name]}
    seen = [{name: _from(target.parent, path) for name, path in paths.items()} for paths in (drawn, raw)]
    text = page(runs, *seen)
    target.write_text(text, encoding="utf-8")
    return text


def _from(folder: Path, path: Path) -> str:
    return Path(os.path.relpath(path, folder)).as_posix()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=RESULTS, help="the folder of the CSV files")
    parser.add_argument("--output", type=Path, default=DOCS / "benchmarks.md", help="the page")
    options = parser.parse_args(arguments)
    text = write(options.results, options.output)
    start = text.index("## Asked and measured")
    print(text[start : text.index("\n## ", start + 1)])


if __name__ == "__main__":
    main()
