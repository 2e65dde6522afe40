"""Explanations from outside: what is claimed is asked of the formula and of `predict`."""

import itertools
import json
import pickle
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import keytokens as kt
from keytokens import text as reading
from keytokens.explain.terminal import explanation_text
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
        NO_SINK,
        "great",
        'pos (over 99\xa0%), because of "great". Keep it: whatever else is deleted, it stays pos (at least',
    ),
    (NO_SINK, "great", "No deletion that leaves a known word changes it."),
    (
        NO_SINK,
        "zzz",
        "Nothing in this text decides: its only word is unknown, the model falls back on how common 'pos'",
    ),
    (NO_SINK, "zzz yyy", "none of its 2 words is known"),
    ({}, "", "This text has no words: the model falls back on how common 'pos' is."),
    ({}, "great", "Whatever is deleted, it stays pos (at least 63\xa0%): without any word it is pos too"),
    ({}, "zzz great", "1 of 2 words is unknown."),
]


@pytest.mark.parametrize(("options", "text", "sentence"), SENTENCES)
def test_sentences_of_short_texts(options, text, sentence):
    clf = kt.KeyTokenClassifier(**options).fit(*reviews())
    assert sentence in clf.explain(text).certificate.sentence


def test_sentences_of_ordinary_texts(models):
    e = models[0].explain("a great superb funny film with a dull awful end")
    s = e.certificate.sentence
    assert s.startswith('pos (73\xa0%), because of "great", "superb" and "funny". Keep these 3 words')
    assert 'Without "superb" it is neg. Proved for deletions' in s
    assert s.endswith("Proved for deletions: nothing is said of added or replaced words.")
    assert str(e.certificate.of_items) == e.to_dict(words=False)["certificate"]["sentence"] != s
    assert e.certificate.probability_after_flip <= 0.5
    four = models[7].explain("ball team market stock bank vote goal")
    assert four.sufficient.status in ("minimum", "subset-minimal")
    assert f"it is {four.flip_words.label_after}." in four.certificate.sentence


def test_sentences_of_long_texts_speak_of_tokens(models, monkeypatch):
    monkeypatch.setattr("keytokens.explain.text.MOST_WORDS", 3)
    certificate = models[0].explain("a great superb funny film").certificate
    assert certificate.said == certificate.of_items


def test_a_rival_is_another_class(models):
    clf = models[7]
    e = clf.explain("ball team market stock bank vote goal")
    assert e.rival == e.flip.label_after
    for rival in set(clf.classes_.tolist()) - {e.label}:
        other = clf.explain(e.text, rival)
        assert other.rival == pickle.loads(pickle.dumps(other)).rival == other.to_dict()["rival"] == rival
        lead = dict(zip(clf.classes_.tolist(), e.prediction.scores, strict=True))
        found = other.contributions_against()
        np.testing.assert_array_equal(found, e.contributions_against(rival))
        assert found.sum() + other.sink_against() == pytest.approx(lead[e.label] - lead[rival], abs=1e-12)
        assert [row["difference"] for row in other.to_dict()["tokens"]] == found.tolist()
        assert (other.sufficient, other.flip) == (e.sufficient, e.flip)
    none = clf.explain("zzz")
    assert none.rival == clf.classes_[np.argsort(-none.prediction.probabilities, kind="stable")[1]]
    many = list(clf.explain_many(topics(20, seed=5)[0], rival=e.label))
    assert {one.rival for one in many if one.label != e.label} == {e.label}
    assert all(one.rival != one.label for one in many)
    two = models[0].explain("great film")
    assert {two.label, two.rival} == {"pos", "neg"}


def test_a_flip_set_speaks_for_the_label_against_the_class_it_leads_to(models):
    for clf in models:
        texts = topics(60, seed=6)[0] if is_four(clf) else reviews(60, seed=6)[0]
        for e in clf.explain_many(texts):
            said = dict(zip(e.tokens.text, e.contributions_against(), strict=True))
            assert e.flip.tight or all(said[item.text] > 0 for item in e.flip)


def test_frames(models):
    e = models[7].explain("ball team market stock bank vote goal")
    found = e.to_frame()
    assert found["difference"].tolist() == e.contributions_against().tolist()
    assert found["text"].tolist() == e.tokens.text
    keys = models[7].key_tokens(3)
    assert keys.to_frame()["token"].tolist() == [token.token for found in keys.values() for token in found]
    assert all(token.token in keys._repr_html_() for found in keys.values() for token in found)


def test_a_frame_needs_pandas(models, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(kt.MissingExtra, match="to_frame needs pandas: pip install pandas"):
        models[0].explain("great").to_frame()


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


def test_what_is_shown_is_set_against_the_class_that_the_sentence_leads_to():
    """Fewest words may lead to another class than fewest tokens; colours and sentence must speak of one class."""
    texts, labels = topics(300, seed=4)
    clf = kt.KeyTokenClassifier(ngrams=(1, 3)).fit(texts, labels)
    differ = 0
    for e in clf.explain_many(topics(300, seed=5)[0]):
        after, shown = e.named[1].label_after, e.told()
        assert shown.rival == (e.rival if after is None else after)
        if shown.rival != e.rival:
            differ += 1
            assert f" speaks for {shown.rival}" in e.to_html()
            assert f"- for {shown.rival};" in explanation_text(e, colour=False, width=100)
        chosen = next(k for k in clf.classes_.tolist() if k not in (e.label, after))
        assert e.against(chosen).told().rival == chosen
    assert differ
