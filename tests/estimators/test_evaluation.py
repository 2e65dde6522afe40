"""An evaluation: the numbers of scikit-learn, of the right kind, and in plain words."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn import metrics

from keytokens.estimators.comparison import compare, slices
from keytokens.estimators.crossfit import Collector
from keytokens.estimators.evaluation import KINDS, Answers, Evaluation, Evaluator, calibration, wilson
from keytokens.estimators.unseen import hashes_of

TEXTS = [f"text {i}" for i in range(600)]


def drawn(classes: int, n: int = 600, seed: int = 0):
    """Probabilities and labels drawn from them, so that they are calibrated."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(classes, 0.4), n)
    return P, np.array([rng.choice(classes, p=p) for p in P])


def model(classes, unseen=None):
    return SimpleNamespace(classes_=np.array(classes), unseen_=unseen)


def judged(classes, labels, P, texts=TEXTS, unseen=None) -> Evaluation:
    judge = Evaluator(model(classes, unseen))
    for at in range(0, len(P), 97):  # in batches
        part = slice(at, at + 97)
        judge.add(texts[part], labels[part], P[part])
    return judge.evaluation()


@pytest.mark.parametrize("K", [2, 5])
def test_the_numbers_are_those_of_scikit_learn(K):
    P, y = drawn(K)
    found = judged(list(range(K)), [str(label) for label in y], P)  # labels of a file are strings
    said = P.argmax(axis=1)
    record = json.loads(json.dumps(found.to_dict()))
    assert record["accuracy"] == pytest.approx(metrics.accuracy_score(y, said))
    assert record["macro_f1"] == pytest.approx(metrics.f1_score(y, said, average="macro"))
    assert record["weighted_f1"] == pytest.approx(metrics.f1_score(y, said, average="weighted"))
    assert record["log_loss"] == pytest.approx(metrics.log_loss(y, P))
    hot = np.eye(K)[y]
    assert record["brier"] == pytest.approx(((P - hot) ** 2).sum(axis=1).mean() / (2 if K == 2 else 1))
    rows = metrics.precision_recall_fscore_support(y, said, labels=range(K))
    for k, one in enumerate(record["classes"]):
        expected = [column[k] for column in rows]
        assert [one["precision"], one["recall"], one["f1"], one["texts"]] == pytest.approx(expected)
    counts = np.zeros((K, K), int)
    for given, answer, n in record["confusions"]:
        counts[given, answer] = n
    assert np.array_equal(counts, metrics.confusion_matrix(y, said))
    for one, row in zip(record["classes"], counts - np.diag(np.diag(counts)), strict=True):
        assert row[one["mistaken"]] == row.max()
    if K == 2:
        assert record["roc_auc"] == pytest.approx(metrics.roc_auc_score(y, P[:, 1]))
        assert record["average_precision"] == pytest.approx(metrics.average_precision_score(y, P[:, 1]))
    else:
        assert record["roc_auc"] is record["average_precision"] is None


def test_labels_that_the_model_does_not_know_are_wrong_and_have_no_log_loss():
    P = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
    found = judged(["a", "b"], ["a", "c", "c"], P, TEXTS[:3])
    assert found.names == ["a", "b", "c"]
    assert (found.known, found.n, found.accuracy) == (2, 3, pytest.approx(1 / 3))
    assert found.baseline == (2, pytest.approx(2 / 3))
    assert found.log_loss == pytest.approx(-np.log(0.9))
    assert found.classes[2]["mistaken"] == [0, 1]
    assert "no better than 0.6667" in found.doubt


def test_a_notebook_shows_the_weakest_classes_first():
    found = judged(["<b>", "ok"], ["<b>", "<b>", "ok"], np.array([[0.9, 0.1], [0.2, 0.8], [0.3, 0.7]]), TEXTS[:3])
    page = found._repr_html_()
    assert page.index("&lt;b&gt;") < page.index(">ok<")
    assert "accuracy 0.6667" in page
    frame = found.to_frame()
    assert frame["label"].tolist() == ["<b>", "ok"]
    assert frame["f1"].tolist() == pytest.approx([2 / 3, 2 / 3])


def test_nothing_to_judge():
    found = judged(["a", "b"], [], np.zeros((0, 2)), [])
    record = found.to_dict()
    assert (record["accuracy"], record["kind"], record["n"], record["interval"]) == (None, None, 0, [0.0, 1.0])
    assert found.calibration["verdict"] is None
    assert str(found) == "no score: no text that the model has not seen"


def test_wilson_is_the_inverse_of_the_test_of_a_share():
    for right, n in ((3, 10), (0, 7), (50, 50), (480, 600)):
        low, high = wilson(right, n, 0.9)
        for end in (low, high):
            if 0 < end < 1:
                assert abs(right / n - end) / np.sqrt(end * (1 - end) / n) == pytest.approx(1.6448536, rel=1e-6)
    assert wilson(0, 0) == (0.0, 1.0)


