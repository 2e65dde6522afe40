"""Max-margin problems in the norm |.|_q, q > 1: min 1/2 |p|_q^2 subject to A p >= b and C p = 0.

With multipliers lam >= 0 and nu, g = A'lam + C'nu, and r = q/(q-1):
g = grad 1/2 |p|_q^2              at the minimiser; of the form c sign(p) |p|^(q-1), and p for q = 2
|p|_q >= lam'b / |g|_r            for every feasible p and every lam >= 0 (Hoelder): a proof from below

phi(p) = |p|_q^q / q has the same minimiser and simpler slopes. A primal-dual interior-point method follows
s_j lam_j = mu down to mu = 0, s = A p - b. One of the two maps p -> g and g -> p has an unbounded slope at 0, so the
unknown is the one whose map is smooth: p for q > 2, g for q <= 2. Newton steps on the rows that are tight then add the
last digits. Where nothing separates, the norm does not matter: the Euclidean solver, which goes first, has the proof.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...base.threads import one_blas_thread
from ...model.ragged import Index, Vector
from ..problems.geometry import check_exponent, conjugate, mirror, norm
from .problem import MarginProblem, check_problem
from .solution import Lq, Solution, certified
from .solver import TOLERANCE, solve

_BATCH = 256  # rows that are taken in after a scan of all of them
_SMALL, _EVEN = 1e-14, 1e-11  # where the interior-point method ends: s_j lam_j, and the other equations
_MOST_STEPS, _MOST_POLISH = 300, 20
_SHORTER, _STUCK = 0.7, 1e-5  # of a step that does not lower the residuals, until it is given up
_NOTHING = 1e-15  # on a diagonal of order 1, so that dependent rows are no trouble


def solve_lq(problem: MarginProblem, q: float) -> Solution:
    """argmin |p|_q, certified on all rows; for a matrix W, row by row, use the keys of `problems.logits`.

    Raises NotSeparable, with a Farkas vector, where no p satisfies the constraints, and NotSolved where no answer can
    be certified in this arithmetic: thin margins, or q so near 1 (or so large) that powers lose all digits.

    >>> problem = MarginProblem.from_rows([[2.0, 1.0]])
    >>> [solve_lq(problem, q).p.round(6).tolist() for q in (1.5, 2.0, 3.0)]
    [[0.444444, 0.111111], [0.4, 0.2], [0.369398, 0.261204]]
    >>> solve_lq(problem, 1.5).is_optimal(1e-12)
    True
    """
    check_problem("solve_lq", problem)
    check_exponent("solve_lq", q)
    euclidean = solve(problem)
    if not euclidean.p.any():
        return replace(euclidean, measure=Lq(q))
    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):  # what comes of it has no certificate
        because = "Take a q nearer to 2, scale or centre the keys, or drop inputs that are almost contradictory."
        return certified("solve_lq", _solve(problem, euclidean, float(q)), f", for q = {q:g}. {because}")


def _solve(problem: MarginProblem, euclidean: Solution, q: float) -> Solution:
    """Rows that look tight first; then, as long as there are any, those that are violated."""
    unit = float(np.abs(euclidean.p).max())  # in this unit p is of size 1, so powers of it are harmless
    index = np.sort(np.argsort(euclidean.slack, kind="stable")[:_BATCH])
    steps = 0
    while True:
        newton = _Newton(problem, index, euclidean.p, unit, q)
        newton.run()
        newton.polish()
        steps += newton.steps
        u, lam = newton.p, np.zeros(len(problem))
        # phi'(u) = (unit A)'lam_u, and grad 1/2 |p|_q^2 = unit |u|_q^(2-q) phi'(u) at p = unit u
        back = unit**2 * norm(u, q) ** (2 - q)
        lam[index] = back * newton.lam / newton.lengths
        solution = Solution(problem, unit * u, lam, back * newton.nu / newton.tie_lengths, steps, Lq(q))
        violated = np.flatnonzero(solution.slack < -TOLERANCE)
        worst = violated[np.argsort(solution.slack[violated], kind="stable")[:_BATCH]]
        if np.isin(worst, index).all():
            return solution
        index = np.union1d(index, worst)


class _Newton:
    """min phi(p) subject to A p >= b, C p = 0, rows of length 1. The unknowns: y (p or g), lam and nu, the slack s."""

    def __init__(self, problem: MarginProblem, index: Index, p: Vector, unit: float, q: float) -> None:
        """At a feasible p: every row has a slack and a multiplier to go down with."""
        rows, ties, u = problem.rows(index) * unit, problem.ties * unit, p / unit
        self.lengths, self.tie_lengths = _lengths(rows), _lengths(ties)  # as they were given, in the unit of p
        self.A, self.b = rows / self.lengths[:, None], problem.b[index] / self.lengths
        self.C, self.q, self.steps = ties / self.tie_lengths[:, None], q, 0
        self.y, self.s = u if q > 2 else mirror(u, q), np.maximum(self.A @ u - self.b, 0.1)
        self.lam = np.full(len(self.b), float(np.sum(np.abs(u) ** q)) / len(self.b))
        self.nu = np.zeros(len(self.C))

    @property
    def p(self) -> Vector:
        return self._maps(self.y)[0]

    def run(self) -> None:
        """Down to s_j lam_j = 0, each step a Newton step for a share of the mean of these products."""
        share, rows = 0.2, np.arange(len(self.b))
        while self.steps < _MOST_STEPS:
            mu = float(self.s @ self.lam) / len(self.b)
            if mu < _SMALL and np.abs(self._balance(rows, self.y, self.lam, self.nu, self.s)).max() < _EVEN:
                return
            length = self._step(share * mu)
            if length < _STUCK:  # as near as rounding lets it come
                return
            share = 0.1 if length > 0.9 else 0.3 if length > 0.3 else 0.8  # a short step: stay nearer to the path

    def polish(self) -> None:
        """Newton's method on the tight rows alone, as long as it brings something and no multiplier turns negative."""
        tight = np.flatnonzero(self.lam > self.s)
        here = self._balance(tight, self.y, self.lam[tight], self.nu)
        for _ in range(_MOST_POLISH):
            dy, dlam, dnu = self._solved(tight, np.full(len(tight), _NOTHING), -here)
            y, lam, nu = self.y + dy, self.lam[tight] + dlam, self.nu + dnu
            there = self._balance(tight, y, lam, nu)
            slack = self.A @ self._maps(y)[0] - self.b
            better = np.abs(there).max(initial=0.0) < np.abs(here).max(initial=0.0)
            if not better or lam.min(initial=0.0) < 0 or slack.min() < -_EVEN:
                break
            here, self.y, self.nu = there, y, nu
            self.lam = np.zeros(len(self.b))
            self.lam[tight] = lam

    def _maps(self, y: Vector) -> tuple[Vector, Vector, Vector, Vector]:
        """p and g at y, and the slopes of both."""
        if self.q > 2:
            return y, mirror(y, self.q), np.ones_like(y), _slope(y, self.q)
        r = conjugate(self.q)
        return mirror(y, r), y, _slope(y, r), np.ones_like(y)

    def _balance(self, rows: Index, y: Vector, lam: Vector, nu: Vector, s: Vector | float = 0.0) -> Vector:
        """g - A'lam - C'nu, A p - s - b and C p, for some rows A; all of them 0 at a solution."""
        p, g, _, _ = self._maps(y)
        A = self.A[rows]
        return np.concatenate([g - lam @ A - nu @ self.C, A @ p - s - self.b[rows], self.C @ p])

    def _step(self, mu: float) -> float:
        """Towards s_j lam_j = mu; the share of the Newton step that was taken."""
        self.steps += 1
        rows = np.arange(len(self.b))
        here = self._balance(rows, self.y, self.lam, self.nu, self.s)
        off = mu - self.s * self.lam
        d, m = len(self.y), len(self.b)
        right = -here
        right[d : d + m] += off / self.lam
        dy, dlam, dnu = self._solved(rows, self.s / self.lam, right)
        ds = (off - self.s * dlam) / self.lam
        length = min(1.0, 0.99 * _room(self.s, ds), 0.99 * _room(self.lam, dlam))
        size = float(np.hypot(np.linalg.norm(here), np.linalg.norm(off)))
        while length >= _STUCK:
            y, lam, nu, s = self.y + length * dy, self.lam + length * dlam, self.nu + length * dnu, self.s + length * ds
            there = np.hypot(np.linalg.norm(self._balance(rows, y, lam, nu, s)), np.linalg.norm(mu - s * lam))
            if there <= (1 - 1e-4 * length) * size:
                self.y, self.lam, self.nu, self.s = y, lam, nu, s
                break
            length *= _SHORTER
        return length

    def _solved(self, rows: Index, diagonal: Vector, right: Vector) -> tuple[Vector, Vector, Vector]:
        """(dy, dlam, dnu) of g' dy - A'dlam - C'dnu, A p' dy + diagonal dlam, C p' dy = right, for some rows A."""
        _, _, p_slope, g_slope = self._maps(self.y)
        d, m = len(self.y), len(rows)
        below = np.concatenate([self.A[rows], self.C])
        matrix = np.zeros((d + len(below), d + len(below)))
        matrix[:d, :d] = np.diag(g_slope + _NOTHING)  # g' = 0 where p = 0
        matrix[:d, d:], matrix[d:, :d] = -below.T, below * p_slope
        matrix[d:, d:] = np.diag(np.concatenate([diagonal, np.full(len(self.C), _NOTHING)]))  # ties may be dependent
        found = np.asarray(np.linalg.solve(matrix, right), np.float64)
        return found[:d], found[d : d + m], found[d + m :]


def _lengths(rows: Vector) -> Vector:
    """Of the rows; 1 for a row of zeros."""
    lengths = np.linalg.norm(rows, axis=1)
    return np.where(lengths > 0, lengths, 1.0)


def _slope(x: Vector, q: float) -> Vector:
    """Of the mirror map, q >= 2."""
    return (q - 1) * np.abs(x) ** (q - 2)


def _room(x: Vector, dx: Vector) -> float:
    """How many times dx may be added to x > 0 before an entry is 0."""
    falling = dx < 0
    return float(np.min(-x[falling] / dx[falling], initial=np.inf))
