"""Formal sets of instances against enumeration, and what the record says of them."""

import itertools
import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import keytokens as kt
from keytokens.model.features import FEATURES

from ...proof.reference import Document, bits
from .planted import planted, record


def subsets(items):
    return itertools.chain.from_iterable(itertools.combinations(items, k) for k in range(len(items) + 1))


def check_sets(e, exact):
    """By enumeration, with the weights and values of the record as exact fractions."""
    weights = np.exp(e.log_weight - e.log_weight.max()).tolist()
    values = tuple(tuple(map(Fraction, row)) for row in e.values.tolist())
    doc = Document(tuple(map(Fraction, weights)), values, Fraction(0), (Fraction(0),) * len(e.classes))
    assert e.classes[doc.label] == e.label
    assert doc.is_sufficient(bits(e.sufficient.indices))
    assert e.sufficient.lower <= doc.fewest_sufficient() <= e.sufficient.size
    assert not exact or e.sufficient.size == doc.fewest_sufficient()
    assert (e.flip.size if e.flip.status != "none" else None) == doc.fewest_flip()
    if e.flip.size:
        rest = (1 << doc.tokens) - 1 - bits(e.flip.indices)
        assert e.flip.label_after == e.classes[doc.labels[rest]] != e.label


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("classes", [2, 3])
def test_sets_of_a_fitted_model_against_brute_force(seed, classes):
    bags, y = planted(40, seed=seed, classes=classes)
    features = "linear" if seed % 2 else "rbf"
    clf = kt.BagClassifier(random_state=0, features=features, pooling="attention").fit(bags, y)
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


numbers = st.floats(-6, 6)


@given(st.lists(st.tuples(numbers, numbers, numbers, numbers), min_size=1, max_size=7), st.sampled_from([2, 3]))
def test_identities_of_any_record(rows, classes):
    """Contributions add up to the logit; support less opposition is the margin; the drop is what deleting does."""
    table = np.array(rows)
    log_weight, values = 5 * table[:, 0], table[:, 1 : 1 + classes]
    if classes == 2:
        values = np.column_stack([np.zeros(len(values)), values[:, 1]])
    e = record(log_weight, values)
    c, label = e.certificate, e.classes.index(e.label)
    assert sum(t.contribution for t in e.instances) == pytest.approx(e.logit, abs=1e-9)
    assert sum(t.attention for t in e.instances) == pytest.approx(1)
    assert list(c.support) == [name for name in e.classes if name != e.label]
    for rival, helped in c.support.items():
        margin = e.scores[label] - e.scores[e.classes.index(rival)]
        assert helped - c.opposition[rival] == pytest.approx(margin, abs=1e-9)
    kept = list(e.sufficient)
    rest = record(log_weight[kept], values[kept])
    outside = [t for t in range(len(values)) if t not in kept]
    assert c.attention_outside == pytest.approx(sum(e.instances[t].attention for t in outside), abs=1e-9)
    if classes == 2:
        assert c.drop == pytest.approx(e.scores[1] - rest.scores[1], abs=1e-9)
    assert c.at_least == pytest.approx(c.keeping[0], abs=1e-12)
    plain = e.to_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain


@pytest.mark.parametrize("penalty", [1e-3, 1.0])
def test_selected_instances_are_the_fewest_that_hold_half(penalty):
    bags, y = planted()
    clf = kt.BagClassifier(attention_penalty=penalty, random_state=0).fit(bags, y)
    for bag, shares, chosen in zip(bags, clf.attention(bags), clf.selected(bags), strict=True):
        assert chosen.tolist() == [t.index for t in clf.explain(bag).instances if t.selected]
        assert shares[chosen].sum() >= 0.5 - 1e-9
        fewer = range(len(chosen))
        assert all(shares[list(some)].sum() < 0.5 for k in fewer for some in itertools.combinations(range(len(bag)), k))


def test_a_small_penalty_selects_more_sharply():
    bags, y = planted()
    sizes = [
        sum(map(len, kt.BagClassifier(attention_penalty=penalty).fit(bags, y).selected(bags))) for penalty in (1e-3, 10)
    ]
    assert sizes[0] < sizes[1]


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
        "class 1 (65\xa0%), because of instances 0 and 1. Keep these 2 instances (fewer are not enough): whatever "
        "else is deleted, it stays class 1 (at least 54\xa0%). Without instance 0 it is class 0. Proved for deletions: "
        "nothing is said of added or changed instances."
    )
    sure = record(np.zeros(1), np.array([[0, 3.0]]))
    assert sure.certificate.sentence.startswith("class 1 (95\xa0%), because of instance 0. Keep it: whatever")
    assert "No deletion that leaves an instance changes it." in sure.certificate.sentence
    many = record(np.zeros(5), np.column_stack([np.zeros(5), [1.0, 1, 1, 1, -0.5]]))
    assert "must delete at least 4 instances: instances 0, 1, 2 and 3." in many.certificate.sentence
    tie = record(np.zeros(2), np.array([[0, 1.0], [0, -1.0]]))
    assert tie.label == "class 0"
    assert "To rounding" in tie.certificate.sentence


def test_three_classes_say_what_is_proved():
    values = np.array([[3.0, 0, 2], [3.0, 2, 0], [0, 1.0, 0], [0, 0, 1.0], [1.0, 0, 0]])
    e = record(np.zeros(5), values)
    check_sets(e, exact=False)
    assert not e.certificate.exact
    forced = "none can be left out" if e.sufficient.status == "subset-minimal" else "Keep it: "
    assert forced in e.certificate.sentence


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
    assert [c.keeping, c.at_least, c.attention_outside, c.drop, c.probability_after_flip] == [None] * 5
    assert c.deleting == c.support == c.opposition == {}
    assert (c.instances, c.prediction.label, c.tight) == (len(bags[1]), e.label, False)
    plain = e.to_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain


def test_subset_minimal_sentence():
    rng = np.random.RandomState(0)
    for _ in range(200):
        e = record(np.zeros(9), rng.randint(-3, 4, (9, 4)).astype(float))
        if e.sufficient.status == "subset-minimal":
            break
    needed = f", and at least {e.sufficient.lower} are needed" if e.sufficient.lower > 1 else ""
    assert f"Keep these {e.sufficient.size} instances (none can be left out{needed}): " in e.certificate.sentence
