"""Mean and maximum beside the attention: when they are taken, and that all that is said of a bag stays exact."""

import itertools

import numpy as np
import pytest

import keytokens as kt
from keytokens.model.features import FeatureMap
from keytokens.model.pooling import Beside
from keytokens.model.ragged import Bags
from keytokens.proof.subsets import Subsets, maxima, means
from keytokens.training.bags import fit_beside, folds_of

from .planted import extreme, planted


@pytest.fixture(scope="module", params=[2, 3])
def mixed(request):
    bags, y = extreme(90, classes=request.param)
    clf = kt.BagClassifier(random_state=0).fit(bags, y)
    assert clf.beside_, "the data need mean or maximum"
    return clf, *extreme(60, seed=1, classes=request.param)


def test_it_is_better_where_maxima_tell(mixed):
    clf, bags, y = mixed
    alone = kt.BagClassifier(random_state=0, pooling="attention").fit(*extreme(90, classes=len(clf.classes_)))
    assert not alone.beside_
    assert clf.score(bags, y) >= alone.score(bags, y) + 0.05


def test_contributions_add_up(mixed):
    clf, bags, _ = mixed
    scores, shares = clf.decision_function(bags), clf.attention(bags)
    for bag, score, share in zip(bags[:12], scores, shares, strict=False):
        e = clf.explain(bag)
        expected = score if np.ndim(score) == 0 else score[list(clf.classes_).index(e.label)]
        assert sum(t.contribution for t in e.instances) == pytest.approx(expected, abs=1e-9)
        assert e.logit == pytest.approx(expected, abs=1e-9)
        np.testing.assert_allclose([t.attention for t in e.instances], share, rtol=1e-9)
        lead = e.scores[list(e.classes).index(e.label)] - e.scores[list(e.classes).index(e.rival)]
        assert e.contributions_against().sum() == pytest.approx(lead, abs=1e-9)


def test_sets_and_ranges_by_asking_the_model(mixed):
    """Every deletion is predicted anew from the rest of the bag."""
    clf, bags, _ = mixed
    column = clf.classes_.tolist().index
    for bag in bags[:12]:
        e, T = clf.explain(bag), len(bag)
        chance = {
            some: clf.predict_proba([bag[list(some)]])[0]
            for size in range(1, T + 1)
            for some in itertools.combinations(range(T), size)
        }
        stays = {some: clf.classes_[p.argmax()] == e.label for some, p in chance.items()}
        fixing = [some for some in stays if all(ok for other, ok in stays.items() if set(some) <= set(other))]
        assert e.formal
        assert e.sufficient.status == "minimum"
        assert e.sufficient.size == min(map(len, fixing))
        assert tuple(sorted(e.sufficient.indices)) in fixing
        changing = [T - len(some) for some, ok in stays.items() if not ok]
        assert (e.flip.size if e.flip.status != "none" else None) == min(changing, default=None)
        own = {some: p[column(e.label)] for some, p in chance.items()}
        holding = [p for some, p in own.items() if set(e.sufficient.indices) <= set(some)]
        assert e.certificate.keeping == pytest.approx((min(holding), max(holding)), abs=1e-9)
        for m, ends in e.certificate.deleting.items():
            left = [p for some, p in own.items() if len(some) >= T - m]
            assert ends == pytest.approx((min(left), max(left)), abs=1e-9)
        if changing:
            rest = tuple(t for t in range(T) if t not in e.flip.indices)
            assert e.flip.label_after == clf.classes_[chance[rest].argmax()]
            assert e.certificate.probability_after_flip == pytest.approx(own[rest], abs=1e-9)
        for rival, helped in e.certificate.support.items():
            lead = e.scores[column(e.label)] - e.scores[column(rival)]
            assert helped - e.certificate.opposition[rival] == pytest.approx(lead, abs=1e-9)
        assert e.certificate.exact


def test_a_large_bag_is_not_proved_and_says_so(mixed):
    clf, bags, _ = mixed
    bag = np.concatenate(bags[:5])[:14]
    e = clf.explain(bag)
    assert not e.formal
    assert e.certificate.sentence.startswith("Nothing is proved of single instances: mean and maximum")
    assert sum(t.contribution for t in e.instances) == pytest.approx(e.logit, abs=1e-9)
    assert (e.sufficient.status, e.flip.status, e.certificate.deleting) == ("none", "none", {})
    assert "add up to" in e._repr_html_()
    assert clf.explain(bag[:13]).formal


def test_it_is_saved(mixed, tmp_path):
    clf, bags, _ = mixed
    clf.save(tmp_path)
    again = kt.load(tmp_path)
    np.testing.assert_array_equal(again.decision_function(bags), clf.decision_function(bags))
    assert again.explain(bags[0]).to_dict() == clf.explain(bags[0]).to_dict()


