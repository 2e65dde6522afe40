"""Max-margin problems of attention: min 1/2 |p|^2 subject to A p >= b and C p = 0.

A row of A is (winning token) - (losing token); b is 1, or 0 where the row is relaxed. C holds ties: (token) - (token)
for tokens that must get the same attention logit. The norm is the solver's business: nothing here knows it.

The rows need not all exist at once. `Dense` holds a matrix; `Differences` holds points and pairs (s, s'), and its rows
are points[s] - points[s']; `Kronecker` holds the two factors of rows of a problem of a matrix W.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse
from scipy.linalg.blas import idamax

from ...base.checks import array_of, floats
from ...base.errors import refusal
from ...model.ragged import Bags, Index, Vector, flat_sets
from ..problems.problem import counts_of


@dataclass(frozen=True, eq=False)
class MarginProblem:
    """min 1/2 |p|^2 subject to A p >= b and C p = 0; made by the class methods, which check what they are given.

    Keys are an array (n, T, d), a list of arrays (T_i, d) or `Bags`; a selection is one index a bag.

    `names` (m, 2) says where a row comes from: (bag, losing token), or (winning, losing) token of a vocabulary.
    """

    inequalities: Rows
    b: Vector
    equalities: Rows
    names: Index | None = None

    @classmethod
    def from_rows(cls, A: Any, b: Any = 1.0, equal: Any = None) -> MarginProblem:
        """From matrices: A p >= b, equal p = 0.

        >>> problem = MarginProblem.from_rows([[1.0, 0.0], [-2.0, 1.0]])
        >>> len(problem), problem.dim, problem.times(np.array([1.0, 3.0])).tolist()
        (2, 2, [1.0, 1.0])
        """
        owner = "MarginProblem.from_rows"
        rows = _matrix(owner, "A", A)
        ties = np.zeros((0, rows.shape[1])) if equal is None else _matrix(owner, "equal", equal)
        if ties.shape[1] != rows.shape[1]:
            raise refusal(owner, "equal", f"have {rows.shape[1]} columns, as `A` has", f"shape {ties.shape}")
        return cls(Dense(rows), _bounds(owner, b, len(rows)), Dense(ties))

    @classmethod
    def from_selection(cls, keys: Any, selection: Sequence[int] | Index) -> MarginProblem:
        """The selected token of each bag above the others by 1.

        >>> problem = MarginProblem.from_selection([[[-0.1, 1.0], [1.0, 0.0], [0.0, 0.0]]], [0])
        >>> problem.rows([0, 1]).tolist(), problem.names.tolist()
        ([[-1.1, 1.0], [-0.1, 1.0]], [[0, 1], [0, 2]])
        """
        owner = "MarginProblem.from_selection"
        bags = Bags.of(keys, owner)
        chosen = bags.chosen(selection, owner)
        rows, ties, names = contests(bags, chosen, chosen[:0])
        return cls(Dense(rows), np.ones(len(rows)), Dense(ties), names)

    @classmethod
    def from_sets(cls, keys: Any, sets: Sequence[Iterable[int]]) -> MarginProblem:
        """Ties: the tokens of a bag's set equal to each other, and 1 above the bag's others.

        One row for each losing token: against the first of the set, since the set's tokens are equal by the ties.

        >>> problem = MarginProblem.from_sets([[[2.0, 0.0], [0.0, 2.0], [0.0, 0.0]]], [{0, 1}])
        >>> problem.rows([0]).tolist(), problem.ties.tolist()
        ([[2.0, 0.0]], [[2.0, -2.0]])
        """
        owner = "MarginProblem.from_sets"
        bags = Bags.of(keys, owner)
        rows, ties, names = contests(bags, *firsts(owner, bags, sets))
        return cls(Dense(rows), np.ones(len(rows)), Dense(ties), names)

    @classmethod
    def from_vocabulary(cls, E: Any, counts: Any, selection: Any) -> MarginProblem:
        """Shared embeddings E (V, d): in each document (row of `counts`) the selected token or tokens above the others.

        A pair of tokens that meets in many documents is one row, and rows are formed only when asked for.

        >>> counts = sparse.csr_matrix([[3, 1, 0], [1, 1, 1]])
        >>> problem = MarginProblem.from_vocabulary([[2.0], [1.0], [0.0]], counts, [0, 0])
        >>> problem.names.tolist(), problem.times(np.array([1.0])).tolist()
        ([[0, 1], [0, 2]], [1.0, 2.0])
        """
        owner = "MarginProblem.from_vocabulary"
        points = _matrix(owner, "E", E)
        high, low, same, tied = _pairs(owner, len(points), counts_of(owner, counts, len(points)), selection)
        return cls(
            Differences(points, high, low),
            np.ones(len(high)),
            Differences(points, same, tied),
            np.column_stack([high, low]),
        )

    def __len__(self) -> int:
        return len(self.inequalities)

    @property
    def dim(self) -> int:
        return self.inequalities.dim

    @property
    def ties(self) -> Vector:
        """C, all of it."""
        return self.equalities.rows(np.arange(len(self.equalities)))

    def times(self, p: Vector) -> Vector:
        """(m,) A p."""
        return self.inequalities.times(p)

    def rows(self, index: Sequence[int] | Index) -> Vector:
        """These rows of A."""
        return self.inequalities.rows(np.asarray(index, np.intp))


def firsts(owner: str, bags: Bags, sets: Sequence[Iterable[int]]) -> tuple[Index, Index]:
    """The first token of each bag's set, which stands for the set, and the other tokens of the sets."""
    bag, token = flat_sets(owner, "sets", sets, bags.sizes, "bag")
    inside = bags.starts[bag] + token
    first = inside[np.flatnonzero(np.diff(bag, prepend=-1))]
    return first, np.setdiff1d(inside, first)


