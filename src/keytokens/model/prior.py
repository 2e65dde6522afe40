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

import functools
import operator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base.threads import over_spans
from .blocks import Block, Float, squares
from .losses import Labels

BEND = 0.03  # by how much the loss of a document bends where it is mostly decided
FLOOR = 0.1  # keeps some width where a token is equally frequent in all classes
_MEAN_DECAY, _WIDTH_DECAY = 0.5, 0.8  # for every word of a token after the first
_LENGTH_POWER = 0.3
_SHARPEST = 0.2  # brevity up to here sharpens attention, from here on it silences small contributions
_SILENCE = 0.075
_ALL = slice(None)


@dataclass(frozen=True)
class PriorOptions:
    ratio: float = 1.5
    spread: float = 1.6
    sink: float = 0.3
    attention_penalty: float = 1.0
    brevity: float = 0.3

    @property
    def sharpness(self) -> float:
        return min(self.brevity, _SHARPEST)


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
    weight = weight.astype(block.dtype, copy=False)
    presence = block.presence(y, weight, n_classes, threads)
    (energy,) = block.column_sums(squares, [weight], threads)
    (lengths,) = block.times(np.ones((1, block.n_tokens), block.dtype), threads)
    # not a dot product: its bits would depend on the threads of BLAS
    mass = float((lengths * weight.astype(np.float64)).sum())
    documents: Float = np.bincount(y, weight, n_classes).astype(np.float64)
    return Statistics(presence, energy, mass, documents)


