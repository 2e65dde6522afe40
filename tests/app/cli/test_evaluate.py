"""Honest scores through the commands: of which kind a number is, whatever way the model was made."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import keytokens as kt
from keytokens.app.cli.app import run
from keytokens.io import write_table

from ...corpus import reviews, topics


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Texts to learn from, each once, and others; the present folder."""
    monkeypatch.chdir(tmp_path)
    texts, labels = reviews(260)
    texts = [f"{text} number{i}" for i, text in enumerate(texts)]
    for name, rows in (("in", slice(0, 200)), ("new", slice(200, None))):
        write_table(
            f"{name}.csv", {"text": texts[rows], "label": labels[rows], "half": ["a", "b"] * (len(texts[rows]) // 2)}
        )
    return tmp_path


def said(capsys, *arguments: str):
    assert run(list(arguments)) == 0, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


def refused(capsys, *arguments: str) -> str:
    assert run(list(arguments)) == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    return message


ROADS = {
    "default": ([], "out-of-fold", 200, "out-of-fold"),
    "on disk, cross-fitted": (["--memory", "1GB", "--cross-fit", "5"], "out-of-fold", 200, "out-of-fold"),
    "on disk": (["--memory", "1GB"], "held-out", None, "held-out"),
    "held out": (["--cross-fit", "0"], "held-out", None, "held-out"),
    "resumable": (["--resume", "--holdout", "0.3"], "held-out", None, "held-out"),
    "nothing": (["--holdout", "0"], None, 0, "seen in training"),
    "nothing, on disk": (["--holdout", "0", "--memory", "1GB"], None, 0, "seen in training"),
    "no hashes": (["--no-hashes"], "out-of-fold", 200, "not known"),
    "small": (["--size", "12kB"], "out-of-fold", None, "out-of-fold"),
}


@pytest.mark.parametrize("road", ROADS)
def test_a_training_score_is_never_taken_for_another(here, capsys, road):
    options, kept, n, on_table = ROADS[road]
    score = said(capsys, "fit", "in.csv", "-o", "m", "--json", *options)["score"]
    if kept is None:
        assert score is None
        assert "keeps no score: it was fitted without" in refused(capsys, "evaluate", "m")
    else:
        assert (score["kind"], score["n"] == n or n is None) == (kept, True)
        again = said(capsys, "evaluate", "m", "--json")
        assert {name: again[name] for name in score} == score
    own, new = (said(capsys, "evaluate", "m", f"{name}.csv", "--json") for name in ("in", "new"))
    assert own["kind"] == on_table
    assert new["kind"] == ("not known" if road == "no hashes" else "other texts")
    assert new["n"] == 60
    if kept and road != "no hashes":
        assert own["accuracy"] == score["accuracy"]
        assert set(own["kinds"]) <= {kept, "seen in training"}
        assert sum(own["kinds"].values()) == 200
    predicted = said(capsys, "predict", "m", "in.csv", "--json")
    assert (predicted["accuracy"], predicted["kind"], predicted["n"]) == (own["accuracy"], own["kind"], own["n"])


def test_in_memory_and_on_disk_the_same_folds_give_the_same_model(here, capsys):
    for name, options in (("a", []), ("b", ["--memory", "1GB", "--cross-fit", "5"])):
        said(capsys, "fit", "in.csv", "-o", name, "--json", "--seed", "3", *options)
    a, b = kt.load("a"), kt.load("b")
    texts = reviews(50, seed=5)[0]
    assert np.array_equal(a.predict_proba(texts), b.predict_proba(texts))
    assert a.unseen_.facts() == b.unseen_.facts()
    assert a.unseen_.scale != 1
    for name, array in a.unseen_.to_arrays().items():
        assert np.array_equal(array, b.unseen_.to_arrays()[name]), name


def test_an_interrupted_cross_fit_goes_on(here, capsys, monkeypatch):
    road = ("fit", "in.csv", "-o", "m", "--resume", "--cross-fit", "3", "--json")
    whole = said(capsys, *road)["score"]
    from keytokens.app.jobs import _InBatches

    with monkeypatch.context() as patched:
        patched.setattr(_InBatches, "fit_all", lambda self: (_ for _ in ()).throw(KeyboardInterrupt))
        assert run(list(road)) == 130
    capsys.readouterr()
    calls = []
    monkeypatch.setattr(_InBatches, "_asked", lambda self: calls.append(self))
    assert said(capsys, *road)["score"] == whole
    assert not calls  # the answers were there already


def test_calibration_changes_no_label(here, capsys):
    said(capsys, "fit", "in.csv", "-o", "m", "--json")
    clf, plain = kt.load("m"), kt.KeyTokenClassifier(random_state=0)
    texts, labels = reviews(260)
    texts = [f"{text} number{i}" for i, text in enumerate(texts)]
    plain.fit(texts[:200], labels[:200])
    assert clf.calibrated_
    assert not plain.calibrated_
    assert clf.predict(texts).tolist() == plain.predict(texts).tolist()
    assert np.allclose(clf.decision_function(texts), plain.decision_function(texts) * clf.unseen_.scale, rtol=1e-5)
    for one, other in zip(clf.explain_many(texts[200:230]), plain.explain_many(texts[200:230]), strict=True):
        assert [item.text for item in one.sufficient] == [item.text for item in other.sufficient]
        assert [item.text for item in one.flip] == [item.text for item in other.flip]


def test_texts_are_kept_when_asked_for(here, capsys):
    said(capsys, "fit", "in.csv", "-o", "m", "--keep-texts", "--cross-fit", "2", "--json")
    clf = kt.load("m")
    assert len(clf.unseen_.texts) == 200
    assert (clf.unseen_.find(clf.unseen_.texts)[0] == np.arange(200)).all()
    said(capsys, "fit", "in.csv", "-o", "m", "--json")
    assert kt.load("m").unseen_.texts == ()


def test_what_a_person_reads(here, capsys):
    assert run(["fit", "in.csv", "-o", "m"]) == 0
    assert re.search(
        r"accuracy [01]\.\d{4} \(0\.\d{4} to [01]\.\d{4}\) on 200 texts, out of fold", capsys.readouterr().out
    )
    assert run(["evaluate", "m", "in.csv", "--by", "half", "--compare", "m"]) == 0
    lines = capsys.readouterr().out
    for part in ("macro F1", "class    ", "By half: 0 of 2 values are worse", "They disagree on 0 texts", "no clear"):
        assert part in lines
    assert run(["fit", "in.csv", "-o", "bare", "--holdout", "0"]) == 0
    assert run(["evaluate", "bare", "in.csv"]) == 0
    assert "this says nothing about the next text" in capsys.readouterr().out


def test_slices_and_comparison_in_json(here, capsys):
    said(capsys, "fit", "in.csv", "-o", "m", "--json")
    said(capsys, "fit", "in.csv", "-o", "other", "--ngrams", "1", "--holdout", "0", "--json")
    found = said(capsys, "evaluate", "m", "new.csv", "--by", "half", "--compare", "other", "--json")
    assert {one["value"] for one in found["slices"]} == {"a", "b"}
    assert sum(one["n"] for one in found["slices"]) == 60
    assert found["compare"]["n"] == 60
    assert found["compare"]["accuracies"][0] == found["accuracy"]
    assert found["columns"] == {"text": "text", "label": "label"}


def test_what_cannot_be_evaluated(here, capsys):
    said(capsys, "fit", "in.csv", "-o", "m", "--json")
    write_table("bare.csv", {"text": ["great film", "dull plot"]})
    (here / "empty.csv").write_text("text,label\n")
    write_table("strange.csv", {"text": ["great film", "dull plot"], "label": ["yes", "no"]})
    assert "which column holds the label" in refused(capsys, "evaluate", "m", "bare.csv")
    assert "--by must name a column; saw 'nope'" in refused(capsys, "evaluate", "m", "new.csv", "--by", "nope")
    assert "--by and --compare need a table" in refused(capsys, "evaluate", "m", "--by", "half")
    assert "empty" in refused(capsys, "evaluate", "m", "empty.csv")
    found = said(capsys, "evaluate", "m", "strange.csv", "--json")
    assert (found["accuracy"], found["log_loss"], found["labels"]) == (0.0, None, ["neg", "pos", "yes", "no"])
    assert "--holdout measures where --cross-fit does not" in refused(
        capsys, "fit", "in.csv", "-o", "x", "--cross-fit", "3", "--holdout", "0.2"
    )
    assert "--cross-fit must be 0, or 2 folds or more" in refused(
        capsys, "fit", "in.csv", "-o", "x", "--cross-fit", "1"
    )
    scores = next((here / "m").glob("scores-*"))
    scores.write_bytes(scores.read_bytes()[:-1] + b"\0")
    assert f"{scores.name} is damaged" in refused(capsys, "evaluate", "m")


def test_one_text_in_the_place_of_a_table(here, capsys):
    texts, labels = topics(100)
    kt.KeyTokenClassifier().fit(texts, labels).save("m")
    clf = kt.load("m")
    found = said(capsys, "predict", "m", "the ball and the team", "--json")
    assert found["label"] == clf.predict(["the ball and the team"]).tolist()[0]
    assert found["probabilities"] == clf.predict_proba(["the ball and the team"])[0].tolist()
    assert run(["predict", "m", "the ball and the team"]) == 0
    first, *rest = capsys.readouterr().out.splitlines()
    assert first.split()[-1] == str(found["label"])
    assert len(rest) == 3
    assert "no such file.csv: cannot be read" in refused(capsys, "predict", "m", "no such file.csv").lower()
    assert "belong to a table" in refused(capsys, "predict", "m", "the ball and the team", "-o", "out.csv")


def test_labels_in_a_table_are_found_by_their_name(here, capsys):
    said(capsys, "fit", "in.csv", "-o", "m", "--json")
    write_table("gaps.csv", {"text": ["great film", "dull plot", "the story"], "label": ["pos", "", "neg"]})
    found = said(capsys, "predict", "m", "gaps.csv", "--json")
    assert (found["n"], found["label_column"], found["kind"]) == (2, "label", "other texts")
    assert "must be a label" in refused(capsys, "predict", "m", "gaps.csv", "--label", "label")
    write_table("without.csv", {"text": ["great film"], "id": ["7"]})
    assert said(capsys, "predict", "m", "without.csv", "--json")["accuracy"] is None
