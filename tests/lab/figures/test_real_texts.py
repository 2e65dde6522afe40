"""The figures of real texts, and what the command does without texts."""

import json
import os

import pytest

from keytokens.app.cli.app import run
from keytokens.lab.figures import figures, several_classes

from ...conftest import skip_or_fail
from .made import made


def test_on_reviews(imdb):
    """Fewer reviews and words than the figure has: the arms are there, if not as clearly."""
    tables = made("imdb").tables
    numbers = {name: float(column[0]) for name, column in tables["numbers"].items()}
    assert numbers["step_correlation"] > 0.9
    assert numbers["E_v_delta"] > 0.7
    assert numbers["E_p_size"] > 0.3
    assert abs(numbers["E_p_delta"]) < 0.25
    assert numbers["E_p_bend"] > 0


def test_attention_sharpens(imdb):
    """Few reviews are learnt by heart in the end, so that only the beginning falls all the way."""
    training = made("training").tables["training"]
    assert training["soft_share"][0] == pytest.approx(1)
    assert training["soft_share"].min() < 0.9
    assert training["norm"][0] == 0
    assert training["norm"][-1] > training["norm"][5] > 0


def test_four_classes():
    """Each arm on its own; and the words that win most documents of a class are words of that class."""
    if "KEYTOKENS_DATA" not in os.environ:
        skip_or_fail("KEYTOKENS_DATA is not set: real data sets are not at hand")
    done = made("classes")
    assert [check.name for check in done.checks if not check.passed] == []
    chosen, tokens = done.tables["selected"], done.tables["tokens"]
    own = dict(zip(tokens["token"].tolist(), tokens["cls"].tolist(), strict=True))
    for k, name in enumerate(several_classes.NAMES):
        words = chosen["word"][chosen["cls"] == name][:3].tolist()
        assert {own.get(word, k) for word in words} == {k}


def test_texts_that_are_not_at_hand(monkeypatch, tmp_path, capsys):
    monkeypatch.delenv("KEYTOKENS_DATA", raising=False)
    assert run(["figure", "yelp-reviews", "-o", str(tmp_path)]) == 2
    assert "Set KEYTOKENS_DATA to the folder" in capsys.readouterr().err
    monkeypatch.setattr("keytokens.app.cli.figure.figures", lambda names: figures(["yelp-reviews"]))
    assert run(["figure", "--all", "-o", str(tmp_path), "--json"]) == 0
    assert list(json.loads(capsys.readouterr().out)["left_out"]) == ["yelp-reviews"]
