"""What the counts say before any training: the log-count ratio as a prior for the values.

One gradient step on the embeddings moves the value of token s by (eta/2) alpha_s, alpha_s its average signed frequency:
the difference of its frequencies in the two classes. The log-count ratio r_s = log(share of s in the class) - log(share
in the others) is the scale-free form of the same count: where the two frequencies differ little, r_s is that difference
divided by the frequency. It centres the prior of the values (r) and sets its width (|r|).

    T = mean weight of a document        w0 = sink T
    b_s = (T + w0) (spread / sqrt(T)) (ratio / sqrt(T) r_s / <r> + g_s u_s / <u>),  g_s ~ N(0, 1),  u_s = |r_s| + FLOOR
    a_s ~ N(0, 1 / attention_penalty)

<x> is the root mean square weighted by document frequency. The powers of T keep the prior size of f the same for short
and long texts, so one set of constants serves both: independent parts of T tokens add up like sqrt(T), common ones
like T.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .counts import Block, Float
from .losses import Labels

__all__ = ["Prior", "PriorOptions", "Statistics", "prior_of", "statistics"]

FLOOR = 0.03  # keeps some width where a token is equally frequent in all classes


@dataclass(frozen=True)
class PriorOptions:
    ratio: float = 1.5
    spread: float = 3.0
    sink: float = 0.5
    attention_penalty: float = 2.0


@dataclass(frozen=True, eq=False)
class Statistics:
    """Sums over the training documents; they add up over blocks."""

    presence: Float  # (K, V) weight of the documents of each class that hold the token
    energy: Float  # (V,) sum of squared counts
    mass: float  # sum of all counts
    documents: Float  # (K,) weight of the documents of each class

    def __add__(self, other: Statistics) -> Statistics:
        return Statistics(
            self.presence + other.presence,
            self.energy + other.energy,
            self.mass + other.mass,
            self.documents + other.documents,
        )


def statistics(block: Block, y: Labels, weight: Float, n_classes: int, threads: int) -> Statistics:
    members = [np.where(y == k, weight, 0).astype(block.rows.dtype) for k in range(n_classes)]
    presence = block.column_sums(np.ones_like, members, threads)
    (energy,) = block.column_sums(np.square, [weight.astype(block.rows.dtype)], threads)
    mass = float(np.dot(np.asarray(block.rows.sum(axis=1), np.float64).ravel(), weight))
    return Statistics(np.stack(presence), energy, mass, np.array([float(m.sum(dtype=np.float64)) for m in members]))


@dataclass(frozen=True, eq=False)
class Prior:
    """b = mean + width * g, g standard normal; a normal with the given precision."""

    mean: Float  # (m, V)
    width: Float  # (m, V)
    attention_penalty: float
    log_sink: float
    odds: Float  # (m,) log-odds (two classes) or logarithms of the class frequencies
    curvature_g: Float  # (m, V) a guess of the diagonal of the Hessian in g, a and c
    curvature_a: Float  # (V,)
    curvature_c: Float  # (m,)


def prior_of(s: Statistics, options: PriorOptions) -> Prior:
    dtype = s.presence.dtype
    n = float(s.documents.sum())
    T = s.mass / n if s.mass > 0 else 1.0
    r = log_count_ratios(s.presence)
    u = np.abs(r) + FLOOR
    df = s.presence.sum(axis=0)
    kappa = options.spread / np.sqrt(T)
    unit = T * (1 + options.sink) * kappa
    ratio = options.ratio / np.sqrt(T)
    direction, shape = r / _size(r, df), u / _size(u, df)
    frequencies = np.log(np.maximum(s.documents, 1e-12) / n)
    odds = frequencies[1:] - frequencies[0] if len(frequencies) == 2 else frequencies - frequencies.mean()
    k = kappa * shape
    return Prior(
        mean=(unit * ratio * direction).astype(dtype),
        width=(unit * shape).astype(dtype),
        attention_penalty=options.attention_penalty,
        log_sink=float(np.log(options.sink * T)) if options.sink > 0 else -np.inf,
        odds=odds,
        # a document's loss bends by about 0.03 where it is mostly decided
        curvature_g=(1 + 0.03 * s.energy * k**2).astype(dtype),
        curvature_a=(
            options.attention_penalty
            + 0.03 * s.energy * ((kappa * ratio * np.abs(direction) + k / 2) ** 2).mean(axis=0)
        ).astype(dtype),
        curvature_c=np.full(len(odds), max(0.03 * n, 1e-12), dtype),
    )


def log_count_ratios(presence: Float) -> Float:
    """r (m, V) with add-one smoothing: class 1 against class 0, or each class against the rest."""
    inside = presence + 1
    outside = presence.sum(axis=0) - presence + 1
    r = np.log(inside / inside.sum(axis=1, keepdims=True)) - np.log(outside / outside.sum(axis=1, keepdims=True))
    return r[1:] if len(r) == 2 else r


def _size(x: Float, df: Float) -> float:
    """Root mean square over tokens, weighted by document frequency; 1 where there is nothing to measure."""
    size = float(np.sqrt((x**2 @ df).mean() / max(float(df.sum()), 1e-12)))
    return size if size > 0 else 1.0
