"""scikit-learn's own checks, and the places where users put an estimator."""

import os
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import SkipTestWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import estimator_checks_generator

from keytokens import AttentionClassifier, BagClassifier, KeyTokenClassifier, Prior

from ..corpus import reviews
from .bags.planted import planted

MODELS = [
    AttentionClassifier(),
    AttentionClassifier(counts="log", prior=Prior(sink=0), class_weight="balanced"),
    BagClassifier(),
    BagClassifier(features="linear", class_weight="balanced"),
    BagClassifier(features="quadratic", head="tanh", random_state=0),
]
# It skips itself unless SCIPY_ARRAY_API is set before scipy is imported: it runs in a process of its own.
ELSEWHERE = "check_array_api_input"
ALONE = f"""
from sklearn.utils.estimator_checks import estimator_checks_generator
from keytokens import AttentionClassifier, BagClassifier
for model in (AttentionClassifier(), BagClassifier()):
    for estimator, check in estimator_checks_generator(model):
        if check.func.__name__ == "{ELSEWHERE}":
            check(estimator)
            print("passed")
"""


def name_of(check):
    return getattr(check, "func", check).__name__


CHECKS = [
    pytest.param(estimator, check, id=f"{type(model).__name__}-{number}-{name_of(check)}")
    for number, model in enumerate(MODELS)
    for estimator, check in estimator_checks_generator(model)
    if name_of(check) != ELSEWHERE
]


@pytest.mark.parametrize("estimator, check", CHECKS)
def test_scikit_learn_checks(estimator, check):
    """On tables, of which each row is a document's counts, or a bag of one instance."""
    check(estimator)


def test_the_check_that_needs_an_environment():
    """Older releases of scikit-learn have no such check for estimators that do not claim array API support."""
    checks = [name_of(check) for model in (MODELS[0], MODELS[2]) for _, check in estimator_checks_generator(model)]
    ended = subprocess.run(
        [sys.executable, "-c", ALONE], env=os.environ | {"SCIPY_ARRAY_API": "1"}, capture_output=True, text=True
    )
    assert (ended.returncode, ended.stdout) == (0, "passed\n" * checks.count(ELSEWHERE)), ended.stderr


def test_scikit_learn_checks_of_the_text_front():
    with pytest.warns(SkipTestWarning, match="requires input"):  # scikit-learn has no texts to try: few checks remain
        checks = list(estimator_checks_generator(KeyTokenClassifier()))
    assert checks
    for estimator, check in checks:
        check(estimator)


@pytest.fixture(scope="module")
def texts():
    texts, labels = reviews(120)
    return texts, np.array(labels)


def test_pipeline_grid_search_and_clone(texts):
    X, y = texts
    search = GridSearchCV(
        make_pipeline(FunctionTransformer(), KeyTokenClassifier(max_tokens=50)),
        {"keytokenclassifier__ngrams": [(1, 1), (1, 2)], "keytokenclassifier__counts": ["raw", "binary"]},
        cv=2,
        error_score="raise",
    ).fit(X, y)
    assert search.best_score_ > 0.85
    assert clone(search.best_estimator_).get_params()["keytokenclassifier__max_tokens"] == 50
    assert cross_val_score(KeyTokenClassifier(), X, y, cv=3).min() > 0.85


def test_cross_validation_and_grid_search_of_bags():
    bags, y = planted(60)
    assert cross_val_score(BagClassifier(width=1.0), bags, y, cv=3).mean() > 0.8
    search = GridSearchCV(BagClassifier(), {"width": [0.5, 1.0]}, cv=2, error_score="raise").fit(bags, y)
    assert search.best_score_ > 0.8


# The prior, an option with options of its own ------------------------------------------------------------------------


def test_grid_search_over_the_prior(texts):
    X, y = texts
    for prior in (None, Prior(spread=2.0)):
        search = GridSearchCV(KeyTokenClassifier(prior=prior), {"prior__ratio": [0.0, 1.5]}, cv=2, error_score="raise")
        best = search.fit(X, y).best_estimator_
        assert best.prior.ratio == search.best_params_["prior__ratio"]
        assert best.prior.spread == (1.6 if prior is None else 2.0)
    assert prior.ratio == 1.5, "the one that was given is never written to"


@pytest.mark.parametrize("kind", [AttentionClassifier, KeyTokenClassifier])
def test_a_prior_that_is_none_has_the_defaults(kind):
    clf = kind()
    usual = {f"prior__{name}": value for name, value in Prior().get_params().items()}
    assert usual.items() <= clf.get_params().items()
    assert not usual.keys() & clf.get_params(deep=False).keys()
    assert clf.set_params(prior__sink=0, brevity=0.1) is clf
    assert vars(clf.prior) == vars(Prior(sink=0))
    assert clf.set_params(prior=None).prior is None
    assert vars(clf.set_params(prior=Prior(ratio=2), prior__sink=1).prior) == vars(Prior(ratio=2, sink=1))
    assert vars(clf.set_params(prior=None, prior__tol=1).prior) == vars(Prior(tol=1)), "the old one is gone"
    with pytest.raises(ValueError, match="Invalid parameter 'sinks' for estimator Prior"):
        kind().set_params(prior__sinks=0)


def test_a_prior_that_is_given_counts_as_the_same_numbers(texts):
    X, y = texts
    usual, given, other = (KeyTokenClassifier(prior=p).fit(X, y) for p in (None, Prior(), Prior(0.5, 2, 0, 4, 0.01)))
    np.testing.assert_array_equal(usual.predict_proba(X), given.predict_proba(X))
    set_one_by_one = KeyTokenClassifier().set_params(
        prior__ratio=0.5, prior__spread=2, prior__sink=0, prior__attention_penalty=4, prior__tol=0.01
    )
    np.testing.assert_array_equal(other.predict_proba(X), set_one_by_one.fit(X, y).predict_proba(X))
    assert not np.array_equal(other.predict_proba(X), usual.predict_proba(X))
    assert other.log_sink_ == -np.inf
    assert other.n_iter_ > usual.n_iter_


def test_clone_and_repr_of_a_prior():
    clf = KeyTokenClassifier(prior=Prior(ratio=2))
    again = clone(clf)
    assert again.prior is not clf.prior
    assert again.flat_params() == clf.flat_params()
    assert repr(again) == "KeyTokenClassifier(prior=Prior(ratio=2))"
    assert repr(clone(KeyTokenClassifier())) == "KeyTokenClassifier()"
