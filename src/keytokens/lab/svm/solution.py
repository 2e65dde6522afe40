"""Answers that judge themselves: a minimiser by its KKT residuals, an infeasibility by its Farkas vector.

A minimiser is the shortest point in one of three norms. Any multipliers lam >= 0 and nu prove from below how short a
point can be: with g = A'lam + C'nu, |p| |g|_dual >= <p, g> >= lam'b for every feasible p.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from ...base.checks import array_of, floats
from ...base.errors import KeyTokensError, refusal
from ...model.ragged import Index, Vector
from ..problems.geometry import conjugate, dual, misalignment, norm
from .problem import Kronecker, MarginProblem, factors

CERTIFIED = 1e-8  # no answer with a larger residual is given out
THIN = (
    "; the margin is too thin for double precision. Scale or centre the keys, or drop inputs that are almost "
    "contradictory."
)
TIGHT = 1e-6  # a row is tight when it exceeds its bound by less
ABSOLUTE, RELATIVE = 1e-7, 1e-3  # singular values below are zero: as they are, or beside the largest


class NotSolved(KeyTokensError, RuntimeError):
    """The solver could neither certify a minimiser nor prove that there is none.

    >>> issubclass(NotSolved, KeyTokensError)
    True
    """


# Norms ---------------------------------------------------------------------------------------------------------------


class Euclidean:
    """|p|; of a matrix the Frobenius norm."""

    def size(self, point: Vector) -> float:
        """Of a vector or a matrix."""
        return float(np.linalg.norm(point))

    dual = size  # the largest inner product with a point of size 1

    def balance(self, solution: Solution) -> dict[str, float]:
        """The residuals that depend on the norm: the gap of the bound, and whether the pull is the point's gradient."""
        p = solution.p
        return {
            "stationary": float(np.abs(p - solution.pull).max() / (1 + np.abs(p).max())),
            "gap": float(abs(solution.lam @ solution.slack) / (1 + p @ p)),
        }


@dataclass(frozen=True)
class Lq:
    """(sum_j |p_j|^q)^(1/q)."""

    q: float

    def size(self, point: Vector) -> float:
        return norm(point, self.q)

    def dual(self, pull: Vector) -> float:
        return norm(pull, conjugate(self.q))

    def balance(self, solution: Solution) -> dict[str, float]:
        """Compares p and the pull in the one of the two that is a smooth function of the other."""
        if self.q > 2:
            wanted, found = dual(solution.p, self.q), solution.pull
        else:
            wanted, found = solution.p, dual(solution.pull, conjugate(self.q))
        size = float(np.abs(wanted).max(initial=0.0)) or 1.0
        return {"stationary": float(np.abs(wanted - found).max(initial=0.0)) / size, "gap": abs(solution.gap)}


class Nuclear:
    """|W|_*, the sum of the singular values of a matrix."""

    def size(self, point: Vector) -> float:
        return float(np.linalg.svd(point, compute_uv=False).sum())

    def dual(self, pull: Vector) -> float:
        return float(np.linalg.norm(pull, 2))

    def balance(self, solution: Solution) -> dict[str, float]:
        return {"gap": abs(solution.gap)}


Norm: TypeAlias = Euclidean | Lq | Nuclear
EUCLIDEAN, NUCLEAR = Euclidean(), Nuclear()


# Answers -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rank:
    """How many singular values are not zero, by two measures; where they differ, the measure decides."""

    absolute: int  # above 1e-7
    relative: int  # above 1e-3 of the largest

    @classmethod
    def of(cls, values: Vector) -> Rank:
        top = float(values.max(initial=0.0))
        return cls(int((values > ABSOLUTE).sum()), int((values > RELATIVE * top).sum()))

    @property
    def agrees(self) -> bool:
        return self.absolute == self.relative


