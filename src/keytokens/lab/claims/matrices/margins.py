"""Attention by a matrix: when W can separate, and what its max-margin matrices look like, each found twice."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import minimize, nnls

from ....model.ragged import Bags, Index, Vector
from ...problems.problem import Problem
from ...svm.matrix import matrix_problem, solve_matrix
from ...svm.nuclear import solve_nuclear
from ...svm.solution import Solution
from ...svm.solver import solved
from ..claim import Counter, Hypothesis, claim
from ..instances import cross_spheres, few_tokens, more_tokens

PAPER = "Transformers as Support Vector Machines (arXiv:2308.16898), "
OURS = "keytokens, after " + PAPER.removesuffix(", ")


@dataclass(frozen=True, eq=False)
class Wanted:
    """Tokens and queries, and the token of each input that is to win."""

    values: Bags
    queries: Vector
    selection: Index

    @cached_property
    def problem(self) -> Any:
        return matrix_problem(self.values, self.queries, self.selection)

    @cached_property
    def frobenius(self) -> Solution | None:
        """None where nothing separates."""
        return solved(solve_matrix, self.problem)

    @cached_property
    def nuclear(self) -> Solution | None:
        return None if self.frobenius is None else solve_nuclear(self.problem, self.frobenius)

    def of_input(self, i: int) -> Vector:
        """The selected token minus the others."""
        t = self.selection[i]
        return self.values[i][t] - np.delete(self.values[i], t, axis=0)

    @cached_property
    def differences(self) -> Vector:
        """Of all inputs, and in `asked` the query of each."""
        return np.concatenate([self.of_input(i) for i in range(len(self.values))])

    @property
    def asked(self) -> Vector:
        return np.repeat(self.queries, self.values.sizes - 1, axis=0)


def _draw_wanted(rng: np.random.Generator) -> Wanted:
    """Any selection; n and T - 1 up to d; every other time the queries are tokens of the inputs."""
    d = int(rng.integers(2, 6))
    n, T = int(rng.integers(1, d + 1)), int(rng.integers(2, d + 2))
    one = cross_spheres(rng, n, T, d, self_attention=bool(rng.integers(2)))
    return Wanted(one.values, one.queries, rng.integers(0, T, n))


# Feasibility ---------------------------------------------------------------------------------------------------------


def rank_of(A: Vector) -> int:
    return int(np.linalg.matrix_rank(A, tol=1e-9 * max(1.0, float(np.abs(A).max(initial=0.0)))))


def _constructed(x: Wanted) -> Vector:
    """W z_i = w_i with margins of exactly 1 in input i: the shortest such w_i, and dual vectors of the queries."""
    w = [np.linalg.pinv(rows) @ np.ones(len(rows)) for rows in map(x.of_input, range(len(x.values)))]
    return np.stack(w, axis=1) @ np.linalg.pinv(x.queries.T)


QUERIES = Hypothesis[Wanted]("the queries are independent", lambda x: rank_of(x.queries) == len(x.queries))
TOKENS = Hypothesis[Wanted](
    "within each input the differences to the selected token are independent",
    lambda x: all(rank_of(x.of_input(i)) == size - 1 for i, size in enumerate(x.values.sizes)),
)
PAIR = [[1.0, 0.0], [0.0, 0.0]]


@claim(
    "fu.feasible",
    says="With independent queries, and differences of tokens that are independent within each input, every selection "
    "can be separated, with all margins equal: so it is, in general position, from d = max(T - 1, n) on.",
    source=OURS,
    tolerance=1e-7,  # rounding of pseudo-inverses of random matrices
    constant="the margins of the construction",
    hypotheses=(QUERIES, TOKENS),
    draw=_draw_wanted,
    seeds=60,
    counters=(
        Counter(
            "two inputs with one query that want opposite things",
            QUERIES.says,
            lambda: Wanted(Bags.of([PAIR, PAIR]), np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([0, 1])),
        ),
        Counter(
            "a token between two others",
            TOKENS.says,
            lambda: Wanted(Bags.of([[[0.0, 1.0], [1.0, 1.0], [-1.0, 1.0]]]), np.eye(2)[:1], np.array([0])),
        ),
    ),
    notes="The abstract says that over-parameterisation makes the problem feasible; the threshold and the construction "
    "are ours.",
)
def _feasibility(x: Wanted, by: float = 1.0) -> float:
    """How far the margins of the constructed W are from 1, and by how much the shortest W is longer than it."""
    W = _constructed(x)
    off = float(np.abs(x.problem.times(W.ravel()) - by).max())
    # where nothing separates, the best least margin of any W is 0 and not 1
    return max(off, 1.0 if x.frobenius is None else x.frobenius.norm / float(np.linalg.norm(W)) - 1)


# The Frobenius solution ----------------------------------------------------------------------------------------------


def _least_distance(A: Vector) -> tuple[Vector, Vector]:
    """min |p| with A p >= 1, and its multipliers, by non-negative least squares.

    With u >= 0 nearest to (0, 1) under [A, 1]', the residual r gives p = A'u/|r|^2 and the multipliers u/|r|^2.
    """
    both = np.column_stack([A, np.ones(len(A))]).T
    u, _ = nnls(both, np.eye(len(both))[-1])
    lam = u / float(np.sum((both @ u - np.eye(len(both))[-1]) ** 2))
    return A.T @ lam, lam


FULL = Hypothesis[Wanted](
    "the queries of the inputs with a multiplier are independent, and so are their pulls",
    lambda x: all(rank_of(part) == len(part) for part in _pulls(x)[1:]),
)


def _pulls(x: Wanted) -> tuple[Vector, Vector, Vector]:
    """W, then of the inputs with a multiplier a_i = sum_t lam_it (x_selected - x_t) and z_i: all by the second road."""
    A = x.problem.rows(np.arange(len(x.problem)))
    p, lam = _least_distance(A)
    lam = np.where(lam > 1e-9 * lam.max(), lam, 0.0)
    inputs = np.repeat(np.arange(len(x.values)), x.values.sizes - 1)
    active = np.unique(inputs[lam > 0])
    pulls = np.stack([lam[inputs == i] @ x.differences[inputs == i] for i in active])
    return p.reshape(x.values.dim, -1), pulls, x.queries[active]


@claim(
    "fu.frobenius-rank",
    says="The Frobenius solution is W = sum_i a_i z_i' over the inputs with a multiplier, a_i the sum of its "
    "differences of tokens by multipliers that are at least 0, and 0 off the margin; its rank is the number of these "
    "inputs where pulls and queries are independent.",
    source=OURS,
    tolerance=1e-7,  # what the solver certifies, beside |W|
    constant="the multipliers",
    hypotheses=(FULL,),
    draw=_draw_wanted,
    seeds=60,
    counters=(
        Counter(
            "two inputs with one query",
            FULL.says,
            lambda: Wanted(Bags.of([PAIR, [[0.0, 1.0], [0.0, 0.0]]]), np.array([[1.0, 0], [1.0, 0]]), np.array([0, 0])),
        ),
    ),
    notes="W and multipliers are found twice: by the solver, and by non-negative least squares. On random problems "
    "with n <= d nearly all inputs have a multiplier, so that the rank is min(n, d).",
)
def _frobenius_shape(x: Wanted, by: float = 1.0) -> float:
    """The two roads apart; W against its sum of pulls; what breaks the conditions of the multipliers; the rank."""
    found = x.frobenius
    if found is None:
        return 1.0
    W, pulls, queries = _pulls(x)
    rows = x.differences[:, :, None] * x.asked[:, None]
    margins = np.einsum("jkl,kl->j", rows, found.W)
    size = float(np.linalg.norm(W))
    apart = (found.W - W, pulls.T @ queries - W, np.einsum("j,jkl->kl", by * found.lam, rows) - W)
    return max(
        *(float(np.linalg.norm(one)) / size for one in apart),
        1 - float(margins.min()),
        -float(found.lam.min()) / size,
        float(np.abs(found.lam * (margins - 1)).sum()) / size**2,
        float(abs(rank_of(found.W) - len(queries))),
    )


# The nuclear solution ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Factored(Wanted):
    """Beside it, W = K Q' with so many columns."""

    width: int

    @cached_property
    def shortest(self) -> float:
        """The least (|K|^2 + |Q|^2)/2 with all margins at least 1: a smooth programme that knows no singular value."""
        rows = self.problem.inequalities
        left, right = rows.left, rows.right[rows.bag]
        d, rng, best = left.shape[1], np.random.default_rng(0), np.inf

        def parts(t: Vector) -> tuple[Vector, Vector]:
            both = t.reshape(-1, self.width)
            return left @ both[:d], right @ both[d:]

        def slopes(t: Vector) -> Vector:
            seen, asked = parts(t)
            of_K, of_Q = left[:, :, None] * asked[:, None], right[:, :, None] * seen[:, None]
            return np.concatenate([of_K, of_Q], axis=1).reshape(len(left), -1)

        def half_square(t: Vector) -> tuple[float, Vector]:
            return float(t @ t / 2), t

        for _ in range(3):
            start = rng.normal(size=(d + right.shape[1]) * self.width)
            asks: Any = {"type": "ineq", "fun": lambda t: np.prod(parts(t), axis=0).sum(axis=1) - 1, "jac": slopes}
            options: Any = {"ftol": 1e-15, "maxiter": 500}
            end = minimize(half_square, start, jac=True, method="SLSQP", constraints=asks, options=options)
            # both factors times 1/sqrt(least): all margins at least 1
            least = float(np.prod(parts(end.x), axis=0).sum(axis=1).min())
            best = min(best, float(end.x @ end.x) / 2 / least) if least > 0 else best
        return best


