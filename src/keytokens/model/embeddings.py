"""The same model with embeddings: E (V, d), the query p (d,) and the output directions v (m, d).

    a = E p,  B = v E'

Any (a, B) is of this form as soon as d > m: put p and the v_k along different axes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from .attention import Parameters, scores
from .blocks import Float


@dataclass(frozen=True, eq=False)
class Embeddings:
    """f(X) = softmax(p'E_X')E_X v over the tokens of X and, where there is one, the sink: `cls` attending to itself.

    Unpacks as `E, p, v`. `v` has shape (d,) for two classes and (d, K) for K.
    """

    E: Float
    p: Float
    v: Float
    cls: Float | None  # (d,) the sink's embedding
    empty: Float  # (m,) the score of a document without a known token, where there is no sink

    def __iter__(self) -> Iterator[Float]:
        return iter((self.E, self.p, self.v))

    def scores(self, C: sparse.csr_matrix) -> Float:
        """f of each document of a matrix of (weighed) counts, (n,) or (n, K)."""
        v = self.v.reshape(len(self.p), -1).T
        B, c = v @ self.E.T, np.zeros(len(v))
        if self.cls is None:
            theta = Parameters(self.E @ self.p, B, c, self.empty)
        else:  # a sink of value v'cls is a sink of value 0 under an intercept
            c = v @ self.cls
            theta = Parameters(self.E @ self.p, B - c[:, None], c, self.empty, float(self.cls @ self.p))
        return np.squeeze(scores(C, theta).T, axis=1) if len(v) == 1 else scores(C, theta).T


def embed(theta: Parameters, dim: int) -> Embeddings:
    """E, p, v in dimension `dim` with the same f: p along the first axis, v_k along the next ones."""
    m, V = theta.B.shape
    E = np.zeros((V, dim))
    E[:, 0], E[:, 1 : m + 1] = theta.a, (theta.B + theta.c[:, None]).T
    p, v = np.zeros(dim), np.zeros((dim, m))
    p[0] = 1
    v[np.arange(1, m + 1), np.arange(m)] = 1
    cls = None
    if theta.has_sink:
        cls = np.zeros(dim)
        cls[0], cls[1 : m + 1] = theta.log_sink, theta.c
    return Embeddings(E, p, v[:, 0] if m == 1 else v, cls, np.asarray(theta.empty, np.float64))
