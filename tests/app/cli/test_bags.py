"""`keytokens explain` with a model of bags: a table is one bag."""

import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import keytokens as kt

from ...estimators.bags.planted import planted
from .test_cli import ok


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet"])
def test_explains_a_table(here, capsys, ending):
    bag = planted()[0][1]
    shown = ok(capsys, "explain", "bags", f"bag.{ending}", "--html", "why.html")
    assert f"of {len(bag)} instances" in shown
    assert "Sufficient instances" in Path("why.html").read_text("utf-8")
    record = json.loads(ok(capsys, "explain", "bags", f"bag.{ending}", "--json"))
    assert record == kt.load("bags").explain(bag).to_dict()


def test_standard_input(here, capsys, monkeypatch):
    given = io.BytesIO(Path("bag.csv").read_bytes())
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=given))
    assert "instances" in ok(capsys, "explain", "bags", "-")
