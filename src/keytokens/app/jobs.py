"""One road from a table to a saved model: read, ask about texts kept apart, fit to everything, save.

`fit_table` takes it for `keytokens fit`, for the trainings of the server and for the demo. A table that fits into the
memory is read whole. With a budget of memory, with `resume` and with Dask it is read in batches, as often as needed;
which texts are kept apart hangs on their hashes and the seed, so it is the same in every pass and in memory. What a fit
in batches has done lies in `OUTPUT.partial` until the model is saved.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from itertools import chain, compress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

from ..base.checks import check_labels, check_number
from ..base.errors import InputError
from ..base.files import check_output, locked, write_whole, writing
from ..base.threads import cores
from ..estimators.crossfit import Collector, Parts, cross_fit, remembered
from ..estimators.evaluation import HELD_OUT, OUT_OF_FOLD, Evaluation, stored
from ..estimators.streaming import Budget, sealed, unsealed
from ..estimators.teachers import SELF, names_of
from ..estimators.text import KeyTokenClassifier
from ..estimators.tuning import Tuned, autotune
from ..estimators.unseen import Hashes, Unseen, hashes_of, salt_of
from ..io.reading import read_batches, read_table, tables_in
from ..io.sources import check_format
from ..io.table import Table, Wanted, as_classes, as_numbers, given_labels, labels_of, texts_of
from .unlabeled import UnlabeledTable

NO_TEXTS = np.zeros(0, np.uint64)
FOLDS = 5
SHARE = 0.2  # of the texts, held out where nothing is cross-fitted


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

    def parts(self, of: int) -> AbstractContextManager[Callable[[int, int], None]]:
        """Return a context with a function that hears how many of so many parts have been asked about."""
        return nullcontext(lambda done, of: None)


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
    cross_fit: int | None = None  # folds; by default `FOLDS` where the texts are in memory and no share is held out
    holdout: float | None = None  # the share that is held out where nothing is cross-fitted
    keep_hashes: bool = True  # of the texts, in the model
    keep_texts: bool = False  # that were asked about, in the model
    seed: int = 0
    autotune: float | None = None  # seconds
    max_bytes: int | None = None
    memory: int | None = None  # bytes; the table is then read in batches, as it is with the next two
    resume: bool = False
    dask: str | None = None
    unlabeled: str | None = None  # a table of texts without labels
    teacher: str = SELF  # or how the names of its columns with probabilities begin

    @property
    def in_batches(self) -> bool:
        """Whether the table is never held in memory as a whole."""
        return self.memory is not None or self.resume or self.dask is not None

    @property
    def folds(self) -> int:
        """In how many folds the texts are asked about; 0: a share is held out instead."""
        if self.cross_fit is not None:
            return self.cross_fit
        return 0 if self.holdout is not None or self.in_batches or self.autotune is not None else FOLDS

    @property
    def share(self) -> float:
        """Of the texts, held out at a time."""
        return 1 / self.folds if self.folds else SHARE if self.holdout is None else self.holdout

    def parts(self) -> Parts:
        return Parts(self.seed, self.folds, 0.0 if self.folds else self.share)

    def check(self) -> None:
        """Refuse, before the work, what breaks a rule or does not go together."""
        check_format(self.format)
        check_number("fit", "--autotune", self.autotune, 0, above=True, none=True)
        KeyTokenClassifier().set_params(**self.options).check_options()
        if self.cross_fit == 1:
            raise InputError("fit: --cross-fit must be 0, or 2 folds or more; saw 1.")
        if self.folds and self.holdout is not None:
            raise InputError("fit: --holdout measures where --cross-fit does not; give one of the two.")
        check_output(self.output, "model.json")
        if self.in_batches and self.autotune is not None:
            raise InputError("fit: --autotune needs all texts in memory; leave --memory, --resume and --dask out.")
        if self.dask is not None and (self.memory is not None or self.resume):
            raise InputError("fit: --dask keeps the texts on the workers; leave --memory and --resume out.")
        if self.in_batches and self.data == "-":
            raise InputError("fit: --memory and --resume read the data more than once; save it to a file first.")
        if self.unlabeled is not None and self.autotune is not None:
            raise InputError("fit: --autotune does not know of --unlabeled; leave one of them out.")
        if self.unlabeled is None and self.teacher != SELF:
            raise InputError("fit: --teacher is asked about texts without labels; give them with --unlabeled.")
        if self.unlabeled == "-":
            raise InputError("fit: --unlabeled is read more than once; save it to a file first.")


class Fit:
    """A fit on its way and, when `fit_table` returns it, what is known of the saved model.

    Attributes
    ----------
    model : KeyTokenClassifier
    score : Evaluation or None
        On texts kept apart; None if no text was, or too few.
    tuned : Tuned or None
    columns : dict
        The names of the columns with texts and labels.
    texts, labels : sequence or None
        All of them, if they are in memory.
    n_texts : int
    classes : Counter
        The number of texts of each class.
    seconds : dict
    """

    model: KeyTokenClassifier
    score: Evaluation | None = None
    tuned: Tuned | None = None
    texts: Sequence[str] | None = None
    labels: Sequence[Any] | None = None
    n_texts: int = 0
    seconds: dict[str, float]

    def __init__(self, job: FitJob, watch: Watcher) -> None:
        self.job, self.watch = job, watch
        self.wanted = Wanted(job.text, job.label, watch.warn)
        self.others: UnlabeledTable | None = None
        if job.unlabeled is not None:
            wanted = Wanted(None, None, watch.warn, need_label=False)
            self.others = UnlabeledTable(job.unlabeled, wanted, teacher=job.teacher)
        self.classes: Counter[Any] = Counter()

    @property
    def columns(self) -> dict[str, str | None]:
        return {"text": self.wanted.text, "label": self.wanted.label}

    def ask_apart(self) -> Unseen | None:
        """Ask about each part of the texts a model that was fitted to the others; None if nothing is kept apart."""
        raise NotImplementedError

    def fit_all(self) -> KeyTokenClassifier:
        """Fit a model to everything."""
        raise NotImplementedError

    def finished(self, model: KeyTokenClassifier, unseen: Unseen | None) -> KeyTokenClassifier:
        """Calibrated on the answers, which it keeps, and not larger than asked."""
        if unseen is not None:
            model.keep(unseen.beside(model.unseen_) if model.unseen_ is not None else unseen)
        if model.unseen_ is not None and not self.job.keep_hashes:
            model.unseen_ = model.unseen_.without_hashes()
        model.about_ = self.about()
        return self.smaller(model)

    def smaller(self, model: KeyTokenClassifier) -> KeyTokenClassifier:
        return model if self.job.max_bytes is None else model.compressed(self.job.max_bytes)

    def about(self) -> dict[str, Any]:
        """What the model remembers of its training."""
        day = datetime.now(UTC).date().isoformat()
        return {"texts": self.n_texts, "trained": day, "columns": self.columns}

    def tell_columns(self, texts: str) -> None:
        """Tell the watcher which columns were read."""
        guessed = self.job.text is None or self.job.label is None
        named = " (guessed; --text and --label override)" if guessed else ""
        self.watch.say(f"{texts} from column {self.wanted.text!r}, labels from column {self.wanted.label!r}{named}")

    def record(self) -> dict[str, Any]:
        """Everything, as plain data for JSON."""
        model, output = self.model, self.job.output
        return {
            "score": self.score and self.score.to_dict(),
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
    """Read a table, ask models about texts that they have not seen, fit one to everything, and save it.

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
            unseen = fit.ask_apart() if job.share > 0 else None
        scored = time.perf_counter()
        with watch.stage("training"):
            fit.model = fit.finished(fit.fit_all(), unseen)
        fit.score = stored(fit.model)
        if job.share > 0:
            watch.say("no score: too few texts to keep some apart" if fit.score is None else str(fit.score))
        fit.seconds = {"read": read - begin, "score": scored - read, "fit": time.perf_counter() - scored}
        with watch.stage("writing"):
            save(fit.model, job.output)
        if on_disk:
            shutil.rmtree(partial, ignore_errors=True)
    return fit


