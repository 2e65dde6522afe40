"""Texts and labels as they come: lists, and columns, frames and tables of NumPy, pandas, polars and Arrow."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import keytokens as kt
from keytokens.base.errors import InputError

from ..conftest import skip_or_fail
from ..corpus import reviews

TEXTS, LABELS = reviews(60)


def library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        skip_or_fail(f"{name} is not installed")


def numpy_columns(labels):
    yield np.array(TEXTS), np.array(labels)
    yield np.array(TEXTS, object)[:, None], np.array(labels)[:, None]
    yield [np.str_(text) for text in TEXTS], [np.array(labels)[i] for i in range(len(labels))]


def pandas_columns(labels):
    pd = library("pandas")
    frame = pd.DataFrame({"text": TEXTS, "label": labels}, index=range(100, 160))
    yield frame["text"], frame["label"]
    yield frame[["text"]], frame[["label"]]
    yield frame["text"].astype("category"), frame["label"].astype("category")
    yield frame["text"].astype("string"), frame["label"].convert_dtypes()
    yield frame["text"].astype("string[pyarrow]"), pd.Categorical(labels)
    yield pd.DataFrame({("a", "b"): TEXTS, ("a", "c"): labels})[[("a", "b")]], frame["label"].tolist()


def polars_columns(labels):
    pl = library("polars")
    frame = pl.DataFrame({"text": TEXTS, "label": labels})
    yield frame["text"], frame["label"]
    yield frame[["text"]], frame[["label"]]
    yield frame["text"].cast(pl.Categorical), frame["label"]


def arrow_columns(labels):
    pa = library("pyarrow")
    table = pa.table({"text": TEXTS, "label": labels})
    yield table["text"], table["label"]
    yield table.select(["text"]), table.select(["label"])
    yield pa.array(TEXTS, pa.large_string()), pa.array(labels).dictionary_encode()
    yield pa.record_batch({"text": pa.array(TEXTS)}), pa.array(labels)


NUMBERS = [int(label == "pos") for label in LABELS]
KINDS = {
    "strings": (LABELS, ["neg", "pos"]),
    "integers": (NUMBERS, [0, 1]),
    "whole floats": ([float(n) for n in NUMBERS], [0, 1]),
    "booleans": ([bool(n) for n in NUMBERS], [False, True]),
}


@pytest.mark.parametrize("columns", [numpy_columns, pandas_columns, polars_columns, arrow_columns])
@pytest.mark.parametrize("kind", KINDS)
def test_columns_are_what_lists_are(columns, kind, tmp_path):
    labels, classes = KINDS[kind]
    expected = kt.KeyTokenClassifier().fit(TEXTS, LABELS)
    P, F = expected.predict_proba(TEXTS), expected.decision_function(TEXTS)
    for X, y in columns(labels):
        clf = kt.KeyTokenClassifier().fit(X, y)
        assert clf.classes_.tolist() == classes
        assert [type(label) for label in clf.classes_.tolist()] == [type(label) for label in classes]
        np.testing.assert_array_equal(clf.predict_proba(X), P)
        np.testing.assert_array_equal(clf.decision_function(X), F)
        assert [e.label for e in clf.explain_many(X)] == clf.predict(X).tolist()
        assert clf.score(X, y) == clf.score(TEXTS, labels) == expected.score(TEXTS, LABELS)
        batches = kt.KeyTokenClassifier().fit_batches([(X, y)])
        assert batches.classes_.tolist() == classes
        np.testing.assert_array_equal(batches.predict_proba(X), P)
    assert clf.report(tmp_path / "page.html", X, y)["accuracy"] == expected.score(TEXTS, LABELS)
    clf.save(tmp_path / "model")
    again = kt.load(tmp_path / "model")
    assert again.predict(X).tolist() == clf.predict(X).tolist()
    assert again.score(X, y) == clf.score(X, y)
    assert kt.autotune(X, y, seconds=0.01).model.classes_.tolist() == classes


def test_a_frame_of_more_columns():
    """It gives the names of its columns when it is iterated: as many predictions as names, and not a word."""
    pd, pl, pa = library("pandas"), library("polars"), library("pyarrow")
    clf = kt.KeyTokenClassifier().fit(TEXTS, LABELS)
    columns = {"text": TEXTS, "label": LABELS}
    wrong = r"`texts` must be one column; saw the columns 'text', 'label'\. Cure: choose one by its name\.$"
    for frame in (pd.DataFrame(columns), pl.DataFrame(columns), pa.table(columns)):
        for ask in (clf.predict, clf.predict_proba, clf.predict_log_proba, clf.decision_function):
            with pytest.raises(InputError, match=f"^predict: {wrong}"):
                ask(frame)
        with pytest.raises(InputError, match=f"^explain_many: {wrong}"):
            clf.explain_many(frame)
        with pytest.raises(InputError, match=f"^fit: {wrong}"):
            kt.KeyTokenClassifier().fit(frame, LABELS)
        with pytest.raises(InputError, match=f"^fit_batches: {wrong}"):
            kt.KeyTokenClassifier().fit_batches([(frame, LABELS)])
        with pytest.raises(InputError, match=f"^report: {wrong}"):
            clf.report("page.html", frame, LABELS)
        with pytest.raises(InputError, match=f"^fit: {wrong.replace('texts', 'labels')}"):
            kt.KeyTokenClassifier().fit(TEXTS, frame)
    with pytest.raises(InputError, match=r"must be one column; saw shape \(2, 0\)\."):
        clf.predict(pd.DataFrame(index=[0, 1]))
    assert clf.predict(pd.DataFrame({"column_names": TEXTS})).tolist() == clf.predict(TEXTS).tolist()


def test_missing_values_of_every_library():
    pd, pl, pa = library("pandas"), library("polars"), library("pyarrow")
    some = ["a great film", None]
    for texts in (pd.Series(some), pd.Series(some, dtype="string"), pl.Series(some), pa.array(some)):
        with pytest.raises(InputError, match=r"`texts\[1\]` must be a string; saw .*drop or fill the missing texts"):
            kt.KeyTokenClassifier().fit(texts, [0, 1])
    given = [True, None]
    for labels in (pd.Series(given, dtype="boolean"), pl.Series(given), pa.array(given), pd.Series([1.0, np.nan])):
        with pytest.raises(InputError, match=r"missing values \(labels\[1\] = .*drop the rows without a label"):
            kt.KeyTokenClassifier().fit(["a great film", "a dull plot"], labels)


def test_bytes_are_to_be_decoded():
    """str() of them is a text too, and the wrong one: "b'a great film'"."""
    pa = library("pyarrow")
    raw = [text.encode() for text in TEXTS]
    clf = kt.KeyTokenClassifier().fit(TEXTS, LABELS)
    cure = r'Cure: decode it first: text\.decode\("utf-8"\)\.$'
    for texts in (raw, np.array(raw), pa.array(raw), [bytearray(raw[0])]):
        with pytest.raises(InputError, match=cure):
            clf.predict(texts)
    with pytest.raises(InputError, match=rf"^explain: `text` must be one string; saw b'.*{cure}"):
        clf.explain(b"a great film")
    for labels in ([b"x", b"y"], np.array([b"x", b"y"])):
        with pytest.raises(InputError, match=r'Cure: decode them: label\.decode\("utf-8"\)\.$'):
            kt.KeyTokenClassifier().fit(["a great film", "a dull plot"], labels)


def test_labels_of_a_batch_that_cannot_be_counted():
    with pytest.raises(
        InputError, match=r"^fit_batches: `labels` must be strings, integers or booleans; saw \[\['x'\]"
    ):
        kt.KeyTokenClassifier().fit_batches([(["a b", "c d"], [["x"], ["y"]])])
    with pytest.raises(InputError, match=r"^fit_batches: `labels` must be a list, one label a text; saw 'xy'"):
        kt.KeyTokenClassifier().fit_batches([(["a b", "c d"], "xy")])


def test_whole_floats_are_compared_as_integers(tmp_path):
    """A page that says 1.0 is no class of the model would call every text wrong."""
    clf = kt.KeyTokenClassifier().fit(TEXTS, NUMBERS)
    assert clf.report(tmp_path / "page.html", TEXTS, [float(n) for n in NUMBERS])["accuracy"] == 1
    named = kt.KeyTokenClassifier().fit(TEXTS, [f"{n}.0" for n in NUMBERS])
    assert named.report(tmp_path / "page.html", TEXTS, [float(n) for n in NUMBERS])["accuracy"] == 1
