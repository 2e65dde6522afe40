"""What is proved of one prediction, against the truth by enumeration: two scalars, contributions, formal sets."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ...model.attention import Parameters, evaluate, scores
from ...model.blocks import Block
from ...model.embeddings import embed
from ...model.losses import Logistic
from ...model.weighting import weighting
from ...proof.phrase import Phrase
from ...proof.ranges import drop
from ...proof.tokens import flip, sufficient
from ...proof.votes import Votes
from ...proof.words import flip_words
from ..problems.embeddings import pull_back
from .claim import Counter, Hypothesis, claim, claims
from .instances import EPS, complex_slopes, literal_loss, literal_scores, rounding, worst

Array = NDArray[Any]
HERE = "keytokens"


# --- two scalars -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Embedded:
    """Sequences of tokens with labels, and a model with embeddings; perhaps `cls` attends to itself: a sink."""

    sequences: Array  # (n, T) tokens
    y: Array  # (n,) 0 or 1
    E: Array
    p: Array
    v: Array
    cls: Array | None
    normalised: bool = False  # each embedding is divided by its length first

    @property
    def counts(self) -> sparse.csr_matrix:
        n, T = self.sequences.shape
        rows = np.repeat(np.arange(n), T)
        shape = (n, len(self.E))
        return sparse.csr_matrix((np.ones(n * T), (rows, self.sequences.ravel())), shape=shape)

    @property
    def theta(self) -> Parameters:
        a, b = self.E @ self.p, (self.E @ self.v)[None]
        if self.cls is None:
            return Parameters(a, b, np.zeros(1), np.zeros(1))
        c = np.array([self.cls @ self.v])
        return Parameters(a, b - c, c, np.zeros(1), float(self.cls @ self.p))

    @property
    def spelt(self) -> Embedded:
        """The same with `cls` as one more token, the last of each sequence."""
        if self.cls is None:
            return self
        sequences = np.column_stack([self.sequences, np.full(len(self.y), len(self.E))])
        return replace(self, sequences=sequences, E=np.vstack([self.E, self.cls]), cls=None)

    def logits(self, E: Array, p: Array, v: Array) -> Array:
        """f position by position, without a sink."""
        rows = E / np.sqrt((E * E).sum(axis=1))[:, None] if self.normalised else E
        return literal_scores(self.sequences, rows, p, v)

    def slope(self, k: int, direction: Array) -> float:
        """The derivative of the loss along a direction of E, p or v."""

        def loss(step: Array) -> Any:
            where = [self.E, self.p, self.v]
            where[k] = where[k] + step * direction
            return literal_loss(np.where(self.y == 1, 1.0, -1.0) * self.logits(*where)).sum()

        return float(complex_slopes(loss, np.zeros(())))


def _embedded(rng: np.random.Generator) -> Embedded:
    """Every third one has a token of a very low logit, so that one shift for all documents would underflow."""
    n, T, V, d = rng.integers(2, 8), rng.integers(1, 9), rng.integers(2, 12), rng.integers(2, 6)
    sequences, y = rng.integers(0, V, (n, T)), rng.integers(0, 2, n)
    E, p, v = rng.normal(size=(V, d)), rng.normal(size=d), rng.normal(size=d)
    if rng.random() < 1 / 3:
        E[0] -= 700 * p / (p @ p)
        sequences[0] = 0
    return Embedded(sequences, y, E, p, v, rng.normal(size=d) if rng.random() < 0.5 else None)


def _off(found: Any, truth: Any) -> float:
    return float(np.max(np.abs(found - truth)))


# --- one document ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Page:
    """One document with small whole numbers, so that ties are frequent and sums are exact. Usually one head."""

    weights: Array  # (H, T) how much each head weighs each token
    values: Array  # (T, K) class scores, the intercept in them
    sink: int  # weight of the sink, 0 for none
    intercepts: Array  # (K,)
    held: Array  # some of the tokens, one at least

    @property
    def tokens(self) -> int:
        return len(self.values)

    @cached_property
    def kept(self) -> Array:
        """(2^T, T) every sub-document, nothing kept first, everything last."""
        return (np.arange(2**self.tokens)[:, None] >> np.arange(self.tokens)) & 1

    def means(self, kept: Array) -> Array:
        """(m, K) class scores of sub-documents that are not empty: the mean over the heads of their weighted means."""
        return np.mean([votes / total[:, None] for votes, total in self._sums(kept)], axis=0)

    def _sums(self, kept: Array) -> list[tuple[Array, Array]]:
        rows = [(kept @ (w[:, None] * self.values), kept @ w) for w in self.weights]
        return [(votes + self.sink * self.intercepts, total + self.sink) for votes, total in rows]

    @cached_property
    def labels(self) -> Array:
        """(2^T,) class of each sub-document; -1 for one without a token or a sink. One head compares whole numbers."""
        empty = self.kept.sum(axis=1) + self.sink == 0
        kept = np.where(empty[:, None], 1, self.kept)
        return np.where(empty, -1, np.argmax(self.means(kept) if len(self.weights) > 1 else self._sums(kept)[0][0], 1))

    @property
    def label(self) -> int:
        return int(self.labels[-1])

    @property
    def votes(self) -> Votes:
        """The votes. Several heads have none; the mean of their contributions is what one would take for them."""
        shares = self.weights / (self.weights.sum(axis=1, keepdims=True) + self.sink)
        weight = self.weights[0] if len(self.weights) == 1 else shares.mean(axis=0)
        sink = math.log(self.sink) if self.sink else -math.inf
        return Votes.of(np.log(weight), self.values, self.label, sink, self.intercepts)

    def keeps_label(self, held: Array) -> bool:
        """Whether every sub-document that holds these tokens has the label (or none at all)."""
        inside = (self.kept[:, held] == 1).all(axis=1)
        return bool(np.isin(self.labels[inside], [self.label, -1]).all())

    @cached_property
    def fewest_kept(self) -> int:
        least = 0 if self.sink else 1
        sizes = self.kept.sum(axis=1)
        return min(
            int(size)
            for held, size in zip(self.kept, sizes, strict=True)
            if size >= least and self.keeps_label(np.flatnonzero(held))
        )

    @cached_property
    def fewest_deleted(self) -> int | None:
        changed = ~np.isin(self.labels, [self.label, -1])
        sizes = self.tokens - self.kept.sum(axis=1)
        return int(sizes[changed].min()) if changed.any() else None


def _page(rng: np.random.Generator, heads: int = 1) -> Page:
    tokens = int(rng.integers(1, 8))
    values, intercepts, sink = _votes(rng, tokens)
    held = rng.permutation(tokens)[: int(rng.integers(1, tokens + 1))]
    return Page(rng.integers(1, 5, (heads, tokens)), values, sink, intercepts, held)


def _votes(rng: np.random.Generator, tokens: int) -> tuple[Array, Array, int]:
    """Class scores of tokens, intercepts in them, the intercepts, and the weight of the sink; 2 to 4 classes."""
    classes = int(rng.integers(2, 5))
    values, intercepts = rng.integers(-3, 4, (tokens, classes)), rng.integers(-1, 2, classes)
    if classes == 2:
        values[:, 0], intercepts[0] = 0, 0
    return values + intercepts, intercepts, int(rng.integers(0, 2) * rng.integers(1, 4))


def _failing(id: str, draw: Callable[[np.random.Generator], Any]) -> Any:
    """An instance on which the conclusion of a claim fails, found by looking for one: seed 0, 1, ..."""
    drawn = (draw(np.random.default_rng(seed)) for seed in range(20_000))
    return next(one for one in drawn if claims([id])[0].breaks(one, by=1.0))


def _two_heads(id: str) -> Page:
    """A document with two heads where votes mislead."""
    return _failing(id, lambda rng: _page(rng, heads=2))


# --- words -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Line:
    """A short text: words, the known n-grams on them, and what one occurrence of each weighs and says."""

    length: int
    ngrams: Array  # (O, 3) first word, number of words, token
    weight: Array  # (T,) of one occurrence
    values: Array  # (T, K)
    counts: str
    sink: int
    intercepts: Array

    def label(self, kept: Array) -> int:
        """Class with only these words left unmasked; -1 where no n-gram and no sink is left."""
        left = np.zeros(len(self.weight), int)
        for first, size, token in self.ngrams:
            left[token] += kept[first : first + size].all()
        W = self.weight * weighting(self.counts)(left)
        if not left.any() and not self.sink:
            return -1
        votes = W @ self.values + self.sink * self.intercepts
        return int(np.argmax(np.round(votes, 9)))

    @cached_property
    def fewest_masked(self) -> int | None:
        whole = self.label(np.ones(self.length, bool))
        masks = (np.arange(1, 2**self.length)[:, None] >> np.arange(self.length)) & 1
        sizes = [int(mask.sum()) for mask in masks if self.label(mask == 0) not in (whole, -1)]
        return min(sizes, default=None)

    @property
    def sentence(self) -> Phrase:
        first, size, token = self.ngrams.T.astype(np.intp)
        W = self.weight * weighting(self.counts)(np.bincount(token, minlength=len(self.weight)))
        sink = math.log(self.sink) if self.sink else -math.inf
        votes = Votes.of(np.log(W), self.values, self.label(np.ones(self.length, bool)), sink, self.intercepts)
        return Phrase(self.length, first, size, token, votes, self.counts)


def _line(rng: np.random.Generator, counts: str = "raw") -> Line:
    """Up to nine words of three kinds; every word is known, and two of three longer n-grams."""
    length, n = int(rng.integers(1, 10)), int(rng.integers(1, 4))
    words = rng.integers(0, 3, length).tolist()
    known: dict[tuple[int, ...], int] = {}
    rows = []
    for size in range(1, min(n, length) + 1):
        for first in range(length - size + 1):
            gram = tuple(words[first : first + size])
            if size == 1 or (sum(gram) + first) % 3:
                rows.append((first, size, known.setdefault(gram, len(known))))
    values, intercepts, sink = _votes(rng, len(known))
    return Line(length, np.array(rows), rng.integers(1, 4, len(known)), values, counts, sink, intercepts)


def _binary_line() -> Line:
    """A text with binary counts where the search for the fewest words ends between bounds."""
    return _failing("kt.flip-words", lambda rng: _line(rng, "binary"))


_ONE_HEAD = Hypothesis[Page]("one attention head for all classes", lambda page: len(page.weights) == 1)
_RAW = Hypothesis[Line]("raw counts: every occurrence counts for itself", lambda line: line.counts == "raw")
_AS_THEY_ARE = Hypothesis[Embedded]("embeddings enter as they are, not normalised", lambda one: not one.normalised)


@claim(
    "kt.two-scalars",
    says="softmax(p'E_X')E_X v, its gradient included, depends on the embeddings only through a = E p and b = E v; "
    "and every pair (a, b) comes from some embeddings.",
    source=HERE,
    hypotheses=(_AS_THEY_ARE,),
    tolerance=1.0,  # in units of what rounding may do
    constant="f, and its slopes",
    draw=_embedded,
    seeds=60,
    counters=(
        Counter(
            "a layer that divides each embedding by its length",
            _AS_THEY_ARE.says,
            lambda: replace(_embedded(np.random.default_rng(0)), normalised=True),
        ),
    ),
)
def _two_scalars(one: Embedded, by: float = 1.0) -> float:
    """Differences of f (also after `embed`), of the loss, and of its slopes, which complex steps give exactly."""
    spelt, n = one.spelt, len(one.y)
    where = [spelt.E, spelt.p, spelt.v]
    truth, (E, p, v) = by * spelt.logits(*where), map(np.abs, where)
    unit, B = rounding(E, p, v, spelt.sequences.shape[1] + n), float((E @ v).max())
    off = [_off(scores(one.counts, one.theta)[0], truth), _off(embed(one.theta, 4).scores(one.counts), truth)]
    found = evaluate(Block.of(spelt.counts), one.y, np.ones(n), Logistic(), spelt.theta)
    for k, gradient in enumerate(pull_back(found, spelt.E, spelt.p, spelt.v[None])):
        direction = np.cos(np.arange(where[k].size)).reshape(where[k].shape)
        along, d = np.sum(gradient.reshape(direction.shape) * direction), np.abs(direction)
        turns, lifts = d @ p if k == 0 else E @ d * (k == 1), d @ v if k == 0 else E @ d * (k == 2)  # of a and of b
        off.append(_off(along, by * spelt.slope(k, direction)) * B / (n * np.max(2 * B * turns + lifts)))
    return worst(*off) / (unit * B)


@claim(
    "kt.sufficient",
    says="The sufficient set fixes the label against every deletion; for two classes no smaller set does, for more "
    "classes none of its tokens can go and no set below the stated bound does.",
    source=HERE,
    hypotheses=(_ONE_HEAD,),
    tolerance=0.0,
    draw=_page,
    seeds=60,
    constant="the size of the set",
    counters=(Counter("two heads", _ONE_HEAD.says, lambda: _two_heads("kt.sufficient")),),
)
def _sufficient(page: Page, by: float = 1.0) -> float:
    """By how much the size is off, and 1 for a set that does not do what it says."""
    found = sufficient(page.votes)
    held = np.array(found.indices, int)
    wrong = [not page.keeps_label(held), len(held) != found.size]
    if found.status == "subset-minimal":
        least = 0 if page.sink else 1
        wrong += [page.keeps_label(np.delete(held, i)) for i in range(len(held)) if len(held) > least]
    between = max(found.lower - page.fewest_kept, page.fewest_kept - found.size)
    return worst(between, by * found.size - page.fewest_kept if found.status == "minimum" else 0, *wrong)


@claim(
    "kt.flip",
    says="Deleting the flip set changes the label to the one that is stated, and no smaller deletion that leaves a "
    "token changes it, for any number of classes.",
    source=HERE,
    hypotheses=(_ONE_HEAD,),
    tolerance=0.0,
    draw=_page,
    seeds=60,
    constant="the size of the set",
    counters=(Counter("two heads", _ONE_HEAD.says, lambda: _two_heads("kt.flip")),),
)
def _flip(page: Page, by: float = 1.0) -> float:
    found = flip(page.votes)
    if found.status == "none" or page.fewest_deleted is None:
        return float((found.status == "none") != (page.fewest_deleted is None))
    rest = np.ones(page.tokens, int)
    rest[list(found.indices)] = 0
    after = int(page.labels[int(rest @ (1 << np.arange(page.tokens)))])
    return worst(abs(by * found.size - page.fewest_deleted), after in (page.label, -1), after != found.label_after)


@claim(
    "kt.flip-words",
    says="With raw counts the fewest words whose masking changes the label are found exactly, n-grams and several "
    "classes included.",
    source=HERE,
    hypotheses=(_RAW,),
    tolerance=0.0,
    draw=_line,
    seeds=40,
    constant="the number of words",
    counters=(Counter("binary counts", _RAW.says, _binary_line),),
)
def _flip_words(line: Line, by: float = 1.0) -> float:
    found = flip_words(line.sentence)
    if found.status == "none" or line.fewest_masked is None:
        return float((found.status == "none") != (line.fewest_masked is None))
    kept = np.ones(line.length, bool)
    kept[list(found.indices)] = False
    changed = line.label(kept) == found.label_after != line.label(np.ones(line.length, bool))
    return worst(abs(by * found.size - line.fewest_masked), not changed, found.status != "minimum")


@claim(
    "kt.drop-bound",
    says="f is the sum of the contributions, attention times value. With attention delta outside a set K, f - f_K = "
    "delta (f_rest - f_K); so no sub-document that holds K is further from f_K than delta times the spread of values.",
    source=HERE,
    hypotheses=(_ONE_HEAD,),
    tolerance=1.0,  # in units of what rounding may do
    constant="the bound",
    draw=_page,
    seeds=60,
    counters=(Counter("two heads", _ONE_HEAD.says, lambda: _two_heads("kt.drop-bound")),),
)
def _drop_bound(page: Page, by: float = 1.0) -> float:
    """f - f_K = delta (f_rest - f_K), and no sub-document that holds K is further from f_K than the bound."""
    held = page.held
    found = drop(page.votes, held)

    def leads(scores: Array) -> Array:
        return scores[:, [page.label]] - np.delete(scores, page.label, axis=1)

    inside = page.kept[(page.kept[:, held] == 1).all(axis=1)]
    alone = np.isin(np.arange(page.tokens), held)[None].astype(int)
    f, f_K = leads(page.means(page.kept[-1:]))[0], leads(page.means(alone))[0]
    delta = float(((page.weights @ (1 - alone[0])) / (page.weights.sum(axis=1) + page.sink)).mean())
    f_rest = f_K if alone.all() else leads(replace(page, sink=0).means(1 - alone))[0]
    spread = np.ptp(leads(np.vstack([page.values, page.intercepts] if page.sink else [page.values])), axis=0)
    off = (
        np.abs(f - f_K - delta * (f_rest - f_K)).max(),
        abs(found.delta - delta),
        np.abs(found.whole - f).max(),
        np.abs(found.kept - f_K).max(),
        (np.abs(leads(page.means(inside)) - f_K).max(axis=0) - found.bound / by).max(),
        (found.bound - delta * spread).max(),
    )
    return worst(*off) / (EPS * (4 * page.tokens + 20) * 2 * np.abs(page.values).max(initial=1.0))
