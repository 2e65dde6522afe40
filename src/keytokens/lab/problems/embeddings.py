"""Training of embeddings, as the paper has it: E (V, d), the query p (d,) and the output directions v (m, d).

    a = E p,  B = v E'             what a prediction needs
    dE = da p' + dB' v,  dp = E' da,  dv = dB E      the chain rule: each row of dE lies in the span of p and v

The product trains a and B themselves: the same model, more accurate and faster.
"""

from __future__ import annotations

import numpy as np

from ...base.threads import one_blas_thread
from ...model.attention import Gradient, Parameters, evaluate
from ...model.blocks import Float
from ...model.losses import loss_for
from ...model.prior import PriorOptions, curvature_of, prior_of, statistics
from ...training.fit import Trained, TrainingSet, Watch
from ...training.lbfgs import LBFGS
from ...training.loop import run


def pull_back(gradient: Gradient, E: Float, p: Float, v: Float) -> tuple[Float, Float, Float]:
    """The gradient in E, p and v (rows), from the one in a and B."""
    dE = np.outer(gradient.a, p)
    for b, direction in zip(gradient.B, v, strict=True):
        dE += np.outer(b, direction)
    return dE, E.T @ gradient.a, gradient.B @ E


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
    seen, loss = data.sum(statistics, data.n_classes), loss_for(data.n_classes)
    prior = prior_of(seen, options, data.sizes)
    V, m = prior.mean.shape
    dtype = prior.mean.dtype
    df = seen.presence.sum(axis=1)
    unit = float(np.sqrt((df @ prior.width**2).mean() / max(float(df.sum()), 1e-12)))  # (T + w0) kappa
    E0 = (seed.standard_normal((V, dim)) / np.sqrt(dim)).astype(dtype)
    p0 = (seed.standard_normal(dim) / np.sqrt(dim * max(options.attention_penalty, 1e-12))).astype(dtype)
    v0 = (unit * np.eye(m, dim)).astype(dtype)
    c0 = prior.odds.astype(dtype)
    hold = dtype.type(max(1.0, 0.1 * float(seen.documents.sum())))

    def parameters(E: Float, p: Float, v: Float, c: Float) -> Parameters:
        return Parameters(E @ p, v @ E.T, c, c0, prior.log_sink)

    with one_blas_thread():
        step, _, _ = pull_back(data.sum(evaluate, loss, parameters(E0, p0, v0, c0)), E0, p0, v0)
        moved = v0 @ step.T
        size = float(np.sqrt((moved**2 @ df).mean() / max(float(df.sum()), 1e-12)))
        E1 = E0 - dtype.type(options.ratio * unit / size if size > 0 else 0.0) * step
        first = np.concatenate([E1.ravel(), p0, v0.ravel(), c0])

        def unpack(theta: Float) -> tuple[Float, Float, Float, Float]:
            E, p, v, c = np.split(theta, [V * dim, (V + 1) * dim, (V + 1 + m) * dim])
            return E.reshape(V, dim), p, v.reshape(m, dim), c

        def objective(theta: Float) -> tuple[float, Float]:
            E, p, v, c = unpack(theta)
            part = data.sum(evaluate, loss, parameters(E, p, v, c))
            away = theta - first
            pull = away.copy()
            pull[V * dim :] *= hold
            pull[len(pull) - m :] = 0  # the intercepts are free
            dE, dp, dv = pull_back(part, E, p, v)
            value = part.loss + 0.5 * float(np.dot(away, pull))
            return value, (np.concatenate([dE.ravel(), dp, dv.ravel(), part.c]) + pull).astype(dtype)

        guess = curvature_of(prior, seen)
        curvature_E = np.ones((V, dim), dtype)
        curvature_E[:, :m] = guess.values
        rest = np.full(dim * (1 + m), hold, dtype)
        curvature = np.concatenate([curvature_E.ravel(), rest, np.full(m, guess.intercept, dtype)])
        # three pairs: a vector is V d numbers long here
        outcome = run(LBFGS(objective, 1 / curvature, memory=3, tolerance=tolerance), first, max_iter, watch)
    E, p, v, c = unpack(outcome.state.theta)
    return Trained(parameters(E, p, v, c), outcome.status, outcome.steps, outcome.state.value, seen.presence), (E, p, v)
