"""Instances of the claims about the flow meet the hypotheses; ties are needed."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from keytokens.lab.claims.embeddings import flows
from keytokens.lab.claims.embeddings.data import Documents
from keytokens.lab.claims.embeddings.stages import Start, small_enough
from keytokens.lab.problems.geometry import misalignment
from keytokens.lab.svm import MarginProblem, solve

# Instances meet the hypotheses ----------------------------------------------------------------------------------------


def test_the_token_that_should_lead_does():
    """Always where it should, and after a small step now and then."""
    drawn = [flows._dominant(np.random.default_rng(seed)) for seed in range(100)]
    assert all(flows._ROOM.holds(one) for one in drawn)
    assert 65 <= sum(flows._LARGEST.holds(one) for one in drawn) < 95


def test_a_start_is_made_smaller_only_where_it_must_be():
    start = Start(np.full((2, 3), 8.0), np.full(3, 8.0), np.ones(3))
    assert small_enough(start, lambda start: True) is start
    halved = small_enough(start, lambda start: start.E.max() < 1.5)
    assert_allclose(halved.E, 1.0)
    assert_allclose(halved.p, 1.0)
    assert halved.v is start.v


@pytest.mark.parametrize("slack, norms", [(0.05, flows.FAR), (0.005, (1e4, 1e5))])
def test_a_row_that_is_nearly_on_the_margin_is_followed_farther(slack, norms):
    """Tokens 1, 0 and -slack on a line: token 0 wins both documents, and the second row has that slack."""
    documents = Documents.of([[0, 1], [0, 2]], [1, 1], 3)
    one = flows.Frozen(documents, np.array([[1.0, 0.0], [0.0, 0.0], [-slack, 0.0]]), np.array([1.0, 0.0]), np.zeros(2))
    assert flows._far_enough(one).norms == norms


# What the claims rest on ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_ties_need_equalities(seed):
    """Without the equality, with whichever of the two tokens is ahead, the direction is another one."""
    one = flows._tied(np.random.default_rng(seed))
    chord = one.run.states[-1].p - one.run.states[-2].p
    ahead = 0 if (one.run.problem.embeddings @ one.run.states[-1].p)[0] > 0 else 1
    alone = [ahead if {0, 1} <= set(row.tolist()) else int(row.min()) for row in one.documents.tokens]
    other = solve(MarginProblem.from_vocabulary(one.run.problem.embeddings, one.documents.counts, alone))
    assert flows._off_tied(one) < 0.05 < np.sqrt(2 * misalignment(chord, other.p))
    assert [len(tokens) for tokens in one.run.sets[:2]] == [2, 2]


def test_the_pull_of_the_token_at_a_point():
    one = flows._dominant(np.random.default_rng(2))
    pull = flows.token_pull(one.run.problem, one.run.basis @ one.places[-1], one.token)
    assert_allclose(pull.plain, flows.token_pulls(one.documents, one.E, one.v, one.places[-1])[one.token], rtol=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_the_tail_is_the_least_sum(seed):
    """Another minimiser, which knows nothing of frames: K over all w across p_*."""
    one = flows._converging(np.random.default_rng(seed + 2))
    solution, tail, counts = one.run.solution, one.tail, one.documents.counts.toarray()
    b = one.E @ one.v
    rows, sizes = [], []
    for i, (selected,) in enumerate(one.run.sets):
        y = one.documents.labels[i]
        for token in np.flatnonzero(counts[i]):
            if (selected, int(token)) in solution.support_tokens:
                force = y / (1 + np.exp(y * b[selected])) * counts[i, token] / counts[i, selected] / len(counts)
                rows.append(one.run.problem.embeddings[selected] - one.run.problem.embeddings[token])
                sizes.append(force * (b[selected] - b[token]))
    rows, along = np.array(rows), solution.p / solution.norm
    across = rows - np.outer(rows @ along, along)
    found = minimize(lambda w: np.log(np.sum(sizes * np.exp(-across @ w))), np.zeros(rows.shape[1]), method="BFGS")
    assert tail.log_K == pytest.approx(found.fun, abs=1e-7)
    assert_allclose(across @ (tail.frame.T @ tail.w), across @ found.x, atol=1e-3)
