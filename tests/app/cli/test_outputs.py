"""Outputs: refused before the work if they cannot be written, rescued after it, never the input by mistake."""

import errno
import os
import sys
import tempfile
from pathlib import Path

import pytest

import keytokens as kt
from keytokens.app.cli import figure, verify
from keytokens.app.cli.app import run
from keytokens.base.files import check_output
from keytokens.estimators import saving as persist
from keytokens.io import read_table

from .test_cli import ok, refused


def listing(folder: Path) -> list[str]:
    return sorted(map(str, folder.rglob("*")))


ALWAYS = [
    ("file/below", "not a directory"),
    ("x" * 300, "file name too long"),
    *[("/proc/none", "no such file or directory")] * (sys.platform == "linux"),
]
NO_FOLDER = [("file", "not a directory"), ("leads-nowhere", "file or directory"), ("cut.json", "is a directory")]
NO_FOLDER += [("x" * 300 + "/model", "file name too long"), *ALWAYS]
NO_FILE = [("none/page.html", "no such file or directory"), *((name, "is a directory") for name in ("model", ".", "/"))]
NO_FILE += [("..", "is a directory"), *ALWAYS]


@pytest.mark.parametrize("how", [(), ("--memory", "1GB"), ("--dask", "tcp://127.0.0.1:9")], ids=["", "memory", "dask"])
@pytest.mark.parametrize(("target", "why"), NO_FOLDER)
def test_fit_finds_out_before_it_reads(here, capsys, how, target, why):
    """Before it says a word, and nothing is left of the attempt."""
    before = listing(here)
    line = refused(capsys, "fit", "in.csv", "-o", target, *how)
    assert line.startswith(f"keytokens: cannot write '{target}': ")
    assert why in line
    assert listing(here) == before


@pytest.mark.parametrize(("target", "why"), NO_FILE)
@pytest.mark.parametrize("command", ["explain", "report", "verify"])
def test_pages_are_refused_before_the_work(here, capsys, monkeypatch, command, target, why):
    def work(*_, **__):
        raise AssertionError("it has begun")

    monkeypatch.setattr(kt.KeyTokenClassifier, "explain", work)
    monkeypatch.setattr(kt.KeyTokenClassifier, "report", work)
    monkeypatch.setattr(verify, "verify_claims", work)
    words = {
        "explain": ["explain", "model", "a film", "--html"],
        "report": ["report", "model", "in.csv", "-o"],
        "verify": ["verify", "kt.flip", "--html"],
    }
    before = listing(here)
    line = refused(capsys, *words[command], target)
    assert line.startswith(f"keytokens: cannot write '{target}': {why}")
    assert listing(here) == before


@pytest.mark.parametrize("target", ["file", "file/below", "x" * 300])
def test_figures_are_refused_before_the_work(here, capsys, monkeypatch, target):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(figure, "make", lambda *_, **__: pytest.fail("it has begun"))
    assert f"cannot write '{target}': " in refused(capsys, "figure", "1b", "-o", target)


def test_checking_is_not_seen_by_others(here, monkeypatch):
    """A second check of a missing folder must not find it, and then lose it to the first one, which clears it away."""
    plain, seen = Path.mkdir, []

    def mkdir(self, *given, **options):
        plain(self, *given, **options)
        seen.append(Path("deep").exists())

    monkeypatch.setattr(Path, "mkdir", mkdir)
    before = listing(here)
    check_output(Path("deep/er/model"), "model.json")
    assert set(seen) == {False}
    assert listing(here) == before


# ---- saving fails in the end


def refuse_below(monkeypatch, *folders: Path) -> None:
    """The disk is full for models in these folders."""
    plain = persist.write_new

    def write(path, content):
        if any(path.resolve().is_relative_to(folder) for folder in folders):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        plain(path, content)

    monkeypatch.setattr(persist, "write_new", write)


