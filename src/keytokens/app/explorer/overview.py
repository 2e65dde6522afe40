"""How good the model is on the given texts: numbers only, for the page's first view and for `--json`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...estimators.holdout import Judge
from ...explain.format import label_name

BINS = 10  # of the calibration curve
BARS = 20  # of the histogram
_Z = 1.959963984540054  # two-sided 95 %


class Judged:
    """Labels as class numbers beside what the model says; labels that it does not know come after its classes."""

    def __init__(self, classes: Sequence[Any], labels: Sequence[Any], P: NDArray[Any]) -> None:
        number = {str(label): k for k, label in reversed(list(enumerate(classes)))}
        self.names = [label_name(label) for label in classes]
        self.known = len(classes)
        for label in labels:
            if str(label) not in number:
                number[str(label)] = len(self.names)
                self.names.append(label_name(label))
        self.P = P
        self.truth = np.array([number[str(label)] for label in labels], np.int32)
        self.label = P.argmax(axis=1).astype(np.int32) if len(P) else np.zeros(0, np.int32)
        self.right = self.label == self.truth
        judge = Judge(classes)
        judge.add(labels, P)
        self.score = judge.score()

    @property
    def probability(self) -> NDArray[Any]:
        """Of the predicted label."""
        return self.P[np.arange(len(self.P)), self.label]


def wilson(right: int, total: int) -> tuple[float, float]:
    """95 % interval for a share; it stays inside 0..1 and is honest for few texts.

    >>> [round(end, 4) for end in wilson(9, 10)]
    [0.5958, 0.9821]
    """
    if total == 0:
        return 0.0, 1.0
    share, z2 = right / total, _Z * _Z
    centre = (share + z2 / (2 * total)) / (1 + z2 / total)
    half = _Z / (1 + z2 / total) * math.sqrt(share * (1 - share) / total + z2 / (4 * total * total))
    return max(0.0, centre - half) if right else 0.0, min(1.0, centre + half) if right < total else 1.0


def overview(judged: Judged) -> dict[str, Any]:
    """Score with its interval, confusions, calibration, histogram."""
    n, right = len(judged.truth), int(judged.right.sum())
    score = judged.score
    low, high = wilson(right, n)
    return {
        "texts": n,
        "right": right,
        "accuracy": score and score.accuracy,
        "interval": [low, high],
        "baseline": score and score.baseline,
        "log_loss": score and score.log_loss,
        "names": judged.names,
        "known": judged.known,
        "confusions": _confusions(judged),
        "calibration": _calibration(judged),
        "histogram": _histogram(judged),
    }


def _confusions(judged: Judged) -> list[list[int]]:
    """[true, predicted, texts] wherever there are such texts."""
    pairs, times = np.unique(np.stack([judged.truth, judged.label], axis=1), axis=0, return_counts=True)
    return [[int(t), int(p), int(c)] for (t, p), c in zip(pairs.tolist(), times.tolist(), strict=True)]


def _claimed(judged: Judged) -> tuple[NDArray[Any], NDArray[Any]]:
    """A probability and whether its event came true: of two classes P(second), of more P(predicted label)."""
    if judged.known == 2:
        return judged.P[:, 1], judged.truth == 1
    return judged.probability, judged.right


def _calibration(judged: Judged) -> dict[str, Any]:
    p, came_true = _claimed(judged)
    place = np.minimum((p * BINS).astype(int), BINS - 1)
    bins, gap = [], 0.0
    for k in range(BINS):
        inside = place == k
        n, hits = int(inside.sum()), int(came_true[inside].sum())
        mean = float(p[inside].mean()) if n else None
        if n and mean is not None:
            gap += abs(hits - mean * n)
        bins.append({"texts": n, "mean": mean, "share": hits / n if n else None, "interval": list(wilson(hits, n))})
    return {"bins": bins, "error": gap / len(p) if len(p) else None}


def _histogram(judged: Judged) -> list[list[int]]:
    """Two rows of bars: of two classes by true label (others left out), of more right and wrong."""
    p, _ = _claimed(judged)
    groups = [judged.truth == 0, judged.truth == 1] if judged.known == 2 else [judged.right, ~judged.right]
    place = np.minimum((p * BARS).astype(int), BARS - 1)
    return [np.bincount(place[group], minlength=BARS).tolist() for group in groups]
