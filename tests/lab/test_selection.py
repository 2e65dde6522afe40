"""Which tokens win: the definitions on examples with known answers, and on random instances against brute force."""

import math

import numpy as np
import pytest

from keytokens.base.errors import InputError, NotSeparable
from keytokens.lab.selection import (
    cone,
    directional_neighbours,
    has_equal_scores,
    in_general_position,
    local_optimum,
    locally_optimal_selections,
    separating_witness,
    smoothness,
    tight_smoothness,
)
from keytokens.lab.svm import NotSolved, solve
from keytokens.model.ragged import Bags

# one input, three tokens (x1, x2, x3): the key is (x1, x2), the score x3
ONE = np.array([[[-0.1, 1.0], [1.0, 0.0], [0.0, 0.0]]])
TIED, APART = np.array([1.0, 0.9, 0.9]), np.array([1.0, 0.9, 0.0])
# two inputs of two tokens whose second bag has no neighbour under the wrong selection
TWO, TWO_SCORES = np.array([[[1.0, 0.0], [0.0, 0.0]], [[-2.0, 1.0], [0.0, 0.0]]]), np.array([1.0, 0.0, 1.0, 0.0])


def test_the_second_token_is_locally_optimal_only_without_a_tie():
    assert not local_optimum(ONE, TIED, [1]).holds
    second = local_optimum(ONE, APART, [1])
    assert second.holds
    np.testing.assert_allclose(second.solution.p, [1, 0], atol=1e-12)
    assert second.neighbours.tolist() == [False, False, True]
    best = local_optimum(ONE, APART, [0])
    np.testing.assert_allclose(best.solution.p, [-10 / 101, 100 / 101], atol=1e-12)
    found = [tuple(one.selection) for one in locally_optimal_selections(ONE, APART)]
    assert found == [(0,), (1,)]
    assert [tuple(one.selection) for one in locally_optimal_selections(ONE, TIED)] == [(0,)]


def test_two_inputs_with_a_selection_that_has_no_neighbour():
    found = {tuple(one.selection.tolist()): one for one in locally_optimal_selections(TWO, TWO_SCORES)}
    np.testing.assert_allclose(found[0, 0].solution.p, [1, 3], atol=1e-10)
    np.testing.assert_allclose(found[0, 1].solution.p, [1, 0], atol=1e-10)
    assert found[0, 1].neighbours.tolist() == [False, True, False, False]


def test_a_selection_inside_the_others_cannot_win():
    with pytest.raises(NotSeparable):
        local_optimum([[[0.0], [1.0], [-1.0]]], np.array([1.0, 0.0, 0.0]), [0])


def test_cone_and_smoothness_of_the_known_example():
    """Theta = 1, delta = 0.05, A = 1.00499, mu = 3.094e-4, R = 107.36; L_p = 15.274, in its tight form 4.960."""
    found = cone(ONE, APART, local_optimum(ONE, APART, [1]))
    assert found.margin == pytest.approx(1)
    assert found.delta == pytest.approx(0.05)
    assert found.size == pytest.approx(1.00499, abs=1e-5)
    assert found.mu == pytest.approx(3.094e-4, rel=1e-3)
    assert found.radius == pytest.approx(107.36, abs=0.01)
    values = [[[-0.1, 1.0, 1.0], [1.0, 0.0, 0.9], [0.0, 0.0, 0.0]]]
    assert smoothness(values, [0.0, 0.0, 1.0], np.diag([1.0, 1.0, 0.0])) == pytest.approx(15.274, abs=1e-3)
    assert tight_smoothness(ONE, APART) == pytest.approx(4.960, abs=1e-3)
    with pytest.raises(InputError, match="cone: `optimum` must be locally optimal"):
        cone(ONE, TIED, local_optimum(ONE, TIED, [1]))


def test_a_cone_without_non_neighbours():
    found = cone(TWO, TWO_SCORES, local_optimum(TWO, TWO_SCORES, [0, 0]))
    assert math.isinf(found.delta)
    assert 0 < found.mu < 1


