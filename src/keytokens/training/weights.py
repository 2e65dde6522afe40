"""Weights of documents and classes, and a refusal of fits that are too large for the machine."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.class_weight import compute_sample_weight

from ..base.checks import Seen
from ..base.errors import refusal
from ..base.memory import memory
from ..model.blocks import Float


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


def sample_weights(owner: str, given: Any, n: int) -> NDArray[np.float64]:
    """One weight a document or bag, or one for all; 1 each, which takes no memory, where none is given."""
    try:
        weight = np.asarray(1 if given is None else given, np.float64)
    except (TypeError, ValueError):
        weight = np.zeros(0)
    weight = np.broadcast_to(weight, n) if weight.ndim == 0 else weight
    if weight.shape != (n,) or not np.isfinite(weight).all() or (weight < 0).any() or not weight.any():
        raise refusal(owner, "sample_weight", f"be {n} finite numbers, none negative and not all zero", given)
    return weight


def check_weights(owner: str, weight: Float, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Weights as training can add and square them in this precision: none negative, not all zero, none too large."""
    limit = 1e150 if dtype == np.float64 else 1e18
    with np.errstate(over="ignore"):
        total = float(weight.sum())
    if not (weight >= 0).all() or not 1 / limit <= total <= limit:
        rule = f"be at least 0 and add up to a number from {1 / limit:g} to {limit:g}"
        raise refusal(owner, "sample_weight and class_weight", rule, Seen(f"a sum of {total:g}"))
    return weight.astype(dtype)


def check_memory(owner: str, n_classes: int, n_tokens: int, n_documents: int, itemsize: int) -> None:
    """Refuse before it begins what cannot end: a fit holds several numbers for each class and token, and document.

    So many at the least: parameters, their slope and a few earlier ones; scores and slopes of the documents.
    """
    rows = 1 if n_classes == 2 else n_classes
    least = float(itemsize) * (10.0 * n_tokens * (rows + 1) + 4.0 * rows * n_documents)
    if least > memory():
        sizes = f"{n_classes:,} classes, {n_tokens:,} tokens, {n_documents:,} documents"
        seen = Seen(f"{sizes}, which take {least / 1e9:,.0f} GB")
        advice = "merge classes, or keep fewer tokens"
        raise refusal(owner, "the model", f"fit into the {memory() / 1e9:,.0f} GB of this machine", seen, advice)
