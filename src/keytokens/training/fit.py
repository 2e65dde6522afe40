"""Training: what one pass over the counts says, then a regularised descent, on two scalars a token."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..base.threads import Pool, TreeSum, one_blas_thread, pool_of
from ..model.attention import Gradient, Parameters, attend, evaluate, total_attention
from ..model.blocks import Block, Float
from ..model.losses import Labels, loss_for
from ..model.prior import PriorOptions, SoftCounts, Statistics, curvature_of, prior_of, statistics
from ..model.shrinkage import contributing_values, kept_shares
from .lbfgs import LBFGS, LBFGSState
from .loop import Status, run
from .teaching import Teaching

_AVERAGED = 3  # steps
_PAIRS = 2  # of L-BFGS: two are as good as five for the few steps of a fit, and vectors are most of its memory
_FLOOR = 0.25  # of the objective at the start: where little is left of it, a share of that is not worth a step

Watch = Callable[[LBFGSState], None]
Part = TypeVar("Part", Statistics, SoftCounts, Float, Gradient)


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """Blocks of documents with their classes and weights: all that training sees of the data."""

    blocks: list[Block]
    y: list[Labels]
    weights: list[Float]
    n_classes: int
    threads: Pool
    sizes: NDArray[np.integer[Any]] | None = None  # words in each token; None: all are single words

    @classmethod
    def of(
        cls,
        blocks: list[Block],
        y: Labels,
        weight: Float,
        n_classes: int,
        threads: Pool,
        sizes: NDArray[np.integer[Any]] | None = None,
    ) -> TrainingSet:
        """From the classes and weights of all documents."""
        ends = np.cumsum([len(block) for block in blocks])[:-1]
        return cls(blocks, np.split(y, ends), np.split(weight, ends), n_classes, threads, sizes)

    def mean_attention(self, theta: Parameters) -> Float:
        """(V,) the attention of each token, averaged over the documents."""
        total = self.sum(total_attention, theta)
        return total / sum(float(w.sum(dtype=np.float64)) for w in self.weights)

    def means(self, theta: Parameters) -> Iterator[Float]:
        """(m + 1, n) for each block: see `means_of`."""
        for block in self.blocks:
            yield means_of(block, theta, self.threads)
            block.let_go()

    def sum(self, of: Callable[..., Part], *given: Any) -> Part:
        """of(block, y, weight, *given, threads) summed over the blocks."""
        tree: TreeSum[Part] = TreeSum()
        for block, y, weight in zip(self.blocks, self.y, self.weights, strict=True):
            tree.add(of(block, y, weight, *given, self.threads))
            block.let_go()
        return tree.total()


def means_of(block: Block, theta: Parameters, threads: Pool) -> Float:
    """The mean of b over the tokens of each document, weighted by attention, and the sink's attention: (m + 1, n)."""
    found = attend(block, theta, threads)
    sinks = np.broadcast_to(found.sinks, len(block))
    return np.vstack([found.means.T, found.over_total(sinks)])


@dataclass(frozen=True, eq=False)
class Trained:
    """A fitted model and how the fit went."""

    theta: Parameters
    status: Status
    steps: int
    value: float  # of the objective, at the end
    presence: Float  # (V, K) as in `Statistics`


def fit_scalars(
    data: TrainingSet,
    options: PriorOptions,
    max_iter: int,
    tolerance: float,
    watch: Watch | None = None,
    resume: Callable[[], LBFGSState] | None = None,
    steps: int = 0,
    teaching: Teaching | None = None,
) -> Trained:
    """Minimise sum_i loss_i + |g|^2 / 2 + penalty |h|^2 / 2 over g, h, c, where b = mean + width g, a = attention + h.

    The descent sees x = (g, h, c). The answer is the mean of the last steps. With a large tolerance it is a regulariser
    of its own: the first few steps fit what many documents share, later ones what only the training documents have.
    Where the options ask for it, small contributions are silenced in the end. `resume` gives the state of an earlier
    run, after so many steps. A teacher moves the prior.
    """
    with one_blas_thread(), pool_of(data.threads) as threads:
        data = replace(data, threads=threads)
        trained, threshold = _descended(data, options, max_iter, tolerance, watch, resume, steps, teaching)
        theta = trained.theta  # all other vectors of the descent are gone
        if threshold > 0:
            theta = silenced(data, theta, trained.presence.sum(axis=1), threshold)
        return replace(trained, theta=replace(theta, B=np.ascontiguousarray(theta.B)))


