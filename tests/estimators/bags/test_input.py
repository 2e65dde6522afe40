"""Bad input: one line that says who, which argument, the rule, what was seen."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import keytokens as kt

GOOD = [np.ones((2, 3)), np.zeros((1, 3)), np.ones((3, 3)), np.zeros((2, 3))]
LABELS = [1, 0, 1, 0]


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([np.ones((2, 3)), np.ones((2, 4))], [0, 1], "`X[1]` must have shape (instances, d), the same d for all bags"),
        ([np.ones((2, 3)), np.ones((0, 3))], [0, 1], "`X[1]` must hold at least one instance"),
        ([np.ones((2, 3)), np.array([[1, np.nan, 0]])], [0, 1], "`X[1][0, 1]` must be finite; saw nan"),
        ([np.ones((2, 3)), np.array([[1, np.inf, 0]])], [0, 1], "`X[1][0, 1]` must be finite; saw inf"),
        ([np.ones((2, 3)), np.full((1, 3), 1e308)], [0, 1], "`X[1]` must have entries up to 1e+150"),
        (np.full((2, 3), 1e308), [0, 1], "`X` must have entries up to 1e+150"),
        ([np.ones((2, 3)), [["a", "b", "c"]]], [0, 1], "`X` must be numbers"),
        ([], [], "`X` must hold at least one bag"),
        (GOOD, [1, 0, 1], "`y` must have one label for each of the 4 bags; saw shape (3,)"),
        (GOOD, [1, 1, 1, 1], "`y` must have at least two classes; saw one class only, 1"),
        (GOOD, [1, 0, np.nan, 0], "`y` must be labels of classes: strings, integers or booleans; saw a missing label"),
        (GOOD, [0.5, 0.25, 1, 0], "`y` must be labels of classes: strings, integers or booleans; saw Unknown label"),
        (GOOD, ["a", None, "b", "a"], "`y` must be labels of classes"),
        (GOOD, [[1, 0]] * 4, "`y` must have one label for each of the 4 bags; saw shape (4, 2)"),
        (
            np.array([[1.0, 2], [np.nan, 4]]),
            [0, 1],
            "`X[1, 0]` must be finite; saw nan. Cure: fill or drop",
        ),
        (np.array([[1.0, 2], [3, -np.inf]]), [0, 1], "`X[1, 1]` must be finite; saw -inf"),
    ],
)
def test_bad_bags_and_labels(X, y, message):
    with pytest.raises(kt.InputError) as refused:
        kt.BagClassifier().fit(X, y)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("weight", [[1, 1], [1, -1, 1, 1], [1, np.nan, 1, 1], [0, 0, 0, 0], "heavy", [[1], [2]]])
def test_bad_sample_weight(weight):
    with pytest.raises(kt.InputError, match="`sample_weight` must be 4 finite numbers, none negative and not all zero"):
        kt.BagClassifier().fit(GOOD, LABELS, sample_weight=weight)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"features": "cubic"}, "`features` must be one of 'rbf', 'quadratic', 'linear'; saw 'cubic'"),
        ({"head": "relu"}, "`head` must be one of 'linear', 'tanh'"),
        ({"width": 0}, "`width` must be a finite number above 0"),
        ({"value_penalty": -1}, "`value_penalty` must be a finite number above 0"),
        ({"attention_penalty": np.nan}, "`attention_penalty` must be"),
        ({"n_landmarks": 1.5}, "`n_landmarks` must be a whole number of at least 1"),
        ({"n_starts": 0}, "`n_starts` must be a whole number"),
        ({"scale": "yes"}, "`scale` must be True or False"),
        ({"class_weight": "heavy"}, "`class_weight` must be one of 'balanced'"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(kt.InputError) as refused:
        kt.BagClassifier(**options).fit(GOOD, LABELS)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    "more",
    [{"sample_weight": [1e308] * 4}, {"sample_weight": [1e200, 1, 1, 1]}],
)
def test_weights_must_add_up(more):
    with pytest.raises(kt.InputError, match=r"must be at least 0 and add up to at most 1e\+150, not to 0"):
        kt.BagClassifier().fit(GOOD, LABELS, **more)
    for weights in ((1e308, 1e308), (0, 0), (-1, 1)):
        with pytest.raises(kt.InputError, match="`sample_weight and class_weight` must be at least 0"):
            kt.BagClassifier(class_weight=dict(enumerate(weights))).fit(GOOD, LABELS)


def test_a_failed_training_is_never_returned():
    with pytest.raises(kt.InputError, match="`penalties and weights` must give a finite objective; saw inf"):
        kt.BagClassifier(head="tanh", value_penalty=1e308, random_state=0).fit(GOOD, LABELS)


@pytest.mark.parametrize("ask", ["predict", "predict_proba", "decision_function", "attention", "selected"])
@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([np.ones((2, 3))], "`X` must have 4 features an instance, as in training; saw 3 features"),
        ([np.ones((2, 4)), np.ones((0, 4))], "`X[1]` must hold at least one instance; saw 'an empty bag'"),
        ([np.ones((2, 4)), np.ones((2, 3))], "`X[1]` must have shape (instances, d), the same d for all bags"),
        ([np.full((1, 4), np.nan)], "`X[0][0, 0]` must be finite; saw nan"),
        ([np.full((1, 4), 1e308)], "`X[0]` must have entries up to 1e+150; saw 1e+308"),
        (np.full((1, 4), np.inf), "`X[0, 0]` must be finite; saw inf"),
        (np.full((1, 4), 1e308), "`X` must have entries up to 1e+150; saw 1e+308"),
        ([], "`X` must hold at least one bag"),
        ("a text", "`X` must be numbers"),
        (7, "`X` must be numbers"),
        (None, "`X` must be numbers"),
    ],
)
def test_bad_bags_to_a_model(fitted, ask, X, message):
    with pytest.raises(kt.InputError) as refused:
        getattr(fitted[0], ask)(X)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("bag", "message"),
    [
        (np.ones((0, 4)), "explain: `X[0]` must hold at least one instance"),
        (np.ones((2, 3)), "explain: `X` must have 4 features an instance, as in training; saw 3 features"),
        (np.full((1, 4), np.nan), "explain: `X[0][0, 0]` must be finite; saw nan"),
        (np.full((1, 4), 1e308), "explain: `X[0]` must have entries up to 1e+150"),
        ([["a", "b", "c", "d"]], "explain: `bag` must be one bag of numbers, an array (T, d)"),
        (np.ones(4), "explain: `bag` must be one bag, an array (T, d); saw 1 dimensions"),
    ],
)
def test_bad_bags_to_explain(fitted, bag, message):
    with pytest.raises(kt.InputError) as refused:
        fitted[0].explain(bag)
    assert message in str(refused.value)


def test_bad_questions(fitted):
    clf, _, _ = fitted
    with pytest.raises(kt.InputError, match="`X` must have 4 features an instance, as in training; saw 3 features"):
        clf.predict(GOOD)
    with pytest.raises(kt.InputError, match=r"explain: `bag` must be one bag, an array \(T, d\); saw 3 dimensions"):
        clf.explain(np.ones((1, 2, 4)))
    with pytest.raises(kt.InputError, match="explain: `bag`"):
        clf.explain([[1, 2, 3, 4], [1, 2]])
    with pytest.raises(kt.InputError, match="`X` must"):
        clf.predict(["a text"])
    with pytest.raises(NotFittedError):
        kt.BagClassifier().predict(GOOD)
    with pytest.raises(NotFittedError):
        kt.BagClassifier().explain(np.ones((1, 2)))
