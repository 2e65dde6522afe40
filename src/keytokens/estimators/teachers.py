"""Texts without labels, and who says what they are: the model itself, an estimator, a function, or probabilities."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from ..base.checks import Seen, check_number, check_texts
from ..base.errors import refusal
from ..training.fit import TrainingSet
from ..training.teaching import Teaching
from .unseen import hashes_of, salt_of

SELF = "self"
_SUM = 1e-3  # by which the probabilities of a text may miss 1


@dataclass(frozen=True, eq=False)
class Teacher:
    """Whom `fit` asks about texts without labels, and how much it believes.

    >>> teacher = Teacher.of(lambda texts: [[0.2, 0.8]] * len(texts))
    >>> teacher.kind, teacher.told(["a", "b"], np.array(["bad", "good"])).shape
    ('function', (2, 2))
    """

    given: Any = SELF
    weight: float = 1.0
    loss: float = 0.0
    classes: NDArray[Any] | None = None  # of the columns, where they may be more than those of the labels

    @classmethod
    def of(cls, given: Any = SELF, weight: float = 1.0, loss: float = 0.0) -> Teacher:
        """Checked."""
        check_number("fit", "teacher_weight", weight, 0)
        check_number("fit", "teacher_loss", loss, 0)
        if isinstance(given, str | bytes | type) and given != SELF:
            rule = 'be "self", an estimator, a function of texts, or an array of probabilities'
            raise refusal("fit", "teacher", rule, given, "for example teacher=pipeline.predict_proba")
        return cls(given, float(weight), float(loss))

    @property
    def kind(self) -> str:
        if isinstance(self.given, str):
            return SELF
        return "estimator" if self.learns else "function" if callable(self.given) else "probabilities"

    @property
    def learns(self) -> bool:
        """Whether it is fitted to the labelled texts first, anew for each fold."""
        return hasattr(self.given, "predict_proba") and hasattr(self.given, "fit")

    def rows(self, which: NDArray[np.intp], n_texts: int) -> Teacher:
        """The teacher of some of so many texts."""
        if self.kind != "probabilities":
            return self
        P = _array(self.given)
        if P.ndim != 2 or len(P) != n_texts:
            rule = f"have one row of probabilities for each of the {n_texts} texts without a label"
            raise refusal("fit", "teacher", rule, Seen(f"shape {P.shape}") if P.size else self.given)
        return replace(self, given=P[which])

    def fitted(self, texts: Sequence[str], labels: NDArray[Any]) -> Teacher:
        """One that has learned the labels, if it is one that learns."""
        if not self.learns:
            return self
        model = clone(self.given).fit(texts, labels)
        return replace(self, given=model.predict_proba, classes=model.classes_)

    def told(self, texts: Sequence[str], classes: NDArray[Any]) -> NDArray[np.float32]:
        """(n, K) what it says of the texts, checked, shared among these classes."""
        columns = classes if self.classes is None else self.classes
        P = _array(self.given(texts) if callable(self.given) else self.given)
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


def _array(given: Any) -> NDArray[Any]:
    """Numbers; empty for what is none."""
    try:
        return np.asarray(given, np.float64)
    except (TypeError, ValueError):
        return np.zeros(0)


@dataclass(frozen=True, eq=False)
class Unlabeled:
    """Texts without labels, no labelled one among them and none twice, and their teacher."""

    texts: list[str]
    teacher: Teacher

    @classmethod
    def of(cls, given: Any, teacher: Teacher, labelled: Sequence[str], classes: NDArray[Any]) -> Unlabeled:
        """Checked; no texts for None."""
        texts = [] if given is None else check_texts("fit", given)
        salt = salt_of("")
        seen, new = set(hashes_of(labelled, salt).tolist()), []
        for row, name in enumerate(hashes_of(texts, salt).tolist()):
            if name not in seen:
                seen.add(name)
                new.append(row)
        if teacher.classes is None:
            teacher = replace(teacher, classes=classes)
        return cls([texts[row] for row in new], teacher.rows(np.array(new, np.intp), len(texts)) if texts else teacher)

    def __len__(self) -> int:
        return len(self.texts)

    def told(self, labelled: Sequence[str], labels: NDArray[Any], classes: NDArray[Any]) -> NDArray[Any]:
        """What the teacher says of each text; a number without a meaning where it is the model itself."""
        if self.teacher.kind == SELF:
            return np.zeros(len(self), np.intp)
        return self.teacher.fitted(labelled, labels).told(self.texts, classes)

    def teaching(self, documents: TrainingSet) -> Teaching:
        """Of these texts as documents, with what was told."""
        return Teaching(documents, self.teacher.kind != SELF, self.teacher.weight, self.teacher.loss)


def judge(agreement: float, error: float, n_classes: int, n_texts: int) -> None:
    """Refuse a teacher that the labels contradict; announce one that may as well have guessed."""
    seen = f"{agreement:.0%} of each of the {n_classes} classes told, on average, from {n_texts:,} labelled texts"
    if agreement <= 1 / n_classes:
        advice = "look at the order of its columns, and at what it says of a few texts"
        raise refusal("fit", "teacher", f"agree with the labels more than a guess, {1 / n_classes:.0%}", Seen(seen), advice)
    if agreement <= 1 / n_classes + 2 * error:
        line = f"fit: the teacher may be guessing, which would harm the model: {seen}; a guess has {1 / n_classes:.0%}."
        warnings.warn(line, UserWarning, stacklevel=4)
