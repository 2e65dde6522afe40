"""Gradients of attention on bags against three other roads: the plain formula, finite differences, and the sum over
pairs in 80 digits."""

from decimal import Decimal, localcontext

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from keytokens.base.errors import InputError
from keytokens.lab.problems.losses import Logistic
from keytokens.lab.problems.problem import Problem
from keytokens.lab.problems.reading import Reading
from keytokens.lab.problems.scores import scores_of
from keytokens.model.ragged import Bags, softmax

from .test_losses import DIGITS, each_loss, slope_80


def random_bags(seed: int, sizes=(3, 1, 5, 4), d: int = 4) -> tuple[Bags, np.ndarray]:
    """Keys and scores, some of the scores tied."""
    rng = np.random.default_rng(seed)
    bags = Bags.of([rng.normal(size=(size, d)) for size in sizes])
    return bags, np.round(rng.normal(size=len(bags.rows)), 1)


def plain_descent(keys: Bags, scores: np.ndarray, loss, p: np.ndarray) -> np.ndarray:
    """-(1/n) sum_i loss'_i K_i'(diag(s) - s s')gamma_i, as it is written."""
    s = softmax(keys, keys.rows @ p)
    total = np.zeros(keys.dim)
    for i in range(len(keys)):
        rows = slice(keys.starts[i], keys.starts[i + 1])
        K, gamma, a = keys.rows[rows], scores[rows], s[rows]
        total -= loss.slope(gamma @ a) * K.T @ ((np.diag(a) - np.outer(a, a)) @ gamma)
    return total / len(keys)


def pairs_80(keys: Bags, scores: np.ndarray, loss, p: np.ndarray) -> tuple[np.ndarray, float]:
    """Direction and log size of sum_i |loss'_i| sum_{t<u} s_t s_u (gamma_t - gamma_u)(k_t - k_u) / n, in 80 digits."""
    with localcontext(DIGITS):
        total = [Decimal(0)] * keys.dim
        for i in range(len(keys)):
            K = [[Decimal(float(x)) for x in row] for row in keys[i]]
            gamma = [Decimal(float(x)) for x in scores[keys.starts[i] : keys.starts[i + 1]]]
            a = [sum(x * Decimal(float(y)) for x, y in zip(row, p, strict=True)) for row in K]
            e = [(x - max(a)).exp() for x in a]
            s = [x / sum(e) for x in e]
            slope = slope_80(loss, sum(x * y for x, y in zip(s, gamma, strict=True)))
            for t in range(len(K)):
                for u in range(t):
                    weight = slope * s[t] * s[u] * (gamma[t] - gamma[u]) / len(keys)
                    total = [x + weight * (K[t][j] - K[u][j]) for j, x in enumerate(total)]
        size = sum(x * x for x in total).sqrt()
        return np.array([float(x / size) for x in total]), float(size.ln())


# Gradients in p


@each_loss
@pytest.mark.parametrize("seed", range(4))
def test_gradient_is_the_plain_formula_and_the_finite_difference(loss, seed):
    keys, scores = random_bags(seed)
    problem, p = Problem.of(keys, scores, loss), np.random.default_rng(seed).normal(size=4)
    (down,) = problem.descent(problem.read((p,)), (p,))
    assert_allclose(down.plain, plain_descent(keys, scores, loss, p), rtol=1e-12, atol=1e-15)
    steps = 1e-6 * np.eye(4)
    slopes = [(problem.read((p + h,)).value - problem.read((p - h,)).value) / 2e-6 for h in steps]
    assert_allclose(down.plain, -np.array(slopes), atol=1e-8)


@each_loss
@pytest.mark.parametrize("norm", [1e3, 1e4, 1e5, 1e6])
@pytest.mark.parametrize("seed", range(3))
def test_far_out_the_direction_is_that_of_80_digits(loss, norm, seed):
    keys, scores = random_bags(seed)
    p = np.random.default_rng(seed + 10).normal(size=4)
    p *= norm / np.linalg.norm(p)
    problem = Problem.of(keys, scores, loss)
    (down,) = problem.descent(problem.read((p,)), (p,))
    direction, log_size = pairs_80(keys, scores, loss, p)
    # the logits have an error of about 1e-16 |p|, and so has the logarithm of every attention
    assert_allclose(down.unit, direction, atol=1e-14 * norm)
    assert down.log == pytest.approx(log_size, rel=1e-13, abs=1e-14 * norm)


def test_a_token_that_ties_with_the_selected_score_still_pulls():
    """Two tokens share attention and score; the third, far below any float, pulls both alike."""
    keys = Bags.of([[[1.0, 1.0], [1.0, -1.0], [0.0, 0.0]]])
    problem, p = Problem.of(keys, np.array([1.0, 1.0, 0.0])), np.array([5000.0, 0.0])
    (down,) = problem.descent(problem.read((p,)), (p,))
    assert_allclose(down.unit, [1, 0], atol=1e-12)


@each_loss
def test_excess_is_the_difference_of_losses(loss):
    keys, scores = random_bags(3)
    reading = Problem.of(keys, scores, loss).read((np.array([0.3, -0.2, 0.5, 0.1]),))
    for reference in (reading.selected, reading.best):
        plain = reading.value - loss.value(scores[reference]).mean()
        excess = reading.excess(reference)
        assert excess.sign * np.exp(excess.log) == pytest.approx(plain, rel=1e-12)


