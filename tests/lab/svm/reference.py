"""Independent roads to the same minimiser: an active set on all rows, Clarabel, and feasibility by HiGHS."""

import clarabel
import numpy as np
from scipy import sparse
from scipy.optimize import linprog, lsq_linear


def least_distance(A: np.ndarray, b: np.ndarray, C: np.ndarray) -> np.ndarray:
    """Lawson and Hanson's LDP: u = argmin |E u - f|, E = [G'; h'], f = e; u >= 0 of inequalities, any u of ties.

    Not by scipy's `nnls`: that of scipy 1.15 ends at points that are no minimisers.
    """
    G, h = np.vstack([A, C]), np.concatenate([b, np.zeros(len(C))])
    if not len(G):
        return np.zeros(G.shape[1])
    E = np.vstack([G.T, h])
    f = np.zeros(len(E))
    f[-1] = 1
    least = np.repeat([0.0, -np.inf], [len(A), len(C)])
    r = E @ lsq_linear(E, f, bounds=(least, np.inf), method="bvls", tol=1e-16, max_iter=10_000).x - f
    return -r[:-1] / r[-1]


def interior_point(A: np.ndarray, b: np.ndarray, C: np.ndarray) -> tuple[str, np.ndarray]:
    """Clarabel's verdict and point; its form is s = q - M p with s in the cone.

    Where a tolerance is out of its reach it says so and its point is poor: then it is asked for the next one.
    """
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    d = A.shape[1]
    M = sparse.csc_matrix(np.vstack([C, -A]))
    q = np.concatenate([np.zeros(len(C)), -b])
    cones = [clarabel.ZeroConeT(len(C)), clarabel.NonnegativeConeT(len(A))]
    for tolerance in (1e-11, 1e-10, 1e-9, 1e-8):
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
        answer = clarabel.DefaultSolver(sparse.eye(d, format="csc"), np.zeros(d), M, q, cones, settings).solve()
        if str(answer.status) in ("Solved", "PrimalInfeasible"):
            break
    return str(answer.status), np.array(answer.x)


def is_feasible(A: np.ndarray, b: np.ndarray, C: np.ndarray) -> bool:
    if not len(A):
        return True
    equal = {"A_eq": C, "b_eq": np.zeros(len(C))} if len(C) else {}
    answer = linprog(np.zeros(A.shape[1]), A_ub=-A, b_ub=-b, bounds=(None, None), method="highs", **equal)
    assert answer.status in (0, 2)
    return answer.status == 0


def one_minus_cos(p: np.ndarray, q: np.ndarray) -> float:
    """1 - cos = |p/|p| - q/|q||^2 / 2, without cancellation; 0 for two zeros."""
    if not p.any() or not q.any():
        return float(p.any() != q.any())
    return float(np.sum((p / np.linalg.norm(p) - q / np.linalg.norm(q)) ** 2) / 2)
