"""Sets of optimal tokens under a head that need not be linear: f_i = Y_i psi(z_i) of the pooled values z_i = X_i's_i.

O_i        the tokens of bag i on which attention is to end; q_i is the attention outside of them
z_i^O      the pooled values with all attention on O_i, shared as it is now
L*         the loss with f_i^O = Y_i psi(z_i^O): the limit as q -> 0

L* is one number only if psi does not see how attention is shared within O_i. Far out z_i - z_i^O is below any float, so
it is kept as a direction and a logarithm, and so is f_i - f_i^O: over a short way, the slope of psi times the way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...base.errors import refusal
from ...model.ragged import Bags, Index, Vector, flat_sets, log_softmax
from .heads import Head, check_head
from .losses import MarginLoss, Scaled, log_abs
from .reading import Blocks, Reading
from .scores import Scores, labels_of

SAME = 1e-12  # values that differ by less, beside their size, are equal
SHORT = 1e-3  # a shorter way, beside the size of the values: by the slopes along it, not by a difference of values
FLAT = 1e-9  # psi that varies by less between the tokens of a set, beside its size, is constant there
DRAWN = 64  # points between the tokens of a set
_NODES, _WEIGHTS = (part / 2 for part in np.polynomial.legendre.leggauss(4))  # on [-1/2, 1/2]


class Limit(Enum):
    """Whether L* is one number, in a sentence."""

    EXACT = "exact: the head sees the tokens of each set as equal"
    TESTED = "tested, not proved: the head is constant on points drawn between the tokens of each set"


# The rule for scores -------------------------------------------------------------------------------------------------


def optimal_sets(labels: Any, values: Any, head: Head) -> list[list[int]]:
    """The tokens of each bag with the largest Y_i psi(x_it), those that tie included."""
    bags = Bags.of(values, "optimal_sets", "values")
    y = labels_of("optimal_sets", labels, len(bags))
    check_head("optimal_sets", head, bags)
    rows, inner = head.seen(bags.rows)
    alone = bags.spread(y) * inner.value(rows)
    size = bags.max(np.abs(alone))
    top = alone >= bags.spread(bags.max(alone) - SAME * size)
    return [np.flatnonzero(part).tolist() for part in np.split(top, bags.starts[1:-1])]


@dataclass(frozen=True, eq=False)
class Sets(Scores):
    """The rule for scores of f_i = Y_i psi(X_i's_i) whose attention is to end on given tokens; made by `Sets.of`."""

    labels: Vector  # (n,)
    values: Bags  # as the head sees them; tokens of a set that it sees as equal are equal to the last bit
    head: Head
    inside: NDArray[np.bool_]  # (N,) whether a token is in its bag's set
    limit: Limit

    @classmethod
    def of(cls, labels: Any, values: Any, head: Head, sets: Sequence[Iterable[int]] | None, owner: str) -> Sets:
        """Sets are the `optimal_sets` unless given; all of it is checked."""
        given = Bags.of(values, owner, "values")
        y = labels_of(owner, labels, len(given))
        check_head(owner, head, given)
        chosen = optimal_sets(y, given, head) if sets is None else sets
        rows, inner = head.seen(given.rows)
        seen = given.with_rows(np.array(rows))
        inside = _inside(owner, chosen, seen)
        limit = _settle(owner, seen, inner, inside)
        _check_slopes(owner, y, seen, inner, inside)
        return cls(y, seen, inner, inside, limit)

    @property
    def sets(self) -> tuple[tuple[int, ...], ...]:
        """The optimal tokens of each bag."""
        return tuple(tuple(np.flatnonzero(part).tolist()) for part in np.split(self.inside, self.values.starts[1:-1]))

    @cached_property
    def firsts(self) -> Index:
        """(n,) rows of the first token of each set."""
        return self.values.starts[:-1] + self.values.argmax(self.inside.astype(np.float64))

    @property
    def nu(self) -> Vector:
        """(n,) f_i with all attention on O_i."""
        return self.labels * self.head.value(self.values.rows[self.firsts])

    def read(self, bags: Bags, logits: Vector, blocks: Blocks, loss: MarginLoss) -> HeadReading:
        pooled = _Pooled.of(self.values, log_softmax(bags, logits), self.inside)
        slopes = self.labels[:, None] * self.head.gradient(pooled.z)
        scores = np.einsum("tj,tj->t", self.values.spread(slopes), self.values.rows)
        return HeadReading(bags, logits, scores, loss, self, pooled)

    def gap(self, reading: Reading) -> Scaled:
        assert isinstance(reading, HeadReading)
        return reading.above_limit


@dataclass(frozen=True, eq=False)
class _Pooled:
    """z = at + exp(log_length) unit: from the pooled values of the sets to those of the whole bags."""

    at: Vector  # (n, m)
    unit: Vector  # (n, m) zeros where nothing is outside
    log_length: Vector  # (n,)

    @classmethod
    def of(cls, values: Bags, log_attention: Vector, inside: NDArray[np.bool_]) -> _Pooled:
        within = np.where(inside, log_attention, -np.inf)
        share = np.exp(within - values.spread(values.max(within)))
        at = values.sum(share[:, None] * values.rows) / values.sum(share)[:, None]
        return cls.between(values, np.where(inside, -np.inf, log_attention), at)

    @classmethod
    def between(cls, values: Bags, log_weights: Vector, at: Vector) -> _Pooled:
        """sum_t weight_t (x_t - at), from `at` on."""
        top = values.max(log_weights)
        top = np.where(np.isfinite(top), top, 0.0)
        weights = np.exp(log_weights - values.spread(top))
        delta = values.sum(weights[:, None] * (values.rows - values.spread(at)))
        size = np.sqrt((delta * delta).sum(axis=1))
        return cls(at, delta / np.where(size > 0, size, 1.0)[:, None], top + log_abs(size))

    @property
    def length(self) -> Vector:
        return np.exp(self.log_length)

    @property
    def z(self) -> Vector:
        return self.at + self.length[:, None] * self.unit

    def change(self, head: Head) -> tuple[Vector, Vector]:
        """psi(z) - psi(at) as sign and logarithm."""
        short = self.length < SHORT * (1 + np.abs(self.at).max(axis=1))
        plain = head.value(self.z) - head.value(self.at)
        # the mean slope on the way, by Gauss's rule: exact for a short way, and no difference of equal numbers
        slope = np.zeros(len(self.at))
        for node, weight in zip(_NODES, _WEIGHTS, strict=True):
            there = self.at + ((0.5 + node) * self.length)[:, None] * self.unit
            slope += weight * np.einsum("ij,ij->i", head.gradient(there), self.unit)
        log_size = np.where(short, self.log_length + log_abs(slope), log_abs(plain))
        return np.where(short, np.sign(slope), np.sign(plain)), log_size


@dataclass(frozen=True, eq=False)
class HeadReading(Reading):
    """A reading whose scores are the slopes Y_i psi'(z_i)'x_it: what a little more attention on a token gains."""

    rule: Sets
    pooled: _Pooled

    @cached_property
    def _change(self) -> tuple[Vector, Vector]:
        """f_i - f_i^O as sign and logarithm."""
        sign, log_size = self.pooled.change(self.rule.head)
        return self.rule.labels * sign, log_size

    @cached_property
    def limits(self) -> Vector:
        """(n,) f_i^O."""
        return self.rule.labels * self.rule.head.value(self.pooled.at)

    @cached_property
    def margins(self) -> Vector:
        """(n,) f_i."""
        sign, log_size = self._change
        return self.limits + sign * np.exp(log_size)

    @cached_property
    def above_limit(self) -> Scaled:
        """L - L*."""
        sign, log_size = self.loss.change(self.limits, *self._change)
        return Scaled.total(sign, log_size - np.log(len(self.bags)))

    @cached_property
    def log_outside(self) -> Vector:
        """(n,) log q_i; -inf where all tokens are in the set."""
        outside = np.where(self.rule.inside, -np.inf, self.log_attention)
        top = self.bags.max(outside)
        top = np.where(np.isfinite(top), top, 0.0)
        return top + log_abs(self.bags.sum(np.exp(outside - self.bags.spread(top))))

    def excess(self, reference: Index) -> Scaled:
        """L minus the loss with all attention on the reference tokens (rows)."""
        rule = self.rule
        at = rule.values.rows[reference]
        same = (rule.values.rows == rule.values.spread(at)).all(axis=1)  # no way to go, and most of the attention
        moved = _Pooled.between(rule.values, np.where(same, -np.inf, self.log_attention), at)
        sign, log_size = moved.change(rule.head)
        alone = rule.labels * rule.head.value(at)
        turned, log_loss = self.loss.change(alone, rule.labels * sign, log_size)
        return Scaled.total(turned, log_loss - np.log(len(self.bags)))

    @cached_property
    def _about_selected(self) -> tuple[Vector, Vector, Vector]:
        """Tokens of a set tie with the selected one, up to what the head's bend along the way makes of them."""
        bags = self.bags
        above = self.scores - bags.spread(self.scores[self.selected])
        above[self._among_equals] = 0.0
        log_size = self.log_attention + log_abs(above)
        top = bags.max(log_size)
        top = np.where(np.isfinite(top), top, 0.0)
        parts = np.sign(above) * np.exp(log_size - bags.spread(top))
        return above, bags.sum(parts + self.attention * self._bends_in(top)), top

    @property
    def _tied(self) -> Vector:
        return self._bends_in(self._about_selected[2])

    def _bends_in(self, top: Vector) -> Vector:
        """(N,) score - score of the selected token, of those that tie with it, in units of exp(top)."""
        return self._bends * np.exp(np.where(self._bends != 0, self.bags.spread(self.pooled.log_length - top), 0.0))

    @cached_property
    def _among_equals(self) -> NDArray[np.bool_]:
        """(N,) tokens of sets that hold the selected token."""
        return self.rule.inside & self.rule.inside[self.selected][self.bags.bag]

    @cached_property
    def _bends(self) -> Vector:
        """(N,) of such tokens, (score - score of the selected one) / |z - z^O|: 0 where the head sees them as equal.

        On the set psi is constant, so this is how its gradient changes along the way: a central difference, over the
        way itself where that is long enough.
        """
        rule, pooled = self.rule, self.pooled
        if rule.limit is Limit.EXACT:
            return np.zeros(len(self.scores))
        size = 1 + np.abs(pooled.at).max(axis=1)
        step = np.maximum(pooled.length, 1e-5 * size)[:, None] * pooled.unit
        back = np.where((pooled.length < 1e-5 * size)[:, None], step, 0.0)
        turn = rule.head.gradient(pooled.at + step) - rule.head.gradient(pooled.at - back)
        wide = np.sqrt(((step + back) ** 2).sum(axis=1))
        turn *= (rule.labels / np.where(wide > 0, wide, 1.0))[:, None]
        away = rule.values.rows - rule.values.spread(rule.values.rows[self.selected])
        return np.where(self._among_equals, np.einsum("tj,tj->t", self.bags.spread(turn), away), 0.0)


# Checks --------------------------------------------------------------------------------------------------------------


def _inside(owner: str, sets: Any, values: Bags) -> NDArray[np.bool_]:
    bag, token = flat_sets(owner, "sets", sets, values.sizes, "bag")
    inside = np.zeros(len(values.rows), bool)
    inside[values.starts[bag] + token] = True
    if inside.all():
        raise refusal(owner, "sets", "leave a token outside in some bag", sets, "there is nothing to select")
    return inside


def _settle(owner: str, values: Bags, head: Head, inside: NDArray[np.bool_]) -> Limit:
    """Make tokens of a set that are equal up to rounding equal to the last bit; refuse those with no one limit."""
    limit = Limit.EXACT
    rng = np.random.default_rng(0)
    for i in range(len(values)):
        rows = values.starts[i] + np.flatnonzero(inside[values.starts[i] : values.starts[i + 1]])
        tokens = values.rows[rows]
        if np.abs(tokens - tokens[0]).max() <= SAME * np.abs(tokens).max():
            values.rows[rows] = tokens[0]
            continue
        between = np.concatenate([np.eye(len(rows)), rng.dirichlet(np.ones(len(rows)), DRAWN)]) @ tokens
        psi = head.value(between)
        slopes = head.gradient(between) @ (tokens - tokens[0]).T
        size = np.abs(psi).max() + np.abs(head.gradient(between)).max() * np.abs(tokens).max()
        if max(float(np.ptp(psi)), float(np.abs(slopes).max())) > FLAT * size:
            rule = "hold tokens that the head does not tell apart: else L* depends on how they share attention"
            seen = f"psi from {psi.min():.6g} to {psi.max():.6g} between them"
            raise refusal(owner, f"sets[{i}]", rule, seen, "give smaller sets")
        limit = Limit.TESTED
    return limit


def _check_slopes(owner: str, y: Vector, values: Bags, head: Head, inside: NDArray[np.bool_]) -> None:
    """At a token of the set, a little attention on any token outside must lose to first order."""
    for i in range(len(values)):
        mine = inside[values.starts[i] : values.starts[i + 1]]
        best, others = values[i][mine], values[i][~mine]
        if not len(others):
            continue
        gradient = y[i] * head.gradient(best)
        falls = np.einsum("aj,aj->a", gradient, best)[:, None] - gradient @ others.T
        if falls.min() <= FLAT * np.abs(falls).max():
            token = int(np.flatnonzero(~mine)[np.unravel_index(falls.argmin(), falls.shape)[1]])
            seen = f"a slope of {-falls.min():.3g} towards token {token}"
            rule = "hold the tokens that are best under the head: attention outside of it must lose to first order"
            raise refusal(owner, f"sets[{i}]", rule, seen, "add the token, or give other sets")
