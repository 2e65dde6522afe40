"""What users give as bags, labels and weights; what is wrong is refused in one line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.multiclass import check_classification_targets

from ..core.bags import LARGEST, Bags
from ..errors import refusal
from ..validate import Seen

__all__ = ["classes_of", "check_total", "check_weight", "is_table", "listed", "one_bag", "table_bags"]

Array = NDArray[np.float64]


def listed(X: Any) -> Any:
    """An iterator can be read only once: its bags as a list."""
    return list(X) if isinstance(X, Iterator) else X


def is_table(X: Any) -> bool:
    """A table (n, d), or anything that scikit-learn should refuse in its own words; not a sequence of bags."""
    if isinstance(X, Bags):
        return False
    ndim = getattr(X, "ndim", None)
    if sparse.issparse(X) or (ndim is None and hasattr(X, "__array__")):
        return True
    if ndim not in (None, 1):
        return int(ndim) != 3
    try:
        first = next(iter(X))
        return not isinstance(first, str) and np.ndim(first) in (0, 1)
    except (TypeError, ValueError, StopIteration):
        return ndim is not None


def table_bags(X: Array, owner: str) -> Bags:
    """A table as bags of one instance each."""
    if not np.isfinite(X).all():
        i, j = np.argwhere(~np.isfinite(X))[0]
        raise refusal(owner, f"X[{i}, {j}]", "be finite", float(X[i, j]), "fill or drop NaN and inf first")
    largest = float(np.abs(X).max(initial=0.0))
    if largest > LARGEST:
        raise refusal(owner, "X", f"have entries up to {LARGEST:g}", largest, "scale the vectors")
    return Bags(X, np.arange(len(X) + 1))


def one_bag(bag: Any) -> Array:
    try:
        rows = np.asarray(bag, np.float64)
    except (TypeError, ValueError):
        raise refusal("explain", "bag", "be one bag of numbers, an array (T, d)", bag) from None
    if rows.ndim != 2:
        raise refusal("explain", "bag", "be one bag, an array (T, d)", Seen(f"{rows.ndim} dimensions"))
    return rows


def classes_of(owner: str, y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """The classes, two or more, and the index of each bag's class among them."""
    rule = "be labels of classes: strings, integers or booleans"
    if y.dtype.kind == "f" and np.isnan(y).any():
        raise refusal(owner, "y", rule, Seen("a missing label"), "leave out the bags without one")
    try:
        check_classification_targets(y)
        classes, codes = np.unique(y, return_inverse=True)
    except (TypeError, ValueError) as error:
        raise refusal(owner, "y", rule, Seen(str(error).split(". ")[0].rstrip("."))) from None
    if len(classes) < 2:
        seen = Seen(f"one class only, {classes.tolist()[0]!r}")
        raise refusal(owner, "y", "have at least two classes", seen, "add bags of another class")
    return classes, codes


def check_weight(owner: str, given: Any, n: int) -> Array:
    """One weight a bag; 1 each where none is given."""
    if given is None:
        return np.ones(n)
    try:
        weight = np.asarray(given, np.float64)
        weight = np.full(n, weight) if weight.ndim == 0 else weight
    except (TypeError, ValueError):
        weight = np.zeros(0)
    if weight.shape != (n,) or not np.isfinite(weight).all() or (weight < 0).any() or not weight.any():
        rule = f"be {n} finite numbers, none negative and not all zero"
        raise refusal(owner, "sample_weight", rule, given)
    return weight


def check_total(owner: str, weight: NDArray[np.floating[Any]]) -> Array:
    """Weights times those of the classes: none negative, not all zero, small enough for sums of their squares."""
    with np.errstate(over="ignore"):
        total = float(weight.sum())
    if not (weight >= 0).all() or not 0 < total <= LARGEST:
        rule = f"be at least 0 and add up to at most {LARGEST:g}, not to 0"
        raise refusal(owner, "sample_weight and class_weight", rule, total)
    return np.asarray(weight, np.float64)
