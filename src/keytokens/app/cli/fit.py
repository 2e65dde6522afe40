"""`keytokens fit`: labelled text to a model, with a score on texts that it has not seen."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ...base.checks import LARGEST_SEED
from ...estimators.streaming import LEAST_MEMORY
from ...estimators.teachers import SELF, told_of
from ...estimators.text import KeyTokenClassifier
from ..jobs import FOLDS, SHARE, FitJob, fit_table
from .common import (
    JsonOption,
    TableFormat,
    Teller,
    TextColumn,
    ThreadsOption,
    bytes_of,
    save_model,
    say,
    show_json,
    warn,
)

# what the help shows as the default: an option that is not given is left to the model, or to the tuning
_USUAL = {name: str(value) for name, value in KeyTokenClassifier().get_params().items()}
_USUAL["ngrams"] = str(KeyTokenClassifier().ngrams[1])


def fit(
    data: Annotated[
        str, typer.Argument(help="Labelled text: .csv .tsv .jsonl .parquet, a folder of them, - for standard input.")
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="Directory for the model.")],
    text: TextColumn = None,
    label: Annotated[str | None, typer.Option("--label", help="Column with the label; guessed if not given.")] = None,
    unlabeled: Annotated[
        str | None,
        typer.Option(metavar="TABLE", help="Texts without labels, of the same kind: they help where labels are few."),
    ] = None,
    teacher: Annotated[
        str,
        typer.Option(
            help="Who says what they are: self, the model; p_ for columns p_CLASS with probabilities, and so on."
        ),
    ] = SELF,
    ngrams: Annotated[
        int | None, typer.Option(min=1, max=1000, help="Longest n-gram, in words.", show_default=_USUAL["ngrams"])
    ] = None,
    counts: Annotated[
        str | None,
        typer.Option(help="raw, log or binary: the weight of a repeated token.", show_default=_USUAL["counts"]),
    ] = None,
    sink: Annotated[
        float | None,
        typer.Option(help="Weight of the sink, in mean text lengths; 0 for none.", show_default=_USUAL["prior__sink"]),
    ] = None,
    ratio: Annotated[
        float | None, typer.Option(help="Larger: trust the plain counts more.", show_default=_USUAL["prior__ratio"])
    ] = None,
    spread: Annotated[
        float | None, typer.Option(help="Larger: fit the training texts closer.", show_default=_USUAL["prior__spread"])
    ] = None,
    attention_penalty: Annotated[
        float | None,
        typer.Option(
            help="Larger: attention stays closer to its prior.", show_default=_USUAL["prior__attention_penalty"]
        ),
    ] = None,
    brevity: Annotated[
        float | None,
        typer.Option(help="0 to 1. Larger: fewer tokens decide, less accurate.", show_default=_USUAL["brevity"]),
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
    folds: Annotated[
        int | None,
        typer.Option(
            "--cross-fit",
            min=0,
            metavar="FOLDS",
            show_default=str(FOLDS),
            help="Score each text by a model without it, and calibrate the probabilities; 0 for neither. Off with "
            "--holdout, --memory, --resume, --dask and --autotune unless it is given.",
        ),
    ] = None,
    holdout: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=0.9,
            show_default=str(SHARE),
            help="Share held out for the score, without --cross-fit; 0: none.",
        ),
    ] = None,
    no_hashes: Annotated[
        bool,
        typer.Option(
            "--no-hashes",
            help="Keep no hash of a text in the model: nobody can test whether a text was in the training, and the "
            "model does not know such a text again.",
        ),
    ] = False,
    keep_texts: Annotated[
        bool, typer.Option("--keep-texts", help="Keep the scored texts themselves in the model, for its page.")
    ] = False,
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
    """Train on labelled text: score every text by a model without it, fit one to everything, save it with its score.

    The model keeps a salted hash of each text, so that a later evaluation knows it again.
    """
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
    job = FitJob(
        data=data,
        output=output,
        options={name: value for name, value in wanted.items() if value is not None},
        format=table_format,
        text=text,
        label=label,
        cross_fit=folds,
        holdout=holdout,
        keep_hashes=not no_hashes,
        keep_texts=keep_texts,
        seed=seed,
        autotune=tune,
        max_bytes=None if size is None else bytes_of(size),
        memory=None if memory is None else bytes_of(memory, "--memory", LEAST_MEMORY),
        resume=resume,
        dask=dask,
        unlabeled=unlabeled,
        teacher=teacher,
    )
    done = fit_table(job, Teller(quiet=json), save_model)
    model, doubt = done.model, "" if done.score is None else done.score.doubt
    say(f"{len(model.vocabulary_):,} tokens, {model.n_iter_} steps, {model.status_}", quiet=json)
    if model.taught_ is not None:
        say(told_of(model.taught_), quiet=json)
    if model.dropped_ is not None:
        dropped, of = model.dropped_["tokens"], model.dropped_["of"]
        say(f"dropped {dropped:,} of {of:,} tokens, the least frequent ones: {model.dropped_['why']}", quiet=json)
    if doubt:
        warn(f"fit: warning: {doubt}. The model has learned nothing that helps.")
    say(f"model: {output}", quiet=json)
    if json:
        show_json({**done.record(), "warnings": [doubt] if doubt else []})
