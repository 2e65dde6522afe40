"""The model of trained embeddings: its step and its flow against the formulas as they are written."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from keytokens import lab
from keytokens.base.errors import InputError
from keytokens.lab.problems.problem import Problem
from keytokens.lab.svm import MarginProblem, solve

COUNTS = np.array([[1, 0, 2, 0], [1, 0, 1, 1], [0, 1, 2, 0], [0, 1, 1, 1]])
LABELS = np.array([1.0, 1, -1, -1])


@settings(max_examples=15)
@given(st.integers(0, 10_000))
def test_the_step_is_that_of_the_formula(seed):
    """E_s moves by eta (1/n) sum_i y_i g_i Q_s (v + (gam_s - f_i) p), g_i = 1/(1 + exp(y_i f_i))."""
    rng = np.random.default_rng(seed)
    E, p, v = rng.normal(size=(4, 6)), rng.normal(size=6), rng.normal(size=6)
    counts = rng.integers(0, 3, (4, 4)) + np.eye(4, dtype=int)
    found = lab.EmbeddingAttention(dim=6, eta=3.0, norm=2.0).fit(counts, LABELS, E, p, v)
    weights = counts * np.exp(E @ p)
    Q = weights / weights.sum(axis=1, keepdims=True)
    f, gam = Q @ (E @ v), E @ v
    force = LABELS / (1 + np.exp(LABELS * f)) / 4
    step = sum(force[i] * Q[i][:, None] * (v + (gam - f[i])[:, None] * p) for i in range(4))
    assert_allclose(found.E - found.E0, 3.0 * step, atol=1e-12)
    assert np.linalg.matrix_rank(found.E - found.E0, tol=1e-9) <= 2
    sizes = np.linalg.norm(step, axis=1) * np.linalg.norm(v)
    assert_allclose(found.alignment, step @ v / sizes, atol=1e-9)


def test_from_nothing_the_step_is_half_the_signed_frequency():
    rng = np.random.default_rng(0)
    v = np.eye(8)[0]
    E = rng.normal(size=(4, 8)) * (np.arange(8) > 0)  # E v = 0
    found = lab.EmbeddingAttention(dim=8, eta=10.0).fit(COUNTS, LABELS, E, np.zeros(8), v)
    shares = COUNTS / COUNTS.sum(axis=1, keepdims=True)
    assert_allclose(found.signed_frequency, LABELS @ shares / 4, atol=1e-15)
    assert_allclose(found.E - E, 5.0 * np.outer(found.signed_frequency, v), atol=1e-12)
    moved = np.abs(found.signed_frequency) > 1e-9
    assert_allclose(np.abs(found.alignment[moved]), 1.0)


def test_the_flow_selects_with_the_largest_margin():
    found = lab.EmbeddingAttention(dim=256, eta=60.0, norm=1e4).fit(COUNTS, LABELS)
    assert found.selected.tolist() == [0, 0, 1, 1]
    assert found.flow.status.name == "FAR_ENOUGH"
    target = solve(MarginProblem.from_vocabulary(found.E, found.counts, found.selected))
    assert found.flow.distance(target.p)[-1] < 1e-6
    assert_allclose(found.logits, found.E @ found.p)
    assert np.linalg.norm(found.v) == pytest.approx(1)
    assert_allclose(found.scores(COUNTS), found.values[found.selected], atol=1e-9)
    assert (np.sign(found.scores(COUNTS)) == LABELS).all()


def test_the_same_seed_gives_the_same_run():
    one, two, other = (lab.EmbeddingAttention(dim=16, seed=seed, norm=5.0).fit(COUNTS, LABELS) for seed in (1, 1, 2))
    assert one.p.tobytes() == two.p.tobytes()
    assert one.p.tobytes() != other.p.tobytes()


def test_without_a_step_the_embeddings_stay():
    found = lab.EmbeddingAttention(dim=16, eta=0.0, norm=5.0).fit(COUNTS, LABELS)
    assert np.array_equal(found.E, found.E0)
    assert np.isnan(found.alignment).all()


def test_sink_and_intercept_are_there_if_asked():
    """A sink is a token more; an intercept moves every score by the log odds."""
    plain = lab.EmbeddingAttention(dim=16, norm=5.0).fit(COUNTS, LABELS)
    assert plain.E.shape == (4, 16)
    assert plain.offset == 0
    sink = lab.EmbeddingAttention(dim=16, norm=5.0, sink=True).fit(COUNTS, LABELS)
    assert sink.E.shape == (5, 16)
    assert (sink.counts.toarray()[:, 4] == 1).all()
    weights = np.hstack([COUNTS, np.ones((4, 1))]) * np.exp(sink.logits)
    assert_allclose(sink.scores(COUNTS), weights @ sink.values / weights.sum(axis=1))
    labels = [1, 1, 1, -1]
    offset = lab.EmbeddingAttention(dim=16, norm=5.0, intercept=True).fit(COUNTS, labels)
    assert offset.offset == pytest.approx(np.log(3))
    problem = Problem.vocabulary(offset.E, COUNTS, labels, offset.v)
    f = problem.read((offset.p,)).margins * labels
    assert_allclose(offset.scores(COUNTS), f + np.log(3))
    assert_allclose(offset.flow.end.reading.margins, labels * (f + np.log(3)))


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: lab.EmbeddingAttention(dim=0), "EmbeddingAttention: `dim` must be a whole number of at least 1"),
        (lambda: lab.EmbeddingAttention(norm=0), "EmbeddingAttention: `norm` must be a finite number above 0"),
        (lambda: lab.EmbeddingAttention(eta=-1), "EmbeddingAttention: `eta` must be a finite number of at least 0"),
        (lambda: lab.EmbeddingAttention().fit("x", [1]), "EmbeddingAttention.fit: `counts` must be a matrix of counts"),
        (lambda: lab.EmbeddingAttention().fit(COUNTS, [1, 2, 1, 1]), "EmbeddingAttention.fit: `labels` must be -1 or"),
        (lambda: lab.EmbeddingAttention().fit(COUNTS, LABELS, p=[1.0]), "EmbeddingAttention.fit: `p` must be a vector"),
        (lambda: lab.EmbeddingAttention(intercept=True).fit(COUNTS, np.ones(4)), "`labels` must hold both classes"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(InputError, match=message):
        call()
