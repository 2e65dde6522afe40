"""`keytokens evaluate`: how good a model is, as it has kept it or on a table; where it fails; and which is better."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ...base.errors import DataError, InputError, shorten
from ...estimators.comparison import compare, slices
from ...estimators.evaluation import SEEN, Evaluation
from ...estimators.evaluation import evaluate as judged
from ...estimators.saving import load_text_model
from ...explain.format import label_name, one_line
from ...io.reading import read_table
from ...io.sources import check_format
from ...io.table import Table, Wanted, as_classes, given_labels, texts_of
from .common import JsonOption, TableFormat, TextColumn, ThreadsOption, say, show_json, warn

_SHOWN = 10  # classes, slices or texts that are printed


def evaluate(
    model: Annotated[Path, typer.Argument(help="Directory of a model.")],
    data: Annotated[
        str | None, typer.Argument(help="Labelled text; without it, the score that the model keeps of its training.")
    ] = None,
    text: TextColumn = None,
    label: Annotated[str | None, typer.Option("--label", help="Column with the label; guessed if not given.")] = None,
    by: Annotated[
        str | None, typer.Option("--by", metavar="COLUMN", help="Score each value of a column: where is it worse?")
    ] = None,
    other: Annotated[
        Path | None, typer.Option("--compare", metavar="MODEL", help="Another model: which is better, and where?")
    ] = None,
    threads: ThreadsOption = None,
    table_format: TableFormat = None,
    json: JsonOption = False,
) -> None:
    """Say how good a model is. Texts of its training are known again and scored by models without them."""
    check_format(table_format)
    clf = load_text_model("evaluate", model)
    clf.threads = threads
    if data is None:
        if by is not None or other is not None:
            raise InputError("evaluate: --by and --compare need a table; saw none. Name one after the model.")
        found = clf.evaluate()
        if found is None:
            why = "it was fitted without --cross-fit or --holdout"
            raise InputError(f"evaluate: {str(model)!r} keeps no score: {why}. Name a table with labels.")
        record = found.to_dict()
    else:
        wanted = Wanted(text, label, warn)
        table = read_table(data, table_format, wanted)
        found = _on_table(clf, table, wanted)
        record = {**found.to_dict(), "columns": {"text": wanted.text, "label": wanted.label}}
        if by is not None:
            record["slices"] = slices(found, _column(table, by))
        if other is not None:
            second = load_text_model("evaluate", other)
            second.threads = threads
            record["compare"] = {"other": str(other), **compare(found, _on_table(second, table, wanted))}
    if json:
        show_json(record)
        return
    _say_score(found)
    if "slices" in record:
        _say_slices(record["slices"], str(by))
    if "compare" in record:
        _say_comparison(record["compare"], table, str(wanted.text))


def _on_table(clf: Any, table: Table, wanted: Wanted) -> Evaluation:
    text, label = wanted.of(table)
    assert label is not None
    if not len(table):
        raise DataError(f"{table.name}: has no row to evaluate on.")
    return judged(clf, texts_of(table, text), as_classes(given_labels(table, label), clf.classes_.tolist()))


def _column(table: Table, name: str) -> list[Any]:
    if name not in table.columns:
        names = ", ".join(shorten(column) for column in table.columns)
        raise DataError(f"{table.name}: --by must name a column; saw {shorten(name)}, the columns are {names}.")
    return table.columns[name]


def _say_score(found: Evaluation) -> None:
    say(str(found))
    if found.kind == SEEN:
        say("All these texts were in the training: this says nothing about the next text.")
    elif SEEN in found.kinds:
        say(f"{found.kinds[SEEN]:,} more texts were in the training, and are left out.")
    elif found.kind == "mixed":
        say("Of these: " + ", ".join(f"{n:,} {kind}" for kind, n in found.kinds.items()) + ".")
    if found.uncovered:
        names = ", ".join(label_name(found.names[k]) for k in found.uncovered[:_SHOWN])
        say(f"Not covered, for want of texts: {names}.")
    other = "" if found.f1() is None else f"macro F1 {found.f1():.4f}, weighted F1 {found.f1(weighted=True):.4f}, "
    say(f"{other}calibration error {found.calibration['error']:.4f} ({found.calibration['verdict']})")
    weakest = sorted((k for k, one in enumerate(found.classes) if one["f1"] is not None), key=lambda k: _f1(found, k))
    say(f"{'class':24}{'texts':>8}{'recall':>8}{'precision':>11}{'F1':>8}  most often mistaken for")
    for k in weakest[:_SHOWN]:
        one = found.classes[k]
        mistaken = f"{label_name(found.names[one['mistaken'][0]])} ({one['mistaken'][1]:,})" if one["mistaken"] else ""
        rates = f"{_rate(one['recall']):>8}{_rate(one['precision']):>11}{_rate(one['f1']):>8}"
        say(f"{label_name(found.names[k])[:22]:24}{one['texts']:>8,}{rates}  {mistaken}")
    if len(weakest) > _SHOWN:
        say(f"... and {len(weakest) - _SHOWN:,} more classes (--json has all)")


def _f1(found: Evaluation, k: int) -> float:
    return float(found.classes[k]["f1"])


def _rate(share: float | None) -> str:
    return "-" if share is None else f"{share:.4f}"


def _say_slices(found: list[dict[str, Any]], column: str) -> None:
    worse = sum(one["worse"] for one in found)
    say(f"\nBy {column}: {worse} of {len(found):,} values are worse than the whole, beyond chance.")
    for one in found[:_SHOWN]:
        low, high = one["interval"]
        mark = "  worse" if one["worse"] else ""
        say(f"{one_line(one['value'])[:22]:24}{one['n']:>8,}{one['accuracy']:>8.4f}  ({low:.4f} to {high:.4f}){mark}")


def _say_comparison(found: dict[str, Any], table: Table, column: str) -> None:
    low, high = found["interval"]
    first, second = found["accuracies"]
    clear = "no clear difference" if low <= 0 <= high else "the first is better" if low > 0 else "the other is better"
    kinds = " and ".join(dict.fromkeys(map(str, found["kinds"])))
    say(f"\nThis model {_rate(first)}, {found['other']} {_rate(second)} on {found['n']:,} texts ({kinds}):")
    say(f"difference {found['difference']:+.4f} ({low:+.4f} to {high:+.4f}), {clear}.")
    say(f"They disagree on {len(found['disagreements']):,} texts.")
    for one in found["disagreements"][:_SHOWN]:
        said = f"{label_name(one['first'])} / {label_name(one['second'])}, given {label_name(one['given'])}"
        say(f"  {said}: {one_line(table.columns[column][one['row']])}")
