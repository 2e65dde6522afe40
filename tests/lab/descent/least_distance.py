"""The max-margin direction by a road of its own."""

import numpy as np
from scipy.optimize import lsq_linear

from keytokens.model.ragged import Bags


def max_margin(keys: Bags, selection: np.ndarray) -> np.ndarray:
    """argmin |p| with p'(k_i,selected - k_it) >= 1, by Lawson and Hanson's least distance programme.

    Not by scipy's `nnls`: that of scipy 1.15 ends at points that are no minimisers.
    """
    chosen = keys.chosen(selection)
    others = np.setdiff1d(np.arange(len(keys.rows)), chosen)
    A = keys.rows[chosen[keys.bag[others]]] - keys.rows[others]
    system, target = np.vstack([A.T, np.ones(len(A))]), np.append(np.zeros(keys.dim), 1.0)
    u = lsq_linear(system, target, bounds=(0, np.inf), method="bvls", tol=1e-16, max_iter=10_000).x
    # once the support is known the least norm point on it has all digits
    support = A[u > 1e-12 * u.max()]
    return np.linalg.pinv(support) @ np.ones(len(support))
