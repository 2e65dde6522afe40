"""What the model says of one input, whatever the input is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Prediction"]


@dataclass(frozen=True, eq=False)
class Prediction:
    """Scores and probabilities of the classes."""

    scores: NDArray[Any]  # (K,) two classes: 0 and f
    probabilities: NDArray[Any]  # (K,)
    classes: Sequence[Any]
    winner: int  # index of the predicted class: the first of the largest probabilities

    @property
    def explained(self) -> int:
        """The class whose score the contributions add up to: the second of two, the predicted one of more."""
        return 1 if len(self.classes) == 2 else self.winner

    @property
    def label(self) -> Any:
        return self.name(self.winner)

    @property
    def probability(self) -> float:
        return float(self.probabilities[self.winner])

    @property
    def logit(self) -> float:
        return float(self.scores[self.explained])

    def name(self, index: int | None) -> Any:
        """The label of a class as plain data; None for none."""
        label = None if index is None else self.classes[index]
        return label.item() if isinstance(label, np.generic) else label
