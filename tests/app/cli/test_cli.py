"""The command line as a person meets it: what it prints, what it writes, how it refuses."""

import csv
import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time

import pytest

import keytokens as kt
from keytokens.app.cli.app import run
from keytokens.io import write_table

from ...corpus import reviews, topics


def ok(capsys, *arguments):
    assert run(list(arguments)) == 0
    seen = capsys.readouterr()
    assert not seen.err
    return seen.out


def refused(capsys, *arguments):
    assert run(list(arguments)) == 2
    seen = capsys.readouterr()
    assert seen.out == ""
    assert seen.err.count("\n") == 1, "one line, no more"
    assert seen.err.startswith("keytokens: ")
    return seen.err


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet"])
def test_fit_predict_explain(here, capsys, ending):
    out = ok(capsys, "fit", f"reviews.{ending}", "-o", "model")
    assert "150 texts from column 'review', labels from column 'sentiment' (guessed" in out
    assert "on 150 texts, out of fold" in out
    out = ok(capsys, "predict", "model", f"reviews.{ending}", "-o", f"out.{ending}", "--label", "sentiment")
    assert f"150 predictions of column 'review' in out.{ending}" in out
    assert "accuracy " in out
    out = ok(capsys, "explain", "model", "a dull plot, but great acting", "--html", "why.html")
    assert "because of" in out
    assert "page: why.html" in out
    assert (here / "why.html").read_text("utf-8").lower().startswith("<!doctype html>")


def test_json_is_one_document_and_nothing_else(here, capsys):
    fitted = json.loads(ok(capsys, "fit", "reviews.csv", "-o", "model", "--json"))
    assert fitted["columns"] == {"text": "review", "label": "sentiment"}
    assert fitted["score"]["n"] == 150
    assert fitted["score"]["accuracy"] > 0.8
    assert set(fitted["seconds"]) == {"read", "score", "fit"}
    assert fitted["options"]["ngrams"] == list(kt.KeyTokenClassifier().ngrams)
    found = json.loads(ok(capsys, "predict", "model", "reviews.csv", "--json"))
    assert len(found["predictions"]) == 150
    clf = kt.load("model")
    explained = json.loads(ok(capsys, "explain", "model", "a dull plot", "--json"))
    assert explained == clf.explain("a dull plot").to_dict()


def test_the_score_is_of_texts_not_seen(here, capsys):
    """Labels drawn by lot cannot be predicted: a score above chance would have seen the answers; one below is said."""
    texts, _ = reviews(400)
    write_table(
        "lot.csv",
        {"text": [f"{t} id{i} id{i}" for i, t in enumerate(texts)], "label": [i * 7919 % 2 for i in range(400)]},
    )
    for more in ([], ["--memory", "1GB"]):
        assert run(["fit", "lot.csv", "-o", "model", "--json", *more]) == 0
        seen = capsys.readouterr()
        score, warnings = (json.loads(seen.out)[name] for name in ("score", "warnings"))
        assert abs(score["accuracy"] - 0.5) < 0.2
        useless = score["accuracy"] <= score["baseline"]["accuracy"]
        assert len(warnings) == useless
        assert ("is no better than" in seen.err) == useless
    assert useless, "one of the two must be seen"


def test_standard_input_and_output(here, monkeypatch, capsysbinary):
    def pipe(*arguments, given):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
        assert run(list(arguments)) == 0
        return capsysbinary.readouterr().out

    table = (here / "reviews.csv").read_bytes()
    pipe("fit", "-", "-o", "model", given=table)
    out = pipe("predict", "model", "-", given=table).decode()
    rows = list(csv.DictReader(io.StringIO(out)))
    assert list(rows[0]) == ["id", "review", "sentiment", "prediction", "probability"]
    assert sum(row["prediction"] == row["sentiment"] for row in rows) > 130
    assert b"great" in pipe("explain", "model", "-", given=b"a great film")
    again = pipe("predict", "model", "-", "--format", "csv", given=out.encode()).decode()
    assert again.split("\n")[0].endswith("prediction,probability,prediction_2,probability_2")


def test_more_classes(here, capsys):
    texts, labels = topics()
    write_table("topics.jsonl", {"text": texts, "topic": labels})
    fitted = json.loads(ok(capsys, "fit", "topics.jsonl", "-o", "m", "--json"))
    assert fitted["classes"] == [0, 1, 2, 3]
    assert "ball" in ok(capsys, "explain", "m", "the ball team goal")


