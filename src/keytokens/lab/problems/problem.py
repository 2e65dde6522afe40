"""One problem: L = (1/n) sum_i loss(f_i), a map to logits, a rule for scores and a loss.

Tokens in any form that `Bags.of` reads, numbers of tokens in any that `Bags.per_token` reads; the loss is logistic
unless given. What is trained stands in a tuple of blocks, those of the scores before those of the attention.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from ...base.checks import array_of, check_number, floats
from ...base.errors import refusal
from ...model.ragged import Bags, Vector
from .heads import Head
from .logits import Cross, Factors, Keys, Logits, Vocabulary, queries_of
from .losses import Logistic, MarginLoss, Scaled, check_loss
from .reading import Blocks, Reading
from .scores import Fixed, Scores, Trained, Under, labels_of, read_scores
from .sets import Sets

_LOGISTIC = Logistic()


@dataclass(frozen=True, eq=False)
class Problem:
    """Data and loss, and which parameters are trained.

    >>> problem = Problem.of([[[1.0, 0.0], [0.0, 0.0]]], [[1.0, 0.0]])
    >>> p = (np.array([5000.0, 0.0]),)
    >>> (down,) = problem.descent(problem.read(p), p)
    >>> down.unit.tolist(), round(down.log)  # exp(-5000) is no number, its direction is one
    ([1.0, 0.0], -5001)
    """

    logits: Logits
    rule: Scores
    loss: MarginLoss = _LOGISTIC

    def __getattr__(self, name: str) -> Any:
        """What the logits or the rule hold, where only some do: values, queries, labels, head, sets, ..."""
        for part in () if name.startswith("_") else (self.rule, self.logits):
            if hasattr(part, name):
                return getattr(part, name)
        raise AttributeError(f"this problem has no {name!r}")

    @property
    def keys(self) -> Bags:
        """What the parameter of the attention, as one long vector, is multiplied with."""
        return self.logits.keys

    @cached_property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Of the trained blocks."""
        return (*self.rule.shapes, *self.logits.shapes)

    @property
    def span(self) -> Vector | None:
        """Orthonormal rows whose span holds every gradient of a single block; None for no smaller space."""
        return None if self.rule.shapes else self.logits.span

    def read(self, blocks: Blocks) -> Reading:
        return self.rule.read(self.logits.bags, self.logits.at(blocks), blocks, self.loss)

    def descent(self, reading: Reading, blocks: Blocks) -> tuple[Scaled, ...]:
        """Minus the gradient, block by block; `blocks` are those that were read."""
        return (*self.rule.descent(reading), *self.logits.descent(reading, blocks))

    def parameter(self, blocks: Blocks) -> Vector:
        """p or W; K Q' where the factors are trained."""
        return self.logits.matrix(blocks) if isinstance(self.logits, Factors) else blocks[-1]

    def gap(self, reading: Reading) -> Scaled:
        """L - L*, L* the infimum over all attentions (and over v where v is trained and the data can be fitted)."""
        return self.rule.gap(reading)

    # Constructors

    @classmethod
    def of(cls, keys: Any, scores: Any, loss: MarginLoss = _LOGISTIC) -> Problem:
        """Train p, with keys and scores fixed: L(p) = (1/n) sum_i loss(gamma_i'softmax(K_i p))."""
        bags = Bags.of(keys, "Problem.of")
        rule = Fixed(read_scores("Problem.of", scores, bags))
        return cls(Keys(bags), rule, check_loss("Problem.of", loss))

    @classmethod
    def joint(cls, labels: Any, values: Any, keys: Any, loss: MarginLoss = _LOGISTIC) -> Problem:
        """Train the head v and p together: gamma_it = Y_i v'x_it moves with v."""
        bags = Bags.of(values, "Problem.joint", "values")
        keyed = _keys_of("Problem.joint", keys, bags)
        rule = Trained(labels_of("Problem.joint", labels, len(bags)), bags)
        return cls(Keys(keyed), rule, check_loss("Problem.joint", loss))

    @classmethod
    def with_sets(
        cls,
        labels: Any,
        values: Any,
        head: Head,
        keys: Any = None,
        sets: Sequence[Iterable[int]] | None = None,
        loss: MarginLoss | None = None,
    ) -> Problem:
        """Train p under a head, attention to end on `sets`, which are the `optimal_sets` unless given."""
        owner = "Problem.with_sets"
        bags = Bags.of(values, owner, "values")
        keyed = bags if keys is None else _keys_of(owner, keys, bags)
        return cls(Keys(keyed), Sets.of(labels, bags, head, sets, owner), check_loss(owner, loss or _LOGISTIC))

    @classmethod
    def vocabulary(cls, embeddings: Any, counts: Any, labels: Any, v: Any, loss: MarginLoss = _LOGISTIC) -> Problem:
        """Train p on documents given as counts C (n, V) over tokens with embeddings E (V, d) and a fixed head v."""
        owner = "Problem.vocabulary"
        E, head = array_of(owner, "embeddings", embeddings, (-1, -1)), floats(v)
        if head is None or head.shape != E.shape[1:]:
            raise refusal(owner, "v", "be a vector with one number for each column of the embeddings", v)
        logits = Vocabulary(E, counts_of(owner, counts, len(E)))
        y = labels_of(owner, labels, len(logits.bags))
        scores = logits.bags.spread(y) * (E @ array_of(owner, "v", head, head.shape))[logits.counts.indices]
        return cls(logits, Fixed(scores), check_loss(owner, loss))

    @classmethod
    def cross(cls, values: Any, queries: Any, scores: Any, loss: MarginLoss = _LOGISTIC) -> Problem:
        """Train W with the scores fixed: L(W) = (1/n) sum_i loss(gamma_i'softmax(X_i W z_i))."""
        logits = _cross("Problem.cross", values, queries)
        rule = Fixed(read_scores("Problem.cross", scores, logits.values))
        return cls(logits, rule, check_loss("Problem.cross", loss))

    @classmethod
    def under(cls, values: Any, queries: Any, labels: Any, head: Head, loss: MarginLoss = _LOGISTIC) -> Problem:
        """Train W under a head psi of the pooled values: L(W) = (1/n) sum_i loss(Y_i psi(X_i'softmax(X_i W z_i))).

        The scores are those of the head made linear at X_i's_i: they move with W. Nothing is assumed of the tokens on
        which attention ends; where they are known, `with_sets` with `outer_keys` knows L* too.
        """
        logits = _cross("Problem.under", values, queries)
        y = labels_of("Problem.under", labels, len(logits.values))
        check_loss("Problem.under", loss)
        if not isinstance(head, Head):
            raise refusal("Problem.under", "head", "be a Head", head, "see keytokens.lab.problems.heads")
        return cls(logits, Under(y, logits.values, head), loss)

    @classmethod
    def cross_joint(cls, values: Any, queries: Any, labels: Any, loss: MarginLoss = _LOGISTIC) -> Problem:
        """Train the head v and W together."""
        logits = _cross("Problem.cross_joint", values, queries)
        rule = Trained(labels_of("Problem.cross_joint", labels, len(logits.values)), logits.values)
        return cls(logits, rule, check_loss("Problem.cross_joint", loss))

    def factors(self, width: int) -> Problem:
        """Train K (d, width) and Q (e, width) in the place of W = K Q'."""
        if not isinstance(self.logits, Cross):
            raise refusal("Problem.factors", "problem", "be one of cross-attention", type(self.logits).__name__)
        check_number("Problem.factors", "width", width, 1, whole=True)
        return Problem(Factors(self.logits, width), self.rule, self.loss)


