"""scikit-learn's own checks, and the places where users put an estimator."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import SkipTestWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

from keytokens import AttentionClassifier, KeyTokenClassifier


@parametrize_with_checks(
    [
        AttentionClassifier(),
        AttentionClassifier(counts="log", sink=0, class_weight="balanced"),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_scikit_learn_checks_of_the_text_front():
    with pytest.warns(SkipTestWarning, match="requires input"):  # scikit-learn has no texts to try: few checks remain
        checks = list(estimator_checks_generator(KeyTokenClassifier()))
    assert checks
    for estimator, check in checks:
        check(estimator)


@pytest.fixture(scope="module")
def texts():
    rng = np.random.RandomState(0)
    words = np.array(["plot", "film", "actor", "scene", "music", "story", "end", "time", "people"])
    labels = rng.randint(2, size=120)
    made = []
    for y in labels:
        some = rng.choice(words, 6).tolist()
        made.append(" ".join([*some, rng.choice(["good", "great"] if y else ["bad", "dull"])]))
    return made, np.where(labels == 1, "pos", "neg")


def test_pipeline_grid_search_and_clone(texts):
    X, y = texts
    search = GridSearchCV(
        make_pipeline(FunctionTransformer(), KeyTokenClassifier(max_tokens=50)),
        {"keytokenclassifier__ngrams": [(1, 1), (1, 2)], "keytokenclassifier__counts": ["raw", "binary"]},
        cv=2,
        error_score="raise",
    ).fit(X, y)
    assert search.best_score_ > 0.95
    assert clone(search.best_estimator_).get_params()["keytokenclassifier__max_tokens"] == 50
    assert cross_val_score(KeyTokenClassifier(), X, y, cv=3).min() > 0.95


def test_pandas_and_numpy_give_the_same_as_lists(texts):
    pandas = pytest.importorskip("pandas")
    X, y = texts
    expected = KeyTokenClassifier().fit(X, y.tolist()).predict_proba(X)
    for make in (np.array, pandas.Series, tuple):
        again = KeyTokenClassifier().fit(make(X), make(y)).predict_proba(make(X))
        np.testing.assert_array_equal(expected, again)
