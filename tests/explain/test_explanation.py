"""Explanations from outside: what is claimed is asked of the formula and of `predict`."""

import itertools
import json
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import keytokens as kt
from keytokens import text as reading
from keytokens.text.words import normalise

from ..corpus import FILLER, NEGATIVE, POSITIVE, label_without, masked, reviews, topics

OPTIONS = [
    {},
    {"prior": kt.Prior(sink=0)},
    {"counts": "binary"},
    {"counts": "log", "prior": kt.Prior(sink=0)},
    {"ngrams": (1, 1)},
    {"ngrams": (1, 3), "min_df": (1, 2, 2)},
    {"ngrams": (2, 2), "min_df": 1, "prior": kt.Prior(sink=0)},
]


@pytest.fixture(scope="module")
def models():
    """Two and four classes, under every option."""
    made = [kt.KeyTokenClassifier(**options).fit(*reviews(150)) for options in OPTIONS]
    return made + [kt.KeyTokenClassifier(**options).fit(*topics(150)) for options in OPTIONS[:4]]


def is_four(clf):
    return len(clf.classes_) > 2


def words_of(text):
    return [tuple(span) for span in reading.spans(text).tolist()]


SHORT = st.lists(
    st.sampled_from([*POSITIVE, *NEGATIVE, *FILLER[:4], "not", "unknownword", "!"]), min_size=1, max_size=7
)


@given(SHORT, st.integers(0, len(OPTIONS) - 1))
def test_sets_hold_and_are_minimal_by_brute_force(models, words, which):
    """Every deletion of tokens, by the formula: the sets do what they say and no smaller ones do."""
    clf, text = models[which], " ".join(words)
    e = clf.explain(text)
    names = list(dict.fromkeys(t.text for t in e.tokens))
    if len(names) > 7 or not names:
        return
    has_sink = clf.get_params()["prior__sink"] > 0
    outcome = {}
    for size in range(len(names) + 1):
        for gone in itertools.combinations(names, size):
            if size < len(names) or has_sink:
                outcome[frozenset(gone)] = label_without(clf, text, gone)
    flips = [len(gone) for gone, label in outcome.items() if label != e.label]
    if flips:
        assert e.flip.size == min(flips)
        assert outcome[frozenset(item.text for item in e.flip)] == e.flip.label_after != e.label
    else:
        assert e.flip.status == "none"
        assert len(e.flip) == 0

    def is_sufficient(kept):
        return all(label == e.label for gone, label in outcome.items() if not gone & kept)

    least = 0 if has_sink else 1
    sizes = [
        k for k in range(least, len(names) + 1) if any(is_sufficient(set(c)) for c in itertools.combinations(names, k))
    ]
    assert e.sufficient.size == sizes[0]
    assert is_sufficient({item.text for item in e.sufficient})


@given(SHORT, st.integers(0, len(OPTIONS) - 1))
def test_word_sets_against_all_maskings(models, words, which):
    """Masking in the string with `keytokens.MASK`: the claims in words are claims about texts."""
    clf, text = models[which], " ".join(words)
    e = clf.explain(text)
    places = words_of(text)
    if not e.tokens:
        return
    has_sink = clf.get_params()["prior__sink"] > 0
    masks = [frozenset(c) for k in range(len(places) + 1) for c in itertools.combinations(range(len(places)), k)]
    predicted = dict(zip(masks, clf.predict([masked(text, gone) for gone in masks]).tolist(), strict=True))
    known = {m: bool(clf.explain(masked(text, m)).tokens) for m in masks}
    flips = [m for m in masks if predicted[m] != e.label and (known[m] or has_sink)]
    found = e.flip_words
    assert found.unit == "words"
    if not flips:
        assert found.status == "none"
    else:
        smallest = min(map(len, flips))
        assert found.lower <= smallest <= found.size
        if found.status == "minimum":
            assert found.size == smallest
        gone = frozenset(places.index((item.start, item.end)) for item in found)
        assert predicted[gone] == found.label_after != e.label
    kept = {places.index((item.start, item.end)) for item in e.sufficient_words}
    allowed = [m for m in masks if not m & kept and (known[m] or has_sink)]
    assert all(predicted[m] == e.label for m in allowed)