def said_in_the_end(capsys, *words: str) -> str:
    capsys.readouterr()
    assert run(["fit", "in.csv", *words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


@pytest.mark.parametrize("how", [(), ("--memory", "1GB")], ids=["", "memory"])
@pytest.mark.parametrize("place", ["beside", "temporary"])
def test_a_model_that_cannot_be_saved_is_rescued(here, capsys, monkeypatch, how, place):
    """Beside the output, or else in the temporary folder of the system."""
    (here.parent / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(here.parent / "temporary"))
    before = {file.name: file.read_bytes() for file in (here / "model").iterdir()}
    refuse_below(monkeypatch, here / "model" if place == "beside" else here)
    line = said_in_the_end(capsys, "-o", "model", "--sink", "2", *how)
    rescue = Path(line.partition("The model was saved to '")[2].removesuffix("' instead."))
    assert line.startswith(
        "keytokens: cannot write 'model': no space left on device. What was there before is unchanged."
    )
    assert rescue.parent == (here if place == "beside" else here.parent / "temporary")
    assert rescue.name.startswith("keytokens-rescue-")
    monkeypatch.undo()
    assert kt.load(rescue).prior.sink == 2
    assert {file.name: file.read_bytes() for file in (here / "model").iterdir()} == before


def test_a_model_that_can_be_saved_nowhere(here, capsys, monkeypatch):
    (here / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(here / "temporary"))
    refuse_below(monkeypatch, here)
    before = listing(here)
    line = said_in_the_end(capsys, "-o", "model")
    assert line.endswith("The temporary folder cannot be written either: the model is lost.")
    assert listing(here) == before


# ---- two fits to one output


@pytest.mark.parametrize("other", ["m", "./m", "parts/../m"])
@pytest.mark.parametrize("how", ["--resume", "--memory=1GB"])
def test_a_second_fit_from_files_is_refused_while_the_first_runs(here, capsys, monkeypatch, other, how):
    """They would share OUTPUT.partial: the second one would clear away what the first one reads."""
    plain, seen = kt.KeyTokenClassifier.fit_batches, []

    def fit_batches(self, *given, **options):
        if not seen:
            seen.append("the second begins")
            capsys.readouterr()
            seen.append(refused(capsys, "fit", "in.csv", "-o", other, how))
        return plain(self, *given, **options)

    monkeypatch.setattr(kt.KeyTokenClassifier, "fit_batches", fit_batches)
    assert run(["fit", "in.csv", "-o", "m", "--resume"]) == 0
    assert seen[1] == (
        f"keytokens: cannot write '{Path(other)}.partial': another fit is using it; wait until it ends, "
        "or give another --output.\n"
    )
    kt.load("m")
    assert not Path("m.partial").exists()
    assert run(["fit", "in.csv", "-o", "m", how]) == 0  # the lock has gone


def test_a_fit_on_a_cluster_leaves_an_interrupted_one_alone(here, monkeypatch):
    """It uses nothing in OUTPUT.partial, which may be another fit's."""
    monkeypatch.setattr("keytokens.dask.estimator.fit_on_dask", lambda batches, *_: kt.load("model"))
    Path("m.partial").mkdir()
    Path("m.partial/score.json").write_text("of another fit")
    assert run(["fit", "in.csv", "-o", "m", "--dask", "tcp://127.0.0.1:9", "--holdout", "0"]) == 0
    assert Path("m.partial/score.json").read_text() == "of another fit"


def test_the_present_folder_as_output(here, monkeypatch):
    """It has no name, of which that of the working folder could be made."""
    Path("m").mkdir()
    monkeypatch.chdir("m")
    assert run(["fit", "../in.csv", "-o", ".", "--resume"]) == 0
    assert len(listing(here / "m")) == 4
    assert not (here / "m.partial").exists()


# ---- the input is not the output


SPELLINGS = ["in.csv", "./in.csv", "parts/../in.csv", "link.csv", "hard.csv"]


@pytest.fixture
def linked(here):
    (here / "link.csv").symlink_to("in.csv")
    os.link("in.csv", "hard.csv")
    return here


@pytest.mark.parametrize("target", SPELLINGS)
@pytest.mark.parametrize(
    "words", [("predict", "model", "in.csv"), ("explain", "model", "--data", "in.csv"), ("report", "model", "in.csv")]
)
def test_an_output_that_is_the_input_is_refused(linked, capsys, words, target):
    before = (linked / "in.csv").read_bytes()
    assert refused(capsys, *words, "-o", target) == (
        f"keytokens: {words[0]}: `--output` must be another file than the data; saw '{Path(target)}'. "
        "Give another name, or --force to replace the data.\n"
    ).replace(f"'{Path(target)}'", repr(str(Path(target)) if words[0] == "report" else target))
    assert (linked / "in.csv").read_bytes() == before


def test_an_input_that_is_a_link_to_the_output(linked, capsys):
    assert "must be another file than the data" in refused(capsys, "predict", "model", "link.csv", "-o", "in.csv")


def test_a_table_in_the_folder_of_the_data(here, capsys):
    assert "must be another file than the data" in refused(capsys, "predict", "model", "parts", "-o", "parts/1.csv")
    ok(capsys, "predict", "model", "parts", "-o", "parts.csv")


def test_standard_input_is_a_file_too(here, capsys):
    before = os.dup(0)
    with open("in.csv", "rb") as table:
        os.dup2(table.fileno(), 0)
    try:
        assert "must be another file than the data" in refused(capsys, "predict", "model", "-", "-o", "in.csv")
    finally:
        os.dup2(before, 0)
        os.close(before)


def test_a_page_over_the_table_of_a_bag(here, capsys):
    line = refused(capsys, "explain", "bags", "bag.csv", "--html", "bag.csv")
    assert "explain: `--html` must be another file than the data" in line
    ok(capsys, "explain", "bags", "bag.csv", "--html", "bag.csv", "--force")
    assert Path("bag.csv").read_text("utf-8").lower().startswith("<!doctype html>")


def test_a_text_is_no_file(here, capsys):
    """Even if a file has its name."""
    Path("why.html").write_text("old")
    ok(capsys, "explain", "model", "why.html", "--html", "why.html")


def test_with_force_the_input_is_replaced(here, capsys):
    ok(capsys, "predict", "model", "in.csv", "-o", "in.csv", "--force")
    assert list(read_table("in.csv").columns) == ["text", "label", "prediction", "probability"]
    ok(capsys, "explain", "model", "--data", "in.csv", "-o", "in.csv", "--text", "text", "--force")
    assert "flips_to" in read_table("in.csv").columns
    ok(capsys, "report", "model", "in.csv", "-o", "in.csv", "--text", "text", "--label", "label", "--force")
    assert Path("in.csv").read_text("utf-8").lower().startswith("<!doctype html>")
