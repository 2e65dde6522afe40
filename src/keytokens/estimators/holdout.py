"""The score of a model on texts that it has not seen: which texts are held out, and how its answers are judged.

Every held-out accuracy is a `Score`. Texts in memory are held out by `hold_out`, each class in the same share; texts
that come in batches by `is_held_out`, which looks at the number of a text alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from .text import KeyTokenClassifier

_LEAST = float(np.finfo(np.float64).eps)  # a probability of 0 would make the log loss infinite


@dataclass(frozen=True)
class Score:
    """How a model did on texts that it had not seen."""

    texts: int
    accuracy: float
    standard_error: float
    log_loss: float | None  # over the texts whose labels the model knows; None if there are none
    baseline: float  # accuracy of always saying the most frequent label

    @property
    def doubt(self) -> str:
        """What is wrong with a model of this score, in a sentence; empty if nothing is."""
        if self.accuracy > self.baseline:
            return ""
        always = f"{self.baseline:.4f}, which always answering the most frequent class has"
        return f"the held-out accuracy {self.accuracy:.4f} is no better than {always}"

    def __str__(self) -> str:
        loss = "" if self.log_loss is None else f", log loss {self.log_loss:.4f}"
        return (
            f"accuracy {self.accuracy:.4f} ± {self.standard_error:.4f} on {self.texts:,} held-out texts "
            f"(most frequent class: {self.baseline:.4f}){loss}"
        )


class Judge:
    """Compares the answers of a model with true labels, batch by batch.

    Labels from files are strings, those of a model may be numbers: they are compared as they are written. A label that
    the model does not know counts as wrong, and not for the log loss.
    """

    def __init__(self, classes: Sequence[Any]) -> None:
        self._number = {str(label): k for k, label in reversed(list(enumerate(classes)))}
        self._seen: Counter[str] = Counter()
        self._right, self._known, self._loss = 0, 0, 0.0

    def add(self, labels: Sequence[Any], P: NDArray[Any]) -> None:
        """Some true labels, and the probabilities (texts, classes) that the model gives to these texts."""
        written = [str(label) for label in labels]
        self._seen.update(written)
        truth = np.array([self._number.get(label, -1) for label in written], np.intp)
        known = np.flatnonzero(truth >= 0)
        self._right += int((P.argmax(axis=1) == truth).sum()) if len(P) else 0
        self._known += len(known)
        self._loss -= float(np.log(np.maximum(P[known, truth[known]], _LEAST)).sum())

    @property
    def accuracy(self) -> float:
        """The share of the answers that are right."""
        return self._right / self._seen.total()

    def score(self) -> Score | None:
        """The score so far; None if no text has come."""
        n = self._seen.total()
        if not n:
            return None
        error = float(np.sqrt(self.accuracy * (1 - self.accuracy) / n))
        loss = self._loss / self._known if self._known else None
        return Score(n, self.accuracy, error, loss, max(self._seen.values()) / n)


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Texts that were held out, and what a model fitted to the others says of them."""

    rows: NDArray[np.intp]  # their places among the given texts
    labels: list[Any]
    P: NDArray[Any]
    score: Score


def hold_out(
    texts: Sequence[str],
    labels: Sequence[Any],
    share: float,
    seed: int,
    fit: Callable[[list[str], list[Any]], KeyTokenClassifier],
) -> HeldOut | None:
    """Fit to all but a share of the texts and ask about those; None where there are too few to hold some out.

    `fit` turns texts and labels into a model; it sees no text that is held out.
    """
    members = Counter(labels)
    n_out = round(share * len(texts))
    if n_out < len(members) or len(texts) - n_out < 2 * len(members) or min(members.values()) < 2:
        return None
    kept, out = train_test_split(np.arange(len(texts)), test_size=n_out, stratify=labels, random_state=seed)
    model = fit([texts[i] for i in kept], [labels[i] for i in kept])
    truth, P = [labels[i] for i in out], model.predict_proba([texts[i] for i in out])
    judge = Judge(model.classes_.tolist())
    judge.add(truth, P)
    score = judge.score()
    assert score is not None
    return HeldOut(out, truth, P, score)


def is_held_out(first: int, count: int, share: float, seed: int) -> NDArray[np.bool_]:
    """Whether each of `count` texts, numbered from `first`, is held out: a hash of its number decides.

    >>> is_held_out(0, 5, 0.2, seed=0).tolist() == is_held_out(0, 9, 0.2, seed=0).tolist()[:5]
    True
    """
    x = np.arange(first, first + count, dtype=np.uint64) + np.uint64(seed % 2**32) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    return (x ^ (x >> np.uint64(31))) < np.uint64(share * 2**63) * np.uint64(2)
