"""`keytokens report`: a model and labelled texts to one page, with the model alive inside it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...estimators.evaluation import SEEN
from ...estimators.saving import load_text_model
from ...io.reading import read_table
from ...io.sources import check_format
from ...io.table import Wanted, as_classes, given_labels, texts_of
from ..explorer.budget import MOST_BYTES, MOST_TEXTS
from .common import ForceOption, JsonOption, TableFormat, TextColumn, ThreadsOption, check_target, say, show_json, warn


def report(
    model: Annotated[Path, typer.Argument(help="Directory of a model.")],
    data: Annotated[str, typer.Argument(help="Labelled text: .csv .tsv .jsonl .parquet, or - for standard input.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Page to write.")] = Path("report.html"),
    text: TextColumn = None,
    label: Annotated[str | None, typer.Option("--label", help="Column with the label; guessed if not given.")] = None,
    title: Annotated[
        str | None, typer.Option("--title", help="Heading of the page; by default the data's name.")
    ] = None,
    max_tokens: Annotated[
        int | None,
        typer.Option(min=1, help="Keep the most decisive tokens only; the page then is the smaller model's."),
    ] = None,
    max_texts: Annotated[int, typer.Option(min=1, help="Texts in the page at most; the score is of all.")] = MOST_TEXTS,
    max_bytes: Annotated[
        int,
        typer.Option(
            min=300_000, help="Size of the page at most: it takes fewer texts, then a smaller model, and says so."
        ),
    ] = MOST_BYTES,
    threads: ThreadsOption = None,
    table_format: TableFormat = None,
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Write one page that works offline: score, map of the tokens, every text explained, and a field to try."""
    check_format(table_format)
    check_target("report", "--output", output, data, force)
    clf = load_text_model("report", model)
    clf.threads = threads
    wanted = Wanted(text, label, warn)
    table = read_table(data, table_format, wanted)
    text_column, label_column = wanted.of(table)
    assert label_column is not None
    texts = texts_of(table, text_column)
    labels = as_classes(given_labels(table, label_column), clf.classes_.tolist())
    named = "" if text and label else " (guessed; --text and --label override)"
    say(f"{len(texts):,} texts from column {text_column!r}, labels from column {label_column!r}{named}", quiet=json)
    heading = title or ("standard input" if data == "-" else Path(data).name)
    facts = clf.report(
        output, texts, labels, title=heading, max_tokens=max_tokens, max_texts=max_texts, max_bytes=max_bytes
    )
    if json:
        show_json({**facts, "columns": {"text": text_column, "label": label_column}})
        return
    low, high = facts["interval"]
    seen = ", which says nothing about the next text" if facts["kind"] == SEEN else ""
    of = f"{facts['n']:,} texts ({facts['kind']}{seen})"
    say(f"accuracy {facts['accuracy']:.4f} ({low:.4f} to {high:.4f}) on {of}")
    holds = f"{facts['tokens']:,} of {facts['tokens_of']:,} tokens, {facts['shown']:,} of {facts['texts']:,} texts"
    say(f"page: {output} ({facts['bytes'] / 1e6:.1f} MB: {holds})")