def check_rule(owner: str, problem: Any, rule: type, maker: str) -> None:
    """Of a problem that trains p: whose scores follow this rule."""
    if not (isinstance(problem, Problem) and isinstance(problem.logits, Keys) and isinstance(problem.rule, rule)):
        raise refusal(owner, "problem", f"be one that {maker} makes", problem)


def _cross(owner: str, values: Any, queries: Any) -> Cross:
    bags = Bags.of(values, owner, "values")
    return Cross(bags, queries_of(owner, queries, len(bags)))


def _keys_of(owner: str, keys: Any, values: Bags) -> Bags:
    keyed = Bags.of(keys, owner)
    if not np.array_equal(keyed.starts, values.starts):
        raise refusal(owner, "keys", "have as many tokens in each bag as the values", keyed.sizes.tolist())
    return keyed


def counts_of(owner: str, given: Any, tokens: int | None = None) -> sparse.csr_matrix:
    """(n, V) counts, checked and without zeros; every document holds a token."""
    try:
        counts = sparse.csr_matrix(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise refusal(owner, "counts", "be a matrix of counts", given) from None
    counts.eliminate_zeros()
    in_range = ((counts.data >= 0) & (counts.data < np.inf)).all()
    if counts.shape[1] != (tokens or counts.shape[1]) or not in_range:
        of = "" if tokens is None else f" of {tokens} tokens"
        raise refusal(owner, "counts", f"be counts{of}, one column a token", f"shape {counts.shape}")
    if not np.diff(counts.indptr).all():
        empty = f"row {int(np.argmin(np.diff(counts.indptr)))} empty"
        raise refusal(owner, "counts", "have a token in every row", empty, "leave the row out")
    return counts
