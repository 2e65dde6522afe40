"""`keytokens fit --memory` and `--resume`: labelled text that is read in batches, as often as it is needed.

What is done lies in `OUTPUT.partial` until the model is saved. A row is held out for the score by its number and the
seed alone, so the split is the same in every pass.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base.errors import InputError
from ..base.files import locked, write_whole, writing
from ..base.threads import cores
from ..estimators.streaming import Budget, sealed, unsealed
from ..estimators.text import KeyTokenClassifier
from ..io.reading import read_batches, tables_in
from ..io.table import Wanted, as_classes, as_numbers, given_labels, texts_of
from .cli.common import counted, save_model, say, score_line, show_json, tell_classes, tell_model, warn

Batch = tuple[list[str], list[Any]]
_ANSWERS = 1 << 21  # probabilities that are held at a time: a batch of texts may have thousands of classes


@dataclass
class Flow:
    """A table of any size, in batches of texts and labels."""

    data: str
    kind: str | None
    text: str | None
    label: str | None
    quiet: bool
    texts: int = 0  # seen in the last pass
    classes: Counter[Any] = field(default_factory=Counter)  # texts of each, once a pass is over
    budget: Budget | None = None  # hears of all texts: one that is too long is refused in the first pass

    def __post_init__(self) -> None:
        self.wanted = Wanted(self.text, self.label, warn)
        if self.data == "-":
            raise InputError("fit: --memory and --resume read the data more than once; save it to a file first.")

    def batches(self, share: float, seed: int, held: bool) -> Iterator[Batch]:
        """Those rows that are held out for the score, or the others."""
        self.texts = 0
        found: Counter[Any] = Counter()  # labels as they stand in the table
        guessed = self.text is None or self.label is None
        doing = "scoring" if held else "reading"
        if self.budget is not None:
            self.budget.longest.clear()
        for table in counted(read_batches(self.data, self.kind, self.wanted), doing):
            if not self.texts:
                self.text, self.label = self.wanted.of(table)
                if guessed:
                    columns = f"texts from column {self.text!r}, labels from column {self.label!r}"
                    say(f"{columns} (guessed; --text and --label override)", quiet=self.quiet)
            assert self.text is not None
            assert self.label is not None
            out = _held_out(self.texts, len(table), share, seed)
            chosen = np.flatnonzero(out == held).tolist()
            self.texts += len(table)
            texts, labels = texts_of(table, self.text), given_labels(table, self.label)
            found.update(labels)
            if self.budget is not None:
                self.budget.read(compress(texts, ~out))
                self.budget.read(compress(texts, out), held_out=True)
            yield [texts[i] for i in chosen], [labels[i] for i in chosen]
        if not self.classes:
            for label, n in zip(as_numbers(list(found)), found.values(), strict=True):
                self.classes[label] += n
            tell_classes(self.classes, quiet=self.quiet)

    @property
    def source(self) -> str:
        """Which data these are, as far as the file system tells."""
        root = Path(self.data)
        files = tables_in(root, self.kind) if os.path.isdir(root) else [root]
        try:
            found = [(os.path.relpath(path, root.parent), path.stat()) for path in files]
            stats = [(name, stat.st_size, stat.st_mtime_ns) for name, stat in found]
        except OSError:
            stats = []  # whoever reads it says what is wrong
        return json.dumps([self.text, self.label, stats])


def _held_out(first: int, count: int, share: float, seed: int) -> NDArray[np.bool_]:
    """Whether each of these rows is held out: a hash of its number that is as good as drawing lots."""
    x = np.arange(first, first + count, dtype=np.uint64) + np.uint64(seed % 2**32) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    return (x ^ (x >> np.uint64(31))) < np.uint64(share * 2**63) * np.uint64(2)


def fit_flow(
    flow: Flow,
    output: Path,
    options: dict[str, Any],
    holdout: float,
    seed: int,
    memory: int | None,
    resume: bool,
    max_bytes: int | None,
    address: str | None = None,
) -> None:
    """Score a share, fit to everything, save the model, and remove what lay in `OUTPUT.partial`.

    With the address of a Dask scheduler its workers do the fitting, and nothing lies in a folder.
    """
    begin = time.perf_counter()
    partial = _partial(output)
    flow.budget = None if memory is None else Budget(memory, options.get("threads") or cores())
    source = flow.source
    told = {name: value for name, value in options.items() if name != "threads"}
    scored_as = json.dumps([holdout, memory, source, told], default=repr)

    def train(name: str, share: float) -> KeyTokenClassifier:
        if address is not None:
            return on_cluster(flow.batches(share, seed, held=False), options, address)
        model = KeyTokenClassifier(verbose=0 if flow.quiet else 1).set_params(**options)
        with writing(partial):
            return model.fit_batches(
                flow.batches(share, seed, held=False),
                memory=memory,
                share=1 - share,
                folder=partial / name,
                resume=resume,
                source=json.dumps([share, source]),
                relabel=as_numbers,
            )

    score = _kept_score(partial, resume, scored_as)
    if score is None and holdout > 0:
        score = _score(train("score", holdout), flow.batches(holdout, seed, held=True))
    if score is not None and address is None:
        write_whole(partial / "score.json", sealed({"of": scored_as, "score": score}))
    if holdout > 0:
        say(score_line(score), quiet=flow.quiet)
    scored = time.perf_counter()
    model = train("all", 0.0)
    if not flow.classes:  # an earlier run has read them
        for _ in flow.batches(0.0, seed, held=False):
            pass
    model = model if max_bytes is None else model.compressed(max_bytes)
    fitted = time.perf_counter()
    save_model(model, output)
    if address is None:
        shutil.rmtree(partial, ignore_errors=True)
    warnings = tell_model(model, score, output, quiet=flow.quiet)
    if flow.quiet:
        show_json(
            {
                "score": score,
                "options": model.flat_params(),
                "columns": {"text": flow.text, "label": flow.label},
                "classes": model.classes_.tolist(),
                "class_counts": [flow.classes[label] for label in model.classes_.tolist()],
                "texts": flow.texts,
                "tokens": len(model.vocabulary_),
                "steps": model.n_iter_,
                "status": model.status_,
                "dropped": model.dropped_,
                "warnings": warnings,
                "model": str(output),
                "bytes": sum(file.stat().st_size for file in output.iterdir() if file.is_file()),
                "seconds": {"score": scored - begin, "fit": fitted - scored},
            }
        )


def on_cluster(batches: Iterator[Batch], options: dict[str, Any], address: str) -> KeyTokenClassifier:
    from ..dask.estimator import fit_on_dask  # an extra: heavy, and perhaps not there

    return fit_on_dask(batches, options, address, as_numbers)


def _partial(output: Path) -> Path:
    return Path(f"{output if output.name else output.absolute()}.partial")  # the present folder has no name


@contextmanager
def only_fit(output: Path) -> Iterator[None]:
    """Have `OUTPUT.partial` to oneself, and leave it behind only if something in it was finished."""
    partial = _partial(output)
    with locked(partial, busy="another fit is using it; wait until it ends, or give another --output"):
        try:
            yield
        except BaseException:
            with suppress(OSError):
                partial.rmdir()
            raise


def _kept_score(partial: Path, resume: bool, scored_as: str) -> dict[str, Any] | None:
    """The score of a run that is gone on with, if it was of the same share, data and options."""
    path = partial / "score.json"
    if not resume or not path.is_file():
        return None
    try:
        record = unsealed(path.read_bytes())
        return record["score"] if record["of"] == scored_as else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _score(model: KeyTokenClassifier, batches: Iterator[Batch]) -> dict[str, Any] | None:
    some = max(1, _ANSWERS // len(model.classes_))
    place = {label: k for k, label in enumerate(model.classes_.tolist())}
    seen: Counter[Any] = Counter()
    right, loss, n = 0, 0.0, 0
    for texts, given in batches:
        if not texts:
            continue
        labels = as_classes(given, list(place))
        k = np.array([place.get(label, -1) for label in labels])
        for at in range(0, len(texts), some):
            P, own = model.predict_proba(texts[at : at + some]), k[at : at + some]
            known = own >= 0  # a class that has only texts that are held out is always wrong
            right += int((P.argmax(axis=1) == own).sum())
            loss -= float(np.log(np.maximum(P[known, own[known]], 1e-15)).sum())
        seen.update(labels)
        n += len(texts)
    if not n:
        return None
    accuracy = right / n
    return {
        "texts": n,
        "accuracy": accuracy,
        "standard_error": float(np.sqrt(accuracy * (1 - accuracy) / n)),
        "log_loss": loss / n,
        "baseline": max(seen.values()) / n,
    }
