"""Documents and a start, what one step on the embeddings makes of them; and the words for the paper."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..planted import Documents
from ..two_stage import Start, Step, first_step
from .common import Array

__all__ = ["AFTER", "PAPER", "Training", "random_documents", "small_enough"]

PAPER = "Trained Embeddings"
AFTER = "keytokens, after " + PAPER


@dataclass(frozen=True, eq=False)
class Training:
    """Documents, a start, a step size; weights of the documents, or None for 1/n."""

    documents: Documents
    start: Start
    eta: float = 1.0
    weights: Array | None = None

    @cached_property
    def step(self) -> Step:
        return first_step(self.documents, self.start, self.eta, self.weights)


def random_documents(rng: np.random.Generator, most: int = 8) -> Documents:
    """Documents of different lengths with labels by coin; every token occurs."""
    n, V = int(rng.integers(2, most)), int(rng.integers(2, most))
    tokens = [rng.integers(0, V, rng.integers(1, 9)) for _ in range(n)]
    tokens[0] = np.concatenate([tokens[0], np.arange(V)])
    labels = rng.choice([-1.0, 1.0], n)
    labels[:2] = [1.0, -1.0]
    return Documents.of(tokens, labels, V)


def small_enough(start: Start, suffices: Callable[[Start], bool]) -> Start:
    """The start, or with E and p halved, as often as it takes: the smaller it is, the less b differs from eta alpha/2.

    So says te.one-step-bound. Most starts do as they are; frequent tokens in few dimensions need a smaller one.
    """
    for _ in range(20):
        if suffices(start):
            break
        start = replace(start, E=start.E / 2, p=start.p / 2)
    return start
