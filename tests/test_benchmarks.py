"""The benchmarks run, on a small made-up set: what they measure is not checked here."""

import csv
import random
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # the benchmarks are not part of the package

from benchmarks import accuracy, datasets, peers, scaling, speed  # noqa: E402

FILLER = ["the", "a", "film", "plot", "scene", "and", "with", "was", "very", "quite"]


def made_up(classes: int, size: int = 120) -> tuple[list[str], list[int]]:
    """Texts whose last word tells the class."""
    rng = random.Random(0)
    labels = [k % classes for k in range(size)]
    tell = ["awful", "great", "odd"]
    return [" ".join([*rng.choices(FILLER, k=8), tell[label]]) for label in labels], labels


@pytest.mark.parametrize("name", peers.CONTENDERS)
@pytest.mark.parametrize("classes", [2, 3])
def test_contender_learns_what_is_obvious(name, classes):
    if not find_spec(peers.CONTENDERS[name].library):
        pytest.skip(f"{peers.CONTENDERS[name].library} is not installed")
    texts, labels = made_up(classes)
    predicted = peers.CONTENDERS[name]().fit(texts, labels).predict(texts)
    assert np.mean(predicted == np.array(labels)) > 0.95


def test_accuracy_writes_every_fold(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(accuracy, "load", lambda name: made_up(2))
    monkeypatch.setattr(accuracy, "EXPLAINED", 3)
    output = tmp_path / "new" / "accuracy.csv"
    accuracy.main(["--sets", "imdb", "--contenders", "tfidf_lr", "keytokens", "--output", str(output)])
    with output.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["fold"] for row in rows] == [*"01234"] * 2
    assert all(row["sufficient_size"] for row in rows if row["contender"] == "keytokens")
    assert "tfidf_lr   1.0000 ± 0.0000" in capsys.readouterr().out


def test_calibration_error_of_known_cases():
    sure = np.array([[0.0, 1.0], [1.0, 0.0]])
    assert accuracy.calibration_error(sure, np.array([True, True])) == 0
    assert accuracy.calibration_error(sure, np.array([True, False])) == 0.5
    assert accuracy.calibration_error(np.full((4, 2), 0.5), np.array([True, False, True, False])) == 0


def test_missing_data_is_one_line(monkeypatch):
    monkeypatch.delenv("KEYTOKENS_DATA", raising=False)
    with pytest.raises(SystemExit, match="KEYTOKENS_DATA is not set"):
        datasets.load("imdb")


def test_missing_contender_is_named(monkeypatch, capsys):
    monkeypatch.setattr(peers.FastText, "library", "no_such_library")
    assert peers.installed(["fasttext", "nbsvm"]) == ["nbsvm"]
    assert capsys.readouterr().out == "left out, not installed: fasttext\n"


def test_speed_and_scaling_in_fresh_processes(tmp_path, monkeypatch, capsys):
    pa = pytest.importorskip("pyarrow", reason="the data sets are parquet files")
    parquet = pytest.importorskip("pyarrow.parquet")
    texts, labels = made_up(2)
    parquet.write_table(pa.table({"text": texts, "label": labels}), tmp_path / datasets.FILES["imdb"])
    monkeypatch.setenv("KEYTOKENS_DATA", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setattr(speed, "REFERENCE", "tfidf_lr")
    monkeypatch.setattr(scaling, "SIZES", (60, 120))
    speed.main(["--contenders", "tfidf_lr", "--documents", "100", "--repeats", "1"])
    ratios = capsys.readouterr().out.splitlines()[-1]
    assert ratios.split() == ["tfidf_lr", *["1.000"] * 5]
    scaling.main(["--contender", "tfidf_lr", "--repeats", "1"])
    assert "worst ratio" in capsys.readouterr().out


def test_growth_is_the_ratio_of_neighbours():
    assert scaling.growth([1.0, 2.0, 5.0]) == [2.0, 2.5]
