"""Which tokens win: the definitions on examples with known answers, and on random instances against brute force."""

import math

import numpy as np
import pytest

from keytokens.base.errors import InputError, NotSeparable
from keytokens.lab.descent import Status
from keytokens.lab.problems.losses import Correlation
from keytokens.lab.selection import (
    cone,
    directional_neighbours,
    has_equal_scores,
    in_general_position,
    local_optimum,
    locally_optimal_selections,
    optimal_tokens,
    reached_selections,
    score_gap,
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


def test_optimal_tokens():
    gamma = np.array([1.0, 1.0, -3.0])
    bags = Bags.of([[[1.0], [2.0]], [[3.0]]])
    with pytest.raises(
        InputError, match=r"optimal_tokens: `scores of bag 0` must have one largest entry; saw 'a tie'\."
    ):
        optimal_tokens(bags, gamma)
    assert optimal_tokens(bags, gamma, strict=False).tolist() == [0, 0]
    assert optimal_tokens(bags, np.array([1.0, 2.0, 0.0])).tolist() == [1, 0]


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


# Where descents end


def summary(limits):
    return {tuple(one.selection.tolist()): one for one in limits.reached}


@pytest.mark.parametrize("method", ["flow", "descent"])
def test_descents_reach_the_global_and_the_local_optimum(method):
    """One input, starts (0, y): four of six end in the global direction, two in the local one."""
    starts = [[0.0, y] for y in (1.0, 0.5, 0.0, -0.5, -1.0, -1.5)]
    limits = reached_selections(ONE, APART, starts=starts, method=method)
    found = summary(limits)
    assert {selection: one.starts for selection, one in found.items()} == {(0,): 4, (1,): 2}
    assert {selection: one.globally_optimal for selection, one in found.items()} == {(0,): True, (1,): False}
    assert all(one.locally_optimal for one in limits.reached)
    np.testing.assert_allclose(found[0,].optimum.solution.p, [-10 / 101, 100 / 101], atol=1e-12)
    np.testing.assert_allclose(found[1,].optimum.solution.p, [1, 0], atol=1e-12)
    assert max(one.distances.max() for one in limits.reached) < 1e-5
    assert (limits.starts, limits.unsaturated) == (6, ())
    assert [len(one.distances) for one in limits.reached] == [4, 2]
    assert {status for one in limits.reached for status in one.statuses} == {Status.FAR_ENOUGH}


def test_random_starts_reach_both_limits_of_two_inputs():
    limits = reached_selections(TWO, TWO_SCORES, starts=10, norms=(3.0,), norm=1e3, method="descent")
    found = summary(limits)
    assert set(found) == {(0, 0), (0, 1)}
    assert (found[0, 0].globally_optimal, found[0, 1].globally_optimal) == (True, False)
    assert sum(one.starts for one in limits.reached) == limits.starts == 10
    assert limits.reached[0].starts >= limits.reached[1].starts
    assert all(one.locally_optimal and one.distances.max() < 1e-4 for one in limits.reached)


def test_the_same_seed_gives_the_same_limits():
    one, two, other = (reached_selections(ONE, APART, starts=2, seed=seed, norm=50.0) for seed in (1, 1, 2))
    assert [x.distances.tolist() for x in one.reached] == [x.distances.tolist() for x in two.reached]
    assert [x.distances.tolist() for x in one.reached] != [x.distances.tolist() for x in other.reached]


def test_what_is_reached_is_among_what_is_enumerated():
    """Over random problems of five dimensions, less than 1% of the saturated runs may be exceptions."""
    saturated = exceptions = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        keys, gamma = rng.normal(size=(3, 4, 5)), rng.normal(size=12)
        limits = reached_selections(keys, gamma, starts=2, norms=(0.1, 3.0), method="descent", norm=300.0)
        everything = {tuple(one.selection.tolist()) for one in locally_optimal_selections(keys, gamma)}
        assert limits.starts == 4
        for one in limits.reached:
            saturated += one.starts
            assert (tuple(one.selection.tolist()) in everything) == one.locally_optimal
            exceptions += 0 if one.locally_optimal else one.starts
            assert one.distances.max() < 1e-2
    assert saturated > 20
    assert exceptions <= 0.01 * saturated


@pytest.mark.parametrize("method, status", [("flow", Status.STATIONARY), ("descent", Status.OUT_OF_STEPS)])
def test_runs_that_do_not_decide_are_reported(method, status):
    """Two inputs that want opposite keys: a finite minimum, for every start."""
    keys, gamma = [[[1.0], [0.0]], [[-1.0], [0.0]]], np.array([1.0, 0.0, 2.0, 0.0])
    limits = reached_selections(keys, gamma, starts=[[0.5], [-2.0]], method=method, norm=50.0)
    assert limits.reached == ()
    assert [one.start.tolist() for one in limits.unsaturated] == [[0.5], [-2.0]]
    assert {one.status for one in limits.unsaturated} == {status}
    assert all(one.attention < 0.9 for one in limits.unsaturated)
    assert abs(limits.unsaturated[0].end - limits.unsaturated[1].end).max() < 0.2


def test_other_losses_and_single_tokens():
    limits = reached_selections([[[1.0, 2.0]]], np.array([1.0]), Correlation(), starts=2)
    assert [(one.selection.tolist(), one.starts, one.distances.max()) for one in limits.reached] == [([0], 2, 0)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"starts": [[1.0]]}, "`starts` must be a number of starts, or finite starts as rows of 2 numbers; saw"),
        ({"starts": [[1.0], [1.0, 2.0]]}, "`starts` must be a number of starts, or finite starts"),
        ({"starts": "many"}, "`starts` must be a number of starts, or finite starts as rows of 2 numbers; saw 'many'."),
        ({"starts": [[1.0, math.nan]]}, "`starts` must be a number of starts, or finite starts"),
        ({"starts": 0}, "`starts` must be a whole number of at least 1; saw 0."),
        ({"norms": [-1.0]}, "`norms` must be a finite number of at least 0; saw -1.0."),
        ({"norm": 0.0}, "`norm` must be a finite number above 0; saw 0.0."),
        ({"method": "newton"}, "`method` must be one of 'flow', 'descent'; saw 'newton'."),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(InputError) as refused:
        reached_selections(ONE, APART, **options)
    assert message in str(refused.value)


