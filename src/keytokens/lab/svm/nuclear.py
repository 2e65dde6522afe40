"""Max-margin problems in the nuclear norm: min |W|_* subject to (x_winner - x_loser)'W z_i >= 1, with a certificate.

Any multipliers lam >= 0 bound the optimum from below: |W|_* |M|_op >= <W, M> = sum_j lam_j (row_j W) >= lam'b with
M = sum_j lam_j row_j. So a feasible W and some lam prove each other: the relative gap |W|_* against lam'b/|M|_op.

They are found at the end of the central path, by Mehrotra's predictor and corrector, for rows l_j'W r_j >= b_j:

primal   min tr(X)/2 over X = [[., W], [W', .]] >= 0 and slacks s = (l_j'W r_j - b_j) >= 0
dual     max lam'b over lam >= 0 with Z = [[1, -M], [-M', 1]]/2 >= 0, M = sum_j lam_j l_j r_j'; that is |M|_op <= 1

Both points stay feasible to rounding: W begins at a multiple of a feasible one, Z is a function of lam. On the path
X Z = mu and s_j lam_j = mu. The constraint matrices have rank two, so the system for lam costs m^2 (d + e) only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.linalg import lstsq, qr
from scipy.linalg.lapack import dpotrf, dpotrs, dsyevd, dtrtri

from ...base.errors import refusal
from ...base.threads import one_blas_thread
from ...model.ragged import Vector
from .matrix import solve_matrix
from .problem import Kronecker, MarginProblem, factors
from .solution import CERTIFIED, NUCLEAR, THIN, Rank, Solution, certified

MOST_STEPS = 80
BEGIN = 1.3  # times a feasible W: inside, with room to all rows
ROOM = 1.2  # the blocks of X beside |W|_op, and 1/ROOM that of M
SHARES = (1.0, 0.95, 0.85, 0.7, 0.5, 0.3, 0.1)  # of a predicted step
BOLD, CAREFUL = 0.99, 0.9  # shares of the way to the boundary, for long and for short predictor steps


@dataclass(frozen=True, eq=False)
class _Data:
    """left (m, d), right (m, e), b (m,)."""

    left: Vector
    right: Vector
    b: Vector

    @cached_property
    def size(self) -> int:
        return self.left.shape[1] + self.right.shape[1]

    def times(self, X: Vector) -> Vector:
        """l_j'W r_j, W the upper right block."""
        d = self.left.shape[1]
        return np.einsum("jk,jk->j", self.left @ X[:d, d:], self.right)

    def pulled(self, lam: Vector) -> Vector:
        """M."""
        return (self.left.T * lam) @ self.right

    def off_diagonal(self, M: Vector) -> Vector:
        """[[0, M], [M', 0]]."""
        d = self.left.shape[1]
        whole = np.zeros((self.size, self.size))
        whole[:d, d:] = M
        whole[d:, :d] = M.T
        return whole


class _Move(NamedTuple):
    X: Vector
    slack: Vector
    lam: Vector
    Z: Vector


class _System(NamedTuple):
    """Newton's equations at a point, factored: (H + diag(s/lam)) dlam = right-hand side."""

    X_root: Vector  # inverse of the Cholesky factor of X
    Z_root: Vector
    Z_inverse: Vector
    factor: Vector


