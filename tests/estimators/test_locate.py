"""Texts explained together are explained as each alone, to the bit."""

import copy
import gc
import itertools
import pickle
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import keytokens as kt
from keytokens.estimators.locate import MANY, SOME
from keytokens.model.attention import holding_half, least_holding_half

from ..corpus import reviews, topics

PIECES = st.sampled_from(
    ["great", "dull", "a film", "not awful", "<br />", "é", "我", "!!", "\n", "zzz", kt.MASK, ", "]
)
TEXTS = st.lists(st.lists(PIECES, max_size=8).map(" ".join), max_size=9)


@pytest.fixture(scope="module")
def models():
    options = [{}, {"prior": kt.Prior(sink=0), "counts": "log"}, {"ngrams": (1, 3), "min_df": 1, "counts": "binary"}]
    return [kt.KeyTokenClassifier(**one).fit(*reviews(150)) for one in options] + [
        kt.KeyTokenClassifier().fit(*topics(150))
    ]


@given(texts=TEXTS)
def test_many_are_each(models, texts):
    """Plain texts and others are read apart, and come back in their order."""
    for clf in models:
        together = list(clf.explain_many(texts))
        assert [one.text for one in together] == texts
        for text, one in zip(texts, together, strict=True):
            assert one.to_dict(words=False) == clf.explain(text).to_dict(words=False)


def test_sets_of_words_and_long_lists(models):
    texts = reviews(MANY + SOME + 3, seed=5)[0]
    clf = models[0]
    together = list(clf.explain_many(texts))
    assert [one.to_dict(words=False) for one in clf.explain_many(iter(texts))] == [
        one.to_dict(words=False) for one in together
    ]
    assert [one.label for one in together] == clf.predict(texts).tolist()
    assert [one.probability for one in together] == clf.predict_proba(texts).max(axis=1).tolist()
    for text, one in list(zip(texts, together, strict=True))[::20]:
        assert one.to_dict() == clf.explain(text).to_dict()


def test_one_of_many_is_stored_without_the_others(models):
    for clf in models:
        texts = [*reviews(40)[0], "", "zzz", "é, a great film"]
        for one in list(clf.explain_many(texts))[-6:]:
            stored = pickle.dumps(one)
            assert len(stored) < len(pickle.dumps(one.documents.words)) + len(pickle.dumps(one.documents.values))
            for again in (pickle.loads(stored), copy.copy(one), kt.Explanation(one.documents.only(one.index))):
                assert again.to_dict() == one.to_dict()
            proof = pickle.loads(pickle.dumps(one.certificate))
            assert proof.to_dict() == one.certificate.to_dict()


def test_what_was_read_is_freed_at_once(models):
    """No circle of references: in a long stream nothing waits for the collector."""
    gc.collect()
    gc.disable()
    try:
        for clf in models:
            e = clf.explain("a great film, not an awful one; great!")
            e.to_dict()
            gone = weakref.ref(e), weakref.ref(e.documents)
            del e
            assert [one() for one in gone] == [None, None]
    finally:
        gc.enable()


@given(st.lists(st.lists(st.integers(1, 6), min_size=1, max_size=9), min_size=1, max_size=5))
def test_half_of_the_attention(inputs):
    """Fewest that hold half, by trying every number of the largest ones; each input as if it were alone."""
    ends = [0, *itertools.accumulate(map(len, inputs))]
    least = least_holding_half(np.array([x for one in inputs for x in one], float), ends)
    for one, last in zip(inputs, least.tolist(), strict=True):
        largest = sorted(one, reverse=True)
        fewest = next(k for k in range(1, len(one) + 1) if 2 * sum(largest[:k]) >= sum(one))
        assert last == largest[fewest - 1]
        assert holding_half(np.array(one, float)).tolist() == [x >= last for x in one]


def test_it_is_lazy(models):
    """An endless source: no more texts are taken than are read together."""
    taken = []

    def endless():
        for i in itertools.count():
            taken.append(i)
            yield f"a great film {i}"

    first = next(models[0].explain_many(endless()))
    assert first.text == "a great film 0"
    assert len(taken) == SOME


def test_one_text_is_predicted_as_among_many(models):
    for clf in models:
        texts = [*reviews(30)[0], "", "zzz", "é"]
        P = clf.predict_proba(texts)
        for i, text in enumerate(texts):
            assert clf.predict_proba([text]).tolist() == P[i : i + 1].tolist()
        assert clf.predict_proba([]).shape == (0, len(clf.classes_))
