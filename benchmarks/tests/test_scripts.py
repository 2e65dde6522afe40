"""The benchmarks run, on small made-up sets, and count rightly; what they measure is not checked here."""

import io
import json
import random
from contextlib import redirect_stdout
from functools import cache
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.corpus import topics
from tests.estimators.bags.planted import planted

from benchmarks import (
    accuracy,
    autotune,
    bags,
    beside,
    cost,
    datasets,
    evaluation,
    explaining,
    honest,
    peers,
    scaling,
    speed,
    synthetic,
    tuning,
)

from . import ROOT, rows_of

FILLER = ["the", "a", "film", "plot", "scene", "and", "with", "was", "very", "quite"]


def made_up(classes: int, size: int = 120) -> tuple[list[str], list[int]]:
    """Texts whose last word tells the class."""
    rng = random.Random(0)
    labels = [k % classes for k in range(size)]
    tell = ["awful", "great", "odd"]
    return [" ".join([*rng.choices(FILLER, k=8), tell[label]]) for label in labels], labels


def test_the_shown_score_is_held_against_the_truth():
    found = honest.measured(*topics(400))
    assert found["kind"] == "out-of-fold"
    assert found["training"] >= found["shown"] > 0.8
    assert abs(found["difference"]) < 15
    assert 0 <= found["after"] < 0.2


# The contenders ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", peers.CONTENDERS)
@pytest.mark.parametrize("classes", [2, 3])
def test_contender_learns_what_is_obvious_and_can_be_written(name, classes, tmp_path):
    if not find_spec(peers.CONTENDERS[name].library):
        pytest.skip(f"{peers.CONTENDERS[name].library} is not installed")
    texts, labels = made_up(classes)
    contender = peers.CONTENDERS[name]().fit(texts, labels)
    assert np.mean(contender.predict(texts) == np.array(labels)) > 0.95
    sizes = cost.measure_sizes(contender)
    assert sizes["whole_size_mb"] > 0
    assert all(0 < size < 200 for size in sizes.values())


def test_missing_contender_is_named(monkeypatch, capsys):
    monkeypatch.setattr(peers.FastText, "library", "no_such_library")
    assert peers.installed(["fasttext", "nbsvm"]) == ["nbsvm"]
    assert capsys.readouterr().out == "left out, not installed: fasttext\n"


def test_missing_data_is_one_line(monkeypatch):
    monkeypatch.delenv("KEYTOKENS_DATA", raising=False)
    with pytest.raises(SystemExit, match="KEYTOKENS_DATA is not set"):
        datasets.load("imdb")


# Texts made by lot ---------------------------------------------------------------------------------------------------


def test_the_law_of_words_is_that_of_zipf():
    """The quantised table against the law itself."""
    often = np.bincount(synthetic.zipf(1_000))
    law = 1 / (np.arange(1_000) + 2.0)
    np.testing.assert_allclose(often / often.sum(), law / law.sum(), rtol=0.01)


