"""`keytokens predict`: a model and a table to a table with predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ..persist import load
from ..tables import Table, guess_columns, labels_of, read_table, texts_of, write_table
from .common import JsonOption, TableFormat, TextColumn, ThreadsOption, show_json
from .fit import check_format

__all__ = ["predict"]


def predict(
    model: Annotated[Path, typer.Argument(help="Directory of a model.")],
    data: Annotated[str, typer.Argument(help="Texts: .csv .tsv .jsonl .parquet, or - for standard input.")],
    output: Annotated[str, typer.Option("-o", "--output", help="Table to write; - for CSV on standard output.")] = "-",
    text: TextColumn = None,
    label: Annotated[str | None, typer.Option("--label", help="Column with true labels: show the accuracy.")] = None,
    threads: ThreadsOption = None,
    table_format: TableFormat = None,
    json: JsonOption = False,
) -> None:
    """Add the predicted label and its probability to every row."""
    check_format(table_format)
    clf = load(model)
    clf.threads = threads
    table = read_table(data, table_format)
    text_column, _ = guess_columns(table, text, label, need_label=False)
    P = clf.predict_proba(texts_of(table, text_column))
    best = P.argmax(axis=1)
    predicted = clf.classes_[best].tolist()
    accuracy = None if label is None else _accuracy(predicted, labels_of(table, label))
    if json:
        show_json(
            {
                "text_column": text_column,
                "accuracy": accuracy,
                "classes": clf.classes_.tolist(),
                "predictions": [
                    {"label": y, "probability": row[k], "probabilities": row}
                    for y, k, row in zip(predicted, best.tolist(), P.tolist(), strict=True)
                ],
            }
        )
        return
    columns = dict(table.columns)
    columns[_free(table, "prediction")] = predicted
    columns[_free(table, "probability")] = P[np.arange(len(best)), best].round(6).tolist()
    write_table(output, columns)
    if output != "-":
        typer.echo(f"{len(predicted):,} predictions of column {text_column!r} in {output}")
    if accuracy is not None:
        typer.echo(f"accuracy {accuracy:.4f} on column {label!r}", err=output == "-")


def _free(table: Table, name: str) -> str:
    """A column name that the table does not have yet."""
    taken, number = name, 2
    while taken in table.columns:
        taken, number = f"{name}_{number}", number + 1
    return taken


def _accuracy(predicted: list[Any], truth: list[Any]) -> float:
    return float(np.mean([str(one) == str(other) for one, other in zip(predicted, truth, strict=True)]))
