"""Planted documents: what they hold, what is counted in them, and closed forms against brute force."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from keytokens.base.errors import InputError
from keytokens.lab.claims.embeddings.data import (
    Documents,
    alternative_loss,
    barrier,
    closed_form,
    loss_of_selection,
    planted,
    random_labels,
)
from keytokens.lab.claims.embeddings.stages import Step, ideal_start
from keytokens.model.ragged import Bags

from ..descent.least_distance import max_margin

rows = st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=7), min_size=2, max_size=8)


@given(rows, st.integers(0, 2**8 - 1), st.booleans())
def test_frequencies_are_sums_over_positions(tokens, coins, balanced):
    labels = np.array([1.0 if coins >> i & 1 else -1.0 for i in range(len(tokens))])
    labels[:2] = [1, -1]
    documents = Documents.of(tokens, labels, 5)
    weights = documents.balanced if balanced else None
    w = documents.even if weights is None else weights
    alpha, frequency, above = np.zeros(5), np.zeros(5), np.zeros(5)
    for row, y, weight in zip(tokens, labels, w, strict=True):
        for token in row:
            alpha[token] += weight * y / len(row)
            frequency[token] += weight / len(row)
            above[token] += weight * (y > 0) / len(row)
    assert_allclose(documents.signed_frequency(weights), alpha, atol=1e-15)
    assert_allclose(documents.frequency(weights), frequency, atol=1e-15)
    seen = frequency > 0
    assert_allclose(documents.posterior_difference(weights)[seen], (2 * above / np.where(seen, frequency, 1) - 1)[seen])
    assert_allclose(documents.posterior_difference(weights)[~seen], 0)
    assert_allclose(w.sum(), 1)
    assert_allclose(documents.counts.toarray(), [np.bincount(row, minlength=5) for row in tokens])


def test_balanced_weights_give_each_label_one_half():
    documents = Documents.of([[0]] * 5, [1, 1, 1, 1, -1], 1)
    assert_allclose(documents.balanced, [0.125] * 4 + [0.5])
    # a token that is everywhere is neutral only under balanced weights
    assert_allclose(documents.posterior_difference(), 0.6)
    assert_allclose(documents.posterior_difference(documents.balanced), 0)


def by_occurrences(documents):
    """Delta with each occurrence counting 1."""
    above, below = documents.counts.T @ (documents.labels > 0), documents.counts.T @ (documents.labels < 0)
    return (above - below) / np.maximum(above + below, 1.0)


def test_the_signed_frequency_is_frequency_times_difference():
    """alpha = freq Delta, position by position; where all lengths are equal Delta may count occurrences."""
    rng = np.random.default_rng(0)
    even = random_labels(rng, 30, 4, 6)
    assert_allclose(even.posterior_difference(), by_occurrences(even))
    uneven = Documents.of([[0], [0, 1, 1], [1, 2]], [1, -1, -1], 3)
    assert by_occurrences(uneven)[0] == 0
    assert uneven.posterior_difference()[0] == pytest.approx(0.5)
    for documents in (even, uneven):
        for weights in (documents.even, documents.balanced):
            alpha = np.zeros(documents.V)
            for row, y, w in zip(documents.tokens, documents.labels, weights, strict=True):
                for token in row:
                    alpha[token] += w * y / len(row)
            assert_allclose(documents.signed_frequency(weights), alpha, atol=1e-16)
            assert_allclose(documents.frequency(weights) * documents.posterior_difference(weights), alpha, atol=1e-16)


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("positives, negatives", [(1, 1), (3, 2)])
def test_planted_documents_hold_one_token_that_decides(positives, negatives, mirrored):
    data = planted(np.random.default_rng(1), 24, 5, positives, negatives, 6, mirrored=mirrored)
    assert positives + negatives + 6 == data.V
    assert data.irrelevants == 6
    for row, y, important in zip(data.tokens, data.labels, data.important, strict=True):
        held = [token for token in row if data.kinds[token] != 0]
        assert held == [important]
        assert data.kinds[important] == y
    alpha = data.signed_frequency()
    assert_allclose(alpha[data.kinds > 0], 1 / (2 * positives * 5))
    assert_allclose(alpha[data.kinds < 0], -1 / (2 * negatives * 5))
    if mirrored:
        assert_allclose(alpha[data.kinds == 0], 0, atol=1e-16)
    else:
        assert np.abs(alpha[data.kinds == 0]).max() > 1e-3


def test_places_are_random():
    data = planted(np.random.default_rng(2), 200, 4, 1, 1, 3)
    places = [int(np.flatnonzero(row == token)[0]) for row, token in zip(data.tokens, data.important, strict=True)]
    assert (np.bincount(places, minlength=4) > 30).all()


def test_unbalanced_documents():
    data = planted(np.random.default_rng(3), 40, 4, 2, 2, 5, n_positive=30)
    assert data.labels.sum() == 20
    assert data.signed_frequency()[data.kinds == 0].sum() == pytest.approx(3 / 4 * 20 / 40)


def test_who_meets_whom():
    data = planted(np.random.default_rng(4), 200, 6, 2, 2, 3)
    assert data.cooccurs
    assert not planted(np.random.default_rng(4), 4, 2, 2, 2, 5).cooccurs


def test_random_labels_have_both():
    for seed in range(20):
        assert set(random_labels(np.random.default_rng(seed), 2, 3, 4).labels) == {-1, 1}


@pytest.mark.parametrize("share", [0.25, 0.5, 0.8])
def test_closed_form_against_another_solver(share):
    """Least distance by non-negative least squares, over all rows written out."""
    rng = np.random.default_rng(5)
    data = planted(rng, 40, 6, 2, 3, 4, n_positive=round(40 * share))
    assert data.cooccurs
    start = ideal_start(rng, data.V, data.V + 2)
    step = Step(data, start, 6.0)
    form = closed_form(data, start.E, start.v, 6.0)
    held = [np.unique(row) for row in data.tokens]
    bags = Bags.of([step.E[row] for row in held])
    places = [int(np.flatnonzero(row == token)[0]) for row, token in zip(held, data.important, strict=True)]
    assert form.valid
    assert_allclose(form.p, max_margin(bags, np.array(places)), atol=1e-7)
    assert_allclose(step.E @ form.p, form.logits, atol=1e-12)
    assert form.margin == pytest.approx(1 / np.linalg.norm(form.p), rel=1e-12)
    assert form.p @ start.v == pytest.approx(form.along_v, abs=1e-12)
    if share == 0.5:
        assert form.margin == pytest.approx(np.sqrt(1 / 5 + 1 / 4))
        assert_allclose(np.unique(form.logits), [-5 / 9, 4 / 9])
    else:  # towards the label that is rare
        assert np.sign(form.along_v) == np.sign(0.5 - share)


def test_losses_against_loops():
    rng = np.random.default_rng(6)
    data = planted(rng, 10, 4, 2, 2, 5)
    b = rng.normal(size=data.V)
    own = [np.log(1 + np.exp(-y * b[token])) for y, token in zip(data.labels, data.important, strict=True)]
    assert loss_of_selection(data, b, data.important) == pytest.approx(np.mean(own))
    missed = [one if y > 0 else np.log(2) for one, y in zip(own, data.labels, strict=True)]
    assert alternative_loss(data, b) == pytest.approx(np.mean(missed))
    # the least loss of any selection that leaves out one important token, all others being perfect
    least = np.inf
    for row, y in zip(data.tokens, data.labels, strict=True):
        for token in row[data.kinds[row] == 0]:
            least = min(least, np.log(1 + np.exp(-y * b[token])) / len(data))
    assert barrier(data, b) == pytest.approx(least)


def test_every_selection_without_an_important_token_is_above_the_barrier():
    rng = np.random.default_rng(7)
    data = planted(rng, 4, 3, 1, 1, 3)
    b = 5 * rng.normal(size=data.V)
    held = [np.unique(row) for row in data.tokens]
    for selection in itertools.product(*held):
        if (np.array(selection) != data.important).any():
            assert loss_of_selection(data, b, np.array(selection)) >= barrier(data, b) - 1e-15


@pytest.mark.parametrize(
    "tokens, labels, message",
    [
        ([], [], "`tokens` must be a list of documents"),
        ([[0], []], [1, -1], "`tokens` must be a list of documents"),
        ([[0], [9]], [1, -1], "`tokens` must be whole numbers from 0 to 2"),
        ([[0], [1]], [1, 0], "`labels` must be -1 or"),
    ],
)
def test_refused_documents(tokens, labels, message):
    with pytest.raises(InputError, match=message):
        Documents.of(tokens, labels, 3)


@pytest.mark.parametrize(
    "change, name",
    [
        ({"positives": 0}, "positives"),
        ({"n": 1}, "n"),
        ({"T": 0}, "T"),
        ({"n_positive": 8}, "n_positive"),
        ({"n": 7, "mirrored": True}, "n_positive"),
    ],
)
def test_refused_models(change, name):
    settings = {"n": 8, "T": 3, "positives": 1, "negatives": 1, "irrelevants": 2, **change}
    with pytest.raises(InputError, match=f"planted: `{name}` must"):
        planted(np.random.default_rng(0), **settings)
