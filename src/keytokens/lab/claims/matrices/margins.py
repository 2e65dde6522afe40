"""Attention by a matrix: when W can separate, and what its max-margin matrices look like."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

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


def _draw_wanted(rng: np.random.Generator) -> Wanted:
    """Any selection; n and T - 1 up to d; every other time the queries are tokens of the inputs."""
    d = int(rng.integers(2, 6))
    n, T = int(rng.integers(1, d + 1)), int(rng.integers(2, d + 2))
    one = cross_spheres(rng, n, T, d, self_attention=bool(rng.integers(2)))
    return Wanted(one.values, one.queries, rng.integers(0, T, n))


# Feasibility ---------------------------------------------------------------------------------------------------------


def rank_of(A: Vector) -> int:
    return int(np.linalg.matrix_rank(A, tol=1e-9 * max(1.0, float(np.abs(A).max(initial=0.0)))))


def _differences(x: Wanted) -> list[Vector]:
    """Of each input: the selected token minus the others."""
    return [x.values[i][t] - np.delete(x.values[i], t, axis=0) for i, t in enumerate(x.selection.tolist())]


def _constructed(x: Wanted) -> Vector:
    """W z_i = w_i with margins of exactly 1 in input i: the shortest such w_i, and dual vectors of the queries."""
    w = [np.linalg.pinv(rows) @ np.ones(len(rows)) for rows in _differences(x)]
    return np.stack(w, axis=1) @ np.linalg.pinv(x.queries.T)


QUERIES = Hypothesis[Wanted]("the queries are independent", lambda x: rank_of(x.queries) == len(x.queries))
TOKENS = Hypothesis[Wanted](
    "within each input the differences to the selected token are independent",
    lambda x: all(rank_of(rows) == len(rows) for rows in _differences(x)),
)
PAIR = [[1.0, 0.0], [0.0, 0.0]]


def _opposed() -> Wanted:
    """Two inputs with one query that want opposite things."""
    return Wanted(Bags.of([PAIR, PAIR]), np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([0, 1]))


@claim(
    "fu.feasible",
    says="With independent queries, and differences of tokens that are independent within each input, every selection "
    "can be separated, with all margins equal: so it is, in general position, from d = max(T - 1, n) on.",
    source=OURS,
    tolerance=1e-7,  # rounding of pseudo-inverses of random matrices
    hypotheses=(QUERIES, TOKENS),
    draw=_draw_wanted,
    seeds=60,
    counters=(
        Counter("two inputs with one query that want opposite things", QUERIES.says, _opposed),
        Counter(
            "a token between two others",
            TOKENS.says,
            lambda: Wanted(Bags.of([[[0.0, 1.0], [1.0, 1.0], [-1.0, 1.0]]]), np.eye(2)[:1], np.array([0])),
        ),
    ),
    notes="The abstract says that over-parameterisation makes the problem feasible; the threshold and the construction "
    "are ours.",
)
def _feasibility(x: Wanted) -> float:
    """How far the least and largest margin of the constructed W are from 1; by how much the shortest is longer."""
    if x.frobenius is None:
        return np.inf
    W = _constructed(x)
    margins = x.problem.times(W.ravel())
    return max(float(np.abs(margins - 1).max()), x.frobenius.norm / float(np.linalg.norm(W)) - 1)


# The Frobenius solution ----------------------------------------------------------------------------------------------


def _pulls(x: Wanted) -> tuple[Vector, Vector]:
    """a_i = sum_t lam_it (x_selected - x_t) of the inputs with a multiplier, and their queries: W = sum_i a_i z_i'."""
    assert x.frobenius is not None
    bag = x.problem.names[:, 0]
    inputs = np.unique(bag[x.frobenius.lam > 0])
    rows = x.problem.inequalities.left
    return np.stack([x.frobenius.lam[bag == i] @ rows[bag == i] for i in inputs]), x.queries[inputs]


SEPARABLE = Hypothesis[Wanted]("the selection can be separated", lambda x: x.frobenius is not None)
OPPOSED = Counter("two inputs with one query that want opposite things", SEPARABLE.says, _opposed)
FULL = Hypothesis[Wanted](
    "the queries of the inputs with a multiplier are independent, and so are their pulls",
    lambda x: x.frobenius is None or all(rank_of(part) == len(part) for part in _pulls(x)),
)


