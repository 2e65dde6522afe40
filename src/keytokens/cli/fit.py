"""`keytokens fit`: labelled text to a model, with a score on texts that it has not seen."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from ..classifier import KeyTokenClassifier
from ..errors import InputError
from ..evaluation import hold_out
from ..tables import FORMATS, guess_columns, labels_of, read_table, texts_of
from ..validate import check_labels
from .common import JsonOption, TableFormat, TextColumn, ThreadsOption, say, show_json

__all__ = ["fit", "held_out_score"]


def fit(
    data: Annotated[str, typer.Argument(help="Labelled text: .csv .tsv .jsonl .parquet, or - for standard input.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Directory for the model.")],
    text: TextColumn = None,
    label: Annotated[str | None, typer.Option("--label", help="Column with the label; guessed if not given.")] = None,
    ngrams: Annotated[int, typer.Option(min=1, help="Longest n-gram, in words.")] = 2,
    counts: Annotated[str, typer.Option(help="raw, log or binary: the weight of a repeated token.")] = "raw",
    sink: Annotated[float, typer.Option(help="Weight of the sink, in mean text lengths; 0 for none.")] = 0.5,
    attention_penalty: Annotated[float, typer.Option(help="Smaller: attention selects more sharply.")] = 2.0,
    max_tokens: Annotated[int | None, typer.Option(min=1, help="Keep the most frequent tokens only.")] = None,
    balanced: Annotated[bool, typer.Option("--balanced", help="Give every class the same total weight.")] = False,
    holdout: Annotated[float, typer.Option(min=0, max=0.9, help="Share held out for the score; 0 for none.")] = 0.2,
    seed: Annotated[int, typer.Option(help="For the split.")] = 0,
    threads: ThreadsOption = None,
    table_format: TableFormat = None,
    json: JsonOption = False,
) -> None:
    """Train on labelled text: score a held-out fifth, refit on everything, save the model."""
    check_format(table_format)
    options: dict[str, Any] = {
        "ngrams": (1, ngrams),
        "counts": counts,
        "sink": sink,
        "attention_penalty": attention_penalty,
        "max_tokens": max_tokens,
        "class_weight": "balanced" if balanced else None,
        "random_state": seed,
        "threads": threads,
        "verbose": 0 if json else 1,
    }
    model = KeyTokenClassifier(**options)
    model.check_options()
    begin = time.perf_counter()
    table = read_table(data, table_format)
    text_column, label_column = guess_columns(table, text, label)
    assert label_column is not None
    texts, labels = texts_of(table, text_column), labels_of(table, label_column)
    named = "" if text and label else " (guessed; --text and --label override)"
    say(f"{len(texts):,} texts from column {text_column!r}, labels from column {label_column!r}{named}", quiet=json)
    check_labels("fit", labels, len(texts))
    read = time.perf_counter()
    score = held_out_score(texts, labels, options, holdout, seed)
    say(score_line(score), quiet=json)
    scored = time.perf_counter()
    model.fit(texts, labels)
    fitted = time.perf_counter()
    model.save(output)
    say(f"{len(model.vocabulary_):,} tokens, {model.n_iter_} steps, {model.status_}", quiet=json)
    say(f"model: {output}", quiet=json)
    if json:
        show_json(
            {
                "score": score,
                "options": options,
                "columns": {"text": text_column, "label": label_column},
                "classes": model.classes_.tolist(),
                "texts": len(texts),
                "tokens": len(model.vocabulary_),
                "steps": model.n_iter_,
                "status": model.status_,
                "model": str(output),
                "bytes": sum(file.stat().st_size for file in output.iterdir() if file.is_file()),
                "seconds": {"read": read - begin, "score": scored - read, "fit": fitted - scored},
            }
        )


def check_format(kind: str | None) -> None:
    known = sorted(set(FORMATS.values()))
    if kind is not None and kind not in known:
        raise InputError(f"--format must be one of {', '.join(known)}; saw {kind!r}.")


def held_out_score(
    texts: Sequence[str], labels: Sequence[Any], options: dict[str, Any], share: float, seed: int
) -> dict[str, Any] | None:
    held = hold_out(texts, labels, options, share, seed)
    return None if held is None else held.score()


def score_line(score: dict[str, Any] | None) -> str:
    if score is None:
        return "no score: too few texts to hold some out (--holdout)"
    return (
        f"accuracy {score['accuracy']:.4f} ± {score['standard_error']:.4f} on {score['texts']:,} held-out texts "
        f"(most frequent class: {score['baseline']:.4f}), log loss {score['log_loss']:.4f}"
    )
