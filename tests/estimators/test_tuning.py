"""Autotuning: what is tried, on which texts, for how long, and what comes back."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score, log_loss

import keytokens as kt
from keytokens.estimators import tuning
from keytokens.estimators.saving import size_on_disk
from keytokens.text import Limits, build, count

from ..corpus import reviews, topics


class Ticking:
    """A clock that goes on by one at every look."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        self.now += 1
        return self.now


@pytest.fixture
def ticking(monkeypatch):
    clock = Ticking()
    monkeypatch.setattr(tuning, "clock", clock)
    return clock


def far_apart(n=200, seed=0):
    """The first and the last of four words decide together; three in a row say nothing."""
    rng = np.random.RandomState(seed)
    left, right = rng.randint(2, size=(2, n))
    texts = [f"{'ab'[x]} and then {'cd'[z]}" for x, z in zip(left, right, strict=True)]
    return texts, np.where(left == right, "even", "odd").tolist()


# ---- the pieces


words = st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=7).map(" ".join)
limits = st.builds(
    Limits,
    st.sampled_from([(1, 1), (1, 2), (2, 2), (1, 3), (2, 3)]),
    st.lists(st.integers(1, 3), min_size=1, max_size=3).map(tuple),
    st.sampled_from([0.4, 0.7, 1.0]),
    st.sampled_from([None, 1, 3]),
)


@given(st.lists(words, min_size=2, max_size=9), limits, st.data())
def test_columns_are_those_that_build_would_choose(texts, limits, data):
    """Counted once, with all texts; the columns of a part are those that the part alone gives."""
    part = sorted(data.draw(st.sets(st.integers(0, len(texts) - 1), min_size=1)))
    built = build(texts, Limits((1, 3), (1,)))
    vocabulary, counts = built.vocabulary, built.matrix()
    own = counts[part]
    columns = tuning.columns_within(
        limits, vocabulary.sizes, np.bincount(own.indices, minlength=counts.shape[1]), len(part)
    )
    part_alone = build([texts[i] for i in part], limits)
    alone, expected = part_alone.vocabulary, part_alone.matrix()
    if limits.max_tokens is None:
        assert set(vocabulary.names(columns)) == set(alone.tokens)
        same = [alone.tokens.index(name) for name in vocabulary.names(columns)]
        np.testing.assert_array_equal(own[:, columns].toarray(), expected[:, same].toarray())
        np.testing.assert_array_equal(counts[:, columns].toarray(), count(texts, alone)[:, same].toarray())
    else:  # among equally frequent ones either choice is good
        frequencies = [np.sort(np.bincount(each.indices)).tolist() for each in (own[:, columns], expected)]
        assert frequencies[0] == frequencies[1]


@given(st.integers(2, 4), st.integers(2, 30), st.integers(0, 9), st.booleans())
def test_values_have_the_metric_as_their_mean(n_classes, n, seed, weighted):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(n_classes), n)
    y = rng.integers(n_classes, size=n)
    w = rng.integers(1, 4, n).astype(float) if weighted else np.ones(n)
    said, labels = P.argmax(axis=1), range(n_classes)
    expected = {
        "accuracy": accuracy_score(y, said, sample_weight=w),
        "log_loss": -log_loss(y, P, labels=labels, sample_weight=w),
        "macro_f1": f1_score(y, said, labels=labels, average="macro", sample_weight=w, zero_division=0),
    }
    for metric in tuning.METRICS:
        mean, _ = tuning.mean_and_error(tuning.values_of(metric, P, y, w), w)
        assert mean == pytest.approx(expected[metric], abs=1e-12)


def test_values_of_f1_are_its_derivatives():
    """The slope of F1 with the weight of a text is (its value - F1) / total weight."""
    rng = np.random.default_rng(0)
    P, y, w, h = rng.dirichlet(np.ones(3), 40), rng.integers(3, size=40), rng.uniform(1, 2, 40), 1e-6
    values = tuning.values_of("macro_f1", P, y, w)

    def f1(weight):
        return f1_score(y, P.argmax(axis=1), average="macro", sample_weight=weight)

    slopes = [(f1(w + h * one) - f1(w - h * one)) / (2 * h) for one in np.eye(40)]
    np.testing.assert_allclose((values - f1(w)) / w.sum(), slopes, atol=1e-8)