@pytest.mark.parametrize("make, classes", [(synthetic.short, 2), (synthetic.twenty, 20)])
def test_texts_made_by_lot(make, classes):
    texts, labels = make(400)
    assert make(400) == (texts, labels)
    assert make(400, seed=1)[0] != texts
    assert np.bincount(labels).tolist() == [400 // classes] * classes


# Time, memory, size --------------------------------------------------------------------------------------------------


def test_costs_of_every_run(tmp_path, monkeypatch, capsys):
    """`test_speed_reads_the_reviews` starts a process of its own; here they are all in this one."""

    def costs(given, module):
        said = io.StringIO()
        with redirect_stdout(said):
            cost.main(given)
        return json.loads(said.getvalue())

    monkeypatch.setattr(cost, "in_fresh_process", costs)
    monkeypatch.setattr(cost, "use_processors", lambda: None)
    small = ["--contenders", "keytokens", "nbsvm", "--repeats", "2", "--slow-repeats", "1", "--output", str(tmp_path)]
    scaling.main([*small, "--documents", "60", "--lengths", "5"])
    runs = rows_of(tmp_path / "scaling.csv")
    assert [(run["set"], run["words"], run["contender"], run["round"]) for run in runs] == [
        ("short", "0", "keytokens", "0"),
        ("short", "0", "nbsvm", "0"),
        ("length", "5", "keytokens", "0"),
        ("length", "5", "nbsvm", "0"),
        ("short", "0", "keytokens", "1"),
        ("length", "5", "keytokens", "1"),
    ]
    assert all(float(run["fit_s"]) > 0 and float(run["predict_s"]) > 0 for run in runs)
    texts, _ = synthetic.short(60)
    assert float(runs[0]["text_mb"]) == sum(map(len, texts)) / 1e6
    assert "length, 1,000 texts of 5 words, round 1, keytokens: fit" in capsys.readouterr().out


def test_a_tree_beside_itself(tmp_path, monkeypatch, capsys):
    once = cache(beside.in_tree)  # the same tree and words: the process need not run again
    monkeypatch.setattr(beside, "in_tree", lambda source, arguments: once(source, tuple(arguments)))
    words = ["--cases", "short", "--rounds", "2", "--documents", "400", "--output", str(tmp_path)]
    beside.main([str(ROOT / "src"), *words])
    runs = rows_of(tmp_path / "beside.csv")
    assert [(run["tree"], run["round"]) for run in runs] == [(who, at) for who in ("here", "other") for at in "01"]
    assert len({run["accuracy"] for run in runs}) == 1
    assert all(float(run["fit_cpu_s"]) > 0 for run in runs)
    assert "short" in capsys.readouterr().out.splitlines()[-1]


def test_speed_reads_the_reviews(tmp_path, monkeypatch):
    pa = pytest.importorskip("pyarrow", reason="the data sets are parquet files")
    parquet = pytest.importorskip("pyarrow.parquet")
    texts, labels = made_up(2, 400)
    parquet.write_table(pa.table({"text": texts, "label": labels}), tmp_path / datasets.FILES["imdb"])
    monkeypatch.setenv("KEYTOKENS_DATA", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    speed.main(["--sets", "imdb", "--contenders", "tfidf_lr", "--quick", "--output", str(tmp_path)])
    (run,) = rows_of(tmp_path / "speed.csv")
    assert run["documents"] == "300"
    assert float(run["whole_size_mb"]) > 0
    assert float(run["fit_mb"]) >= 0
    assert datasets.load("imdb", 3) == (texts[:3], labels[:3])


def test_slow_contenders_stop_early():
    jobs = scaling.jobs(["keytokens", "nbsvm"], scaling.DOCUMENTS, scaling.LENGTHS, 3, 2)
    largest = {name: max(job.documents for job in jobs if job.contender == name) for name in ("keytokens", "nbsvm")}
    assert largest == {"keytokens": 1_000_000, "nbsvm": 100_000}
    assert {repeats for job, repeats in jobs.items() if job.contender == "nbsvm"} == {2}


# Explanations and evaluations ----------------------------------------------------------------------------------------


def test_slow_explainers_get_the_first_texts_only():
    asked = {name: [] for name in ("keytokens", "keytokens_words", "lime")}
    records = explaining.measured({name: seen.append for name, seen in asked.items()}, ["a", "b", "c"], 1, repeats=2)
    assert asked["keytokens"] == ["c", "a", "a", "b", "b", "c", "c"]
    assert asked["keytokens_words"] == ["c", "a", "b", "c"]
    assert asked["lime"] == ["c", "a"]
    assert len(records) == 6 + 3 + 1  # the text that warms up is not counted


def test_explanations_are_read_to_the_end():
    model = peers.KeyTokens().fit(*made_up(2)).model
    sizes = 0  # one class needs words to be chosen, the other is what no word means
    for text in ("the awful plot", "the great plot"):
        tokens, *sets, sentence = explaining.read(model.explain(text))
        assert len(tokens) > 0
        assert sentence
        sizes += sum(sets)
    assert sizes >= 1
    assert len(explaining.read_words(model.explain("the great plot"))) == 6


def test_reading_counts_every_product():
    with evaluation.overheard() as calls:
        peers.KeyTokens().fit(*made_up(3))
    data, theta = calls[-1]
    products = len(theta.B) + 1
    entries = sum(block.rows.nnz for block in data.blocks)
    one = data.blocks[0].rows
    assert products == 4
    read = sum(array.nbytes for array in evaluation.arrays(data, products))
    assert read == 2 * products * entries * (one.data.itemsize + one.indices.itemsize)
    records = evaluation.measured(data, theta, 2)
    assert [(record["threads"], record["round"]) for record in records] == [(1, 1), (2, 1), (1, 2), (2, 2)]
    seen = len(calls)
    peers.KeyTokens().fit(*made_up(3))
    assert len(calls) == seen  # nobody listens any more


# Accuracy ------------------------------------------------------------------------------------------------------------


def test_accuracy_writes_every_fold(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(accuracy, "load", lambda name: made_up(2))
    monkeypatch.setattr(accuracy, "EXPLAINED", 3)
    monkeypatch.setattr(accuracy, "use_processors", lambda: None)
    contenders = ["keytokens", "tfidf_lr", "nbsvm"]

    def child(given, module, threads):
        assert (module, given[3:]) == ("benchmarks.accuracy", ["--contenders", *contenders])
        return accuracy.one(given[1], int(given[2]), contenders, None)

    monkeypatch.setattr(accuracy, "in_fresh_process", child)
    accuracy.main(["--sets", "imdb", "--contenders", *contenders, "--output", str(tmp_path / "new")])
    rows = rows_of(tmp_path / "new" / "accuracy.csv")
    ways = ["keytokens standard", *(f"{name} {way}" for name in contenders[1:] for way in ("standard", "tuned"))]
    assert [f"{row['contender']} {row['way']}" for row in rows] == ways * 5
    assert [row["fold"] for row in rows] == [number for number in "01234" for _ in ways]
    assert all(row["sufficient_size"] for row in rows if row["contender"] == "keytokens")
    tried = rows_of(tmp_path / "new" / "tuning.csv")
    assert len(tried) == 5 * (len(tuning.LR_C) + len(tuning.SVM_C) * len(tuning.BETAS))
    assert "1.0000 ± 0.0000" in capsys.readouterr().out


def test_tuning_writes_every_fold(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(autotune, "load", lambda name: topics(80))
    output = tmp_path / "new" / "autotune.csv"
    autotune.main(["--sets", "ag_news", "--folds", "2", "--seconds", "0.2", "--output", str(output)])
    rows = rows_of(output)
    assert [row["fold"] for row in rows] == ["0", "1"]
    for row in rows:
        assert float(row["gain"]) == float(row["tuned_accuracy"]) - float(row["accuracy"])
    assert "mean gain in accuracy: " in capsys.readouterr().out


def test_calibration_error_of_known_cases():
    sure = np.array([[0.0, 1.0], [1.0, 0.0]])
    assert accuracy.calibration_error(sure, np.array([True, True])) == 0
    assert accuracy.calibration_error(sure, np.array([True, False])) == 0.5
    assert accuracy.calibration_error(np.full((4, 2), 0.5), np.array([True, False, True, False])) == 0


@cache
def noisy_fold(classes: int) -> tuning.Fold:
    rng = np.random.default_rng(0)
    labels = rng.permutation(np.arange(300) % classes)
    return accuracy.fold_of(*synthetic.corpus(labels, np.full(300, 30), rng), 0)


def test_folds_part_the_texts():
    texts, labels = made_up(3)
    marked = [f"{k} {text}" for k, text in enumerate(texts)]
    folds = [accuracy.fold_of(marked, labels, number) for number in range(accuracy.FOLDS)]
    assert sorted(text for fold in folds for text in fold.test) == sorted(marked)
    for fold in folds:
        learn, judge = fold.inner()
        assert sorted([*learn, *judge]) == list(range(len(fold.train)))
        assert not set(fold.train) & set(fold.test)


@pytest.mark.parametrize("classes", [2, 3])
def test_tuned_peers_agree_with_the_contenders(classes):
    """At the usual options, counts made once give what the pipeline from raw text gives."""
    fold = noisy_fold(classes)
    counted = tuning.Counted(fold)
    for name, verdict in (("tfidf_lr", counted.logistic()), ("nbsvm", counted.nbsvm())):
        predicted = peers.CONTENDERS[name]().fit(fold.train, fold.y_train).predict(fold.test)
        options, score = verdict.standard
        assert score == pytest.approx(np.mean(predicted == fold.y_test), abs=0.02), options
        assert verdict.tuned[0] == tuning.best(verdict.trials)


def test_test_labels_choose_nothing():
    fold = noisy_fold(2)
    turned = tuning.Fold(fold.train, fold.y_train, fold.test, 1 - fold.y_test)
    for way in (tuning.Counted.logistic, tuning.Counted.nbsvm):
        right, wrong = way(tuning.Counted(fold)), way(tuning.Counted(turned))
        assert right.trials == wrong.trials
        assert right.tuned[0] == wrong.tuned[0]
        assert right.tuned[1] == pytest.approx(1 - wrong.tuned[1])


@given(st.lists(st.lists(st.integers(-9, 9), min_size=3, max_size=3), min_size=2, max_size=3))
@settings(derandomize=True, deadline=None)
def test_one_at_a_time_finds_the_best_of_a_sum(worth):
    """Where options do not interact, the whole grid has nothing better."""
    grid = {f"option {k}": (0, 1, 2) for k in range(len(worth))}

    def score(options):
        return sum(worth[k][options[f"option {k}"]] for k in range(len(worth)))

    trials = tuning.one_at_a_time(score, dict.fromkeys(grid, 0), grid)
    assert score(tuning.best(trials)) == sum(map(max, worth))
    assert len(trials) == 1 + 2 * len(worth)


# Bags ----------------------------------------------------------------------------------------------------------------


def test_musk1(data_folder):
    """Ten-fold, once: far above what a broken model would give; benchmarks/bags.py measures it in full."""
    pytest.importorskip("pyarrow")
    assert bags.measured(bags.fixed({}), *datasets.load_bags("musk1"), 0)["accuracy"] >= 0.86


@pytest.mark.parametrize("name", bags.MADE)
def test_made_bags(name):
    """The label is to be seen, and not too well; the shapes are those of bags of regions."""
    made, y = bags.made_bags(0, **bags.MADE[name])
    assert (len(made), y.mean()) == (200, 0.5)
    assert {bag.shape[1] for bag in made} == {230}
    assert {len(bag) for bag in made} == set(range(2, 14))
    found = bags.measured(bags.baseline, made, y, 0)
    assert 0.65 < found["accuracy"] < 0.97


def test_bags_are_measured_and_gone_on_with(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(bags, "load_bags", lambda name: planted(40))
    asked = ["--sets", "musk1", "--options", "tol=0.01", "--output", str(tmp_path / "new" / "bags.csv")]
    both = ["--ways", "default", "nested"]
    bags.main([*asked, "--repeats", "1", *both])
    first = capsys.readouterr().out.splitlines()
    assert [line.split(" tol=0.01")[0] for line in first[1:]] == ["musk1    default", "musk1    nested"]
    chosen = [int(pair.split(": ")[1]) for pair in first[2].split("  ")[-1].split(", ")]
    assert sum(chosen) == 10 * len(bags.GRID)  # one choice a training part
    bags.main([*asked, "--repeats", "1", *both])  # nothing is measured twice: even the seconds are the same
    assert capsys.readouterr().out.splitlines() == first
    bags.main([*asked, "--repeats", "2", "--ways", "default"])
    rows = (tmp_path / "new" / "bags.csv").read_text("utf-8").splitlines()
    assert [row.split(",")[2] for row in rows] == ["seed", "0", "0", "1"]
