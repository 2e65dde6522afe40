"""Attention with trained embeddings: f(X) = softmax(p'E_X)E_X v, one step on E, then the flow on p.

E (V, d) holds a row for each token, p is the query and v the head, which stays as it is; a document is known by its
counts c_s. With z = E p, gam = E v and Q_s in proportion to c_s exp(z_s) the score is f = sum_s Q_s gam_s, and
-dL/dE_s = (1/n) sum_i |loss'_i| y_i Q_s (v + (gam_s - f_i) p): every row of the step lies in the span of v and p.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from ..base.checks import array_of, check_number
from ..base.errors import refusal
from ..model.ragged import Bags, Index, Vector
from .descent.flow import Flow
from .descent.steps import Descent, Plain
from .descent.trajectory import Run
from .problems.logits import Vocabulary
from .problems.losses import Logistic, MarginLoss, Scaled
from .problems.problem import Problem, counts_of
from .problems.reading import Blocks, Reading
from .problems.scores import Fixed, Scores, labels_of


@dataclass(frozen=True, eq=False)
class Embedded(Vocabulary):
    """The map to logits of a trained E, whose block moves the scores too."""

    p: Vector
    v: Vector
    labels: Vector

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        return ((self.counts.shape[1], len(self.p)),)

    @property
    def span(self) -> Vector | None:
        return None

    def at(self, blocks: Blocks) -> Vector:
        return (blocks[-1] @ self.p)[self.counts.indices] + self._log_counts

    def descent(self, reading: Reading, blocks: Blocks) -> tuple[Scaled, ...]:
        tokens = len(blocks[-1])
        logits = reading.token_pulls(self.counts.indices, tokens)
        log_slope = reading.loss.log_abs_slope(reading.margins)
        top = float(log_slope.max())
        weights = reading.bags.spread(np.exp(log_slope - top) * self.labels / len(self.labels)) * reading.attention
        values = np.bincount(self.counts.indices, weights, tokens)
        by_logits = Scaled(np.outer(logits.array, self.p), logits.log_scale)
        return (Scaled(np.outer(values, self.v), top) + by_logits,)


@dataclass(frozen=True, eq=False)
class Values(Scores):
    """The rule for scores y_i (v'E_s + offset) of a trained E."""

    labels: Vector
    v: Vector
    tokens: Index  # of each stored count
    offset: float = 0.0

    def read(self, bags: Bags, logits: Vector, blocks: Blocks, loss: MarginLoss) -> Reading:
        values = (blocks[-1] @ self.v)[self.tokens] + self.offset
        return Reading(bags, logits, bags.spread(self.labels) * values, loss)

    def gap(self, reading: Reading) -> Scaled:
        return reading.mean_loss


def embedding_problem(
    owner: str, counts: Any, labels: Any, v: Any, p: Any, loss: MarginLoss, offset: float = 0.0
) -> Problem:
    """Train E, with p and v fixed."""
    given = counts_of(owner, counts)
    y, head = labels_of(owner, labels, given.shape[0]), array_of(owner, "v", v, (-1,))
    query = array_of(owner, "p", p, (len(head),))
    logits = Embedded(np.empty((given.shape[1], 0)), given, query, head, y)  # what is trained is no data
    return Problem(logits, Values(y, head, given.indices.astype(np.intp), offset), loss)


@dataclass(frozen=True, eq=False)
class TrainedEmbeddings:
    """What training has made of the embeddings and of p."""

    counts: sparse.csr_matrix
    labels: Vector
    E0: Vector
    E: Vector  # after the step
    p0: Vector
    v: Vector
    offset: float
    sink: bool
    flow: Run  # of p, with its record

    @property
    def p(self) -> Vector:
        return self.flow.p

    @cached_property
    def signed_frequency(self) -> Vector:
        """(V,) alpha_s = (1/n) sum_i y_i c_is / T_i: one step from p = 0 and E v = 0 adds eta alpha_s v / 2 to E_s."""
        shares = self.counts.multiply(1 / self.counts.sum(axis=1))
        return np.asarray(shares.T @ (self.labels / len(self.labels))).ravel()

    @property
    def alignment(self) -> Vector:
        """(V,) cos between the step of each embedding and v; nan for a token that has not moved."""
        moved = self.E - self.E0
        sizes = np.linalg.norm(moved, axis=1) * np.linalg.norm(self.v)
        return np.divide(moved @ self.v, sizes, out=np.full(len(sizes), np.nan), where=sizes > 0)

    @property
    def values(self) -> Vector:
        """(V,) E v."""
        return self.E @ self.v

    @property
    def logits(self) -> Vector:
        """(V,) E p."""
        return self.E @ self.p

    @property
    def selected(self) -> Index:
        """(n,) the token with most attention in each document."""
        return self.counts.indices[self.flow.end.reading.selected].astype(np.intp)

    def scores(self, counts: Any) -> Vector:
        """(n,) f of documents given as counts."""
        C = _with_sink(counts_of("TrainedEmbeddings.scores", counts, len(self.E) - self.sink), self.sink)
        weights = C.multiply(np.exp(self.logits - self.logits.max())[None, :]).tocsr()
        return np.asarray(weights @ self.values / weights.sum(axis=1).A1 + self.offset)


@dataclass(frozen=True)
class EmbeddingAttention:
    """The model as its paper trains it: E from N(0, I/d), one gradient step of size `eta` on E, the gradient flow on p.

    There is no prior, no sink and no intercept unless asked for: `sink` adds a token that every document holds once,
    `intercept` the log odds of the classes to every score. The flow goes on to |p| = `norm`. v has length 1.
    The flow takes its Jacobian by differences: seconds for a hundred tokens, minutes for thousands with d = 512.

    >>> counts = np.array([[1, 0, 2], [1, 0, 1], [0, 1, 2], [0, 1, 1]])  # token 0 occurs under +1 alone, 1 under -1
    >>> found = EmbeddingAttention(dim=64, eta=50.0).fit(counts, [1, 1, -1, -1])
    >>> found.selected.tolist(), np.sign(found.values[:2]).tolist(), found.flow.status.name
    ([0, 0, 1, 1], [1.0, -1.0], 'FAR_ENOUGH')
    """

    dim: int = 512
    eta: float = 100.0
    norm: float = 1e3
    sink: bool = False
    intercept: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        owner = "EmbeddingAttention"
        check_number(owner, "dim", self.dim, 1, whole=True)
        check_number(owner, "eta", self.eta, 0.0)
        check_number(owner, "norm", self.norm, 0.0, above=True)
        check_number(owner, "seed", self.seed, 0, whole=True)

    def fit(self, counts: Any, labels: Any, E: Any = None, p: Any = None, v: Any = None) -> TrainedEmbeddings:
        """Documents as counts (n, V), labels -1 or +1; E, p and v begin at random unless given."""
        owner, rng = "EmbeddingAttention.fit", np.random.default_rng(self.seed)
        C = _with_sink(counts_of(owner, counts), self.sink)
        y, V = labels_of(owner, labels, C.shape[0]), C.shape[1]
        drawn = rng.normal(size=(V + 2, self.dim)) / np.sqrt(self.dim)
        E0 = drawn[:V] if E is None else array_of(owner, "E", E, (V, self.dim))
        p0 = drawn[V] if p is None else array_of(owner, "p", p, (self.dim,))
        head = drawn[V + 1] / np.linalg.norm(drawn[V + 1]) if v is None else array_of(owner, "v", v, (self.dim,))
        if self.intercept and len(set(y)) == 1:
            raise refusal(owner, "labels", "hold both classes for an intercept", labels)
        offset = float(np.log((y > 0).sum() / (y < 0).sum())) if self.intercept else 0.0
        E1 = E0
        if self.eta:
            step = Descent(embedding_problem(owner, C, y, head, p0, Logistic(), offset), Plain(self.eta))
            E1 = Run.of(step, E0, 1).blocks[0]
        logits = Vocabulary(E1, C)
        scores = logits.bags.spread(y) * ((E1 @ head)[C.indices] + offset)
        flow = Run.of(Flow(Problem(logits, Fixed(scores)), self.norm), p0, 10_000, range(10_000))
        return TrainedEmbeddings(C, y, E0, E1, p0, head, offset, self.sink, flow)


def _with_sink(counts: sparse.csr_matrix, sink: bool) -> sparse.csr_matrix:
    one = sparse.csr_matrix(np.ones((counts.shape[0], 1)))
    return sparse.csr_matrix(sparse.hstack([counts, one])) if sink else counts
