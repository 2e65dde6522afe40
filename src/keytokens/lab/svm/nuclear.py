"""Max-margin problems in the nuclear norm: min |W|_* subject to (x_winner - x_loser)'W z_i >= 1, with a certificate.

Any multipliers lam >= 0 bound the optimum from below: |W|_* |M|_op >= <W, M> = sum_j lam_j (row_j W) >= lam'b with
M = sum_j lam_j row_j. So a feasible W and some lam prove each other: the relative gap |W|_* against lam'b/|M|_op.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.linalg import lstsq, qr

from ...base.errors import refusal
from ...base.threads import one_blas_thread
from ...model.ragged import Vector
from .interior import PathPoint, central_path
from .matrix import solve_matrix
from .problem import Kronecker, MarginProblem, factors
from .solution import NUCLEAR, NotSolved, Rank, Solution

GAP = 1e-8  # no answer with a larger relative gap is given out
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
    short = solve_matrix(problem) if start is None else _checked_start(problem, rows, start)
    if not problem.b.any():
        return _solution(problem, np.zeros(rows.shape), np.zeros(len(rows)))
    with one_blas_thread():
        found = _followed(problem, rows, short.W)
        if found.gap > AIM or not found.rank.agrees:
            found = _polished(found)
    if not found.is_optimal(GAP):
        raise NotSolved(
            f"solve_nuclear: the relative gap is {found.gap:.1e}, above {GAP:g}; the margin is too thin for double "
            "precision. Scale or centre the values, or drop inputs that are almost contradictory."
        )
    return found


def _solution(problem: MarginProblem, W: Vector, lam: Vector, steps: int = 0) -> Solution:
    return Solution(problem, W.ravel(), lam, np.zeros(0), steps, NUCLEAR)


def _checked_start(problem: MarginProblem, rows: Kronecker, start: Any) -> Solution:
    """A solution whose W satisfies the rows of this problem."""
    if not isinstance(start, Solution):
        raise refusal("solve_nuclear", "start", "be what solve_matrix returns", start)
    if start.p.size != rows.dim or (problem.times(start.p) < problem.b - GAP).any():
        raise refusal("solve_nuclear", "start", "be the solution of the same problem", "that of another one")
    return start


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
