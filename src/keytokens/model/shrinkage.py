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

from ..base.threads import over_spans
from .attention import Parameters
from .blocks import Float


def contributing_values(theta: Parameters, threads: int = 1) -> Float:
    """(m, V) b + c, and with more than two classes less the mean of the classes, which decides nothing."""
    values = np.empty_like(theta.B)

    def some(at: slice) -> None:
        part = theta.B[:, at] + theta.c[:, None]
        if len(part) > 1:
            part -= part.mean(axis=0)
        values[:, at] = part

    over_spans(some, len(theta.a), threads, len(values))
    return values


def kept_shares(a: Float, values: Float, df: Float, threshold: float, threads: int = 1) -> Float:
    """(V,) what is left of each token's contribution, from 0 to 1; the largest keeps at least half.

    >>> kept_shares(np.zeros(3), np.array([[4.0, -1.0, 1.0]]), np.ones(3), 0.75).tolist()
    [0.625, 0.0, 0.0]
    """
    if not len(a) or not df.any():
        return np.ones_like(a)
    top, kept = a.max(), np.empty_like(a)

    def sizes(at: slice) -> Float:
        """Those of some tokens, and what is needed of them: the sum by document frequency, and the largest."""
        size = np.exp(a[at] - top, out=kept[at])
        size *= np.maximum(values[:, at].max(axis=0), -values[:, at].min(axis=0))
        return np.array([np.dot(size, df[at]), size.max()], np.float64)

    totals, largest = np.transpose(over_spans(sizes, len(a), threads, len(values)))
    mean = float(totals.sum() / df.sum(dtype=np.float64))
    least = a.dtype.type(min(threshold * mean, float(largest.max()) / 2))

    def shrink(at: slice) -> None:
        size = kept[at]
        heard = size > least
        np.divide(least, size, out=size, where=heard)
        np.subtract(1, size, out=size)
        size[~heard] = 0

    over_spans(shrink, len(a), threads)
    return kept
