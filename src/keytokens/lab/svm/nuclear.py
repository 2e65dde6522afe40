"""Max-margin problems in the nuclear norm: min |W|_* subject to (x_winner - x_loser)'W z_i >= 1, with a certificate.

Any multipliers lam >= 0 bound the optimum from below: |W|_* |M|_op >= <W, M> = sum_j lam_j (row_j W) >= lam'b with
M = sum_j lam_j row_j. So a feasible W and some lam prove each other: the relative gap |W|_* against lam'b/|M|_op.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lstsq, qr

from ...base.errors import refusal
from ...base.threads import one_blas_thread
from .interior import PathPoint, central_path
from .matrix import Kronecker, MatrixSolution, Rank, factors, solve_matrix
from .problem import MarginProblem
from .solution import TIGHT, NotSolved

Vector = NDArray[np.float64]
Index = NDArray[np.intp]

GAP = 1e-8  # no answer with a larger relative gap is given out
AIM = 1e-9  # the path is followed to here


@dataclass(frozen=True, eq=False)
class NuclearSolution:
    """A feasible W and multipliers lam (m,) that bound the optimum. Whoever made them: see residuals."""

    problem: MarginProblem
    W: Vector
    lam: Vector
    steps: int = 0  # along the central path

    @cached_property
    def singular_values(self) -> Vector:
        """The largest first."""
        return np.asarray(np.linalg.svd(self.W, compute_uv=False), np.float64)

    @property
    def norm(self) -> float:
        """|W|_*, the sum of the singular values."""
        return float(self.singular_values.sum())

    @property
    def margin(self) -> float:
        """1/|W|_*; inf where nothing needs separating."""
        return 1 / self.norm if self.norm else float("inf")

    @property
    def rank(self) -> Rank:
        return Rank.of(self.singular_values)

    @cached_property
    def bound(self) -> float:
        """lam'b/|M|_op: no W that satisfies the rows has a smaller nuclear norm."""
        M = self.problem.transposed_times(np.maximum(self.lam, 0.0)).reshape(self.W.shape)
        largest = float(np.linalg.norm(M, 2))
        return float(np.maximum(self.lam, 0.0) @ self.problem.b) / largest if largest else 0.0

    @cached_property
    def slack(self) -> Vector:
        """(m,) rows of W minus what they ask for."""
        return self.problem.times(self.W.ravel()) - self.problem.b

    @property
    def support(self) -> Index:
        """Rows that are tight."""
        return np.flatnonzero(self.slack <= TIGHT)

    @property
    def gap(self) -> float:
        """1 - bound/|W|_*; 0 where W = 0."""
        return 1 - self.bound / self.norm if self.norm else 0.0

    def residuals(self) -> dict[str, float]:
        """From problem and point alone; all zero exactly at a minimiser."""
        return {
            "primal": max(0.0, -float(self.slack.min(initial=np.inf))) if len(self.slack) else 0.0,
            "dual": max(0.0, -float(self.lam.min(initial=0.0))),
            "gap": max(0.0, self.gap),
        }

    def is_optimal(self, tol: float = GAP) -> bool:
        return max(self.residuals().values()) <= tol


def solve_nuclear(problem: MarginProblem, start: MatrixSolution | None = None) -> NuclearSolution:
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
        return NuclearSolution(problem, np.zeros(rows.shape), np.zeros(len(rows)))
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


def _checked_start(problem: MarginProblem, rows: Kronecker, start: Any) -> MatrixSolution:
    """A solution whose W satisfies the rows of this problem."""
    if not isinstance(start, MatrixSolution):
        raise refusal("solve_nuclear", "start", "be what solve_matrix returns", start)
    if start.p.size != rows.dim or (problem.times(start.p) < problem.b - GAP).any():
        raise refusal("solve_nuclear", "start", "be the solution of the same problem", "that of another one")
    return start


def _followed(problem: MarginProblem, rows: Kronecker, W: Vector) -> NuclearSolution:
    """The end of the central path, in the coordinates of the span of the rows and in units of the largest."""
    x, z = (qr(side.T, mode="economic")[0] for side in (rows.left, rows.right))
    left, right = rows.left @ x, (rows.right @ z)[rows.bag]
    sizes = [float(np.linalg.norm(side, axis=1).max()) for side in (left, right)]
    unit = sizes[0] * sizes[1]

    def lifted(point: PathPoint, steps: int) -> NuclearSolution:
        return _stretched(NuclearSolution(problem, x @ point.W @ z.T / unit, point.lam / unit, steps))

    best: NuclearSolution | None = None
    for steps, point in enumerate(central_path(left / sizes[0], right / sizes[1], problem.b, unit * x.T @ W @ z)):
        if best is None or point.gap <= 3 * AIM:  # far from the end only the first point is looked at
            found = lifted(point, steps)
            best = found if best is None or found.gap < best.gap else best
            if best.gap <= AIM:
                break
    assert best is not None
    return best


def _stretched(found: NuclearSolution) -> NuclearSolution:
    """The least multiple of W that satisfies every row."""
    asked = found.problem.b > 0
    least = float((1 + found.slack[asked] / found.problem.b[asked]).min())
    return replace(found, W=found.W / least) if least > 0 else found


def _polished(found: NuclearSolution) -> NuclearSolution:
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
    other = _stretched(replace(found, W=W + face[0] @ B @ face[1]))
    return other if other.is_optimal(max(found.gap, AIM)) else found
