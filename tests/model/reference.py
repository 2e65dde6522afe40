"""The model read out occurrence by occurrence, and random problems to compare on."""

import numpy as np
from scipy import sparse

from keytokens.model.attention import Parameters


def literal_scores(C: sparse.csr_matrix, theta: Parameters) -> np.ndarray:
    """softmax over the occurrences of each document (and the sink), in extended precision; (m, n)."""
    wide = np.longdouble
    columns = []
    for counts in np.asarray(C.todense()):
        tokens = np.repeat(np.arange(len(counts)), counts.astype(int))
        logits, values = theta.a[tokens].astype(wide), theta.B[:, tokens].astype(wide)
        if theta.has_sink:
            logits = np.append(logits, wide(theta.log_sink))
            values = np.append(values, np.zeros((len(values), 1), wide), axis=1)
        if not len(logits):
            columns.append(theta.empty.astype(wide))
            continue
        attention = np.exp(logits - logits.max())
        columns.append(values @ (attention / attention.sum()) + theta.c.astype(wide))
    return np.stack(columns, axis=1)


def random_counts(rng: np.random.Generator, n: int = 13, V: int = 7, density: float = 0.5) -> sparse.csr_matrix:
    """Whole counts; the third document is empty and the last token occurs nowhere."""
    counts = rng.integers(1, 5, (n, V)) * (rng.random((n, V)) < density)
    counts[0, 0] = 1
    counts[2], counts[:, -1] = 0, 0
    return sparse.csr_matrix(counts.astype(float))


def random_parameters(
    rng: np.random.Generator, m: int, V: int = 7, sink: bool = True, scale: float = 1.0
) -> Parameters:
    return Parameters(
        a=scale * rng.normal(size=V),
        B=2 * rng.normal(size=(m, V)),
        c=rng.normal(size=m),
        empty=rng.normal(size=m),
        log_sink=float(rng.normal()) if sink else -np.inf,
    )
