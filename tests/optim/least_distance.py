"""The max-margin direction by a road of its own."""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

from keytokens.core.bags import Bags


def max_margin(keys: Bags, selection: np.ndarray) -> np.ndarray:
    """argmin |p| with p'(k_i,selected - k_it) >= 1, by Lawson and Hanson's least distance programme."""
    chosen = keys.chosen(selection)
    others = np.setdiff1d(np.arange(len(keys.rows)), chosen)
    A = keys.rows[chosen[keys.bag[others]]] - keys.rows[others]
    system, target = np.vstack([A.T, np.ones(len(A))]), np.append(np.zeros(keys.dim), 1.0)
    u, _ = nnls(system, target)
    # once the support is known the least norm point on it has all digits
    support = A[u > 1e-12 * u.max()]
    return np.linalg.pinv(support) @ np.ones(len(support))
