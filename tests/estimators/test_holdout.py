"""The one score: the same numbers as scikit-learn, however the answers come, and in plain words."""

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, log_loss

import keytokens as kt
from keytokens.estimators.holdout import Judge, Score, hold_out, is_held_out

from ..corpus import reviews, topics


@pytest.mark.parametrize("made", [reviews, topics])
def test_the_score_is_that_of_scikit_learn(made):
    texts, labels = made(120)
    clf = kt.KeyTokenClassifier().fit(texts[:80], labels[:80])
    P, truth, classes = clf.predict_proba(texts[80:]), labels[80:], clf.classes_.tolist()
    judge = Judge(classes)
    for at in range(0, 40, 7):
        judge.add([str(label) for label in truth[at : at + 7]], P[at : at + 7])
    score = judge.score()
    assert score.texts == 40
    assert score.accuracy == judge.accuracy == accuracy_score(truth, clf.predict(texts[80:]))
    assert score.log_loss == pytest.approx(log_loss(truth, P, labels=classes))
    assert score.baseline == max(map(truth.count, classes)) / 40
    assert score.standard_error == pytest.approx(np.std(clf.predict(texts[80:]) == np.array(truth)) / np.sqrt(40))


def test_labels_that_the_model_does_not_know():
    judge = Judge(["a", "b"])
    assert judge.score() is None
    judge.add(["c", "c"], np.array([[1.0, 0.0], [0.0, 1.0]]))
    assert judge.score() == Score(2, 0.0, 0.0, None, 1.0)
    assert str(judge.score()) == "accuracy 0.0000 ± 0.0000 on 2 held-out texts (most frequent class: 1.0000)"
    judge.add(["a", "b"], np.array([[1.0, 0.0], [1.0, 0.0]]))
    assert judge.score().accuracy == 0.25
    assert judge.score().log_loss == pytest.approx(-np.log(np.finfo(float).eps) / 2)


def test_a_score_that_is_no_better_than_guessing_is_said():
    assert Score(10, 0.9, 0.1, 0.3, 0.5).doubt == ""
    assert "0.5000 is no better than 0.6000" in Score(10, 0.5, 0.1, 0.3, 0.6).doubt


def test_no_held_out_text_is_trained_on():
    texts, labels = reviews(100)
    texts = [f"{text} own{i}" for i, text in enumerate(texts)]
    seen = []

    def fit(some, own):
        seen.extend(some)
        return kt.KeyTokenClassifier().fit(some, own)

    held = hold_out(texts, labels, 0.2, 0, fit)
    assert len(held.rows) == 20
    assert len(seen) == 80
    assert not {texts[i] for i in held.rows} & set(seen)
    assert held.labels == [labels[i] for i in held.rows]
    assert hold_out(texts[:3], labels[:3], 0.2, 0, fit) is None


def test_rows_are_held_out_by_their_number_alone():
    whole = is_held_out(0, 10_000, 0.2, seed=0)
    parts = np.concatenate([is_held_out(at, 100, 0.2, seed=0) for at in range(0, 10_000, 100)])
    assert np.array_equal(whole, parts)
    assert whole.mean() == pytest.approx(0.2, abs=0.02)
    assert not np.array_equal(whole, is_held_out(0, 10_000, 0.2, seed=1))
    assert not is_held_out(0, 1000, 0.0, seed=0).any()
