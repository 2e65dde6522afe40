"""The gradient in E, p and v; training them; several classes contain two; too few dimensions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from keytokens.base.errors import NotSeparable
from keytokens.lab.claims.embeddings import stages as two_stage
from keytokens.lab.claims.embeddings.data import Documents, planted
from keytokens.lab.claims.embeddings.stages import Step, gaussian_start
from keytokens.lab.problems import embeddings
from keytokens.lab.problems.embeddings import (
    Classes,
    class_frequencies,
    multiclass_gradient,
    planted_classes,
    pull_back,
)
from keytokens.lab.svm import MarginProblem, solve
from keytokens.model.attention import Gradient, Parameters, evaluate
from keytokens.model.blocks import Block
from keytokens.model.losses import CrossEntropy, Logistic, loss_for

from ...model.reference import random_counts

# The gradient, and training ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("m", [1, 3])
@pytest.mark.parametrize("sink", [False, True])
def test_pull_back_is_the_derivative(m, sink):
    rng = np.random.default_rng(7)
    C, dim = random_counts(rng), 4
    y, weight = rng.integers(0, max(2, m), C.shape[0]), rng.random(C.shape[0])
    point = {"E": rng.normal(size=(7, dim)), "p": rng.normal(size=dim), "v": rng.normal(size=(m, dim))}
    c, block, loss = rng.normal(size=m), Block.of(C), loss_for(max(2, m))

    def at(E, p, v) -> Gradient:
        return evaluate(block, y, weight, loss, Parameters(E @ p, v @ E.T, c, c, 0.3 if sink else -np.inf))

    pulled = dict(zip("Epv", pull_back(at(**point), **point), strict=True))
    h = 1e-4
    for name, value in point.items():
        numeric = np.zeros_like(value)
        for place in np.ndindex(value.shape):
            unit = np.zeros_like(value)
            unit[place] = h
            one, two, less, least = (at(**{**point, name: value + k * unit}).loss for k in (1, 2, -1, -2))
            numeric[place] = (8 * (one - less) - two + least) / (12 * h)
        assert_allclose(pulled[name], numeric, rtol=1e-8, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("lengths", ["equal", "different"])
def test_one_step_is_a_count(lengths):
    """p_0 = 0, E_0 v = 0, no sink: -dE v = alpha / 2 |v|^2 with alpha_s = (1/n) sum_i y_i c_s / T_i; rows along v."""
    rng = np.random.default_rng(8)
    n, V, dim = 50, 9, 6
    T = np.full(n, 8) if lengths == "equal" else rng.integers(1, 30, n)
    C = np.stack([np.bincount(rng.integers(0, V, t), minlength=V) for t in T]).astype(float)
    y = rng.integers(0, 2, n)
    v = rng.normal(size=(1, dim))
    E = rng.normal(size=(V, dim))
    E -= np.outer(E @ v[0], v[0]) / (v[0] @ v[0])
    zero = np.zeros(1)
    theta = Parameters(np.zeros(V), np.zeros((1, V)), zero, zero)
    gradient = evaluate(Block.of(sparse.csr_matrix(C)), y, np.full(n, 1 / n), Logistic(), theta)
    dE, dp, dv = pull_back(gradient, E, np.zeros(dim), v)
    alpha = (np.where(y == 1, 1, -1)[:, None] * C / T[:, None]).mean(axis=0)
    assert_allclose(-dE @ v[0], alpha / 2 * (v[0] @ v[0]), rtol=1e-13, atol=1e-15)
    assert_allclose(-dE, np.outer(alpha / 2, v[0]), rtol=1e-13, atol=1e-15)
    assert_allclose(dp, 0, atol=1e-15)
    assert_allclose(-dv[0], E.T @ alpha / 2, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("m", [1, 3, 4])
def test_one_step_moves_rows_in_the_span_of_p_and_v(m):
    rng = np.random.default_rng(9)
    C, dim = random_counts(rng, n=40), 12
    E, p, v = rng.normal(size=(7, dim)), rng.normal(size=dim), rng.normal(size=(m, dim))
    theta = Parameters(E @ p, v @ E.T, np.zeros(m), np.zeros(m))
    gradient = evaluate(Block.of(C), rng.integers(0, max(2, m), 40), np.ones(40), loss_for(max(2, m)), theta)
    sizes = np.linalg.svd(pull_back(gradient, E, p, v)[0], compute_uv=False)
    assert sizes[m + 1] < 1e-13 * sizes[0]


# Several classes -----------------------------------------------------------------------------------------------------


def test_two_of_several_classes_are_two_classes():
    """alpha_s1 = alpha_s/2 = -alpha_s0; and cross-entropy on f e_1 is the logistic loss."""
    rng = np.random.default_rng(0)
    data = planted(rng, 12, 4, 2, 2, 5)
    classes = Classes(data.counts, (data.labels > 0).astype(np.intp), 2, data.important)
    alpha = data.signed_frequency()
    assert_allclose(class_frequencies(classes), np.column_stack([-alpha, alpha]) / 2, atol=1e-16)
    start = gaussian_start(rng, data.V, 6)
    two = np.stack([np.zeros(6), start.v])  # class 0 has the score 0
    assert_allclose(
        multiclass_gradient(classes, start.E, start.p, two)[0],
        two_stage.embedding_gradient(data, start),
        atol=1e-15,
    )


@pytest.mark.parametrize("K", [2, 3, 4])
def test_planted_classes(K):
    data = planted_classes(np.random.default_rng(1), 6, 4, [2] * K, 5)
    assert data.counts.shape == (6 * K, 2 * K + 5)
    assert_allclose(np.asarray(data.counts.sum(axis=1)).ravel(), 4)
    alpha = class_frequencies(data)
    assert_allclose(alpha[2 * K :], 0, atol=1e-16)  # independent of the class
    frequency = data.shares.mean(axis=0)
    for token in range(2 * K):
        expected = frequency[token] * (np.eye(K)[token // 2] - 1 / K)
        assert_allclose(alpha[token], expected, atol=1e-16)
    assert (data.counts.toarray()[np.arange(6 * K), data.important] == 1).all()


@pytest.mark.parametrize("norm", [0.0, 1.0, 20.0])
def test_the_problem_of_several_classes(norm):
    """Value and gradient against the classifier's, and against central differences."""
    rng = np.random.default_rng(2)
    data = planted_classes(rng, 4, 3, [2, 1, 1], 3)
    V, d = data.counts.shape[1], 5
    E, v, direction = rng.normal(size=(V, d)), 2 * rng.normal(size=(3, d)), rng.normal(size=d)
    problem = embeddings.multiclass(E, data, v)
    p = norm * direction / np.linalg.norm(direction)
    reading = problem.read((p,))
    (down,) = problem.descent(reading, (p,))
    _, gradient = multiclass_gradient(data, E, p, v)
    assert reading.value == pytest.approx(gradient.loss, rel=1e-12)
    assert_allclose(down.plain, -E.T @ gradient.a, atol=1e-13)

    def value(p):
        attention = two_stage.attention(Documents.of([np.repeat(np.arange(V), row) for row in counts], ones, V), E @ p)
        return CrossEntropy().value((attention @ (E @ v.T)).T, data.y).mean()

    counts, ones = data.counts.toarray().astype(int), np.ones(len(data.y))
    steps = 1e-5 * np.eye(d)
    numeric = [(value(p + u) - value(p - u)) / 2e-5 for u in steps]
    assert_allclose(down.plain, -np.array(numeric), atol=1e-8)
    assert problem.gap(reading).sign >= 0
    assert_allclose(reading.loss.slope(reading.margins), -np.exp(reading.loss.log_abs_slope(reading.margins)))
    assert_allclose(np.exp(reading.loss.log_value(reading.margins)).mean(), reading.value)
    assert problem.span is None


