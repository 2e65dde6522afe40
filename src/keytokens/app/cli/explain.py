"""`keytokens explain`: why a text, a bag or every row of a table gets its label, and what is proved of it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ...base.errors import DataError, InputError
from ...estimators.bags import BagClassifier
from ...estimators.saving import load
from ...estimators.text import KeyTokenClassifier
from ...explain.terminal import explanation_text, wants_colour
from ...explain.text import Explanation
from ...io.reading import read_batches, read_table
from ...io.sources import check_format, kind_of
from ...io.table import Table, Wanted, texts_of
from ...io.writing import table_writer
from .common import (
    ForceOption,
    JsonOption,
    TableFormat,
    TextColumn,
    check_target,
    counted,
    free_name,
    long_document,
    say,
    show_json,
    warn,
    width,
)

ROWS = 256  # of a batch: an explanation takes about a millisecond, and a bar should move


def explain(
    model: Annotated[Path, typer.Argument(help="Directory of a model.")],
    text: Annotated[
        str | None,
        typer.Argument(help="The text; for a model of bags a table, one instance a row. - reads standard input."),
    ] = None,
    data: Annotated[
        str | None, typer.Option("--data", help="Explain every row of a table instead; - for standard input.")
    ] = None,
    output: Annotated[
        str,
        typer.Option("-o", "--output", help="With --data: .jsonl for full records, .csv .tsv .parquet for a summary."),
    ] = "-",
    column: TextColumn = None,
    words: Annotated[
        bool, typer.Option("--words", help="With --data: the sets of words too, which take long.")
    ] = False,
    table_format: TableFormat = None,
    rival: Annotated[
        str | None, typer.Option("--rival", help="Class to set the label against; else where the flip set leads.")
    ] = None,
    html: Annotated[Path | None, typer.Option("--html", help="Write a page that stands alone.")] = None,
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Show which tokens decide the label of a text, with the proof; or of every text of a table, whatever its size."""
    _check_asked(text, data, output, column, words, table_format, html)
    clf = load(model)
    if data is not None:
        check_target("explain", "--output", output, data, force)
        if not isinstance(clf, KeyTokenClassifier):
            raise InputError(f"explain: --data needs a model of texts; {str(model)!r} is a {type(clf).__name__}.")
        wanted = Wanted(column, None, warn, need_label=False)
        batches = counted(read_batches(data, table_format, wanted, rows=ROWS), "explaining")
        _explain_table(clf, batches, output, wanted, words, json, _class(clf, rival))
        return
    assert text is not None
    if html is not None:
        check_target("explain", "--html", html, text if isinstance(clf, BagClassifier) else "", force)
    explanation = clf.explain(_bag(text) if isinstance(clf, BagClassifier) else _text(text))
    if rival is not None:
        explanation = explanation.against(_class(clf, rival))
    if html is not None:
        explanation.to_html(html)
    if json:
        show_json(explanation.to_dict())
        return
    say(explanation_text(explanation, colour=wants_colour(sys.stdout), width=width()))
    if html is not None:
        say(f"\npage: {html}")


def _check_asked(
    text: str | None,
    data: str | None,
    output: str,
    column: str | None,
    words: bool,
    table_format: str | None,
    html: Path | None,
) -> None:
    """One text or one table, and only what belongs to it."""
    check_format(table_format)
    if (text is None) == (data is None):
        seen = "neither" if text is None else "both"
        raise InputError(f"explain: give one text, or a table with --data; saw {seen}.")
    if data is not None and html is not None:
        raise InputError("explain: --html shows one text; saw it with --data. `keytokens report` shows a table.")
    if data is None and (output != "-" or column or words or table_format):
        raise InputError("explain: --output, --text, --words and --format belong to a table; saw no --data.")


def _explain_table(
    clf: KeyTokenClassifier,
    batches: Iterator[Table],
    output: str,
    wanted: Wanted,
    words: bool,
    json: bool,
    rival: Any,
) -> None:
    explained = ((table, list(clf.explain_many(texts_of(table, wanted.of(table)[0]), rival))) for table in batches)
    if json:
        head: dict[str, Any] = {}
        with long_document("explanations", head) as add:
            for _, found in explained:
                for one in found:
                    add(one.to_dict(words=words))
            head["text_column"] = wanted.text
        return
    kind, rows = "jsonl" if output == "-" else kind_of(output), 0
    with table_writer(output, kind) as write:
        for table, found in explained:
            rows += len(table)
            if kind == "jsonl":
                records = [one.to_dict(words=words) for one in found]
                write({key: [record[key] for record in records] for key in records[0]})
            else:
                write(_summary(table, found))
    if output != "-":
        typer.echo(f"{rows:,} explanations of column {wanted.text!r} in {output}")


def _summary(table: Table, explained: list[Explanation]) -> dict[str, list[Any]]:
    """The table with one flat line of what is proved."""
    columns = dict(table.columns)
    added = {
        "prediction": [one.label for one in explained],
        "probability": [round(one.probability, 6) for one in explained],
        "sufficient": [" | ".join(item.text for item in one.sufficient) for one in explained],
        "flip": [" | ".join(item.text for item in one.flip) for one in explained],
        "flips_to": [one.flip.label_after for one in explained],
        "proved": [_is_proved(one) for one in explained],
        "rival": [one.rival for one in explained],
    }
    for name, values in added.items():
        columns[free_name(columns, name)] = values
    return columns


def _is_proved(one: Explanation) -> bool:
    """No smaller set does the same, of either kind, and no comparison hangs on rounding."""
    minima = one.sufficient.status == "minimum" and one.flip.status in ("minimum", "none")
    return minima and not one.certificate.tight


def _class(clf: Any, name: str | None) -> Any:
    """The class that is written so; an unknown name is refused where it is used."""
    return next((label for label in clf.classes_.tolist() if str(label) == name), name)


def _text(given: str) -> str:
    return sys.stdin.buffer.read().decode("utf-8", "replace") if given == "-" else given


def _bag(source: str) -> Any:
    table = read_table(source)
    try:
        return np.array(list(table.columns.values()), np.float64).T
    except (TypeError, ValueError) as error:
        why = str(error).split(";")[0]
        raise DataError(f"{table.name}: every column must hold numbers; saw otherwise ({why}).") from None
