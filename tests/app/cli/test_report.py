"""`keytokens report` as a person meets it."""

import json

import keytokens as kt
from keytokens.io import write_table

from ...corpus import reviews, topics
from .test_cli import ok


def test_report(here, capsys):
    out = ok(capsys, "report", "model", "reviews.csv", "-o", "page.html")
    assert "150 texts from column 'review', labels from column 'sentiment' (guessed" in out
    assert "accuracy " in out
    size = (here / "page.html").stat().st_size
    tokens = len(kt.load("model").vocabulary_)
    assert f"page: page.html ({size / 1e6:.1f} MB: {tokens:,} of {tokens:,} tokens, 150 of 150 texts)" in out
    assert "<title>reviews.csv</title>" in (here / "page.html").read_text("utf-8")


def test_json_is_one_document(here, capsys):
    clf = kt.load("model")
    texts, labels = reviews(150)
    arguments = ["--max-tokens", "30", "--max-texts", "20", "--title", "x", "--json"]
    found = json.loads(ok(capsys, "report", "model", "reviews.csv", *arguments))
    assert found["page"] == "report.html"
    assert found["bytes"] == (here / "report.html").stat().st_size
    assert (found["tokens"], found["tokens_of"], found["shown"]) == (30, len(clf.vocabulary_), 20)
    assert found["accuracy"] == clf.score(texts, labels), "of the whole model"
    assert "it holds 30 of the" in found["left_out"][1]
    assert found["columns"] == {"text": "review", "label": "sentiment"}


def test_the_same_contents_give_the_same_bytes(here, capsys):
    ok(capsys, "report", "model", "reviews.csv", "-o", "one.html")
    ok(capsys, "report", "model", "reviews.csv", "-o", "two.html")
    assert (here / "one.html").read_bytes() == (here / "two.html").read_bytes()


def test_numbers_as_labels(here, capsys):
    """A CSV file knows no numbers: labels are compared as they are written."""
    texts, labels = topics(80)
    kt.KeyTokenClassifier(threads=1).fit(texts, labels).save("topics")
    write_table("topics.csv", {"text": texts, "topic": labels})
    found = json.loads(ok(capsys, "report", "topics", "topics.csv", "--json"))
    assert found["accuracy"] > 0.9
    assert found["names"] == ["0", "1", "2", "3"]
