"""scikit-learn's own checks, the places where users put an estimator, and real bags."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.estimator_checks import estimator_checks_generator

import keytokens as kt

from .planted import planted

sys.path.insert(0, str(Path(__file__).parents[3]))  # the benchmarks are not part of the package

from benchmarks.datasets import load_bags

from benchmarks import bags as benchmark

MODELS = [
    kt.BagClassifier(),
    kt.BagClassifier(features="linear", class_weight="balanced"),
    kt.BagClassifier(features="quadratic", head="tanh", random_state=0),
]
# It skips itself unless SCIPY_ARRAY_API is set before scipy is imported: it runs in a process of its own.
ELSEWHERE = "check_array_api_input"
ALONE = f"""
from sklearn.utils.estimator_checks import estimator_checks_generator
from keytokens import BagClassifier
for estimator, check in estimator_checks_generator(BagClassifier()):
    if check.func.__name__ == "{ELSEWHERE}":
        check(estimator)
        print("passed")
"""


def name_of(check):
    return getattr(check, "func", check).__name__


CHECKS = [
    pytest.param(estimator, check, id=f"{number}-{name_of(check)}")
    for number, model in enumerate(MODELS)
    for estimator, check in estimator_checks_generator(model)
    if name_of(check) != ELSEWHERE
]


@pytest.mark.parametrize(("estimator", "check"), CHECKS)
def test_scikit_learn_checks(estimator, check):
    """On tables, bags of one instance each: scikit-learn has no bags to try."""
    check(estimator)


def test_the_check_that_needs_an_environment():
    """Older releases of scikit-learn have no such check for estimators that do not claim array API support."""
    checks = [name_of(check) for _, check in estimator_checks_generator(MODELS[0])]
    ended = subprocess.run(
        [sys.executable, "-c", ALONE], env=os.environ | {"SCIPY_ARRAY_API": "1"}, capture_output=True, text=True
    )
    assert (ended.returncode, ended.stdout) == (0, "passed\n" * checks.count(ELSEWHERE)), ended.stderr


def test_cross_validation_and_grid_search():
    bags, y = planted(60)
    assert cross_val_score(kt.BagClassifier(width=1.0), bags, y, cv=3).mean() > 0.8
    search = GridSearchCV(kt.BagClassifier(), {"width": [0.5, 1.0]}, cv=2, error_score="raise").fit(bags, y)
    assert search.best_score_ > 0.8


# ---- real data, and the benchmark


def test_musk1(data_folder):
    """Ten-fold, once: far above what a broken model would give; benchmarks/bags.py measures it in full."""
    pytest.importorskip("pyarrow")
    assert benchmark.measured(benchmark.fixed({}), *load_bags("musk1"), 0)["accuracy"] >= 0.86


def test_benchmark_runs_and_goes_on(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(benchmark, "load_bags", lambda name: planted(40))
    asked = ["--sets", "musk1", "--options", "tol=0.01", "--output", str(tmp_path / "new" / "bags.csv")]
    benchmark.main([*asked, "--repeats", "1"])
    first = capsys.readouterr().out.splitlines()
    assert [line.split(" tol=0.01")[0] for line in first[1:]] == ["musk1    default", "musk1    nested"]
    chosen = [int(pair.split(": ")[1]) for pair in first[2].split("  ")[-1].split(", ")]
    assert sum(chosen) == 10 * len(benchmark.GRID)  # one choice a training part
    benchmark.main([*asked, "--repeats", "1"])  # nothing is measured twice: even the seconds are the same
    assert capsys.readouterr().out.splitlines() == first
    benchmark.main([*asked, "--repeats", "2", "--ways", "default"])
    rows = (tmp_path / "new" / "bags.csv").read_text("utf-8").splitlines()
    assert [row.split(",")[2] for row in rows] == ["seed", "0", "0", "1"]
