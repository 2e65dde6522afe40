"""`keytokens explain` with a model of bags: a table is one bag."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import keytokens as kt
from keytokens.io import write_table

from ...estimators.bags.planted import planted
from .test_cli import ok, refused


@pytest.fixture
def model(tmp_path, monkeypatch):
    """A folder with a model and one bag in every format, as the present folder."""
    monkeypatch.chdir(tmp_path)
    bags, y = planted()
    clf = kt.BagClassifier(random_state=0).fit(bags, y)
    clf.save("model")
    for ending in ("csv", "tsv", "jsonl", "parquet"):
        write_table(f"bag.{ending}", {f"x{j}": column for j, column in enumerate(bags[1].T.tolist())})
    return clf, bags[1]


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet"])
def test_explains_a_table(model, capsys, ending):
    clf, bag = model
    shown = ok(capsys, "explain", "model", f"bag.{ending}", "--html", "why.html")
    assert f"of {len(bag)} instances" in shown
    assert "Sufficient instances" in Path("why.html").read_text("utf-8")
    assert json.loads(ok(capsys, "explain", "model", f"bag.{ending}", "--json")) == clf.explain(bag).to_dict()


def test_standard_input(model, capsys, monkeypatch):
    given = io.BytesIO(Path("bag.csv").read_bytes())
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=given))
    assert "instances" in ok(capsys, "explain", "model", "-")


def test_refusals(model, capsys):
    write_table("words.csv", {"x0": [1.0], "x1": ["one"], "x2": [1.0], "x3": [1.0]})
    assert "words.csv: every column must hold numbers; saw otherwise" in refused(
        capsys, "explain", "model", "words.csv"
    )
    write_table("narrow.csv", {"x0": [1.0]})
    assert "must have 4 features an instance" in refused(capsys, "explain", "model", "narrow.csv")
    assert "cannot be read" in refused(capsys, "explain", "model", "none.csv")
    assert "a text: cannot be read: no such file" in refused(capsys, "explain", "model", "a text")
    Path("a text").write_text("x0,x1\n", "utf-8")
    assert "the name must end in one of" in refused(capsys, "explain", "model", "a text")
