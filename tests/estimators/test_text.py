"""The estimators: what users rely on, from labels of any kind to the same bits at any number of threads."""

import copy

import numpy as np
import pytest
from scipy import sparse

import keytokens as kt
from keytokens import text

from ..corpus import reviews, topics


@pytest.fixture(scope="module")
def two():
    texts, labels = reviews()
    return kt.KeyTokenClassifier().fit(texts, labels), texts, labels


@pytest.fixture(scope="module")
def four():
    texts, labels = topics()
    return kt.KeyTokenClassifier().fit(texts, labels), texts, labels


def test_it_learns(two, four):
    for clf, make in ((two[0], reviews), (four[0], topics)):
        texts, labels = make(seed=1)
        assert clf.score(texts, labels) > 0.9
        P = clf.predict_proba(texts)
        assert P.min() >= 0
        assert P.max() <= 1
        np.testing.assert_allclose(P.sum(axis=1), 1, atol=1e-12)
        np.testing.assert_array_equal(clf.predict(texts), clf.classes_[P.argmax(axis=1)])
        assert clf.status_.startswith("converged")
        assert len(clf.history_) == clf.n_iter_ + 1
        assert clf.history_[-1] < clf.history_[0]


@pytest.mark.parametrize(
    "rename", [{"pos": "yes", "neg": "no"}, {"pos": 1, "neg": 0}, {"pos": True, "neg": False}, {"pos": 7, "neg": -2}]
)
def test_labels_of_every_kind(rename):
    texts, labels = reviews(60)
    clf = kt.KeyTokenClassifier().fit(texts, [rename[y] for y in labels])
    assert clf.classes_.tolist() == sorted(rename.values())
    assert set(clf.predict(texts).tolist()) <= set(rename.values())
    assert type(clf.explain(texts[0]).label) is type(rename["pos"])


def test_the_text_front_is_the_array_core(two):
    _, texts, labels = two
    clf = kt.KeyTokenClassifier((1, 1)).fit(texts, labels)  # of single words: a matrix does not tell n-grams
    counts = text.count(texts, clf.vocabulary_).astype(np.float32)
    core = kt.AttentionClassifier().fit(counts, labels)
    np.testing.assert_array_equal(core.attention_, clf.attention_)
    np.testing.assert_array_equal(core.predict_proba(counts), clf.predict_proba(texts))


@pytest.mark.parametrize("sink", [0, 0.5])
@pytest.mark.parametrize("make", [reviews, topics])
def test_to_embeddings_gives_the_same_f(make, sink):
    texts, labels = make(80)
    clf = kt.KeyTokenClassifier(prior=kt.Prior(sink=sink)).fit(texts, labels)
    asked = [*texts, "nothing known"]
    for found in (clf.to_embeddings(16), clf.to_embeddings()):  # and the least dimension that can hold the model
        scores = found.scores(text.count(asked, clf.vocabulary_))
        np.testing.assert_allclose(scores, clf.decision_function(asked), atol=1e-12)
    assert found.E.shape == (len(clf.vocabulary_), len(clf.values_) + 1)
    with pytest.raises(kt.InputError, match="`dim` must be a whole number of at least"):
        clf.to_embeddings(len(clf.values_))


def test_sample_weight_counts_like_repetition():
    texts, labels = reviews(60)
    weight = np.random.RandomState(0).randint(0, 3, 60)
    repeated = [i for i, w in enumerate(weight) for _ in range(w)]
    # a text of weight 0 still lends its words to the vocabulary: give both fits the same one through the array core
    counts = text.build(texts, text.Limits()).matrix()
    y = np.array(labels)
    one = kt.AttentionClassifier(prior=kt.Prior(tol=1e-9)).fit(counts.astype(float), y, sample_weight=weight)
    two = kt.AttentionClassifier(prior=kt.Prior(tol=1e-9)).fit(counts[repeated].astype(float), y[repeated])
    np.testing.assert_allclose(one.decision_function(counts), two.decision_function(counts), atol=1e-4)


def test_class_weight_moves_the_decision():
    texts, labels = reviews(300)
    keep = [i for i, y in enumerate(labels) if y == "pos" or i % 10 == 0]
    texts, labels = [texts[i] for i in keep], [labels[i] for i in keep]
    models = [kt.KeyTokenClassifier(class_weight=rule) for rule in (None, "balanced", {"neg": 10, "pos": 1})]
    plain, balanced, given = (clf.fit(texts, labels).predict_proba(texts)[:, 0].mean() for clf in models)
    assert balanced > plain
    assert given > plain


def test_verbose_shows_a_bar(capsys):
    texts, labels = reviews(40)
    kt.KeyTokenClassifier(verbose=1).fit(texts, labels)
    assert capsys.readouterr().err == ""  # not a terminal: the bar stays away
    kt.KeyTokenClassifier(verbose=2).fit(texts, labels)
    assert "training" in capsys.readouterr().err


