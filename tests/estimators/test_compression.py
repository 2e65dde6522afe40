"""Small models: what stays, how it is rounded, and that what is stored is what is predicted and proved."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

import keytokens as kt
from keytokens.estimators import compression
from keytokens.estimators.compression import (
    TokenModel,
    largest_within,
    pack_numbers,
    pack_words,
    shrink,
    unpack_numbers,
    unpack_words,
)
from keytokens.estimators.saving import size_on_disk
from keytokens.model.attention import Parameters, scores
from keytokens.text import Vocabulary, count

from ..corpus import reviews, topics

OPTIONS = [
    (reviews, {}),
    (reviews, {"ngrams": (1, 3), "min_df": (1, 2, 2), "counts": "log"}),
    (reviews, {"ngrams": (2, 2), "min_df": 1, "prior": kt.Prior(sink=0)}),
    (topics, {}),
    (topics, {"prior": kt.Prior(sink=0), "counts": "binary"}),
]
words = st.sampled_from(["a", "b", "don't", "naïve", "日本", "!", "extraordinarily", "extraordinary"])
tokens = st.lists(st.lists(words, min_size=1, max_size=4).map(" ".join), unique=True, min_size=1, max_size=12)


def pack(model):
    """As a model is saved: the arrays of both files; None where the numbers lie on no grid."""
    theta = model.theta
    numbers = {
        "attention": theta.a,
        "values": theta.B,
        "intercept": theta.c,
        "empty": theta.empty,
        "log_sink": np.array([theta.log_sink]),
        "mean_attention": model.mean_attention,
        "class_counts": model.class_counts,
    }
    packed = pack_numbers(numbers)
    return None if packed is None else {**packed, **pack_words(model.vocabulary)}


def unpack(arrays):
    """As a model is loaded, where the two parts are two files."""
    names = {"attention", "values", "intercept", "empty", "log_sink", "mean_attention", "class_counts", "grid"}
    numbers, words = ({n: x for n, x in arrays.items() if (n in names) == own} for own in (True, False))
    vocabulary, found = unpack_words(words), unpack_numbers(numbers)
    theta = Parameters(*(found[name] for name in ("attention", "values", "intercept", "empty")), found["log_sink"][0])
    return TokenModel(vocabulary, theta, found["mean_attention"], found["class_counts"])


def model_of(vocabulary, a, B, mean_attention):
    """Two classes, no sink."""
    theta = Parameters(a, B, np.zeros(1), np.zeros(1), -np.inf)
    return TokenModel(vocabulary, theta, mean_attention, np.ones((2, len(a))))


@pytest.fixture(scope="module")
def models():
    return [kt.KeyTokenClassifier(**options).fit(*make(150)) for make, options in OPTIONS]


def unseen(clf):
    return [*(reviews if len(clf.classes_) == 2 else topics)(30, seed=7)[0], "", "never seen"]


def bytes_in(folder):
    return sum(file.stat().st_size for file in folder.iterdir())


def same_bits(one, other):
    assert one.vocabulary.tokens == other.vocabulary.tokens
    for left, right in zip(numbers_of(one), numbers_of(other), strict=True):
        np.testing.assert_array_equal(left, right)


def numbers_of(model):
    theta = model.theta
    return theta.a, theta.B, theta.c, theta.empty, theta.log_sink, model.mean_attention, model.class_counts


# ---- the vocabulary


@given(tokens, st.data())
@example(["a b a", "b"], None)
def test_chosen_columns_count_as_before(names, data):
    vocabulary = Vocabulary.from_tokens(names)
    columns = range(len(names))
    kept = [0] if data is None else data.draw(st.lists(st.sampled_from(columns), min_size=1, unique=True))
    said = np.isin(columns, kept) + 0.5  # the attention that makes them those that stay
    small = shrink(model_of(vocabulary, np.zeros(len(names)), np.ones((1, len(names))), said), len(kept)).vocabulary
    assert sorted(small.tokens) == sorted(names[column] for column in kept)
    assert sorted(small.words) == sorted({word for token in small.tokens for word in token.split(" ")})
    texts = [" ".join(names), " ".join(reversed(names))]
    old = [names.index(token) for token in small.tokens]
    np.testing.assert_array_equal(count(texts, small).toarray(), count(texts, vocabulary).toarray()[:, old])


# ---- what stays


def test_those_that_say_most_stay(models):
    for clf in models:
        said = clf.mean_attention_ * np.abs(clf.values_ + clf.intercept_[:, None]).max(axis=0)
        bound = np.sort(said)[-10]
        names = np.array(clf.vocabulary_.tokens)
        kept = set(shrink(clf.token_model(), 10).vocabulary.tokens)
        assert len(kept) == 10
        assert set(names[said > bound * (1 + 1e-6)]) <= kept <= set(names[said >= bound * (1 - 1e-6)])


@pytest.mark.parametrize("log_sink", [-np.inf, 0.7])
def test_equal_shares_dropped_change_no_score(log_sink):
    """Tokens of equal share in all documents and no contribution go, and f stays; uncorrected it would grow."""
    rng = np.random.RandomState(0)
    a = rng.normal(size=4)
    B = np.array([[2.0, -1.5, -0.3, -0.3]])  # b + c = 0 for the last two
    C = np.zeros((6, 4))
    C[:, :2] = rng.randint(1, 5, (6, 2))
    w = np.exp(a)
    # the kept tokens have three quarters of the weight of the tokens in every document
    C[:, 2:] = (C[:, :2] @ w[:2])[:, None] / 6 / w[2:]
    theta = Parameters(a, B, np.array([0.3]), np.array([0.0]), log_sink)
    attention = C * w / (C @ w + np.exp(log_sink))[:, None]
    names = Vocabulary.from_tokens(["p", "q", "x", "y"])
    model = TokenModel(names, theta, attention.mean(axis=0), np.ones((2, 4)))
    small = compression._restricted(model, np.array([0, 1]))
    columns = [names.tokens.index(token) for token in small.vocabulary.tokens]
    np.testing.assert_allclose(scores(csr_matrix(C[:, columns]), small.theta), scores(csr_matrix(C), theta), rtol=1e-12)
    kept = C[:, columns] * np.exp(small.theta.a)
    seen = kept / (kept.sum(axis=1) + np.exp(small.theta.log_sink))[:, None]
    np.testing.assert_allclose(small.mean_attention, seen.mean(axis=0), rtol=1e-12)
    bare = replace(theta, a=a[:2], B=B[:, :2])
    assert np.abs(scores(csr_matrix(C[:, :2]), bare) - scores(csr_matrix(C), theta)).max() > 0.05


# ---- how it is rounded


def test_rounding_is_to_the_nearest_and_scores_hardly_move(models):
    for clf in models:
        whole = clf.token_model()
        packed = clf.compressed(10**9)
        small = packed.token_model()
        old = [clf.vocabulary_.tokens.index(token) for token in small.vocabulary.tokens]
        contribution = whole.theta.B[:, old] + whole.theta.c[:, None]
        near = [(small.theta.a, whole.theta.a[old]), (small.theta.B + small.theta.c[:, None], contribution)]
        for rounded, exact in near:
            # the step by another road: every number is a fraction over a power of two
            ratios = [float(number).as_integer_ratio() for number in rounded.ravel() if number]
            step = min((numerator & -numerator) / denominator for numerator, denominator in ratios)
            assert np.abs(rounded - exact).max() <= step / 2 * (1 + 1e-5)
        assert np.abs(small.mean_attention / whole.mean_attention[old] - 1).max() <= 1 / 16
        np.testing.assert_array_equal(small.class_counts, whole.class_counts[:, old])
        texts = unseen(clf)
        moved = np.ravel(packed.decision_function(texts) - clf.decision_function(texts))
        # pairs alone: no token is in most texts, so the number of texts is taken too low and the grid too coarse
        assert np.sqrt(np.mean(moved**2)) < (3 if clf.ngrams[0] == 1 else 5) * compression.TOLERANCE


@given(
    st.lists(st.tuples(st.floats(-600, 600), st.floats(-1e12, 1e12) | st.floats(-1e-12, 1e-12)), min_size=1, max_size=6)
)
def test_any_numbers_get_onto_a_grid_that_can_be_stored(pairs):
    a, b = np.array(pairs).T
    vocabulary = Vocabulary.from_tokens([f"w{i}" for i in range(len(a))])
    small = shrink(model_of(vocabulary, a, b[None], np.full(len(a), 0.1)), len(a))
    same_bits(unpack(pack(small)), small)


# ---- whole numbers for the disk


@given(tokens, st.integers(1, 3), st.integers(-5, 12), st.integers(-9, 9), st.integers(0, 2**31))
def test_unpacked_is_what_was_packed(names, m, a_exponent, b_exponent, seed):
    rng = np.random.RandomState(seed)
    V = len(names)
    small = shrink(model_of(Vocabulary.from_tokens(names), np.zeros(V), np.ones((1, V)), rng.uniform(size=V) ** 9), V)
    vocabulary = small.vocabulary
    model = TokenModel(
        vocabulary,
        Parameters(
            np.ldexp(rng.randint(-(2 ** rng.randint(1, 22)), 2**20, V), -a_exponent).astype(np.float32),
            np.ldexp(rng.randint(-300, 2 ** rng.randint(1, 22), (m, V)), -b_exponent).astype(np.float32),
            rng.normal(size=m),
            rng.normal(size=m),
            float(rng.choice([-np.inf, 1.25])),
        ),
        small.mean_attention,
        rng.randint(0, 70_000, (max(m, 2), V)).astype(np.float32),
    )
    arrays = pack(model)
    assert arrays is not None
    again = unpack(arrays)
    same_bits(again, model)
    np.testing.assert_array_equal(again.vocabulary.word_keys, vocabulary.word_keys)
    np.testing.assert_array_equal(again.vocabulary.column, vocabulary.column)
    for mine, theirs in zip(again.vocabulary.levels, vocabulary.levels, strict=True):
        assert mine.start == theirs.start
        np.testing.assert_array_equal(mine.keys, theirs.keys)


# ---- the budget


@given(st.lists(st.integers(0, 50), min_size=1, max_size=80), st.integers(1, 2000))
def test_nearly_the_largest_that_fits(steps, budget):
    sizes = np.cumsum([10, *steps[1:]]).tolist()
    n, size = largest_within(lambda n: n, lambda n: sizes[n - 1], budget, len(sizes))
    assert size == sizes[n - 1]
    if sizes[0] > budget:
        assert n == 1
    else:
        assert size <= budget
        assert n == len(sizes) or sizes[n] > budget or size >= 0.997 * budget


@settings(max_examples=15)
@given(st.integers(0, len(OPTIONS) - 1), st.integers(0, 9000))
def test_budget_is_kept_and_the_loaded_model_is_the_same(models, tmp_path_factory, which, extra):
    clf, folder = models[which], tmp_path_factory.mktemp("small") / "model"
    with pytest.raises(kt.InputError, match="must be at least") as refused:
        clf.compressed(9)
    least = int(re.findall(r"at least (\d+)", str(refused.value))[0])
    small = clf.compressed(least + extra)
    small.save(folder)
    assert bytes_in(folder) == size_on_disk(small) <= least + extra
    assert {file.name.split("-")[0] for file in folder.iterdir()} - {"scores"} == {"model.json", "numbers", "words"}
    again = kt.load(folder)
    same_bits(again.token_model(), small.token_model())
    texts = unseen(clf)
    np.testing.assert_array_equal(again.predict_proba(texts), small.predict_proba(texts))
    for text in texts[-8:]:
        assert again.explain(text).to_dict() == small.explain(text).to_dict()
    assert again.key_tokens(5) == small.key_tokens(5)
    assert again.compressed(10**9).vocabulary_.tokens == small.vocabulary_.tokens


def test_a_large_budget_keeps_all_tokens(models):
    for clf in models:
        small = clf.compressed(10**9)
        assert sorted(small.vocabulary_.tokens) == sorted(clf.vocabulary_.tokens)
        assert size_on_disk(small) < size_on_disk(clf)
        assert small.flat_params() == clf.flat_params()


def test_a_budget_without_room_for_a_token_is_refused(models):
    with pytest.raises(
        kt.InputError, match=r"^compressed: `max_bytes` must be at least \d+, to hold one token; saw 9\.$"
    ):
        models[0].compressed(9)
    with pytest.raises(kt.InputError, match="compressed: `max_bytes` must be a whole number"):
        models[0].compressed(1.5)


# ---- the proofs
