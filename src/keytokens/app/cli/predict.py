"""`keytokens predict`: a model and a table of any size to a table with predictions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from ...base.threads import cores, ordered_stream
from ...estimators.holdout import Judge
from ...estimators.saving import load_text_model
from ...estimators.text import KeyTokenClassifier
from ...io.reading import read_batches
from ...io.sources import check_format
from ...io.table import Table, Wanted, as_classes, given_labels, texts_of
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
    warn,
)


def predict(
    model: Annotated[Path, typer.Argument(help="Directory of a model.")],
    data: Annotated[str, typer.Argument(help="Texts: .csv .tsv .jsonl .parquet (or .gz), - for standard input.")],
    output: Annotated[str, typer.Option("-o", "--output", help="Table to write; - for CSV on standard output.")] = "-",
    text: TextColumn = None,
    label: Annotated[str | None, typer.Option("--label", help="Column with true labels: show the accuracy.")] = None,
    threads: ThreadsOption = None,
    table_format: TableFormat = None,
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Add the predicted label and its probability to every row. The file may be larger than the memory."""
    check_format(table_format)
    check_target("predict", "--output", output, data, force)
    clf = load_text_model("predict", model)
    wanted, judge = Wanted(text, label, warn, need_label=False), Judge(clf.classes_.tolist())
    tables = counted(read_batches(data, table_format, wanted), "predicting")
    batches = _predicted(clf, tables, wanted, judge, threads or cores())
    if json:
        head: dict[str, Any] = {}
        with long_document("predictions", head) as add:
            for one in batches:
                for y, row in zip(one.labels, one.P.tolist(), strict=True):
                    add({"label": y, "probability": max(row), "probabilities": row})
            accuracy = None if wanted.label is None else judge.accuracy
            head |= {"text_column": wanted.text, "accuracy": accuracy, "classes": clf.classes_.tolist()}
        return
    rows = 0
    with table_writer(output) as write:
        for one in batches:
            columns, rows = one.table.columns, rows + len(one.table)
            columns = {**columns, free_name(columns, "prediction"): one.labels}
            write({**columns, free_name(columns, "probability"): one.P.max(axis=1).round(6).tolist()})
    if output != "-":
        typer.echo(f"{rows:,} predictions of column {wanted.text!r} in {output}")
    if wanted.label is not None:
        typer.echo(f"accuracy {judge.accuracy:.4f} on column {label!r}", err=output == "-")


class _Predicted(NamedTuple):
    """One batch and what the model says of it."""

    table: Table
    labels: list[Any]
    P: Float


def _predicted(
    clf: KeyTokenClassifier, tables: Iterator[Table], wanted: Wanted, judge: Judge, threads: int
) -> Iterator[_Predicted]:
    """The batches in order, several asked about at a time; where the true labels are known, they are judged."""
    clf.threads = 1  # every batch has a thread of its own

    def with_columns() -> Iterator[tuple[Table, str]]:
        for table in tables:
            yield table, wanted.of(table)[0]

    def ask(given: tuple[Table, str]) -> _Predicted:
        table, column = given
        P = clf.predict_proba(texts_of(table, column))
        return _Predicted(table, clf.classes_[P.argmax(axis=1)].tolist(), P)

    for one in ordered_stream(ask, with_columns(), threads):
        if wanted.label is not None:
            truth = given_labels(one.table, wanted.label)
            judge.add(as_classes(truth, clf.classes_.tolist()), one.P)
        yield one
