"""`keytokens fit` from files and folders of any size: the same model, and a run that goes on."""

import json
import re
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest

import keytokens as kt
import keytokens.estimators.streaming
from keytokens.app.cli.app import run
from keytokens.app.jobs import FitJob, Watcher, fit_table
from keytokens.estimators.crossfit import Parts
from keytokens.estimators.streaming import Workplace
from keytokens.estimators.unseen import hashes_of, salt_of
from keytokens.io import read_table, write_table

from ..corpus import reviews
from .cli.test_cli import ok


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder of three tables, and the same rows in one."""
    monkeypatch.chdir(tmp_path)
    texts, labels = reviews(240)
    (tmp_path / "parts").mkdir()
    for number in range(3):
        rows = slice(80 * number, 80 * (number + 1))
        write_table(f"parts/{number}.csv.gz", {"text": texts[rows], "label": labels[rows]})
    write_table("whole.csv", {"text": texts, "label": labels})
    return tmp_path


def numbers_of(model: str) -> tuple[object, ...]:
    clf = kt.load(model)
    return clf.vocabulary_.tokens, clf.attention_.tobytes(), clf.values_.tobytes(), clf.intercept_.tobytes()


def refused_later(capsys, *arguments: str) -> str:
    """Refused in one line, after some words of progress."""
    capsys.readouterr()
    assert run(list(arguments)) == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


@contextmanager
def unsaved():
    """A fit in here has done everything, and cannot save its model."""
    with pytest.MonkeyPatch.context() as patch, suppress(ZeroDivisionError):
        patch.setattr(kt.KeyTokenClassifier, "save", lambda *_: 1 / 0)
        yield
        pytest.fail("it was saved")


def test_a_folder_is_the_tables_in_it(here, capsys):
    out = ok(capsys, "fit", "parts", "-o", "flowing", "--memory", "1GB")
    assert "labels from column 'label' (guessed" in out
    assert "held-out texts" in out
    ok(capsys, "fit", "whole.csv", "-o", "whole", "--holdout", "0.2")
    ok(capsys, "fit", "parts", "-o", "together", "--holdout", "0.2")
    assert numbers_of("flowing") == numbers_of("whole") == numbers_of("together")
    assert not Path("flowing.partial").exists()
    out = ok(capsys, "predict", "flowing", "parts", "-o", "out.csv", "--label", "label")
    assert out.startswith("240 predictions")


def test_an_interrupted_run_goes_on(here, capsys, monkeypatch):
    ok(capsys, "fit", "whole.csv", "-o", "undisturbed", "--memory", "1GB")
    monkeypatch.setattr(keytokens.estimators.streaming, "_EVERY", 0.0)
    save, seen = Workplace.save_state, []

    def stop(self, state, history):
        save(self, state, history)
        seen.append(self.folder.name)
        if seen.count("all") == 3:
            raise RuntimeError("killed")

    monkeypatch.setattr(Workplace, "save_state", stop)
    with pytest.raises(RuntimeError, match="killed"):
        ok(capsys, "fit", "whole.csv", "-o", "m", "--memory", "1GB", "--resume")
    monkeypatch.setattr(Workplace, "save_state", save)
    capsys.readouterr()
    assert Path("m.partial/score.json").exists()
    ok(capsys, "fit", "whole.csv", "-o", "m", "--memory", "1GB", "--resume")
    assert kt.load("m").evaluate().to_dict() == kt.load("undisturbed").evaluate().to_dict()
    assert numbers_of("m") == numbers_of("undisturbed")
    assert not Path("m.partial").exists()


def test_another_table_is_not_gone_on_with(here, capsys):
    with unsaved():
        ok(capsys, "fit", "whole.csv", "-o", "m", "--resume", "--holdout", "0")
    texts, labels = reviews(100, seed=3)
    write_table("whole.csv", {"text": texts, "label": labels})
    message = refused_later(capsys, "fit", "whole.csv", "-o", "m", "--resume", "--holdout", "0")
    assert "differs in source" in message
    assert "begin anew without --resume" in message


def stop_after_the_score(monkeypatch, capsys):
    """A run that has its score, and ends when it begins with everything."""
    fit, begun = kt.KeyTokenClassifier.fit_batches, []

    def stop(self, *given, **options):
        begun.append(options["folder"].name)
        if begun[-1] == "all":
            raise RuntimeError("killed")
        return fit(self, *given, **options)

    monkeypatch.setattr(kt.KeyTokenClassifier, "fit_batches", stop)
    with pytest.raises(RuntimeError, match="killed"):
        ok(capsys, "fit", "whole.csv", "-o", "m", "--resume")
    monkeypatch.setattr(kt.KeyTokenClassifier, "fit_batches", fit)
    capsys.readouterr()


@pytest.mark.parametrize(
    "other", [["--holdout", "0.4"], ["--sink", "0.5"], ["--seed", "5"], ["--memory", "2GB"]], ids=str
)
def test_a_score_of_another_run_is_not_shown(here, capsys, monkeypatch, other):
    """Texts that were trained on must not be scored on: another share is another run."""
    stop_after_the_score(monkeypatch, capsys)
    assert "m.partial/part0': the run there differs in" in refused_later(
        capsys, "fit", "whole.csv", "-o", "m", "--resume", *other
    )


def test_a_run_that_has_all_counts_still_tells_the_classes(here, capsys):
    with unsaved():
        ok(capsys, "fit", "whole.csv", "-o", "m", "--resume")
    capsys.readouterr()
    record = json.loads(ok(capsys, "fit", "whole.csv", "-o", "m", "--resume", "--json"))
    _, labels = reviews(240)
    assert record["class_counts"] == [labels.count("neg"), labels.count("pos")]
    assert record["texts"] == 240
    assert record["columns"] == {"text": "text", "label": "label"}


def test_what_a_budget_drops_is_said(here, capsys, monkeypatch):
    monkeypatch.setattr("keytokens.estimators.streaming._LEAST_TOKENS", 100)
    monkeypatch.setattr("keytokens.estimators.streaming._FIXED", 10**9 - 60_000)
    fit = ("fit", "parts", "-o", "model", "--memory", "1GB")
    record = json.loads(ok(capsys, *fit, "--json"))
    dropped = record["dropped"]
    assert dropped["of"] == record["tokens"] + dropped["tokens"]
    assert json.loads((here / "model" / "model.json").read_text())["dropped"] == dropped
    line = f"dropped {dropped['tokens']:,} of {dropped['of']:,} tokens, the least frequent ones: a memory of 1GB; all"
    assert line in ok(capsys, *fit)


def test_a_held_out_text_too_long_for_the_budget_is_found_before_training(here, capsys, monkeypatch):
    texts, labels = reviews(240)
    for row, text in enumerate(texts):
        texts[row] = f"{row:03d} " + "a " * 4_999_998
        if Parts(0, share=0.2).of(hashes_of(texts, salt_of(texts[0])), labels)[row] == 0:
            break
        texts[row] = text
    write_table("long.csv", {"text": texts, "label": labels})
    monkeypatch.setattr(kt.KeyTokenClassifier, "_learn", None)
    said = refused_later(capsys, "fit", "long.csv", "-o", "m", "--memory", "500MB", "--threads", "2")
    assert "`memory` must be enough to read a text of 10,000,000 characters; saw 500MB. Give 60" in said


def test_a_table_in_a_subfolder_is_part_of_the_data(here, capsys):
    Path("parts/more").mkdir()
    Path("parts/2.csv.gz").rename("parts/more/2.csv.gz")
    with unsaved():
        ok(capsys, "fit", "parts", "-o", "m", "--resume", "--holdout", "0")
    texts, labels = reviews(100, seed=3)
    write_table("parts/more/2.csv.gz", {"text": texts, "label": labels})
    assert "differs in source" in refused_later(capsys, "fit", "parts", "-o", "m", "--resume", "--holdout", "0")


@pytest.mark.parametrize("damage", [b"", b"7", b"[]", b'{"arrays": {}}', b'"arrays": "', b"1"])
def test_a_damaged_score_is_made_again(here, capsys, monkeypatch, damage):
    said = ok(capsys, "fit", "whole.csv", "-o", "undisturbed", "--resume")
    stop_after_the_score(monkeypatch, capsys)
    path = Path("m.partial/score.json")
    content = path.read_bytes()
    if damage.startswith(b'"arr'):
        at = content.index(damage) + len(damage) + 20
        damage = content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]
    path.write_bytes(damage)
    again = ok(capsys, "fit", "whole.csv", "-o", "m", "--resume")
    score = re.compile("accuracy.*")
    assert score.search(again)[0] == score.search(said)[0]
    assert numbers_of("m") == numbers_of("undisturbed")


def test_files_of_other_columns(here, capsys):
    write_table("parts/9.csv", {"text": ["a"], "stars": ["pos"]})
    Path("parts/README.txt").write_text("These are the reviews.\nThey are made up.\n")
    Path("parts/more").mkdir()
    Path("parts/2.csv.gz").rename("parts/more/2.csv.gz")
    write_table("parts/1.csv.gz", {"id": list(range(80)), **read_table("parts/1.csv.gz").columns})
    said = "keytokens: skipped 9.csv: no column 'label'\nkeytokens: skipped README.txt: no column 'text'{}\n"
    ok(capsys, "fit", "whole.csv", "-o", "whole", "--cross-fit", "0")
    for road in (("--holdout", "0.2"), ("--memory", "1GB"), ("--resume",), ("--cross-fit", "0", "--json")):
        assert run(["fit", "parts", "-o", "m", *road]) == 0
        assert capsys.readouterr().err == said.format(" and no column 'label'")  # once, however often they are read
        assert numbers_of("m") == numbers_of("whole")
    assert run(["predict", "m", "parts", "-o", "out.csv", "--label", "label"]) == 0
    assert capsys.readouterr().err == said.format(" and no column 'label'")
    assert len(read_table("out.csv")) == 240
    for command in (
        ["predict", "m", "parts", "-o", "out.jsonl"],
        ["explain", "m", "--data", "parts", "-o", "out.jsonl"],
    ):
        assert run(command) == 0
        assert capsys.readouterr().err == "keytokens: skipped README.txt: no column 'text'\n"
        assert len(read_table("out.jsonl")) == 241
    assert run(["report", "m", "parts"]) == 0
    assert capsys.readouterr().err == said.format(" and no column 'label'")


@pytest.mark.parametrize("road", [{}, {"memory": 10**9}, {"resume": True}], ids=["memory", "budget", "resume"])
def test_fit_table_tells_every_stage_and_saves(here, road):
    """In order: the columns, the classes, the score; and a record of what was fitted that JSON can hold."""
    heard = []

    class Heard(Watcher):
        def say(self, line):
            heard.append(line.split()[0])

        def classes(self, counts):
            heard.append(dict(counts))

        def stage(self, name):
            heard.append(name)
            return super().stage(name)

    done = fit_table(FitJob(data="whole.csv", output=here / "m", cross_fit=3, **road), Heard())
    _, labels = reviews(240)
    classes = {label: labels.count(label) for label in set(labels)}
    stages = ["scoring", "texts", classes] if road else ["reading", "240", classes, "scoring"]
    assert heard == [*stages, "training", "accuracy", "writing"]
    fit_table(FitJob(data="whole.csv", output=here / "n", cross_fit=3))
    assert numbers_of(here / "m") == numbers_of(here / "n")
    assert json.loads(json.dumps(done.record()))["score"]["n"] == done.score.n == 240


def test_texts_at_hand(tmp_path):
    texts, labels = reviews(100)
    done = fit_table(FitJob(data=(texts, labels), output=tmp_path / "m", cross_fit=0))
    assert done.score.kind == "held-out"
    assert done.columns == {"text": None, "label": None}
    alone = kt.KeyTokenClassifier().fit(texts, labels)
    assert done.model.vocabulary_.tokens == alone.vocabulary_.tokens
    assert np.array_equal(done.model.values_, alone.values_)


@pytest.mark.parametrize("teacher", ["self", "p_"])
def test_texts_without_labels_in_memory_and_from_files(here, capsys, teacher):
    table = read_table("whole.csv")
    texts = [f"{text} n{i}" for i, text in enumerate(table.columns["text"])]
    good = [label == "pos" for label in table.columns["label"]]
    columns = {"body": texts + table.columns["text"], "p_pos": [0.9 if g else 0.1 for g in good] * 2}
    write_table("more.csv", {**columns, "p_neg": [round(1 - p, 9) for p in columns["p_pos"]]})
    options = ("--unlabeled", "more.csv", "--teacher", teacher, "--seed", "1")
    out = ok(capsys, "fit", "whole.csv", "-o", "whole", *options, "--cross-fit", "3")
    assert "learned from 240 texts without labels too" in out
    ok(capsys, "fit", "parts", "-o", "flowing", *options, "--memory", "1GB", "--cross-fit", "3")
    assert numbers_of("whole") == numbers_of("flowing")
    whole, flowing = (kt.load(name).unseen_ for name in ("whole", "flowing"))
    rows = [np.argsort(one.hashes) for one in (whole, flowing)]
    assert np.array_equal(whole.given_log[rows[0]], flowing.given_log[rows[1]]), "no fold has seen its texts"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--unlabeled", "nix.csv"), "nix.csv: cannot be read: no such file or directory."),
        (("--teacher", "p_"), "fit: --teacher is asked about texts without labels; give them with --unlabeled."),
        (
            ("--unlabeled", "whole.csv", "--teacher", "p_"),
            "whole.csv: --teacher must be self, or begin the names of col",
        ),
        (("--unlabeled", "bad.csv", "--teacher", "p_"), "bad.csv, line 2: 'p_neg' must be a probability; saw 'often'."),
        (("--unlabeled", "whole.csv", "--autotune", "1"), "fit: --autotune does not know of --unlabeled"),
        (("--unlabeled", "-"), "fit: --unlabeled is read more than once; save it to a file first."),
    ],
)
def test_texts_without_labels_that_cannot_be_read(here, capsys, options, said):
    write_table("bad.csv", {"text": ["a film"], "p_pos": ["0.5"], "p_neg": ["often"]})
    assert said in refused_later(capsys, "fit", "whole.csv", "-o", "m", *options, "--holdout", "0")
    assert not Path("m").exists()
