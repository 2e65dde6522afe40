"""Solve a max-margin problem exactly: a working set of rows on top of a dual active-set method.

Scan all rows, take the most violated ones into the working set, make all of its rows hold, scan again; stop when no
row is violated by more than the tolerance. The active set is never thrown away between scans: a minimiser over fewer
rows is a valid state for more rows. Ties are eliminated: p lives in the null space of C.

A problem like one that is solved begins with the rows that were active there: one factorisation instead of a step for
each row, then only what differs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

import numpy as np
from scipy.linalg import lstsq, qr, svd

from ...base.errors import NotSeparable, refusal
from ...base.threads import one_blas_thread
from ...model.ragged import Index, Vector
from .active import ActiveSet, Contradiction, polished
from .problem import MarginProblem, Rows, check_problem
from .soft import softened
from .solution import CERTIFIED, THIN, NotSolved, Solution, Witness, certified

Given = ParamSpec("Given")
Found = TypeVar("Found")

TOLERANCE = 1e-10  # by how much a row may be violated, beside a bound of 1
FARKAS = 1e-9  # |A'lam + C'nu| of a proof, beside the sizes of what it sums
FIRST = 6  # rows for each dimension, to begin with where there are many
LEVELS = (1e-2, 1e-3)  # how soft they are
_SAMPLE = 4096  # rows of which the mean is taken
_EPS = float(np.finfo(np.float64).eps)
_SENTENCE = "solve: no direction separates the selected tokens from the others; `.witness` proves it."


def _batch(dim: int) -> int:
    """How many rows to take in after a scan: a scan is dear, a row too many is not."""
    return max(256, dim)


@dataclass
class _Working:
    """Rows under consideration, projected on the null space of the ties and divided by their length before that."""

    index: Index  # in the problem
    rows: Vector
    length: Vector
    b: Vector

    def most_violated(self, p: Vector, skip: Index | None = None) -> int:
        """The place of the row that is farthest from holding, -1 where all of them hold."""
        excess = self.b - self.rows @ p
        excess = np.where(excess > TOLERANCE / self.length + 16 * _EPS * float(np.sqrt(p @ p)), excess, -np.inf)
        if skip is not None:
            excess[skip] = -np.inf
        worst = int(excess.argmax()) if len(excess) else -1
        return worst if worst >= 0 and excess[worst] > 0 else -1

    def places(self, members: list[int]) -> Index:
        """Where rows of the problem stand in here."""
        order = np.argsort(self.index)
        return order[np.searchsorted(self.index, np.array(members, np.intp), sorter=order)]


def solve(problem: MarginProblem, *, start: Solution | None = None) -> Solution:
    """The minimiser, certified on all rows; `start` is the solution of a similar problem, to begin with.

    Rows of another problem are found by their names, where both have names, else by their numbers. A start changes how
    long it takes, not where it ends.

    Raises NotSeparable, with a Farkas vector, where no p satisfies the constraints; NotSolved where the margin is so
    thin that neither answer can be certified in this arithmetic. Without rows p = 0 and the margin is infinite.

    >>> solution = solve(MarginProblem.from_selection([[[-0.1, 1.0], [1.0, 0.0], [0.0, 0.0]]], [0]))
    >>> (101 * solution.p).round(9).tolist(), solution.support_tokens
    ([-10.0, 100.0], [(0, 2)])
    >>> solution.is_optimal(1e-12)
    True
    """
    check_problem("solve", problem)
    first = _given_rows(problem, start)
    # One thread: the same bits everywhere, and many small products that threads would only slow down.
    with one_blas_thread():
        if len(first):
            try:
                return _solve(_Search(problem), first)
            except NotSolved:  # the rows of another problem may be a poor basis of this one
                pass
        return _solve(_Search(problem), first[:0])


def _solve(search: _Search, first: Index) -> Solution:
    try:
        search.begin(first)
        search.settle()
        while len(violated := search.violated_rows(search.active.p)):
            search.take_in(violated)
            search.settle()
    except Contradiction as found:
        witness = search.witness(search.multipliers(*found.args))
        if witness.is_proof(FARKAS):
            raise NotSeparable(_SENTENCE, witness) from None
        raise NotSolved(
            "solve: the rows seem to contradict each other, but the proof does not hold to "
            f"{FARKAS:g} (balance {witness.residuals()['balance']:.1e}). Scale or centre the keys."
        ) from None
    solution = search.solution()
    # where the margin is below 1e-9 of the rows' size the multipliers themselves are a Farkas vector: A'lam = p
    if not solution.is_optimal(CERTIFIED) and (thin := search.witness(solution.lam)).is_proof(FARKAS):
        raise NotSeparable(_SENTENCE, thin)
    return certified("solve", solution, THIN)


def solved(solver: Callable[Given, Found], *given: Given.args, **options: Given.kwargs) -> Found | None:
    """What a solver finds; None where nothing separates.

    >>> solved(solve, MarginProblem.from_rows([[1.0], [-1.0]])) is None
    True
    """
    try:
        return solver(*given, **options)
    except NotSeparable:
        return None


class _Search:
    """One run: the working set, the active set within it, and what is the same for all of its steps."""

    def __init__(self, problem: MarginProblem) -> None:
        self.problem = problem
        # In units of the largest entry no square over- or underflows; A p does not depend on the unit.
        self.unit = problem.inequalities.largest() or 1.0
        self.basis = _row_space(problem.equalities)
        self.active = ActiveSet(problem.dim, problem.dim - self.basis.shape[1])
        none = np.zeros(0)
        self.working = _Working(np.zeros(0, np.intp), np.zeros((0, problem.dim)), none, none)
        self.batch = _batch(problem.dim)
        self.steps = 0

    def first_rows(self) -> Index:
        """The rows that the mean of some rows serves worst. At p = 0 all rows are violated alike: that says nothing.

        The mean is a fair guess whenever there is a solution p, since its inner product with p is at least that of b.
        """
        many = max(self.batch, FIRST * self.problem.dim)
        if len(self.problem) <= many:
            return np.arange(len(self.problem))
        some = np.arange(0, len(self.problem), max(1, len(self.problem) // _SAMPLE))
        mean = self.problem.b[some] @ self.problem.rows(some) / len(some) / self.unit
        mean -= self.basis @ (self.basis.T @ mean)
        return np.argpartition(self.problem.times(mean / self.unit), many)[:many]

    def violated_rows(self, p: Vector) -> Index:
        """The rows outside the working set that p violates most."""
        excess = self.problem.b - self.problem.times(p / self.unit)
        excess[self.working.index] = 0.0  # these hold already, as well as this arithmetic can tell
        bad = np.flatnonzero(excess > TOLERANCE)
        if len(bad) > self.batch:
            bad = bad[np.argpartition(excess[bad], -self.batch)[-self.batch :]]
        return bad

    def begin(self, first: Index) -> None:
        """As if these rows had been active before; without any with those that are active where rows are soft.

        Of few rows the exact method alone is as fast.
        """
        self.take_in(first if len(first) else self.first_rows())
        at = np.arange(len(first))
        if not len(first) and len(self.problem) > self.batch:
            p, wide = softened(self.working.rows, self.working.b, self.active.p, LEVELS)
            if len(bad := self.violated_rows(p)):
                self.take_in(bad)
                p, wide = softened(self.working.rows, self.working.b, p, LEVELS[-1:])
            at = np.argsort(-wide, kind="stable")[: min(int((wide > 0).sum()), self.active.rank)]
        if len(at):
            members = self.working.index[at].tolist()
            self.steps += self.active.begin(members, self.working.rows[at], self.working.b[at])

    def settle(self) -> None:
        """Make all rows of the working set hold."""
        working, active = self.working, self.active
        limit = self.steps + 100 * (self.problem.dim + len(working.index))
        while (worst := self._next_to_enter()) >= 0:
            self.steps += 1 + active.enter(int(working.index[worst]), working.rows[worst], float(working.b[worst]))
            if self.steps > limit:
                raise NotSolved("solve: the active set goes round in circles; the rows are too nearly dependent.")

    def _next_to_enter(self) -> int:
        worst = self.working.most_violated(self.active.p)
        if worst < 0 or int(self.working.index[worst]) not in self.active.members:
            return worst
        # An active row holds by construction: when it seems not to, the factors need renewal, not the row.
        at = self.working.places(self.active.members)
        self.active.refresh(self.working.rows[at])
        return self.working.most_violated(self.active.p, skip=at)

    def take_in(self, index: Index) -> None:
        rows = self.problem.rows(index) / self.unit
        length = np.linalg.norm(rows, axis=1)
        length[length == 0] = 1.0
        rows /= length[:, None]
        for _ in range(2):  # twice, so that nothing of the ties is left
            rows -= (rows @ self.basis) @ self.basis.T
        old = self.working
        keep = self._worth_keeping()
        self.working = _Working(
            np.concatenate([old.index[keep], index]),
            np.concatenate([old.rows[keep], rows]),
            np.concatenate([old.length[keep], length]),
            np.concatenate([old.b[keep], self.problem.b[index] / length]),
        )

    def _worth_keeping(self) -> Index:
        """Active rows, and the nearest of the others: what is far from tight now will rarely be needed again."""
        old, dim = self.working, self.problem.dim
        room = dim + max(4 * self.batch, 2 * FIRST * dim)  # the active ones are at most dim
        if len(old.index) <= room:
            return np.arange(len(old.index))
        slack = old.rows @ self.active.p - old.b
        slack[np.isin(old.index, self.active.members)] = -np.inf
        return np.sort(np.argpartition(slack, room)[:room])

    def multipliers(self, members: list[int], weights: Vector) -> Vector:
        """Those of all rows, from those of rows of length 1."""
        lam = np.zeros(len(self.problem))
        lam[members] = weights / self.working.length[self.working.places(members)]
        return lam

    def solution(self) -> Solution:
        at = self.working.places(self.active.members)
        p, u = polished(self.working.rows[at].T, self.working.b[at])
        lam = self.multipliers(self.active.members, np.maximum(u, 0.0)) / self.unit / self.unit
        p = p / self.unit
        nu = self.tie_multipliers(p - self.problem.inequalities.transposed_times(lam))
        return Solution(self.problem, p, lam, nu, self.steps)

    def tie_multipliers(self, pull: Vector) -> Vector:
        """nu with C'nu = pull, the shortest."""
        if not len(self.problem.equalities):
            return np.zeros(0)
        nu: Vector = lstsq(self.problem.ties.T, pull)[0]
        return nu

    def witness(self, lam: Vector) -> Witness:
        """Scaled to lam'b = 1."""
        lam = lam / (lam @ self.problem.b or 1.0)
        return Witness(self.problem, lam, self.tie_multipliers(-self.problem.inequalities.transposed_times(lam)))


def _given_rows(problem: MarginProblem, start: Solution | None) -> Index:
    """Rows to begin with; none where there is nothing to go by."""
    if start is None:
        return np.zeros(0, np.intp)
    if not isinstance(start, Solution):
        raise refusal("solve", "start", "be a Solution", start)
    active, names, before = np.flatnonzero(start.lam), problem.names, start.problem.names
    if names is None or before is None:
        return active[active < len(problem)]
    if not len(names) or not len(active):
        return active[:0]
    width = 1 + max(int(names[:, 1].max()), int(before[:, 1].max()))
    return np.flatnonzero(np.isin(names @ [width, 1], before[active] @ [width, 1]))


def _row_space(ties: Rows) -> Vector:
    """(d, rank) an orthonormal basis of the span of the ties."""
    if not len(ties):
        return np.zeros((ties.dim, 0))
    rows = ties.rows(np.arange(len(ties)))
    size = np.abs(rows).max(axis=1, keepdims=True)
    R = qr(rows / np.where(size > 0, size, 1.0), mode="r")[0][: ties.dim]
    _, values, directions = svd(R, full_matrices=False)
    return np.ascontiguousarray(directions[values > 1e-12 * max(values[0], 1e-300) * np.sqrt(ties.dim)].T)
