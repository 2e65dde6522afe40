"""The benchmarks of max margins and descents run, on small problems: what they measure is not checked here."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks import descents, matrix, svm

from . import ROOT, rows_of


def test_margins_in_fresh_processes(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    small = tuple(("keytokens", (n, 6, 5)) for n in (4, 8))
    monkeypatch.setitem(svm.PARTS, "rows", svm.Part("Against rows", small, svm.rows_verdicts))
    svm.main(["--parts", "rows", "--repeats", "2", "--output", str(tmp_path)])
    said = capsys.readouterr().out
    assert "keytokens: solve time grows like rows to the power" in said
    assert said.rstrip().endswith((tmp_path / "svm_rows.md").read_text("utf-8").splitlines()[-1])
    runs = rows_of(tmp_path / "svm_rows.csv")
    assert [(run["rows"], run["seed"]) for run in runs] == [("20", "0"), ("20", "1"), ("40", "0"), ("40", "1")]
    assert all(float(run[name]) < 1e-9 for run in runs for name in svm.RESIDUALS)


def test_the_duel_is_judged_by_time_and_residuals():
    def run(solve_s: float, gap: float) -> dict[str, float]:
        return {"solve_s": solve_s, "processor_s": solve_s, "primal": 0.0, "dual": 0.0, "stationary": 0.0, "gap": gap}

    case = svm.DUEL
    kept = svm.duel_verdicts({("keytokens", case): [run(1, 1e-9)], ("cvxopt", case): [run(20, 1e-8)]})
    assert kept == [
        "20.0 (20.0 to 20.0) times faster than cvxopt, bar 20: kept; in processor time 20.0 (20.0 to 20.0); "
        "largest residual 1e-09 against 1e-08, no worse: kept"
    ]
    missed = svm.duel_verdicts({("keytokens", case): [run(2, 1e-7)], ("cvxopt", case): [run(20, 1e-8)]})
    assert "bar 20: MISSED" in missed[0]
    assert "no worse: MISSED" in missed[0]


def test_descents_write_every_run(tmp_path, monkeypatch, capsys):
    short = {name: replace(each, starts=each.starts[:1]) for name, each in descents.EXPERIMENTS.items()}
    monkeypatch.setattr(descents, "EXPERIMENTS", short)
    monkeypatch.setattr(descents, "in_fresh_process", lambda given, module, threads: descents.measure(given[1]))
    descents.main(["--contenders", *descents.OURS, "--repeats", "2", "--output", str(tmp_path)])
    runs = rows_of(tmp_path / "descents.csv")
    assert [(run["contender"], run["round"], run["experiment"]) for run in runs] == [
        (name, number, experiment) for name in descents.OURS for number in "01" for experiment in ("E1", "E3")
    ]
    assert all(float(run["away"]) < descents.BELOW for run in runs)
    assert (tmp_path / "descents.md").read_text("utf-8") in capsys.readouterr().out


@pytest.mark.parametrize("name", descents.EXPERIMENTS)
def test_targets_of_the_experiments(name):
    """(-10, 100)/101 by hand; (.8446, .1711) as an independent solver found it."""
    by_hand = {"E1": [-10 / 101, 100 / 101], "E3": [0.8446, 0.1711]}[name]
    assert descents.EXPERIMENTS[name].away(np.array(by_hand)) < 1e-9
    assert descents.EXPERIMENTS[name].away(np.zeros(2)) == 1


@pytest.mark.parametrize("away, seconds, said", [(1e-7, 1.0, "kept"), (1e-5, 1.0, "MISSED"), (1e-7, 4.0, "MISSED")])
def test_the_loop_is_beaten_in_time_and_in_error(away, seconds, said):
    records = [
        {"round": 0, "experiment": experiment, "contender": name, "seconds": taken, "away": error}
        for experiment in descents.EXPERIMENTS
        for name, taken, error in (("flow", seconds, away), ("torch", 3.0, 0.1))
    ]
    lines = descents.comparison(records, ["flow", "torch"], "seconds").splitlines()[2:]
    assert [line.split("|")[-2].strip() for line in lines] == [said] * 2


def test_matrices_are_measured_beside_the_certified_optimum(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(matrix, "CASES", [(2, 3, 3), (3, 3, 3)])
    monkeypatch.setattr(matrix, "CONTENDERS", {"keytokens": matrix.CONTENDERS["keytokens"]})
    monkeypatch.setattr(
        matrix, "in_fresh_process", lambda given, module, threads: matrix.measure(given[1], given[3], matrix.CASES, 0)
    )
    matrix.main(["--repeats", "2", "--output", str(tmp_path)])
    runs = rows_of(tmp_path / "matrix.csv")
    assert [(run["norm"], run["seed"], run["n"]) for run in runs] == [
        (norm, seed, n) for norm in ("frobenius", "nuclear") for seed in "01" for n in "23"
    ]
    assert all(abs(float(run["excess"])) < 1e-8 and float(run["violation"]) < 1e-9 for run in runs)
    assert (tmp_path / "matrix.md").read_text("utf-8") in capsys.readouterr().out


@pytest.mark.parametrize("theirs, said", [(0.6, "kept"), (0.4, "MISSED")])
def test_matrices_are_judged_by_the_least_ratio(theirs, said):
    records = [
        {"contender": name, "norm": "nuclear", "n": n, "T": 5, "d": 5, "seconds": seconds, "processor_s": seconds}
        for n, slower in ((5, 10.0), (10, 1.0))
        for name, seconds in (("keytokens", 0.1), (matrix.PUBLISHED, theirs * slower))
    ]
    (line,) = matrix.verdicts(records, "nuclear", ["keytokens", matrix.PUBLISHED])
    assert f"bar 5: {said};" in line
    assert line.startswith(f"nuclear: {theirs / 0.1:.1f} to {theirs * 100:.1f} times faster")