def contests(bags: Bags, first: Index, tied: Index) -> tuple[Vector, Vector, Index]:
    """Each bag's `first` token less the others of its bag, less the `tied` ones, and (bag, token) of the others."""
    other = np.delete(np.arange(len(bags.rows)), np.concatenate([first, tied]))
    rows, ties = bags.rows[first[bags.bag[other]]], bags.rows[first[bags.bag[tied]]]
    rows -= bags.rows[other]
    ties -= bags.rows[tied]
    return rows, ties, np.column_stack([bags.bag[other], other - bags.starts[bags.bag[other]]])


def check_problem(owner: str, problem: Any) -> None:
    if not isinstance(problem, MarginProblem):
        raise refusal(owner, "problem", "be a MarginProblem", problem, "MarginProblem.from_rows makes one of a matrix")


def _matrix(owner: str, name: str, values: Any) -> Vector:
    matrix = array_of(owner, name, values, (-1, -1))
    if not matrix.shape[1]:
        raise refusal(owner, name, "have at least one column", f"shape {matrix.shape}")
    return matrix


def _bounds(owner: str, b: Any, m: int) -> Vector:
    given = floats(b)
    if given is None or given.shape not in ((), (1,), (m,)):
        raise refusal(owner, "b", f"be a number or one number for each of the {m} rows", b)
    bounds = np.array(np.broadcast_to(given, (m,)))
    if not (np.isfinite(bounds) & (bounds >= 0)).all():
        raise refusal(owner, "b", "be finite and at least 0: 1, or 0 for a relaxed row", b)
    return bounds