def _draw_factored(rng: np.random.Generator) -> Factored:
    x = _draw_wanted(rng)
    return Factored(x.values, x.queries, x.selection, x.values.dim)


def _planar(one: Problem) -> Factored:
    return Factored(one.values, one.queries, one.values.argmax(one.scores), 2)


def _narrow() -> Factored:
    """Rows e_1 e_1', e_2 e_2' and (e_1 +- e_2)(e_1 +- e_2)': W = 1 is as short as can be, and has rank two."""
    ways = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, -1.0]])
    return Factored(Bags.of([[way, 0 * way] for way in ways]), ways, np.zeros(4, np.intp), 1)


WIDE = Hypothesis[Factored](
    "the factors have as many columns as W has rank",
    lambda x: x.nuclear is not None and x.width >= x.nuclear.rank.relative,
)


@claim(
    "fu.nuclear",
    says="The least nuclear norm of a separating W is the least (|K|^2 + |Q|^2)/2 of factors W = K Q', and it is "
    "sum(lam)/|sum_j lam_j x_j z_j'|_op for some lam >= 0, which no separating W is below. Columns of the solution lie "
    "in the span of the differences of tokens, rows in that of the queries.",
    source="keytokens, after " + PAPER + "abstract",
    tolerance=1e-8,  # what the solver certifies; the factors are found to 1e-9
    constant="the bound",
    hypotheses=(WIDE,),
    draw=_draw_factored,
    seeds=40,
    known=(
        lambda: _planar(few_tokens()),
        lambda: _planar(more_tokens()),
        lambda: Factored(Bags.of([[[-0.1, 1.0], [1.0, 0.0], [0.0, 0.0]]]), np.array([[3.0, 4.0]]), np.array([0]), 2),
    ),
    counters=(Counter("one column where W has rank two", WIDE.says, _narrow),),
    notes="Three roads: the central path of the solver, its multipliers, and a programme of the two factors.",
)
def _three_roads(x: Factored, by: float = 1.0) -> float:
    """Norm, bound and factors apart; margins below 1; the share of W outside the spans."""
    if x.nuclear is None or x.frobenius is None:
        return 1.0
    W, lam, differences, queries = x.nuclear.W, x.nuclear.lam, x.differences, x.asked
    pull = (differences.T * lam) @ queries
    size, bound = float(np.linalg.norm(W, "nuc")), float(lam.sum() / np.linalg.norm(pull, 2))
    columns, rows = (np.linalg.pinv(part) @ part for part in (differences, x.queries))
    outside = float(np.linalg.norm(W - columns @ W) + np.linalg.norm(W - W @ rows)) / size
    return max(
        abs(by * bound / size - 1),
        abs(x.shortest / size - 1),
        abs(x.nuclear.norm / size - 1),
        -float(lam.min()),
        1 - float(np.einsum("jk,kl,jl->j", differences, W, queries).min()),
        outside,
        x.frobenius.norm / size - 1,
    )
