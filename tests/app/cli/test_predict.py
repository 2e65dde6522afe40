"""`keytokens predict` on tables that come in batches."""

import gzip
import json
import sys
import tracemalloc

import pytest

import keytokens as kt
from keytokens.app.cli.app import run
from keytokens.io import read_table, write_table

from ...corpus import reviews


@pytest.fixture
def here(here, monkeypatch):
    """Tables come in batches of ten rows."""
    # defaults are bound when a function is made, so the batch is set where predict asks for it
    from keytokens.io import read_batches

    monkeypatch.setattr("keytokens.app.cli.predict.read_batches", lambda *given: read_batches(*given, rows=10))
    return here


@pytest.mark.parametrize("threads", ["1", "2", "5"])
@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet", "csv.gz"])
def test_rows_keep_their_order_and_their_columns(here, capsys, ending, threads):
    texts, labels = reviews(95, seed=1)
    columns = {"id": [str(i) for i in range(95)], "text": texts, "truth": labels}
    write_table(f"in.{ending}", columns)
    assert (
        run(["predict", "model", f"in.{ending}", "-o", f"out.{ending}", "--label", "truth", "--threads", threads]) == 0
    )
    said = capsys.readouterr().out
    clf = kt.load("model")
    P = clf.predict_proba(texts)
    predicted = clf.predict(texts).tolist()
    found = read_table(f"out.{ending}").columns
    assert {name: found[name] for name in columns} == columns
    assert found["prediction"] == predicted
    assert [float(p) for p in found["probability"]] == P.max(axis=1).round(6).tolist()
    right = sum(map(str.__eq__, predicted, labels))
    score = f"accuracy {right / 95:.4f} on 95 texts of column 'truth' (other texts)"
    assert said == f"95 predictions of column 'text' in out.{ending}\n{score}\n"


def test_one_json_document(here, capsys):
    texts, labels = reviews(35, seed=2)
    write_table("in.csv", {"text": texts, "truth": labels})
    assert run(["predict", "model", "in.csv", "--json", "--label", "truth"]) == 0
    said = capsys.readouterr().out
    clf = kt.load("model")
    P, predicted = clf.predict_proba(texts), clf.predict(texts).tolist()
    expected = {
        "text_column": "text",
        "label_column": "truth",
        "classes": ["neg", "pos"],
        "accuracy": sum(map(str.__eq__, predicted, labels)) / 35,
        "kind": "other texts",
        "n": 35,
        "predictions": [
            {"label": y, "probability": max(row), "probabilities": row}
            for y, row in zip(predicted, P.tolist(), strict=True)
        ],
    }
    assert said == json.dumps(expected) + "\n"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("in.csv", b"text,n\n" + b"a great film,1\n" * 500 + b"lost\n", "in.csv, line 502: a row must have 2 fields"),
        (
            "in.csv.gz",
            gzip.compress(b"text\n" + b"dull\n" * 50 + b"\xff\n", mtime=0),
            "in.csv.gz, line 52: the text must be UTF-8",
        ),
        ("in.jsonl", b'{"text": "a"}\n' * 50 + b'{"text": 7}\n', "in.jsonl, line 51: 'text' must be a string; saw 7."),
    ],
)
@pytest.mark.parametrize("arguments", [["-o", "out.csv"], ["-o", "out.parquet"], ["--json"]])
def test_an_error_far_down_leaves_nothing(here, capsys, name, content, message, arguments):
    (here / name).write_bytes(content)
    (here / "out.csv").write_text("old")
    before = sorted(file.name for file in here.iterdir())
    assert run(["predict", "model", name, *arguments]) == 2
    seen = capsys.readouterr()
    assert seen.out == ""
    assert seen.err.startswith(f"keytokens: {message}")
    assert seen.err.count("\n") == 1
    assert sorted(file.name for file in here.iterdir()) == before
    assert (here / "out.csv").read_text() == "old"


@pytest.mark.parametrize("arguments", [["-o", "out.csv"], ["-o", "out.jsonl"], ["--json"]])
def test_the_memory_does_not_grow_with_the_file(here, capfd, arguments):
    """Ten times the rows: the same peak, within what a few batches may differ."""

    def peak(rows):
        write_table("in.csv", {"text": [f"a great film {i} " * 60 for i in range(rows)]})
        tracemalloc.start()
        try:
            assert run(["predict", "model", "in.csv", *arguments]) == 0
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(100)  # what is made once
    assert peak(3000) < peak(300) + 300_000  # the texts alone have 2.7 million bytes


def test_a_terminal_sees_progress(here, capsys, monkeypatch):
    """On a terminal only, and wiped in the end."""
    write_table("t.csv", {"text": reviews(30)[0]})
    monkeypatch.setattr("keytokens.app.cli.common._PATIENCE", 0.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert run(["predict", "model", "t.csv", "-o", "out.csv"]) == 0
    assert "predicting" in capsys.readouterr().err


def test_labels_that_are_no_numbers_in_one_batch(here, capsys):
    """A class of the model is right or wrong by itself, whatever else is in its batch."""
    texts, labels = reviews(30)
    numbers = [int(label == "pos") for label in labels]
    kt.KeyTokenClassifier().fit(texts, numbers).save("numbers")
    write_table("t.csv", {"text": texts, "label": ["unknown", *(f"{n}.0" for n in numbers[1:])]})
    assert run(["predict", "numbers", "t.csv", "-o", "out.csv", "--label", "label"]) == 0
    assert f"accuracy {29 / 30:.4f}" in capsys.readouterr().out
