"""Texts and labels as they come: lists, and columns, frames and tables of NumPy, pandas, polars and Arrow."""

import numpy as np
import pytest

import keytokens as kt

from ..conftest import library
from ..corpus import reviews

TEXTS, LABELS = reviews(60)


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


def test_a_frame_of_one_column_is_no_table_of_more():
    """Whatever the column is called: frames have attributes of that name."""
    clf = kt.KeyTokenClassifier().fit(TEXTS, LABELS)
    frame = library("pandas").DataFrame({"column_names": TEXTS})
    assert clf.predict(frame).tolist() == clf.predict(TEXTS).tolist()


def test_whole_floats_are_compared_as_integers(tmp_path):
    """A page that says 1.0 is no class of the model would call every text wrong."""
    clf = kt.KeyTokenClassifier().fit(TEXTS, NUMBERS)
    assert clf.report(tmp_path / "page.html", TEXTS, [float(n) for n in NUMBERS])["accuracy"] == 1
    named = kt.KeyTokenClassifier().fit(TEXTS, [f"{n}.0" for n in NUMBERS])
    assert named.report(tmp_path / "page.html", TEXTS, [float(n) for n in NUMBERS])["accuracy"] == 1