@given(st.lists(st.integers(0, 3), min_size=4, max_size=60), st.integers(2, 6), st.integers(0, 3))
def test_folds_are_a_partition_with_equal_shares(y, n_folds, seed):
    y = np.array(y)
    folds = tuning.folds_of(y, n_folds, seed)
    assert sorted(itertools.chain(*(fold.tolist() for fold in folds))) == list(range(len(y)))
    for label in set(y.tolist()):
        members = [int((y[fold] == label).sum()) for fold in folds]
        assert max(members) - min(members) <= 1


def test_moves_go_on_where_it_helps_and_never_come_back():
    space = tuning.Space.around({}, 0)
    start = {name: value for name, value in kt.KeyTokenClassifier().get_params().items() if name in space.names}
    moves = space.moves(start, np.random.default_rng(0))
    options, best, asked = next(moves), start, [start]
    while True:  # the more spread the better, up to 50; nothing else helps
        asked.append(options)
        won = best["prior__spread"] < options["prior__spread"] <= 50 and all(
            options[name] == start[name] for name in space.names - {"prior__spread"}
        )
        best = options if won else best
        try:
            options = moves.send(won)
        except StopIteration:
            break
    assert 40 < best["prior__spread"] <= 50
    assert len({repr(each) for each in asked}) == len(asked)
    assert {each["ngrams"] for each in asked} == {(1, 1), (1, 2), (1, 3), (1, 4)}
    kt.KeyTokenClassifier().set_params(**asked[-1]).check_options()


# ---- the whole


def test_better_than_the_default_where_that_is_plainly_wrong(ticking):
    texts, labels = far_apart()
    others, truth = far_apart(200, seed=1)
    default = kt.KeyTokenClassifier().fit(texts, labels).score(others, truth)
    tuned = kt.autotune(texts, labels, seconds=100)
    assert tuned.options["ngrams"] == (1, 4)
    assert tuned.model.score(others, truth) == 1 > default + 0.2
    assert tuned.trials[0].score < tuned.score
    assert "ngrams=(1, 4)" in str(tuned)


def test_the_model_is_the_plain_fit_with_these_options(ticking):
    texts, labels = topics(80)
    tuned = kt.autotune(texts, labels, seconds=90, threads=1)
    plain = kt.KeyTokenClassifier().set_params(**tuned.options).fit(texts, labels)
    np.testing.assert_array_equal(tuned.model.predict_proba(texts), plain.predict_proba(texts))
    assert len(tuned.trials) > 3
    best = [trial for trial in tuned.trials if trial.options == tuned.options]
    assert [(trial.score, trial.standard_error) for trial in best] == [(tuned.score, tuned.standard_error)]


def test_the_first_trial_is_what_the_default_scores_by_another_road(ticking):
    texts, labels = reviews(100)
    (trial,) = kt.autotune(texts, labels, seconds=0.5).trials
    y = np.unique(labels, return_inverse=True)[1]
    held = tuning.folds_of(y, 5, 0)[0]
    train = sorted(set(range(100)) - set(held.tolist()))
    clf = kt.KeyTokenClassifier().fit([texts[i] for i in train], [labels[i] for i in train])
    P = clf.predict_proba([texts[i] for i in held])
    assert trial.log_loss == pytest.approx(log_loss(y[held], P), rel=1e-5)
    assert trial.texts == len(held)


def test_same_trials_same_result(monkeypatch):
    texts, labels = reviews(60)

    def run(seconds, seed=0):
        monkeypatch.setattr(tuning, "clock", Ticking())
        return kt.autotune(texts, labels, seconds=seconds, seed=seed, metric="log_loss")

    one, two, longer = run(50), run(50), run(80)
    assert one.trials == two.trials
    assert one.options == two.options
    np.testing.assert_array_equal(one.model.predict_proba(texts), two.model.predict_proba(texts))
    n = len(one.trials)
    assert 3 < n < len(longer.trials)
    assert [trial.options for trial in longer.trials[: n - 1]] == [trial.options for trial in one.trials[: n - 1]]
    assert run(50, seed=1).trials != one.trials