def test_far_out_the_direction_stays():
    """At |p| = 1e5 every factor underflows; the direction is that of the leading rows."""
    rng = np.random.default_rng(3)
    data = planted_classes(rng, 4, 3, [1, 1, 1], 2)
    frame = np.linalg.qr(rng.normal(size=(8, 8)))[0]
    E = frame[:5] - 60 * multiclass_gradient(data, frame[:5], np.zeros(8), frame[5:])[0]
    problem = embeddings.multiclass(E, data, frame[5:])
    target = solve(MarginProblem.from_vocabulary(E, data.counts, data.important))
    p = 1e5 * target.p / target.norm
    (down,) = problem.descent(problem.read((p,)), (p,))
    assert down.log < -1e4
    assert np.isfinite(down.unit).all()
    assert down.unit @ target.p / target.norm > 0.5


# Dimensions ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_with_enough_dimensions_every_important_token_can_win(seed):
    rng = np.random.default_rng(seed)
    data = planted(rng, 60, 5, 3, 3, 10)
    for d in (data.V + 2, 3, 4):
        E = Step(data, gaussian_start(rng, data.V, d), 20.0).E
        problem = MarginProblem.from_vocabulary(E, data.counts, data.important)
        if d > data.V:
            assert solve(problem).is_optimal(1e-7)
        else:
            with pytest.raises(NotSeparable) as refuted:
                solve(problem)
            assert refuted.value.witness.is_proof()


def test_small_leads_keep_their_digits():
    """Beside the entropy of the rivals, log 2, leads of 1e-18 would be nothing; the pull is in proportion to them."""
    data = planted_classes(np.random.default_rng(0), 2, 3, [1, 1, 1], 2)
    E, v, p = (np.random.default_rng(1).normal(size=shape) for shape in ((5, 4), (3, 4), 4))
    ways = []
    for size in (1e-6, 1e-18):
        problem = embeddings.multiclass(E, data, size * v)
        (down,) = problem.descent(problem.read((p,)), (p,))
        ways.append(down.unit)
        assert down.log == pytest.approx(np.log(size), abs=5)
    assert ways[0] == pytest.approx(ways[1], abs=1e-4)
