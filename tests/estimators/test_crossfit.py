"""Texts kept apart: who is in which part, what is asked about them, and what a model keeps of it."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import keytokens as kt
from keytokens.base.errors import InputError
from keytokens.estimators.crossfit import SAMPLE, Collector, Parts, cross_fit, remembered
from keytokens.estimators.evaluation import Evaluator, calibration, stored
from keytokens.estimators.unseen import Unseen, hashes_of, salt_of

from ..corpus import reviews, topics

SALT = salt_of("first")


def dealt(texts, labels, batch=None, **options):
    parts, batch = Parts(0, **options), batch or len(texts)
    ranges = [slice(at, at + batch) for at in range(0, len(texts), batch)]
    return np.concatenate([parts.of(hashes_of(texts[own], SALT), labels[own]) for own in ranges])


@given(st.lists(st.integers(0, 30), min_size=1, max_size=60), st.integers(1, 20))
def test_equal_texts_share_a_part_and_batches_change_nothing(numbers, batch):
    texts, labels = [f"t{i}" for i in numbers], [i % 5 for i in numbers]
    for options in ({"folds": 5}, {"share": 0.3}):
        parts = dealt(texts, labels, **options)
        assert len(set(zip(texts, parts.tolist(), strict=True))) == len(set(texts))
        assert np.array_equal(parts, dealt(texts, labels, batch, **options))


def test_parts_are_of_equal_size_and_hang_on_the_seed():
    texts = [f"text {i}" for i in range(10_000)]
    labels = [i % 2 for i in range(10_000)]
    folds = dealt(texts, labels, folds=5)
    assert np.allclose(np.bincount(folds), 2000, atol=4 * np.sqrt(10_000 * 0.16))
    share = dealt(texts, labels, share=0.2)
    assert set(share.tolist()) == {-1, 0}
    assert (share == 0).mean() == pytest.approx(0.2, abs=0.016)
    assert not np.array_equal(folds, Parts(1, folds=5).of(hashes_of(texts, SALT), labels))


def test_rare_classes_are_spread_and_never_held_out_as_a_whole():
    texts = [f"text {i}" for i in range(300)]
    labels = ["common"] * 290 + ["two"] * 2 + ["five"] * 5 + ["a", "b", "c"]
    folds = dealt(texts, labels, folds=5)
    assert len(set(folds[290:292].tolist())) == 2
    assert sorted(folds[292:297].tolist()) == [0, 1, 2, 3, 4]
    for seed in range(20):
        share = Parts(seed, share=0.9).of(hashes_of(texts, SALT), labels)
        assert (share[297:] == -1).all()
        assert (share[290:292] == -1).any()


def test_no_text_is_asked_of_a_model_that_has_seen_it():
    texts, labels = reviews(100)
    texts = [f"{text} own{i % 90}" for i, text in enumerate(texts)]
    asked: list[str] = []

    def fit(rows):
        seen = {texts[i] for i in rows}
        model = kt.KeyTokenClassifier().fit([texts[i] for i in rows], [labels[i] for i in rows])

        def answer(some):
            assert not seen & set(some)
            asked.extend(some)
            return model.predict_log_proba(some)

        return SimpleNamespace(classes_=model.classes_, predict_log_proba=answer)

    heard = []
    found = cross_fit(texts, labels, Parts(0, folds=5), fit, tick=lambda *at: heard.append(at)).unseen(["neg", "pos"])
    assert sorted(asked) == sorted(texts)
    assert (len(found), found.kind) == (100, "out-of-fold")
    assert heard == [(k, 5) for k in range(1, 6)]
    held = cross_fit(texts, labels, Parts(0, share=0.3), fit).unseen(["neg", "pos"])
    assert held.kind == "held-out"
    assert 10 < len(held) < 50


@pytest.mark.parametrize("made", [reviews, topics])
def test_what_is_kept_is_what_the_models_said(made):
    texts, labels = made(150)
    models = {}

    def fit(rows):
        model = kt.KeyTokenClassifier().fit([texts[i] for i in rows], [labels[i] for i in rows])
        models.update(dict.fromkeys(set(range(150)) - set(rows.tolist()), model))
        return model

    classes = sorted(set(labels))
    found = cross_fit(texts, labels, Parts(0, folds=3), fit, keep_texts=True).unseen(classes)
    rows, seen = found.find(texts)
    assert not seen.any()
    assert found.texts == tuple(found.texts[row] for row in found.find(found.texts)[0])
    P = np.concatenate([models[i].predict_proba([text]) for i, text in enumerate(texts)])
    truth = np.array([classes.index(label) for label in labels])
    answers = found.answers(rows, truth)
    assert np.array_equal(answers.said, P.argmax(axis=1))
    assert np.allclose(answers.p, P.max(axis=1), rtol=1e-5)
    assert np.allclose(answers.p_given, P[np.arange(150), truth], rtol=1e-5)
    assert np.allclose(answers.squares, (P * P).sum(axis=1), rtol=1e-5)
    assert np.allclose(answers.second, P[:, 1], rtol=1e-4, atol=1e-7)


def test_of_many_classes_ten_are_kept_and_the_rest_share_what_is_left():
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.full(30, 0.2), 50)
    labels = [int(k) for k in rng.integers(0, 30, 50)]
    texts = [f"t{i}" for i in range(50)]
    model = SimpleNamespace(classes_=np.arange(30), predict_log_proba=lambda some: np.log(P))
    found = Collector("out-of-fold", SALT)
    found.answered(model, texts, hashes_of(texts, SALT), labels)
    unseen = found.unseen(range(30))
    assert unseen.top.shape == (50, 10)
    answers = unseen.answers(np.arange(50), np.array(labels))
    assert np.allclose(answers.p_given, P[np.arange(50), labels], rtol=1e-4)
    wrong = np.array([next(k for k in np.argsort(p) if k != y) for p, y in zip(P, labels, strict=True)])  # not kept
    rest = (1 - np.sort(P)[:, -10:].sum(axis=1)) / 20
    assert np.allclose(unseen.answers(np.arange(50), wrong).p_given, rest, rtol=1e-3)


def test_a_class_that_a_part_leaves_to_no_other_text_is_not_judged():
    texts, labels = reviews(60)
    texts, labels = [*texts, "one alone"], [*labels, "rare"]
    clf = kt.KeyTokenClassifier(cross_fit=3).fit(texts, labels)
    found = stored(clf)
    assert [found.names[k] for k in found.uncovered] == ["rare"]
    assert found.n == 60
    judge = Evaluator(clf)
    judge.add(texts[-1:], labels[-1:], clf.predict_proba(texts[-1:]))
    assert judge.evaluation().kind == "seen in training"


def test_parts_that_cannot_be_learned_from_are_left_out():
    def fit(rows):
        raise InputError("no token")

    found = cross_fit(["a b", "c d", "e f"], [0, 1, 0], Parts(0, folds=2), fit).unseen([0, 1])
    assert len(found) == 0
    assert found.calibrated() is found


def test_calibration_is_the_scale_that_was_put_on_true_scores():
    rng = np.random.default_rng(0)
    logs = 2 * rng.normal(size=(5000, 4))
    P = np.exp(logs) / np.exp(logs).sum(axis=1, keepdims=True)
    y = np.array([rng.choice(4, p=p) for p in P])
    texts = [f"t{i}" for i in range(len(P))]
    for factor in (0.4, 1.0, 2.5):
        Q = P**factor / (P**factor).sum(axis=1, keepdims=True)
        found = Collector("out-of-fold", SALT)
        model = SimpleNamespace(classes_=np.arange(4), predict_log_proba=lambda some, Q=Q: np.log(Q))
        found.answered(model, texts, hashes_of(texts, SALT), y.tolist())
        calibrated = found.unseen(range(4)).calibrated()
        assert calibrated.scale * factor == pytest.approx(1, abs=0.06)
        assert calibrated.noise < 0.01
        assert np.array_equal(calibrated.answers(np.arange(5000), y).said, Q.argmax(axis=1))


def test_labels_drawn_by_lot_are_known_for_what_they_are():
    rng = np.random.default_rng(0)
    logs = 4 * rng.normal(size=(8000, 3))
    P = np.exp(logs) / np.exp(logs).sum(axis=1, keepdims=True)
    y = np.array([rng.choice(3, p=p) if rng.random() > 0.15 else rng.choice(3) for p in P])
    texts = [f"t{i}" for i in range(len(P))]
    found = Collector("out-of-fold", SALT)
    model = SimpleNamespace(classes_=np.arange(3), predict_log_proba=lambda some: np.log(P))
    found.answered(model, texts, hashes_of(texts, SALT), y.tolist())
    calibrated = found.unseen(range(3)).calibrated()
    assert calibrated.noise == pytest.approx(0.15, abs=0.02)
    assert calibrated.scale == pytest.approx(1, abs=0.08)
    answers = calibrated.answers(np.arange(8000), y)
    assert np.allclose(
        answers.p,
        (1 - calibrated.noise) * (P**calibrated.scale / (P**calibrated.scale).sum(axis=1)[:, None]).max(axis=1)
        + calibrated.noise / 3,
        rtol=1e-4,
    )
    assert calibration(answers)[1] < 0.02


@pytest.mark.parametrize("made", [reviews, topics])
def test_noise_moves_every_probability_alike_and_no_proof(made):
    texts, labels = made(120)
    plain = kt.KeyTokenClassifier().fit(texts, labels)
    noisy = kt.KeyTokenClassifier().fit(texts, labels)
    noisy.label_noise_, K = 0.06, len(plain.classes_)

    def pulled(p):
        return 0.94 * np.asarray(p, float) + 0.06 / K

    assert np.allclose(noisy.predict_proba(texts), pulled(plain.predict_proba(texts)), rtol=1e-12)
    assert np.allclose(np.exp(noisy.predict_log_proba(texts)), noisy.predict_proba(texts))
    for one, other in zip(noisy.explain_many(texts[:30]), plain.explain_many(texts[:30]), strict=True):
        assert one.probability == noisy.predict_proba([one.text]).max()
        assert [item.text for item in one.sufficient] == [item.text for item in other.sufficient]
        assert [item.text for item in one.flip_words] == [item.text for item in other.flip_words]
        a, b = one.certificate, other.certificate
        assert a.at_least == pytest.approx(min(pulled(b.at_least), one.probability))
        assert a.keeping == pytest.approx(pulled(b.keeping))
        assert {m: pytest.approx(pulled(ends)) for m, ends in b.deleting.items()} == a.deleting
        if b.probability_after_flip is not None:
            assert a.probability_after_flip == pytest.approx(pulled(b.probability_after_flip))


def test_texts_of_a_plain_fit_are_remembered_by_a_sample():
    texts = [f"text {i}" for i in range(3 * SAMPLE)]
    unseen = remembered(texts, 2)
    assert len(unseen.others) <= SAMPLE
    assert unseen.find(texts[100:400])[1].all()
    assert not unseen.find([f"other {i}" for i in range(300)])[1].any()
    half = [*texts[:300], *(f"other {i}" for i in range(3000))]
    assert 50 < unseen.find(half)[1].sum() < 300


def test_what_is_kept_can_be_made_smaller():
    texts, labels = reviews(200)
    clf = kt.KeyTokenClassifier(cross_fit=2).fit(texts, labels)
    whole = clf.unseen_
    small = whole.at_most(1000)
    assert sum(array.nbytes for array in small.to_arrays().values()) <= 1000 < len(whole) * 20
    assert (small.find(texts)[0] >= 0).sum() == len(small)
    assert whole.at_most(10**6) is whole
    bare = whole.without_hashes()
    assert stored(SimpleNamespace(classes_=clf.classes_, unseen_=bare)).accuracy == stored(clf).accuracy
    assert (bare.find(texts)[0] == -1).all()
    assert not bare.find(texts)[1].any()


def test_the_way_to_arrays_and_back():
    texts, labels = topics(80)
    clf = kt.KeyTokenClassifier(cross_fit=2).fit(texts, labels)
    unseen = replace(clf.unseen_, texts=(*texts[:79], "\ud800 half a character"))
    again = Unseen.from_arrays(unseen.to_arrays(), unseen.facts(), 4)
    assert again.facts() == unseen.facts()
    assert again.texts == unseen.texts
    for name, array in unseen.to_arrays().items():
        assert np.array_equal(array, again.to_arrays()[name])
    for spoiled in (
        {"top": unseen.top[:, :2]},
        {"given": unseen.given + 9},
        {"hashes": unseen.hashes[:3]},
        {"logs": unseen.logs * np.nan},
        {"text_ends": unseen.to_arrays()["text_ends"][:-1]},
    ):
        with pytest.raises(ValueError, match=r"the (scores|texts of the scores) have the wrong"):
            Unseen.from_arrays({**unseen.to_arrays(), **spoiled}, unseen.facts(), 4)
    with pytest.raises(ValueError, match="the scores have the wrong"):
        Unseen.from_arrays(unseen.to_arrays(), {**unseen.facts(), "scale": -1.0}, 4)
