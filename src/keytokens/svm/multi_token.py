"""Attention that ends on several tokens of a bag, as it does under heads that are not linear.

O_i        the tokens of bag i that keep attention
W_dir      min |W| subject to (x_t - x_u)'W z_i = 0 for t, u in O_i and >= 1 for t in O_i, u outside
W_fin      min |W| subject to (x_t - x_u)'W z_i = log(s_t/s_u) for t, u in O_i
W_fin + R W_dir, R by least squares, predicts where a run is: the finite part keeps the shares, the direction grows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lstsq

from ..core.bags import Bags, flat_sets
from ..errors import refusal
from ..validate import floats
from .matrix import Kronecker, MatrixSolution, factors, solve_matrix, tied_matrix_problem
from .solution import NotSolved

__all__ = ["KEPT", "LOST", "MultiToken", "attended_sets", "multi_token_svm"]

Vector = NDArray[np.float64]

KEPT, LOST = 1e-3, 1e-6  # attention above and at most: between them a run has not decided


def attended_sets(values: Any, attention: Any) -> list[set[int]] | None:
    """The tokens of each bag with attention above 1e-3; None where a token is in between or none is at most 1e-6.

    The attention as one number a token: flat, an array (n, T), or a list with a list for each bag.

    >>> bags = Bags.of([[[0.0], [1.0], [2.0]]])
    >>> attended_sets(bags, np.array([0.4, 0.6, 1e-9])), attended_sets(bags, np.array([0.5, 0.5, 1e-4]))
    ([{0, 1}], None)
    """
    bags = Bags.of(values, "attended_sets", "values")
    shares = bags.per_token(attention, "attended_sets", "attention")
    if not (shares >= 0).all() or not np.allclose(bags.sum(shares), 1.0, rtol=0, atol=KEPT):
        raise refusal("attended_sets", "attention", "be shares of at least 0 that sum to 1 in each bag", attention)
    kept = shares > KEPT
    if (~kept & (shares > LOST)).any() or kept.all():
        return None
    return [set(np.flatnonzero(kept[bags.bag == i]).tolist()) for i in range(len(bags))]


@dataclass(frozen=True, eq=False)
class MultiToken:
    """Direction and finite part of the attention on some sets of tokens.

    >>> found = multi_token_svm([[[2.0], [1.0]]], [[1.0]], [{0}], np.log([0.99, 0.01]))
    >>> found.sets, round(found.length(np.array([[5.0]])), 9)
    (((0,),), 5.0)
    """

    sets: tuple[tuple[int, ...], ...]
    direction: MatrixSolution
    finite: Vector  # (d, e)

    def length(self, W: Vector) -> float:
        """R = argmin |W_fin + R W_dir - W|; 0 where all tokens are kept, so that W_dir = 0."""
        given = floats(W)
        if given is None or given.shape != self.finite.shape or not np.isfinite(given).all():
            raise refusal("MultiToken", "W", f"be a matrix of shape {self.finite.shape}, finite", W)
        size = float(np.vdot(self.direction.p, self.direction.p))
        return float(np.vdot(given - self.finite, self.direction.W)) / size if size else 0.0

    def prediction(self, W: Vector) -> Vector:
        """W_fin + R W_dir, R fitted to W."""
        return self.finite + self.length(W) * self.direction.W


def multi_token_svm(
    values: Any, queries: Any, sets: Sequence[Iterable[int]], log_attention: Sequence[float] | Vector
) -> MultiToken:
    """Both parts, from the sets and the logarithms of the attention that their tokens have (one number a token).

    Raises NotSeparable where no direction keeps the sets, NotSolved where no matrix gives these shares.

    >>> found = multi_token_svm([[[2.0], [1.0], [1.0]]], [[1.0]], [{0}], np.log([0.98, 0.01, 0.01]))
    >>> found.direction.W.tolist(), found.finite.tolist(), found.prediction(np.array([[7.0]])).tolist()
    ([[1.0]], [[0.0]], [[7.0]])
    """
    owner = "multi_token_svm"
    bags = Bags.of(values, owner, "values")
    shares = bags.per_token(log_attention, owner, "log_attention", least=-np.inf)
    bag, token = flat_sets(owner, "sets", sets, bags.sizes, "bag")
    kept = shares[bags.starts[bag] + token]
    if not np.isfinite(kept).all():
        raise refusal(owner, "log_attention", "be finite on the sets", kept.tolist())
    begins = np.diff(bag, prepend=-1) > 0
    wanted = (kept[begins][bag] - kept)[~begins]
    listed = tuple(tuple(token[bag == i].tolist()) for i in range(len(bags)))
    problem = tied_matrix_problem(bags, queries, listed)
    return MultiToken(listed, solve_matrix(problem), _shortest(factors(owner, problem)[1], wanted))


def _shortest(ties: Kronecker, wanted: Vector) -> Vector:
    """The shortest W with <tie_j, W> = wanted_j, by the Gram matrix of the ties, refined with the ties themselves."""
    gram, weights = ties.gram(), np.zeros(len(wanted))
    for _ in range(3 if len(wanted) else 0):
        weights += lstsq(gram, wanted - ties.times(ties.transposed_times(weights)))[0]
    p = ties.transposed_times(weights)
    missed = float(np.abs(ties.times(p) - wanted).max(initial=0.0))
    if missed > 1e-8 * (1 + float(np.abs(wanted).max(initial=0.0))):
        raise NotSolved(f"multi_token_svm: no matrix gives these shares; the nearest one misses them by {missed:.1e}.")
    return p.reshape(ties.shape)