@dataclass(frozen=True, eq=False)
class PathPoint:
    """One point near the path."""

    data: _Data
    X: Vector
    slack: Vector
    lam: Vector

    @property
    def W(self) -> Vector:
        d = self.data.left.shape[1]
        return self.X[:d, d:]

    @cached_property
    def Z(self) -> Vector:
        return np.eye(self.data.size) / 2 - self.data.off_diagonal(self.data.pulled(self.lam) / 2)

    @cached_property
    def mu(self) -> float:
        """Primal minus dual value is mu times the number of rows and columns."""
        return float(np.vdot(self.X, self.Z) + self.slack @ self.lam) / (self.data.size + len(self.lam))

    @property
    def gap(self) -> float:
        """Primal minus dual value, beside the dual one."""
        return self.mu * (self.data.size + len(self.lam)) / float(self.lam @ self.data.b)

    def system(self) -> _System | None:
        """None where rounding has made X, Z or the system lose its sign."""
        (X_factor, bad_X), (Z_factor, bad_Z) = dpotrf(self.X, lower=1), dpotrf(self.Z, lower=1)
        if bad_X or bad_Z:
            return None
        X_root, Z_root = dtrtri(X_factor, lower=1)[0], dtrtri(Z_factor, lower=1)[0]
        Z_inverse = Z_root.T @ Z_root
        factor, bad = dpotrf(_schur(self, Z_inverse), lower=1)
        return None if bad else _System(X_root, Z_root, Z_inverse, factor)

    def next(self, system: _System) -> PathPoint:
        """Predict with mu = 0, see how far that goes, then aim at the mu it earns with the second-order term."""
        affine = self._move(system, 0.0, None)
        primal = _fits(self.X, affine.X, self.slack, affine.slack)
        dual = _fits(self.Z, affine.Z, self.lam, affine.lam)
        left = float(np.vdot(self.X + primal * affine.X, self.Z + dual * affine.Z))
        left += float((self.slack + primal * affine.slack) @ (self.lam + dual * affine.lam))
        ratio = left / (self.mu * (self.data.size + len(self.lam)))
        move = self._move(system, min(1.0, max(ratio, 0.0) ** 3) * self.mu, affine)
        share = CAREFUL + (BOLD - CAREFUL) * min(primal, dual)
        primal = min(1.0, share * _room(system.X_root, move.X, move.slack / self.slack))
        dual = min(1.0, share * _room(system.Z_root, move.Z, move.lam / self.lam))
        slack, lam = self.slack + primal * move.slack, self.lam + dual * move.lam
        return PathPoint(self.data, self.X + primal * move.X, slack, lam)

    def _move(self, system: _System, mu: float, affine: _Move | None) -> _Move:
        """X Z + dX Z + X dZ = mu and s lam + ds lam + s dlam = mu, less the second-order terms of `affine`."""
        data, aim, aim_slack = self.data, mu * system.Z_inverse, np.full_like(self.slack, mu)
        if affine is not None:
            aim -= _symmetric(affine.X @ affine.Z @ system.Z_inverse)
            aim_slack -= affine.slack * affine.lam
        wanted = data.b - data.times(aim) + aim_slack / self.lam
        lam = dpotrs(system.factor, wanted, lower=1)[0]
        Z = data.off_diagonal(data.pulled(lam) / -2)
        aim -= _symmetric(self.X @ Z @ system.Z_inverse)
        return _Move(aim - self.X, (aim_slack - self.slack * lam) / self.lam - self.slack, lam, Z)


def central_path(left: Vector, right: Vector, b: Vector, W: Vector) -> Iterator[PathPoint]:
    """Points ever nearer to the end of the path; it ends where the arithmetic does. W satisfies all rows."""
    data, W = _Data(left, right, b), BEGIN * W
    X = data.off_diagonal(W)
    X.flat[:: data.size + 1] = ROOM * np.linalg.norm(W, 2)
    slack = data.times(X) - b
    lam = 1 / slack
    point = PathPoint(data, X, slack, lam / (ROOM * np.linalg.norm(data.pulled(lam), 2)))
    for _ in range(MOST_STEPS):
        yield point
        if (system := point.system()) is None:
            return
        point = point.next(system)


def _schur(point: PathPoint, Z_inverse: Vector) -> Vector:
    """tr(F_i X F_j Z^-1) + diag(s/lam), F_j = [[0, l_j r_j'], [r_j l_j', 0]]/2, by products of numbers."""
    L, R, d = point.data.left, point.data.right, point.data.left.shape[1]
    X, Y = point.X, Z_inverse
    across = (L @ X[:d, d:] @ R.T).T * (L @ Y[:d, d:] @ R.T)
    H = across + across.T
    H += (R @ X[d:, d:] @ R.T) * (L @ Y[:d, :d] @ L.T)
    H += (L @ X[:d, :d] @ L.T) * (R @ Y[d:, d:] @ R.T)
    H /= 4
    H.flat[:: len(H) + 1] += point.slack / point.lam
    return H


def _fits(X: Vector, dX: Vector, s: Vector, ds: Vector) -> float:
    """The largest of some shares of a move, of a matrix and of a vector, that stays positive: enough to predict."""
    for share in SHARES:
        if (s + share * ds).min() > 0 and not dpotrf(X + share * dX, lower=1)[1]:
            return share
    return 0.0


def _room(root: Vector, move: Vector, shares: Vector) -> float:
    """How many times a move fits into a cone: of a matrix, from its inverse root, and of a vector, from its shares."""
    least = float(dsyevd(root @ move @ root.T, compute_v=0, lower=1)[0][0])
    return 1 / max(-min(least, float(shares.min())), 1e-300)


