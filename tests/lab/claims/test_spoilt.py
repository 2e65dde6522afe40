"""Claims notice a spoilt formula: one function at a time is changed, and the claim that rests on it must fail.

`make mutants` changes single expressions; these changes are larger or of another kind.
"""

from dataclasses import replace

import numpy as np
import pytest

from keytokens.lab.claims.embeddings import barriers, classes, flows, one_step
from keytokens.lab.claims.embeddings.data import Documents
from keytokens.lab.claims.embeddings.stages import Run, Step
from keytokens.lab.claims.matrices import margins, mirrors, training
from keytokens.lab.claims.max_margin import cones, descents, lemmas, paths
from keytokens.lab.claims.max_margin.assumptions import Local
from keytokens.lab.claims.max_margin.joint import JointLimit
from keytokens.lab.claims.max_margin.neighbours import ConeAround, View
from keytokens.lab.claims.max_margin.paths import Limit
from keytokens.lab.paths import Decomposition
from keytokens.lab.problems.losses import Scaled
from keytokens.lab.svm import MarginProblem, relaxed_problem, solve
from keytokens.lab.svm.solution import Lq

from .broken import fails


def times(factor):
    """The result is too large or too small."""

    def change(f):
        if isinstance(f, property):
            return property(lambda self: factor * f.fget(self))
        if hasattr(f, "func"):  # a cached property
            return property(lambda self: factor * f.func(self))
        return lambda *given: factor * f(*given)

    return change


def with_changes(**factors):
    """The parts of the result that are named are multiplied."""
    return lambda f: lambda *given: _changed(f(*given), factors)


def _changed(found, factors):
    return replace(found, **{name: factor * getattr(found, name) for name, factor in factors.items()})


def tilted(f):
    """A little of every direction added."""
    return lambda *given: _tilted(f(*given))


def _tilted(found):
    return replace(found, p=found.p + 1e-5 * found.norm)


def turned_solution(f):
    return lambda *given: _turned(f(*given))


def _turned(solution):
    return replace(solution, p=solution.p + 5e-3 * np.roll(solution.p, 1))


def doubled(f):
    """The first row asks for twice as much."""

    def rows(self, winners):
        A = f(self, winners).rows(np.arange(len(f(self, winners))))
        A[0] /= 2
        return MarginProblem.from_rows(A)

    return rows


def wrong_sign_along_p(f):
    """The part of the gradient along p."""

    def turned(documents, start, weights=None):
        gradient = f(documents, start, weights)
        return gradient - 2 * np.outer(gradient @ start.p / (start.p @ start.p), start.p)

    return turned


def by_mean_length(f):
    """alpha by 1/(nT) with the mean length, which is right where all lengths are equal."""

    def plain(self, weights=None):
        return self.counts.T @ (self.labels * (self.even if weights is None else weights)) / self.lengths.mean()

    return plain


def without_the_mean(f):
    """How often a token occurs under a class, its share 1/K not taken off."""
    return lambda data: f(data) + data.shares.mean(axis=0)[:, None] / data.K


def by_score(f):
    """Each document selects the token with the largest score."""
    return property(lambda run: [[int(run.problem.counts.indices[row])] for row in run.states[-1].reading.best])


def untied(f):
    """Token 0 wins wherever it occurs."""

    def alone(documents, E):
        return solve(MarginProblem.from_vocabulary(E, documents.counts, [[row.min()] for row in documents.tokens]))

    return alone