@claim(
    "fu.frobenius-rank",
    says="The Frobenius solution is W = sum_i a_i z_i' over the inputs with a multiplier: its rows lie in the span of "
    "their queries, W P_Z = W, and its rank is their number where pulls and queries are independent.",
    source=OURS,
    tolerance=1e-7,
    hypotheses=(SEPARABLE, FULL),
    draw=_draw_wanted,
    seeds=60,
    counters=(
        Counter(
            "two inputs with one query",
            FULL.says,
            lambda: Wanted(Bags.of([PAIR, [[0.0, 1.0], [0.0, 0.0]]]), np.array([[1.0, 0], [1.0, 0]]), np.array([0, 0])),
        ),
        OPPOSED,
    ),
    notes="On random problems with n <= d nearly all inputs have a multiplier, so that the rank is min(n, d).",
)
def _frobenius_shape(x: Wanted) -> float:
    """|W - W P_Z| / |W|, and the rank against the number of inputs with a multiplier."""
    if x.frobenius is None:
        return np.inf
    W, (pulls, queries) = x.frobenius.W, _pulls(x)
    outside = W - W @ np.linalg.pinv(queries) @ queries
    apart = float(np.linalg.norm(W - pulls.T @ queries) + np.linalg.norm(outside)) / x.frobenius.norm
    return max(apart, float(abs(x.frobenius.rank.absolute - len(queries))))


# The nuclear solution ------------------------------------------------------------------------------------------------


def _against_one_input(x: Wanted) -> float:
    """With one input both solutions are w z'/|z|^2, w the max-margin direction of the tokens alone."""
    if len(x.values) > 1 or x.frobenius is None or x.nuclear is None:
        return 0.0
    z = x.queries[0]
    alone = Wanted(x.values, np.ones((1, 1)), x.selection).frobenius
    assert alone is not None
    W = np.outer(alone.p, z) / (z @ z)
    return max(float(np.linalg.norm(one.W - W) / np.linalg.norm(W)) - 1e-4 for one in (x.frobenius, x.nuclear))


@claim(
    "fu.nuclear",
    says="The nuclear solution comes with multipliers that prove it: |W|_* is within 1e-8 of sum(lam)/|A'lam|_op, and "
    "no separating matrix is below that; it is between the Frobenius and the nuclear norm of the Frobenius solution.",
    source="keytokens",
    tolerance=1e-8,
    hypotheses=(SEPARABLE,),
    draw=_draw_wanted,
    seeds=40,
    known=(
        lambda: best_tokens(few_tokens()),
        lambda: best_tokens(more_tokens()),
        lambda: Wanted(Bags.of([[[-0.1, 1.0], [1.0, 0.0], [0.0, 0.0]]]), np.array([[3.0, 4.0]]), np.array([0])),
    ),
    counters=(OPPOSED,),
)
def _certificate(x: Wanted) -> float:
    """What the certificate leaves open, and norms in the wrong order: |W_F| <= |W_N|_* <= |W_F|_* <= sqrt(r) |W_F|."""
    if x.frobenius is None or x.nuclear is None:
        return np.inf
    short, thin = x.frobenius, x.nuclear
    whole = float(short.singular_values.sum())
    return max(
        max(thin.residuals().values()),
        thin.bound / thin.norm - 1,
        abs(replace(thin, lam=3 * thin.lam).bound - thin.bound) / thin.norm,  # multipliers of any scale
        short.norm / thin.norm - 1,
        thin.norm / whole - 1,
        whole / (np.sqrt(min(short.W.shape)) * short.norm) - 1,
        _against_one_input(x),
    )


@claim(
    "fu.nuclear-rank",
    says="The columns of the nuclear solution lie in the span of the differences of tokens and its rows in that of the "
    "queries, P_X W P_Z = W: its rank is at most the smaller dimension of the two.",
    source="keytokens",
    tolerance=1e-7,
    hypotheses=(SEPARABLE,),
    draw=_draw_wanted,
    seeds=40,
    known=(lambda: best_tokens(few_tokens()), lambda: best_tokens(more_tokens())),
    counters=(OPPOSED,),
    notes="Projecting on the spans changes no margin and makes the trace of the square root of W W' smaller. On random "
    "problems the rank is far below the bound: see the figure matrix-rank.",
)
def _outside(x: Wanted) -> float:
    """The share of the nuclear W outside the spans of the differences and of the queries, and its rank above theirs."""
    if x.nuclear is None:
        return np.inf
    W, differences = x.nuclear.W, np.concatenate(_differences(x))
    columns, rows = (np.linalg.pinv(part) @ part for part in (differences, x.queries))
    outside = float(np.linalg.norm(W - columns @ W) + np.linalg.norm(W - W @ rows)) / float(np.linalg.norm(W))
    return max(outside, float(x.nuclear.rank.relative - min(rank_of(differences), rank_of(x.queries))))


def best_tokens(one: Problem) -> Wanted:
    return Wanted(one.values, one.queries, one.values.argmax(one.scores))
