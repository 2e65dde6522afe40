"""Answers about texts of the training by models that have not seen them: out-of-fold, or of a share held out.

`Parts` deals the texts to parts. For each part a model is fitted to the other texts and asked about this one. The hash
of a text decides, not its place: equal texts are in one part, and a table that is read in batches is dealt as one in
memory is. `Collector` gathers the answers, batch by batch, into an `Unseen`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..base.errors import InputError
from .evaluation import HELD_OUT, OUT_OF_FOLD, Labels
from .unseen import LEAST_LOG, TOP, Array, Hashes, Unseen, hashes_of, salt_of

SAMPLE = 2_000  # texts of a training that are remembered, at most, beside those with answers
_ANSWERS = 1 << 21  # probabilities that are held at a time


class Model(Protocol):
    """What a part is asked of."""

    classes_: NDArray[Any]

    def predict_log_proba(self, X: Sequence[str]) -> Array: ...


class Parts:
    """Deals texts, batch by batch: each to one of `folds` parts; or a `share` to part 0 and the others to none (-1).

    The first texts of each class are dealt in turn, so the texts of a rare class are in different folds, and no class
    is held out as a whole.
    """

    def __init__(self, seed: int, folds: int = 0, share: float = 0.0) -> None:
        self.folds, self.share = folds, share
        self.n = folds or int(share > 0)
        self._seed = np.uint64(seed)
        self._next: dict[Any, int] = {}  # of each class: its number, and one more for each text dealt in turn
        self._left: dict[Any, int] = {}  # how many of its texts are still to be dealt in turn
        self._turn: dict[int, int] = {}  # the parts of these texts, by their hashes

    def of(self, hashes: Hashes, labels: Sequence[Any]) -> NDArray[np.int64]:
        """The part of each text, given its hash and its label."""
        for name, label in zip(hashes.tolist(), labels, strict=True):
            if label not in self._next:
                self._next[label], self._left[label] = len(self._next), max(self.folds, 1)
            if self._left[label] and name not in self._turn:
                self._turn[name] = self._next[label] % self.folds if self.folds else -1
                self._next[label] += 1
                self._left[label] -= 1
        mixed = (hashes ^ self._seed) * np.uint64(0x9E3779B97F4A7C15)
        uniform = (mixed ^ (mixed >> np.uint64(32))) * 2.0**-64
        parts = (uniform * self.folds).astype(np.int64) if self.folds else np.where(uniform < self.share, 0, -1)
        for i in np.flatnonzero(np.isin(hashes, np.array(list(self._turn), np.uint64))).tolist():
            parts[i] = self._turn[int(hashes[i])]
        return parts


class Collector:
    """Gathers answers about the texts of a training, and remembers a sample of all its texts."""

    def __init__(self, kind: str, salt: bytes, keep_texts: bool = False) -> None:
        self.kind, self.salt, self.keep_texts = kind, salt, keep_texts
        self._labels = Labels(())
        self._rows: list[tuple[Array, ...]] = []  # hashes, given, top, logs, given_log
        self._texts: list[str] = []
        self._sample = np.zeros(0, np.uint64)
        self._n_texts = 0

    def answered(self, model: Model, texts: Sequence[str], hashes: Hashes, labels: Sequence[Any]) -> None:
        """Ask a model that has not seen these texts; where it does not know the given class it cannot be judged."""
        columns, given = self._labels.numbers(model.classes_.tolist()), self._labels.numbers(labels)
        place = np.full(len(self._labels.names), -1)
        place[columns] = np.arange(len(columns))
        known = np.flatnonzero(place[given] >= 0)
        some = max(1, _ANSWERS // len(columns))
        for rows in np.split(known, range(some, len(known), some)):
            logs = model.predict_log_proba([texts[row] for row in rows.tolist()])
            top = np.argsort(-logs, axis=1, kind="stable")[:, :TOP]
            of_given = logs[np.arange(len(rows)), place[given[rows]]]
            best = np.take_along_axis(logs, top, axis=1)
            self._rows.append((hashes[rows], given[rows], columns[top], best, of_given))
        if self.keep_texts:
            self._texts += [texts[row] for row in known.tolist()]

    def remember(self, hashes: Hashes, n_texts: int) -> None:
        """Keep the least of these hashes, of so many texts, and of all that came before: they are a sample."""
        self._n_texts += n_texts
        self._sample = np.sort(np.concatenate([self._sample, hashes]))[:SAMPLE]

    def unseen(self, classes: Sequence[Any]) -> Unseen:
        """All answers, in the numbers of these classes."""
        number = Labels(classes).numbers(self._labels.names).astype(np.uint32)
        k, none = min(TOP, len(classes)), np.zeros(0, np.uint64)
        rows = [
            (hashes, number[given], *_filled(number[top], logs, k), of_given)
            for hashes, given, top, logs, of_given in self._rows
        ] or [(none, number[:0], np.zeros((0, k)), np.zeros((0, k)), np.zeros(0))]
        hashes, given, top, logs, of_given = map(np.concatenate, zip(*rows, strict=True))
        narrow = np.uint8 if len(classes) <= 256 else np.uint32
        return Unseen(
            kind=self.kind,
            salt=self.salt,
            hashes=hashes,
            given=given.astype(narrow),
            top=top.astype(narrow),
            logs=np.maximum(logs, LEAST_LOG).astype(np.float32),
            given_log=np.maximum(of_given, LEAST_LOG).astype(np.float32),
            others=self._sample,
            share=len(self._sample) / self._n_texts if self._n_texts else 1.0,
            n_texts=self._n_texts or len(hashes),
            n_classes=len(classes),
            texts=tuple(self._texts),
        )


def _filled(top: Array, logs: Array, k: int) -> tuple[Array, Array]:
    """With k classes: a model that did not know all of them gives the others next to nothing."""
    missing = np.setdiff1d(np.arange(k), top[:1])[: k - top.shape[1]]
    wide = len(top), len(missing)
    return np.hstack([top, np.broadcast_to(missing, wide)]), np.hstack([logs, np.full(wide, LEAST_LOG)])


def cross_fit(
    texts: Sequence[str],
    labels: Sequence[Any],
    parts: Parts,
    fit: Callable[[NDArray[np.intp]], Model],
    tick: Callable[[int, int], None] = lambda done, of: None,
    keep_texts: bool = False,
) -> Collector:
    """Ask about each part a model that `fit` makes of the other rows; `tick` hears how many of the parts are done."""
    salt = salt_of(texts[0])
    hashes = hashes_of(texts, salt)
    part = parts.of(hashes, labels)
    found = Collector(OUT_OF_FOLD if parts.folds else HELD_OUT, salt, keep_texts)
    for k in range(parts.n):
        inside, outside = np.flatnonzero(part == k).tolist(), np.flatnonzero(part != k)
        classes = {labels[i] for i in outside[:100].tolist()}
        if len(classes) < 2:
            classes |= {labels[i] for i in outside.tolist()}
        model = _fitted(fit, outside) if inside and len(classes) > 1 else None
        if model is not None:
            found.answered(model, [texts[i] for i in inside], hashes[inside], [labels[i] for i in inside])
        tick(k + 1, parts.n)
    return found


def _fitted(fit: Callable[[NDArray[np.intp]], Model], rows: NDArray[np.intp]) -> Model | None:
    """None if these few rows cannot be learned from; if all of them cannot, the fit to all will say so."""
    try:
        return fit(rows)
    except InputError:
        return None


def remembered(texts: Sequence[str], n_classes: int) -> Unseen:
    """No answers, and a sample of the texts, so that an evaluation on texts of the training is known for what it is."""
    found = Collector(HELD_OUT, salt_of(texts[0]))
    found.remember(hashes_of(texts[:: max(1, len(texts) // SAMPLE)], found.salt), len(texts))
    return found.unseen(range(n_classes))