def test_texts_without_a_known_token(two):
    texts, labels = reviews(90)
    labels = ["pos" if i % 3 else "neg" for i in range(90)]
    for sink in (0, 0.5):
        clf = kt.KeyTokenClassifier(prior=kt.Prior(sink=sink)).fit(texts, labels)
        for odd in ("", "\x00", "zzz qqq", "...", "\ud800"):
            (p,) = clf.predict_proba([odd])
            assert np.isfinite(p).all()
            if sink == 0:
                np.testing.assert_allclose(p, [1 / 3, 2 / 3], atol=1e-6)  # the class frequencies
            assert clf.explain(odd).certificate.sentence.count("the model falls back on how common")
    assert two[0].predict([]).shape == (0,)


def test_key_tokens(two, four):
    for clf in (two[0], four[0]):
        found = clf.key_tokens(5)
        assert list(found) == clf.classes_.tolist()
        for records in found.values():
            scores = [record.contribution for record in records]
            assert scores == sorted(scores, reverse=True)
            assert all(record.contribution > 0 and sum(record.counts.values()) > 0 for record in records)
    assert {"great", "superb", "moving", "funny"} >= {r.token for r in two[0].key_tokens(3)["pos"]}


def test_key_tokens_are_mean_contributions(two):
    clf, texts, _ = two
    record = clf.key_tokens(1)["pos"][0]
    by_hand = [sum(t.contribution for t in clf.explain(one).tokens if t.text == record.token) for one in texts]
    assert record.contribution == pytest.approx(np.mean(by_hand), rel=1e-4)


def test_sparse_dense_and_signed_arrays():
    X = np.array([[2.0, 0, 1], [1, 0, 2], [0, 2, 1], [0, 1, 1]])
    y = [1, 1, 0, 0]
    dense = kt.AttentionClassifier().fit(X, y)
    thin = kt.AttentionClassifier().fit(sparse.csr_array(X), y)
    np.testing.assert_array_equal(dense.attention_, thin.attention_)
    assert not dense.signed_
    signed = kt.AttentionClassifier().fit(X - 1, y)
    assert signed.signed_
    assert signed.attention_.shape == (6,)
    assert signed.score(X - 1, y) == 1


def test_a_failed_fit_leaves_the_model_as_it_was(two):
    texts, labels = reviews(60)
    clf = kt.KeyTokenClassifier().fit(texts, labels)
    expected = clf.predict_proba(texts)
    with pytest.raises(kt.InputError):
        clf.fit(["...", ""], [0, 1])
    np.testing.assert_array_equal(clf.predict_proba(texts), expected)


def check_log_probabilities(clf, X):
    L, P = clf.predict_log_proba(X), clf.predict_proba(X)
    np.testing.assert_allclose(L, np.log(P), rtol=1e-10)
    np.testing.assert_array_equal(clf.classes_[L.argmax(axis=1)], clf.predict(X))


def test_log_probabilities_of_counts():
    X = np.array([[3, 0, 1], [2, 0, 2], [0, 2, 1], [0, 1, 1]] * 5)
    check_log_probabilities(kt.AttentionClassifier().fit(X, [1, 1, 0, 0] * 5), X)


@pytest.mark.parametrize("model", ["two", "four"])
def test_log_probabilities(model, request, tmp_path):
    """Exact where the probability itself rounds to 0 or to 1."""
    clf, texts, _ = request.getfixturevalue(model)
    check_log_probabilities(clf, texts)
    large = copy.copy(clf)
    large.values_, large.intercept_ = 1e6 * clf.values_, 1e6 * clf.intercept_
    large.save(tmp_path / "model")
    large = kt.load(tmp_path / "model")
    F, L = large.decision_function(texts), large.predict_log_proba(texts)
    assert np.isfinite(L).all()
    assert large.predict_proba(texts).min() == 0
    if F.ndim == 1:
        surely = np.abs(F) > 1000
        assert surely.any()
        np.testing.assert_array_equal(L[surely].min(axis=1), -np.abs(F[surely]))


@pytest.mark.parametrize("made", [reviews, topics])
def test_the_vocabulary_as_a_table(made):
    clf = kt.KeyTokenClassifier().fit(*made(100))
    found, classes = clf.to_frame(), clf.classes_.tolist()
    assert found["token"].tolist() == list(clf.vocabulary_.tokens)
    np.testing.assert_array_equal(found["attention"], clf.attention_)
    for label, n in zip(classes, clf.class_counts_, strict=True):
        np.testing.assert_array_equal(found[f"texts of {label}"], n)
    word, label = next((token.token, label) for label, tokens in clf.key_tokens(1).items() for token in tokens)
    row = found[found["token"] == word].iloc[0]
    if len(classes) > 2:
        assert row[f"value of {label}"] == max(row[f"value of {other}"] for other in classes)
    else:
        assert (row[f"value of {classes[1]}"] > 0) == (label == classes[1])