@dataclass(frozen=True, eq=False)
class Solution:
    """A point p of a problem with multipliers, judged in a norm. Whoever made it: see `residuals`.

    >>> problem = MarginProblem.from_rows([[1.0, 0.0], [0.0, 1.0]])
    >>> solution = Solution(problem, np.ones(2), np.ones(2), np.zeros(0))
    >>> solution.is_optimal(), solution.support.tolist(), round(solution.margin, 6)
    (True, [0, 1], 0.707107)
    """

    problem: MarginProblem
    p: Vector  # of a problem of a matrix W: row by row
    lam: Vector  # multipliers of the rows
    nu: Vector  # and of the ties
    steps: int = 0  # that the solver took
    measure: Norm = EUCLIDEAN  # in which p is the shortest

    @property
    def W(self) -> Vector:
        """p as a matrix, of a problem of a matrix."""
        return self.p.reshape(factors("Solution.W", self.problem)[0].shape)

    @cached_property
    def singular_values(self) -> Vector:
        """Of W, the largest first."""
        return np.asarray(np.linalg.svd(self.W, compute_uv=False), np.float64)

    @property
    def rank(self) -> Rank:
        """Of W."""
        return Rank.of(self.singular_values)

    def _shaped(self, vector: Vector) -> Vector:
        rows = self.problem.inequalities
        return vector.reshape(rows.shape) if isinstance(rows, Kronecker) else vector

    @cached_property
    def norm(self) -> float:
        return self.measure.size(self._shaped(self.p))

    @property
    def margin(self) -> float:
        """1 over the norm: how far, in the direction of p, winners stand above losers. inf for nothing to separate."""
        return 1 / self.norm if self.p.any() else float("inf")

    def distance(self, q: Any) -> float:
        """1 - cos between a direction q and p; 0 where p = 0, since any direction will do."""
        given = floats(q)
        q = array_of("distance", "q", q if given is None else given.ravel(), (len(self.p),))
        if not self.p.any() or not q.any():
            return float(self.p.any())
        return misalignment(q, self.p)

    @cached_property
    def slack(self) -> Vector:
        """(m,) A p - b."""
        return self.problem.times(self.p) - self.problem.b

    @cached_property
    def support(self) -> Index:
        """Rows that are tight, or whose multiplier is larger than their slack."""
        return np.flatnonzero((self.lam > self.slack) | (self.slack <= TIGHT))

    @property
    def support_tokens(self) -> list[tuple[int, int]]:
        """The support as (bag, token): the neighbours of the selected tokens. Of a vocabulary: (winner, loser)."""
        if self.problem.names is None:
            advice = "use from_selection, from_sets or from_vocabulary"
            raise refusal("support_tokens", "problem", "know tokens", "a problem from rows", advice)
        return [(int(i), int(t)) for i, t in self.problem.names[self.support]]

    @property
    def pull(self) -> Vector:
        """A'lam + C'nu: at the minimiser the gradient of half the squared norm."""
        return self.problem.inequalities.transposed_times(self.lam) + self.problem.equalities.transposed_times(self.nu)

    @cached_property
    def bound(self) -> float:
        """lam'b over the dual norm of the pull: no feasible point is shorter."""
        proof = replace(self, lam=np.maximum(self.lam, 0.0))
        size = self.measure.dual(self._shaped(proof.pull))
        return float(proof.lam @ self.problem.b) / size if size else 0.0

    @property
    def gap(self) -> float:
        """1 - bound/norm; 0 where p = 0."""
        return 1 - self.bound / self.norm if self.p.any() else 0.0

    def residuals(self) -> dict[str, float]:
        """KKT residuals, from problem and point alone; all zero exactly at the minimiser."""
        ties = self.problem.equalities.times(self.p)
        return {
            "primal": max(0.0, -_least(self.slack), float(np.abs(ties).max(initial=0.0))),
            "dual": max(0.0, -_least(self.lam)),
            **self.measure.balance(self),
        }

    def is_optimal(self, tol: float = 1e-9) -> bool:
        return max(self.residuals().values()) <= tol


def certified(owner: str, solution: Solution, because: str) -> Solution:
    """The solution, if no residual is above 1e-8; else NotSolved says which, and why."""
    residuals = solution.residuals()
    if max(residuals.values()) <= CERTIFIED:  # False for nan
        return solution
    worst = max(residuals, key=lambda name: residuals[name])
    raise NotSolved(f"{owner}: the residual `{worst}` is {residuals[worst]:.1e}, above {CERTIFIED:g}{because}")


@dataclass(frozen=True, eq=False)
class Witness:
    """A Farkas vector, lam'b = 1: lam >= 0 and A'lam + C'nu = 0, so A p >= b and C p = 0 would give 0 >= 1.

    >>> lam = np.array([0.5, 0.5])  # half of p >= 1 and half of -p >= 1 say 0 >= 1
    >>> Witness(MarginProblem.from_rows([[1.0], [-1.0]]), lam, np.zeros(0)).is_proof()
    True
    """

    problem: MarginProblem
    lam: Vector
    nu: Vector

    def residuals(self) -> dict[str, float]:
        """`dual`: negative multipliers; `balance`: |A'lam + C'nu| beside what is summed; `value`: lam'b."""
        index = np.flatnonzero(self.lam)
        rows, ties = self.problem.rows(index), self.problem.equalities
        sizes = np.linalg.norm(rows, axis=1)
        total = self.lam[index] @ rows + ties.transposed_times(self.nu)
        value = float(self.lam @ self.problem.b)
        # Beside both scales: lam'|a| says that the sum truly cancels, and value * max|a| that it does against lam'b.
        scale = min(float(np.abs(self.lam[index]) @ sizes), value * float(sizes.max(initial=0.0)))
        size = float(np.linalg.norm(total))
        return {"dual": max(0.0, -_least(self.lam)), "balance": size / scale if scale > 0 else size, "value": value}

    def is_proof(self, tol: float = 1e-9) -> bool:
        found = self.residuals()
        return found["value"] > 0 and found["dual"] <= 0 and found["balance"] <= tol


def _least(x: Vector) -> float:
    return float(x.min(initial=np.inf)) if len(x) else 0.0
