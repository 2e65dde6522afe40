"""The dual active-set method of Goldfarb and Idnani for min 1/2 |p|^2 subject to n_j'p >= b_j, rows of length 1.

State: some independent rows N (as columns, N = Q R), multipliers u >= 0 and p = N u with N'p = b; that is the minimiser
over these rows alone. A violated row enters, rows whose multiplier would turn negative leave, and |p| grows at every
step, so no state comes back. A row that depends on N and that no leaving row makes room for is a proof of
infeasibility: n = N r with r <= 0 although n'p < b.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import qr, qr_delete
from scipy.linalg.blas import dtrsv
from scipy.linalg.lapack import dtrtrs

from ...model.ragged import Vector

DEPENDENT = 1e-12  # a row of length 1 whose part outside the span of N is shorter depends on N
_CLEARLY = 1e-8  # of rows given to begin with, only those that are independent beyond doubt are taken
_NOISE = 1e-13  # coefficients below, beside the largest, are zero


class Contradiction(Exception):
    """Active rows and the entering one, and their multipliers: the combination is 0 >= (something positive)."""


class ActiveSet:
    """The state; `members` are names of the rows, given by the caller."""

    def __init__(self, dim: int, rank: int) -> None:
        self.rank = rank  # no more rows than this are independent
        self.members: list[int] = []
        self.p = np.zeros(dim)
        self.u = np.zeros(0)
        self._Q = np.zeros((dim, rank), order="F")
        self._R = np.zeros((rank, rank), order="F")
        self._b = np.zeros(rank)
        self._y = np.zeros(rank)

    def begin(self, members: list[int], rows: Vector, b: Vector) -> int:
        """Rows that are likely to be active, all at once, in an empty state; the number of rows that were left out.

        Any independent rows with multipliers u >= 0 are a valid state: those with u < 0 leave, the worst first.
        """
        Q, R, order = qr(rows.T, mode="economic", pivoting=True)
        sizes = np.abs(np.diag(R))
        k = min(int((sizes > _CLEARLY).sum()), self.rank)
        self.members = [members[j] for j in order[:k]]
        self._Q[:, :k], self._R[:k, :k], self._b[:k] = Q[:, :k], R[:k, :k], b[order[:k]]
        self._y[:k] = self._solve(self._b[:k], transposed=True)
        self.u = self._solve(self._y[:k])
        while self.members and self.u.min() < 0:
            self._delete(int(self.u.argmin()))
            self.u = self._solve(self._y[: len(self.members)])
        self.p = self._Q[:, : len(self.members)] @ self._y[: len(self.members)]
        return len(members) - len(self.members)

    def enter(self, member: int, n: Vector, b: float) -> int:
        """Make row n'p >= b hold with equality; the number of rows that had to leave."""
        weight, left = 0.0, 0
        while True:
            along, z = self._split(n)
            r = self._solve(along)
            size = float(z @ z)
            free = len(self.members) < self.rank and size > DEPENDENT**2
            full = (b - float(n @ self.p)) / size if free else np.inf
            step, out = self._first_to_leave(r)
            if full == np.inf and out < 0:
                raise Contradiction([*self.members, member], np.maximum(np.append(-r, 1.0), 0.0))
            if full <= step:
                self.u = np.append(np.maximum(self.u - full * r, 0.0), weight + full)
                self._insert(member, along, z, b)
                return left
            if free:
                self.p += step * z
            self.u = np.maximum(self.u - step * r, 0.0)
            weight += step
            self._delete(out)
            left += 1

    def refresh(self, rows: Vector) -> None:
        """Factors of the active rows, given again, from scratch: updates lose a digit or two in the long run."""
        k = len(self.members)
        self._Q[:, :k], self._R[:k, :k] = qr(rows.T, mode="economic")
        y = self._solve(self._b[:k], transposed=True)
        self._y[:k] = y
        self.p = self._Q[:, :k] @ y
        self.u = np.maximum(self._solve(y), 0.0)

    def _split(self, n: Vector) -> tuple[Vector, Vector]:
        """n = Q along + z, z orthogonal to Q; projecting twice is enough, once is not."""
        Q = self._Q[:, : len(self.members)]
        along = n @ Q
        z = n - Q @ along
        again = z @ Q
        return along + again, z - Q @ again

    def _solve(self, x: Vector, transposed: bool = False) -> Vector:
        """R^-1 x or R^-T x. All rows of the buffer go in, as its first columns: contiguous, hence not copied."""
        k = len(self.members)
        return dtrtrs(self._R[:, :k], x, lda=len(self._R), trans=int(transposed))[0] if k else np.zeros(0)

    def _first_to_leave(self, r: Vector) -> tuple[float, int]:
        falling = np.flatnonzero(r > _NOISE * max(1.0, float(np.abs(r).max(initial=0.0))))
        if not len(falling):
            return np.inf, -1
        steps = self.u[falling] / r[falling]
        first = int(steps.argmin())
        return float(steps[first]), int(falling[first])

    def _insert(self, member: int, along: Vector, z: Vector, b: float) -> None:
        k = len(self.members)
        length = float(np.sqrt(z @ z))
        self._Q[:, k] = z / length
        self._R[:k, k] = along
        self._R[k, k] = length
        self._b[k] = b
        self._y[k] = (b - float(along @ self._y[:k])) / length  # forward substitution goes on: R'y = b
        self.members.append(member)
        self.p = self._Q[:, : k + 1] @ self._y[: k + 1]  # from the factors, not by summing steps: nothing drifts

    def _delete(self, j: int) -> None:
        k = len(self.members)
        if k > 1:
            Q, R = qr_delete(self._Q[:, :k], self._R[:k, :k], j, which="col", check_finite=False)
            self._Q[:, : k - 1] = Q[:, : k - 1]  # a square Q stays square
            self._R[: k - 1, : k - 1] = R[: k - 1]
        self._b[j : k - 1] = self._b[j + 1 : k].copy()
        self.members.pop(j)
        self.u = np.concatenate([self.u[:j], self.u[j + 1 :]])
        self._y[: k - 1] = self._solve(self._b[: k - 1], transposed=True)


def polished(N: Vector, b: Vector) -> tuple[Vector, Vector]:
    """p and u of N'p = b, p = N u, for independent columns N; from fresh factors, refined once."""
    Q, R = qr(N, mode="economic")
    if not N.shape[1]:
        return np.zeros(N.shape[0]), np.zeros(0)
    p = Q @ dtrsv(R, b, trans=1)
    p += Q @ dtrsv(R, b - p @ N, trans=1)
    u = dtrsv(R, p @ Q)
    u += dtrsv(R, (p - N @ u) @ Q)
    return p, u