@pytest.mark.parametrize("seconds", [1, 50, 100, 200])
def test_the_budget_is_kept_and_leaves_time_for_the_last_fit(monkeypatch, seconds):
    """A clock that only work moves: 3 for counting, 5 for a stage, 9 for the last fit."""
    spent = []

    def costs(owner, name, price):
        plain = getattr(owner, name)

        def work(*arguments):
            spent.append(price)
            return plain(*arguments)

        monkeypatch.setattr(owner, name, work)

    costs(tuning, "build", 3)
    costs(tuning.Data, "probabilities", 5)
    costs(kt.KeyTokenClassifier, "fit", 9)
    monkeypatch.setattr(tuning, "clock", lambda: float(sum(spent)))
    tuned = kt.autotune(*reviews(60), seconds=seconds)
    assert spent.count(9) == 1
    assert tuned.seconds == sum(spent) <= max(seconds, 3 + 5 + 9)
    if seconds == 1:
        assert spent == [3, 5, 9]
        assert tuned.changed == {}
        assert "on validation texts, no option changed; 1 trial," in str(tuned)
    else:
        assert sum(spent) > seconds - 20, "the time is used"


def test_validation_texts_have_no_say(monkeypatch):
    """With labels drawn by lot, nothing but a leak could be better than chance."""
    texts, _ = reviews(300)
    marked = [f"{text} id{i} id{i}" for i, text in enumerate(texts)]
    labels = np.random.RandomState(0).randint(2, size=300).tolist()
    monkeypatch.setattr(tuning, "clock", Ticking())
    tuned = kt.autotune(marked, labels, seconds=150)
    assert all(abs(trial.score - 0.5) < 4 * trial.standard_error for trial in tuned.trials)


def test_one_split_where_texts_are_many_and_a_screen_where_they_are_very_many(monkeypatch, ticking):
    texts, labels = reviews(200)
    folds = kt.autotune(texts, labels, seconds=100)
    assert {trial.texts for trial in folds.trials} <= {40, 80, 120, 160, 200}
    assert folds.trials[0].texts == 200
    monkeypatch.setattr(tuning, "ENOUGH", 70)
    assert {trial.texts for trial in kt.autotune(texts, labels, seconds=100).trials} == {40, 80}
    monkeypatch.setattr(tuning, "ENOUGH", 40)
    assert {trial.texts for trial in kt.autotune(texts, labels, seconds=60).trials} == {40}
    monkeypatch.setattr(tuning, "LARGE", 160)
    trained = []
    train = kt.KeyTokenClassifier._training_set

    def spy(self, blocks, *rest, **more):
        trained.append(sum(map(len, blocks)))
        return train(self, blocks, *rest, **more)

    monkeypatch.setattr(kt.KeyTokenClassifier, "_training_set", spy)
    screened = kt.autotune(texts, labels, seconds=100)
    assert trained[:2] == [40, 160]
    assert trained.count(40) == len(screened.trials) > trained.count(160) - 1
    assert trained[-1] == 200


def test_size_is_kept_and_the_score_is_of_the_small_model(ticking, tmp_path):
    texts, labels = reviews(300)
    marked = [f"{text} word{i} word{i}" for i, text in enumerate(texts)]
    whole = size_on_disk(kt.KeyTokenClassifier().fit(marked, labels))
    tuned = kt.autotune(marked, labels, seconds=100, max_bytes=tuning.LEAST_BYTES)
    assert size_on_disk(tuned.model) <= tuning.LEAST_BYTES < whole
    tuned.model.save(tmp_path / "m")
    assert sum(file.stat().st_size for file in (tmp_path / "m").iterdir()) <= tuning.LEAST_BYTES
    held = tuning.folds_of(np.unique(labels, return_inverse=True)[1], 5, 0)[-1].tolist()
    train = sorted(set(range(300)) - set(held))
    clf = (
        kt.KeyTokenClassifier().set_params(**tuned.options).fit([marked[i] for i in train], [labels[i] for i in train])
    )
    small = clf.compressed(tuning.LEAST_BYTES)
    assert tuned.score == small.score([marked[i] for i in held], [labels[i] for i in held])
    assert tuned.trials[-1].texts == len(held)


