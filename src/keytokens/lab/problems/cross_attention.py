"""Cross-attention on bags, in the log domain: a matrix W between the tokens of a bag and the bag's own query z_i.

a_it = x_it'W z_i      logits, linear in W: a_it = <W, x_it z_i'>, so W is a long p whose keys are products x_it z_i'
z_i = x_i1             the query is a token of the bag: self-attention, one row of it
-dL/dW = sum_it pull_it (x_it - x_im) z_i'        `pull` and the selected token m are those of `Reading`

Blocks, the parameter of the attention last:
CrossProblem (W,) scores given      CrossHeadProblem (W,) under a head      CrossJointProblem (v, W)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ...base.checks import LARGEST, floats
from ...base.errors import refusal
from ...model.ragged import Bags, Vector, log_softmax
from .heads import Head
from .losses import Logistic, MarginLoss, Scaled, check_loss
from .selection_loss import Blocks, Reading, SelectionProblem, labels_of, read_scores, signed_scores

_LOGISTIC = Logistic()


def cross_logits(values: Bags, W: Vector, queries: Vector) -> Vector:
    """(N,) x_it'W z_i.

    >>> cross_logits(Bags.of([[[1.0, 0.0], [0.0, 1.0]]]), np.array([[2.0], [3.0]]), np.array([[10.0]])).tolist()
    [20.0, 30.0]
    """
    if np.shape(W) != (values.dim, queries.shape[1]):
        rule = f"be a matrix of shape {(values.dim, queries.shape[1])}, entries of tokens by entries of queries"
        raise refusal("cross_logits", "W", rule, f"shape {np.shape(W)}")
    return np.einsum("tj,tj->t", values.rows, values.spread(queries @ W.T))


def outer_keys(values: Any, queries: Any) -> Bags:
    """The products x_it z_i' as long rows: with them W, row by row, is the p of every problem of keys.

    Values in any form that `Bags.of` reads, queries as one row a bag.

    >>> outer_keys(Bags.of([[[1.0, 2.0]]]), np.array([[10.0, 20.0]])).rows.tolist()
    [[10.0, 20.0, 20.0, 40.0]]
    """
    bags = Bags.of(values, "outer_keys", "values")
    z = queries_of("outer_keys", queries, len(bags))
    products = bags.rows[:, :, None] * bags.spread(z)[:, None, :]
    return bags.with_rows(products.reshape(len(bags.rows), -1))


def pulled_matrix(reading: Reading, values: Bags, queries: Vector) -> Scaled:
    """-dL/dW = sum_it pull_it (x_it - x_im) z_i', (d, e)."""
    away = values.rows - values.spread(values.rows[reading.selected])
    by_bag = values.sum(reading.pull.array[:, None] * away)
    return Scaled(by_bag.T @ queries, reading.pull.log_scale)


def queries_of(owner: str, queries: Any, size: int) -> Vector:
    """(n, e) checked: one query a bag."""
    z = floats(queries)
    if z is None:
        raise refusal(owner, "queries", "be numbers, one row for each bag", queries)
    if z.ndim != 2 or len(z) != size or not z.shape[1]:
        rule = f"be a matrix with one row for each of the {size} bags"
        raise refusal(owner, "queries", rule, f"shape {z.shape}")
    if not (np.abs(z) <= LARGEST).all():  # also nan
        raise refusal(owner, "queries", f"have finite entries up to {LARGEST:g}", queries)
    return z


@dataclass(frozen=True, eq=False)
class _Cross:
    """Tokens and queries: what the problems below share."""

    values: Bags
    queries: Vector  # (n, e)

    def __post_init__(self) -> None:
        owner = type(self).__name__
        object.__setattr__(self, "values", Bags.of(self.values, owner, "values"))
        object.__setattr__(self, "queries", queries_of(owner, self.queries, len(self.values)))

    @property
    def matrix_shape(self) -> tuple[int, int]:
        return self.values.dim, self.queries.shape[1]

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        return (self.matrix_shape,)

    def descent(self, reading: Reading, blocks: Blocks) -> tuple[Scaled, ...]:
        return (pulled_matrix(reading, self.values, self.queries),)

    def gap(self, reading: Reading) -> Scaled:
        return reading.excess(reading.best)

    @cached_property
    def keys(self) -> Bags:
        """The products x_it z_i', for the max-margin problems and for problems of one long p."""
        return outer_keys(self.values, self.queries)

    @cached_property
    def span(self) -> Vector | None:
        return SelectionProblem(self.keys, np.zeros(len(self.keys.rows))).span