def test_the_mask_in_the_string_is_the_mask_in_the_counts(models):
    """For n = 1, 2, 3: masking a word removes every n-gram that touches it and makes no new one."""
    for clf in models:
        texts = topics(10, seed=3)[0] if is_four(clf) else reviews(10, seed=3)[0]
        for text in texts:
            places = words_of(text)
            for gone in range(len(places)):
                full = reading.count([text], clf.vocabulary_).toarray()[0]
                found = clf.explain(text).documents
                for first, size, token in zip(found.first, found.size, found.token, strict=True):
                    if first <= gone < first + size:
                        full[clf.vocabulary_.tokens.index(found.names[token])] -= 1
                less = reading.count([masked(text, {gone})], clf.vocabulary_).toarray()[0]
                np.testing.assert_array_equal(full, less)


def test_contributions_add_up_and_spans_are_right(models):
    for clf in models:
        texts = topics(20, seed=4)[0] if is_four(clf) else reviews(20, seed=4)[0]
        F = np.atleast_2d(clf.decision_function(texts).T).T
        for i, text in enumerate(texts):
            e = clf.explain(text)
            total = sum(t.contribution for t in e.tokens) + e.sink
            assert total == pytest.approx(e.logit, abs=1e-12)
            assert e.logit == (F[i, 0] if not is_four(clf) else F[i].max())  # to the bit
            assert e.label == clf.predict([text])[0]
            assert e.probability == clf.predict_proba([text]).max()
            attention = sum(t.attention for t in e.tokens) + e.documents.sink_attention(0)
            assert attention == pytest.approx(1, abs=1e-12)
            assert [(t.start, t.end) for t in e.tokens] == sorted((t.start, t.end) for t in e.tokens)
            for t in e.tokens:
                words = [normalise(text[a:b]) for a, b in words_of(text) if t.start <= a and b <= t.end]
                assert " ".join(words) == t.text


NO_SINK = {"prior": kt.Prior(sink=0)}
SENTENCES = [
    (
        {"prior": kt.Prior(sink=0)},
        "great",
        "1 of 1 token fixes the label: whatever other tokens are deleted, it stays 'pos'",
    ),
    (NO_SINK, "great", "No deletion that leaves a known token changes the label."),
    (NO_SINK, "zzz", "The text has no known token: the label is the most frequent one."),
    ({}, "", "The text has no known token: the intercept alone decides."),
]


@pytest.mark.parametrize(("options", "text", "sentence"), SENTENCES)
def test_sentences_of_short_texts(options, text, sentence):
    clf = kt.KeyTokenClassifier(**options).fit(*reviews())
    assert sentence in clf.explain(text).certificate.sentence


def test_sentences_of_ordinary_texts(models):
    e = models[0].explain("a great superb funny film with a dull awful end")
    s = e.certificate.sentence
    assert f"{e.sufficient.size} of {e.certificate.tokens} tokens fix" in s
    assert f"its probability stays at least {np.floor(e.certificate.keeping[0] * 100) / 100:.2f}." in s
    assert f"makes it 'neg' (the probability of 'pos' is then {e.certificate.probability_after_flip:.2f})." in s
    assert s.endswith("Deletions only: nothing is said of added or replaced words.")
    assert e.certificate.probability_after_flip <= 0.5
    four = models[7].explain("ball team market stock bank vote goal")
    assert four.sufficient.status in ("minimum", "subset-minimal")


def test_json_round_trip(models):
    for clf in (models[0], models[7]):
        record = clf.explain("great ball dull market\x00 \ud800 <b>").to_dict()
        assert json.loads(json.dumps(record, allow_nan=False)) == record


def test_sets_are_sequences(models):
    e = models[0].explain("great great dull film")
    assert list(e.sufficient) == list(e.sufficient[:])
    assert e.sufficient[0].spans == ((0, 5), (6, 11))
    assert (e.sufficient[0].start, e.sufficient[0].end) == (0, 5)
    assert "Explanation('pos'" in repr(e)


def test_tokens_are_rows_and_arrays(models):
    """Rows are made when one is read; the arrays hold the same figures."""
    for clf in models:
        uses = clf.explain("a great film, not an awful one; great!").tokens
        assert len(uses) == len(uses.start)
        assert "_made" not in vars(uses)
        for name in ("start", "end", "attention", "value", "contribution", "selected"):
            assert [getattr(row, name) for row in uses] == getattr(uses, name).tolist()
        assert [row.text for row in uses] == uses.text
        assert uses[-1:] == tuple(uses)[-1:]
        assert uses == tuple(uses)
        assert pickle.loads(pickle.dumps(uses)) == tuple(uses)


def test_items_are_made_when_they_are_read(models):
    found = models[0].explain("a great film, not an awful one; great!").sufficient
    assert len(found) == found.size > 0
    assert "_made" not in vars(found.items)
    assert found[0] == found.items[0]
    assert found == replace(found, items=tuple(found))
    assert hash(found) == hash(replace(found, items=tuple(found)))
