"""Tables of numbers for the theory of trained embeddings: what a figure draws, a test checks and a reader compares.

Each function runs one experiment with fixed seeds and gives columns, a dict of arrays of one length. The settings are
ours; none of them is known of the paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.stats import spearmanr

from ...model.attention import Parameters, evaluate
from ...model.blocks import Block
from ...model.losses import Logistic
from ...model.ragged import Vector
from ..claims.embeddings.data import Documents, closed_form, loss_of_selection, planted
from ..claims.embeddings.stages import Start, Step, attention, gaussian_start, second_stage
from ..problems.embeddings import pull_back
from .figure import Table, table
from .tables import sweep

# Stage 1 -------------------------------------------------------------------------------------------------------------


def one_step_table(dims: Sequence[int] = (64, 256, 1024, 4096, 16384), seeds: int = 5) -> Table:
    """How far one step is from its leading term, by dimension; means over seeds (n = 200, T = 8, V = 50).

    `error` is the largest |error_s|/freq_s, `scaled` that times sqrt(d); `slope` is 1/2 in theory; `least_cosine` is
    over the important tokens; `second` and `third` are singular values beside the first; `share_of_bound` is the
    largest error_s beside its bound in any of the runs.
    """
    return sweep(_one_step, d=dims, seeds=[seeds])


def _one_step(d: int, seeds: int) -> dict[str, float]:
    rows = []
    for seed in range(seeds):
        rng = np.random.default_rng([seed, d])
        data = planted(rng, 200, 8, 5, 5, 40)
        step = Step(data, gaussian_start(rng, data.V, d), 1.0)
        sizes = step.singular_values / step.singular_values[0]
        ends = [step.alignment[data.kinds != 0].min(), sizes[1], sizes[2], np.max(step.error / step.error_bound)]
        rows.append([step.relative_error, step.relative_error * np.sqrt(d), step.slope, *ends])
    values = np.array(rows)
    names = ("error", "scaled", "slope", "least_cosine", "second", "third")
    return {"d": d, **dict(zip(names, values.mean(axis=0), strict=False)), "share_of_bound": float(values[:, -1].max())}


def token_table(eta: float = 200.0, mirrored: bool = False) -> Table:
    """Every token of a planted vocabulary: alpha, Delta, values before and after the step, logits after the flow.

    `E_p` is for p/|p| at |p| = 1000, `form` the closed form of the same in the limit of a large d.
    """
    rng = np.random.default_rng(0)
    data = planted(rng, 200, 8, 5, 5, 40, mirrored=mirrored)
    step = Step(data, gaussian_start(rng, data.V, 1024), eta)
    run = second_stage(step, [100.0, 1000.0], tolerance=1e-6, growth=20.0)
    form = closed_form(data, step.start.E, step.start.v, eta)
    return {
        "kind": data.kinds,
        "alpha": step.alpha,
        "frequency": step.frequency,
        "delta": data.posterior_difference(),
        "b0": step.start.E @ step.start.v,
        "b1": step.b,
        "E_p": step.E @ run.p / run.norm,
        "form": form.logits * form.margin,
    }


# Stage 2 -------------------------------------------------------------------------------------------------------------


def flow_table(norms: Sequence[float]) -> Table:
    """The flow by the norm of p (n = 100, T = 6, 8 important and 20 irrelevant tokens; eta = 200, d = 512).

    `missing` is the largest attention of a document beside its important token, `log_time` log t of the flow in time,
    `pace` |p| / (|p_*| log t), `excess` log(L - L_*).
    """
    rng = np.random.default_rng(0)
    data = planted(rng, 100, 6, 4, 4, 20)
    step = Step(data, gaussian_start(rng, data.V, 512), 200.0)
    run = second_stage(step, norms)
    size = run.solution.norm if run.solution else np.nan
    limit = loss_of_selection(data, step.E @ step.start.v, data.important)
    norm = np.array([state.norm for state in run.states])
    counts = run.problem.counts
    chosen = counts.indices == np.repeat(data.important, np.diff(counts.indptr))
    readings = [state.reading for state in run.states]
    log_time = np.interp(norm, run.path["norm"], run.path["log_time"])
    away = np.array([run.misalignment(k) for k in range(len(norm))])
    return table(
        norm=norm,
        cosine=1 - away,
        misalignment=away,
        margin_ratio=[run.margin_ratio(k) for k in range(len(norm))],
        missing=[one.bags.sum(np.where(chosen, 0.0, one.attention)).max() for one in readings],
        loss=[one.value for one in readings],
        limit=limit,
        excess=[one.excess(one.selected).log for one in readings],
        log_time=log_time,
        pace=norm / (size * log_time),
    )


# Selection: where it fails --------------------------------------------------------------------------------------------


def basin_table(
    etas: Sequence[float] = (25, 50, 100, 200, 400, 800), cs: Sequence[float] = (0, 0.25, 0.5, 1, 2, 4)
) -> Table:
    """The fraction of documents that select their token, from p = c v after a step of eta.

    n = 20, T = 4, 5 positive, 1 negative and 8 irrelevant tokens, mirrored; d = 2048.
    """
    return sweep(_basin_row, eta=etas, c=cs)


def _basin_row(eta: float, c: float) -> dict[str, float]:
    rng = np.random.default_rng(0)
    data = planted(rng, 20, 4, 5, 1, 8, mirrored=True)
    step = Step(data, gaussian_start(rng, data.V, 2048), eta)
    run = second_stage(step, [20.0, 100.0], c * step.start.v)
    return {"eta": eta, "c": c, "selected": run.leading(data.important), "loss": run.loss}


def dimension_table(dims: Sequence[int] = (4, 8, 16, 24, 28, 30, 32, 64, 128), seeds: int = 4) -> Table:
    """The mean fraction of documents that select their token, by dimension (V = 28, n = 100, T = 6, eta = 50).

    Below d = V nothing guarantees that some p selects all important tokens: `separable` is the fraction of sets where
    one does.
    """
    return sweep(_dimension_row, d=dims, seeds=[seeds])


def _dimension_row(d: int, seeds: int) -> dict[str, float]:
    found = []
    for seed in range(seeds):
        rng = np.random.default_rng([seed, d])
        data = planted(rng, 100, 6, 4, 4, 20)
        step = Step(data, gaussian_start(rng, data.V, d), 50.0)
        run = second_stage(step, [40.0, 400.0], tolerance=1e-6, growth=20.0, most_evaluations=3000)
        found.append((run.leading(data.important), run.separates(data.important)))
    selected, separable = np.mean(found, axis=0).tolist()
    return {"d": d, "selected": selected, "separable": separable}


# Embeddings and attention trained together ----------------------------------------------------------------------


def review_start(rng: np.random.Generator, V: int) -> Start:
    """In dimension 64, with a Gaussian v."""
    return replace(gaussian_start(rng, V, 64), v=rng.normal(size=64) / np.sqrt(64))


def train_embeddings(
    rng: np.random.Generator, data: Documents, start: Start, epochs: int, weights: Vector | None = None
) -> tuple[Vector, Vector]:
    """E and p after Adam on batches of 250 documents, v fixed; `weights` of the documents as in `Step`."""
    v, shape = start.v, start.E.shape
    theta = np.concatenate([start.E.ravel(), start.p])
    adam = _Adam(theta)
    y, size = (data.labels > 0).astype(np.intp), 250
    weight = len(data) * (data.even if weights is None else weights)
    for _ in range(epochs):
        order = rng.permutation(len(data))
        for batch in np.split(order, range(size, len(order), size)):
            E, p = theta[: -shape[1]].reshape(shape), theta[-shape[1] :]
            at = Parameters(E @ p, (E @ v)[None], np.zeros(1), np.zeros(1))
            gradient = evaluate(Block.of(data.counts[batch]), y[batch], weight[batch] / len(batch), Logistic(), at)
            dE, dp, _ = pull_back(gradient, E, p, v[None])
            theta = adam.step(theta, np.concatenate([dE.ravel(), dp]))
    return theta[: -shape[1]].reshape(shape), theta[-shape[1] :]


class _Adam:
    """Running means of the gradient and its square, both corrected for their start at 0."""

    def __init__(self, theta: Vector, rate: float = 3e-3) -> None:
        self.mean, self.square = np.zeros_like(theta), np.zeros_like(theta)
        self.rate, self.t = rate, 0

    def step(self, theta: Vector, gradient: Vector) -> Vector:
        self.t += 1
        self.mean += 0.1 * (gradient - self.mean)
        self.square += 0.001 * (gradient**2 - self.square)
        mean, square = self.mean / (1 - 0.9**self.t), self.square / (1 - 0.999**self.t)
        return np.asarray(theta - self.rate * mean / (np.sqrt(square) + 1e-8))


def spearman(x: Vector, y: Vector) -> float:
    return float(spearmanr(x, y)[0])


def accuracy(data: Documents, E: Vector, p: Vector, v: Vector) -> float:
    return float(np.mean(data.labels * (attention(data, E @ p) @ (E @ v)) > 0))
