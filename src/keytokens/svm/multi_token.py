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

from ..core.bags import Bags
from ..errors import refusal
from .matrix import Kronecker, MatrixSolution, factors, solve_matrix, tied_matrix_problem
from .solution import NotSolved

__all__ = ["KEPT", "LOST", "MultiToken", "attended_sets", "multi_token_svm"]

Vector = NDArray[np.float64]

KEPT, LOST = 1e-3, 1e-6  # attention above and at most: between them a run has not decided


def attended_sets(bags: Bags, attention: Vector) -> list[set[int]] | None:
    """The tokens of each bag with attention above 1e-3; None where a token is in between or none is at most 1e-6.

    >>> bags = Bags.of([[[0.0], [1.0], [2.0]]])
    >>> attended_sets(bags, np.array([0.4, 0.6, 1e-9])), attended_sets(bags, np.array([0.5, 0.5, 1e-4]))
    ([{0, 1}], None)
    """
    kept = attention > KEPT
    if (~kept & (attention > LOST)).any() or kept.all():
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
        """R = argmin |W_fin + R W_dir - W|."""
        return float(np.vdot(W - self.finite, self.direction.W)) / float(np.vdot(self.direction.p, self.direction.p))

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
    bags = Bags.of(values, "multi_token_svm", "values")
    problem = tied_matrix_problem(bags, queries, sets)
    shares = np.asarray(log_attention, np.float64)
    if shares.shape != (len(bags.rows),):
        rule = f"be one number for each of the {len(bags.rows)} tokens"
        raise refusal("multi_token_svm", "log_attention", rule, f"shape {shares.shape}")
    listed = [sorted(tokens) for tokens in sets]
    firsts = [shares[bags.starts[i] + tokens[0]] for i, tokens in enumerate(listed)]
    wanted = [firsts[i] - shares[bags.starts[i] + t] for i, tokens in enumerate(listed) for t in tokens[1:]]
    finite = _shortest(factors("multi_token_svm", problem)[1], np.array(wanted, np.float64))
    return MultiToken(tuple(map(tuple, listed)), solve_matrix(problem), finite)


def _shortest(ties: Kronecker, wanted: Vector) -> Vector:
    """The shortest W with <tie_j, W> = wanted_j, by the Gram matrix of the ties, refined with the ties themselves."""
    if not np.isfinite(wanted).all():
        raise refusal("multi_token_svm", "log_attention", "be finite on the sets", wanted.tolist())
    gram, weights = ties.gram(), np.zeros(len(wanted))
    for _ in range(3 if len(wanted) else 0):
        weights += lstsq(gram, wanted - ties.times(ties.transposed_times(weights)))[0]
    p = ties.transposed_times(weights)
    missed = float(np.abs(ties.times(p) - wanted).max(initial=0.0))
    if missed > 1e-8 * (1 + float(np.abs(wanted).max(initial=0.0))):
        raise NotSolved(f"multi_token_svm: no matrix gives these shares; the nearest one misses them by {missed:.1e}.")
    return p.reshape(ties.shape)