def test_fixed_options_stay():
    texts, labels = reviews(60)
    tuned = kt.autotune(texts, labels, seconds=1, fixed={"ngrams": (2, 2), "min_df": 1, "max_tokens": 30})
    assert all(trial.options["ngrams"] == (2, 2) for trial in tuned.trials)
    assert tuned.model.get_params()["min_df"] == 1
    assert len(tuned.model.vocabulary_) == 30
    names = tuning.Space.around({}, 0).names
    usual = {name: value for name, value in kt.KeyTokenClassifier().get_params().items() if name in names}
    assert len(kt.autotune(texts, labels, seconds=60, fixed=usual).trials) == 1, "nothing is left to try"


def test_a_fixed_prior_stays_whole():
    texts, labels = reviews(60)
    tuned = kt.autotune(texts, labels, seconds=1, fixed={"prior": kt.Prior(sink=0)})
    assert len(tuned.trials) > 1
    for trial in tuned.trials:
        assert {name: trial.options[f"prior__{name}"] for name in vars(kt.Prior())} == vars(kt.Prior(sink=0))
    one = kt.autotune(texts, labels, seconds=1, fixed={"prior__sink": 0})
    assert {trial.options["prior__sink"] for trial in one.trials} == {0}
    assert len({trial.options["prior__spread"] for trial in one.trials}) > 1


def test_weights_count():
    """A text of weight 0 neither teaches nor judges."""
    texts, labels = reviews(200)
    wrong = ["neg" if label == "pos" else "pos" for label in labels]
    weight = [1.0] * 200 + [0.0] * 200
    tuned = kt.autotune(texts * 2, labels + wrong, seconds=0.01, sample_weight=weight)
    assert tuned.model.score(texts, labels) > 0.9
    assert tuned.score > 0.8


def test_rare_classes_and_texts_without_words():
    texts = ["a b", "b a", "", "a", "c d", "d c", "d", "..", "e e"]
    labels = [0, 0, 0, 0, 1, 1, 1, 1, 2]
    tuned = kt.autotune(texts, labels, seconds=2, metric="macro_f1", fixed={"min_df": 3})
    assert tuned.model.classes_.tolist() == [0, 1, 2]


def test_a_bar_tells_the_best_so_far(capsys):
    kt.autotune(*reviews(60), seconds=0.3, verbose=2)
    assert "best accuracy=" in capsys.readouterr().err
    kt.autotune(*reviews(60), seconds=0.3, verbose=1)
    kt.autotune(*reviews(60), seconds=0.3)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seconds": 0}, "autotune: `seconds` must be a finite number above 0; saw 0."),
        ({"seconds": float("nan")}, "autotune: `seconds` must be a finite number above 0; saw nan."),
        ({"max_bytes": 10}, "autotune: `max_bytes` must be a whole number of at least 10000 or None; saw 10."),
        ({"metric": "auc"}, "`metric` must be one of 'accuracy', 'log_loss', 'macro_f1'; saw 'auc'."),
        ({"validation": 0}, "`validation` must be a finite number above 0; saw 0."),
        ({"validation": 0.6}, "`validation` must be a share of the texts, above 0 and at most 0.5; saw 0.6."),
        ({"seed": -1}, "`seed` must be a whole number of at least 0; saw -1."),
        ({"fixed": {"sinks": 1}}, "`fixed` must name options of KeyTokenClassifier; saw 'sinks'."),
        ({"fixed": {"prior__sink": -1}}, "`sink` must be a finite number of at least 0; saw -1."),
        ({"threads": 0}, "`threads` must be a whole number of at least 1 or None; saw 0."),
        ({"sample_weight": [1]}, "`sample_weight` must be 4 finite numbers, none negative and not all zero; saw [1]."),
    ],
)
def test_refusals(options, message):
    with pytest.raises(kt.InputError) as refused:
        kt.autotune(["a", "b", "a", "b"], [0, 1, 0, 1], **options)
    assert message in str(refused.value)


def test_too_few_texts_are_refused():
    with pytest.raises(kt.InputError, match=r"`labels` must have two classes with two texts each; saw \{0: 2, 1: 1\}"):
        kt.autotune(["a", "b", "a"], [0, 1, 0])
    with pytest.raises(kt.InputError, match="`labels` must have at least two classes"):
        kt.autotune(["a", "b"], [0, 0])
    with pytest.raises(kt.InputError, match=r"`texts\[1\]` must be a string"):
        kt.autotune(["a", None], [0, 1])
