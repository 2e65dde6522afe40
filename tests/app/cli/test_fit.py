"""`keytokens fit` with a budget: seconds for the options, bytes for the model."""

import json
import re

import pytest

import keytokens as kt
from keytokens.app import jobs
from keytokens.app.cli.app import run
from keytokens.estimators import tuning
from keytokens.io import write_table

from ...corpus import reviews
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
    lines = out.splitlines()
    (tuned,), (score,) = ([line for line in lines if line.startswith(start)] for start in ("tuned", "accuracy"))
    assert tuned.startswith("tuned: accuracy ")
    assert "random_state" not in tuned, "what was given is not what was found"
    assert " trial" in tuned
    assert re.search(r"on \d\d held-out texts", score)
    assert kt.load("m").predict(["a great film"]).tolist() == ["pos"]


def test_json_holds_the_trials(here, capsys):
    found = json.loads(ok(capsys, "fit", "reviews.csv", "-o", "m", "--autotune", "2", "--counts", "log", "--json"))
    tuning = found["tuning"]
    assert tuning["metric"] == "accuracy"
    assert tuning["options"]["counts"] == "log"
    assert len(tuning["trials"]) >= 1
    assert all(trial["options"]["counts"] == "log" for trial in tuning["trials"])
    assert {**found["options"], **tuning["options"]} == found["options"]
    assert found["score"]["kind"] == "held-out"
    assert json.loads(ok(capsys, "fit", "reviews.csv", "-o", "m", "--json"))["tuning"] is None


def test_the_held_out_texts_stay_outside_the_tuning(here, capsys, monkeypatch):
    seen, asked = [], []
    plain_build, plain_tune, plain_ask = tuning.build, jobs.autotune, kt.KeyTokenClassifier.predict_log_proba

    def build(texts, *rest):
        seen.extend(texts)
        return plain_build(texts, *rest)

    def tune(texts, labels, **options):
        tuned = plain_tune(texts, labels, **options)
        assert set(seen) == set(texts)
        seen.append("the end of the tuning")
        return tuned

    def predict_log_proba(self, texts):
        asked.extend(texts)
        return plain_ask(self, texts)

    monkeypatch.setattr(tuning, "build", build)
    monkeypatch.setattr(jobs, "autotune", tune)
    monkeypatch.setattr(kt.KeyTokenClassifier, "predict_log_proba", predict_log_proba)
    ok(capsys, "fit", "reviews.csv", "-o", "m", "--autotune", "0.5")
    assert seen.count("the end of the tuning") == 1
    assert 20 < len(asked) < 60
    assert len(set(seen) - {"the end of the tuning"}) == 200 - len(asked)
    assert not set(asked) & set(seen)


def test_without_a_held_out_share_all_texts_are_tuned_on(here, capsys):
    found = json.loads(ok(capsys, "fit", "reviews.csv", "-o", "m", "--autotune", "0.5", "--holdout", "0", "--json"))
    assert found["score"] is None
    assert found["tuning"]["trials"][0]["texts"] in (40, 80, 120, 160, 200)


def test_size_alone(here, capsys, monkeypatch):
    ok(capsys, "fit", "reviews.csv", "-o", "whole")
    scored = []
    plain = kt.KeyTokenClassifier.predict_log_proba

    def predict_log_proba(self, texts):
        scored.append(len(self.vocabulary_))
        return plain(self, texts)

    monkeypatch.setattr(kt.KeyTokenClassifier, "predict_log_proba", predict_log_proba)
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
    usual = kt.KeyTokenClassifier().flat_params()
    given = {"prior__ratio": 0.5, "prior__spread": 2.0, "random_state": 0, "verbose": 1}
    assert kt.load("m").flat_params() == {**usual, **given}
    shown = ok(capsys, "fit", "--help")
    for name in ("counts", "prior__sink", "prior__ratio", "prior__spread", "prior__attention_penalty"):
        assert f"[default: ({usual[name]})]" in " ".join(shown.split())


SIZE = "--size must be at least 10kB, written like 500kB, 2MB or 1GB; saw {!r}."
WRONG = {
    "--size": (["2XB", "MB", "-1MB", "2 M B", "", "1e3MB", "٣MB", "9kB", "nan", "0"], SIZE),
    "--autotune": (["0", "-1", "nan", "inf", "soon"], "--autotune"),
    "--seed": (["-1", "4294967296"], "'--seed'"),
}


@pytest.mark.parametrize("option, wrong", [(name, wrong) for name, (values, _) in WRONG.items() for wrong in values])
def test_numbers_that_are_none(here, capsys, option, wrong):
    assert WRONG[option][1].format(wrong) in refused(capsys, "fit", "reviews.csv", "-o", "m", f"{option}={wrong}")
    assert not (here / "m").exists()


