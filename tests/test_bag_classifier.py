"""BagClassifier: gradient, formal sets by enumeration, input, persistence, and scikit-learn's checks."""

from __future__ import annotations

import itertools
import json
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import keytokens as kt
from keytokens.bags import (
    FEATURES,
    HEADS,
    BagExplanation,
    FeatureMap,
    Weights,
    backward,
    forward,
    objective_of,
)
from keytokens.core.bags import Bags
from keytokens.core.losses import loss_for

sys.path.insert(0, str(Path(__file__).parents[1]))  # the benchmarks are not part of the package

from benchmarks import bags as benchmark

CHECKS_THAT_DO_NOT_APPLY = {
    "check_array_api_input": "skips itself unless SCIPY_ARRAY_API is set",
}


def planted(n=80, seed=0, d=4, classes=2):
    """Bags of noise; a bag of class k > 0 holds one or two instances near a centre of its own."""
    rng = np.random.RandomState(seed)
    centres = 4 * np.eye(d)
    y = np.arange(n) % classes
    bags = []
    for k in y:
        bag = rng.standard_normal((rng.randint(2, 9), d))
        if k:
            bag[: rng.randint(1, 3)] += centres[k]
        bags.append(rng.permutation(bag))
    return bags, y


@pytest.fixture(scope="module")
def fitted():
    bags, y = planted()
    return kt.BagClassifier(random_state=0).fit(bags, y), bags, y


# ---- mathematics


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("classes", [2, 3])
def test_gradient_by_finite_differences(head, classes):
    bags, y = planted(12, classes=classes)
    data, rng = Bags.of(bags), np.random.RandomState(1)
    m = 1 if classes == 2 else classes
    shape = (4, m, 0) if head == "linear" else (4, 3, m)
    size = 4 + 4 * shape[1] + shape[1] + shape[2] * shape[1] + shape[2]
    penalties = Weights.unpack(rng.uniform(0.1, 1, size), *shape)
    objective = objective_of(data, y, rng.uniform(0, 2, len(y)), loss_for(classes), shape, penalties)
    theta = rng.standard_normal(size)
    _, gradient = objective(theta)
    step = 1e-6
    numeric = [(objective(theta + step * e)[0] - objective(theta - step * e)[0]) / (2 * step) for e in np.eye(size)]
    np.testing.assert_allclose(gradient, numeric, rtol=1e-6, atol=1e-6)


def test_forward_is_the_formula_bag_by_bag():
    bags, _ = planted(6)
    rng = np.random.RandomState(0)
    w = Weights(rng.standard_normal(4), rng.standard_normal((1, 4)), np.array([0.3]), np.zeros((0, 1)), np.zeros(0))
    found = forward(Bags.of(bags), w)
    for i, X in enumerate(bags):
        s = np.exp(X @ w.q) / np.exp(X @ w.q).sum()
        assert found.scores[0, i] == pytest.approx((X @ w.V[0]) @ s + 0.3)
    assert backward(Bags.of(bags), w, found, np.zeros((1, 6))).pack().tolist() == [0.0] * 9


@pytest.mark.parametrize("kind", FEATURES)
def test_feature_map_is_centred_and_of_length_one(kind):
    rng = np.random.RandomState(0)
    rows = rng.standard_normal((50, 3)) * [1, 1e-3, 1e5] + 7
    phi, features = FeatureMap.learn(rows, np.ones(50), kind, True, 20, 1.0, rng)
    np.testing.assert_allclose(phi(rows), features, atol=1e-7)
    np.testing.assert_allclose(features.mean(axis=0), 0, atol=1e-9)
    assert (features**2).sum(axis=1).mean() == pytest.approx(1)


def test_rbf_features_have_the_kernel_as_product():
    rng = np.random.RandomState(0)
    rows = rng.standard_normal((30, 2))
    phi, _ = FeatureMap.learn(rows, np.ones(30), "rbf", False, 100, 1.5, rng)
    raw = phi(rows) + phi.centre
    K = np.exp(-1.5 / 2 * ((rows[:, None] - rows[None]) ** 2).sum(axis=2))
    np.testing.assert_allclose((raw @ raw.T) / (raw[0] @ raw[0]), K, atol=1e-5)


