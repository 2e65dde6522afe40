"""`keytokens fit` with a budget: seconds for the options, bytes for the model."""

from __future__ import annotations

import json

import pytest

import keytokens as kt
from keytokens import tuning
from keytokens.cli import fit as command
from keytokens.cli.app import run
from keytokens.tables import write_table

from ..corpus import reviews
from .test_cli import ok, refused


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A table of reviews, each with a word of its own, in the present folder."""
    monkeypatch.chdir(tmp_path)
    texts, labels = reviews(200)
    write_table("reviews.csv", {"text": [f"{t} own{i}" for i, t in enumerate(texts)], "label": labels})
    return tmp_path


def size(folder):
    return sum(file.stat().st_size for file in folder.iterdir())


def test_autotune_tells_what_it_found(here, capsys):
    out = ok(capsys, "fit", "reviews.csv", "-o", "m", "--autotune", "0.5")
    tuned, score = out.splitlines()[1:3]
    assert tuned.startswith("tuned: accuracy ")
    assert "random_state" not in tuned, "what was given is not what was found"
    assert " trial" in tuned
    assert "on 40 held-out texts" in score
    assert kt.load("m").predict(["a great film"]).tolist() == ["pos"]


def test_json_holds_the_trials(here, capsys):
    found = json.loads(ok(capsys, "fit", "reviews.csv", "-o", "m", "--autotune", "2", "--counts", "log", "--json"))
    tuning = found["tuning"]
    assert tuning["metric"] == "accuracy"
    assert tuning["options"]["counts"] == "log"
    assert len(tuning["trials"]) >= 1
    assert all(trial["options"]["counts"] == "log" for trial in tuning["trials"])
    assert {**found["options"], **tuning["options"]} == found["options"]
    assert found["score"]["texts"] == 40
    assert json.loads(ok(capsys, "fit", "reviews.csv", "-o", "m", "--json"))["tuning"] is None


def test_the_held_out_texts_stay_outside_the_tuning(here, capsys, monkeypatch):
    seen, asked = [], []
    plain_build, plain_tune, plain_ask = tuning.build, command.autotune, kt.KeyTokenClassifier.predict_proba

    def build(texts, *rest):
        seen.extend(texts)
        return plain_build(texts, *rest)

    def tune(texts, labels, **options):
        tuned = plain_tune(texts, labels, **options)
        assert set(seen) == set(texts)
        seen.append("the end of the tuning")
        return tuned

    def predict_proba(self, texts):
        asked.extend(texts)
        return plain_ask(self, texts)

    monkeypatch.setattr(tuning, "build", build)
    monkeypatch.setattr(command, "autotune", tune)
    monkeypatch.setattr(kt.KeyTokenClassifier, "predict_proba", predict_proba)
    ok(capsys, "fit", "reviews.csv", "-o", "m", "--autotune", "0.5")
    assert seen.count("the end of the tuning") == 1
    assert len(asked) == 40
    assert len(set(seen) - {"the end of the tuning"}) == 160
    assert not set(asked) & set(seen)


def test_without_a_held_out_share_all_texts_are_tuned_on(here, capsys):
    found = json.loads(ok(capsys, "fit", "reviews.csv", "-o", "m", "--autotune", "0.5", "--holdout", "0", "--json"))
    assert found["score"] is None
    assert found["tuning"]["trials"][0]["texts"] in (40, 80, 120, 160, 200)


def test_size_alone(here, capsys, monkeypatch):
    ok(capsys, "fit", "reviews.csv", "-o", "whole")
    scored = []
    plain = kt.KeyTokenClassifier.predict_proba

    def predict_proba(self, texts):
        scored.append(len(self.vocabulary_))
        return plain(self, texts)

    monkeypatch.setattr(kt.KeyTokenClassifier, "predict_proba", predict_proba)
    ok(capsys, "fit", "reviews.csv", "-o", "small", "--size", "10kB")
    assert size(here / "small") <= 10_000 < size(here / "whole")
    tokens = len(kt.load("small").vocabulary_)
    assert tokens <= len(kt.load("whole").vocabulary_)
    unpressed = kt.KeyTokenClassifier().fit(*reviews(160))
    assert scored[0] != len(unpressed.vocabulary_)


def test_size_and_autotune(here, capsys):
    found = json.loads(ok(capsys, "fit", "reviews.csv", "-o", "m", "--autotune", "1", "--size", "10kB", "--json"))
    assert found["bytes"] <= 10_000
    assert found["bytes"] == size(here / "m")


def test_options_that_are_not_given_are_the_model_s_own(here, capsys):
    ok(capsys, "fit", "reviews.csv", "-o", "m", "--ratio", "0.5", "--spread", "2")
    usual = kt.KeyTokenClassifier().get_params()
    assert kt.load("m").get_params() == {**usual, "ratio": 0.5, "spread": 2.0, "random_state": 0, "verbose": 1}
    shown = ok(capsys, "fit", "--help")
    for name in ("counts", "sink", "ratio", "spread", "attention_penalty"):
        assert f"[default: ({usual[name]})]" in " ".join(shown.split())


@pytest.mark.parametrize("wrong", ["2XB", "MB", "-1MB", "2 M B", "", "1e3MB", "٣MB", "9kB", "nan", "0"])
def test_sizes_that_are_none(here, capsys, wrong):
    line = refused(capsys, "fit", "reviews.csv", "-o", "m", f"--size={wrong}")
    assert f"--size must be at least 10kB, written like 500kB, 2MB or 1GB; saw {wrong!r}." in line


@pytest.mark.parametrize("wrong", ["0", "-1", "nan", "inf", "soon"])
def test_times_that_are_none(here, capsys, wrong):
    assert "--autotune" in refused(capsys, "fit", "reviews.csv", "-o", "m", f"--autotune={wrong}")
    assert not (here / "m").exists()


def test_ctrl_c_while_tuning_leaves_no_model(here, capsys, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(tuning.Data, "probabilities", interrupt)
    assert run(["fit", "reviews.csv", "-o", "m", "--autotune", "5"]) == 130
    assert capsys.readouterr().err == "keytokens: interrupted; what was there before is unchanged.\n"
    assert not (here / "m").exists()


@pytest.mark.parametrize("seed", ["-1", "4294967296"])
def test_a_seed_that_is_none(here, capsys, seed):
    assert "'--seed'" in refused(capsys, "fit", "reviews.csv", "-o", "model", "--seed", seed)
