"""The claims about one step notice broken formulas; several classes contain two; what too few dimensions cost."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from keytokens.core.losses import CrossEntropy
from keytokens.errors import NotSeparable
from keytokens.svm import MarginProblem, solve
from keytokens.theory import multiclass, two_stage
from keytokens.theory.families import counts, step_space
from keytokens.theory.multiclass import Classes, class_frequencies, multiclass_gradient, planted_classes
from keytokens.theory.planted import Documents, planted
from keytokens.theory.two_stage import Step, first_step, gaussian_start

from .broken import fails

# Broken formulas -----------------------------------------------------------------------------------------------------


def test_the_length_of_documents_matters(monkeypatch):
    """alpha by 1/(nT) with the mean length, which is right where all lengths are equal."""

    def plain(self, weights=None):
        w = self.even if weights is None else weights
        return self.counts.T @ (self.labels * w) / self.lengths.mean()

    monkeypatch.setattr(Documents, "signed_frequency", plain)
    assert fails("te.one-step")
    assert fails("te.signed-frequency")


def test_the_half_matters(monkeypatch):
    monkeypatch.setattr(Step, "leading", property(lambda self: np.outer(self.alpha, self.start.v)))
    assert fails("te.one-step")
    assert fails("te.one-step-rate")


@pytest.mark.parametrize("change", [0.99, 0.5])
def test_a_smaller_bound_is_too_small(monkeypatch, change):
    true = Step.error_bound.func
    monkeypatch.setattr(Step, "error_bound", property(lambda self: change * true(self)))
    assert fails("te.one-step-bound")


def test_a_sign_in_the_gradient(monkeypatch):
    true = two_stage.embedding_gradient

    def turned(documents, start, weights=None):
        """The part along p with the wrong sign."""
        gradient = true(documents, start, weights)
        along = true(documents, type(start)(start.E, start.p, start.v), weights) @ start.p / (start.p @ start.p)
        return gradient - 2 * np.outer(along, start.p)

    monkeypatch.setattr(counts, "embedding_gradient", turned)
    assert fails("te.gradient")


def test_the_share_of_each_class_matters(monkeypatch):
    monkeypatch.setattr(
        step_space, "class_frequencies", lambda data: data.shares.T @ np.eye(data.K)[data.y] / len(data.y)
    )
    assert fails("te.multiclass-step")


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
    problem = multiclass.MulticlassProblem(E, data, v)
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
    problem = multiclass.MulticlassProblem(E, data, frame[5:])
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
        E = first_step(data, gaussian_start(rng, data.V, d), 20.0).E
        problem = MarginProblem.from_vocabulary(E, data.counts, data.important)
        if d > data.V:
            assert solve(problem).is_optimal(1e-7)
        else:
            with pytest.raises(NotSeparable) as refuted:
                solve(problem)
            assert refuted.value.witness.is_proof()