# ---- formal sets against enumeration


def label_after(log_weight, values, kept):
    w = np.exp(log_weight[kept] - log_weight[kept].max())
    return int((w @ values[kept]).argmax())  # the first of equals, as `predict`; a positive factor changes nothing


def subsets(items):
    return itertools.chain.from_iterable(itertools.combinations(items, k) for k in range(len(items) + 1))


def fixes(log_weight, values, label, core):
    rest = [t for t in range(len(values)) if t not in core]
    return all(
        label_after(log_weight, values, [*core, *more]) == label for more in subsets(rest) if len(core) + len(more)
    )


def least_sizes(log_weight, values, label):
    """Sizes of a minimum sufficient set and a minimum flip (None: no flip), by brute force."""
    every = range(len(values))
    kept = min(len(s) for s in subsets(every) if s and fixes(log_weight, values, label, s))
    gone = [
        len(s)
        for s in subsets(every)
        if len(s) < len(values) and label_after(log_weight, values, [t for t in every if t not in s]) != label
    ]
    return kept, min(gone, default=None)


def record(log_weight, values):
    """An explanation of made-up instances; values (T, K)."""
    w = np.exp(log_weight - log_weight.max())
    return BagExplanation(log_weight, values, w @ values / w.sum(), [f"class {k}" for k in range(values.shape[1])])


def check_sets(e, exact):
    label = e.classes.index(e.label)
    kept, gone = least_sizes(e.log_weight, e.values, label)
    assert fixes(e.log_weight, e.values, label, e.sufficient.indices)
    assert e.sufficient.lower <= kept <= e.sufficient.size
    assert not exact or e.sufficient.size == kept
    assert (e.flip.size if e.flip.status != "none" else None) == gone
    if gone is not None:
        rest = [t for t in range(len(e.values)) if t not in e.flip.indices]
        assert e.flip.label_after == e.classes[label_after(e.log_weight, e.values, rest)] != e.label


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=6), st.sampled_from([-1, 0, 1]))
def test_sets_of_equal_weights_with_ties(numbers, intercept):
    said = np.array(numbers, float) + intercept
    check_sets(record(np.zeros(len(said)), np.column_stack([np.zeros(len(said)), said])), exact=True)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("classes", [2, 3])
def test_sets_of_a_fitted_model_against_brute_force(seed, classes):
    bags, y = planted(40, seed=seed, classes=classes)
    clf = kt.BagClassifier(random_state=0, features="linear" if seed % 2 else "rbf").fit(bags, y)
    for bag in bags[:6]:
        e = clf.explain(bag)
        check_sets(e, exact=classes == 2)
        assert e.label == clf.predict([bag])[0]
        if e.flip.status != "none":
            rest = np.delete(bag, e.flip.indices, axis=0)
            assert clf.predict([rest])[0] == e.flip.label_after
            assert e.certificate.probability_after_flip == pytest.approx(
                clf.predict_proba([rest])[0, clf.classes_.tolist().index(e.label)]
            )


def test_both_labels_occur_in_these_tests(fitted):
    clf, bags, _ = fitted
    assert {clf.explain(bag).label for bag in bags[:8]} == {0, 1}


def test_certificate_bounds_hold_under_every_deletion(fitted):
    clf, bags, _ = fitted
    bag = min(bags[:20], key=lambda bag: abs(len(bag) - 6))
    e = clf.explain(bag)
    low, high = e.certificate.keeping
    outside = [t for t in range(len(bag)) if t not in e.sufficient]
    for more in subsets(outside):
        p = clf.predict_proba([bag[[*e.sufficient, *more]]])[0, e.label]
        assert low - 1e-9 <= p <= high + 1e-9
    for m, (least, most) in e.certificate.deleting.items():
        for gone in subsets(range(len(bag))):
            if len(gone) <= m and len(gone) < len(bag):
                p = clf.predict_proba([np.delete(bag, gone, axis=0)])[0, e.label]
                assert least - 1e-9 <= p <= most + 1e-9


