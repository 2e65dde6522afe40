"""What the counts say before any training: the log-count ratio as a prior for the values.

One gradient step on the embeddings moves the value of token s by (eta/2) alpha_s, alpha_s its average signed frequency:
the difference of its frequencies in the two classes. The log-count ratio r_s = log(share of s in the class) - log(share
in the others) is the scale-free form of the same count: where the two frequencies differ little, r_s is that difference
divided by the frequency. It centres the prior of the values (r) and sets its width (|r|).

    T = mean weight of a document        w0 = sink T        n_s = words in token s
    b_s = (T + w0) kappa (ratio / sqrt(T) m_s / <m> + g_s u_s / <u>),   kappa = spread / T^0.3,   g_s ~ N(0, 1)
    m_s = r_s / 2^(n_s - 1)        u_s = (|r_s| + FLOOR) 0.8^(n_s - 1)
    a_s ~ N(brevity q_s - const, 1 / attention_penalty),   q_s = max_k |r_sk| 0.8^(n_s - 1)

<x> is the root mean square weighted by document frequency. An n-gram repeats evidence that its words have given
already, so its share of the mean is halved with every further word, and its width falls. The powers of T let one set of
constants serve short and long texts: T independent parts add up like sqrt(T), common ones like T; and because long
texts are more decided than short ones, the prior size of f grows like T^0.2. With more than two classes a decision is a
difference of two scores, so each has half the variance, and q is divided by sqrt(2).

Attention that selects goes to the tokens that tell the classes apart, whichever they speak for: that is where gradient
flow leads, and what `brevity` begins with. Few tokens then outweigh the rest. It moves the evidence from the values to
the attention: with it, ratio is multiplied by 1 - brevity and attention_penalty by 1 - 2/3 brevity. The constant keeps
the mean weight of a token at 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .counts import Block, Float
from .losses import Labels

__all__ = ["Prior", "PriorOptions", "Statistics", "prior_of", "statistics"]

FLOOR = 0.1  # keeps some width where a token is equally frequent in all classes
_MEAN_DECAY, _WIDTH_DECAY = 0.5, 0.8  # for every word of a token after the first
_LENGTH_POWER = 0.3


@dataclass(frozen=True)
class PriorOptions:
    ratio: float = 1.5
    spread: float = 1.6
    sink: float = 0.3
    attention_penalty: float = 1.0
    brevity: float = 0.2


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
    return Statistics(presence, energy, mass, np.array([float(m.sum(dtype=np.float64)) for m in members]))


@dataclass(frozen=True, eq=False)
class Prior:
    """b = mean + width * g, g standard normal; a normal around `attention` with the given precision."""

    mean: Float  # (m, V)
    width: Float  # (m, V)
    attention: Float  # (V,)
    attention_penalty: float
    log_sink: float
    odds: Float  # (m,) log-odds (two classes) or logarithms of the class frequencies
    curvature_g: Float  # (m, V) a guess of the diagonal of the Hessian in g, a and c
    curvature_a: Float  # (V,)
    curvature_c: Float  # (m,)


def prior_of(s: Statistics, options: PriorOptions, sizes: NDArray[np.int32] | None = None) -> Prior:
    """The prior that these sums give; `sizes` are the words in each token (none given: all are single words)."""
    dtype = s.presence.dtype
    n = float(s.documents.sum())
    T = s.mass / n if s.mass > 0 else 1.0
    r = log_count_ratios(s.presence)
    more = 0 if sizes is None else sizes - 1
    mean = r * np.power(_MEAN_DECAY, more, dtype=dtype)
    u = (np.abs(r) + FLOOR) * np.power(_WIDTH_DECAY, more, dtype=dtype)
    df = s.presence.sum(axis=0)
    root = 1 if len(r) == 1 else np.sqrt(2)
    kappa = options.spread / T**_LENGTH_POWER / root
    unit = T * (1 + options.sink) * kappa
    ratio = options.ratio * (1 - options.brevity) / np.sqrt(T)
    penalty = options.attention_penalty * (1 - 2 / 3 * options.brevity)
    told = np.abs(r).max(axis=0) * np.power(_WIDTH_DECAY, more, dtype=dtype)
    direction, shape = mean / _size(mean, df), u / _size(u, df)
    frequencies = np.log(np.maximum(s.documents, 1e-12) / n)
    odds = frequencies[1:] - frequencies[0] if len(frequencies) == 2 else frequencies - frequencies.mean()
    k = kappa * shape
    return Prior(
        mean=direction * dtype.type(unit * ratio),
        width=shape * dtype.type(unit),
        attention=_of_mean_weight_one(told * dtype.type(options.brevity / root), df),
        attention_penalty=penalty,
        log_sink=float(np.log(options.sink * T)) if options.sink > 0 else -np.inf,
        odds=odds,
        # a document's loss bends by about 0.03 where it is mostly decided
        curvature_g=(1 + 0.03 * s.energy * k**2).astype(dtype),
        curvature_a=(
            penalty + 0.03 * s.energy * ((kappa * ratio * np.abs(direction) + k / 2) ** 2).mean(axis=0)
        ).astype(dtype),
        curvature_c=np.full(len(odds), max(0.03 * n, 1e-12), dtype),
    )


def log_count_ratios(presence: Float) -> Float:
    """r (m, V): class 1 against class 0, or each class against the rest.

    Every token is taken to have been seen in two more documents, shared among the classes as all tokens are: a token
    never seen has ratio 0, however rare its class.
    """
    total = presence.sum(axis=1, keepdims=True)
    share = np.clip(total / max(float(total.sum()), 1e-12), 1e-6, 1 - 1e-6)  # in single precision 1 - 1e-9 is 1
    inside, outside = presence + 2 * share, presence.sum(axis=0) - presence + 2 * (1 - share)
    r = np.log(inside / outside) - np.log(share / (1 - share))
    return r[1:] if len(r) == 2 else r


def _of_mean_weight_one(a: Float, df: Float) -> Float:
    """Logits moved so that exp(a) is 1 on average, weighted by document frequency."""
    if not len(a) or not df.any():
        return a
    top = float(a.max())
    mean = float(np.dot(np.exp(a - top, dtype=np.float64), df) / df.sum(dtype=np.float64))
    return a - a.dtype.type(top + np.log(mean))


def _size(x: Float, df: Float) -> float:
    """Root mean square over tokens, weighted by document frequency; 1 where there is nothing but rounding."""
    size = float(np.sqrt((x**2 @ df).mean() / max(float(df.sum()), 1e-12)))
    return size if size > 1e-6 else 1.0
