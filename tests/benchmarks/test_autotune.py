"""The benchmark of `autotune` runs, on a small made-up set: what it measures is not checked here."""

import csv

from benchmarks import autotune

from ..corpus import topics


def test_every_fold_is_written(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(autotune, "load", lambda name: topics(80))
    output = tmp_path / "new" / "autotune.csv"
    autotune.main(["--sets", "ag_news", "--folds", "2", "--seconds", "0.2", "--output", str(output)])
    with output.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["fold"] for row in rows] == ["0", "1"]
    for row in rows:
        assert float(row["gain"]) == float(row["tuned_accuracy"]) - float(row["accuracy"])
    assert "mean gain in accuracy: " in capsys.readouterr().out
