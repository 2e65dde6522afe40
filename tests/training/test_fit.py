"""Training: the objective, its minimum, the same bits everywhere."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.optimize import minimize

from keytokens.lab.descent import Status, run
from keytokens.model import blocks as counts
from keytokens.model.attention import Parameters, evaluate, scores
from keytokens.model.blocks import blocks_of
from keytokens.model.losses import loss_for
from keytokens.model.prior import PriorOptions, prior_of, statistics
from keytokens.training import fit as training
from keytokens.training.fit import TrainingSet, fit_scalars

PLAIN = PriorOptions(brevity=0.2)  # nothing is silenced after training
OPTIONS = [PLAIN, PriorOptions(sink=0.0, brevity=0.1), PriorOptions(1.0, 1.0, 0.2, 10.0, 0.2)]
IDS = ["default", "no sink", "other"]


def problem(K: int, seed: int = 0, n: int = 60, V: int = 10, threads: int = 1, dtype: type = np.float64) -> TrainingSet:
    """Counts whose first tokens tell the class; one document is empty; weights differ."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % K
    rates = 0.4 + 1.2 * (y[:, None] == np.arange(V) % (K + 2))
    C = rng.poisson(rates).astype(dtype)
    C[1] = 0
    weight = rng.choice([0.5, 1.0, 2.0], n).astype(dtype)
    return TrainingSet.of(blocks_of(sparse.csr_matrix(C), K), y, weight, K, threads)


def literal_objective(data: TrainingSet, options: PriorOptions, theta: Parameters) -> float:
    """sum_i loss_i + |g|^2 / 2 + penalty |h|^2 / 2, from the scores."""
    prior = prior_of(data.sum(statistics, data.n_classes), options)
    g = (theta.B - prior.mean.T) / prior.width.T
    total = 0.5 * (g**2).sum() + 0.5 * prior.attention_penalty * ((theta.a - prior.attention) ** 2).sum()
    for block, y, weight in zip(data.blocks, data.y, data.weights, strict=True):
        teaches = np.full(len(y), True) if theta.has_sink else np.diff(block.rows.indptr) > 0
        total += (loss_for(data.n_classes).value(scores(block.rows, theta), y) * weight)[teaches].sum()
    return float(total)


@pytest.mark.parametrize("options", OPTIONS, ids=IDS)
@pytest.mark.parametrize("K, seed", [(2, 0), (2, 1), (3, 0), (3, 1), (5, 0)])
def test_fit_scalars_reaches_the_minimum(K, seed, options):
    data = problem(K, seed)
    m, V = (1 if K == 2 else K), 10
    trained = fit_scalars(data, options, 2000, 1e-12)
    assert trained.status in (Status.CONVERGED, Status.STALLED)
    prior = prior_of(data.sum(statistics, data.n_classes), options)

    def parameters(x):
        g, a, c = np.split(x, [m * V, (m + 1) * V])
        b = prior.mean + prior.width * g.reshape(V, m)
        return Parameters(prior.attention + a, b.T, c, prior.odds, prior.log_sink)

    def objective(x):
        theta = parameters(x)
        part = data.sum(evaluate, loss_for(K), theta)
        g, a, _ = np.split(x, [m * V, (m + 1) * V])
        slope = [(prior.width * part.B.T).ravel() + g, part.a + prior.attention_penalty * a, part.c]
        return literal_objective(data, options, theta), np.concatenate(slope)

    start = np.concatenate([np.zeros((m + 1) * V), prior.odds])
    tight = {"maxiter": 20_000, "maxfun": 10**6, "ftol": 1e-15, "gtol": 1e-8}
    peer = minimize(objective, start, jac=True, method="L-BFGS-B", options=tight)
    assert trained.value == pytest.approx(peer.fun, rel=1e-8)
    assert trained.value <= peer.fun * (1 + 1e-9)
    if K == 2:
        assert literal_objective(data, options, trained.theta) == pytest.approx(trained.value, rel=1e-12)
    else:  # centring changes no score difference
        C = data.blocks[0].rows
        ours, theirs = scores(C, trained.theta), scores(C, parameters(peer.x))
        known = np.arange(C.shape[0]) != 1
        assert_allclose((ours - ours[0])[:, known], (theirs - theirs[0])[:, known], atol=2e-3)


@pytest.mark.parametrize("K", [2, 3, 5])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threads_and_blocks(monkeypatch, K, dtype):
    """The same bits at any number of threads; the same minimum in any number of blocks."""
    whole = fit_scalars(problem(K, n=120, dtype=dtype), PLAIN, 15, 1e-12)
    monkeypatch.setattr(counts, "BLOCK", 150)
    monkeypatch.setattr(counts, "_PART", 20)
    assert len(problem(K, n=120).blocks) > 2
    one, two, three = (fit_scalars(problem(K, n=120, threads=t, dtype=dtype), PLAIN, 15, 1e-12) for t in (1, 2, 3))
    for other in (two, three):
        assert other.steps == one.steps
        assert other.theta.a.tobytes() == one.theta.a.tobytes()
        assert other.theta.B.tobytes() == one.theta.B.tobytes()
        assert other.theta.c.tobytes() == one.theta.c.tobytes()
    assert one.theta.a.dtype == one.theta.B.dtype == dtype
    assert one.value == pytest.approx(whole.value, rel=1e-5)