# ---- the record


@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize("classes", [2, 3])
def test_contributions_add_up(features, classes):
    bags, y = planted(40, classes=classes)
    clf = kt.BagClassifier(features=features, random_state=0).fit(bags, y)
    scores, attention = clf.decision_function(bags), clf.attention(bags)
    for i in range(8):
        e = clf.explain(bags[i])
        expected = scores[i] if classes == 2 else scores[i, e.label]
        assert e.logit == pytest.approx(expected)
        assert sum(t.contribution for t in e.instances) == pytest.approx(e.logit)
        assert e.probability == pytest.approx(clf.predict_proba(bags)[i].max())
        assert e.probabilities[e.label] == e.probability
        np.testing.assert_allclose([t.attention for t in e.instances], attention[i], rtol=1e-9)
        assert [t.index for t in e.instances] == list(range(len(bags[i])))
        assert sum(t.attention for t in e.instances if t.selected) >= 0.5 - 1e-9


def test_attention_sums_to_one(fitted):
    clf, bags, _ = fitted
    shares = clf.attention(bags)
    assert [len(s) for s in shares] == [len(bag) for bag in bags]
    np.testing.assert_allclose([s.sum() for s in shares], 1)


def test_record_is_plain_data(fitted):
    clf, bags, _ = fitted
    e = clf.explain(bags[1])
    data = json.loads(json.dumps(e.to_dict()))
    assert data["sufficient"]["unit"] == data["flip"]["unit"] == data["certificate"]["unit"] == "instances"
    assert data["sufficient"]["indices"] == list(e.sufficient)
    assert data["instances"][0]["index"] == 0
    assert e.sufficient[0] == e.sufficient.indices[0]
    assert repr(e).endswith(e.certificate.sentence)


def test_sentences():
    two = record(np.zeros(4), np.array([[0, 3.0], [0, 2], [0, 2], [0, -4.5]]))
    assert two.certificate.sentence == (
        "2 of 4 instances fix the label: whatever other instances are deleted, it stays 'class 1' and its probability "
        "stays at least 0.54. No single instance does. Deleting this instance makes it 'class 0' (the probability of "
        "'class 1' is then 0.46). Deletions only: nothing is said of added or changed instances."
    )
    sure = record(np.zeros(1), np.array([[0, 3.0]]))
    assert sure.certificate.sentence.startswith("1 of 1 instance fixes the label: ")
    assert "No deletion that leaves an instance changes the label." in sure.certificate.sentence
    many = record(np.zeros(5), np.column_stack([np.zeros(5), [1.0, 1, 1, 1, -0.5]]))
    assert "Deleting these 4 instances makes it 'class 0'" in many.certificate.sentence
    assert "No 3 instances do." in many.certificate.sentence
    tie = record(np.zeros(2), np.array([[0, 1.0], [0, -1.0]]))
    assert tie.label == "class 0"
    assert "To rounding" in tie.certificate.sentence


def test_three_classes_say_what_is_proved():
    values = np.array([[3.0, 0, 2], [3.0, 2, 0], [0, 1.0, 0], [0, 0, 1.0], [1.0, 0, 0]])
    e = record(np.zeros(5), values)
    check_sets(e, exact=False)
    assert not e.certificate.exact
    forced = "These" if e.sufficient.status == "subset-minimal" else f"{e.sufficient.size} of"
    assert e.certificate.sentence.startswith(forced)


def test_a_head_that_is_not_linear_proves_nothing_and_says_so():
    bags, y = planted()
    clf = kt.BagClassifier(head="tanh", random_state=0).fit(bags, y)
    assert clf.score(bags, y) > 0.9
    e = clf.explain(bags[1])
    assert not e.formal
    assert (e.sufficient.status, e.flip.status, len(e.sufficient)) == ("none", "none", 0)
    assert e.instances[0].value is None
    assert sum(t.attention for t in e.instances) == pytest.approx(1)
    assert e.logit == pytest.approx(clf.decision_function([bags[1]])[0])
    assert e.certificate.sentence.startswith("Nothing is proved of single instances")
    c = e.certificate
    assert (c.keeping, c.at_least, c.deleting, c.attention_outside, c.probability_after_flip) == (
        None,
        None,
        {},
        None,
        None,
    )
    json.dumps(e.to_dict())