def test_ctrl_c_while_tuning_leaves_no_model(here, capsys, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(tuning.Data, "probabilities", interrupt)
    assert run(["fit", "reviews.csv", "-o", "m", "--autotune", "5"]) == 130
    assert capsys.readouterr().err == "keytokens: interrupted; what was there before is unchanged.\n"
    assert not (here / "m").exists()


# What is said of the labels

ROADS = [(), ("--memory", "1GB"), ("--resume",)]


@pytest.mark.parametrize("road", ROADS, ids=" ".join)
def test_the_classes_are_counted(here, capsys, road):
    texts, labels = reviews(200)
    pos, neg = labels.count("pos"), labels.count("neg")
    out = ok(capsys, "fit", "reviews.csv", "-o", "m", *road).splitlines()
    assert pos > neg
    assert out[1] == f"2 classes: 'pos' ({pos}), 'neg' ({neg})"
    record = json.loads(ok(capsys, "fit", "reviews.csv", "-o", "m", "--json", *road))
    assert record["classes"] == ["neg", "pos"]
    assert record["class_counts"] == [neg, pos]
    write_table("many.csv", {"text": texts, "label": [f"c{i % 40}" for i in range(200)]})
    out = ok(capsys, "fit", "many.csv", "-o", "m", "--holdout", "0", *road).splitlines()
    assert out[1].startswith("40 classes: 'c0' (5), 'c1' (5), ")
    assert out[1].endswith("'c9' (5) and 30 more")


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("road", ROADS, ids=" ".join)
def test_whole_floats_are_integers(here, capsys, road, ending):
    texts, labels = reviews(200)
    write_table(f"t.{ending}", {"text": texts, "label": [float(label == "pos") for label in labels]})
    record = json.loads(ok(capsys, "fit", f"t.{ending}", "-o", "m", "--json", *road))
    assert record["classes"] == [0, 1]
    assert record["class_counts"] == [labels.count("neg"), labels.count("pos")]
    assert record["score"]["accuracy"] > 0.9
    for command in (
        ["predict", "m", f"t.{ending}", "--label", "label", "-o", "out.csv"],
        ["report", "m", f"t.{ending}"],
    ):
        assert f"accuracy {record['score']['accuracy']:.4f}" in ok(capsys, *command)


def test_names_of_versions_stay_what_they_are(here, capsys):
    """A model that has strings for classes is compared with strings, also where a batch could be read as numbers."""
    texts, labels = reviews(200)
    kt.KeyTokenClassifier().fit(texts, [f"{int(label == 'pos')}.0" for label in labels]).save("m")
    write_table("t.csv", {"text": texts, "label": [f"{int(label == 'pos')}.0" for label in labels]})
    assert "accuracy 1.0000" in ok(capsys, "predict", "m", "t.csv", "--label", "label", "-o", "out.csv")
    assert "accuracy 1.0000" in ok(capsys, "report", "m", "t.csv")


@pytest.mark.parametrize("road", ROADS, ids=" ".join)
def test_labels_that_differ_by_case_or_spaces(here, capsys, road):
    texts, labels = reviews(200)
    labels = [{3: " Pos", 8: "pos ", 9: "POS"}.get(i, label) for i, label in enumerate(labels)]
    labels[10:12] = ["sci fi", "SciFi"]
    write_table("t.csv", {"text": texts, "label": labels})
    for more in ((), ("--json",)):
        assert run(["fit", "t.csv", "-o", "m", *road, *more]) == 0
        err = capsys.readouterr().err
        assert err == (
            f"keytokens: fit: labels 'pos' ({labels.count('pos')}) and ' Pos' (1) and 'pos ' (1) and 'POS' (1); "
            "'sci fi' (1) and 'SciFi' (1) differ only by case or spaces. "
            "Write them alike if they mean the same.\n"
        )


@pytest.mark.parametrize("road", ROADS, ids=" ".join)
def test_a_table_without_a_header(here, capsys, road):
    texts, labels = reviews(200)
    write_table("t.csv", {texts[0]: texts[1:], labels[0]: labels[1:]})
    assert run(["fit", "t.csv", "-o", "m", *road]) == 2
    err = capsys.readouterr().err
    assert err.startswith("keytokens: t.csv, line 1: looks like a row of data, not like names; ")
    assert err.count("\n") == 1
    assert not (here / "m").exists()
    ok(capsys, "fit", "t.csv", "-o", "m", "--text", texts[0], "--label", labels[0], *road)
    assert run(["predict", "m", "t.csv"]) == 2
    assert "t.csv, line 1: looks like a row of data" in capsys.readouterr().err


@pytest.mark.parametrize("road", ROADS, ids=" ".join)
def test_labels_that_hold_values(here, capsys, road):
    write_table("t.jsonl", {"text": ["a b", "c d"], "label": ["x", ["y"]]})
    assert run(["fit", "t.jsonl", "-o", "m", *road]) == 2
    assert "t.jsonl, line 2: 'label' must be a label; saw ['y']." in capsys.readouterr().err
