"""Small contributions shrunk to exactly 0, so that few tokens decide.

A label hangs on the sum of the contributions c_s e_s, e_s = w_s (b_s + c), of a text's tokens, and of the sink's, w0 c.
Some tokens fix it if their support beats all opposition, which is mostly a sum of many small contributions. Soft
thresholding takes those away and leaves most of a large one:

    e'_s = e_s kept_s,   kept_s = max(0, 1 - threshold <|e|> / |e_s|)

is the e' that minimises |e' - e|^2 / 2 + threshold <|e|> |e'|_1. <|e|> is the mean weighted by document frequency. With
more than two classes e_s has a number for each, measured from their mean; |e_s| is the largest of them in size, and all
are shrunk alike, so that a token falls silent against every rival at once.
"""

from __future__ import annotations

import numpy as np

from .attention import Parameters
from .blocks import Float


def contributing_values(theta: Parameters) -> Float:
    """(m, V) b + c, and with more than two classes less the mean of the classes, which decides nothing."""
    values = theta.B + theta.c[:, None]
    if len(values) > 1:
        values -= values.mean(axis=0)
    return values


def kept_shares(a: Float, values: Float, df: Float, threshold: float) -> Float:
    """(V,) what is left of each token's contribution, from 0 to 1; the largest keeps at least half.

    >>> kept_shares(np.zeros(3), np.array([[4.0, -1.0, 1.0]]), np.ones(3), 0.75).tolist()
    [0.625, 0.0, 0.0]
    """
    if not len(a) or not df.any():
        return np.ones_like(a)
    size = np.exp(a - a.max()) * np.maximum(values.max(axis=0), -values.min(axis=0))
    mean = float(np.dot(size, df)) / float(df.sum(dtype=np.float64))
    least = a.dtype.type(min(threshold * mean, float(size.max()) / 2))
    heard = size > least
    return np.where(heard, 1 - least / np.where(heard, size, 1), 0)
