"""`keytokens predict`: a model and a table of any size to a table with predictions; or the label of one text."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from ...base.errors import InputError
from ...base.threads import cores, ordered_stream
from ...estimators.evaluation import SEEN, Evaluator
from ...estimators.saving import load_text_model
from ...estimators.text import KeyTokenClassifier
from ...explain.format import label_name, probability
from ...io.reading import read_batches
from ...io.sources import check_format, has_table_ending
from ...io.table import Table, Wanted, as_classes, given_labels, is_missing, label_by_name, texts_of
from ...io.writing import table_writer
from ...model.blocks import Float
from .common import (
    ForceOption,
    JsonOption,
    TableFormat,
    TextColumn,
    ThreadsOption,
    check_target,
    counted,
    free_name,
    long_document,
    say,
    show_json,
    warn,
)

_SHOWN = 10  # classes of one text


def predict(
    model: Annotated[Path, typer.Argument(help="Directory of a model.")],
    data: Annotated[
        str, typer.Argument(help="Texts: .csv .tsv .jsonl .parquet (or .gz), - for standard input; or one text itself.")
    ],
    output: Annotated[str, typer.Option("-o", "--output", help="Table to write; - for CSV on standard output.")] = "-",
    text: TextColumn = None,
    label: Annotated[
        str | None,
        typer.Option("--label", help="Column with true labels, for the accuracy; by default one of the usual names."),
    ] = None,
    threads: ThreadsOption = None,
    table_format: TableFormat = None,
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Add the predicted label and its probability to every row. The file may be larger than the memory."""
    check_format(table_format)
    check_target("predict", "--output", output, data, force)
    clf = load_text_model("predict", model)
    if _is_text(data):
        if output != "-" or text or label or table_format:
            raise InputError("predict: --output, --text, --label and --format belong to a table; saw one text.")
        _predict_text(clf, data, json)
        return
    wanted, judge = Wanted(text, label, warn, need_label=False), Evaluator(clf)
    tables = counted(read_batches(data, table_format, wanted), "predicting")
    batches = _predicted(clf, tables, wanted, judge, threads or cores())
    if json:
        head: dict[str, Any] = {}
        with long_document("predictions", head) as add:
            for one in batches:
                label = label or one.label
                for y, row in zip(one.labels, one.P.tolist(), strict=True):
                    add({"label": y, "probability": max(row), "probabilities": row})
            found = judge.evaluation()
            head |= {"text_column": wanted.text, "label_column": label, "classes": clf.classes_.tolist()}
            head |= {"accuracy": found.accuracy, "kind": found.kind, "n": found.n}
        return
    rows = 0
    with table_writer(output) as write:
        for one in batches:
            label = label or one.label
            columns, rows = one.table.columns, rows + len(one.table)
            columns = {**columns, free_name(columns, "prediction"): one.labels}
            write({**columns, free_name(columns, "probability"): one.P.max(axis=1).round(6).tolist()})
    if output != "-":
        typer.echo(f"{rows:,} predictions of column {wanted.text!r} in {output}")
    found = judge.evaluation()
    if found.accuracy is not None:
        seen = "" if found.kind != SEEN else ", which say nothing about the next text"
        of = f"{found.n:,} texts of column {label!r} ({found.kind}{seen})"
        typer.echo(f"accuracy {found.accuracy:.4f} on {of}", err=output == "-")


def _is_text(data: str) -> bool:
    """Whether this is a text and not the name of a table: it has white space, and no table is called so."""
    return len(data.split()) > 1 and not os.path.exists(data) and not has_table_ending(data)


def _predict_text(clf: KeyTokenClassifier, text: str, json: bool) -> None:
    P = clf.predict_proba([text])[0].tolist()
    classes = clf.classes_.tolist()
    if json:
        best = P.index(max(P))
        show_json({"label": classes[best], "probability": P[best], "probabilities": P, "classes": classes})
        return
    for p, k in sorted(((p, k) for k, p in enumerate(P)), key=lambda pair: (-pair[0], pair[1]))[:_SHOWN]:
        say(f"{probability(p)}  {label_name(classes[k])}")


class _Predicted(NamedTuple):
    """One batch and what the model says of it."""

    table: Table
    label: str | None  # the column with true labels
    labels: list[Any]
    P: Float


def _predicted(
    clf: KeyTokenClassifier, tables: Iterator[Table], wanted: Wanted, judge: Evaluator, threads: int
) -> Iterator[_Predicted]:
    """The batches in order, several asked about at a time; where the true labels are known, they are judged."""
    clf.threads = 1  # every batch has a thread of its own
    classes = clf.classes_.tolist()
    trained_on = ((clf.about_ or {}).get("columns") or {}).get("label")

    def with_columns() -> Iterator[tuple[Table, str]]:
        for table in tables:
            yield table, wanted.of(table)[0]

    def ask(given: tuple[Table, str]) -> _Predicted:
        table, column = given
        P = clf.predict_proba(texts_of(table, column))
        label = wanted.label or label_by_name(table, trained_on)
        return _Predicted(table, label, clf.classes_[P.argmax(axis=1)].tolist(), P)

    for one in ordered_stream(ask, with_columns(), threads):
        if one.label is not None:
            texts, truth = texts_of(one.table, str(wanted.text)), one.table.columns[one.label]
            if wanted.label is not None:
                given_labels(one.table, wanted.label)  # refuses what is no label
            rows = [row for row, value in enumerate(truth) if not is_missing(value)]
            judge.add([texts[i] for i in rows], as_classes([truth[i] for i in rows], classes), one.P[rows])
        yield one
