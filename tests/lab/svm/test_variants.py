"""Known answers of published examples; sets of winners by brute force; labels; relaxed rows."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from keytokens.lab.svm import (
    MarginProblem,
    NotSeparable,
    label_svm,
    relaxed_problem,
    solve,
    solve_set_valued,
)

ONE_INPUT = [[[-0.1, 1.0], [1.0, 0.0], [0.0, 0.0]]]
TWO_INPUTS = [[[1.0, 0.0], [0.0, 0.0]], [[-2.0, 1.0], [0.0, 0.0]]]
JOINT = [[[0.0, 0.0], [1.0, 1.0]], [[0.0, 0.0], [1.0, -1.0]], [[0.0, 0.0], [0.5, 1.0]]]
JOINT_LOOSE = [*JOINT[:2], [[0.0, 0.0], [0.5, 1.5]]]
LABELS = [1, -1, 1]


def features(keys):
    return [bag[1] for bag in keys]


@pytest.mark.parametrize(
    "keys, selection, answer, neighbours",
    [
        (ONE_INPUT, [0], (-10 / 101, 100 / 101), [(0, 2)]),
        (ONE_INPUT, [1], (1, 0), [(0, 2)]),
        (TWO_INPUTS, [0, 0], (1, 3), [(0, 1), (1, 1)]),
        (TWO_INPUTS, [0, 1], (1, 0), [(0, 1)]),
        (JOINT, [1, 1, 1], (4 / 3, 1 / 3), [(1, 0), (2, 0)]),
        (JOINT_LOOSE, [1, 1, 1], (1.25, 0.25), [(1, 0), (2, 0)]),
    ],
)
def test_known_answers(keys, selection, answer, neighbours):
    solution = solve(MarginProblem.from_selection(keys, selection))
    assert_allclose(solution.p, answer, atol=1e-14)
    assert solution.margin == pytest.approx(1 / np.linalg.norm(answer), rel=1e-14)
    assert solution.support_tokens == neighbours
    assert solution.is_optimal(1e-14)


def test_the_half_square_of_the_first_example():
    assert solve(MarginProblem.from_selection(ONE_INPUT, [0])).norm ** 2 / 2 == pytest.approx(0.49505, abs=1e-5)


@pytest.mark.parametrize("keys, support, answer", [(JOINT, [0, 1, 2], (4 / 3, 1 / 3)), (JOINT_LOOSE, [0, 1], (1, 0))])
def test_labels_then_relaxed_rows(keys, support, answer):
    v = label_svm(features(keys), LABELS)
    assert_allclose(v.p, [0, 1], atol=1e-14)
    assert v.support.tolist() == support
    relaxed = solve(relaxed_problem(keys, [1, 1, 1], v.support))
    assert_allclose(relaxed.p, answer, atol=1e-14)
    assert relaxed.is_optimal(1e-14)


def test_a_set_is_not_convex():
    found = solve_set_valued([[[1.0], [-1.0], [0.0]]], [{0, 1}])
    assert sorted(solution.p.item() for solution in found.solutions) == [-1.0, 1.0]
    assert sorted(found.selections) == [(0,), (1,)]
    assert found.norm == found.margin == 1


@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(2, 4), st.integers(1, 5))
def test_sets_against_all_choices(seed, n, T, d):
    rng = np.random.default_rng(seed)
    keys = rng.normal(size=(n, T, d))
    sets = [set(rng.choice(T, rng.integers(1, T + 1), replace=False).tolist()) for _ in range(n)]
    norms = {}
    for choice in product(*[sorted(s) for s in sets]):
        rows = [keys[i, a] - keys[i, t] for i, a in enumerate(choice) for t in range(T) if t not in sets[i]]
        try:
            norms[choice] = solve(MarginProblem.from_rows(np.array(rows).reshape(-1, d))).norm
        except NotSeparable:
            continue
    if norms:
        found = solve_set_valued(keys, sets)
        best = min(norms.values())
        assert found.norm == pytest.approx(best, rel=1e-9)
        assert norms[found.selections[0]] == pytest.approx(best, rel=1e-9)
        a = keys @ found.p
        for i, chosen in enumerate(sets):
            outside = [a[i, t] for t in range(T) if t not in chosen]
            assert not outside or max(a[i, t] for t in chosen) >= max(outside) + 1 - 1e-9
    else:
        with pytest.raises(NotSeparable, match="no choice of winners can be separated") as caught:
            solve_set_valued(keys, sets)
        assert all(witness.is_proof() for _, witness in caught.value.witness)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("within", [0.0, 0.05, 0.5])
def test_other_choices_within_a_share(seed, within):
    rng = np.random.default_rng(seed)
    keys, sets = rng.normal(size=(3, 4, 8)), [{0, 1}, {0, 1, 2}, {3}]
    norms = {}
    for choice in product((0, 1), (0, 1, 2), (3,)):
        rows = [keys[i, a] - keys[i, t] for i, a in enumerate(choice) for t in range(4) if t not in sets[i]]
        norms[choice] = solve(MarginProblem.from_rows(rows)).norm
    found = solve_set_valued(keys, sets, within=within)
    wanted = {choice for choice, norm in norms.items() if norm <= (1 + within) * min(norms.values()) * (1 + 1e-9)}
    assert set(found.selections) == wanted
    assert [solution.norm for solution in found.solutions] == pytest.approx(sorted(norms[c] for c in wanted))
    assert found.norm == min(solution.norm for solution in found.solutions)


def test_the_share_is_checked():
    with pytest.raises(ValueError, match="solve_set_valued: `within` must be a finite number of at least 0; saw -1"):
        solve_set_valued([[[1.0], [0.0]]], [{0}], within=-1)


def test_branches_are_pruned(monkeypatch):
    """3^6 choices, of which the bound cuts away more than half."""
    rng = np.random.default_rng(0)
    count = []
    monkeypatch.setattr("keytokens.lab.svm.sets.solve", lambda *a, **k: count.append(1) or solve(*a, **k))
    found = solve_set_valued(rng.normal(size=(6, 5, 12)), [{0, 1, 2}] * 6)
    assert found.solutions[0].is_optimal(1e-10)
    nodes = sum(3**k for k in range(7))
    assert len(count) < nodes / 2


def test_too_many_choices():
    with pytest.raises(ValueError, match=r"`sets` must allow at most 100000 choices of winners; saw 1048576\. Make"):
        solve_set_valued(np.zeros((20, 3, 2)), [{0, 1}] * 20)


@pytest.mark.parametrize("labels", [[1, -1], [1, 0, 1], [[1], [1], [1]], ["a", "b", "a"]])
def test_labels_are_checked(labels):
    with pytest.raises(ValueError, match="label_svm: `labels` must be 1 or -1 for each of the 3 features; saw"):
        label_svm(np.eye(3), labels)


def test_labels_that_contradict():
    with pytest.raises(NotSeparable) as caught:
        label_svm([[1.0, 2.0], [1.0, 2.0]], [1, -1])
    assert_allclose(caught.value.witness.lam, [0.5, 0.5])


@pytest.mark.parametrize("support", [[3], [-1], [0.5], [[0]]])
def test_support_is_checked(support):
    with pytest.raises(ValueError, match="relaxed_problem: `support` must be indices of bags, below 3; saw"):
        relaxed_problem(JOINT, [1, 1, 1], support)