@dataclass(frozen=True, eq=False)
class CrossProblem(_Cross):
    """Train W with the scores fixed: L(W) = (1/n) sum_i loss(gamma_i'softmax(X_i W z_i)).

    >>> values, z = Bags.of([[[1.0, 0.0], [0.0, 1.0]]]), np.array([[1.0, 0.0]])
    >>> problem = CrossProblem(values, z, np.array([1.0, 0.0]))
    >>> W = (np.array([[3000.0, 0.0], [-3000.0, 0.0]]),)
    >>> (down,) = problem.descent(problem.read(W), W)
    >>> (down.unit * np.sqrt(2)).round(9).tolist(), round(down.log)  # a gradient of about exp(-6000)
    ([[1.0, 0.0], [-1.0, 0.0]], -6001)
    """

    scores: Vector
    loss: MarginLoss = _LOGISTIC

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "scores", read_scores("CrossProblem", self.scores, self.values))
        check_loss("CrossProblem", self.loss)

    def read(self, blocks: Blocks) -> Reading:
        return Reading(self.values, cross_logits(self.values, blocks[-1], self.queries), self.scores, self.loss)


@dataclass(frozen=True, eq=False)
class CrossHeadProblem(_Cross):
    """Train W under a head psi of the pooled values: L(W) = (1/n) sum_i loss(Y_i psi(X_i'softmax(X_i W z_i))).

    The scores are the slopes Y_i psi'(X_i's_i)'x_it, so they move with W. Nothing is assumed of the tokens on which
    attention ends; where they are known, `HeadProblem` with `outer_keys` knows L* too.
    """

    labels: Vector
    head: Head
    loss: MarginLoss = _LOGISTIC

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "labels", labels_of("CrossHeadProblem", self.labels, len(self.values)))
        check_loss("CrossHeadProblem", self.loss)
        if not isinstance(self.head, Head):
            raise refusal("CrossHeadProblem", "head", "be a Head", self.head, "see keytokens.lab.problems.heads")

    def read(self, blocks: Blocks) -> Reading:
        values = self.values
        logits = cross_logits(values, blocks[-1], self.queries)
        pooled = values.sum(np.exp(log_softmax(values, logits))[:, None] * values.rows)
        slopes = values.spread(self.labels[:, None] * self.head.gradient(pooled))
        scores = np.einsum("tj,tj->t", slopes, values.rows)
        return _HeadReading(values, logits, scores, self.loss, self.labels * self.head.value(pooled))

    def gap(self, reading: Reading) -> Scaled:
        rule = "know the loss in the limit for a step that is measured by it"
        raise refusal("CrossHeadProblem", "head", rule, self.head.name, "use HeadProblem with outer_keys")


@dataclass(frozen=True, eq=False)
class _HeadReading(Reading):
    """A reading at a point where Y_i psi is known by itself: it is not s_i'gamma_i under a head that bends."""

    outputs: Vector  # (n,)

    @cached_property
    def margins(self) -> Vector:
        return self.outputs


@dataclass(frozen=True, eq=False)
class CrossJointProblem(_Cross):
    """Train the head v and W together: gamma_it = Y_i v'x_it moves with v; blocks (v, W)."""

    labels: Vector
    loss: MarginLoss = _LOGISTIC

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "labels", labels_of("CrossJointProblem", self.labels, len(self.values)))
        check_loss("CrossJointProblem", self.loss)

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        return (self.values.dim,), self.matrix_shape

    def read(self, blocks: Blocks) -> Reading:
        v, W = blocks
        logits = cross_logits(self.values, W, self.queries)
        return Reading(self.values, logits, signed_scores(self.labels, self.values, v), self.loss)

    def descent(self, reading: Reading, blocks: Blocks) -> tuple[Scaled, ...]:
        return reading.head_descent(self.labels, self.values), pulled_matrix(reading, self.values, self.queries)

    def gap(self, reading: Reading) -> Scaled:
        return reading.mean_loss

    @property
    def span(self) -> Vector | None:
        return None