# ---- learning


@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize("classes", [2, 3, 4])
def test_learns_a_planted_problem(features, classes):
    bags, y = planted(240, classes=classes)
    test, truth = planted(120, seed=1, classes=classes)
    names = np.array(["a", "b", "c", "d"])
    clf = kt.BagClassifier(features=features, random_state=0).fit(bags, names[y])
    assert clf.score(test, names[truth]) > 0.85
    assert clf.predict_proba(test).shape == (120, classes)
    np.testing.assert_array_equal(clf.predict(test), clf.classes_[clf.predict_proba(test).argmax(axis=1)])


def test_ragged_and_stacked_agree():
    rng = np.random.RandomState(0)
    X, y = rng.standard_normal((30, 5, 3)), np.arange(30) % 2
    X[y == 1, 0] += 2
    one, other = (kt.BagClassifier(random_state=0).fit(data, y) for data in (X, list(X)))
    np.testing.assert_array_equal(one.decision_function(X), other.decision_function(X.tolist()))
    ragged = np.empty(30, object)
    ragged[:] = list(X)
    np.testing.assert_array_equal(one.decision_function(X), one.decision_function(ragged))
    np.testing.assert_array_equal(one.decision_function(X), one.decision_function(Bags.of(X)))


def test_a_table_is_bags_of_one_instance_each():
    rng = np.random.RandomState(0)
    X, y = rng.standard_normal((40, 3)), np.arange(40) % 2
    table, bags = (kt.BagClassifier(random_state=0).fit(data, y) for data in (X, X[:, None, :]))
    np.testing.assert_array_equal(table.decision_function(X), bags.decision_function(X[:, None, :]))


def test_an_iterator_of_bags_will_do(fitted):
    clf, bags, y = fitted
    again = kt.BagClassifier(random_state=0).fit(iter(bags), y)
    np.testing.assert_array_equal(again.decision_function(iter(bags)), clf.decision_function(bags))


