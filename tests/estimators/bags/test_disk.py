"""Models on disk."""

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


def test_names_of_columns_are_kept(tmp_path):
    rng = np.random.RandomState(0)
    X, y = rng.standard_normal((20, 2)), np.arange(20) % 2
    clf = kt.BagClassifier().fit(X, y)
    clf.feature_names_in_ = np.array(["one", "other"], object)
    clf.save(tmp_path)
    assert kt.load(tmp_path).feature_names_in_.tolist() == ["one", "other"]