def _pairs(owner: str, V: int, counts: sparse.csr_matrix, selection: Any) -> tuple[Index, Index, Index, Index]:
    """Distinct pairs of tokens: (high, low) of the rows, (same, tied) of the ties. A pair's code: high * V + low."""
    counts = counts.copy()
    counts.sum_duplicates()
    n = counts.shape[0]
    single = isinstance(selection, Iterable) and all(isinstance(token, (int, np.integer)) for token in selection)
    sets = [[token] for token in selection] if single else selection
    document, token = flat_sets(owner, "selection", sets, np.full(n, V), "document")
    chosen = document * V + token
    present = np.repeat(np.arange(n), np.diff(counts.indptr)) * V + counts.indices
    place = np.searchsorted(present, chosen)  # both are sorted: no set operation has to sort them again
    absent = np.flatnonzero(present[np.minimum(place, len(present) - 1)] != chosen) if len(present) else [0]
    if len(absent):
        i = int(document[absent[0]])
        rule = f"name tokens that occur in document {i}"
        raise refusal(owner, f"selection[{i}]", rule, int(token[absent[0]]))
    first = token[np.flatnonzero(np.diff(document, prepend=-1))]  # the set's least token stands for the set
    other = np.delete(present, place)
    rows = np.unique(first[other // V] * V + other % V)
    ties = np.unique(first[document] * V + token)
    ties = ties[ties // V != ties % V]
    return rows // V, rows % V, ties // V, ties % V


@dataclass(frozen=True, eq=False)
class Dense:
    """Rows that are there. The other two answer the same questions without a matrix of all rows."""

    matrix: Vector

    @property
    def dim(self) -> int:
        return int(self.matrix.shape[1])

    def __len__(self) -> int:
        return len(self.matrix)

    def times(self, p: Vector) -> Vector:
        """(m,) A p."""
        return self.matrix @ p

    def transposed_times(self, lam: Vector) -> Vector:
        """(d,) A'lam."""
        active = np.flatnonzero(lam)  # multipliers are mostly zero: one pass over the matrix less
        return lam[active] @ self.matrix[active] if 4 * len(active) < len(lam) else lam @ self.matrix

    def rows(self, index: Index) -> Vector:
        """(len(index), d) these rows, as a matrix of their own."""
        return self.matrix[index]

    def largest(self) -> float:
        """A bound of |entries| that is exact up to a small factor."""
        flat = self.matrix.ravel()  # one pass, and no copy
        return abs(float(flat[idamax(flat)])) if flat.size else 0.0


@dataclass(frozen=True, eq=False)
class Differences:
    """Row j is points[high[j]] - points[low[j]]; no row is formed before it is asked for."""

    points: Vector
    high: Index
    low: Index

    @property
    def dim(self) -> int:
        return int(self.points.shape[1])

    def __len__(self) -> int:
        return len(self.high)

    def times(self, p: Vector) -> Vector:
        a = self.points @ p
        return a[self.high] - a[self.low]

    def transposed_times(self, lam: Vector) -> Vector:
        size = len(self.points)
        return (np.bincount(self.high, lam, size) - np.bincount(self.low, lam, size)) @ self.points

    def rows(self, index: Index) -> Vector:
        return self.points[self.high[index]] - self.points[self.low[index]]

    def largest(self) -> float:
        # a bound: the range of each coordinate
        return float(np.ptp(self.points, axis=0).max()) if len(self) else 0.0


@dataclass(frozen=True, eq=False)
class Kronecker:
    """Row j is the product left[j] right[bag[j]]', row by row as one long vector; none is formed unless asked for."""

    left: Vector  # (m, d)
    right: Vector  # (n, e)
    bag: Index  # (m,) which row of `right`

    @property
    def shape(self) -> tuple[int, int]:
        """Of W."""
        return self.left.shape[1], self.right.shape[1]

    @property
    def dim(self) -> int:
        return self.left.shape[1] * self.right.shape[1]

    def __len__(self) -> int:
        return len(self.left)

    def times(self, p: Vector) -> Vector:
        return np.einsum("jk,jk->j", self.left, (self.right @ p.reshape(self.shape).T)[self.bag])

    def transposed_times(self, lam: Vector) -> Vector:
        return (self.left.T @ (lam[:, None] * self.right[self.bag])).ravel()

    def rows(self, index: Index) -> Vector:
        return (self.left[index][:, :, None] * self.right[self.bag[index]][:, None, :]).reshape(len(index), self.dim)

    def largest(self) -> float:
        return float(np.abs(self.left).max(initial=0.0) * np.abs(self.right).max(initial=0.0))

    def gram(self) -> Vector:
        """(m, m) the inner products of all rows."""
        return (self.left @ self.left.T) * (self.right @ self.right.T)[np.ix_(self.bag, self.bag)]


Rows: TypeAlias = Dense | Differences | Kronecker


def factors(owner: str, problem: MarginProblem) -> tuple[Kronecker, Kronecker]:
    """Rows and ties of a problem of a matrix."""
    check_problem(owner, problem)
    if not (isinstance(problem.inequalities, Kronecker) and isinstance(problem.equalities, Kronecker)):
        advice = "make it with matrix_problem or tied_matrix_problem"
        raise refusal(owner, "problem", "be a problem of a matrix", "rows of one piece", advice)
    return problem.inequalities, problem.equalities
