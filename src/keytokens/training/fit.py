"""Training: what one pass over the counts says, then a regularised descent, on two scalars a token."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..base.threads import TreeSum, give_back_memory, on_own_pages, one_blas_thread, over_spans
from ..model.attention import Gradient, Parameters, Sums, gradient_of, scores, sums_of, total_attention, weighted_rows
from ..model.blocks import Block, Float, layout
from ..model.losses import Labels, Loss, loss_for
from ..model.prior import Curvature, Prior, PriorOptions, Statistics, prior_of, statistics
from ..model.shrinkage import contributing_values, kept_shares
from .lbfgs import LBFGS, LBFGSState, Spares
from .loop import Outcome, Status, go_on, run

_AVERAGED = 3  # steps
_PAIRS = 2  # of L-BFGS: two are as good as five for the few steps of a fit, and vectors are most of its memory
_FLOOR = 0.25  # of the objective at the start: where little is left of it, a share of that is not worth a step

Watch = Callable[[LBFGSState], None]
Part = TypeVar("Part", Statistics, Float, Sums)


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """Blocks of documents with their classes and weights: all that training sees of the data."""

    blocks: list[Block]
    y: list[Labels]
    weights: list[Float]
    n_classes: int
    threads: int
    sizes: NDArray[np.integer[Any]] | None = None  # words in each token; None: all are single words

    @classmethod
    def of(
        cls,
        blocks: list[Block],
        y: Labels,
        weight: Float,
        n_classes: int,
        threads: int,
        sizes: NDArray[np.integer[Any]] | None = None,
    ) -> TrainingSet:
        ends = np.cumsum([len(block) for block in blocks])[:-1]
        return cls(blocks, np.split(y, ends), np.split(weight, ends), n_classes, threads, sizes)

    @property
    def loss(self) -> Loss:
        return loss_for(self.n_classes)

    def statistics(self) -> Statistics:
        return self._sum(statistics, self.n_classes)

    def prior(self, seen: Statistics, options: PriorOptions) -> Prior:
        return prior_of(seen, options, self.sizes, self.threads)

    def evaluate(self, theta: Parameters, room: Float | None = None) -> Gradient:
        """Loss and gradient; with `room` (m + 1, V), those of B and then that of a are written there."""
        sums = self._sum(sums_of, self.loss, theta, room=room)
        if room is not None and sums.rows is not room:  # they come from elsewhere
            room[:] = sums.rows
            sums.rows = room
        return gradient_of(sums, theta, self.threads)

    def mean_attention(self, theta: Parameters) -> Float:
        """(V,) the attention of each token, averaged over the documents."""
        total = self._sum(attention_of, theta)
        return total / sum(float(w.sum(dtype=np.float64)) for w in self.weights)

    def means(self, theta: Parameters) -> Float:
        """(m + 1, n): see `means_of`."""
        found = []
        for block in self.blocks:
            found.append(means_of(block, theta, self.threads))
            block.done()
        return found[0] if len(found) == 1 else np.concatenate(found, axis=1)

    def _sum(self, of: Callable[..., Part], *given: Any, **first: Any) -> Part:
        """of(block, y, weight, *given, threads) summed over the blocks.

        `first` is for the first block alone: sums are written over their first part.
        """
        tree: TreeSum[Part] = TreeSum()
        for block, y, weight in zip(self.blocks, self.y, self.weights, strict=True):
            tree.add(of(block, y, weight, *given, self.threads, **first))
            first = {}
            block.done()
        return tree.total()


def attention_of(block: Block, y: Labels, weight: Float, theta: Parameters, threads: int) -> Float:
    """The attention of each token, summed over the documents of one block."""
    return total_attention(block, weight, theta, threads)


def means_of(block: Block, theta: Parameters, threads: int) -> Float:
    """The means of b and of 1 over the tokens of each document, weighted by attention: (m + 1, n).

    Of 1 it is the share that the sink leaves.
    """
    own, rows = theta.weights, weighted_rows(theta, threads)
    if own is None or rows is None:
        B = np.concatenate([theta.B, np.ones_like(theta.B[:1])])
        none = np.zeros(len(B), B.dtype)
        return scores(block.rows, Parameters(theta.a, B, none, none, theta.log_sink))
    sums = block.times(rows, threads)
    total = sums[-1] + sums.dtype.type(own.sink)
    sums /= np.where(total > 0, total, 1)
    return sums


@dataclass(frozen=True, eq=False)
class Trained:
    """A fitted model and how the fit went."""

    theta: Parameters
    status: Status
    steps: int
    value: float  # of the objective, at the end
    steepest: float  # of its slopes there, in size
    presence: Float  # (K, V) as in `Statistics`

    @classmethod
    def by(cls, outcome: Outcome[LBFGSState], theta: Parameters, presence: Float) -> Trained:
        state = outcome.state
        steepest = max(float(state.gradient.max()), -float(state.gradient.min()))
        return cls(theta, outcome.status, outcome.steps, state.value, steepest, presence)


def fit_scalars(
    data: TrainingSet,
    options: PriorOptions,
    max_iter: int,
    tolerance: float,
    watch: Watch | None = None,
    resumed: tuple[LBFGSState, int] | None = None,
) -> Trained:
    """Minimise sum_i loss_i + |g|^2 / 2 + penalty |h|^2 / 2 over b, a, c, where b = mean + width g, a = attention + h.

    The answer is the mean of the last steps. With a large tolerance it is a regulariser of its own: the first few steps
    fit what many documents share, later ones what only the training documents have. Where the options ask for it, small
    contributions are silenced in the end. `resumed` is a state of an earlier run and the number of its steps.
    """
    with one_blas_thread():
        trained, threshold = _descended(data, options, max_iter, tolerance, watch, resumed)
        theta = trained.theta  # all other vectors of the descent are gone
        give_back_memory()
        if threshold > 0:
            theta = silenced(data, theta, trained.presence.sum(axis=0), threshold)
        return replace(trained, theta=theta.apart(data.threads))


def _descended(
    data: TrainingSet,
    options: PriorOptions,
    max_iter: int,
    tolerance: float,
    watch: Watch | None,
    resumed: tuple[LBFGSState, int] | None,
) -> tuple[Trained, float]:
    """The model before anything is silenced, in one vector, and the threshold for that."""
    seen = data.statistics()
    prior, presence = data.prior(seen, options), seen.presence
    curvature = Curvature.of(prior, seen)
    del seen
    give_back_memory()
    m, V = prior.ratios.shape
    dtype = prior.ratios.dtype
    odds = prior.odds.astype(dtype)
    spares = Spares()

    def rows_of(theta: Float) -> Float:
        """(m + 1, V) values and attention."""
        return theta[: (m + 1) * V].reshape((m + 1, V), order=layout(m + 1))

    def parameters(theta: Float) -> Parameters:
        rows = rows_of(theta)
        return Parameters(rows[-1], rows[:-1], theta[(m + 1) * V :], odds, prior.log_sink)

    def objective(theta: Float) -> tuple[float, Float]:
        slope = spares.take(theta)
        rows, slopes = rows_of(theta), rows_of(slope)
        part = data.evaluate(parameters(theta), slopes)

        def some(at: slice) -> Float:
            """Add the slope of the penalties; their values."""
            r = prior.ratios[at]
            width = prior.width(at, r)
            g = rows[:-1, at] - prior.mean(at, r)
            g /= width
            h = rows[-1, at] - prior.attention(at, r)
            flat = g.ravel(order="K")
            sizes = np.array([np.dot(flat, flat), np.dot(h, h)], np.float64)
            g /= width
            h *= dtype.type(prior.attention_penalty)
            slopes[:-1, at] += g
            slopes[-1, at] += h
            return sizes

        of_g, of_h = functools.reduce(operator.add, over_spans(some, V, data.threads, m + 1))
        slope[(m + 1) * V :] = part.c
        return part.loss + 0.5 * of_g + 0.5 * prior.attention_penalty * of_h, slope

    def begin() -> Float:
        theta = on_own_pages(((m + 1) * V + m,), dtype)
        rows = rows_of(theta)

        def some(at: slice) -> None:
            rows[:-1, at] = prior.mean(at)
            rows[-1, at] = prior.attention(at)

        over_spans(some, V, data.threads, m + 1)
        theta[(m + 1) * V :] = odds
        return theta

    scale = _inverse_hessian(curvature, rows_of, data.threads)
    del curvature
    method = LBFGS(objective, scale, _PAIRS, tolerance, patience=2, floor=_FLOOR, threads=data.threads, spares=spares)
    if resumed is None:
        outcome = run(method, begin(), max_iter, watch)
    else:
        state, steps = resumed
        outcome = go_on(method, state, max_iter, watch, steps)
    used = min(_AVERAGED, max(1, (outcome.steps + 1) // 2))  # nothing of the first half of a short run
    last = outcome.state
    room = last.pairs[-1][1] if last.pairs else None  # the change of a gradient, which nobody needs any more
    theta = parameters(last.mean_of_last(used, room))
    return Trained.by(outcome, theta, presence), prior.threshold


def silenced(data: TrainingSet, theta: Parameters, df: Float, threshold: float) -> Parameters:
    """The model with small contributions shrunk to 0: b' = stretch kept (b + c) - c', so that b' + c' is 0 for many.

    Such a token draws attention as before but contributes nothing to any class. Of f = C(w (b + c)) / D + c w0 / D the
    first part gets back the size that it had (root mean square over the documents, so that probabilities are neither
    timid nor rash), and c' is the best intercept for it. Without a sink the intercept is a part of every value: it
    stays.
    """
    values = contributing_values(theta, data.threads)
    kept = kept_shares(theta.a, values, df, threshold, data.threads)

    weight = np.concatenate(data.weights).astype(np.float64)

    def means(rows: Float) -> Float:
        none = np.zeros(len(rows), rows.dtype)
        return data.means(Parameters(theta.a, rows, none, none, theta.log_sink))

    def size_of(rows: Float) -> float:
        """A row at a time in double precision: the rows may be as many as the classes, for each of the documents."""
        return sum(float(np.dot(np.square(row, dtype=np.float64), weight)) for row in rows)

    m = len(values)
    if layout(2 * m + 1) == layout(1):  # a few rows: one pass
        values = np.concatenate([values, values * kept])
        before, after, (share,) = np.split(means(values), [m, 2 * m])
        old = size_of(before)
    else:  # many take their memory once
        before = means(values)
        old, share = size_of(before[:m]), before[m].copy()
        del before
        values *= kept
        after = means(values)[:m]
    values = values[-m:]
    size = size_of(after)
    stretch = float(np.sqrt(old / size)) if size > 0 else 1.0
    c: Float = theta.c.astype(np.float64)
    if theta.has_sink:
        sink = 1 - share.astype(np.float64)
        c = _best_intercept(data.loss, after, stretch, sink, np.concatenate(data.y), weight, c, data.threads)
    c = (c - c.mean() if len(c) > 1 else c).astype(theta.c.dtype)
    values *= values.dtype.type(stretch)
    values -= c[:, None]
    return Parameters(theta.a, values, c, theta.empty, theta.log_sink)


def _best_intercept(
    loss: Loss, rest: Float, stretch: float, sink: Float, y: Labels, weight: Float, start: Float, threads: int
) -> Float:
    """The c with the least loss of stretch rest + c sink, `sink` being its share of each document's attention."""

    def objective(c: Float) -> tuple[float, Float]:
        def some(at: slice) -> Float:
            F = stretch * rest[:, at].astype(np.float64) + c[:, None] * sink[at]
            return np.append(loss.slope(F, y[at]) @ (sink[at] * weight[at]), np.dot(loss.value(F, y[at]), weight[at]))

        *slope, value = functools.reduce(operator.add, over_spans(some, len(sink), threads, len(rest)))
        return float(value), np.array(slope)

    bend = max(float(np.dot(sink**2, weight)) / 4, 1e-12)
    with one_blas_thread():
        return run(LBFGS(objective, np.full_like(start, 1 / bend), tolerance=1e-10), start, 100).state.theta


def _inverse_hessian(curvature: Curvature, rows_of: Callable[[Float], Float], threads: int) -> Float:
    """The guess for b, a and c, as they stand in theta: that for g becomes one for b by the square of the width."""
    prior = curvature.prior
    m, V = prior.ratios.shape
    diagonal = on_own_pages(((m + 1) * V + m,), prior.ratios.dtype)
    rows = rows_of(diagonal)

    def some(at: slice) -> None:
        np.divide(np.square(prior.width(at)), curvature.values(at), out=rows[:-1, at])
        rows[-1, at] = 1 / curvature.attention(at)

    over_spans(some, V, threads, m + 1)
    diagonal[(m + 1) * V :] = 1 / curvature.intercept
    return diagonal
