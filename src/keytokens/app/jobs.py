"""One road from a table to a saved model: read, score a held-out share, fit to everything, save.

`fit_table` takes it for `keytokens fit`, for the trainings of the server and for the demo. A table that fits into the
memory is read whole. With a budget of memory, with `resume` and with Dask it is read in batches, as often as needed;
which rows are held out then depends on their numbers and the seed alone, so the split is the same in every pass. What
a fit in batches has done lies in `OUTPUT.partial` until the model is saved.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, field
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np

from ..base.checks import check_labels, check_number
from ..base.errors import InputError
from ..base.files import check_output, locked, write_whole, writing
from ..base.threads import cores
from ..estimators.holdout import HeldOut, Judge, Score, hold_out, is_held_out
from ..estimators.streaming import Budget, sealed, unsealed
from ..estimators.text import KeyTokenClassifier
from ..estimators.tuning import Tuned, autotune
from ..io.reading import read_batches, read_table, tables_in
from ..io.sources import check_format
from ..io.table import Table, Wanted, as_classes, as_numbers, given_labels, labels_of, texts_of

_ANSWERS = 1 << 21  # probabilities that are held at a time: a batch of texts may have thousands of classes


class Watcher:
    """Hears how a fit goes on. This one keeps silent."""

    verbose = 0  # as estimators take it

    def say(self, line: str) -> None:
        """Take one line for a person."""

    def warn(self, line: str) -> None:
        """Take one line about something that is no reason to stop."""

    def classes(self, counts: Counter[Any]) -> None:
        """Take the number of texts of each class, once all labels are read."""

    def stage(self, name: str) -> AbstractContextManager[None]:
        """Return a context in which one stage runs: reading, scoring, training or writing."""
        return nullcontext()

    def counted(self, batches: Iterator[Table], doing: str) -> Iterator[Table]:
        """Return the batches, counted on their way if somebody waits."""
        return batches


@dataclass(frozen=True, kw_only=True)
class FitJob:
    """What `fit_table` fits, how it scores, and where it saves the model."""

    data: str | tuple[Sequence[str], Sequence[Any]]  # a table, a folder, "-"; or texts and labels that are at hand
    output: Path
    options: dict[str, Any] = field(default_factory=dict)  # as `set_params` of the classifier takes them
    format: str | None = None
    called: str | None = None  # the name of the table in messages
    text: str | None = None  # column; guessed if not given
    label: str | None = None
    holdout: float = 0.2  # the share that is held out for the score
    seed: int = 0
    spared: int = 0  # so many of the first texts are scored on, but not in the final model
    autotune: float | None = None  # seconds
    max_bytes: int | None = None
    memory: int | None = None  # bytes; the table is then read in batches, as it is with the next two
    resume: bool = False
    dask: str | None = None

    @property
    def in_batches(self) -> bool:
        """Whether the table is never held in memory as a whole."""
        return self.memory is not None or self.resume or self.dask is not None

    def check(self) -> None:
        """Refuse, before the work, what breaks a rule or does not go together."""
        check_format(self.format)
        check_number("fit", "--autotune", self.autotune, 0, above=True, none=True)
        KeyTokenClassifier().set_params(**self.options).check_options()
        check_output(self.output, "model.json")
        if self.in_batches and self.autotune is not None:
            raise InputError("fit: --autotune needs all texts in memory; leave --memory, --resume and --dask out.")
        if self.dask is not None and (self.memory is not None or self.resume):
            raise InputError("fit: --dask keeps the texts on the workers; leave --memory and --resume out.")
        if self.in_batches and self.data == "-":
            raise InputError("fit: --memory and --resume read the data more than once; save it to a file first.")


class Fit:
    """A fit on its way and, when `fit_table` returns it, what is known of the saved model.

    Attributes
    ----------
    model : KeyTokenClassifier
    score : Score or None
        None if too few texts could be held out.
    held : HeldOut or None
        The texts that were held out, if they are in memory.
    tuned : Tuned or None
    columns : dict
        The names of the columns with texts and labels.
    texts : sequence of str or None
        All of them, if they are in memory.
    n_texts : int
    classes : Counter
        The number of texts of each class.
    seconds : dict
    """

    model: KeyTokenClassifier
    score: Score | None = None
    held: HeldOut | None = None
    tuned: Tuned | None = None
    texts: Sequence[str] | None = None
    n_texts: int = 0
    seconds: dict[str, float]

    def __init__(self, job: FitJob, watch: Watcher) -> None:
        self.job, self.watch = job, watch
        self.wanted = Wanted(job.text, job.label, watch.warn)
        self.classes: Counter[Any] = Counter()

    @property
    def columns(self) -> dict[str, str | None]:
        return {"text": self.wanted.text, "label": self.wanted.label}

    def score_held_out(self) -> Score | None:
        """Fit a model to all but the held-out share, and score it there."""
        raise NotImplementedError

    def fit_all(self) -> KeyTokenClassifier:
        """Fit a model to everything."""
        raise NotImplementedError

    def tell_columns(self, texts: str) -> None:
        """Tell the watcher which columns were read."""
        guessed = self.job.text is None or self.job.label is None
        named = " (guessed; --text and --label override)" if guessed else ""
        self.watch.say(f"{texts} from column {self.wanted.text!r}, labels from column {self.wanted.label!r}{named}")

    def record(self) -> dict[str, Any]:
        """Everything, as plain data for JSON."""
        model, output = self.model, self.job.output
        return {
            "score": self.score and asdict(self.score),
            "options": model.flat_params(),
            "tuning": self.tuned and self.tuned.record(),
            "columns": self.columns,
            "classes": model.classes_.tolist(),
            "class_counts": [self.classes[label] for label in model.classes_.tolist()],
            "texts": self.n_texts,
            "tokens": len(model.vocabulary_),
            "steps": model.n_iter_,
            "status": model.status_,
            "dropped": model.dropped_,
            "model": str(output),
            "bytes": sum(file.stat().st_size for file in output.iterdir() if file.is_file()),
            "seconds": self.seconds,
        }


Save = Callable[[KeyTokenClassifier, Path], None]


def fit_table(job: FitJob, watch: Watcher | None = None, save: Save = KeyTokenClassifier.save) -> Fit:
    """Read a table, score a model on a held-out share, fit one to everything, and save it.

    Parameters
    ----------
    job : FitJob
        The table, the options and the output.
    watch : Watcher or None
        Hears how the fit goes on.
    save : callable
        Saves the model in a directory.

    Returns
    -------
    Fit
        The model and what is known of it.
    """
    watch = watch or Watcher()
    job.check()
    partial = Path(f"{job.output if job.output.name else job.output.absolute()}.partial")  # "." has no name
    on_disk = job.in_batches and job.dask is None
    with _alone_in(partial) if on_disk else nullcontext():
        begin = time.perf_counter()
        fit = _InBatches(job, watch, partial) if job.in_batches else _InMemory(job, watch)
        read = time.perf_counter()
        with watch.stage("scoring"):
            fit.score = fit.score_held_out()
        if job.holdout > 0:
            watch.say("no score: too few texts to hold some out (--holdout)" if fit.score is None else str(fit.score))
        scored = time.perf_counter()
        with watch.stage("training"):
            fit.model = fit.fit_all()
        fit.seconds = {"read": read - begin, "score": scored - read, "fit": time.perf_counter() - scored}
        with watch.stage("writing"):
            save(fit.model, job.output)
        if on_disk:
            shutil.rmtree(partial, ignore_errors=True)
    return fit


class _InMemory(Fit):
    """To a table that is read whole, or to texts and labels that are at hand."""

    texts: Sequence[str]

    def __init__(self, job: FitJob, watch: Watcher) -> None:
        super().__init__(job, watch)
        with watch.stage("reading"):
            if isinstance(job.data, tuple):
                self.texts, self.labels = job.data
            else:
                table = read_table(job.data, job.format, self.wanted, job.called)
                text, label = self.wanted.of(table)
                assert label is not None
                self.texts, self.labels = texts_of(table, text), labels_of(table, label)
                self.tell_columns(f"{len(table):,} texts")
        check_labels("fit", self.labels, len(self.texts))
        self.n_texts = len(self.texts)
        self.classes = Counter(self.labels)
        watch.classes(self.classes)

    def score_held_out(self) -> Score | None:
        self.held = hold_out(self.texts, self.labels, self.job.holdout, self.job.seed, self.fit_all)
        return None if self.held is None else self.held.score

    def fit_all(self, texts: Sequence[str] | None = None, labels: Sequence[Any] | None = None) -> KeyTokenClassifier:
        """Fit a model to these texts, or to all; options are searched for with the first ones, and then stay."""
        job, options = self.job, self.job.options
        if texts is None or labels is None:
            texts, labels = self.texts[job.spared :], self.labels[job.spared :]
        if self.tuned is not None:
            options = self.tuned.options
        elif job.autotune is not None:
            given: dict[str, Any] = {"fixed": options, "verbose": self.watch.verbose}
            self.tuned = autotune(texts, labels, seconds=job.autotune, max_bytes=job.max_bytes, seed=job.seed, **given)
            self.watch.say(f"tuned: {self.tuned}")
            return self.tuned.model
        model = KeyTokenClassifier(verbose=self.watch.verbose).set_params(**options).fit(texts, labels)
        return model if job.max_bytes is None else model.compressed(job.max_bytes)


class _InBatches(Fit):
    """To a table of any size, read in batches."""

    def __init__(self, job: FitJob, watch: Watcher, partial: Path) -> None:
        super().__init__(job, watch)
        assert isinstance(job.data, str)
        self.data, self.partial = job.data, partial
        self.told = False
        self.budget = None if job.memory is None else Budget(job.memory, job.options.get("threads") or cores())
        self.identity = self._identity()
        told = {name: value for name, value in job.options.items() if name != "threads"}
        scored = [job.holdout, job.memory, job.max_bytes, self.identity, told]
        self.scored_as = json.dumps(scored, default=repr)

    def score_held_out(self) -> Score | None:
        """The score that an interrupted run of the same share, data and options has left; else a new one."""
        path, job = self.partial / "score.json", self.job
        score = None
        if job.resume:
            with suppress(OSError, ValueError, KeyError, TypeError):
                record = unsealed(path.read_bytes())
                score = Score(**record["score"]) if record["of"] == self.scored_as else None
        if score is None and job.holdout > 0:
            model = self._fit("score", job.holdout)
            classes = model.classes_.tolist()
            judge, some = Judge(classes), max(1, _ANSWERS // len(classes))
            for texts, labels in self._batches(job.holdout, held=True):
                for at in range(0, len(texts), some):
                    judge.add(as_classes(labels[at : at + some], classes), model.predict_proba(texts[at : at + some]))
            score = judge.score()
        if score is not None and job.dask is None:
            write_whole(path, sealed({"of": self.scored_as, "score": asdict(score)}))
        return score

    def fit_all(self) -> KeyTokenClassifier:
        model = self._fit("all", 0.0)
        if not self.classes:  # an earlier run has read them
            for _ in self._batches(0.0):
                pass
        return model

    def _fit(self, name: str, share: float) -> KeyTokenClassifier:
        """A model of all but a share of the texts; its files lie below the folder for what is done so far."""
        job, batches = self.job, self._batches(share)
        if job.dask is not None:
            from ..dask.estimator import fit_on_dask  # an extra: heavy, and perhaps not there

            model = fit_on_dask(batches, job.options, job.dask, as_numbers)
        else:
            with writing(self.partial):
                model = KeyTokenClassifier(verbose=self.watch.verbose).set_params(**job.options)
                model.fit_batches(
                    batches,
                    memory=job.memory,
                    share=1 - share,
                    folder=self.partial / name,
                    resume=job.resume,
                    source=json.dumps([share, self.identity]),
                    relabel=as_numbers,
                )
        return model if job.max_bytes is None else model.compressed(job.max_bytes)

    def _batches(self, share: float, held: bool = False) -> Iterator[tuple[list[str], list[Any]]]:
        """The texts and labels that are held out for the score, or the others; a first pass also counts the classes."""
        self.n_texts = 0
        found: Counter[Any] = Counter()  # labels as they stand in the table
        if self.budget is not None:
            self.budget.longest.clear()
        tables = read_batches(self.data, self.job.format, self.wanted)
        for table in self.watch.counted(tables, "scoring" if held else "reading"):
            text, label = self.wanted.of(table)
            assert label is not None
            if not self.told:
                self.tell_columns("texts")
                self.told = True
            texts, labels = texts_of(table, text), given_labels(table, label)
            out = is_held_out(self.n_texts, len(table), share, self.job.seed)
            self.n_texts += len(table)
            found.update(labels)
            if self.budget is not None:  # of all texts: one that is too long is refused in the first pass
                self.budget.read(compress(texts, ~out))
                self.budget.read(compress(texts, out), held_out=True)
            chosen = np.flatnonzero(out == held).tolist()
            yield [texts[i] for i in chosen], [labels[i] for i in chosen]
        if not self.classes:
            for label, n in zip(as_numbers(list(found)), found.values(), strict=True):
                self.classes[label] += n
            self.watch.classes(self.classes)

    def _identity(self) -> str:
        """Which data these are, as far as the file system tells."""
        root = Path(self.data)
        files = tables_in(root, self.job.format) if os.path.isdir(root) else [root]
        try:
            found = [(os.path.relpath(path, root.parent), path.stat()) for path in files]
            stats = [(name, stat.st_size, stat.st_mtime_ns) for name, stat in found]
        except OSError:
            stats = []  # whoever reads it says what is wrong
        return json.dumps([self.job.text, self.job.label, stats])


@contextmanager
def _alone_in(partial: Path) -> Iterator[None]:
    """Have `OUTPUT.partial` to oneself, and leave it behind only if something in it was finished."""
    with locked(partial, busy="another fit is using it; wait until it ends, or give another --output"):
        try:
            yield
        except BaseException:
            with suppress(OSError):
                partial.rmdir()
            raise