def test_order_within_a_bag_does_not_matter(fitted):
    clf, bags, _ = fitted
    np.testing.assert_allclose(
        clf.decision_function(bags), clf.decision_function([bag[::-1] for bag in bags]), rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("options", [{}, {"n_landmarks": 30}, {"head": "tanh"}, {"n_starts": 3, "n_landmarks": 30}])
def test_same_seed_same_bits(options):
    bags, y = planted()
    runs = [kt.BagClassifier(random_state=5, **options).fit(bags, y).decision_function(bags) for _ in range(2)]
    np.testing.assert_array_equal(*runs)


def test_more_starts_are_never_worse():
    bags, y = planted(40)
    values = [kt.BagClassifier(n_starts=n, random_state=0).fit(bags, y).history_[-1] for n in (1, 4)]
    assert values[1] <= values[0]


def test_weights_are_repetitions():
    bags, y = planted(30)
    weight = np.arange(30) % 3
    twice = np.repeat(np.arange(30), weight)
    for options in ({}, {"class_weight": "balanced"}, {"class_weight": {0: 2.0, 1: 1.0}}):
        one = kt.BagClassifier(tol=1e-12, **options).fit(bags, y, sample_weight=weight)
        other = kt.BagClassifier(tol=1e-12, **options).fit([bags[i] for i in twice], y[twice])
        np.testing.assert_allclose(one.decision_function(bags), other.decision_function(bags), atol=1e-3)


def test_class_weight_moves_the_scores():
    bags, y = planted(40)
    y = y.copy()
    y[:20] = 0
    plain, balanced = (kt.BagClassifier(class_weight=rule).fit(bags, y) for rule in (None, "balanced"))
    assert balanced.decision_function(bags).mean() > plain.decision_function(bags).mean()


def test_warm_start_goes_on():
    bags, y = planted()
    clf = kt.BagClassifier(max_iter=5, warm_start=True, random_state=0).fit(bags, y)
    before = clf.history_[-1]
    clf.fit(bags, y)
    assert clf.history_[0] == pytest.approx(before, rel=1e-6)
    assert clf.history_[-1] < before
    clf.set_params(head="tanh").fit(bags, y)  # other shapes: a new beginning
    assert clf.head_values_.shape == (1, 8)
    assert clf.status_.startswith("stopped after")


def test_a_failed_fit_leaves_the_model(fitted):
    _, bags, y = fitted
    clf = kt.BagClassifier(random_state=0).fit(bags, y)
    before = clf.decision_function(bags)
    with pytest.raises(kt.InputError):
        clf.fit([np.ones((2, 7)), np.ones((2, 7))], [1, 1])
    np.testing.assert_array_equal(clf.decision_function(bags), before)


def test_progress_bar(capsys):
    bags, y = planted(20)
    kt.BagClassifier(verbose=2, max_iter=3).fit(bags, y)
    assert "training" in capsys.readouterr().err


def test_far_away_and_constant_features_stay_finite():
    bags, y = planted(30)
    bags = [np.column_stack([bag, np.full(len(bag), 1e9), np.zeros(len(bag))]) for bag in bags]
    for features in FEATURES:
        clf = kt.BagClassifier(features=features).fit(bags, y)
        assert clf.score(bags, y) > 0.7
        far = [np.full((2, 6), 1e150), np.full((1, 6), -1e150)]
        assert np.isfinite(clf.predict_proba(far)).all()
        assert clf.explain(far[0]).sufficient.size == 1


@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("size", [1e-200, 1e149])
def test_entries_of_any_size(features, scale, size):
    bags, y = planted(30)
    clf = kt.BagClassifier(features=features, scale=scale).fit([size * bag for bag in bags], y)
    assert np.isfinite(clf.predict_proba([size * bag for bag in bags])).all()
    assert not scale or clf.score([size * bag for bag in bags], y) > 0.7


def test_equal_instances_everywhere():
    X, y = np.ones((6, 2, 3)), [0, 1] * 3
    for features in FEATURES:
        np.testing.assert_allclose(kt.BagClassifier(features=features).fit(X, y).predict_proba(X), 0.5, atol=1e-6)


# ---- bad input


GOOD = [np.ones((2, 3)), np.zeros((1, 3)), np.ones((3, 3)), np.zeros((2, 3))]
LABELS = [1, 0, 1, 0]


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([np.ones((2, 3)), np.ones((2, 4))], [0, 1], "`X[1]` must have shape (tokens, d), the same d for all bags"),
        ([np.ones((2, 3)), np.ones((0, 3))], [0, 1], "`X[1]` must hold at least one token"),
        ([np.ones((2, 3)), np.array([[1, np.nan, 0]])], [0, 1], "`X[1][0, 1]` must be finite; saw nan"),
        ([np.ones((2, 3)), np.array([[1, np.inf, 0]])], [0, 1], "`X[1][0, 1]` must be finite; saw inf"),
        ([np.ones((2, 3)), np.full((1, 3), 1e308)], [0, 1], "`X[1]` must have entries up to 1e+150"),
        (np.full((2, 3), 1e308), [0, 1], "`X` must have entries up to 1e+150"),
        ([np.ones((2, 3)), [["a", "b", "c"]]], [0, 1], "`X` must be numbers"),
        ([], [], "`X` must hold at least one bag"),
        (GOOD, [1, 0, 1], "`y` must have one label for each of the 4 bags; saw shape (3,)"),
        (GOOD, [1, 1, 1, 1], "`y` must have at least two classes; saw one class only, 1"),
    ],
)
def test_bad_bags_and_labels(X, y, message):
    with pytest.raises(kt.InputError) as refused:
        kt.BagClassifier().fit(X, y)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("weight", [[1, 1], [1, -1, 1, 1], [1, np.nan, 1, 1], [0, 0, 0, 0], "heavy", [[1], [2]]])