def _descended(
    data: TrainingSet,
    options: PriorOptions,
    max_iter: int,
    tolerance: float,
    watch: Watch | None,
    resume: Callable[[], LBFGSState] | None,
    steps: int,
    teaching: Teaching | None,
) -> tuple[Trained, float]:
    """The model before anything is silenced, and the threshold for that."""
    seen, loss = data.sum(statistics, data.n_classes), loss_for(data.n_classes)
    prior = prior_of(seen, options, data.sizes, None if teaching is None else teaching.counts())
    (V, m), penalty = prior.mean.shape, prior.attention_penalty
    odds, cuts = prior.odds.astype(prior.mean.dtype), [V * m, V * (m + 1)]

    def parameters(x: Float) -> Parameters:
        g, h, c = np.split(x, cuts)
        b = g.reshape(V, m) * prior.width
        b += prior.mean
        return Parameters(prior.attention + h, b.T, c, odds, prior.log_sink)

    def objective(x: Float) -> tuple[float, Float]:
        found, slope = data.sum(evaluate, loss, parameters(x)), np.empty_like(x)
        if teaching is not None and teaching.loss:
            found += teaching.evaluate(parameters(x))
        (g, h, _), (of_g, of_h, of_c) = np.split(x, cuts), np.split(slope, cuts)
        np.multiply(found.B.T, prior.width, out=of_g.reshape(V, m))
        of_g += g
        np.add(found.a, penalty * h, out=of_h)
        of_c[:] = found.c
        return found.loss + 0.5 * float(np.dot(g, g)) + 0.5 * penalty * float(np.dot(h, h)), slope

    bend = curvature_of(prior, seen)
    inverse = np.concatenate([bend.values.ravel(), bend.attention, np.full_like(odds, bend.intercept)])
    np.reciprocal(inverse, out=inverse)
    method = LBFGS(objective, inverse, _PAIRS, tolerance, patience=2, floor=_FLOOR, resume=resume)
    presence = seen.presence
    del seen, bend
    start = np.zeros(V * (m + 1) + m, odds.dtype)
    start[-m:] = odds
    outcome = run(method, start, max_iter, watch, steps)
    used = min(_AVERAGED, max(1, (outcome.steps + 1) // 2))  # nothing of the first half of a short run
    theta = parameters(outcome.state.mean_of_last(used))
    return Trained(theta, outcome.status, outcome.steps, outcome.state.value, presence), prior.threshold


def taught(data: TrainingSet, options: PriorOptions, max_iter: int, tolerance: float, teaching: Teaching) -> Teaching:
    """The teaching of the last fit: models were asked, each taught by the one before it, with nothing silenced."""
    gentle = replace(options, brevity=0.0)
    for turn in range(teaching.rounds):
        before = teaching if turn or teaching.given else None
        model = fit_scalars(data, gentle, max_iter, tolerance, teaching=before).theta
        teaching = replace(teaching, model=model)
    return teaching


def silenced(data: TrainingSet, theta: Parameters, df: Float, threshold: float) -> Parameters:
    """The model with small contributions shrunk to 0: b' = stretch kept (b + c) - c', so that b' + c' is 0 for many.

    Such a token draws attention as before but contributes nothing to any class. Of f = C(w (b + c)) / D + c w0 / D the
    first part gets back the size that it had (root mean square over the documents, so that probabilities are neither
    timid nor rash), and c' is the best intercept for it. Without a sink the intercept is a part of every value: it
    stays.
    """
    values = contributing_values(theta)

    def size_of(means: Iterable[Float]) -> float:
        return sum(
            float(np.square(own[:-1], dtype=np.float64).sum(axis=0) @ weight)
            for own, weight in zip(means, data.weights, strict=True)
        )

    before = size_of(data.means(replace(theta, B=values)))
    values *= kept_shares(theta.a, values, df, threshold)
    means = list(data.means(replace(theta, B=values)))
    after = size_of(means)
    stretch = float(np.sqrt(before / after)) if after > 0 else 1.0
    c: Float = theta.c.astype(np.float64)
    if theta.has_sink:
        c = _best_intercept(data, means, stretch, c)
    c = (c - c.mean() if len(c) > 1 else c).astype(theta.c.dtype)
    values *= values.dtype.type(stretch)
    values -= c[:, None]
    return replace(theta, B=values, c=c)


def _best_intercept(data: TrainingSet, means: list[Float], stretch: float, start: Float) -> Float:
    """The c with the least loss of stretch M + c sink, M and the sink's share of attention being the means."""
    loss = loss_for(data.n_classes)

    def objective(c: Float) -> tuple[float, Float]:
        value, slope = 0.0, np.zeros_like(c)
        for own, y, weight in zip(means, data.y, data.weights, strict=True):
            F = own[:-1].astype(np.float64)
            F *= stretch
            F += c[:, None] * own[-1]
            value += float(loss.value(F, y) @ weight)
            slope += loss.slope(F, y) @ (own[-1] * weight.astype(np.float64))
        return value, slope

    squares = sum(float(np.square(own[-1], dtype=np.float64) @ w) for own, w in zip(means, data.weights, strict=True))
    bend = max(squares / 4, 1e-12)
    return run(LBFGS(objective, np.full_like(start, 1 / bend), tolerance=1e-10), start, 100).state.theta
