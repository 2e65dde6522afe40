"""`keytokens predict`: a model and a table of any size to a table with predictions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
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
    done = _Predictions(clf, Wanted(text, label, warn, need_label=False))
    batches = done.of(counted(read_batches(data, table_format, done.wanted), "predicting"), threads or cores())
    if json:
        head: dict[str, Any] = {}
        with long_document("predictions", head) as add:
            for one in batches:
                best = zip(one.labels, one.best.tolist(), one.P.tolist(), strict=True)
                for y, k, row in best:
                    add({"label": y, "probability": row[k], "probabilities": row})
            head |= {"text_column": done.wanted.text, "accuracy": done.accuracy, "classes": clf.classes_.tolist()}
        return
    with table_writer(output) as write:
        for one in batches:
            columns = one.table.columns
            columns = {**columns, free_name(columns, "prediction"): one.labels}
            write({**columns, free_name(columns, "probability"): one.P.max(axis=1).round(6).tolist()})
    if output != "-":
        typer.echo(f"{done.rows:,} predictions of column {done.wanted.text!r} in {output}")
    if done.accuracy is not None:
        typer.echo(f"accuracy {done.accuracy:.4f} on column {label!r}", err=output == "-")


@dataclass(frozen=True, eq=False)
class _Predicted:
    """One batch and what the model says of it."""

    table: Table
    labels: list[Any]
    best: np.ndarray[Any, np.dtype[np.intp]]
    P: Float


class _Predictions:
    """Predictions of a stream of batches, and what is known of all of them once the last has come."""

    def __init__(self, clf: KeyTokenClassifier, wanted: Wanted) -> None:
        self.clf = clf
        self.wanted = wanted
        self.rows = 0
        self.judge = Judge(clf.classes_.tolist())

    @property
    def accuracy(self) -> float | None:
        return None if self.wanted.label is None else self.judge.accuracy

    def of(self, batches: Iterator[Table], threads: int) -> Iterator[_Predicted]:
        self.clf.threads = 1  # every batch has a thread of its own
        for one in ordered_stream(self._one, self._checked(batches), threads):
            self.rows += len(one.labels)
            if self.wanted.label is not None:
                truth = given_labels(one.table, self.wanted.label)
                self.judge.add(as_classes(truth, self.clf.classes_.tolist()), one.P)
            yield one

    def _checked(self, batches: Iterator[Table]) -> Iterator[Table]:
        """The batches; the first of them says which column holds the text."""
        for table in batches:
            self.wanted.of(table)
            yield table

    def _one(self, table: Table) -> _Predicted:
        assert self.wanted.text is not None
        P = self.clf.predict_proba(texts_of(table, self.wanted.text))
        best = P.argmax(axis=1)
        return _Predicted(table, self.clf.classes_[best].tolist(), best, P)
