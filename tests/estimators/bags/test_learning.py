"""What is learnt, from whatever form the bags come in."""

import numpy as np
import pytest

import keytokens as kt
from keytokens.model.features import FEATURES
from keytokens.model.ragged import Bags

from .planted import planted


@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize("classes", [2, 3, 4])
def test_learns_a_planted_problem(features, classes):
    bags, y = planted(240, classes=classes)
    test, truth = planted(120, seed=1, classes=classes)
    names = np.array(["a", "b", "c", "d"])
    clf = kt.BagClassifier(features=features, random_state=0).fit(bags, names[y])
    assert clf.score(test, names[truth]) > 0.85
    assert clf.predict_proba(test).shape == (120, classes)
    np.testing.assert_array_equal(clf.predict(test), clf.classes_[clf.predict_proba(test).argmax(axis=1)])


def test_ragged_and_stacked_agree():
    rng = np.random.RandomState(0)
    X, y = rng.standard_normal((30, 5, 3)), np.arange(30) % 2
    X[y == 1, 0] += 2
    one, other = (kt.BagClassifier(random_state=0).fit(data, y) for data in (X, list(X)))
    np.testing.assert_array_equal(one.decision_function(X), other.decision_function(X.tolist()))
    ragged = np.empty(30, object)
    ragged[:] = list(X)
    np.testing.assert_array_equal(one.decision_function(X), one.decision_function(ragged))
    np.testing.assert_array_equal(one.decision_function(X), one.decision_function(Bags.of(X)))


def test_a_table_is_bags_of_one_instance_each():
    rng = np.random.RandomState(0)
    X, y = rng.standard_normal((40, 3)), np.arange(40) % 2
    table, bags = (kt.BagClassifier(random_state=0).fit(data, y) for data in (X, X[:, None, :]))
    np.testing.assert_array_equal(table.decision_function(X), bags.decision_function(X[:, None, :]))


def test_an_iterator_of_bags_will_do(fitted):
    clf, bags, y = fitted
    again = kt.BagClassifier(random_state=0).fit(iter(bags), y)
    np.testing.assert_array_equal(again.decision_function(iter(bags)), clf.decision_function(bags))


def test_order_within_a_bag_does_not_matter(fitted):
    clf, bags, _ = fitted
    np.testing.assert_allclose(
        clf.decision_function(bags), clf.decision_function([bag[::-1] for bag in bags]), rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("options", [{}, {"n_landmarks": 30}, {"head": "tanh"}, {"n_starts": 3, "n_landmarks": 30}])
def test_same_seed_same_bits(options):
    bags, y = planted()
    runs = [kt.BagClassifier(random_state=5, **options).fit(bags, y).decision_function(bags) for _ in range(2)]
    np.testing.assert_array_equal(*runs)


def test_weights_are_repetitions():
    bags, y = planted(30)
    weight = np.arange(30) % 3
    twice = np.repeat(np.arange(30), weight)
    for options in ({}, {"class_weight": "balanced"}, {"class_weight": {0: 2.0, 1: 1.0}}):
        one = kt.BagClassifier(tol=1e-12, **options).fit(bags, y, sample_weight=weight)
        other = kt.BagClassifier(tol=1e-12, **options).fit([bags[i] for i in twice], y[twice])
        np.testing.assert_allclose(one.decision_function(bags), other.decision_function(bags), atol=1e-3)


def test_a_failed_fit_leaves_the_model(fitted):
    _, bags, y = fitted
    clf = kt.BagClassifier(random_state=0).fit(bags, y)
    before = clf.decision_function(bags)
    with pytest.raises(kt.InputError):
        clf.fit([np.ones((2, 7)), np.ones((2, 7))], [1, 1])
    np.testing.assert_array_equal(clf.decision_function(bags), before)


def test_progress_bar(capsys):
    bags, y = planted(20)
    kt.BagClassifier(verbose=2, max_iter=3).fit(bags, y)
    assert "training" in capsys.readouterr().err


def test_equal_instances_everywhere():
    X, y = np.ones((6, 2, 3)), [0, 1] * 3
    for features in FEATURES:
        np.testing.assert_allclose(kt.BagClassifier(features=features).fit(X, y).predict_proba(X), 0.5, atol=1e-6)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("head", ["linear", "tanh"])
def test_log_probabilities(classes, head):
    """Finite where the probability itself rounds to 0."""
    bags, y = planted(60, classes=classes)
    clf = kt.BagClassifier(features="linear", head=head, random_state=0).fit(bags, y)
    np.testing.assert_allclose(clf.predict_log_proba(bags), np.log(clf.predict_proba(bags)), rtol=1e-10, atol=1e-15)
    clf.values_, clf.head_values_ = clf.values_ * 1e5, clf.head_values_ * 1e5
    L = clf.predict_log_proba(bags)
    assert clf.predict_proba(bags).min() == 0
    assert np.isfinite(L).all()
    assert L.min() < -1000
