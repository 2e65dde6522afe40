"""Texts without labels: what is counted, who is asked, and what is refused."""

from __future__ import annotations

import re
import warnings
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import keytokens as kt
from keytokens.base.errors import InputError
from keytokens.estimators.teachers import Distinct, Teacher, told_of
from keytokens.model.prior import PriorOptions
from keytokens.training import teaching as training

from ..corpus import reviews

TEXTS, LABELS = reviews(400)
TEXTS = [f"{text} n{i}" for i, text in enumerate(TEXTS)]  # all different
FEW, MANY = slice(0, 40), slice(40, 400)
TRUTH = np.array(LABELS)[MANY] == sorted(set(LABELS))[1]
RIGHT = np.where(TRUTH[:, None], [0.1, 0.9], [0.9, 0.1])


def fitted(**options):
    return kt.KeyTokenClassifier().fit(TEXTS[FEW], LABELS[FEW], unlabeled=TEXTS[MANY], **options)


def numbers_of(clf):
    return clf.vocabulary_.tokens, clf.attention_.tobytes(), clf.values_.tobytes(), clf.intercept_.tobytes()


def in_batches(size, teacher="self", told=None, **options):
    labelled = [(TEXTS[at : at + size], LABELS[at : at + size]) for at in range(0, 40, size) if at + size <= 40]
    texts = TEXTS[MANY]
    spans = [slice(at, at + size) for at in range(0, len(texts), size)]
    others = [texts[own] if told is None else (texts[own], told[own]) for own in spans]
    return kt.KeyTokenClassifier(**options).fit_batches(labelled, unlabeled=others, teacher=teacher)


@given(st.lists(st.lists(st.integers(0, 20), max_size=8), max_size=12))
def test_distinct_is_a_set_that_grows(batches):
    distinct, seen = Distinct(), set()
    for batch in batches:
        new = distinct.new(np.array(batch, np.uint64)).tolist()
        wanted = [i for i, one in enumerate(batch) if one not in seen and one not in batch[:i]]
        seen |= set(batch)
        assert new == wanted


def test_what_a_teacher_says_is_counted_as_its_definition_has_it(monkeypatch):
    """The presence and the mean length, one text after the other, by Python's own counting."""
    asked = []
    known = training.Teaching.counts
    monkeypatch.setattr(training.Teaching, "counts", lambda self: asked.append(self) or known(self))
    clf = fitted(teacher=RIGHT, teacher_weight=0.5)
    counts, tokens = known(replace(asked[0], weight=0.5)), clf.vocabulary_.tokens
    words = [text.split() for text in TEXTS[MANY]]
    for s in range(0, len(tokens), 97):
        if " " not in tokens[s]:
            wanted = sum(RIGHT[j] for j, own in enumerate(words) if tokens[s] in own) * 0.5
            assert counts.presence[s] == pytest.approx(wanted, rel=1e-5), tokens[s]
    assert counts.documents == pytest.approx(RIGHT.sum(axis=0))


def test_a_teacher_helps_and_leaves_the_form_of_the_model():
    apart, truth = reviews(300)
    plain = kt.KeyTokenClassifier().fit(TEXTS[FEW], LABELS[FEW])
    taught = fitted(teacher=RIGHT)
    assert taught.score(apart, truth) >= plain.score(apart, truth)
    assert taught.taught_["texts"] == 360
    assert plain.taught_ is None
    e = taught.explain(apart[0])
    assert e.probabilities[e.label] == pytest.approx(taught.predict_proba([apart[0]]).max())
    assert (taught.class_counts_.sum(axis=0) <= 40).all(), "texts of a class are texts with that label"


@pytest.mark.parametrize("told", [None, RIGHT])
def test_batches_and_threads_change_no_bit(told):
    whole = numbers_of(fitted(teacher="self" if told is None else told))
    for size, threads in ((20, 1), (40, 2)):
        assert numbers_of(in_batches(size, "self" if told is None else "given", told, threads=threads)) == whole


def test_a_fit_from_files_goes_on_with_what_was_told(tmp_path):
    batches, others = [(TEXTS[FEW], LABELS[FEW])], [(TEXTS[MANY], RIGHT)]
    first = kt.KeyTokenClassifier().fit_batches(batches, unlabeled=others, teacher="given", folder=tmp_path / "f")
    again = kt.KeyTokenClassifier().fit_batches([], unlabeled=[], teacher="given", folder=tmp_path / "f", resume=True)
    assert numbers_of(first) == numbers_of(again)
    with pytest.raises(InputError, match="the run there differs in teacher"):
        kt.KeyTokenClassifier().fit_batches([], folder=tmp_path / "f", resume=True)


def test_functions_arrays_and_estimators_say_the_same():
    pipeline = make_pipeline(TfidfVectorizer(), LogisticRegression(C=10))
    own = fitted(teacher=pipeline)
    pipeline.fit(TEXTS[FEW], LABELS[FEW])
    asked, given_ = fitted(teacher=pipeline.predict_proba), fitted(teacher=pipeline.predict_proba(TEXTS[MANY]))
    assert numbers_of(own) == numbers_of(asked) == numbers_of(given_)
    assert [clf.taught_["teacher"] for clf in (own, asked, given_)] == ["estimator", "function", "probabilities"]


