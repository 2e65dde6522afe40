"""`keytokens explain --data`: every row of a table, in full or in one line."""

import json

import pytest

import keytokens as kt
from keytokens.app.cli.app import run
from keytokens.io import read_table, write_table

from ...corpus import label_without, reviews, topics


@pytest.fixture
def here(here, monkeypatch):
    """The texts of a table of a few batches."""
    monkeypatch.setattr("keytokens.app.cli.explain.ROWS", 10)
    texts = [*reviews(24, seed=3)[0], "", "zzz"]
    write_table("in.csv", {"id": list(range(26)), "text": texts})
    return texts


def records(name):
    with open(name, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


@pytest.mark.parametrize("words", [True, False])
def test_full_records(here, capsys, words):
    more = ["--words"] if words else []
    assert run(["explain", "model", "--data", "in.csv", "-o", "out.jsonl", *more]) == 0
    assert capsys.readouterr().out == "26 explanations of column 'text' in out.jsonl\n"
    clf = kt.load("model")
    expected = [clf.explain(text).to_dict(words=words) for text in here]
    assert records("out.jsonl") == expected
    assert run(["explain", "model", "--data", "in.csv", *more]) == 0
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == expected
    assert run(["explain", "model", "--data", "in.csv", "--json", *more]) == 0
    assert json.loads(capsys.readouterr().out) == {"text_column": "text", "explanations": expected}


@pytest.mark.parametrize("ending", ["csv", "tsv.gz", "parquet"])
def test_one_line_a_row(here, capsys, ending):
    assert run(["explain", "model", "--data", "in.csv", "-o", f"out.{ending}", "--text", "text"]) == 0
    found = read_table(f"out.{ending}").columns
    added = ["prediction", "probability", "sufficient", "flip", "flips_to", "proved", "rival"]
    assert list(found) == ["id", "text", *added]
    assert found["text"] == here
    clf = kt.load("model")
    for i, text in enumerate(here):
        one = clf.explain(text)
        assert found["prediction"][i] == one.label
        assert float(found["probability"][i]) == round(one.probability, 6)
        assert found["sufficient"][i] == " | ".join(item.text for item in one.sufficient)
        assert found["flip"][i] == " | ".join(item.text for item in one.flip)
        assert (found["flips_to"][i] or None) == one.flip.label_after
        assert found["rival"][i] == one.rival
    assert {str(value) for value in found["proved"][:24]} == {"True"}
    assert {str(value) for value in found["proved"][24:]} == {"False"}  # no known token: nothing to prove


def test_deleting_the_flip_set_flips(here, capsys):
    """The line in the table is true: without the tokens of `flip` the model says `flips_to`."""
    run(["explain", "model", "--data", "in.csv", "-o", "out.csv"])
    found = read_table("out.csv").columns
    clf = kt.load("model")
    for text, flip, after in zip(found["text"], found["flip"], found["flips_to"], strict=True):
        assert not flip or label_without(clf, text, flip.split(" | ")) == after


def test_more_classes_say_what_is_no_minimum(here, capsys):
    texts, labels = topics(120)
    kt.KeyTokenClassifier().fit(texts, labels).save("topics")
    write_table("t.csv", {"text": texts[:30]})
    assert run(["explain", "topics", "--data", "t.csv", "-o", "out.jsonl"]) == 0
    assert run(["explain", "topics", "--data", "t.csv", "-o", "out.csv"]) == 0
    proved = [value == "True" for value in read_table("out.csv").columns["proved"]]
    for one, is_proved in zip(records("out.jsonl"), proved, strict=True):
        minima = one["sufficient"]["status"] == "minimum" and one["flip"]["status"] in ("minimum", "none")
        assert is_proved == (minima and not one["certificate"]["tight"])


def test_a_rival_is_chosen_by_its_name(here, capsys):
    texts, labels = topics(120)
    kt.KeyTokenClassifier().fit(texts, labels).save("topics")
    e = kt.load("topics").explain("ball ball market")
    others = [label for label in e.probabilities if label != e.label]
    for rival in others:
        assert run(["explain", "topics", e.text, "--rival", str(rival)]) == 0
        assert f"+ speaks for {e.label}, - for {rival};" in capsys.readouterr().out
    for wrong, says in ((e.label, "be another class than"), ("none", "be a class of the model")):
        assert run(["explain", "topics", e.text, "--rival", str(wrong)]) == 2
        assert f"explain: `rival` must {says}" in capsys.readouterr().err
    write_table("t.csv", {"text": texts[:30]})
    assert run(["explain", "topics", "--data", "t.csv", "-o", "out.jsonl", "--rival", str(others[0])]) == 0
    assert all((one["rival"] == others[0]) != (one["label"] == others[0]) for one in records("out.jsonl"))
