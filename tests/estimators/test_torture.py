"""Numbers and texts at their limits: nothing hangs, warns or turns into NaN, and the status is true."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse

import keytokens as kt
from keytokens.training.loop import Status

from .bags.planted import planted

TEXTS = ["good film", "bad film", "fine plot", "dull plot"] * 5
LABELS = ["pro", "contra"] * 10
SIZES = [1e-320, 1e-200, 1e-150, 1e-9, 1e9, 1e75, 1e149]


def check(clf: Any, X: Any, names: tuple[str, ...]) -> None:
    """Finite parameters and probabilities, an objective that never rises, and a status that agrees with both."""
    for name in (*names, "intercept_", "history_"):
        assert np.isfinite(getattr(clf, name)).all(), name
    P = clf.predict_proba(X)
    assert_allclose(P.sum(axis=1), 1, atol=1e-12)
    assert (P >= 0).all()
    assert (np.diff(clf.history_) <= 0).all()
    assert len(clf.history_) == clf.n_iter_ + 1
    assert clf.status_ in {status.value for status in Status}
    assert (clf.status_ == Status.OUT_OF_STEPS.value) == (clf.n_iter_ == clf.max_iter)


def check_counts(X: Any, y: Any, weight: Any = None, **options: Any) -> kt.AttentionClassifier:
    clf = kt.AttentionClassifier(**options).fit(X, y, weight)
    check(clf, X, ("attention_", "values_", "mean_attention_", "class_counts_"))
    return clf


def check_texts(texts: list[str], labels: list[Any], **options: Any) -> kt.KeyTokenClassifier:
    clf = kt.KeyTokenClassifier(**options).fit(texts, labels)
    check(clf, texts, ("attention_", "values_", "mean_attention_", "class_counts_"))
    for text in (texts[0], texts[-1], "", kt.MASK, f"{kt.MASK * 3} {kt.MASK}", "never-seen"):
        e = clf.explain(text)
        assert 0 <= e.probability <= 1
        assert np.isfinite(e.logit)
        assert e.certificate.sentence
        for found in (e.sufficient, e.flip, e.flip_words):
            assert found.size == len(found.items) <= len(text)
            assert found.status != "minimum" or found.lower == found.size
    return clf


# Counts --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1e-30, 1e-9, 1e3, 1e6, 1e9])
def test_counts_of_every_size(size, dtype):
    rng = np.random.RandomState(0)
    X = rng.randint(0, 5, (20, 6)) * size
    check_counts(X.astype(dtype), LABELS)
    one = rng.randint(0, 5, (20, 6)).astype(dtype)
    one[::2, 0] = size
    check_counts(one, LABELS)
    check_counts(sparse.csr_matrix(one), LABELS)


@given(st.integers(0, 2**32 - 1), st.floats(0, 9), st.integers(2, 4))
def test_counts_that_differ_by_nine_orders(seed, orders, n_classes):
    rng = np.random.RandomState(seed)
    X = np.floor(10 ** rng.uniform(0, orders, (12, 5))) * (rng.rand(12, 5) < 0.5)
    check_counts(X, np.arange(12) % n_classes)


def test_degenerate_matrices():
    check_counts(np.zeros((20, 3)), LABELS)  # nothing to learn from
    check_counts(np.ones((20, 3)), LABELS)  # nothing tells the classes apart
    check_counts(np.arange(20.0)[:, None], LABELS)  # one feature: attention has no choice
    check_counts(np.eye(2), ["a", "b"])  # one document a class
    check_counts(np.eye(7), [f"class {i}" for i in range(7)])
    check_counts(np.eye(20), LABELS)  # every feature in one document only
    check_counts(np.random.RandomState(0).standard_normal((20, 4)) * 1e9, LABELS)  # either sign


@pytest.mark.parametrize("tol", [0.04, 1e-12])
def test_separable_data_has_a_minimum_all_the_same(tol):
    """The loss alone would send the parameters to infinity; with the prior the run ends, and is right everywhere."""
    X, y = np.repeat(np.eye(2), 500, axis=0), np.repeat([0, 1], 500)
    clf = check_counts(X, y, prior=kt.Prior(tol=tol), max_iter=1000)
    assert clf.status_.startswith("converged")
    assert clf.score(X, y) == 1


def test_contradictions_leave_even_odds():
    X = np.tile([[1.0, 0.0], [0.0, 1.0]], (10, 1))
    clf = check_counts(X, [0, 0, 1, 1] * 5)
    assert_allclose(clf.predict_proba(X), 0.5, atol=1e-12)


def test_an_empty_document_gets_the_odds_of_the_classes():
    """With or without a sink, a document that says nothing is as likely as its class is frequent, or so."""
    X, y = np.repeat(np.eye(2), [30, 10], axis=0), np.repeat([0, 1], [30, 10])
    assert_allclose(
        check_counts(X, y, prior=kt.Prior(sink=0)).predict_proba(np.zeros((1, 2))), [[0.75, 0.25]], atol=1e-6
    )
    assert check_counts(X, y).predict(np.zeros((1, 2))) == [0]


@pytest.mark.parametrize("size", [1e-300, 1e-100, 1e-9, 0.0, 1e9, 1e100])
def test_one_weight_unlike_the_others(size):
    X = np.random.RandomState(0).randint(0, 5, (20, 6)) * 1.0
    weight = np.ones(20)
    weight[3] = size
    clf = check_counts(X, LABELS, weight)
    if size == 0:  # as if the document were not there
        rest = np.arange(20) != 3
        alone = check_counts(X[rest], np.array(LABELS)[rest])
        assert_allclose(clf.decision_function(X), alone.decision_function(X), rtol=1e-6)
    if size >= 1e9:
        assert clf.predict(X)[3] == LABELS[3]


@pytest.mark.parametrize("size", [1e-100, 1e-30, 1e12, 1e30, 1e100])
def test_all_weights_very_small_or_large(size):
    check_counts(np.random.RandomState(0).randint(0, 5, (20, 6)) * 1.0, LABELS, np.full(20, size))


# The model at its limits ---------------------------------------------------------------------------------------------


# Texts ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "labels"),
    [
        pytest.param(["good", "bad"], ["a", "b"], id="one token, one document a class"),
        pytest.param([f"w{i}" for i in range(40)], [f"c{i}" for i in range(40)], id="forty classes, one document each"),
        pytest.param(["the same words"] * 20, LABELS, id="one text, both labels"),
        pytest.param(["good film", "bad film"] * 10, ["a", "b", "b", "a"] * 5, id="contradictory duplicates"),
        pytest.param(["", "good", "", "bad"], ["a", "a", "b", "b"], id="some are empty"),
        pytest.param([f"{kt.MASK} good", f"bad {kt.MASK}", kt.MASK], ["a", "b", "a"], id="masks"),
        pytest.param([f"u{i} v{i}" for i in range(300)], ["a", "b", "c"] * 100, id="every word occurs once"),
        pytest.param(["good film"] * 500 + ["bad film"] * 500, ["a"] * 500 + ["b"] * 500, id="separable"),
        pytest.param(["x" * 20_000, "y" * 20_000], ["a", "b"], id="very long words"),
        pytest.param(["bad"] + ["good"] * 999, ["a"] + ["b"] * 999, id="one against 999"),
    ],
)
def test_texts_of_every_kind(texts, labels):
    check_texts(texts, labels)


def test_a_long_text_and_many_words():
    """A hundred thousand tokens of two words in one text; a hundred thousand different words in another."""
    long, wide = "good plot " * 50_000, " ".join(f"w{i}" for i in range(100_000))
    clf = check_texts([long, wide, "dull plot", "good end"], ["a", "b", "b", "a"], ngrams=(1, 1))
    assert len(clf.vocabulary_.tokens) == 100_004
    assert clf.predict([long]) == ["a"]
    assert kt.KeyTokenClassifier(ngrams=(1, 1)).fit([long, wide], ["a", "b"]).predict([wide, long]).tolist() == [
        "b",
        "a",
    ]


# Bags of vectors -----------------------------------------------------------------------------------------------------


def check_bags(bags: Any, y: Any, probe: Any = (), weight: Any = None, **options: Any) -> kt.BagClassifier:
    clf = kt.BagClassifier(random_state=0, **options).fit(bags, y, weight)
    check(clf, bags, ("query_", "values_"))
    for bag in (*bags[:2], *probe):
        e = clf.explain(bag)
        assert np.isfinite(e.probability)
        assert e.sufficient is not None
        assert np.isfinite(clf.predict_proba([bag])).all()
    return clf


@pytest.mark.parametrize("features", ["rbf", "quadratic", "linear"])
@pytest.mark.parametrize("scale", [True, False])
def test_vectors_of_every_size(features, scale):
    rng = np.random.RandomState(0)
    options = {"features": features, "scale": scale}
    huge = [np.full((2, 3), 1e150), np.full((1, 3), -1e150)]
    bags, y = planted(30)
    for size in SIZES:
        check_bags([rng.standard_normal((rng.randint(1, 5), 3)) * size for _ in LABELS], LABELS, **options)
        large = [size * bag for bag in bags]
        clf = check_bags(large, y, **options)
        assert not scale or size < 1e-300 or clf.score(large, y) > 0.7
    ordinary = [rng.standard_normal((rng.randint(1, 5), 3)) for _ in LABELS]
    check_bags(ordinary, LABELS, probe=huge, **options)
    check_bags([np.array([[1e149, 0, 0]]), *ordinary[1:]], LABELS, **options)  # one far from all others
    check_bags([bag[:1] for bag in ordinary], LABELS, **options)  # one instance each
    check_bags([np.ones((1, 3))] * 20, LABELS, **options)  # nothing tells them apart
    check_bags([[[1.0]], [[2.0]]], ["a", "b"], **options)
    check_bags(ordinary, LABELS, weight=np.geomspace(1e-140, 1e140, 20), **options)