def test_texts_with_labels_and_repeated_ones_are_left_out():
    twice = kt.KeyTokenClassifier().fit(
        TEXTS[FEW], LABELS[FEW], unlabeled=TEXTS[FEW] + TEXTS[MANY] * 2, teacher=np.vstack([RIGHT[:40], RIGHT, RIGHT])
    )
    assert numbers_of(twice) == numbers_of(fitted(teacher=RIGHT))
    nothing = kt.KeyTokenClassifier().fit(TEXTS[FEW], LABELS[FEW], unlabeled=TEXTS[FEW])
    assert nothing.taught_ is None
    assert numbers_of(nothing) == numbers_of(kt.KeyTokenClassifier().fit(TEXTS[FEW], LABELS[FEW]))


def test_each_fold_has_a_teacher_of_its_own():
    asked = []

    class Watched(LogisticRegression):
        def fit(self, X, y):
            asked.append(X.shape[0])
            return super().fit(X, y)

    clf = kt.KeyTokenClassifier(cross_fit=4)
    clf.fit(TEXTS[FEW], LABELS[FEW], unlabeled=TEXTS, teacher=make_pipeline(TfidfVectorizer(), Watched()))
    assert clf.taught_["texts"] == 360, "texts with labels are in no fold a text without"
    assert len(asked) == 5
    assert max(asked) == 40
    assert sum(asked) == 40 + 3 * 40, "once for all, and once for each fold, without it"


def test_the_loss_can_follow_the_teacher_too():
    sure, mixed = fitted(teacher=RIGHT), fitted(teacher=RIGHT, teacher_loss=0.3)
    agreement = [(clf.predict(TEXTS[MANY]) == clf.classes_[TRUTH.astype(int)]).mean() for clf in (sure, mixed)]
    assert agreement[1] >= agreement[0]
    assert mixed.taught_["loss"] == 0.3


def test_a_bad_teacher_is_refused_or_announced():
    with pytest.raises(InputError, match=r"`teacher` must tell the labels better than a guess, 50%; saw \d+% of each"):
        fitted(teacher=RIGHT[:, ::-1])
    harm = 0
    for seed in range(10):
        guesses = np.random.default_rng(seed).dirichlet([1, 1], 360)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            with suppress(InputError):
                fitted(teacher=guesses)
                harm += not any("may be guessing" in str(one.message) for one in said)
    assert harm <= 1, "a guess passes in silence now and then"


@pytest.mark.parametrize(
    ("teacher", "said"),
    [
        (
            "oracle",
            '`teacher` must be "self", an estimator, a function of texts, or an array of probabilities; saw \'ora',
        ),
        (None, 'must be "self"'),
        (RIGHT[:5], r"must give 360 rows of 2 probabilities, in the order .*; saw shape \(5, 2\)"),
        (RIGHT * 2, r"add up to 1 in each row; saw \[.*\] in row 0"),
        (RIGHT - 1, "each at least 0"),
        (RIGHT * np.nan, "each at least 0"),
        (lambda texts: "no", r"must give 360 rows .* saw shape \(0,\)"),
    ],
)
def test_what_is_no_teacher_is_refused_in_a_line(teacher, said):
    with pytest.raises(InputError, match=said) as refused:
        fitted(teacher=teacher)
    assert "\n" not in str(refused.value)


def test_a_weight_of_nothing_is_no_reason_to_doubt_the_teacher():
    assert fitted(teacher=RIGHT, teacher_weight=0).taught_["agreement"] > 0.9


@pytest.mark.parametrize("name", ["teacher_weight", "teacher_loss"])
def test_negative_weights_are_refused(name):
    with pytest.raises(InputError, match=f"`{name}` must be"):
        fitted(**{name: -1})


def test_batches_take_no_estimator():
    with pytest.raises(InputError, match="must be fitted already, for texts in batches"):
        in_batches(40, LogisticRegression())


def test_a_saved_model_remembers_its_teacher(tmp_path):
    clf = fitted(teacher=RIGHT)
    clf.save(tmp_path / "m")
    again = kt.load(tmp_path / "m")
    assert again.taught_ == clf.taught_
    assert re.fullmatch(r"learned from 360 texts .* given probabilities say .* \d+% .*", told_of(again.taught_))


def test_few_texts_are_enough_for_the_check():
    """The mean recall of soft counts, by hand: two tokens, two labelled texts, all told right."""
    texts, labels = ["good film", "bad film"], ["p", "n"]
    clf = kt.KeyTokenClassifier(ngrams=(1, 1), min_df=1)
    others, told = ["good book", "bad book"], [[0.0, 1.0], [1.0, 0.0]]
    with pytest.warns(UserWarning, match="may be guessing"):  # of two texts nobody can tell
        assert clf.fit(texts, labels, unlabeled=others, teacher=told).taught_["agreement"] == 1.0


def test_a_teacher_stays_what_it_is():
    teacher = Teacher.of("self", 2.0, 0.1)
    assert Teacher.of(teacher, 1.0, 0.0) is teacher
    assert (teacher.weight, teacher.loss) == (2.0, 0.1)
    assert PriorOptions().ratio == kt.Prior().ratio
