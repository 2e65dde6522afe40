"""Models on disk."""

from __future__ import annotations

import json

import numpy as np
import pytest

import keytokens as kt

from .planted import planted


@pytest.mark.parametrize(
    "options", [{}, {"features": "linear"}, {"features": "quadratic", "scale": False}, {"head": "tanh"}]
)
@pytest.mark.parametrize("classes", [2, 3])
def test_save_and_load_to_the_bit(tmp_path, options, classes):
    bags, y = planted(40, classes=classes)
    names = np.array(["no", "perhaps", "yes"])
    clf = kt.BagClassifier(random_state=0, class_weight={n: 1.0 for n in names[:classes]}, **options)
    clf.fit(bags, names[y])
    clf.save(tmp_path / "model")
    assert len(list((tmp_path / "model").iterdir())) == 2
    again = kt.load(tmp_path / "model")
    assert isinstance(again, kt.BagClassifier)
    assert again.get_params() == clf.get_params()
    np.testing.assert_array_equal(again.predict_proba(bags), clf.predict_proba(bags))
    np.testing.assert_array_equal(again.predict(bags), clf.predict(bags))
    assert again.explain(bags[0]).to_dict() == clf.explain(bags[0]).to_dict()
    assert (again.n_iter_, again.status_) == (clf.n_iter_, clf.status_)
    np.testing.assert_array_equal(again.history_, clf.history_)


def test_one_kind_replaces_the_other(tmp_path, fitted):
    clf, bags, _ = fitted
    kt.KeyTokenClassifier().fit(["a b", "c d"], [0, 1]).save(tmp_path)
    clf.save(tmp_path)
    assert len(list(tmp_path.iterdir())) == 2
    np.testing.assert_array_equal(kt.load(tmp_path).predict(bags), clf.predict(bags))


def test_options_changed_after_the_fit_do_not_spoil_the_file(tmp_path):
    bags, y = planted(20)
    clf = kt.BagClassifier(random_state=0).fit(bags, y).set_params(width=9.0, features="linear", head="tanh")
    expected = clf.decision_function(bags)
    clf.save(tmp_path)
    np.testing.assert_array_equal(kt.load(tmp_path).decision_function(bags), expected)


@pytest.mark.parametrize("name", ["q", "V", "landmarks", "U"])
def test_arrays_that_do_not_fit_are_refused(tmp_path, fitted, name):
    clf, _, _ = fitted
    arrays = clf.to_arrays()
    other = kt.BagClassifier()
    with pytest.raises(ValueError, match=r"wrong shape|different models|missing"):
        other.from_arrays(arrays | {name: np.ones((3, 3))}, clf.classes_)
    with pytest.raises((ValueError, KeyError)):
        other.from_arrays({key: array for key, array in arrays.items() if key != name}, clf.classes_)
    with pytest.raises(ValueError, match="missing"):
        other.from_arrays(arrays | {"more": np.ones(1)}, clf.classes_)
    for spoilt in (arrays[name].astype(np.float32), np.full_like(arrays[name], np.nan)):
        if spoilt.size or spoilt.dtype == np.float32:
            with pytest.raises(ValueError, match=f"{name} has the wrong shape or type, or is not finite"):
                other.from_arrays(arrays | {name: spoilt}, clf.classes_)


def test_damaged_model(tmp_path, fitted):
    clf, _, _ = fitted
    clf.save(tmp_path)
    good = json.loads((tmp_path / "model.json").read_text())
    for change in ({"classes": ["a", "b", "c"]}, {"kind": "KeyTokenClassifier"}, {"feature_names": ["one"]}):
        (tmp_path / "model.json").write_text(json.dumps(good | change))
        with pytest.raises(kt.ModelError) as refused:
            kt.load(tmp_path)
        assert "\n" not in str(refused.value)


def test_names_of_columns_are_kept(tmp_path):
    rng = np.random.RandomState(0)
    X, y = rng.standard_normal((20, 2)), np.arange(20) % 2
    clf = kt.BagClassifier().fit(X, y)
    clf.feature_names_in_ = np.array(["one", "other"], object)
    clf.save(tmp_path)
    assert kt.load(tmp_path).feature_names_in_.tolist() == ["one", "other"]
