"""What the counts say before any training: the log-count ratio as a prior for the values.

One gradient step on the embeddings moves the value of token s by (eta/2) alpha_s, alpha_s its average signed frequency:
the difference of its frequencies in the two classes. The log-count ratio r_s = log(share of s in the class) - log(share
in the others) is the scale-free form of the same count: where the two frequencies differ little, r_s is that difference
divided by the frequency. It centres the prior of the values (r) and sets its width (|r|).

    T = mean weight of a document        w0 = sink T        n_s = words in token s
    b_s = (T + w0) kappa (ratio / sqrt(T) m_s / <m> + g_s u_s / <u>),   kappa = spread / T^0.3,   g_s ~ N(0, 1)
    m_s = r_s / 2^(n_s - 1)        u_s = (|r_s| + FLOOR) 0.8^(n_s - 1)
    a_s ~ N(sharpness q_s - const, 1 / attention_penalty),   q_s = max_k |r_sk| 0.8^(n_s - 1)

<x> is the root mean square weighted by document frequency. An n-gram repeats evidence that its words have given
already, so its share of the mean is halved with every further word, and its width falls. The powers of T let one set of
constants serve short and long texts: T independent parts add up like sqrt(T), common ones like T; and because long
texts are more decided than short ones, the prior size of f grows like T^0.2. With more than two classes a decision is a
difference of two scores, so each has half the variance, and q is divided by sqrt(2).

Attention that selects goes to the tokens that tell the classes apart, whichever they speak for: that is where gradient
flow leads, and what `brevity` begins with. Few tokens then outweigh the rest. It moves the evidence from the values to
the attention: with sharpness = min(brevity, 0.2), ratio is multiplied by 1 - sharpness and attention_penalty by
1 - 2/3 sharpness. The constant keeps the mean weight of a token at 1. Still sharper attention costs accuracy; beyond
0.2 it is cheaper to silence small contributions after training (see `silence`), with

    threshold = 0.075 (brevity - 0.2) sqrt(T)

because T small independent contributions add up to an opposition like sqrt(T).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..base.threads import Pool
from .blocks import Block, Float
from .losses import Labels

BEND = 0.03  # by how much the loss of a document bends where it is mostly decided
FLOOR = 0.1  # keeps some width where a token is equally frequent in all classes
_MEAN_DECAY, _WIDTH_DECAY = 0.5, 0.8  # for every word of a token after the first
_LENGTH_POWER = 0.3
_SHARPEST = 0.2  # brevity up to here sharpens attention, from here on it silences small contributions
_SILENCE = 0.075


@dataclass(frozen=True)
class PriorOptions:
    ratio: float = 1.5
    spread: float = 1.6
    sink: float = 0.3
    attention_penalty: float = 1.0
    brevity: float = 0.3


@dataclass(frozen=True, eq=False)
class Statistics:
    """Sums over the training documents; they add up over blocks."""

    presence: Float  # (V, K) weight of the documents of each class that hold the token
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


@dataclass(frozen=True, eq=False)
class SoftCounts:
    """Sums over documents without labels, each shared among the classes by a teacher; they add up over blocks."""

    presence: Float  # (V, K) as in `Statistics`
    mass: float  # sum of all counts
    documents: Float  # (K,) of each class

    def __add__(self, other: SoftCounts) -> SoftCounts:
        return SoftCounts(self.presence + other.presence, self.mass + other.mass, self.documents + other.documents)


def soft_counts(block: Block, shares: Float, weight: float, threads: Pool) -> SoftCounts:
    """Those of one block: of each document the probabilities of the classes (n, K), and what one document counts."""
    dtype = block.tokens.dtype
    members = (shares * weight).astype(dtype)
    lengths = block.times(np.ones((block.tokens.shape[0], 1), dtype), threads)
    presence = block.transposed_times(members, threads, np.ones_like)
    return SoftCounts(presence, float(lengths.sum(dtype=np.float64)), shares.sum(axis=0, dtype=np.float64))


def statistics(block: Block, y: Labels, weight: Float, n_classes: int, threads: Pool) -> Statistics:
    """Those of one block."""
    n_tokens, dtype = block.tokens.shape[0], block.tokens.dtype
    weight = weight.astype(dtype, copy=False)
    members = np.zeros((len(y), n_classes), dtype)
    members[np.arange(len(y)), y] = weight
    presence = block.transposed_times(members, threads, np.ones_like)
    energy = block.transposed_times(weight[:, None], threads, np.square)[:, 0]
    lengths = block.times(np.ones((n_tokens, 1), dtype), threads)[:, 0]
    # not a dot product: its bits would depend on the threads of BLAS
    mass = float((lengths * weight.astype(np.float64)).sum())
    return Statistics(presence, energy, mass, np.bincount(y, weight, n_classes).astype(np.float64))


def log_count_ratios(presence: Float) -> Float:
    """r (V, m): class 1 against class 0, or each class against the rest.

    Every token is taken to have been seen in two more documents, shared among the classes as all tokens are: a token
    never seen has ratio 0, however rare its class.
    """
    total = presence.sum(axis=0, dtype=np.float64)
    share = np.clip(total / max(float(total.sum()), 1e-12), 1e-6, 1 - 1e-6)  # in single precision 1 - 1e-9 is 1
    share = share[-1 if len(share) == 2 else 0 :].astype(presence.dtype)
    here = presence[:, -len(share) :]
    rest = presence.sum(axis=1)[:, None] - here
    rest += 2 * (1 - share)
    ratio = np.divide(here + 2 * share, rest, out=rest)
    np.log(ratio, out=ratio)
    ratio -= np.log(share / (1 - share))
    return ratio


@dataclass(frozen=True, eq=False)
class Prior:
    """b = mean + width * g, g standard normal; a normal around `attention` with the given precision."""

    mean: Float  # (V, m)
    width: Float  # (V, m)
    attention: Float  # (V,)
    attention_penalty: float
    log_sink: float
    odds: Float  # (m,) log-odds (two classes) or logarithms of the class frequencies
    total: float  # T + w0
    threshold: float  # of contributions, in their mean size: smaller ones are silenced after training


def prior_of(
    s: Statistics,
    options: PriorOptions,
    sizes: NDArray[np.integer[Any]] | None = None,
    soft: SoftCounts | None = None,
) -> Prior:
    """The prior that these sums give; `sizes` are the words in each token (none given: all are single words).

    Documents without labels count for ratios and lengths; how frequent the classes are, labels alone say.
    """
    n = float(s.documents.sum())
    presence, mass, of = s.presence, s.mass, n
    if soft is not None:
        presence, mass, of = presence + soft.presence, mass + soft.mass, of + float(soft.documents.sum())
    T = mass / of if mass > 0 else 1.0
    sharpness = min(options.brevity, _SHARPEST)
    df = presence.sum(axis=1)
    if sizes is None:
        sizes = np.ones(len(df), np.uint8)
    further = np.arange(int(sizes.max(initial=1)) + 1) - 1.0  # words of a token after the first
    fainter, narrower = (np.power(decay, further).astype(df.dtype)[sizes] for decay in (_MEAN_DECAY, _WIDTH_DECAY))
    ratio = log_count_ratios(presence)
    width = np.abs(ratio)
    root = 1.0 if ratio.shape[1] == 1 else float(np.sqrt(2))
    attention = width.max(axis=1) * narrower * df.dtype.type(sharpness / root)
    # with a sharpness of 0.2 at most no exponential is large
    mean_weight = float(np.dot(np.exp(attention, dtype=np.float64), df)) / max(float(df.sum(dtype=np.float64)), 1e-12)
    attention -= df.dtype.type(np.log(mean_weight) if mean_weight > 0 else 0.0)
    width += df.dtype.type(FLOOR)
    width *= narrower[:, None]
    ratio *= fainter[:, None]
    unit = T * (1 + options.sink) * options.spread / T**_LENGTH_POWER / root
    width *= df.dtype.type(unit / _size(width, df))
    ratio *= df.dtype.type(unit * options.ratio * (1 - sharpness) / np.sqrt(T) / _size(ratio, df))
    frequencies = np.log(np.maximum(s.documents, 1e-12) / n)
    return Prior(
        mean=ratio,
        width=width,
        attention=attention,
        attention_penalty=options.attention_penalty * (1 - 2 / 3 * sharpness),
        log_sink=float(np.log(options.sink * T)) if options.sink > 0 else -np.inf,
        odds=frequencies[1:] - frequencies[0] if len(frequencies) == 2 else frequencies - frequencies.mean(),
        total=T * (1 + options.sink),
        threshold=_SILENCE * max(0.0, options.brevity - _SHARPEST) * float(np.sqrt(T)),
    )


class Curvature(NamedTuple):
    """A guess of the diagonal of the Hessian."""

    values: Float  # in g, (V, m)
    attention: Float  # in a, (V,)
    intercept: float  # in c


def curvature_of(prior: Prior, seen: Statistics) -> Curvature:
    """What the loss adds to the penalties, if every document bends it by the same little."""
    # the factor may be too small, or large, for the precision of the sums
    energy = (seen.energy * np.float64(BEND / prior.total**2)).astype(seen.energy.dtype)[:, None]
    values = np.square(prior.width)
    values *= energy
    values += 1
    moved = np.abs(prior.mean)
    moved += prior.width / 2
    attention = (np.square(moved, out=moved) * energy).mean(axis=1)
    attention += attention.dtype.type(prior.attention_penalty)
    return Curvature(values, attention, max(BEND * float(seen.documents.sum()), 1e-12))


def _size(x: Float, df: Float) -> float:
    """Root mean square over tokens, weighted by document frequency; 1 where there is nothing but rounding."""
    squares = np.dot(np.square(x).mean(axis=1, dtype=np.float64), df)
    size = np.sqrt(squares / max(float(df.sum()), 1e-12))
    return float(size) if size > 1e-6 else 1.0
