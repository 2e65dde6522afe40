"""What every estimator's `fit` does besides training: weights of classes, and a bar for those who wait."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.class_weight import compute_sample_weight
from tqdm.auto import tqdm

from .core.counts import Float

__all__ = ["class_weighted", "progress"]


def class_weighted(rule: Any, y: NDArray[Any], weight: Float) -> Float:
    """Weights times those of the classes. "balanced" goes by weight: an entry of weight 2 is the same as two entries.

    >>> class_weighted("balanced", np.array([0, 0, 1]), np.ones(3)).tolist()
    [0.75, 0.75, 1.5]
    """
    if rule is None:
        return weight
    if isinstance(rule, str):
        _, codes = np.unique(y, return_inverse=True)
        total = np.bincount(codes, weight)
        return weight * (total.sum() / (np.count_nonzero(total) * np.maximum(total, 1e-300)))[codes]
    return weight * compute_sample_weight(rule, y)


@contextmanager
def progress(verbose: int) -> Iterator[Callable[[float], None]]:
    """A function to call with the objective after each step; a bar on stderr (1: on a terminal only, 2: always)."""
    if not verbose:
        yield lambda value: None
        return
    with tqdm(desc="training", unit="step", disable=None if verbose == 1 else False, leave=False) as bar:

        def tick(value: float) -> None:
            bar.set_postfix(objective=f"{value:.6g}", refresh=False)
            bar.update()

        yield tick