class _InMemory(Fit):
    """To a table that is read whole, or to texts and labels that are at hand."""

    texts: Sequence[str]
    labels: Sequence[Any]

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

    def ask_apart(self) -> Unseen:
        def fit(rows: NDArray[np.intp]) -> KeyTokenClassifier:
            some = rows.tolist()
            return self.smaller(self._fit([self.texts[row] for row in some], [self.labels[row] for row in some]))

        parts = self.job.parts()
        with self.watch.parts(parts.n) as tick:
            found = cross_fit(self.texts, self.labels, parts, fit, tick, self.job.keep_texts)
        unseen = found.unseen(sorted(self.classes))
        return unseen.calibrated() if parts.folds else unseen

    def fit_all(self) -> KeyTokenClassifier:
        model = self._fit(self.texts, self.labels, self.watch.verbose)
        if model.unseen_ is None:  # it comes from a search
            model.unseen_ = remembered(self.texts, len(model.classes_))
        return model

    @cached_property
    def _unlabeled(self) -> dict[str, Any]:
        """The texts without labels, none of which has one in the table, as `fit` takes them."""
        if self.others is None:
            return {}
        labelled = names_of(self.texts)
        given = self.others.given(lambda: labelled)
        if self.others.teacher == SELF:
            return {"unlabeled": list(chain.from_iterable(given["unlabeled"]))}
        texts, told = zip(*given["unlabeled"], strict=True)
        return {"unlabeled": list(chain(*texts)), "teacher": replace(given["teacher"], given=np.concatenate(told))}

    def _fit(self, texts: Sequence[str], labels: Sequence[Any], verbose: int = 0) -> KeyTokenClassifier:
        """A model of these texts; options are searched for anew, unless a share was held out: then they stay."""
        job, options = self.job, self.job.options
        if self.tuned is not None and not job.folds:
            options = self.tuned.options
        elif job.autotune is not None:
            given: dict[str, Any] = {"fixed": options, "verbose": self.watch.verbose}
            self.tuned = autotune(texts, labels, seconds=job.autotune, max_bytes=job.max_bytes, seed=job.seed, **given)
            self.watch.say(f"tuned: {self.tuned}")
            return self.tuned.model
        return KeyTokenClassifier(verbose=verbose).set_params(**options).fit(texts, labels, **self._unlabeled)