def test_too_many_selections_are_refused():
    with pytest.raises(InputError, match=r"must have at most 200,000 selections to enumerate; saw \d+\."):
        list(locally_optimal_selections(np.zeros((9, 9, 2)), np.zeros(81)))


@pytest.mark.parametrize("seed", range(20))
def test_the_witness_separates(seed):
    rng = np.random.default_rng(seed)
    X, W, v = rng.normal(size=(4, 5, 3)), rng.normal(size=(3, 3)), rng.normal(size=3)
    p = separating_witness(X, W, v)
    best = optimal_tokens(Bags.of(X), Bags.of(X).rows @ v)
    for i in range(4):
        for t in range(5):
            if t != best[i]:
                assert p @ W @ (X[i, best[i]] - X[i, t]) >= 1 - 1e-9
    with pytest.raises(InputError, match="lie in the range of W'"):
        separating_witness(X, np.diag([1.0, 0.0, 0.0]), v)


def test_equal_scores_and_general_position():
    bags = Bags.of(ONE)
    assert has_equal_scores(bags, TIED)
    assert not has_equal_scores(bags, APART)
    rng = np.random.default_rng(0)
    keys = rng.normal(size=(2, 3, 2))
    assert in_general_position(keys, [0, 0])
    keys[1] = keys[0]  # the same rows twice
    assert not in_general_position(keys, [0, 0])
    line = np.array([[[2.0, 0.0], [1.0, 0.0], [1.0, 1.0], [1.0, -1.0]]])  # rows (1,0), (1,-1), (1,1): all on one line
    assert not in_general_position(line, [0])
    with pytest.raises(InputError, match="tuples of rows to test"):
        in_general_position(rng.normal(size=(9, 9, 9)), [0] * 9)
    assert score_gap(bags, APART, [0], np.array([False, True, True])) == pytest.approx(0.1)