def test_calibration_is_small_for_true_probabilities_and_names_its_side():
    P, y = drawn(3, 6000)
    sharp = P**3 / (P**3).sum(axis=1, keepdims=True)
    flat = np.sqrt(P) / np.sqrt(P).sum(axis=1, keepdims=True)
    texts = [""] * len(P)
    found = [judged([0, 1, 2], y.tolist(), Q, texts).calibration for Q in (P, sharp, flat)]
    assert [one["verdict"] for one in found] == ["about right", "too sure", "too modest"]
    assert found[0]["error"] < 0.02 < 0.08 < min(found[1]["error"], found[2]["error"])
    assert sum(one["texts"] for one in found[0]["bins"]) == len(P)
    answers = Answers.of(np.array([[0.75, 0.25], [0.75, 0.25]]), np.array([0, 1]))
    assert calibration(answers)[1] == pytest.approx(0.25)  # claims 3 of 4, is right in 1 of 2


def stored(kind: str, texts: list[str], P, y, others: list[str]):
    """What a model keeps that was asked about some texts before it saw them, and has seen others."""
    found = Collector(kind, b"salt of 16 bytes")
    past = SimpleNamespace(classes_=np.arange(P.shape[1]), predict_log_proba=lambda some: np.log(P[: len(some)]))
    found.answered(past, texts, hashes_of(texts, b"salt of 16 bytes"), y)
    found.remember(hashes_of([*texts, *others], b"salt of 16 bytes"), len(texts) + len(others))
    return found.unseen(range(P.shape[1]))


def test_texts_of_the_training_are_known_and_count_as_models_without_them_said():
    P, y = drawn(3)
    past = np.roll(P, 1, axis=0)
    unseen = stored("out-of-fold", TEXTS[:200], past, y[:200].tolist(), TEXTS[200:300])
    mixed = judged([0, 1, 2], y.tolist(), P, unseen=unseen)
    assert mixed.kinds == {"out-of-fold": 200, "other texts": 300, "seen in training": 100}
    assert (mixed.kind, mixed.n) == ("mixed", 500)
    assert mixed.accuracy == np.mean(np.r_[past[:200].argmax(1) == y[:200], P[300:].argmax(1) == y[300:]])
    assert np.allclose(mixed.given.p_given[:200], past[np.arange(200), y[:200]], rtol=1e-5)

    def kind(part):
        found = judged([0, 1, 2], y[part].tolist(), P[part], TEXTS[part], unseen)
        return found.kind, found.n

    assert kind(slice(0, 50)) == ("out-of-fold", 50)
    assert kind(slice(200, 260)) == ("seen in training", 60)
    assert kind(slice(280, 320)) == ("other texts", 20)
    assert "seen in training" in str(judged([0, 1, 2], y[200:260].tolist(), P[200:260], TEXTS[200:260], unseen))


def test_slices_that_are_worse_are_worse_by_more_than_chance():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 600)
    groups = rng.choice(["x", "y", "rare"], 600, p=[0.5, 0.48, 0.02])
    right = np.where(groups == "y", rng.random(600) < 0.6, rng.random(600) < 0.95)
    P = np.eye(2)[np.where(right, y, 1 - y)] * 0.8 + 0.1
    found = slices(judged([0, 1], y.tolist(), P), groups.tolist())
    assert [one["value"] for one in found if one["worse"]] == ["y"]
    assert found[0]["value"] == "y"
    for one in found:
        own = groups == one["value"]
        assert (one["n"], one["accuracy"]) == (own.sum(), right[own].mean())
        assert one["interval"] == list(wilson(int(right[own].sum()), int(own.sum()), 1 - 0.05 / 3))


def test_two_models_are_compared_on_the_texts_that_neither_has_seen():
    P, y = drawn(2)
    other = np.where(np.arange(600)[:, None] % 3, P, P[:, ::-1])  # every third answer is turned round
    unseen = stored("held-out", TEXTS[:10], P, y[:10].tolist(), TEXTS[10:40])
    a, b = judged([0, 1], y.tolist(), P, unseen=unseen), judged([0, 1], y.tolist(), other)
    found = compare(a, b)
    right, wrong = (Q.argmax(1) == y for Q in (P, other))
    counts = np.r_[:10, 40:600]
    assert found["n"] == 570
    assert found["first_only"] == (right & ~wrong)[counts].sum()
    assert found["second_only"] == (wrong & ~right)[counts].sum()
    assert found["difference"] == pytest.approx(right[counts].mean() - wrong[counts].mean())
    assert found["interval"][0] < found["difference"] < found["interval"][1]
    assert len(found["disagreements"]) == (P.argmax(1) != other.argmax(1))[counts].sum()
    turned = compare(b, a)
    assert turned["difference"] == -found["difference"]
    assert np.allclose(turned["interval"], [-end for end in found["interval"][::-1]])


def test_the_interval_of_a_difference_covers_it():
    rng, inside, truth = np.random.default_rng(1), 0, 0.1
    for _ in range(400):
        cell = rng.choice(4, 200, p=[0.7, 0.05, 0.15, 0.1])  # both, second only, first only, neither
        first, second = np.isin(cell, [0, 2]), np.isin(cell, [0, 1])
        answers = [Answers.of(np.eye(2)[(~right).astype(int)], np.zeros(200, int)) for right in (first, second)]
        kinds = np.full(200, KINDS.index("other texts"))
        found = compare(*(Evaluation([0, 1], 2, one, kinds) for one in answers))
        inside += found["interval"][0] <= truth <= found["interval"][1]
    assert 370 <= inside <= 394  # 380 expected; three standard deviations are 13
