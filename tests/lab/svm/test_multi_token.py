"""Several tokens that keep attention: direction and finite part by other roads."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from keytokens.lab.svm import NotSeparable, NotSolved, attended_sets, multi_token_svm
from keytokens.model.ragged import Bags

from .reference import least_distance, one_minus_cos

seeds = st.integers(0, 10_000)
BAG = [[[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]]


@given(seeds)
def test_both_parts_by_other_roads(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 5))
    n, T = int(rng.integers(1, d + 1)), int(rng.integers(2, d + 1))
    values, queries, W = rng.normal(size=(n, T, d)), rng.normal(size=(n, d)), 3 * rng.normal(size=(d, d))
    sets = [set(rng.choice(T, rng.integers(1, T), replace=False).tolist()) for _ in range(n)]
    logits = np.einsum("ntd,de,ne->nt", values, W, queries)
    shares = (logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))).ravel()
    found = multi_token_svm(values, queries, sets, shares)

    ties, wanted, rows = [], [], []
    for i, tokens in enumerate(sets):
        for t in tokens:
            ties += [np.outer(values[i, t] - values[i, u], queries[i]).ravel() for u in tokens]
            wanted += [logits[i, t] - logits[i, u] for u in tokens]
            rows += [np.outer(values[i, t] - values[i, u], queries[i]).ravel() for u in range(T) if u not in tokens]
    C, A = np.array(ties), np.array(rows)
    assert_allclose(found.finite.ravel(), np.linalg.lstsq(C, wanted, rcond=1e-10)[0], atol=1e-7)
    assert (A @ found.direction.p).min() >= 1 - 1e-9, "every kept token above every other"
    assert np.abs(C @ found.direction.p).max() < 1e-9
    assert one_minus_cos(found.direction.p, least_distance(A, np.ones(len(A)), C)) < 1e-9

    R = found.length(W)
    assert_allclose(found.prediction(W), found.finite + R * found.direction.W)
    missed = [np.linalg.norm(W - found.finite - r * found.direction.W) for r in (R - 0.01, R, R + 0.01)]
    assert missed[1] == min(missed)


def test_tokens_that_keep_attention():
    bags = Bags.of([[[0.0], [1.0]], [[0.0], [1.0], [2.0]]])
    assert attended_sets(bags, np.array([1.0, 1e-6, 0.5, 0.5, 1e-9])) == [{0}, {0, 1}]
    assert attended_sets(bags, np.array([1.0, 1e-6, 0.5, 0.5, 1.1e-6])) is None, "in between"
    assert attended_sets(bags, np.array([0.5, 0.5, 0.3, 0.3, 0.4])) is None, "all are kept: a finite solution"


def test_a_set_that_no_direction_keeps():
    """The middle of two kept tokens is as high as they are."""
    with pytest.raises(NotSeparable) as refused:
        multi_token_svm([[[1.0], [-1.0], [0.0]]], [[1.0]], [{0, 1}], np.log([0.4, 0.4, 0.2]))
    assert refused.value.witness.is_proof(), refused.value.witness.residuals()


def test_shares_that_no_matrix_gives():
    twins = [[[1.0, 0.0], [1.0, 0.0], [0.0, 0.0]]]
    with pytest.raises(NotSolved, match="multi_token_svm: no matrix gives these shares"):
        multi_token_svm(twins, [[1.0]], [{0, 1}], np.log([0.6, 0.3, 0.1]))


@pytest.mark.parametrize(
    "shares, message",
    [
        ([0.0, 0.0], r"`log_attention` must be one finite number for each of the 3 tokens; saw shape \(2,\)"),
        ([-1.0, -np.inf, -2.0], "`log_attention` must be finite on the sets"),
        ([-np.inf, -np.inf, -2.0], "`log_attention` must be finite on the sets"),
        (["a", "b", "c"], "`log_attention` must be one finite number for each of the 3 tokens; saw"),
    ],
)
def test_bad_shares(shares, message):
    with pytest.raises(ValueError, match="multi_token_svm: " + message):
        multi_token_svm(BAG, [[1.0, 1.0]], [{0, 1}], shares)


@pytest.mark.parametrize(
    "attention, message",
    [
        (np.array([0.5]), r"`attention` must be one finite number for each of the 3 tokens; saw shape \(1,\)"),
        (None, "`attention` must be one finite number for each of the 3 tokens"),
        (
            [np.nan, 1.0, 0.0],
            "`attention` must be one finite number for each of the 3 tokens; saw nan at token 0",
        ),
        ([2.0, -1.0, 0.0], "`attention` must be shares of at least 0 that sum to 1 in each bag"),
        ([1.0, 1.0, 0.0], "`attention` must be shares of at least 0 that sum to 1 in each bag"),
    ],
)
def test_bad_attention(attention, message):
    with pytest.raises(ValueError, match="attended_sets: " + message):
        attended_sets(BAG, attention)


def test_sets_of_any_kind():
    """Repeated tokens and iterators say the same as sets; the refusal names the function that was called."""
    shares = np.log([0.6, 0.3, 0.1])
    finite = [multi_token_svm(BAG, [[1.0, 1.0]], [one], shares).finite for one in ({0, 1}, [1, 0, 1], iter([0, 1]))]
    assert_allclose(finite, np.broadcast_to(finite[0], np.shape(finite)), rtol=0, atol=0)
    with pytest.raises(ValueError, match=r"multi_token_svm: `sets\[0\]` must hold indices below 3"):
        multi_token_svm(BAG, [[1.0, 1.0]], [{5}], shares)


def test_all_tokens_kept_is_a_finite_matter():
    found = multi_token_svm([[[2.0], [1.0]]], [[1.0]], [{0, 1}], np.log([0.75, 0.25]))
    assert_allclose(found.finite, [[np.log(3)]])
    W = np.array([[9.0]])
    assert found.length(W) == 0
    assert_allclose(found.prediction(W), found.finite)
    with pytest.raises(ValueError, match=r"MultiToken: `W` must be a matrix of numbers, 1 by 1"):
        found.length(np.ones((3, 3)))
