"""Texts without labels, and who says what they are: the model itself, an estimator, a function, or probabilities."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from ..base.checks import Seen, check_number, check_texts
from ..base.errors import refusal
from .unseen import Hashes, hashes_of, salt_of

SELF, ESTIMATOR, FUNCTION, PROBABILITIES = "self", "estimator", "function", "probabilities"
TEACHERS = (SELF, ESTIMATOR, FUNCTION, PROBABILITIES)
GIVEN = "given"  # with each batch of texts
_SUM = 1e-3  # by which the probabilities of a text may miss 1
_SALT = salt_of("")
_SURE = 3.0  # standard errors above a guess; texts of a kind are told alike, so guesses scatter somewhat more than by 1


@dataclass(frozen=True, eq=False)
class Teacher:
    """Whom a fit asks about texts without labels, and how much it believes.

    >>> teacher = Teacher.of(lambda texts: [[0.2, 0.8]] * len(texts))
    >>> teacher.kind, teacher.told(["a", "b"], np.array(["bad", "good"])).shape
    ('function', (2, 2))
    """

    given: Any = SELF
    weight: float = 1.0
    loss: float = 0.0
    classes: NDArray[Any] | None = None  # of its columns; None: those of the labels

    @classmethod
    def of(cls, given: Any = SELF, weight: float = 1.0, loss: float = 0.0) -> Teacher:
        """Checked; a teacher stays what it is."""
        if isinstance(given, Teacher):
            return given
        check_number("fit", "teacher_weight", weight, 0)
        check_number("fit", "teacher_loss", loss, 0)
        known = isinstance(given, Iterable) or callable(given) or _learns(given)
        if not known or isinstance(given, bytes | type) or (isinstance(given, str) and given not in (SELF, GIVEN)):
            rule = 'be "self", an estimator, a function of texts, or an array of probabilities'
            raise refusal("fit", "teacher", rule, given, "for example teacher=pipeline.predict_proba")
        return cls(given, float(weight), float(loss))

    @property
    def kind(self) -> str:
        if isinstance(self.given, str):
            return SELF if self.given == SELF else PROBABILITIES
        return ESTIMATOR if _learns(self.given) else FUNCTION if callable(self.given) else PROBABILITIES

    def fitted(self, texts: Sequence[str], labels: NDArray[Any]) -> Teacher:
        """One that has learned the labels, if it is an estimator: a copy of it, anew for each fold."""
        if self.kind != ESTIMATOR:
            return self
        model = clone(self.given).fit(texts, labels)
        return replace(self, given=model.predict_proba, classes=getattr(model, "classes_", None))

    def of_batches(self) -> Teacher:
        """Refused where it would have to be fitted to texts that are not in memory."""
        if self.kind == ESTIMATOR:
            rule = "be fitted already, for texts in batches"
            raise refusal("fit_batches", "teacher", rule, self.given, "give its predict_proba")
        return self

    def told(self, texts: Sequence[Any], classes: NDArray[Any], given: Any = None) -> NDArray[Any]:
        """(n, K) what is said of the texts, checked, shared among these classes; zeros if the model is the teacher."""
        given = self.given if given is None else given
        if isinstance(given, str):
            return np.zeros(len(texts), np.intp)
        columns = classes if self.classes is None else self.classes
        if not np.isin(classes, columns).all():
            raise refusal("fit", "teacher", f"know the classes {classes.tolist()}", columns.tolist())
        try:
            P = np.asarray(given(texts) if callable(given) else given, np.float64)
        except (TypeError, ValueError):
            P = np.zeros(0)
        if P.shape != (len(texts), len(columns)):
            names = ", ".join(map(str, columns.tolist()[:5])) + ", ..." * (len(columns) > 5)
            rule = f"give {len(texts)} rows of {len(columns)} probabilities, in the order {names}"
            raise refusal("fit", "teacher", rule, Seen(f"shape {P.shape}"))
        wrong = np.flatnonzero(~((P >= 0).all(axis=1) & (np.abs(P.sum(axis=1) - 1) <= _SUM)))
        if len(wrong):
            seen = Seen(f"{P[wrong[0]].tolist()} in row {wrong[0]}")
            raise refusal("fit", "teacher", "give probabilities, each at least 0, that add up to 1 in each row", seen)
        P = P[:, np.isin(columns, classes)]
        total = P.sum(axis=1, keepdims=True)
        return np.where(total > 0, P / np.maximum(total, 1e-300), 1 / len(classes)).astype(np.float32)


def names_of(texts: Sequence[str]) -> Hashes:
    """Equal texts have equal names."""
    return hashes_of(texts, _SALT)


def _learns(given: Any) -> bool:
    return hasattr(given, "predict_proba") and hasattr(given, "fit")


class Distinct:
    """Tells which hashes have not come before, batch by batch.

    What came before lies in sorted arrays; two are merged where they are of about the same size.

    >>> distinct = Distinct()
    >>> [distinct.new(np.array(batch, np.uint64)).tolist() for batch in ([7, 5, 7], [5, 6])]
    [[0, 1], [1]]
    """

    def __init__(self) -> None:
        self._seen: list[Hashes] = []

    def new(self, hashes: Hashes) -> NDArray[np.intp]:
        """The places of the new ones, in order; of equal ones the first."""
        own, first = np.unique(hashes, return_index=True)
        fresh = np.ones(len(own), np.bool_)
        for seen in self._seen:
            fresh &= ~np.isin(own, seen, assume_unique=True)
        self._seen.append(own[fresh])
        while len(self._seen) > 1 and len(self._seen[-2]) <= 2 * len(self._seen[-1]):
            last = self._seen.pop()
            self._seen[-1] = np.sort(np.concatenate([self._seen[-1], last]))
        return np.sort(first[fresh])


class Unlabeled:
    """Texts without labels, batch by batch: no labelled one among them and none twice, and what is said of them."""

    def __init__(self, batches: Iterable[Any], teacher: Teacher) -> None:
        self.teacher = teacher
        self._batches = batches
        self._distinct = Distinct()
        self._told: list[NDArray[Any]] = []

    def labelled(self, texts: Sequence[str]) -> None:
        """These have labels: they come before all others."""
        self._distinct.new(names_of(texts))

    def texts(self, classes: Callable[[], NDArray[Any]]) -> Iterator[list[str]]:
        """The new texts of each batch; `classes` is called when the first has come, and all labels are known."""
        known: NDArray[Any] | None = None
        for one in self._batches:
            batch, given = one if isinstance(self.teacher.given, str) and self.teacher.given == GIVEN else (one, None)
            known = classes() if known is None else known
            listed = check_texts("fit", batch)
            told = self.teacher.told(listed, known, given)
            new = self._distinct.new(names_of(listed))
            self._told.append(told[new])
            yield [listed[row] for row in new.tolist()]

    @property
    def told(self) -> NDArray[Any]:
        """(m, K) probabilities of the new texts; (m,) zeros where the model is the teacher."""
        return np.concatenate(self._told) if self._told else np.zeros(0, np.intp)


def judge(agreement: float, error: float, n_classes: int, n_texts: int) -> None:
    """Refuse a teacher that the labels contradict; announce one that may as well have guessed."""
    guess = 1 / n_classes
    seen = f"{agreement:.0%} of each class, on average, of {n_texts:,} labelled texts"
    if agreement <= guess:
        advice = "look at the order of its columns, and at what it says of a few texts"
        raise refusal("fit", "teacher", f"tell the labels better than a guess, {guess:.0%}", Seen(seen), advice)
    if agreement <= guess + _SURE * error:
        line = f"fit: the teacher may be guessing, and that would harm the model: it tells {seen}; a guess {guess:.0%}."
        warnings.warn(line, UserWarning, stacklevel=4)


def told_of(taught: dict[str, Any]) -> str:
    """In a line, what a model has learned from texts without labels.

    >>> told_of({"teacher": "self", "texts": 12000, "weight": 1.0, "loss": 0.0})
    'learned from 12,000 texts without labels too; the model itself said what they are'
    """
    who = {
        SELF: "the model itself said",
        ESTIMATOR: "an estimator said",
        FUNCTION: "a function said",
        PROBABILITIES: "given probabilities say",
    }
    told = f"learned from {taught['texts']:,} texts without labels too; {who[taught['teacher']]} what they are"
    agreement = taught.get("agreement")
    return told if agreement is None else f"{told}, and so tell {agreement:.0%} of each class of the labelled ones"