def test_float32_comes_close_to_float64():
    narrow, wide = (fit_scalars(problem(2, n=200, dtype=d), PLAIN, 300, 1e-9) for d in (np.float32, np.float64))
    assert narrow.value == pytest.approx(wide.value, rel=1e-4)


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("sink", [0.0, 0.5])
@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_mean_attention_is_a_share(K, sink, scale):
    """Without a sink the attention of a document with a known token sums to one; with one, to one less the sink's."""
    data = problem(K)
    rng = np.random.default_rng(1)
    theta = fit_scalars(data, PriorOptions(sink=sink), 5, 1e-9).theta
    theta = replace(theta, a=scale * rng.normal(size=10))
    C, weight = data.blocks[0].rows.toarray(), data.weights[0]
    logits = np.where(C > 0, theta.a, -np.inf)
    top = np.maximum(logits.max(axis=1), max(theta.log_sink, -1e300))
    parts = C * np.exp(logits - top[:, None])
    total = parts.sum(axis=1) + np.exp(theta.log_sink - top)
    attention = parts / np.where(total > 0, total, 1)[:, None]
    got = data.mean_attention(theta)
    assert_allclose(got, weight @ attention / weight.sum(), rtol=1e-11, atol=1e-14)
    if not sink:
        assert got.sum() == pytest.approx(1 - weight[1] / weight.sum(), rel=1e-12)  # one document is empty
    else:
        assert got.sum() < 1


def objective_of(monkeypatch, fit, module=training):
    """The objective that a fit of this module descends on, and where it begins."""
    caught = []

    def spy(method, start, *rest):
        caught.append((method.objective, start))
        return run(method, start, *rest)

    monkeypatch.setattr(module, "run", spy)
    fit()
    return caught[0]


def check_gradient(objective, point: np.ndarray, h: float = 1e-4) -> None:
    _, gradient = objective(point)
    for unit in np.eye(len(point)):
        one, two, less, least = (objective(point + k * h * unit)[0] for k in (1, 2, -1, -2))
        assert gradient @ unit == pytest.approx((8 * (one - less) - two + least) / (12 * h), rel=1e-7, abs=1e-7)


@pytest.mark.parametrize("K", [2, 3, 5])
def test_the_gradient_of_the_scalars(monkeypatch, K):
    objective, start = objective_of(monkeypatch, lambda: fit_scalars(problem(K), PLAIN, 0, 0.0))
    check_gradient(objective, start + 0.3 * np.random.default_rng(0).normal(size=len(start)))


@pytest.mark.parametrize("K", [2, 3])
def test_fit_scalars_learns(K):
    data = problem(K, n=300)
    check_learned(data, fit_scalars(data, PLAIN, 200, 1e-8).theta)


def check_learned(data: TrainingSet, theta: Parameters) -> None:
    F = scores(data.blocks[0].rows, theta)
    predicted = (F[0] > 0).astype(int) if len(F) == 1 else F.argmax(axis=0)
    assert np.mean(predicted == data.y[0]) > 0.75


def as_trained(data: TrainingSet, options: PriorOptions) -> tuple[Parameters, Parameters, np.ndarray]:
    """The model before and after small contributions are silenced, and all counts."""
    before = fit_scalars(data, replace(options, brevity=0.2), 30, 1e-3)
    after = fit_scalars(data, options, 30, 1e-3)
    assert after.value == before.value  # the same descent
    return before.theta, after.theta, np.concatenate([block.rows.toarray() for block in data.blocks])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("K", [2, 3, 5])
def test_brevity_silences_small_contributions(K, dtype):
    """Document by document: what is left of the contributions, its size, and an intercept that cannot be bettered."""
    data = problem(K, n=200, V=30, dtype=dtype)
    options = PriorOptions(brevity=1.0)
    before, after, C = as_trained(data, options)
    weight, y = np.concatenate(data.weights), np.concatenate(data.y)
    assert after.a.tobytes() == before.a.tobytes()
    assert after.B.dtype == after.c.dtype == dtype
    w = np.exp(before.a.astype(float))
    old, new = ((theta.B + theta.c[:, None]).astype(float) for theta in (before, after))
    old = old - old.mean(axis=0) * (K > 2)
    e, df = w * np.abs(old).max(axis=0), weight @ (C > 0)
    least = min(prior_of(data.sum(statistics, data.n_classes), options).threshold * (df @ e) / df.sum(), e.max() / 2)
    kept = np.maximum(0, 1 - least / e)
    assert 0 < np.count_nonzero(kept) < len(kept)
    total = C @ w + np.exp(before.log_sink)
    stretch = np.sqrt((weight * ((old * w) @ C.T / total) ** 2).sum())
    stretch /= np.sqrt((weight * ((old * w * kept) @ C.T / total) ** 2).sum())
    assert_allclose(new, stretch * kept * old, rtol=1e-4, atol=1e-5)
    assert (new[:, kept == 0] == 0).all()  # exactly

    def loss(c):
        F = ((stretch * kept * old * w) @ C.T + c[:, None] * np.exp(before.log_sink)) / total
        return float(loss_for(K).value(F, y) @ weight)

    peer = minimize(loss, np.zeros(len(after.c)), tol=1e-12)
    assert loss(after.c.astype(float)) == pytest.approx(peer.fun, rel=1e-6)


@pytest.mark.parametrize("K", [2, 3])
def test_silence_without_a_sink(K):
    """The intercept cannot be told from the values then; many contributions are 0 all the same."""
    before, after, C = as_trained(problem(K, n=200, V=30), PriorOptions(sink=0.0, brevity=1.0))
    some = ~np.isclose(after.B + after.c[:, None], 0, atol=1e-12).all(axis=0)
    assert 0 < np.count_nonzero(some) < 30
    assert np.isfinite(scores(sparse.csr_matrix(C), after)).all()
    assert_allclose(np.diff(after.c), np.diff(before.c), atol=1e-12)