def _symmetric(A: Vector) -> Vector:
    return (A + A.T) / 2


# The solver -----------------------------------------------------------------------------------------------------------


AIM = 1e-9  # the path is followed to here


def solve_nuclear(problem: MarginProblem, start: Solution | None = None) -> Solution:
    """The minimiser of |W|_*, certified; `start` is the solution in the Frobenius norm, if it is there already.

    Raises NotSeparable, with a Farkas vector, where no W satisfies the rows; NotSolved where the gap stays above 1e-8.

    >>> from keytokens.lab.svm.matrix import matrix_problem
    >>> solution = solve_nuclear(matrix_problem([[[1.0, 0.0], [0.0, 0.0]]], [[0.0, 2.0]], [0]))
    >>> solution.W.round(8).tolist(), solution.rank.absolute, solution.gap <= 1e-8
    ([[0.0, 0.5], [0.0, 0.0]], 1, True)
    """
    rows, ties = factors("solve_nuclear", problem)
    if len(ties):
        raise refusal("solve_nuclear", "problem", "have no ties", f"{len(ties)} ties", "use solve_matrix")
    short = solve_matrix(problem) if start is None else start
    whole = isinstance(short, Solution) and short.p.size == rows.dim
    if not whole or (problem.times(short.p) < problem.b - CERTIFIED).any():
        raise refusal("solve_nuclear", "start", "be what solve_matrix returns for this problem", start)
    if not problem.b.any():
        return _solution(problem, np.zeros(rows.shape), np.zeros(len(rows)))
    with one_blas_thread():
        found = _followed(problem, rows, short.W)
        if found.gap > AIM or not found.rank.agrees:
            found = _polished(found)
    return certified("solve_nuclear", found, THIN)


def _solution(problem: MarginProblem, W: Vector, lam: Vector, steps: int = 0) -> Solution:
    return Solution(problem, W.ravel(), lam, np.zeros(0), steps, NUCLEAR)


def _followed(problem: MarginProblem, rows: Kronecker, W: Vector) -> Solution:
    """The end of the central path, in the coordinates of the span of the rows and in units of the largest."""
    x, z = (qr(side.T, mode="economic")[0] for side in (rows.left, rows.right))
    left, right = rows.left @ x, (rows.right @ z)[rows.bag]
    sizes = [float(np.linalg.norm(side, axis=1).max()) for side in (left, right)]
    unit = sizes[0] * sizes[1]

    def lifted(point: PathPoint, steps: int) -> Solution:
        return _stretched(_solution(problem, x @ point.W @ z.T / unit, point.lam / unit, steps))

    best: Solution | None = None
    for steps, point in enumerate(central_path(left / sizes[0], right / sizes[1], problem.b, unit * x.T @ W @ z)):
        if best is None or point.gap <= 3 * AIM:  # far from the end only the first point is looked at
            found = lifted(point, steps)
            best = found if best is None or found.gap < best.gap else best
            if best.gap <= AIM:
                break
    assert best is not None
    return best


def _stretched(found: Solution) -> Solution:
    """The least multiple of W that satisfies every row."""
    asked = found.problem.b > 0
    least = float((1 + found.slack[asked] / found.problem.b[asked]).min())
    return replace(found, p=found.p / least) if least > 0 else found


def _polished(found: Solution) -> Solution:
    """Where small singular values may be noise: W = U B V' on the large ones, rows with multipliers exactly tight.

    A face that is off by h makes |W|_* too large by h^2 only; it is taken where the certificate agrees.
    """
    U, values, V = np.linalg.svd(found.W)
    rank = Rank.of(values).relative
    face, tight = (U[:, :rank], V[:rank]), np.flatnonzero(found.lam > np.maximum(found.slack, 0.0))
    W = (face[0] * values[:rank]) @ face[1]
    rows = found.problem.rows(tight).reshape(-1, *found.W.shape)
    on_face = np.einsum("ik,jil,ml->jkm", face[0], rows, face[1]).reshape(len(tight), -1)
    short = found.problem.b[tight] - found.problem.times(W.ravel())[tight]
    B = lstsq(on_face, short)[0].reshape(rank, rank)
    other = _stretched(replace(found, p=(W + face[0] @ B @ face[1]).ravel()))
    return other if other.is_optimal(max(found.gap, AIM)) else found
