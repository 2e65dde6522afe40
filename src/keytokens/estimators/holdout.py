"""The score on texts that a model has not seen: hold some out, fit to the others, then fit to everything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from .text import KeyTokenClassifier


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Texts that were held out, and what a model fitted to the others says of them."""

    rows: NDArray[np.intp]  # their places among the given texts
    labels: NDArray[Any]
    classes: NDArray[Any]
    P: NDArray[Any]
    baseline: float  # accuracy of always saying the most frequent label

    def score(self) -> dict[str, Any]:
        right = self.classes[self.P.argmax(axis=1)] == self.labels
        accuracy, n = float(right.mean()), len(self.rows)
        return {
            "texts": n,
            "accuracy": accuracy,
            "standard_error": float(np.sqrt(accuracy * (1 - accuracy) / n)),
            "log_loss": float(log_loss(self.labels, self.P, labels=self.classes)),
            "baseline": self.baseline,
        }


def hold_out(
    texts: Sequence[str],
    labels: Sequence[Any],
    options: dict[str, Any],
    share: float,
    seed: int,
    fit: Callable[[list[str], list[Any]], KeyTokenClassifier] | None = None,
) -> HeldOut | None:
    """Fit to all but a share of the texts and ask about those; None where there are too few to hold some out.

    `fit` stands for another way to a model than a classifier with the options; it sees no text that is held out.
    """
    members = Counter(labels)
    n_out = round(share * len(texts))
    if n_out < len(members) or len(texts) - n_out < 2 * len(members) or min(members.values()) < 2:
        return None
    kept, out = train_test_split(np.arange(len(texts)), test_size=n_out, stratify=labels, random_state=seed)
    fit = fit or KeyTokenClassifier().set_params(**options).fit
    model = fit([texts[i] for i in kept], [labels[i] for i in kept])
    truth = np.array([labels[i] for i in out])
    most_frequent = max(members, key=lambda c: members[c])
    P = model.predict_proba([texts[i] for i in out])
    return HeldOut(out, truth, model.classes_, P, float((truth == most_frequent).mean()))