def test_no_score_to_gain_is_a_zero_gradient():
    problem = Problem.of(Bags.of([[[1.0], [2.0]], [[3.0]]]), np.ones(3))
    reading = problem.read((np.ones(1),))
    (down,) = problem.descent(reading, (np.ones(1),))
    assert down.log == -np.inf
    assert down.unit.tolist() == [0.0]
    assert reading.excess(reading.selected).log == -np.inf


# The other parameters


def blocks_match_differences(problem, blocks):
    down = problem.descent(problem.read(blocks), blocks)
    for b, block in enumerate(blocks):
        slopes = np.empty(block.shape)
        for index in np.ndindex(block.shape):
            values = []
            for h in (1e-6, -1e-6):
                moved = [x.copy() for x in blocks]
                moved[b][index] += h
                values.append(problem.read(tuple(moved)).value)
            slopes[index] = (values[0] - values[1]) / 2e-6
        assert_allclose(down[b].plain, -slopes, atol=1e-8)


@each_loss
def test_gradient_in_W_is_rank_one_and_right(loss):
    values, scores = random_bags(1)
    rng = np.random.default_rng(1)
    problem = Problem.cross(values, rng.normal(size=3), scores, loss)
    blocks = (rng.normal(size=(4, 3)),)
    blocks_match_differences(problem, blocks)
    assert np.linalg.matrix_rank(problem.descent(problem.read(blocks), blocks)[0].array) == 1


@each_loss
def test_joint_gradient(loss):
    values, _ = random_bags(2)
    rng = np.random.default_rng(2)
    keys = values.with_rows(rng.normal(size=(len(values.rows), 3)))  # keys of their own
    problem = Problem.joint(np.array([1, -1, -1, 1]), values, keys, loss)
    blocks_match_differences(problem, (rng.normal(size=4), rng.normal(size=3)))


def test_joint_gradient_far_out_keeps_both_blocks():
    bags = Bags.of([[[0.0, 0.0], [1.0, 1.0]], [[0.0, 0.0], [1.0, -1.0]]])
    problem, blocks = Problem.joint([1, -1], bags, bags), (np.array([0.0, 2000.0]), np.array([3000.0, 0.0]))
    v, p = problem.descent(problem.read(blocks), blocks)
    assert v.log == pytest.approx(-2000, abs=1)
    assert p.log == pytest.approx(-5000 + np.log(2000), abs=1)
    assert_allclose([v.unit, p.unit], [[0, 1], [1, 0]], atol=1e-12)
    assert problem.gap(problem.read(blocks)).log == pytest.approx(-2000)


@pytest.mark.parametrize("size", [1.0, 1e3, 1e5])
def test_a_vocabulary_is_its_documents_as_bags(size):
    rng = np.random.default_rng(5)
    counts = sparse.random(6, 9, 0.5, random_state=5, data_rvs=lambda k: rng.integers(1, 4, k).astype(float)).tolil()
    counts[:, 0] = 1
    counts, E = counts.tocsr(), 100 + rng.normal(size=(9, 4))
    labels, v, p = np.array([1, -1, 1, 1, -1, -1]), rng.normal(size=4), rng.normal(size=4) * size
    problem = Problem.vocabulary(E, counts, labels, v)
    tokens = [np.repeat(np.arange(9), row.astype(int)) for row in counts.toarray()]
    bags = Bags.of([E[ids] for ids in tokens])
    same = Problem.of(bags, scores_of(labels, bags, v))
    (down,), (other,) = (x.descent(x.read((p,)), (p,)) for x in (problem, same))
    assert_allclose(down.unit, other.unit, atol=1e-11 * size)
    assert down.log == pytest.approx(other.log, rel=1e-10)
    assert problem.read((p,)).value == pytest.approx(same.read((p,)).value, rel=1e-12)


# Shapes and refusals


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda x: Problem.of(x, np.ones(3)), "`scores` must be one finite number for each of the 2 tokens"),
        (lambda x: Problem.cross(x, np.ones(1), np.array([1, np.nan])), "`scores` must be one finite number"),
        (lambda x: scores_of([2], x, [1.0]), "`labels` must be -1 or \\+1 for each of the 1 bags"),
        (lambda x: scores_of([1], x, [1.0, 2.0]), "`v` must be a vector of 1 numbers"),
        (lambda x: Problem.joint([1], x, Bags.of([[[1.0]]])), "`keys` must have as many tokens in each bag"),
        (lambda x: Problem.vocabulary(np.ones((3, 1)), np.ones((1, 2)), [1], np.ones(1)), "counts of 3 tokens"),
        (lambda x: Problem.vocabulary(np.ones((2, 1)), np.zeros((1, 2)), [1], np.ones(1)), "saw 'row 0 empty'"),
        (
            lambda x: Problem.vocabulary(np.ones((2, 1)), np.ones((1, 2)), [1], np.ones(2)),
            "`v` must be a vector with one",
        ),
        (lambda x: Problem.cross(x, [], np.ones(2)), "`queries` must be a matrix"),
    ],
)
def test_refusals(make, message):
    with pytest.raises(InputError, match=message):
        make(Bags.of([[[1.0], [2.0]]]))


def test_reading_reports_attention_and_selection():
    reading = Reading(Bags.of([[[0.0], [0.0]], [[0.0], [0.0]]]), np.array([0.0, 3, 2, 2]), np.arange(4.0), Logistic())
    assert reading.selection.tolist() == [1, 0]  # the first of a tie
    assert_allclose(reading.attention, [np.exp(-3) / (1 + np.exp(-3)), 1 / (1 + np.exp(-3)), 0.5, 0.5])
