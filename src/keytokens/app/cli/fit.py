"""`keytokens fit`: labelled text to a model, with a score on texts that it has not seen."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from ...base.checks import LARGEST_SEED, check_labels, check_number
from ...base.errors import InputError
from ...base.files import check_output
from ...estimators.holdout import hold_out
from ...estimators.streaming import LEAST_MEMORY
from ...estimators.text import KeyTokenClassifier
from ...estimators.tuning import Tuned, autotune
from ...io.reading import read_table
from ...io.sources import FORMATS
from ...io.table import Wanted, labels_of, texts_of
from ..jobs import Flow, fit_flow, only_fit
from .common import (
    JsonOption,
    TableFormat,
    TextColumn,
    ThreadsOption,
    bytes_of,
    save_model,
    say,
    score_line,
    show_json,
    tell_classes,
    tell_model,
    warn,
)

_USUAL = KeyTokenClassifier().get_params()


def _usual(name: str) -> str:
    """What the help shows as the default: an option that is not given is left to the model, or to the tuning."""
    value = _USUAL[name]
    return str(value[1] if name == "ngrams" else value)


def fit(
    data: Annotated[
        str, typer.Argument(help="Labelled text: .csv .tsv .jsonl .parquet, a folder of them, - for standard input.")
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="Directory for the model.")],
    text: TextColumn = None,
    label: Annotated[str | None, typer.Option("--label", help="Column with the label; guessed if not given.")] = None,
    ngrams: Annotated[
        int | None, typer.Option(min=1, max=1000, help="Longest n-gram, in words.", show_default=_usual("ngrams"))
    ] = None,
    counts: Annotated[
        str | None,
        typer.Option(help="raw, log or binary: the weight of a repeated token.", show_default=_usual("counts")),
    ] = None,
    sink: Annotated[
        float | None,
        typer.Option(help="Weight of the sink, in mean text lengths; 0 for none.", show_default=_usual("prior__sink")),
    ] = None,
    ratio: Annotated[
        float | None, typer.Option(help="Larger: trust the plain counts more.", show_default=_usual("prior__ratio"))
    ] = None,
    spread: Annotated[
        float | None, typer.Option(help="Larger: fit the training texts closer.", show_default=_usual("prior__spread"))
    ] = None,
    attention_penalty: Annotated[
        float | None,
        typer.Option(
            help="Larger: attention stays closer to its prior.", show_default=_usual("prior__attention_penalty")
        ),
    ] = None,
    brevity: Annotated[
        float | None,
        typer.Option(help="0 to 1. Larger: fewer tokens decide, less accurate.", show_default=_usual("brevity")),
    ] = None,
    max_tokens: Annotated[int | None, typer.Option(min=1, help="Keep the most frequent tokens only.")] = None,
    balanced: Annotated[bool, typer.Option("--balanced", help="Give every class the same total weight.")] = False,
    tune: Annotated[
        float | None,
        typer.Option(
            "--autotune",
            metavar="SECONDS",
            help="Search so long for better options; those that are given stay. The score is of texts kept apart.",
        ),
    ] = None,
    size: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Make the model fit into 500kB, 2MB, ...; the score is of it.")
    ] = None,
    holdout: Annotated[float, typer.Option(min=0, max=0.9, help="Share held out for the score; 0 for none.")] = 0.2,
    seed: Annotated[int, typer.Option(min=0, max=LARGEST_SEED, help="For the split.")] = 0,
    memory: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="For texts larger than the memory: hold no more than 1GB, ... at a time."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Save the state of a long fit now and then; go on after an interruption.")
    ] = False,
    dask: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Fit on the cluster of this Dask scheduler: tcp://host:8786.")
    ] = None,
    threads: ThreadsOption = None,
    table_format: TableFormat = None,
    json: JsonOption = False,
) -> None:
    """Train on labelled text: score a held-out fifth, refit on everything, save the model."""
    check_format(table_format)
    check_number("fit", "--autotune", tune, 0, above=True, none=True)
    wanted: dict[str, Any] = {
        "ngrams": None if ngrams is None else (1, ngrams),
        "counts": counts,
        "prior__sink": sink,
        "prior__ratio": ratio,
        "prior__spread": spread,
        "prior__attention_penalty": attention_penalty,
        "brevity": brevity,
        "max_tokens": max_tokens,
        "class_weight": "balanced" if balanced else None,
        "random_state": seed,
        "threads": threads,
    }
    given = {name: value for name, value in wanted.items() if value is not None}
    KeyTokenClassifier().set_params(**given).check_options()
    max_bytes = None if size is None else bytes_of(size)
    check_output(output, "model.json")
    if memory is not None or resume or dask is not None:
        if tune is not None:
            raise InputError("fit: --autotune needs all texts in memory; leave --memory, --resume and --dask out.")
        if dask is not None and (memory is not None or resume):
            raise InputError("fit: --dask keeps the texts on the workers; leave --memory and --resume out.")
        budget = None if memory is None else bytes_of(memory, "--memory", LEAST_MEMORY)
        flow = Flow(data, table_format, text, label, quiet=json)
        with only_fit(output) if dask is None else nullcontext():
            fit_flow(flow, output, given, holdout, seed, budget, resume, max_bytes, dask)
        return
    trainer = Trainer(given, tune, max_bytes, seed, quiet=json)
    begin = time.perf_counter()
    columns = Wanted(text, label, warn)
    table = read_table(data, table_format, columns)
    text_column, label_column = columns.of(table)
    assert label_column is not None
    texts, labels = texts_of(table, text_column), labels_of(table, label_column)
    named = "" if text and label else " (guessed; --text and --label override)"
    say(f"{len(texts):,} texts from column {text_column!r}, labels from column {label_column!r}{named}", quiet=json)
    check_labels("fit", labels, len(texts))
    classes = Counter(labels)
    tell_classes(classes, quiet=json)
    read = time.perf_counter()
    score = held_out_score(texts, labels, {}, holdout, seed, trainer.train)
    say(score_line(score), quiet=json)
    scored = time.perf_counter()
    model = trainer.train(texts, labels)
    fitted = time.perf_counter()
    save_model(model, output)
    warnings = tell_model(model, score, output, quiet=json)
    if json:
        show_json(
            {
                "score": score,
                "options": model.flat_params(),
                "tuning": trainer.record(),
                "columns": {"text": text_column, "label": label_column},
                "classes": model.classes_.tolist(),
                "class_counts": [classes[label] for label in model.classes_.tolist()],
                "texts": len(texts),
                "tokens": len(model.vocabulary_),
                "steps": model.n_iter_,
                "status": model.status_,
                "dropped": model.dropped_,
                "warnings": warnings,
                "model": str(output),
                "bytes": sum(file.stat().st_size for file in output.iterdir() if file.is_file()),
                "seconds": {"read": read - begin, "score": scored - read, "fit": fitted - scored},
            }
        )


@dataclass
class Trainer:
    """Texts to a model; options are searched for by the first texts that it sees, and then stay."""

    options: dict[str, Any]
    seconds: float | None
    max_bytes: int | None
    seed: int
    quiet: bool
    tuned: Tuned | None = None

    def train(self, texts: Sequence[str], labels: Sequence[Any]) -> KeyTokenClassifier:
        verbose = 0 if self.quiet else 1
        if self.seconds is not None and self.tuned is None:
            self.tuned = autotune(
                texts,
                labels,
                seconds=self.seconds,
                max_bytes=self.max_bytes,
                seed=self.seed,
                fixed=self.options,
                verbose=verbose,
            )
            say(f"tuned: {self.tuned}", quiet=self.quiet)
            return self.tuned.model
        options = self.options if self.tuned is None else self.tuned.options
        model = KeyTokenClassifier(verbose=verbose).set_params(**options).fit(texts, labels)
        return model if self.max_bytes is None else model.compressed(self.max_bytes)

    def record(self) -> dict[str, Any] | None:
        if self.tuned is None:
            return None
        return {
            "metric": self.tuned.metric,
            "score": self.tuned.score,
            "standard_error": self.tuned.standard_error,
            "options": self.tuned.options,
            "trials": [asdict(trial) for trial in self.tuned.trials],
            "seconds": self.tuned.seconds,
        }


def check_format(kind: str | None) -> None:
    known = sorted(set(FORMATS.values()))
    if kind is not None and kind not in known:
        raise InputError(f"--format must be one of {', '.join(known)}; saw {kind!r}.")


def held_out_score(
    texts: Sequence[str],
    labels: Sequence[Any],
    options: dict[str, Any],
    share: float,
    seed: int,
    train: Callable[[list[str], list[Any]], KeyTokenClassifier] | None = None,
) -> dict[str, Any] | None:
    held = hold_out(texts, labels, options, share, seed, train)
    return None if held is None else held.score()