SPOILT = [  # claim, instances, where the function is, its name, the change
    ("mm.lemma2", 12, lemmas, "separating_witness", times(1.1)),
    ("mm.lemma4", 12, lemmas, "log_missed", lambda f: lambda reading, rows: f(reading, rows) + 0.01),
    ("mm.lemma5", 12, lemmas, "entropy_gap", times(0.9)),
    ("mm.lemma7", 2, Local, "reach", times(0.9)),
    ("mm.lemma7", 2, Local, "gaps", times(1.1)),
    ("mm.lemma1", 6, descents.Twins, "gradient_W", times(1.001)),
    ("mm.lemma6", 60, descents, "tight_smoothness", times(1 / 40)),
    ("mm.thm2", 6, descents, "best_solution", turned_solution),
    ("mm.loss-drift", 2, cones, "unsettled", lambda f: lambda solution, w, p: f(solution, 1.01 * w, p)),
    ("mm.thm1", 4, Limit, "_rows", doubled),
    ("mm.thm8", 4, Limit, "_rows", doubled),
    ("mm.lemma8", 4, View, "radius", times(0.9)),
    ("mm.lemma9", 4, View, "radius", times(0.9)),
    ("mm.thm4", 4, View, "radius", times(0.9)),
    ("mm.thm4", 4, ConeAround, "_turned", lambda f: lambda self, way, most: f(self, -way, most)),
    ("mm.lemma14", 4, Decomposition, "rho", times(0.9)),
    ("mm.lemma14", 4, paths, "_rho", times(0.9)),
    ("mm.assumption-c", 2, JointLimit, "weights", times(1.1)),
    ("mm.thm5", 2, JointLimit, "strict", lambda f: property(first_input_only)),
    ("mm.thm6", 2, JointLimit, "relaxed", lambda f: property(lambda one: one.strict)),
    ("mm.joint-ratio", 2, JointLimit, "_asking", lambda f: lambda one, z: f(replace(one, ratio=one.ratio / 2), z)),
    ("fu.feasible", None, margins, "_constructed", times(1.01)),
    ("fu.frobenius-rank", 6, margins, "solve_matrix", tilted),
    ("fu.frobenius-rank", 6, margins, "solve_matrix", with_changes(lam=1.001)),
    ("fu.nuclear", 6, margins, "solve_nuclear", tilted),
    ("fu.nuclear", 6, margins, "solve_nuclear", with_changes(p=1.001)),
    ("fu.nuclear", 6, margins, "solve_nuclear", with_changes(p=0.999)),
    ("fu.nuclear", 6, margins, "solve_nuclear", with_changes(lam=-1.0)),
    ("fu.finite-part", 2, training, "multi_token_svm", with_changes(finite=1.01)),
    ("fu.norms", 3, training, "solve_matrix", turned_solution),
    ("fu.norms", 6, training, "solve_nuclear", turned_solution),
    ("fu.lq-svm", 6, mirrors, "solve_lq", lambda f: lambda problem, q: replace(f(problem, 1.1 * q), measure=Lq(q))),
    ("te.p-gradient", 3, flows, "token_pulls", times(2)),
    ("te.divergence", 3, flows, "token_pull", lambda f: lambda *at: Scaled(-f(*at).array, f(*at).log_scale)),
    ("te.max-margin", 20, Run, "sets", by_score),
    ("te.ties", 6, flows, "_with_tie", untied),  # the wrong norms lead some of the paths where they are lost
    ("te.rates", 2, flows, "loss_of_selection", times(1.001)),
    ("te.rates", 2, flows, "_tail", with_changes(log_K=1.001)),
    ("te.max-margin", 2, flows, "_tail", with_changes(w=1.01)),
    ("te.divergence", 4, Run, "norm", times(0.999)),
    ("te.closed-form", 5, barriers, "closed_form", lambda f: lambda data, E, v, eta: f(data, E, v, 2 * eta)),
    ("te.alternative-optimum", 1, barriers, "alternative_loss", times(0.9)),
    ("te.one-step", None, Documents, "signed_frequency", by_mean_length),
    ("te.one-step", None, Step, "leading", times(2)),
    ("te.one-step-rate", None, Step, "leading", times(2)),
    ("te.one-step-bound", None, Step, "error_bound", times(0.99)),
    ("te.barrier", None, barriers, "barrier", times(1.01)),
    ("te.one-step-bound", None, Step, "error_bound", times(0.5)),
    ("te.gradient", None, one_step, "embedding_gradient", wrong_sign_along_p),
    ("te.multiclass-step", None, classes, "class_frequencies", without_the_mean),
    ("te.multiclass-step", None, classes, "_step_bound", times(0.9)),
    ("te.multiclass-divergence", 6, classes, "_log_least_pull", lambda f: lambda *at: f(*at) + 0.1),
    (
        "te.multiclass-divergence",
        6,
        classes,
        "token_pull",
        lambda f: lambda *at: Scaled(-f(*at).array, f(*at).log_scale),
    ),
    ("te.multiclass-selection", 6, classes, "barrier", times(0.9)),
    ("te.multiclass-selection", 6, classes.Ideal, "needed", times(0.9)),
    ("te.multiclass-pair", 3, classes, "_best_share", times(1.1)),
]


def first_input_only(one):
    return solve(relaxed_problem(one.problem.keys, one.selection, [0]))


@pytest.mark.parametrize("claim, seeds, where, name, change", SPOILT, ids=[f"{one[0]}-{one[3]}" for one in SPOILT])
def test_a_spoilt_formula_is_noticed(monkeypatch, claim, seeds, where, name, change):
    monkeypatch.setattr(where, name, change(vars(where)[name]))
    assert fails(claim) if seeds is None else fails(claim, seeds)