def test_older_models_have_no_such_arrays(tmp_path):
    bags, y = planted(20)
    clf = kt.BagClassifier(pooling="attention", scale=False).fit(bags, y)
    arrays = clf.to_arrays()
    assert arrays["A"].shape == arrays["M"].shape == (1, 0)
    older = {name: array for name, array in arrays.items() if name not in ("A", "M", "limit")}
    again = kt.BagClassifier()
    again.from_arrays(older, clf.classes_)
    np.testing.assert_array_equal(again.decision_function(bags), clf.decision_function(bags))


def test_repetitions_and_order_choose_the_same():
    bags, y = extreme(60)
    twice = np.r_[np.arange(60), np.arange(0, 60, 3)]
    weight = np.ones(60)
    weight[::3] = 2
    order = np.random.RandomState(0).permutation(60)
    one = kt.BagClassifier(tol=1e-10).fit(bags, y, weight)
    two = kt.BagClassifier(tol=1e-10).fit([bags[i] for i in twice], y[twice])
    three = kt.BagClassifier(tol=1e-10).fit([bags[i] for i in order], y[order], weight[order])
    for other in (two, three):
        np.testing.assert_allclose(one.decision_function(bags), other.decision_function(bags), atol=2e-3)


def test_folds_keep_equal_bags_together():
    bags, y = planted(30)
    folds = folds_of(Bags.of([*bags, *bags]), np.r_[y, y], np.r_[np.ones(30), np.zeros(30)])
    assert (folds[30:] == -1).all()
    again = folds_of(Bags.of([*bags, *bags]), np.r_[y, y], np.ones(60))
    np.testing.assert_array_equal(again[:30], again[30:])
    np.testing.assert_array_equal(again[:30], folds[:30])
    assert folds_of(Bags.of(bags[:3]), np.array([0, 1, 1]), np.ones(3)) is None


def test_the_regression_beside_is_at_its_minimum():
    """Against scikit-learn on the same standardised pools."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    from keytokens.training.bags import BESIDE_PENALTY

    bags, y = extreme(60)
    data = Bags.of(bags)
    beside, added = fit_beside(data, y, np.ones(60), 2)
    Z = StandardScaler().fit_transform(Beside.pool(data))
    peer = LogisticRegression(C=Z.shape[1] ** -1 / BESIDE_PENALTY, tol=1e-10, max_iter=10_000).fit(Z, y)
    np.testing.assert_allclose(beside.scores(data)[0] + added, peer.decision_function(Z), atol=0.02)


def test_parts_add_up_to_scores():
    rng = np.random.RandomState(0)
    bag, weights = rng.standard_normal((5, 3)).round(), Beside(rng.standard_normal((2, 3)), rng.standard_normal((2, 3)))
    bag[3] = bag[1]  # a maximum that two instances hold counts once
    np.testing.assert_allclose(weights.parts(bag).sum(axis=0), weights.scores(Bags.of([bag]))[:, 0])


def test_means_and_maxima_of_subsets():
    rng = np.random.RandomState(0)
    a, b, z, w = 300 * rng.standard_normal(5), rng.standard_normal((5, 2)), rng.randn(5, 7), rng.randn(2, 7)
    mean, most = means(a, b), maxima(z, w, block=3)
    for row in range(1, 32):
        held = [t for t in range(5) if row >> t & 1]
        share = np.exp(a[held] - a[held].max())
        np.testing.assert_allclose(mean[row], share @ b[held] / share.sum(), atol=1e-12)
        np.testing.assert_allclose(most[row], w @ z[held].max(axis=0), atol=1e-12)


def test_a_tie_goes_to_the_first_class():
    scores = np.array([[0, 0.0], [0, 1], [0, 0], [0, 1]])
    found = Subsets.of(scores, 1)
    assert (found.gone.indices, found.gone.label_after, found.gone.tight) == ((0,), 0, True)


def test_the_width_follows_the_neighbours():
    """Twice as many dimensions of noise, and neighbours are relatively farther: similarities fade more slowly."""
    rng = np.random.RandomState(0)
    narrow = []
    for noise in (0, 60):
        bags = [
            np.concatenate([rng.standard_normal((4, 3)), rng.standard_normal((4, noise))], axis=1) for _ in range(40)
        ]
        phi, _ = FeatureMap.learn(Bags.of(bags), np.ones(160), "rbf", True, 300, None, rng)
        narrow.append(phi.width)
    assert narrow[0] == 3  # the widest
    assert 0.3 < narrow[1] < 1.3
    one = FeatureMap.learn(Bags.of(bags[:1]), np.ones(4), "rbf", True, 300, None, rng)[0]
    assert one.width == pytest.approx(1)  # no other bag


def test_a_rare_large_entry_is_limited():
    """An instance whose one entry is 30 standard deviations away looks like one at 3; without `scale` it does not."""
    bags, y = planted(40)
    for scale in (True, False):
        clf = kt.BagClassifier(scale=scale, pooling="attention", features="linear").fit(bags, y)
        mean, deviation = np.concatenate(bags).mean(axis=0), np.concatenate(bags).std(axis=0)
        near, far = (mean + times * deviation * [1, 0, 0, 0] for times in (3.0001, 30))
        same = clf.decision_function([[near], [far]])
        assert (same[0] == pytest.approx(same[1], abs=1e-3)) == scale