def test_few_texts_give_no_score(here, capsys):
    write_table("few.csv", {"text": ["good", "bad"], "label": ["p", "n"]})
    assert "no score: too few texts" in ok(capsys, "fit", "few.csv", "-o", "m")


def test_options_reach_the_model(here, capsys):
    options = ["--ngrams", "1", "--counts", "binary", "--sink", "0", "--max-tokens", "9"]
    assert run(["fit", "reviews.csv", "-o", "m", *options]) == 0
    clf = kt.load("m")
    assert (clf.ngrams, clf.counts, clf.prior.sink, len(clf.vocabulary_)) == ((1, 1), "binary", 0.0, 9)


def test_help_and_version(capsys):
    out = ok(capsys, "--help")
    for command in ("demo", "fit", "predict", "explain"):
        assert command in out
    assert ok(capsys) == out
    assert ok(capsys, "--version") == f"keytokens {kt.__version__}\n"
    assert "--label" in ok(capsys, "fit", "--help")


PRESSED = """
import os, signal, sys

class Press:
    def find_spec(self, name, *rest):
        if name == sys.argv[1]:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Press())
"""


SCRIPT = "from keytokens.app.cli import main; main()"  # that pip makes
MODULE = "import runpy; runpy.run_module('keytokens', run_name='__main__')"  # `python -m`


@pytest.mark.parametrize(
    "way, module",
    [(SCRIPT, "keytokens.app.cli.app"), (MODULE, "numpy.linalg"), (SCRIPT, "scipy.sparse"), (MODULE, "typer")],
)
def test_ctrl_c_while_modules_load(way, module):
    """At the moment in which this module is looked for."""
    done = subprocess.run([sys.executable, "-c", PRESSED + way, module], capture_output=True, text=True, check=False)
    assert done.stderr == "keytokens: interrupted; what was there before is unchanged.\n"
    assert (done.returncode, done.stdout) == (130, "")


def test_ctrl_c_during_training_leaves_the_old_model(here):
    """A real process, a real signal, at several moments."""
    texts, labels = reviews(300, words=40)
    write_table("large.csv", {"text": texts * 100, "label": labels * 100})
    command = [sys.executable, "-m", "keytokens", "fit", "large.csv", "-o", "model"]
    before = kt.load("model").predict_proba(["great dull film"]).tolist()
    for wait in (0.5, 1.0, 1.5):
        running = subprocess.Popen(command, cwd=here, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(wait)
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=60)
        if running.returncode == 0:  # it was done already
            break
        # before our own code runs, the interpreter itself answers the signal
        assert running.returncode in (130, 1, -signal.SIGINT)
        if running.returncode == 130:
            assert err.decode().strip().split("\n")[-1].endswith("interrupted; what was there before is unchanged.")
        assert kt.load("model").predict_proba(["great dull film"]).tolist() == before
        assert len(os.listdir("model")) == 4


@pytest.mark.parametrize("how", [(), ("--resume",)])
def test_ctrl_c_after_saving_comes_too_late(here, capsys, monkeypatch, how):
    """The new model is in place: to say that the old one is unchanged would be wrong."""
    save = kt.KeyTokenClassifier.save

    def saved_and_interrupted(model, path):
        save(model, path)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(kt.KeyTokenClassifier, "save", saved_and_interrupted)
    assert "model: model" in ok(capsys, "fit", "reviews.csv", "-o", "model", *how)
    assert kt.load("model").classes_.size == 2
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_closed_pipe_is_no_error(here):
    script = f"cat reviews.csv | {sys.executable} -m keytokens predict model - | head -1"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, cwd=here, check=True)
    assert re.fullmatch(r"(accuracy .*\n)?", done.stderr)
    assert done.stdout.startswith("id,review,sentiment")


def test_no_connection_is_opened(here, capsys, monkeypatch):
    def forbidden(*args, **kwargs):
        raise AssertionError("keytokens opened a connection")

    monkeypatch.setattr(socket.socket, "connect", forbidden)
    monkeypatch.setattr(socket, "create_connection", forbidden)
    monkeypatch.setattr(socket, "getaddrinfo", forbidden)
    ok(capsys, "fit", "reviews.csv", "-o", "model")
    ok(capsys, "predict", "model", "reviews.csv", "-o", "out.csv")
    ok(capsys, "explain", "model", "a great film", "--html", "why.html")
    ok(capsys, "report", "model", "reviews.csv")