class _InBatches(Fit):
    """To a table of any size, read in batches."""

    def __init__(self, job: FitJob, watch: Watcher, partial: Path) -> None:
        super().__init__(job, watch)
        assert isinstance(job.data, str)
        self.data, self.partial = job.data, partial
        self.told = False
        self.apart: list[Hashes] = []  # names of the texts that a part has kept apart
        self.seen: Collector | None = None  # what a pass over all texts has remembered
        self.budget = None if job.memory is None else Budget(job.memory, job.options.get("threads") or cores())
        self.identity = self._identity()
        told = {name: value for name, value in job.options.items() if name != "threads"}
        apart = [job.folds, job.share, job.seed, job.keep_texts, job.teacher]
        self.asked_as = json.dumps([apart, job.memory, job.max_bytes, self.identity, told], default=repr)

    def ask_apart(self) -> Unseen | None:
        """The answers that an interrupted run of the same data and options has left; else new ones."""
        path, job = self.partial / "score.json", self.job
        found = self._kept(path) if job.resume else None
        if found is None:
            found = self._asked()
            if found is not None and job.dask is None:
                arrays = base64.b64encode(save_arrays(found.to_arrays())).decode()
                classes = list(map(str, sorted(self.classes)))
                kept = {"of": self.asked_as, "facts": found.facts(), "arrays": arrays, "classes": classes}
                write_whole(path, sealed(kept))
        return found

    def _asked(self) -> Unseen | None:
        parts, collector = self.job.parts(), None
        with self.watch.parts(parts.n) as tick:
            for part in range(parts.n):
                model = self.smaller(self._fit(f"part{part}", part))
                classes = model.classes_.tolist()
                for texts, labels, hashes in self._batches(part, inside=True):
                    collector = collector or Collector(
                        OUT_OF_FOLD if parts.folds else HELD_OUT, self.salt, self.job.keep_texts
                    )
                    collector.answered(model, texts, hashes, as_classes(labels, classes))
                tick(part + 1, parts.n)
        if collector is None:
            return None
        unseen = collector.unseen(sorted(self.classes))
        return unseen.calibrated() if parts.folds else unseen

    def _kept(self, path: Path) -> Unseen | None:
        try:
            record = unsealed(path.read_bytes())
            if record["of"] != self.asked_as:
                return None
            arrays = load_arrays(base64.b64decode(record["arrays"]))
            return Unseen.from_arrays(arrays, record["facts"], len(record["classes"]))
        except (OSError, ValueError, KeyError, TypeError, SafetensorError):
            return None

    def fit_all(self) -> KeyTokenClassifier:
        model = self._fit("all", None)
        if not self.classes or self.seen is None:  # an earlier run has read them
            for _ in self._batches(None):
                pass
        assert self.seen is not None
        model.unseen_ = self.seen.unseen(model.classes_.tolist())
        return model

    def _fit(self, name: str, part: int | None) -> KeyTokenClassifier:
        """A model of all texts but those of a part; its files lie below the folder for what is done so far."""
        job, share = self.job, 1.0 if part is None else 1 - self.job.share
        batches = ((texts, labels) for texts, labels, _ in self._batches(part))
        if job.dask is not None:
            from ..dask.estimator import fit_on_dask  # an extra: heavy, and perhaps not there

            model = fit_on_dask(batches, job.options, job.dask, as_numbers, **self._unlabeled(part))
        else:
            with writing(self.partial):
                model = KeyTokenClassifier(verbose=self.watch.verbose).set_params(**job.options)
                model.fit_batches(
                    batches,
                    memory=job.memory,
                    share=share,
                    folder=self.partial / name,
                    resume=job.resume,
                    source=json.dumps([part, job.folds, share, self.identity]),
                    relabel=as_numbers,
                    **self._unlabeled(part),
                )
        return model

    def _unlabeled(self, part: int | None) -> dict[str, Any]:
        """The texts without labels, as a fit of this part takes them: none that the model is asked about later."""
        return {} if self.others is None else self.others.given(lambda: np.concatenate([NO_TEXTS, *self.apart]))

    def _batches(self, part: int | None, inside: bool = False) -> Iterator[tuple[list[str], list[Any], Hashes]]:
        """Texts, labels and hashes inside a part, or all but those; a first pass also counts the classes."""
        self.n_texts = 0
        self.apart.clear()
        parts = self.job.parts()
        found: Counter[Any] = Counter()  # labels as they stand in the table
        if self.budget is not None:
            self.budget.longest.clear()
        tables = read_batches(self.data, self.job.format, self.wanted)
        for table in self.watch.counted(tables, "scoring" if inside else "reading"):
            text, label = self.wanted.of(table)
            assert label is not None
            if not self.told:
                self.tell_columns("texts")
                self.told = True
            texts, labels = texts_of(table, text), given_labels(table, label)
            if not self.n_texts:
                self.salt = salt_of(texts[0])
                self.seen = Collector(HELD_OUT, self.salt)
            hashes = hashes_of(texts, self.salt)
            within = np.zeros(len(texts), bool) if part is None else parts.of(hashes, labels) == part
            if self.others is not None and within.any():
                self.apart.append(names_of(list(compress(texts, within))))
            if part is None and self.seen is not None:
                self.seen.remember(hashes, len(hashes))
            self.n_texts += len(table)
            found.update(labels)
            if self.budget is not None:  # of all texts: one that is too long is refused in the first pass
                self.budget.read(compress(texts, ~within))
                self.budget.read(compress(texts, within), held_out=True)
            chosen = np.flatnonzero(within == inside)
            yield [texts[i] for i in chosen.tolist()], [labels[i] for i in chosen.tolist()], hashes[chosen]
        if not self.classes:
            for label, n in zip(as_numbers(list(found)), found.values(), strict=True):
                self.classes[label] += n
            self.watch.classes(self.classes)

    def _identity(self) -> str:
        """Which data these are, as far as the file system tells."""
        stats = []
        for source in (self.data, *([] if self.job.unlabeled is None else [self.job.unlabeled])):
            root = Path(source)
            files = tables_in(root, self.job.format) if os.path.isdir(root) else [root]
            with suppress(OSError):  # whoever reads it says what is wrong
                found = [(os.path.relpath(path, root.parent), path.stat()) for path in files]
                stats += [(name, stat.st_size, stat.st_mtime_ns) for name, stat in found]
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