@dataclass(frozen=True, eq=False)
class Ratios:
    """r (m, V): class 1 against class 0, or each class against the rest.

    Every token is taken to have been seen in two more documents, shared among the classes as all tokens are: a token
    never seen has ratio 0, however rare its class. They are made when they are asked for: a fit takes no longer
    for it, and they would be as large as the parameters.
    """

    presence: Float  # (K, V)
    share: Float  # (m, 1) of all tokens that the class has

    @classmethod
    def of(cls, presence: Float) -> Ratios:
        total = presence.sum(axis=1)
        share = np.clip(total / max(float(total.sum()), 1e-12), 1e-6, 1 - 1e-6)  # in single precision 1 - 1e-9 is 1
        return cls(presence, share[-1 if len(presence) == 2 else 0 :, None])

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.share), self.presence.shape[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.presence.dtype

    def __getitem__(self, at: slice) -> Float:
        """(m, some tokens)"""
        presence, share = self.presence[:, at], self.share
        here = presence[-len(share) :]
        rest = presence.sum(axis=0) - here
        rest += 2 * (1 - share)
        ratio = np.divide(here + 2 * share, rest, out=rest)
        np.log(ratio, out=ratio)
        ratio -= np.log(share / (1 - share))
        return ratio


@dataclass(frozen=True, eq=False)
class BySize:
    """A number for each token that its words alone decide: a table instead of a vector."""

    table: Float  # by number of words
    sizes: NDArray[np.integer[Any]]  # (V,) words in each token
    in_order: bool  # whether these never fall

    @classmethod
    def powers(cls, factor: float, base: float, sizes: NDArray[np.integer[Any]], dtype: np.dtype[Any]) -> BySize:
        """factor base^(n - 1)"""
        table = factor * np.power(base, np.arange(int(sizes.max(initial=1)) + 1) - 1.0)
        return cls(table.astype(dtype), sizes, bool((sizes[1:] >= sizes[:-1]).all()))

    def __getitem__(self, at: slice) -> Float:
        """Of some tokens; one number for all of them where that is enough."""
        some = self.sizes[at]
        alike = self.in_order and len(some) and some[0] == some[-1]
        return self.table[some[:1]] if alike else self.table.take(some)


@dataclass(frozen=True, eq=False)
class Prior:
    """b = mean + width * g, g standard normal; a normal around `attention` with the given precision.

    These are made of the ratios when they are needed: they would take as much memory as the model each.
    """

    ratios: Ratios
    per_ratio: tuple[BySize, BySize]  # mean / r, and width / (|r| + FLOOR)
    told: Float | None  # (V,) the largest |r| of each token; None for one row of them
    per_told: BySize  # of the attention
    shift: float  # of the attention
    attention_penalty: float
    log_sink: float
    odds: Float  # (m,) log-odds (two classes) or logarithms of the class frequencies
    total: float  # T + w0
    threshold: float  # of contributions, in their mean size: smaller ones are silenced after training

    def mean(self, at: slice = _ALL, r: Float | None = None) -> Float:
        """(m, some tokens); `r` are their ratios, where they are at hand."""
        return np.multiply(self.ratios[at] if r is None else r, self.per_ratio[0][at])

    def width(self, at: slice = _ALL, r: Float | None = None) -> Float:
        """(m, some tokens)"""
        width = np.abs(self.ratios[at] if r is None else r)
        width += width.dtype.type(FLOOR)
        width *= self.per_ratio[1][at]
        return width

    def attention(self, at: slice = _ALL, r: Float | None = None) -> Float:
        """(some tokens,)"""
        told = np.abs((self.ratios[at] if r is None else r)[0]) if self.told is None else self.told[at]
        logits: Float = self.per_told[at] * told
        logits -= logits.dtype.type(self.shift)
        return logits


@dataclass(frozen=True, eq=False)
class Curvature:
    """A guess of the diagonal of the Hessian."""

    prior: Prior
    energy: Float  # (V,) BEND times the sum of squared counts, in T + w0
    documents: float  # weight of all of them

    @classmethod
    def of(cls, prior: Prior, seen: Statistics) -> Curvature:
        return cls(prior, _scaled(seen.energy, BEND / prior.total**2), float(seen.documents.sum()))

    def values(self, at: slice = _ALL) -> Float:
        """In g, (m, some tokens)."""
        bend = np.square(self.prior.width(at))
        bend *= self.energy[at]
        bend += 1
        return bend

    def attention(self, at: slice = _ALL) -> Float:
        """In a, (some tokens,)."""
        moved = np.abs(self.prior.mean(at))
        moved += self.prior.width(at) / 2
        total = np.square(moved, out=moved).sum(axis=0)
        total *= self.energy[at] / len(moved)
        total += total.dtype.type(self.prior.attention_penalty)
        return np.asarray(total)

    @property
    def intercept(self) -> float:
        """In c."""
        return max(BEND * self.documents, 1e-12)


def prior_of(
    s: Statistics, options: PriorOptions, sizes: NDArray[np.integer[Any]] | None = None, threads: int = 1
) -> Prior:
    """The prior that these sums give; `sizes` are the words in each token (none given: all are single words)."""
    dtype = s.presence.dtype
    n = float(s.documents.sum())
    T = s.mass / n if s.mass > 0 else 1.0
    df = s.presence.sum(axis=0)
    if sizes is None:
        sizes = np.ones(len(df), np.uint8)
    narrower, fainter = (BySize.powers(1.0, decay, sizes, dtype) for decay in (_WIDTH_DECAY, _MEAN_DECAY))
    ratios = Ratios.of(s.presence)
    m = ratios.shape[0]
    told = None if m == 1 else np.empty_like(df)

    def sums(at: slice) -> Float:
        """Of the squares of m and of u, by document frequency."""
        size = np.abs(ratios[at])
        if told is not None:
            told[at] = size.max(axis=0)
        means = np.square(size * fainter[at])
        size += dtype.type(FLOOR)
        size *= narrower[at]
        return np.array([np.sum(x @ df[at], dtype=np.float64) for x in (means, np.square(size, out=size))])

    root = 1 if m == 1 else np.sqrt(2)
    unit = T * (1 + options.sink) * options.spread / T**_LENGTH_POWER / root
    penalty = options.attention_penalty * (1 - 2 / 3 * options.sharpness)
    size_mean, size_width = _sizes(over_spans(sums, len(df), threads, m), m, df)
    per_mean = unit * options.ratio * (1 - options.sharpness) / np.sqrt(T) / size_mean
    of_mean = BySize.powers(per_mean, _MEAN_DECAY, sizes, dtype)
    of_width = BySize.powers(unit / size_width, _WIDTH_DECAY, sizes, dtype)
    frequencies = np.log(np.maximum(s.documents, 1e-12) / n)
    odds = frequencies[1:] - frequencies[0] if len(frequencies) == 2 else frequencies - frequencies.mean()
    prior = Prior(
        ratios=ratios,
        per_ratio=(of_mean, of_width),
        told=told,
        per_told=BySize.powers(options.sharpness / root, _WIDTH_DECAY, sizes, dtype),
        shift=0.0,
        attention_penalty=penalty,
        log_sink=float(np.log(options.sink * T)) if options.sink > 0 else -np.inf,
        odds=odds,
        total=T * (1 + options.sink),
        threshold=_SILENCE * max(0.0, options.brevity - _SHARPEST) * float(np.sqrt(T)),
    )

    def weights(at: slice) -> Float:
        """Of the tokens, by document frequency: with a sharpness of 0.2 at most no exponential is large."""
        return np.array([np.dot(np.exp(prior.attention(at), dtype=np.float64), df[at]), df[at].sum(dtype=np.float64)])

    total, documents = functools.reduce(operator.add, over_spans(weights, len(df), threads))
    return replace(prior, shift=float(np.log(total / documents)) if documents > 0 else 0.0)


def _scaled(x: Float, factor: float) -> Float:
    """x times a factor that may be too small, or large, for the precision of x."""
    return np.multiply(x, np.float64(factor), out=np.empty_like(x), dtype=np.float64, casting="same_kind")


def _sizes(sums: list[Float], rows: int, df: Float) -> list[float]:
    """Root mean squares over tokens, weighted by document frequency; 1 where there is nothing but rounding."""
    total = functools.reduce(operator.add, sums)
    sizes = np.sqrt(total / rows / max(float(df.sum()), 1e-12))
    return [float(size) if size > 1e-6 else 1.0 for size in sizes]
