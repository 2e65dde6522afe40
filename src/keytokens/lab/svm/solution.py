"""Answers that judge themselves: a minimiser by its KKT residuals, an infeasibility by its Farkas vector."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...base.checks import array_of, floats
from ...base.errors import KeyTokensError, refusal
from ..problems.geometry import misalignment
from .problem import MarginProblem

Vector = NDArray[np.float64]
Index = NDArray[np.intp]

TIGHT = 1e-6  # a row is tight when it exceeds its bound by less


class NotSolved(KeyTokensError, RuntimeError):
    """The solver could neither certify a minimiser nor prove that there is none.

    >>> issubclass(NotSolved, KeyTokensError)
    True
    """


@dataclass(frozen=True, eq=False)
class MarginSolution:
    """A point p of a problem with multipliers: lam (m,) of the rows, nu of the ties. Whoever made it: see residuals.

    >>> problem = MarginProblem.from_rows([[1.0, 0.0], [0.0, 1.0]])
    >>> solution = MarginSolution(problem, np.ones(2), np.ones(2), np.zeros(0))
    >>> solution.is_optimal(), solution.support.tolist(), round(solution.margin, 6)
    (True, [0, 1], 0.707107)
    """

    problem: MarginProblem
    p: Vector
    lam: Vector
    nu: Vector
    steps: int = 0  # rows that entered or left the active set on the way

    @property
    def norm(self) -> float:
        return float(np.linalg.norm(self.p))

    @property
    def margin(self) -> float:
        """1/|p|: how far, in the direction of p, winners stand above losers. inf where nothing needs separating."""
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
        """Rows that are tight or have a positive multiplier."""
        return np.flatnonzero((self.lam > 0) | (self.slack <= TIGHT))

    @property
    def support_tokens(self) -> list[tuple[int, int]]:
        """The support as (bag, token): the neighbours of the selected tokens. Of a vocabulary: (winner, loser)."""
        if self.problem.names is None:
            cure = "use from_selection, from_sets or from_vocabulary"
            raise refusal("support_tokens", "problem", "know tokens", "a problem from rows", cure)
        return [(int(i), int(t)) for i, t in self.problem.names[self.support]]

    def residuals(self) -> dict[str, float]:
        """KKT residuals, from problem and point alone; all zero exactly at the minimiser."""
        ties = self.problem.equalities
        pull = self.problem.transposed_times(self.lam) + ties.transposed_times(self.nu)
        return {
            "primal": max(0.0, -_least(self.slack), float(np.abs(ties.times(self.p)).max(initial=0.0))),
            "dual": max(0.0, -_least(self.lam)),
            "stationary": float(np.abs(self.p - pull).max() / (1 + np.abs(self.p).max())),
            "gap": float(abs(self.lam @ self.slack) / (1 + self.p @ self.p)),
        }

    def is_optimal(self, tol: float = 1e-9) -> bool:
        return max(self.residuals().values()) <= tol


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
        return {
            "dual": max(0.0, -_least(self.lam)),
            "balance": size / scale if scale > 0 else size,
            "value": value,
        }

    def is_proof(self, tol: float = 1e-9) -> bool:
        found = self.residuals()
        return found["value"] > 0 and found["dual"] <= 0 and found["balance"] <= tol


def _least(x: Vector) -> float:
    return float(x.min(initial=np.inf)) if len(x) else 0.0
