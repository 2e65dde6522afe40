"""Scores against a literal softmax, gradients against differences of extended precision."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse

from keytokens.model import blocks
from keytokens.model.attention import Parameters, evaluate, scores
from keytokens.model.blocks import Block
from keytokens.model.losses import loss_for

from .reference import literal_scores, random_counts, random_parameters

# logits of ordinary size, logits that need each document's own shift, and logits absurd
SCALES = [1.0, 30.0, 400.0, 1e5]
MODELS = [(m, sink) for m in (1, 3) for sink in (False, True)] + [(5, True)]  # many classes: one product with all
seeds = st.integers(0, 2**32 - 1)


def literal_loss(C: sparse.csr_matrix, y: np.ndarray, weight: np.ndarray, theta: Parameters) -> np.longdouble:
    """Documents without a known token and without a sink teach nothing."""
    F = literal_scores(C, theta)
    if len(F) == 1:
        F = np.concatenate([np.zeros_like(F), F])
    top = F.max(axis=0)
    losses = top + np.log(np.exp(F - top).sum(axis=0)) - F[y, np.arange(len(y))]
    teaches = np.full(len(y), True) if theta.has_sink else np.diff(C.indptr) > 0
    return (losses * weight)[teaches].sum()


def literal_gradient(C, y, weight, theta: Parameters, step: float = 1e-5) -> dict[str, np.ndarray]:
    """Differences of fourth order."""
    wide = {name: getattr(theta, name).astype(np.longdouble) for name in ("a", "B", "c")}
    found = {}
    for name, value in wide.items():
        slope = np.zeros(value.shape)
        for place in np.ndindex(value.shape):

            def at(move, name=name, value=value, place=place):
                moved = value.copy()
                moved[place] += np.longdouble(move)
                return literal_loss(C, y, weight, replace(theta, **{**wide, name: moved}))

            slope[place] = (8 * (at(step) - at(-step)) - at(2 * step) + at(-2 * step)) / (12 * np.longdouble(step))
        found[name] = slope
    return found


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("m, sink", MODELS)
@given(seed=seeds)
def test_scores_are_a_softmax_over_occurrences(m, sink, scale, seed):
    rng = np.random.default_rng(seed)
    C, theta = random_counts(rng), random_parameters(rng, m, sink=sink, scale=scale)
    F = scores(C, theta)
    assert F.shape == (m, C.shape[0])
    assert_allclose(F, literal_scores(C, theta).astype(float), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("scale", [1.0, 30.0, 400.0])
@pytest.mark.parametrize("m, sink", MODELS)
@pytest.mark.parametrize("seed", range(3))
def test_gradient_is_the_derivative(m, sink, scale, seed):
    rng = np.random.default_rng(seed)
    C, theta = random_counts(rng), random_parameters(rng, m, sink=sink, scale=scale)
    if scale == 400.0:  # the road that shifts each document by its own maximum, with soft attention in some of them
        theta = replace(
            theta, a=np.array([900.0, 899.5, 0.3, 0.0, -0.7, 901.0, 450.0]), log_sink=0.2 if sink else -np.inf
        )
        assert theta.shift is None
    y = rng.integers(0, max(2, m), C.shape[0])
    weight = rng.random(C.shape[0]) + 0.1
    got = evaluate(Block.of(C), y, weight, loss_for(max(2, m)), theta)
    assert got.loss == pytest.approx(float(literal_loss(C, y, weight, theta)), rel=1e-12)
    expected = literal_gradient(C, y, weight, theta)
    for name in ("a", "B", "c"):
        assert_allclose(getattr(got, name), expected[name], rtol=1e-9, atol=1e-10, err_msg=name)


@pytest.mark.parametrize("m, sink", MODELS)
@given(seed=seeds, shift=st.floats(-1e4, 1e4))
def test_a_common_shift_of_the_logits_changes_nothing(m, sink, seed, shift):
    rng = np.random.default_rng(seed)
    C, theta = random_counts(rng), random_parameters(rng, m, sink=sink)
    moved = replace(theta, a=theta.a + shift, log_sink=theta.log_sink + shift)
    assert_allclose(scores(C, moved), scores(C, theta), rtol=1e-10, atol=1e-10)
    y, weight = rng.integers(0, max(2, m), C.shape[0]), np.ones(C.shape[0])
    one, two = (evaluate(Block.of(C), y, weight, loss_for(max(2, m)), each) for each in (theta, moved))
    assert_allclose(two.a, one.a, rtol=1e-9, atol=1e-10)
    if not sink:  # then the gradient has no part along the shift either
        assert abs(one.a.sum()) < 1e-12 * max(1, np.abs(one.a).sum())


@pytest.mark.parametrize("scale", [1.0, 1e4])
@pytest.mark.parametrize("m, sink", MODELS)
def test_a_document_without_a_known_token(m, sink, scale):
    rng = np.random.default_rng(0)
    C, theta = random_counts(rng), random_parameters(rng, m, sink=sink, scale=scale)
    F = scores(C, theta)
    assert F[:, 2].tolist() == (theta.c if sink else theta.empty).tolist()
    nothing = evaluate(Block.of(C[2:3]), np.array([1]), np.ones(1), loss_for(max(2, m)), theta)
    assert not nothing.a.any()
    assert not nothing.B.any()
    assert (nothing.loss > 0) == sink
    assert nothing.c.any() == sink


@pytest.mark.parametrize("m, sink", MODELS)
@given(seed=seeds, size=st.sampled_from([300.0, 599.0, 601.0, 1e3, 1e5]))
def test_all_is_finite_for_logits_of_any_size(m, sink, seed, size):
    rng = np.random.default_rng(seed)
    C = random_counts(rng)
    logits = rng.choice([-size / 2, 0.0, size / 2, 1.0], 8)
    theta = replace(random_parameters(rng, m), a=logits[:7], log_sink=2 * logits[7] if sink else -np.inf)
    F = scores(C, theta)
    assert_allclose(F, literal_scores(C, theta).astype(float), rtol=1e-11, atol=1e-11)
    values = np.append(theta.B, np.zeros((m, 1)), axis=1) if sink else theta.B
    known = np.diff(C.indptr) > 0
    assert np.isfinite(F).all()
    inside = F[:, known] - theta.c[:, None]  # a mean of values
    assert (inside <= values.max(axis=1, keepdims=True) + 1e-12).all()
    assert (inside >= values.min(axis=1, keepdims=True) - 1e-12).all()
    got = evaluate(Block.of(C), rng.integers(0, max(2, m), len(known)), np.ones(len(known)), loss_for(max(2, m)), theta)
    assert np.isfinite([got.loss, *got.a, *got.B.ravel(), *got.c]).all()


@pytest.mark.parametrize("spread", [50.0, 70.0, 120.0, 1e4])
def test_float32_stays_float32(spread):
    rng = np.random.default_rng(0)
    C, theta = random_counts(rng).astype(np.float32), random_parameters(rng, 3, sink=False)
    C = sparse.vstack([C, sparse.csr_matrix(np.eye(7, dtype=np.float32)[1:2])]).tocsr()  # low logits only
    narrow = replace(theta, **{name: getattr(theta, name).astype(np.float32) for name in ("a", "B", "c", "empty")})
    narrow.a[:2] = [spread / 2, -spread / 2]
    F = scores(C, narrow)
    assert F.dtype == np.float32
    assert_allclose(F, literal_scores(C, narrow).astype(float), rtol=1e-4, atol=1e-4)
    y = rng.integers(0, 3, 14)
    got = evaluate(Block.of(C), y, np.ones(14, np.float32), loss_for(3), narrow)
    wide = replace(narrow, **{name: getattr(narrow, name).astype(float) for name in ("a", "B", "c", "empty")})
    exact = evaluate(Block.of(C.astype(float)), y, np.ones(14), loss_for(3), wide)
    for name in ("a", "B", "c"):
        assert getattr(got, name).dtype == np.float32
        assert_allclose(getattr(got, name), getattr(exact, name), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("sink", [False, True])
def test_an_empty_vocabulary(sink):
    C = sparse.csr_matrix((3, 0))
    theta = Parameters(np.zeros(0), np.zeros((1, 0)), np.array([0.5]), np.array([-0.25]), 0.0 if sink else -np.inf)
    assert scores(C, theta).tolist() == [[0.5 if sink else -0.25] * 3]


@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_threads_give_the_same_bits(scale, monkeypatch):
    monkeypatch.setattr(blocks, "_PART", 100)
    rng = np.random.default_rng(3)
    C, theta = random_counts(rng, n=300, V=50), random_parameters(rng, 3, V=50, scale=scale)
    block, y, weight = Block.of(C), rng.integers(0, 3, 300), rng.random(300)
    one, *others = (evaluate(block, y, weight, loss_for(3), theta, threads) for threads in (1, 2, 3))
    for other in others:
        assert one.loss == other.loss
        assert all(getattr(one, x).tobytes() == getattr(other, x).tobytes() for x in ("a", "B", "c"))
