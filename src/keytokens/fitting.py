"""What every estimator's `fit` does besides training: weights of classes, and a bar for those who wait."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.class_weight import compute_sample_weight
from tqdm.auto import tqdm

from .core.counts import Float

__all__ = ["class_weighted", "listening", "progress"]

Tick = Callable[[float], None]
_listener: ContextVar[Tick | None] = ContextVar("listener", default=None)


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
def listening(tick: Tick) -> Iterator[None]:
    """Have every fit inside, of this thread, call `tick` with its objective after each step."""
    before = _listener.set(tick)
    try:
        yield
    finally:
        _listener.reset(before)


@contextmanager
def progress(verbose: int) -> Iterator[Tick]:
    """A function to call with the objective after each step; a bar on stderr (1: on a terminal only, 2: always)."""
    listener = _listener.get() or (lambda value: None)
    if not verbose:
        yield listener
        return
    with tqdm(desc="training", unit="step", disable=None if verbose == 1 else False, leave=False) as bar:

        def tick(value: float) -> None:
            listener(value)
            bar.set_postfix(objective=f"{value:.6g}", refresh=False)
            bar.update()

        yield tick
