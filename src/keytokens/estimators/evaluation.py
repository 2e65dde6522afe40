"""How good a model is: its answers beside the labels that were given, and of which kind the numbers are.

Every score of keytokens is an `Evaluation`. Its kind says what the texts were to the model: `held-out` and
`out-of-fold` answers come from models fitted without the text, `other texts` were not in the training, and answers on
texts `seen in training` say nothing about the next text: they are left out as soon as there are others. Of a model that
keeps no hashes of its texts it is `not known`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

if TYPE_CHECKING:
    from .unseen import Unseen

Array = NDArray[Any]

KINDS = ("held-out", "out-of-fold", "other texts", "seen in training", "not known")
HELD_OUT, OUT_OF_FOLD, OTHER, SEEN, UNKNOWN = KINDS
MIXED = "mixed"  # of more than one of these, but texts seen in training
BINS = 10  # of probabilities
_LEAST = float(np.finfo(np.float64).eps)  # a probability of 0 would make the log loss infinite
_WEAKEST = 20  # classes that a notebook shows
_WELL = 0.03  # a calibration error up to here is called about right


class Answers(NamedTuple):
    """Of each text what a score needs; each (n,)."""

    truth: Array  # number of the given class; those that the model does not know come after its own
    said: Array  # number of the most probable class
    p: Array  # its probability
    p_given: Array  # probability of the given class; nan if the model does not know it
    squares: Array  # sum of the squared probabilities
    second: Array  # probability of class 1

    @classmethod
    def of(cls, P: Array, truth: Array) -> Answers:
        """From the probabilities (n, K) of all classes."""
        rows, said = np.arange(len(P)), P.argmax(axis=1) if len(P) else np.zeros(0, np.intp)
        known = (truth >= 0) & (truth < P.shape[1])
        p_given = np.where(known, P[rows, np.where(known, truth, 0)], np.nan)
        return cls(truth, said.astype(np.int32), P[rows, said], p_given, (P * P).sum(axis=1), P[:, 1])

    def only(self, rows: Array) -> Answers:
        return Answers(*(column[rows] for column in self))

    @classmethod
    def joined(cls, parts: Sequence[Answers]) -> Answers:
        return Answers(*map(np.concatenate, zip(*parts, strict=True)))


class Labels:
    """Numbers of labels: those of a model first, then, as they come, those that it does not know.

    Labels from files are strings, those of a model may be numbers: they are compared as they are written.
    """

    def __init__(self, classes: Sequence[Any]) -> None:
        self.names = list(classes)
        self._number = {str(label): k for k, label in reversed(list(enumerate(classes)))}

    def numbers(self, labels: Sequence[Any]) -> NDArray[np.int32]:
        for label in labels:
            if str(label) not in self._number:
                self._number[str(label)] = len(self.names)
                self.names.append(label)
        return np.array([self._number[str(label)] for label in labels], np.int32)


def _ratio(part: Any, whole: Any) -> float | None:
    return float(part / whole) if whole else None


def wilson(right: int, total: int, level: float = 0.95) -> tuple[float, float]:
    """An interval for a share; it stays inside 0..1 and is honest for few texts.

    >>> [round(end, 4) for end in wilson(9, 10)]
    [0.5958, 0.9821]
    """
    if total == 0:
        return 0.0, 1.0
    z2 = float(ndtri(0.5 + level / 2)) ** 2
    share = right / total
    centre = (share + z2 / (2 * total)) / (1 + z2 / total)
    half = math.sqrt(z2) / (1 + z2 / total) * math.sqrt(share * (1 - share) / total + z2 / (4 * total * total))
    return max(0.0, centre - half) if right else 0.0, min(1.0, centre + half) if right < total else 1.0


def calibration(answers: Answers) -> tuple[list[dict[str, Any]], float]:
    """Bins of the probability of what was said, with how often that was right, and the mean distance of the two."""
    p, right = answers.p, answers.said == answers.truth
    place = np.minimum((p * BINS).astype(int), BINS - 1)
    sizes = np.bincount(place, minlength=BINS)
    hits, sums = np.bincount(place, right, BINS), np.bincount(place, p, BINS)
    bins = [
        {
            "texts": int(n),
            "mean": float(total / n) if n else None,
            "share": float(hit / n) if n else None,
            "interval": list(wilson(int(hit), int(n))),
        }
        for n, hit, total in zip(sizes, hits, sums, strict=True)
    ]
    return bins, float(np.abs(hits - sums).sum() / max(1, len(p)))


class Scored(Protocol):
    """A model that is judged."""

    classes_: Array
    unseen_: Unseen | None


class Evaluator:
    """Compares the answers of a model with given labels, batch by batch, honest about texts of its training."""

    def __init__(self, model: Scored) -> None:
        self._unseen = model.unseen_
        self._labels = Labels(model.classes_.tolist())
        self._known = len(model.classes_)
        self._answers: list[Answers] = []
        self._kinds: list[Array] = []  # their numbers

    def add(self, texts: Sequence[str], labels: Sequence[Any], P: Array) -> None:
        """Some texts, their labels, and the probabilities (texts, classes) that the model gives.

        For a text of the training what counts is what a model without it has said.
        """
        truth = self._labels.numbers(labels)
        knows = self._unseen is not None and self._unseen.recognises
        answers, kinds = Answers.of(P, truth), np.full(len(truth), KINDS.index(OTHER if knows else UNKNOWN), np.uint8)
        if self._unseen is not None and knows:
            rows, seen = self._unseen.find(texts)
            stored = np.flatnonzero(rows >= 0)
            for own, other in zip(answers, self._unseen.answers(rows[stored], truth[stored]), strict=True):
                own[stored] = other
            kinds[seen], kinds[stored] = KINDS.index(SEEN), KINDS.index(self._unseen.kind)
        self._answers.append(answers)
        self._kinds.append(kinds)

    def evaluation(self) -> Evaluation:
        """Of all that was added."""
        nothing = Answers.of(np.zeros((0, 2)), np.zeros(0, np.int32))
        kinds = np.concatenate([np.zeros(0, np.uint8), *self._kinds])
        return Evaluation(self._labels.names, self._known, Answers.joined([nothing, *self._answers]), kinds)


def evaluate(model: Any, texts: Sequence[str], labels: Sequence[Any]) -> Evaluation:
    """Judge a model on texts and their labels."""
    judge = Evaluator(model)
    judge.add(texts, labels, model.predict_proba(texts))
    return judge.evaluation()


def stored(model: Scored) -> Evaluation | None:
    """The score that the model keeps; None if it keeps none."""
    unseen = model.unseen_
    if unseen is None or not len(unseen):
        return None
    names, rows = model.classes_.tolist(), np.arange(len(unseen))
    kinds = np.full(len(rows), KINDS.index(unseen.kind), np.uint8)
    return Evaluation(names, len(names), unseen.answers(rows, unseen.given.astype(np.int32)), kinds)


@dataclass(frozen=True, eq=False)
class Evaluation:
    """How good a model is on some texts. Texts seen in training count only if there are no others.

    Attributes
    ----------
    names : list
        The labels by number: those of the model, then those that it does not know.
    known : int
        How many labels the model knows.
    given : Answers
        Of all texts that were given.
    kind_of : (n,) array
        For each of them, the number of its kind in `KINDS`.
    """

    names: list[Any]
    known: int
    given: Answers
    kind_of: Array

    @cached_property
    def rows(self) -> Array:
        """The places of the texts that count among those that were given."""
        honest = np.flatnonzero(self.kind_of != KINDS.index(SEEN))
        return honest if len(honest) else np.arange(len(self.kind_of))

    @cached_property
    def answers(self) -> Answers:
        """Of the texts that count."""
        return self.given.only(self.rows)

    def only(self, rows: Array) -> Evaluation:
        """Of some of the given texts."""
        return replace(self, given=self.given.only(rows), kind_of=self.kind_of[rows])

    @cached_property
    def kinds(self) -> dict[str, int]:
        """How many of the given texts are of each kind."""
        sizes = np.bincount(self.kind_of, minlength=len(KINDS)).tolist()
        return {kind: n for kind, n in zip(KINDS, sizes, strict=True) if n}

    @property
    def kind(self) -> str | None:
        """Of the numbers; None without texts."""
        honest = [kind for kind in self.kinds if kind != SEEN]
        return (honest[0] if len(honest) == 1 else MIXED) if honest else next(iter(self.kinds), None)

    @property
    def n(self) -> int:
        """How many texts count."""
        return len(self.rows)

    @cached_property
    def right(self) -> Array:
        """(n,) whether each answer is right."""
        return np.asarray(self.answers.said == self.answers.truth)

    @property
    def accuracy(self) -> float | None:
        return float(self.right.mean()) if self.n else None

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        return wilson(int(self.right.sum()), self.n, level)

    @cached_property
    def _texts(self) -> Array:
        """Texts of each label."""
        return np.bincount(self.answers.truth, minlength=len(self.names))

    @property
    def baseline(self) -> tuple[int, float] | None:
        """The number of the most frequent label, and the accuracy of always saying it."""
        most = int(self._texts.argmax())
        return (most, float(self._texts[most] / self.n)) if self.n else None

    @property
    def doubt(self) -> str:
        """What is wrong with a model of this score, in a sentence; empty if nothing is."""
        if self.baseline is None or self.kind == SEEN or (self.accuracy or 0) > self.baseline[1]:
            return ""
        always = f"{self.baseline[1]:.4f}, which always answering the most frequent class has"
        return f"the {self.kind} accuracy {self.accuracy:.4f} is no better than {always}"

    @property
    def uncovered(self) -> list[int]:
        """Numbers of labels that an out-of-fold or held-out score does not cover: too few texts have them."""
        apart = self.kind in (HELD_OUT, OUT_OF_FOLD)
        return [k for k in range(self.known) if apart and not self._texts[k]]

    @cached_property
    def confusions(self) -> list[list[int]]:
        """[given, said, texts] wherever there are such texts."""
        pairs = np.stack([self.answers.truth, self.answers.said], axis=1)
        found, times = np.unique(pairs, axis=0, return_counts=True)
        return [[*map(int, pair), int(n)] for pair, n in zip(found, times, strict=True)]

    @cached_property
    def classes(self) -> list[dict[str, Any]]:
        """Of each label: texts, how often it was said, recall, precision, F1, what it is most often mistaken for."""
        size = len(self.names)
        given, said = self._texts, np.bincount(self.answers.said, minlength=size)
        hits = np.bincount(self.answers.truth[self.right], minlength=size)
        mistaken: dict[int, list[int]] = {}
        for truth, answer, n in self.confusions:
            if truth != answer and n > mistaken.get(truth, [0, 0])[1]:
                mistaken[truth] = [answer, n]
        return [
            {
                "texts": int(given[k]),
                "said": int(said[k]),
                "recall": _ratio(hits[k], given[k]),
                "precision": _ratio(hits[k], said[k]),
                "f1": _ratio(2 * hits[k], given[k] + said[k]),
                "mistaken": mistaken.get(k),
            }
            for k in range(size)
        ]

    def f1(self, weighted: bool = False) -> float | None:
        """The mean F1 of the labels that were given or said, each alike or weighted by its texts."""
        found = [(one["f1"], one["texts"] if weighted else 1) for one in self.classes if one["f1"] is not None]
        return sum(f1 * weight for f1, weight in found) / sum(weight for _, weight in found) if found else None

    @cached_property
    def _known(self) -> Answers:
        """Answers to texts whose label the model knows."""
        return self.answers.only(self.answers.truth < self.known)

    @property
    def log_loss(self) -> float | None:
        p = self._known.p_given
        return float(-np.log(np.maximum(p, _LEAST)).mean()) if len(p) else None

    @property
    def brier(self) -> float | None:
        """Mean squared error of the probabilities: summed over the classes, of two classes that of one."""
        found = self._known
        error = found.squares - 2 * found.p_given + 1
        return float(error.mean() / (2 if self.known == 2 else 1)) if len(error) else None

    @cached_property
    def calibration(self) -> dict[str, Any]:
        """Bins, mean distance between what is claimed and what comes true, and that in words."""
        bins, error = calibration(self.answers)
        if not self.n:
            return {"bins": bins, "error": None, "verdict": None}
        p = self.answers.p
        noise = sum(math.sqrt(one["texts"] * one["mean"] * (1 - one["mean"])) for one in bins if one["texts"]) / self.n
        gap = float(p.mean()) - float(self.right.mean())
        verdict = "about right" if error <= max(_WELL, 2 * noise) else "too sure" if gap > 0 else "too modest"
        return {"bins": bins, "error": error, "verdict": verdict}

    def _ranking(self, name: str) -> float | None:
        """A score of scikit-learn of the order of the texts by the probability of the second of two classes."""
        found = self._known
        if self.known != 2 or len(np.unique(found.truth)) < 2:
            return None
        from sklearn import metrics  # heavy, and asked for by evaluations only

        return float(getattr(metrics, name)(found.truth, found.second))

    def headline(self) -> dict[str, Any]:
        """What is said first, as plain data for JSON."""
        return {
            "accuracy": self.accuracy,
            "kind": self.kind,
            "n": self.n,
            "interval": list(self.interval()),
            "kinds": self.kinds,
            "baseline": self.baseline and {"label": self.names[self.baseline[0]], "accuracy": self.baseline[1]},
            "macro_f1": self.f1(),
            "weighted_f1": self.f1(weighted=True),
            "log_loss": self.log_loss,
            "brier": self.brier,
            "calibration_error": self.calibration["error"],
            "roc_auc": self._ranking("roc_auc_score"),
            "average_precision": self._ranking("average_precision_score"),
        }

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain data for JSON."""
        return {
            **self.headline(),
            "labels": self.names,
            "uncovered": [self.names[k] for k in self.uncovered],
            "classes": [
                {**one, "label": name, "mistaken": one["mistaken"] and self.names[one["mistaken"][0]]}
                for name, one in zip(self.names, self.classes, strict=True)
            ],
            "confusions": [[self.names[t], self.names[s], n] for t, s, n in self.confusions],
            "calibration": self.calibration,
        }

    def to_frame(self) -> Any:
        """The classes as a table of pandas, weakest first."""
        from ..explain.record import frame

        weakest = sorted(self.to_dict()["classes"], key=lambda one: 2.0 if one["f1"] is None else one["f1"])
        names = ("label", "texts", "said", "recall", "precision", "f1", "mistaken")
        return frame([{name: one[name] for name in names} for one in weakest])

    def _repr_html_(self) -> str:
        """The score and the weakest classes, for a notebook."""
        from ..explain.format import label_name
        from ..explain.html import css, escaped, table

        shown = [(self.names[k], one) for k, one in enumerate(self.classes) if one["f1"] is not None]
        shown.sort(key=lambda pair: float(pair[1]["f1"]))
        rates = [[f"{one[name] or 0:.3f}" for name in ("recall", "precision", "f1")] for _, one in shown[:_WEAKEST]]
        rows = [
            [escaped(label_name(name)), f"{one['texts']:,}", *rate]
            for (name, one), rate in zip(shown[:_WEAKEST], rates, strict=True)
        ]
        head = ("class, weakest first", "texts", "recall", "precision", "F1")
        return f'<div class="keytokens"><style>{css()}</style><p>{escaped(str(self))}</p>{table(head, rows)}</div>'

    def __str__(self) -> str:
        """One line, as `fit` prints it."""
        if self.accuracy is None or self.baseline is None:
            return "no score: no text that the model has not seen"
        low, high = self.interval()
        what = {HELD_OUT: "held-out texts", OUT_OF_FOLD: "texts, out of fold", OTHER: "other texts"}
        loss = "" if self.log_loss is None else f", log loss {self.log_loss:.4f}"
        return (
            f"accuracy {self.accuracy:.4f} ({low:.4f} to {high:.4f}) on {self.n:,} "
            f"{what.get(self.kind or '', f'texts ({self.kind})')} (most frequent class: {self.baseline[1]:.4f}){loss}"
        )
