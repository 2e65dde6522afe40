"""Cross-attention against finite differences, against one long p on the products x z', and against 80 digits."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from keytokens.base.errors import InputError
from keytokens.lab.problems.heads import Linear, Quadratic, Tanh
from keytokens.lab.problems.logits import cross_logits, outer_keys, queries_of
from keytokens.lab.problems.problem import Problem
from keytokens.lab.problems.scores import scores_of
from keytokens.model.ragged import Bags

from .test_losses import each_loss
from .test_problem import blocks_match_differences, pairs_80, random_bags


def cross_data(seed: int, e: int = 3):
    values, scores = random_bags(seed)
    return values, np.random.default_rng(seed + 100).normal(size=(len(values), e)), scores


def test_logits_are_those_of_each_bag_alone():
    values, queries, _ = cross_data(0)
    W = np.random.default_rng(0).normal(size=(4, 3))
    plain = np.concatenate([values[i] @ W @ queries[i] for i in range(len(values))])
    assert_allclose(cross_logits(values, W, queries), plain, atol=1e-13)
    assert_allclose(outer_keys(values, queries).rows @ W.ravel(), plain, atol=1e-13)


@each_loss
@pytest.mark.parametrize("seed", range(3))
def test_gradients_are_finite_differences(loss, seed):
    values, queries, scores = cross_data(seed)
    rng = np.random.default_rng(seed)
    W, v, labels = rng.normal(size=(4, 3)), rng.normal(size=4), np.array([1, -1, -1, 1])
    blocks_match_differences(Problem.cross(values, queries, scores, loss), (W,))
    blocks_match_differences(Problem.cross_joint(values, queries, labels, loss), (v, W))
    for head in (Tanh(v), Quadratic(v, 0.7)):
        blocks_match_differences(Problem.under(values, queries, labels, head, loss), (W,))


@each_loss
@pytest.mark.parametrize("norm", [1.0, 1e3, 1e6])
def test_W_is_one_long_p(loss, norm):
    values, queries, scores = cross_data(4)
    W = np.random.default_rng(4).normal(size=(4, 3))
    W *= norm / np.linalg.norm(W)
    keys = outer_keys(values, queries)
    problem, long = Problem.cross(values, queries, scores, loss), Problem.of(keys, scores, loss)
    reading, other = problem.read((W,)), long.read((W.ravel(),))
    (down,), (same,) = problem.descent(reading, (W,)), long.descent(other, (W.ravel(),))
    assert_allclose(down.unit.ravel(), same.unit, atol=1e-14 * norm)
    assert problem.gap(reading).log == pytest.approx(long.gap(other).log, abs=1e-13 * norm)
    direction, log_size = pairs_80(keys, scores, loss, W.ravel())
    assert_allclose(down.unit.ravel(), direction, atol=1e-13 * norm)
    assert down.log == pytest.approx(log_size, rel=1e-13, abs=1e-13 * norm)


def test_the_joint_problem_is_that_of_products_as_keys():
    values, queries, _ = cross_data(5)
    rng, labels = np.random.default_rng(5), np.array([1, -1, 1, -1])
    v, W = 900 * rng.normal(size=4), 900 * rng.normal(size=(4, 3))
    problem, long = (
        Problem.cross_joint(values, queries, labels),
        Problem.joint(labels, values, outer_keys(values, queries)),
    )
    reading, other = problem.read((v, W)), long.read((v, W.ravel()))
    for down, same in zip(problem.descent(reading, (v, W)), long.descent(other, (v, W.ravel())), strict=True):
        assert_allclose(down.unit.ravel(), same.unit, atol=1e-11)
        assert down.log == pytest.approx(same.log, abs=1e-9)
    assert problem.gap(reading).log == pytest.approx(long.gap(other).log, abs=1e-9)
    assert problem.shapes == ((4,), (4, 3))


@pytest.mark.parametrize("norm", [1.0, 1e4])
def test_a_linear_head_gives_fixed_scores(norm):
    values, queries, _ = cross_data(6)
    rng, labels = np.random.default_rng(6), np.array([1, -1, -1, 1])
    v, W = rng.normal(size=4), norm * rng.normal(size=(4, 3))
    under = Problem.under(values, queries, labels, Linear(v))
    fixed = Problem.cross(values, queries, scores_of(labels, values, v))
    (down,), (same,) = (problem.descent(problem.read((W,)), (W,)) for problem in (under, fixed))
    assert_allclose(down.unit, same.unit, atol=1e-10)
    assert down.log == pytest.approx(same.log, rel=1e-10)


def test_a_head_is_that_of_the_head_problem_on_products():
    values = Bags.of([[[1.0, 0.2], [0.1, 0.3], [-0.5, 0.4]], [[0.9, -0.3], [0.2, 0.0], [0.1, 1.0]]])
    queries, W = np.array([[1.0, 0.5], [-0.3, 1.0]]), np.array([[0.4, -0.2], [0.3, 0.6]])
    head = Tanh(np.array([1.0, 0.1]))
    cross = Problem.under(values, queries, np.ones(2), head)
    long = Problem.with_sets([1, 1], values, head, outer_keys(values, queries))
    (down,), (same,) = cross.descent(cross.read((W,)), (W,)), long.descent(long.read((W.ravel(),)), (W.ravel(),))
    assert_allclose(down.plain.ravel(), same.plain, rtol=1e-10)
    with pytest.raises(InputError, match="`head` must know the loss in the limit"):
        cross.gap(cross.read((W,)))


def test_every_gradient_lies_in_the_span():
    values, queries, scores = cross_data(7, e=6)  # four queries in six dimensions: the span is not everything
    problem = Problem.cross(values, queries, scores)
    W = np.random.default_rng(7).normal(size=(4, 6))
    flat = problem.descent(problem.read((W,)), (W,))[0].unit.ravel()
    assert problem.span is not None
    assert len(problem.span) < 24
    assert_allclose(problem.span.T @ (problem.span @ flat), flat, atol=1e-12)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda x: Problem.cross(x, np.ones((2, 2)), np.ones(2)), "Problem.cross: `queries` must be a matrix with one"),
        (lambda x: Problem.cross(x, np.ones((1, 0)), np.ones(2)), "saw 'shape \\(1, 0\\)'"),
        (lambda x: Problem.under(x, [[1.0]], [0], Linear(np.ones(1))), "Problem.under: `labels` must be -1"),
        (lambda x: queries_of("me", None, 1), "me: `queries` must be a matrix"),
        (
            lambda x: Problem.cross(x, [[1.0]], np.ones(2), "logistic"),
            "Problem.cross: `loss` must be a loss of a margin",
        ),
        (lambda x: Problem.cross_joint(x, [[1.0]], [1], None), "Problem.cross_joint: `loss` must be a loss"),
        (lambda x: Problem.under(x, [[1.0]], [1], np.ones(1)), "Problem.under: `head` must be a Head"),
        (lambda x: outer_keys(x, np.ones((4, 1))), "outer_keys: `queries` must be a matrix with one row for each"),
        (
            lambda x: Problem.cross(x, [[1.0]], np.ones(2)).read((np.ones((2, 1)),)),
            r"cross_logits: `W` must be a matrix of shape \(1, 1\).*; saw 'shape \(2, 1\)'",
        ),
    ],
)
def test_refusals(make, message):
    with pytest.raises(InputError, match=message):
        make(Bags.of([[[1.0], [2.0]]]))
