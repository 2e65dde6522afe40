"""How much a token weighs that occurs c times: the one definition that training, proofs, files and the page read.

A weighting has a name, which options, files and the page use, and an expression of the amount c >= 0: "c" itself, a
number, or (operation, expression, ...). Python evaluates it with numpy. The page receives the same expression and
evaluates it with the operations of `app/explorer/static/weighting.js`.

To add a weighting, put it into `WEIGHTINGS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from ..base.errors import refusal

Float = NDArray[np.floating[Any]]  # float32 or float64, as the amounts are
Expression = str | float | tuple[Any, ...]

OPERATIONS: dict[str, Any] = {  # weighting.js has the same
    "+": np.add,
    "*": np.multiply,
    "/": np.divide,
    "min": np.minimum,
    "max": np.maximum,
    "log": np.log,
    "sqrt": np.sqrt,
    "sign": np.sign,
}


@dataclass(frozen=True)
class Weighting:
    """The weight of a token as a function of how often it occurs.

    Proofs need a weight that is 0 for the amount 0 and positive above it, never falls, and grows ever more slowly;
    an expression that breaks this on a grid of amounts is refused.

    Parameters
    ----------
    name : str
        What options, files and the page call it.
    value : "c", float or tuple
        The expression.

    Examples
    --------
    >>> WEIGHTINGS["log"]([0, 0.5, 1, 2]).round(3).tolist()
    [0.0, 0.5, 1.0, 1.693]
    """

    name: str
    value: Expression

    def __post_init__(self) -> None:
        amounts = np.append(np.linspace(0, 4, 17), np.arange(5, 50))
        weights = np.broadcast_to(self(amounts), amounts.shape)
        slopes = np.diff(weights) / np.diff(amounts)
        rising = weights[0] == 0 < weights[1] < np.inf and (slopes >= 0).all()
        if not (rising and (np.diff(slopes) <= 1e-9 * slopes[0]).all()):
            raise refusal("Weighting", "value", "be 0 for 0, then positive, and grow ever more slowly", self.value)

    def __call__(self, amounts: ArrayLike) -> Float:
        """The weights of some amounts, in the precision of the amounts; whole numbers give double precision."""
        c = np.asarray(amounts)
        return _evaluated(self.value, c if c.dtype.kind == "f" else c.astype(np.float64))

    @cached_property
    def additive(self) -> bool:
        """Whether each occurrence counts for itself, whatever the others do."""
        return self.value == "c"


def _evaluated(value: Expression, c: Float) -> Any:
    if isinstance(value, tuple):
        operation, *parts = value
        return OPERATIONS[operation](*(_evaluated(part, c) for part in parts))
    return c if value == "c" else value


# Below 1 (amounts that are not counts) the logarithm goes on as a straight line; "binary" asks whether there is any.
WEIGHTINGS: dict[str, Weighting] = {
    one.name: one
    for one in (
        Weighting("raw", "c"),
        Weighting("log", ("+", ("min", "c", 1), ("log", ("max", "c", 1)))),
        Weighting("binary", ("sign", "c")),
    )
}


def weighting(name: str) -> Weighting:
    """Look up a weighting by its name.

    Raises
    ------
    InputError
        If there is none of this name.
    """
    if name not in WEIGHTINGS:
        raise refusal("weighting", "counts", "be one of " + ", ".join(map(repr, WEIGHTINGS)), name)
    return WEIGHTINGS[name]


def weigh(counts: sparse.csr_matrix, name: str) -> sparse.csr_matrix:
    """Replace the counts of a matrix by their weights; the original is not changed."""
    if WEIGHTINGS[name].additive:
        return counts
    return sparse.csr_matrix((WEIGHTINGS[name](counts.data), counts.indices, counts.indptr), shape=counts.shape)
