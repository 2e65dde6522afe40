"""Max-margin problems of a matrix W: min 1/2 |W|^2 (Frobenius) subject to (x_winner - x_loser)'W z_i >= 1.

W, row by row, is a long p, and a row of the problem is the product of a difference of tokens and a query. No such row
of d e numbers has to be formed: <l z', l' z''> = (l'l')(z'z''), so the Gram matrix of all rows is the entrywise product
of two small ones, and the minimiser W = sum_j lam_j l_j z_j' is found from it. Where rows are many beside the d e
numbers of W, the general solver is asked instead, in the coordinates of the span of the queries.

Under heads that are not linear attention may end on several tokens of a bag:

O_i        the tokens of bag i that keep attention
W_dir      min |W| subject to (x_t - x_u)'W z_i = 0 for t, u in O_i and >= 1 for t in O_i, u outside
W_fin      min |W| subject to (x_t - x_u)'W z_i = log(s_t/s_u) for t, u in O_i
W_fin + R W_dir, R by least squares, predicts where a run is: the finite part keeps the shares, the direction grows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import lstsq, qr
from scipy.linalg.lapack import dpotrf, dpotrs

from ...base.checks import array_of
from ...base.errors import NotSeparable, refusal
from ...model.ragged import Bags, Index, Vector, flat_sets
from ..problems.logits import queries_of
from .problem import Kronecker, MarginProblem, contests, factors, firsts
from .solution import CERTIFIED, NotSolved, Solution, Witness
from .solver import solve

PIVOTS = 40  # changes of the active set before the exact method takes over


def matrix_problem(values: Any, queries: Any, selection: Sequence[int] | Index) -> MarginProblem:
    """The selected token of each bag above the others by 1, as its query sees them: (x_selected - x_t)'W z_i >= 1.

    >>> problem = matrix_problem([[[1.0, 0.0], [0.0, 0.0]]], [[0.0, 2.0]], [0])
    >>> problem.rows([0]).tolist(), problem.names.tolist()
    ([[0.0, 2.0, 0.0, 0.0]], [[0, 1]])
    """
    bags, z = _checked("matrix_problem", values, queries)
    return _problem(bags, z, bags.chosen(selection, "matrix_problem"), np.arange(0))


def tied_matrix_problem(values: Any, queries: Any, sets: Sequence[Iterable[int]]) -> MarginProblem:
    """The tokens of a bag's set with one logit, (x_t - x_u)'W z_i = 0, and 1 above the bag's others.

    >>> problem = tied_matrix_problem([[[2.0], [1.0], [0.0]]], [[3.0]], [{0, 1}])
    >>> problem.rows([0]).tolist(), problem.ties.tolist()
    ([[6.0]], [[3.0]])
    """
    bags, z = _checked("tied_matrix_problem", values, queries)
    return _problem(bags, z, *firsts("tied_matrix_problem", bags, sets))


def _checked(owner: str, values: Any, queries: Any) -> tuple[Bags, Vector]:
    bags = Bags.of(values, owner, "values")
    return bags, queries_of(owner, queries, len(bags))


def _problem(bags: Bags, z: Vector, first: Index, tied: Index) -> MarginProblem:
    """`first` of each bag above all others of its bag but the `tied` ones, which equal it."""
    below, same, names = contests(bags, first, tied)
    rows, ties = Kronecker(below, z, names[:, 0]), Kronecker(same, z, bags.bag[tied])
    return MarginProblem(rows, np.ones(len(below)), ties, names)


def solve_matrix(problem: MarginProblem) -> Solution:
    """The minimiser of |W| (Frobenius), certified; NotSeparable, with a Farkas vector, where there is no such W.

    >>> solution = solve_matrix(matrix_problem([[[1.0, 0.0], [0.0, 0.0]]], [[0.0, 2.0]], [0]))
    >>> solution.W.tolist(), solution.margin, solution.rank.absolute
    ([[0.0, 0.5], [0.0, 0.0]], 2.0, 1)
    """
    rows, ties = factors("solve_matrix", problem)
    numbers = rows.shape[0] * min(rows.shape[1], len(rows.right))
    if len(rows) and len(rows) + len(ties) <= numbers:
        found = _by_gram(problem, rows, ties)
        if found is not None:
            return found
    return _by_coordinates(problem, rows, ties)


def _by_gram(problem: MarginProblem, rows: Kronecker, ties: Kronecker) -> Solution | None:
    """By the Gram matrix of ties and rows, ties first; None where the answer is not certified."""
    k = len(ties)
    both = Kronecker(np.concatenate([ties.left, rows.left]), rows.right, np.concatenate([ties.bag, rows.bag]))
    b = np.concatenate([np.zeros(k), problem.b])
    gram = both.gram()
    active = _pivots(gram, b, k)
    if active is None:
        return None
    lam = np.zeros(len(b))
    # refined once with the products themselves: the Gram matrix has lost digits
    for _ in range(2):
        short = b - both.times(both.transposed_times(lam))
        lam[active] += dpotrs(dpotrf(gram[np.ix_(active, active)], lower=1)[0], short[active], lower=1)[0]
    lam[k:] = np.maximum(lam[k:], 0.0)
    found = Solution(problem, both.transposed_times(lam), lam[k:], lam[:k], len(active))
    return found if found.is_optimal(CERTIFIED) else None


def _pivots(gram: Vector, b: Vector, free: int) -> Index | None:
    """Rows with a positive multiplier, by exchanging all wrong ones at once: u = G_SS^-1 b_S >= 0 and G u >= b.

    The first `free` rows are ties, always in. Exchanges may go round in circles, and dependent rows have no inverse:
    None, and the exact method has its turn.
    """
    inside = np.ones(len(b), np.bool_)
    scale = float(np.sqrt(gram.diagonal().max(initial=0.0)))
    for _ in range(PIVOTS):
        active = np.flatnonzero(inside)
        factor, failed = dpotrf(gram[np.ix_(active, active)], lower=1)
        if failed or factor.diagonal().min(initial=1.0) <= 1e-7 * scale:
            return None
        u = np.zeros(len(b))
        u[active] = dpotrs(factor, b[active], lower=1)[0]
        wrong = np.where(inside, u < 0, gram @ u < b - 1e-12)
        wrong[:free] = False
        if not wrong.any():
            return active
        inside ^= wrong
    return None


def _by_coordinates(problem: MarginProblem, rows: Kronecker, ties: Kronecker) -> Solution:
    """By the general solver, in the coordinates of the span of the queries where that is smaller."""
    basis: Vector = np.eye(rows.shape[1])
    if len(rows.right) < rows.shape[1]:
        basis = np.asarray(qr(rows.right.T, mode="economic")[0], np.float64)
    turned = [replace(one, right=one.right @ basis) for one in (rows, ties)]
    small = replace(problem, inequalities=turned[0], equalities=turned[1])
    try:
        found = solve(small)
    except NotSeparable as none:
        message = "solve_matrix: no matrix separates the selected tokens from the others; `.witness` proves it."
        raise NotSeparable(message, Witness(problem, none.witness.lam, none.witness.nu)) from None
    p = (found.p.reshape(rows.shape[0], -1) @ basis.T).ravel()
    return Solution(problem, p, found.lam, found.nu, found.steps)


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
    direction: Solution
    finite: Vector  # (d, e)

    def length(self, W: Vector) -> float:
        """R = argmin |W_fin + R W_dir - W|; 0 where all tokens are kept, so that W_dir = 0."""
        given = array_of("MultiToken", "W", W, self.finite.shape)
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