@pytest.mark.parametrize("seed", range(20))
def test_directional_neighbours_by_brute_force(seed):
    rng = np.random.default_rng(seed)
    keys, q = rng.normal(size=(3, 4, 5)), rng.normal(size=5)
    gamma = rng.normal(size=12)
    found = directional_neighbours(keys, gamma, q)
    a = keys @ q
    selection = a.argmax(axis=1)
    gaps = [(a[i, selection[i]] - a[i, t], i, t) for i in range(3) for t in range(4) if t != selection[i]]
    least, i, t = min(gaps)
    assert found.selection.tolist() == selection.tolist()
    assert found.margin == pytest.approx(least)
    assert np.flatnonzero(found.neighbours).tolist() == [4 * i + t]
    assert found.neighbour_optimal == (gamma[4 * i + selection[i]] > gamma[4 * i + t])


@pytest.mark.parametrize("seed", range(20))
def test_enumeration_agrees_with_the_definition(seed):
    """Local optimality written out: solve, collect the tokens on the margin, compare scores."""
    rng = np.random.default_rng(seed)
    keys, gamma = rng.normal(size=(2, 3, 3)), rng.normal(size=6)
    found = {tuple(one.selection.tolist()): one for one in locally_optimal_selections(keys, gamma)}
    for selection in np.ndindex(3, 3):
        try:
            p = local_optimum(keys, gamma, list(selection)).solution.p
        except NotSeparable:
            assert selection not in found
            continue
        holds = all(
            gamma[3 * i + selection[i]] > gamma[3 * i + t]
            for i in range(2)
            for t in range(3)
            if t != selection[i] and (keys[i, selection[i]] - keys[i, t]) @ p < 1 + 1e-6
        )
        assert (selection in found) == holds


def test_a_margin_too_thin_ends_no_branch(monkeypatch):
    """Where tokens of the first bags cannot be judged, their selections are; at the last bag it is admitted."""
    rng = np.random.default_rng(0)
    keys, gamma = rng.normal(size=(3, 3, 3)), rng.normal(size=9)
    expected = [tuple(one.selection) for one in locally_optimal_selections(keys, gamma)]

    def thin(rows):
        def spoilt(problem, **options):
            if len(problem) == rows:
                raise NotSolved("too thin")
            return solve(problem, **options)

        return spoilt

    monkeypatch.setattr("keytokens.lab.selection.solve", thin(4))
    assert [tuple(one.selection) for one in locally_optimal_selections(keys, gamma)] == expected
    monkeypatch.setattr("keytokens.lab.selection.solve", thin(6))
    with pytest.raises(NotSolved, match="too thin"):
        list(locally_optimal_selections(keys, gamma))


def test_too_many_selections_are_refused():
    with pytest.raises(InputError, match=r"must have at most 200,000 selections to enumerate; saw \d+\."):
        list(locally_optimal_selections(np.zeros((9, 9, 2)), np.zeros(81)))


@pytest.mark.parametrize("seed", range(20))
def test_the_witness_separates(seed):
    rng = np.random.default_rng(seed)
    X, W, v = rng.normal(size=(4, 5, 3)), rng.normal(size=(3, 3)), rng.normal(size=3)
    p = separating_witness(X, W, v)
    best = (X @ v).argmax(axis=1)
    for i in range(4):
        for t in range(5):
            if t != best[i]:
                assert p @ W @ (X[i, best[i]] - X[i, t]) >= 1 - 1e-9
    with pytest.raises(InputError, match="lie in the range of W'"):
        separating_witness(X, np.diag([1.0, 0.0, 0.0]), v)
    with pytest.raises(InputError, match="give one token of each bag the largest score; saw 'a tie'"):
        separating_witness(X[:, [0, 0]], W, v)


def test_equal_scores_and_general_position():
    bags = Bags.of(ONE)
    assert has_equal_scores(bags, TIED)
    assert not has_equal_scores(bags, APART)
    assert not has_equal_scores(bags, np.array([1.0, 1.0, 0.0]))  # two best tokens
    assert has_equal_scores(Bags.of([[[1.0]], [[1.0], [0.0]]]), np.array([0.0, 1.0, 2.0]))
    rng = np.random.default_rng(0)
    keys = rng.normal(size=(2, 3, 2))
    assert in_general_position(keys, [0, 0])
    keys[1] = keys[0]  # the same rows twice
    assert not in_general_position(keys, [0, 0])
    line = np.array([[[2.0, 0.0], [1.0, 0.0], [1.0, 1.0], [1.0, -1.0]]])  # rows (1,0), (1,-1), (1,1): all on one line
    assert not in_general_position(line, [0])
    with pytest.raises(InputError, match="tuples of rows to test"):
        in_general_position(rng.normal(size=(9, 9, 9)), [0] * 9)
