"""The map of one instance, attention, pooling and head, and the gradient of it all."""

import numpy as np
import pytest
from scipy import optimize

from keytokens.model.features import FEATURES, FeatureMap
from keytokens.model.losses import loss_for, probabilities
from keytokens.model.pooling import HEADS, Shape, Weights, backward, forward, objective_of
from keytokens.model.ragged import Bags
from keytokens.training.bags import Training, first_weights

from .planted import planted


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("classes", [2, 3])
def test_gradient_by_finite_differences(head, classes):
    bags, y = planted(12, classes=classes)
    data, rng = Bags.of(bags), np.random.RandomState(1)
    shape = Shape.of(4, classes, head, 3)
    size = 4 + 4 * shape.h + shape.h + shape.m * shape.h + shape.m
    penalties = Weights.unpack(rng.uniform(0.1, 1, size), *shape)
    objective = objective_of(data, y, rng.uniform(0, 2, len(y)), loss_for(classes), shape, penalties)
    theta = rng.standard_normal(size)
    _, gradient = objective(theta)
    step = 1e-6
    numeric = [(objective(theta + step * e)[0] - objective(theta - step * e)[0]) / (2 * step) for e in np.eye(size)]
    np.testing.assert_allclose(gradient, numeric, rtol=1e-6, atol=1e-6)


def test_forward_is_the_formula_bag_by_bag():
    bags, _ = planted(6)
    rng = np.random.RandomState(0)
    w = Weights(rng.standard_normal(4), rng.standard_normal((1, 4)), np.array([0.3]), np.zeros((0, 1)), np.zeros(0))
    found = forward(Bags.of(bags), w)
    for i, X in enumerate(bags):
        s = np.exp(X @ w.q) / np.exp(X @ w.q).sum()
        assert found.scores[0, i] == pytest.approx((X @ w.V[0]) @ s + 0.3)
    assert backward(Bags.of(bags), w, found, np.zeros((1, 6))).pack().tolist() == [0.0] * 9


@pytest.mark.parametrize("kind", FEATURES)
def test_feature_map_is_centred_and_of_length_one(kind):
    rng = np.random.RandomState(0)
    rows = rng.standard_normal((50, 3)) * [1, 1e-3, 1e5] + 7
    phi, features = FeatureMap.learn(Bags.of([rows]), np.ones(50), kind, True, 20, 1.0, rng)
    np.testing.assert_allclose(phi(rows), features, atol=1e-7)
    np.testing.assert_allclose(features.mean(axis=0), 0, atol=1e-9)
    assert (features**2).sum(axis=1).mean() == pytest.approx(1)


def test_rbf_features_have_the_kernel_as_product():
    rng = np.random.RandomState(0)
    rows = rng.standard_normal((30, 2))
    phi, _ = FeatureMap.learn(Bags.of([rows]), np.ones(30), "rbf", False, 100, 1.5, rng)
    raw = phi(rows) + phi.centre
    K = np.exp(-1.5 / 2 * ((rows[:, None] - rows[None]) ** 2).sum(axis=2))
    np.testing.assert_allclose((raw @ raw.T) / (raw[0] @ raw[0]), K, atol=1e-5)


@pytest.mark.parametrize("classes", [2, 3])
def test_training_starts_at_the_prior_odds(classes):
    """The first start gives every bag the shares of the classes, weights included."""
    _, y = planted(30, classes=classes)
    weight = 1.0 + np.arange(30) % 4
    for head in HEADS:
        shape = Shape.of(4, classes, head, 3)
        w = first_weights(shape, y, weight, 1, np.random.RandomState(0))[0]
        scores = w.e if w.linear else w.c
        shares = np.bincount(y, weight) / weight.sum()
        np.testing.assert_allclose(probabilities(scores[:, None])[:, 0], shares)


def test_the_best_of_several_runs_is_kept():
    bags, y = planted(30)
    data, weight, shape = Bags.of(bags), np.ones(30), Shape(4, 1, 0)
    training = Training(shape, 0.03, 0.1, 50, 1e-6)
    starts = first_weights(shape, y, weight, 4, np.random.RandomState(3))
    best, history = training.best(data, y, weight, 2, starts)
    ends = [training.best(data, y, weight, 2, [start])[0].state.value for start in starts]
    assert best.state.value == min(ends) == history[-1]
    assert len(set(ends)) > 1


def test_training_finds_the_optimum_that_scipy_finds():
    """Without attention to learn (one instance a bag) the problem is ridge logistic regression, which is convex."""
    rng = np.random.RandomState(0)
    X, y = rng.standard_normal((40, 3)), np.arange(40) % 2
    X[y == 1, 0] += 1
    shape, bags = Shape(3, 1, 0), Bags.of(X[:, None, :])
    start = first_weights(shape, y, np.ones(40), 1, rng)
    found = Training(shape, 0.5, 0.1, 500, 1e-14).best(bags, y, np.ones(40), 2, start)[0].state

    def objective(theta):
        return np.logaddexp(0, np.where(y, -1, 1) * (X @ theta[:3] + theta[3])).sum() + 0.25 * theta[:3] @ theta[:3]

    other = optimize.minimize(objective, np.zeros(4), method="BFGS", options={"gtol": 1e-9})
    assert found.value == pytest.approx(other.fun, rel=1e-9)
    np.testing.assert_allclose(found.theta[3:], other.x, atol=1e-4)
