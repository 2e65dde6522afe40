"""The claims about the flow notice broken formulas; ties are needed; the barrier is about the start."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from keytokens.core.directions import misalignment
from keytokens.core.selection_loss import Scaled
from keytokens.svm import MarginProblem, solve
from keytokens.theory.claim import judge
from keytokens.theory.families import flows
from keytokens.theory.planted import alternative_loss, barrier, loss_of_selection
from keytokens.theory.two_stage import Run, loss
from keytokens.theory.verify import claims


def fails(id: str, seeds: int = 20) -> bool:
    verdict = judge(claims([id])[0], seeds)
    return verdict.worst_excess > verdict.tolerance


# Broken formulas -----------------------------------------------------------------------------------------------------


def test_a_factor_in_the_pull(monkeypatch):
    true = flows.token_pulls
    monkeypatch.setattr(flows, "token_pulls", lambda *at: 2 * true(*at))
    assert fails("te.p-gradient", 3)


def test_a_sign_in_the_pull_of_one_token(monkeypatch):
    true = flows.token_pull

    def turned(*at):
        pull = true(*at)
        return Scaled(-pull.array, pull.log_scale)

    monkeypatch.setattr(flows, "token_pull", turned)
    assert fails("te.divergence", 3)


def test_the_best_tokens_are_not_always_selected(monkeypatch):
    """The limit is the max-margin direction of what is selected: on labels by coin that is not the best token."""
    monkeypatch.setattr(Run, "sets", property(lambda self: [[int(s)] for s in self.best]))
    assert fails("te.max-margin", 20)


def test_the_closed_form_counts_tokens(monkeypatch):
    true = flows.closed_form
    monkeypatch.setattr(flows, "closed_form", lambda data, E, v, eta: true(data, E, v, 2 * eta))
    assert fails("te.unbalanced-form", 5)


@pytest.mark.parametrize("factor", [0.9, 0.5])
def test_a_smaller_step_is_not_sufficient(monkeypatch, factor):
    true = flows.sufficient_step
    monkeypatch.setattr(flows, "sufficient_step", lambda *at: factor * true(*at))
    assert fails("te.sufficient-step", 20)


def test_negative_documents_pay_log_2(monkeypatch):
    monkeypatch.setattr(flows, "alternative_loss", lambda data, b: 0.9 * alternative_loss(data, b))
    assert fails("te.alternative-optimum", 1)


# What the claims rest on ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_ties_need_equalities(seed):
    """Without the equality, with whichever of the two tokens is ahead, the direction is another one."""
    one = flows._tied(np.random.default_rng(seed))
    chord = one.run.states[-1].p - one.run.states[-2].p
    ahead = 0 if (one.run.problem.embeddings @ one.run.states[-1].p)[0] > 0 else 1
    alone = [ahead if {0, 1} <= set(row.tolist()) else int(row.min()) for row in one.documents.tokens]
    other = solve(MarginProblem.from_vocabulary(one.run.problem.embeddings, one.documents.counts, alone))
    assert flows._off_tied(one) < 5e-3 < misalignment(chord, other.p)
    assert [len(tokens) for tokens in one.run.sets[:2]] == [2, 2]


def test_the_bad_optimum_is_above_the_barrier_and_the_good_one_below():
    bad = flows._trapped()
    data, b = bad.data, bad.step.b
    assert bad.left_out == 10
    assert loss_of_selection(data, b, data.important) < alternative_loss(data, b)
    assert bad.run.loss == pytest.approx(alternative_loss(data, b), abs=1e-9)
    assert loss(data, bad.step.E, bad.start, bad.step.start.v) > barrier(data, b)
    good = flows._trapped(c=0.0)
    assert good.left_out == 0
    assert good.run.loss == pytest.approx(loss_of_selection(data, b, data.important), abs=1e-9)


def test_negative_tokens_are_no_neighbours_in_the_bad_optimum():
    """Their score is the larger one, so they must stay off the margin: this is what makes it an optimum."""
    bad = flows._trapped()
    solution = bad.run.solution
    negative = np.flatnonzero(bad.data.kinds < 0)
    tight = {loser for _, loser in solution.support_tokens}
    assert not tight & set(negative.tolist())


def test_the_least_pull_is_a_lower_bound_at_the_start():
    one = flows._dominant(np.random.default_rng(2))
    assert flows._LARGEST.holds(one)
    p = np.zeros(one.step.E.shape[1])
    pull = flows.token_pull(one.step.documents, one.step.E, one.step.start.v, p, one.token)
    plain = flows.token_pulls(one.step.documents, one.step.E, one.step.start.v, p)[one.token]
    assert_allclose(pull.plain, plain, rtol=1e-12)
    assert flows._log_least_pull(one, p) < pull.log < flows._log_least_pull(one, p) + 20


def test_the_barrier_of_several_classes():
    """The least loss over all ways to leave out one important token, attention on any mixture of the others."""
    one = flows._many_classes(np.random.default_rng(4))
    b, y = one.E @ one.v.T, one.data.y
    rng, least = np.random.default_rng(5), np.inf
    for i, counts in enumerate(one.data.counts.toarray()):
        others = np.setdiff1d(np.flatnonzero(counts), one.data.important[i])
        for mixture in rng.dirichlet(np.ones(len(others)), 50):
            f = mixture @ b[others]
            least = min(least, np.log(np.exp(f - f[y[i]]).sum()) / len(y))
    assert one.barrier <= least + 1e-12
    assert one.barrier == pytest.approx(np.log(one.data.K) / len(y), rel=1e-9)  # irrelevant tokens have no values here