def test_bad_sample_weight(weight):
    with pytest.raises(kt.InputError, match="`sample_weight` must be 4 finite numbers, none negative and not all zero"):
        kt.BagClassifier().fit(GOOD, LABELS, sample_weight=weight)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"features": "cubic"}, "`features` must be one of 'rbf', 'quadratic', 'linear'; saw 'cubic'"),
        ({"head": "relu"}, "`head` must be one of 'linear', 'tanh'"),
        ({"width": 0}, "`width` must be a finite number above 0"),
        ({"value_penalty": -1}, "`value_penalty` must be a finite number above 0"),
        ({"attention_penalty": np.nan}, "`attention_penalty` must be"),
        ({"n_landmarks": 1.5}, "`n_landmarks` must be a whole number of at least 1"),
        ({"n_starts": 0}, "`n_starts` must be a whole number"),
        ({"scale": "yes"}, "`scale` must be True or False"),
        ({"class_weight": "heavy"}, "`class_weight` must be one of 'balanced'"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(kt.InputError) as refused:
        kt.BagClassifier(**options).fit(GOOD, LABELS)
    assert message in str(refused.value)


def test_bad_questions(fitted):
    clf, _, _ = fitted
    with pytest.raises(kt.InputError, match="`X` must have 4 features an instance, as in training; saw 3 features"):
        clf.predict(GOOD)
    with pytest.raises(kt.InputError, match=r"explain: `bag` must be one bag, an array \(T, d\); saw 3 dimensions"):
        clf.explain(np.ones((1, 2, 4)))
    with pytest.raises(kt.InputError, match="explain: `bag`"):
        clf.explain([[1, 2, 3, 4], [1, 2]])
    with pytest.raises(kt.InputError, match="`X` must"):
        clf.predict(["a text"])
    with pytest.raises(NotFittedError):
        kt.BagClassifier().predict(GOOD)
    with pytest.raises(NotFittedError):
        kt.BagClassifier().explain(np.ones((1, 2)))


# ---- on disk


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


def test_subset_minimal_sentence():
    rng = np.random.RandomState(0)
    for _ in range(200):
        e = record(np.zeros(9), rng.randint(-3, 4, (9, 4)).astype(float))
        if e.sufficient.status == "subset-minimal":
            break
    assert e.certificate.sentence.startswith(f"These {e.sufficient.size} of 9 instances fix the label against all 3")
    assert f"(at least {e.sufficient.lower} are needed)" in e.certificate.sentence


def test_pickle_and_clone(fitted):
    clf, bags, _ = fitted
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(clf)).predict(bags), clf.predict(bags))
    assert clone(clf).get_params() == clf.get_params()


# ---- scikit-learn


@parametrize_with_checks(
    [kt.BagClassifier(), kt.BagClassifier(features="linear", class_weight="balanced")],
    expected_failed_checks=lambda estimator: CHECKS_THAT_DO_NOT_APPLY,
)
def test_scikit_learn_checks(estimator, check):
    """On tables, bags of one instance each: scikit-learn has no bags to try."""
    check(estimator)


def test_cross_validation_and_grid_search():
    bags, y = planted(60)
    assert cross_val_score(kt.BagClassifier(width=1.0), bags, y, cv=3).mean() > 0.8
    search = GridSearchCV(kt.BagClassifier(), {"width": [0.5, 1.0]}, cv=2, error_score="raise").fit(bags, y)
    assert search.best_score_ > 0.8


# ---- real data


def test_musk1(data_folder):
    """Ten-fold, once: far above what a broken model would give; benchmarks/bags.py measures it in full."""
    pytest.importorskip("pyarrow")
    assert benchmark.figures(*benchmark.load("musk1"), {}, 1)["accuracy"] >= 0.86


def test_benchmark_runs(monkeypatch, capsys):
    monkeypatch.setattr(benchmark, "load", lambda name: planted(40))
    benchmark.main(
        ["--sets", "musk1", "--variants", "default", "--repeats", "1", "--options", "width=2", "head=linear"]
    )
    assert "musk1    default" in capsys.readouterr().out
