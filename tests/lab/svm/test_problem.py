"""How problems are made: rows, ties, pairs of a vocabulary; and what is refused, by message."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from keytokens.lab.svm import MarginProblem, NotSeparable, relaxed_problem, solve
from keytokens.model.ragged import Bags


def all_rows(problem: MarginProblem) -> np.ndarray:
    return problem.rows(np.arange(len(problem)))


@given(st.integers(0, 2**32 - 1), st.lists(st.integers(1, 5), min_size=1, max_size=6), st.integers(1, 4))
def test_rows_of_a_selection(seed, sizes, d):
    rng = np.random.default_rng(seed)
    keys = [rng.normal(size=(T, d)) for T in sizes]
    selection = np.array([rng.integers(T) for T in sizes])
    relaxed = rng.random(len(keys)) < 0.5
    expected = [
        (keys[i][s] - keys[i][t], 0.0 if relaxed[i] else 1.0, (i, t))
        for i, s in enumerate(selection)
        for t in range(sizes[i])
        if t != s
    ]
    problem = relaxed_problem(keys, selection, np.flatnonzero(~relaxed))
    assert len(problem) == len(expected)
    assert_array_equal(all_rows(problem), np.array([row for row, _, _ in expected]).reshape(-1, d))
    assert_array_equal(problem.b, [b for _, b, _ in expected])
    assert [tuple(name) for name in problem.names] == [name for _, _, name in expected]
    singles = MarginProblem.from_sets(Bags.of(keys), [{s} for s in selection])
    assert_array_equal(all_rows(singles), all_rows(problem))
    assert_array_equal(singles.names, problem.names)
    assert not len(singles.ties)


@given(st.integers(0, 2**32 - 1), st.integers(1, 8), st.integers(2, 7), st.booleans())
def test_vocabulary_is_the_same_problem_as_its_documents(seed, n, V, single):
    """One row a distinct pair, and the same minimiser as with every row of every document written out."""
    rng = np.random.default_rng(seed)
    E = rng.normal(size=(V, V + 2))
    dense = rng.integers(0, 3, (n, V))
    dense[np.arange(n), rng.integers(0, V, n)] = 1  # no empty document
    order = rng.permutation(V)
    sets = []
    for i in range(n):
        ranked = sorted(np.flatnonzero(dense[i]), key=lambda t: order[t])
        sets.append({int(t) for t in ranked[: 1 if single else rng.integers(1, len(ranked) + 1)]})
    selection = [next(iter(s)) for s in sets] if single else sets
    problem = MarginProblem.from_vocabulary(E, sparse.csr_matrix(dense), selection)
    rows, ties = [], []
    for i in range(n):
        for s in sets[i]:
            rows += [E[s] - E[t] for t in np.flatnonzero(dense[i]) if t not in sets[i]]
            ties += [E[s] - E[t] for t in sets[i] if t != s]
    A, C = np.array(rows).reshape(-1, V + 2), np.array(ties).reshape(-1, V + 2)
    assert len({tuple(name) for name in problem.names}) == len(problem) <= len(A)
    p, lam = rng.normal(size=V + 2), rng.random(len(problem))
    assert_allclose(problem.times(p), all_rows(problem) @ p, atol=1e-12)
    assert_allclose(problem.inequalities.transposed_times(lam), lam @ all_rows(problem), atol=1e-12)
    try:
        written_out = solve(MarginProblem.from_rows(A, 1.0, C))
    except NotSeparable:
        with pytest.raises(NotSeparable) as caught:
            solve(problem)
        assert caught.value.witness.is_proof()
    else:
        solution = solve(problem)
        assert solution.is_optimal(1e-12)
        assert_allclose(solution.p, written_out.p, atol=1e-9 * (1 + written_out.norm))
        assert all(E[s] @ solution.p - E[t] @ solution.p == pytest.approx(1) for s, t in solution.support_tokens)


def test_a_vocabulary_with_millions_of_pairs_stays_small():
    rng = np.random.default_rng(0)
    n, V, d = 2000, 3000, 10
    counts = sparse.random(n, V, 0.2, "csr", rng=rng)
    E = rng.normal(size=(V, d))
    a = np.where(counts.toarray() > 0, E[:, 0], -np.inf)
    problem = MarginProblem.from_vocabulary(E, counts, a.argmax(axis=1))
    assert 10_000 < len(problem) < counts.nnz
    assert solve(problem).is_optimal(1e-9)


def test_sets_tie():
    keys = [[[2.0, 0.0], [0.0, 2.0], [0.0, 0.0]], [[1.0, 1.0], [5.0, 0.0]]]
    problem = MarginProblem.from_sets(keys, [[1, 0, 1], (0, 1)])
    assert_array_equal(all_rows(problem), [[2.0, 0.0]])
    assert_array_equal(problem.ties, [[2.0, -2.0], [-4.0, 1.0]])
    with pytest.raises(NotSeparable) as caught:
        solve(problem)
    assert caught.value.witness.is_proof(1e-14)
    solution = solve(MarginProblem.from_sets(keys[:1], [{0, 1}]))
    assert_allclose(solution.p, [0.5, 0.5])
    assert solution.support_tokens == [(0, 2)]
    assert_allclose(solution.lam @ [[2.0, 0.0]] + solution.nu @ [[2.0, -2.0]], solution.p)


def test_support_tokens_need_tokens():
    with pytest.raises(ValueError, match="support_tokens: `problem` must know tokens; saw 'a problem from rows'"):
        solve(MarginProblem.from_rows(np.eye(2))).support_tokens  # noqa: B018


KEYS = np.ones((2, 3, 2))
NAN = np.where(np.arange(12).reshape(2, 3, 2) == 9, np.nan, 1.0)
COUNTS = sparse.csr_matrix([[1, 1, 0], [0, 1, 1]])
E = np.eye(3)
REFUSED = [
    (lambda: MarginProblem.from_rows([1.0, 2.0]), "from_rows: `A` must be a matrix of numbers, any number by any"),
    (lambda: MarginProblem.from_rows([[]]), "from_rows: `A` must have at least one column; saw 'shape (1, 0)'."),
    (
        lambda: MarginProblem.from_rows([["x"]]),
        "from_rows: `A` must be a matrix of numbers, any number by any number; saw",
    ),
    (
        lambda: MarginProblem.from_rows([[1.0, np.inf]]),
        "from_rows: `A` must have finite entries up to 1e+150; saw [[1.0, inf]].",
    ),
    (lambda: MarginProblem.from_rows([[1e200]]), "`A` must have finite entries up to 1e+150; saw [[1e+200]]."),
    (lambda: MarginProblem.from_rows(E, [1.0, 1.0]), "`b` must be a number or one number for each of the 3 rows"),
    (lambda: MarginProblem.from_rows(E, -1.0), "`b` must be finite and at least 0: 1, or 0 for a relaxed row; saw -1"),
    (lambda: MarginProblem.from_rows(E, np.nan), "`b` must be finite and at least 0"),
    (lambda: MarginProblem.from_rows(E, 1.0, [[1.0]]), "`equal` must have 3 columns, as `A` has; saw 'shape (1, 1)'"),
    (lambda: MarginProblem.from_selection(KEYS, [0]), "`selection` must be one token index for each of the 2 bags"),
    (
        lambda: MarginProblem.from_selection(KEYS, [0, 3]),
        "from_selection: `selection[1]` must be an index below 3, the number of tokens of bag 1; saw 3.",
    ),
    (lambda: MarginProblem.from_selection(KEYS, [0, -1]), "`selection[1]` must be an index below 3"),
    (lambda: MarginProblem.from_selection(NAN, [0, 0]), "from_selection: `keys[1][1, 1]` must be finite; saw nan."),
    (lambda: MarginProblem.from_sets(KEYS, [{0}]), "from_sets: `sets` must have one set for each of the 2 bags"),
    (lambda: MarginProblem.from_sets(KEYS, [0, 1]), "`sets` must be one set of token indices for each bag; saw [0, 1]"),
    (lambda: MarginProblem.from_sets(KEYS, [{0}, {}]), "`sets[1]` must hold at least one token; saw 'an empty set'."),
    (lambda: MarginProblem.from_sets(KEYS, [{0}, {0.5}]), "`sets` must hold token indices; saw"),
    (lambda: MarginProblem.from_sets(KEYS, [{0}, {3}]), "`sets[1]` must hold indices below 3, the number of tokens of"),
    (
        lambda: MarginProblem.from_vocabulary(E, COUNTS[:, :2], [0, 1]),
        "`counts` must be counts of 3 tokens, one",
    ),
    (
        lambda: MarginProblem.from_vocabulary(E, -COUNTS, [0, 1]),
        "from_vocabulary: `counts` must be counts of 3 tokens",
    ),
    (lambda: MarginProblem.from_vocabulary(E, "x", [0, 1]), "`counts` must be a matrix of counts; saw 'x'."),
    (
        lambda: MarginProblem.from_vocabulary(E, COUNTS, [0]),
        "`selection` must have one set for each of the 2 documents",
    ),
    (lambda: MarginProblem.from_vocabulary(E, COUNTS, 0), "`selection` must be one set of token indices for each doc"),
    (lambda: MarginProblem.from_vocabulary(E, COUNTS, [{0}, 1]), "`selection` must be one set of token indices for"),
    (lambda: MarginProblem.from_vocabulary(E, 0 * COUNTS, [0, 1]), "`counts` must have a token in every row; saw"),
    (lambda: MarginProblem.from_vocabulary(E, COUNTS, [2, 1]), "`selection[0]` must name tokens that occur in docum"),
    (
        lambda: MarginProblem.from_vocabulary(E, COUNTS, [{0, 1}, {0}]),
        "`selection[1]` must name tokens that occur in document 1; saw 0.",
    ),
]


@pytest.mark.parametrize("make, message", REFUSED, ids=[message[:50] for _, message in REFUSED])
def test_refusals(make, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        make()
