"""Training: what one pass over the counts says, then a regularised descent, on two scalars a token or on embeddings."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from .core.attention import Gradient, Parameters, evaluate, total_attention
from .core.counts import Block, Float
from .core.embeddings import pull_back
from .core.losses import Labels, Loss, loss_for
from .core.prior import Prior, PriorOptions, Statistics, prior_of, statistics
from .optim import LBFGS, Outcome, run
from .optim.lbfgs import LBFGSState

__all__ = ["Trained", "TrainingSet", "fit_embeddings", "fit_scalars"]

_AVERAGED = 3  # steps

Watch = Callable[[LBFGSState], None]
Part = TypeVar("Part", Gradient, Statistics, Float)


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """Blocks of documents with their classes and weights: all that training sees of the data."""

    blocks: list[Block]
    y: list[Labels]
    weights: list[Float]
    n_classes: int
    threads: int
    sizes: NDArray[np.int32] | None = None  # words in each token; None: all are single words

    @classmethod
    def of(
        cls,
        blocks: list[Block],
        y: Labels,
        weight: Float,
        n_classes: int,
        threads: int,
        sizes: NDArray[np.int32] | None = None,
    ) -> TrainingSet:
        ends = np.cumsum([len(block) for block in blocks])[:-1]
        return cls(blocks, np.split(y, ends), np.split(weight, ends), n_classes, threads, sizes)

    @property
    def loss(self) -> Loss:
        return loss_for(self.n_classes)

    def statistics(self) -> Statistics:
        return self._sum(lambda b, y, w: statistics(b, y, w, self.n_classes, self.threads))

    def prior(self, seen: Statistics, options: PriorOptions) -> Prior:
        return prior_of(seen, options, self.sizes)

    def evaluate(self, theta: Parameters) -> Gradient:
        return self._sum(lambda b, y, w: evaluate(b, y, w, self.loss, theta, self.threads))

    def mean_attention(self, theta: Parameters) -> Float:
        """(V,) the attention of each token, averaged over the documents."""
        total = self._sum(lambda b, y, w: total_attention(b, w, theta, self.threads))
        return total / sum(float(w.sum(dtype=np.float64)) for w in self.weights)

    def _sum(self, of: Callable[[Block, Labels, Float], Part]) -> Part:
        """Over the blocks, in their order."""
        parts = (of(*each) for each in zip(self.blocks, self.y, self.weights, strict=True))
        total = next(parts)
        for part in parts:
            total = total + part
        return total


@dataclass(frozen=True, eq=False)
class Trained:
    """A fitted model and how the fit went."""

    theta: Parameters
    outcome: Outcome[LBFGSState]
    statistics: Statistics


def fit_scalars(
    data: TrainingSet,
    options: PriorOptions,
    max_iter: int,
    tolerance: float,
    start: Parameters | None = None,
    watch: Watch | None = None,
) -> Trained:
    """Minimise sum_i loss_i + |g|^2 / 2 + penalty |h|^2 / 2 over g, h, c, where b = mean + width g, a = attention + h.

    The answer is the mean of the last steps. With a large tolerance it is a regulariser of its own: the first few steps
    fit what many documents share, later ones what only the training documents have.
    """
    seen = data.statistics()
    prior = data.prior(seen, options)
    m, V = prior.mean.shape
    dtype = prior.mean.dtype

    def unpack(theta: Float) -> tuple[Float, Float, Float]:
        return theta[: m * V].reshape(m, V), theta[m * V : (m + 1) * V], theta[(m + 1) * V :]

    def parameters(theta: Float) -> Parameters:
        g, a, c = unpack(theta)
        return Parameters(
            prior.attention + a, prior.mean + prior.width * g, c, prior.odds.astype(dtype), prior.log_sink
        )

    def objective(theta: Float) -> tuple[float, Float]:
        g, a, _ = unpack(theta)
        part = data.evaluate(parameters(theta))
        value = part.loss + 0.5 * float(np.vdot(g, g)) + 0.5 * prior.attention_penalty * float(np.dot(a, a))
        slope = (prior.width * part.B + g, part.a + dtype.type(prior.attention_penalty) * a, part.c)
        return value, np.concatenate([x.ravel() for x in slope]).astype(dtype, copy=False)

    begin = np.zeros((m + 1) * V + m, dtype)
    begin[(m + 1) * V :] = prior.odds
    if start is not None:
        away = (((start.B - prior.mean) / prior.width).ravel(), start.a - prior.attention, start.c)
        begin = np.concatenate(away).astype(dtype)
    inverse_hessian = 1 / np.concatenate([prior.curvature_g.ravel(), prior.curvature_a, prior.curvature_c])
    last: deque[Float] = deque(maxlen=_AVERAGED)

    def remember(state: LBFGSState) -> None:
        last.append(state.theta)
        if watch is not None:
            watch(state)

    with threadpool_limits(1, "blas"):  # the same bits whatever BLAS would like to use
        method = LBFGS(objective, inverse_hessian, memory=5, tolerance=tolerance, patience=2)
        outcome = run(method, begin, max_iter, remember)
    used = list(last)[-max(1, (outcome.steps + 1) // 2) :]  # nothing of the first half of a short run
    return Trained(parameters(sum(used[1:], used[0]) / dtype.type(len(used))), outcome, seen)


def fit_embeddings(
    data: TrainingSet,
    options: PriorOptions,
    dim: int,
    seed: np.random.RandomState,
    max_iter: int,
    tolerance: float,
    watch: Watch | None = None,
) -> tuple[Trained, tuple[Float, Float, Float]]:
    """E, p and v as the paper has them: random start, one full-batch gradient step on E, then all of them.

    E and p start as N(0, I/d). A Gaussian start looks the same from every side, so v may lie along the first axes. Its
    length and that of p set how far a step of E moves values and attention, as `width` and `penalty` do for the
    scalars; the step size is such that the first step gives the values the size `ratio` asks for. The rest minimises
    sum_i loss_i + |E - E_1|^2 / 2 + (n / 10) (|p - p_0|^2 + |v - v_0|^2) / 2: p and v are shared by all n documents,
    so what holds them back grows with n (without it they take over and the test accuracy falls).
    """
    seen = data.statistics()
    prior = data.prior(seen, options)
    m, V = prior.mean.shape
    dtype = prior.mean.dtype
    df = seen.presence.sum(axis=0)
    unit = float(np.sqrt((prior.width**2 @ df).mean() / max(float(df.sum()), 1e-12)))  # (T + w0) kappa
    E0 = (seed.standard_normal((V, dim)) / np.sqrt(dim)).astype(dtype)
    p0 = (seed.standard_normal(dim) / np.sqrt(dim * max(options.attention_penalty, 1e-12))).astype(dtype)
    v0 = (unit * np.eye(m, dim)).astype(dtype)
    c0 = prior.odds.astype(dtype)
    hold = dtype.type(max(1.0, 0.1 * float(seen.documents.sum())))

    def parameters(E: Float, p: Float, v: Float, c: Float) -> Parameters:
        return Parameters(E @ p, v @ E.T, c, c0, prior.log_sink)

    with threadpool_limits(1, "blas"):
        step, _, _ = pull_back(data.evaluate(parameters(E0, p0, v0, c0)), E0, p0, v0)
        moved = v0 @ step.T
        size = float(np.sqrt((moved**2 @ df).mean() / max(float(df.sum()), 1e-12)))
        E1 = E0 - dtype.type(options.ratio * unit / size if size > 0 else 0.0) * step
        first = np.concatenate([E1.ravel(), p0, v0.ravel(), c0])

        def unpack(theta: Float) -> tuple[Float, Float, Float, Float]:
            E, p, v, c = np.split(theta, [V * dim, (V + 1) * dim, (V + 1 + m) * dim])
            return E.reshape(V, dim), p, v.reshape(m, dim), c

        def objective(theta: Float) -> tuple[float, Float]:
            E, p, v, c = unpack(theta)
            part = data.evaluate(parameters(E, p, v, c))
            away = theta - first
            pull = away.copy()
            pull[V * dim :] *= hold
            pull[len(pull) - m :] = 0  # the intercepts are free
            dE, dp, dv = pull_back(part, E, p, v)
            value = part.loss + 0.5 * float(np.dot(away, pull))
            return value, (np.concatenate([dE.ravel(), dp, dv.ravel(), part.c]) + pull).astype(dtype)

        curvature_E = np.ones((V, dim), dtype)
        curvature_E[:, :m] = prior.curvature_g.T
        rest = np.full(dim * (1 + m), hold, dtype)
        curvature = np.concatenate([curvature_E.ravel(), rest, prior.curvature_c])
        # three pairs: a vector is V d numbers long here
        outcome = run(LBFGS(objective, 1 / curvature, memory=3, tolerance=tolerance), first, max_iter, watch)
    E, p, v, c = unpack(outcome.state.theta)
    return Trained(parameters(E, p, v, c), outcome, seen), (E, p, v)
