"""The prior, against its formula with loops."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose
from scipy import sparse

from keytokens.model.blocks import Block
from keytokens.model.prior import FLOOR, PriorOptions, Statistics, curvature_of, log_count_ratios, prior_of, statistics

presences = st.integers(2, 4).flatmap(lambda K: arrays(float, (K, 5), elements=st.integers(0, 1000).map(float)))


@given(presences)
def test_log_count_ratios_follow_the_formula(presence):
    K, V = presence.shape
    r = log_count_ratios(presence.T).T
    assert r.shape == (1 if K == 2 else K, V)
    total = max(float(presence.sum()), 1e-12)
    for k in range(K):
        share = min(max(float(presence[k].sum()) / total, 1e-6), 1 - 1e-6)
        rest = [sum(presence[j, s] for j in range(K) if j != k) + 2 * (1 - share) for s in range(V)]
        own = [presence[k, s] + 2 * share for s in range(V)]
        expected = [math.log(own[s]) - math.log(rest[s]) - math.log(share) + math.log(1 - share) for s in range(V)]
        if K > 2:
            assert_allclose(r[k], expected, rtol=1e-9, atol=1e-12)
        else:  # class 1 against class 0 is class 0 against class 1 with the other sign
            assert_allclose(r[0], np.array(expected) * (1 if k == 1 else -1), rtol=1e-9, atol=1e-12)


def test_a_token_never_seen_tells_nothing():
    """However rare a class is: smoothing follows the shares of the classes."""
    presence = np.array([[900.0, 0.0, 90.0], [10.0, 0.0, 0.0]])
    assert_allclose(log_count_ratios(presence.T)[1, 0], 0, atol=1e-12)


def seen_by(K: int, seed: int = 0, n: int = 60, V: int = 8) -> tuple[np.ndarray, np.ndarray, np.ndarray, Statistics]:
    rng = np.random.default_rng(seed)
    C = rng.integers(1, 6, (n, V)) * (rng.random((n, V)) < 0.4)
    y, weight = rng.integers(0, K, n), rng.random(n) + 0.5
    return C, y, weight, statistics(Block.of(sparse.csr_matrix(C.astype(float))), y, weight, K, threads=2)


@pytest.mark.parametrize("K", [2, 3])
def test_statistics_are_sums_over_documents(K):
    C, y, weight, seen = seen_by(K)
    for k in range(K):
        assert_allclose(seen.presence[:, k], (weight * (y == k)) @ (C > 0), rtol=1e-13)
        assert seen.documents[k] == pytest.approx(weight[y == k].sum(), rel=1e-13)
    assert_allclose(seen.energy, weight @ C**2, rtol=1e-13)
    assert seen.mass == pytest.approx(weight @ C.sum(axis=1), rel=1e-13)
    twice = seen + seen
    assert_allclose(twice.presence, 2 * seen.presence)
    assert_allclose(twice.energy, 2 * seen.energy)
    assert_allclose(twice.documents, 2 * seen.documents)
    assert twice.mass == 2 * seen.mass


@pytest.mark.parametrize("options", [PriorOptions(), PriorOptions(0.7, 2.0, 0.0, 5.0, 0.9)], ids=["default", "other"])
@pytest.mark.parametrize("words", [None, [1, 2, 3, 1, 1, 2, 3, 3]], ids=["words", "n-grams"])
@pytest.mark.parametrize("K", [2, 3, 5])
def test_prior_follows_the_formula(K, words, options):
    C, _, weight, seen = seen_by(K)
    prior = prior_of(seen, options, None if words is None else np.array(words, np.int32))
    T = weight @ C.sum(axis=1) / weight.sum()
    df = weight @ (C > 0)
    r = log_count_ratios(seen.presence).T
    m = len(r)

    def size(x):
        return math.sqrt(sum(df[s] * x[k, s] ** 2 for k in range(m) for s in range(len(df))) / (m * df.sum()))

    more = np.array(words or [1] * C.shape[1]) - 1
    mean, u = r / 2.0**more, (np.abs(r) + FLOOR) * 0.8**more
    unit = (T + options.sink * T) * options.spread / T**0.3 / (1 if K == 2 else math.sqrt(2))
    sharpness = min(options.brevity, 0.2)
    ratio = options.ratio * (1 - sharpness)
    assert_allclose(prior.mean.T, unit * ratio / math.sqrt(T) * mean / size(mean), rtol=1e-12)
    assert_allclose(prior.width.T, unit * u / size(u), rtol=1e-12)
    assert prior.attention_penalty == pytest.approx(options.attention_penalty * (1 - 2 * sharpness / 3))
    assert prior.threshold == pytest.approx(0.075 * max(0, options.brevity - 0.2) * math.sqrt(T), rel=1e-12)
    told = sharpness * np.abs(r).max(axis=0) * 0.8**more / (1 if K == 2 else math.sqrt(2))
    assert_allclose(np.diff(prior.attention), np.diff(told), rtol=1e-9, atol=1e-12)
    assert df @ np.exp(prior.attention) == pytest.approx(df.sum(), rel=1e-12)
    if options.sink:
        assert prior.log_sink == pytest.approx(math.log(options.sink * T), rel=1e-12)
    else:
        assert prior.log_sink == -np.inf
    energy, decided = 0.03 * (weight @ C**2), T + options.sink * T
    guess = curvature_of(prior, seen)
    assert_allclose(guess.values.T, 1 + energy * (prior.width.T / decided) ** 2, rtol=1e-12)
    moved = (np.abs(prior.mean.T) + prior.width.T / 2) / decided
    expected = prior.attention_penalty + energy * (moved**2).mean(axis=0)
    assert_allclose(guess.attention, expected, rtol=1e-12)
    assert guess.intercept == pytest.approx(0.03 * weight.sum())
    assert (prior.width > 0).all()


@pytest.mark.parametrize("K", [2, 3])
def test_odds_are_those_of_the_classes(K):
    _, y, weight, seen = seen_by(K)
    share = np.array([weight[y == k].sum() for k in range(K)]) / weight.sum()
    odds = prior_of(seen, PriorOptions()).odds
    if K == 2:
        assert_allclose(odds, [math.log(share[1] / share[0])], rtol=1e-12)
    else:
        assert_allclose(np.exp(odds) / np.exp(odds).sum(), share, rtol=1e-12)
        assert odds.sum() == pytest.approx(0, abs=1e-13)


@pytest.mark.parametrize("K", [2, 3])
def test_tokens_that_tell_nothing(K):
    """Equal in all classes: no mean, but some width; and no token at all is no error."""
    even = Statistics(np.full((4, K), 5.0), np.full(4, 10.0), 40.0, np.full(K, 10.0))
    prior = prior_of(even, PriorOptions())
    assert_allclose(prior.mean, 0, atol=1e-12)
    assert (prior.width > 0).all()
    nothing = prior_of(Statistics(np.zeros((0, K)), np.zeros(0), 0.0, np.full(K, 3.0)), PriorOptions())
    assert nothing.mean.shape == (0, 1 if K == 2 else K)
    assert np.isfinite(nothing.odds).all()
    absent = prior_of(Statistics(np.zeros((2, K)), np.zeros(2), 0.0, np.full(K, 3.0)), PriorOptions())
    assert np.isfinite(absent.mean).all()
    assert (absent.width > 0).all()


def test_float32_counts_give_a_float32_prior():
    *_, seen = seen_by(2)
    narrow = Statistics(seen.presence.astype(np.float32), seen.energy.astype(np.float32), seen.mass, seen.documents)
    prior = prior_of(narrow, PriorOptions())
    found = (
        prior.mean,
        prior.width,
        prior.attention,
        curvature_of(prior, narrow).values,
        curvature_of(prior, narrow).attention,
    )
    assert {x.dtype for x in found} == {np.dtype(np.float32)}
