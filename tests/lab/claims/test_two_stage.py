"""The two stages: the step against replicated documents, the flow against the clock, brute force and 400 digits."""

from decimal import Context, Decimal, localcontext

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import solve_ivp

from keytokens.base.errors import InputError
from keytokens.lab.claims.embeddings.data import Documents, planted, random_labels
from keytokens.lab.claims.embeddings.stages import (
    Step,
    _log_mean,
    attention,
    follow,
    gaussian_start,
    ideal_start,
    indicator_direction,
    loss,
    second_stage,
    token_pull,
    token_pulls,
)
from keytokens.lab.descent import Status, flow
from keytokens.lab.problems.geometry import misalignment
from keytokens.lab.problems.problem import Problem


def trained(seed: int = 0, d: int = 40, eta: float = 60.0):
    rng = np.random.default_rng(seed)
    data = planted(rng, 12, 4, 2, 2, 5)
    return data, Step(data, gaussian_start(rng, data.V, d), eta)


# Stage 1 -------------------------------------------------------------------------------------------------------------


def test_starts():
    rng = np.random.default_rng(0)
    start = gaussian_start(rng, 50, 2000)
    assert_allclose(np.linalg.norm(start.E, axis=1), 1, atol=0.1)
    assert np.linalg.norm(start.v) == pytest.approx(1)
    ideal = ideal_start(rng, 5, 9)
    assert_allclose(ideal.E @ ideal.E.T, np.eye(5), atol=1e-14)
    assert_allclose(ideal.E @ ideal.v, 0, atol=1e-14)
    assert np.linalg.norm(ideal.v) == pytest.approx(1)
    with pytest.raises(InputError, match="ideal_start: `d` must be above V = 5"):
        ideal_start(rng, 5, 5)


def test_balanced_weights_are_documents_repeated():
    """Three positive documents to a negative one: repeat the latter three times and weigh all alike."""
    rng = np.random.default_rng(1)
    tokens = [rng.integers(0, 5, rng.integers(1, 6)) for _ in range(8)]
    labels = np.array([1, 1, 1, -1, 1, 1, 1, -1])
    few = Documents.of(tokens, labels, 5)
    again = np.repeat(np.arange(8), np.where(labels > 0, 1, 3))
    many = Documents.of([tokens[i] for i in again], labels[again], 5)
    start = gaussian_start(rng, 5, 6)
    by_weight, repeated = Step(few, start, 2.0, few.balanced), Step(many, start, 2.0)
    assert_allclose(by_weight.E, repeated.E, atol=1e-14)
    assert_allclose(by_weight.alpha, repeated.alpha, atol=1e-15)
    assert loss(few, start.E, start.p, start.v, few.balanced) == pytest.approx(loss(many, start.E, start.p, start.v))


def test_the_report_of_an_ideal_step():
    rng = np.random.default_rng(2)
    data = planted(rng, 12, 4, 2, 2, 5, mirrored=True)
    start = ideal_start(rng, data.V, 12)
    step = Step(data, start, 3.0)
    assert step.slope == pytest.approx(0.5, rel=1e-12)
    assert step.correlation == pytest.approx(1)
    assert step.relative_error < 1e-15
    assert_allclose(step.alignment[data.kinds != 0], 1)
    assert_allclose(step.singular_values[1:], 0, atol=1e-16)
    assert_allclose(step.b, 3.0 * step.alpha / 2, atol=1e-15)
    assert step.singular_values[0] == pytest.approx(np.linalg.norm(step.alpha) / 2)


def test_the_report_of_a_step():
    data, step = trained()
    assert_allclose(np.linalg.norm(step.moved - np.outer(step.alpha, step.start.v) / 2, axis=1), step.error)
    assert_allclose(step.E - step.start.E, step.eta * step.moved)
    assert_allclose(step.gain, (step.b - step.start.E @ step.start.v) / step.eta)
    assert step.relative_error == pytest.approx((step.error / data.frequency()).max())
    assert (step.error < step.error_bound).all()
    cosines = (step.moved @ step.start.v) / np.linalg.norm(step.moved, axis=1)
    assert_allclose(step.alignment, np.abs(cosines))
    fit = np.linalg.lstsq(np.column_stack([step.alpha, np.ones(data.V)]), step.gain, rcond=None)[0]
    assert step.slope == pytest.approx(fit[0])


def test_a_token_that_never_occurs_stays():
    documents = Documents.of([[0, 1], [1]], [1, -1], 3)
    start = gaussian_start(np.random.default_rng(3), 3, 5)
    step = Step(documents, start, 1.0)
    assert_allclose(step.E[2], start.E[2])
    assert np.isfinite(step.relative_error)
    assert step.alignment[2] == 0


def test_a_start_of_another_vocabulary():
    with pytest.raises(InputError, match="Step: `start` must have an embedding for each of the 3 tokens"):
        Step(Documents.of([[0]], [1], 3), gaussian_start(np.random.default_rng(0), 2, 4), 1.0)


def test_attention_sums_to_one_for_any_logits():
    documents = random_labels(np.random.default_rng(4), 9, 5, 6)
    a = np.array([0.0, 900.0, -900.0, 1.0, 3.0, 900.5])
    Q = attention(documents, a).toarray()
    assert_allclose(Q.sum(axis=1), 1)
    weights = documents.counts.toarray()[0] * np.exp(a - a[documents.tokens[0]].max())
    assert_allclose(Q[0], weights / weights.sum(), atol=1e-15)


@pytest.mark.parametrize("token", [0, 4])
def test_indicator_direction(token):
    data, step = trained(d=11)
    q, residual = indicator_direction(step.E, token, [step.start.v, step.start.p])
    assert residual < 1e-10
    assert_allclose(step.E @ q, np.eye(data.V)[token], atol=1e-10)
    assert_allclose([q @ step.start.v, q @ step.start.p], 0, atol=1e-10)


# The pull on one token -----------------------------------------------------------------------------------------------


def literal_pull(documents: Documents, E, v, p, token: int) -> Decimal:
    """(1/n) sum_i g_i y_i Q_s (b_s - f_i), as it is written, in the digits of the context."""
    a = [sum((Decimal(float(x)) * Decimal(float(y)) for x, y in zip(row, p, strict=True)), Decimal(0)) for row in E]
    b = [sum((Decimal(float(x)) * Decimal(float(y)) for x, y in zip(row, v, strict=True)), Decimal(0)) for row in E]
    total = Decimal(0)
    for row, y in zip(documents.tokens, documents.labels, strict=True):
        if token in row:
            top = max(a[s] for s in row)
            w = [(a[s] - top).exp() for s in row]
            f = sum((x * b[s] for x, s in zip(w, row, strict=True)), Decimal(0)) / sum(w)
            Q = (a[token] - top).exp() * int((row == token).sum()) / sum(w)
            total += Decimal(int(y)) / (1 + (Decimal(int(y)) * f).exp()) * Q * (b[token] - f)
    return total / len(documents)


@pytest.mark.parametrize("norm", [0.0, 3.0, 150.0])
def test_the_pull_keeps_its_digits(norm):
    data, step = trained()
    direction = np.random.default_rng(5).normal(size=40)
    p = norm * direction / np.linalg.norm(direction)
    problem = Problem.vocabulary(step.E, data.counts, data.labels, step.start.v)
    with localcontext(Context(prec=400, Emin=-(10**9), Emax=10**9)):
        for token in (0, 5):
            exact = literal_pull(data, step.E, step.start.v, p, token)
            seen = token_pull(problem, p, token)
            assert seen.sign == (1 if exact > 0 else -1)
            assert seen.log == pytest.approx(float(abs(exact).ln()), rel=1e-11, abs=1e-9)


def test_pulls_of_all_tokens_move_the_logits():
    """a(t + h) - a(t) = h E E'B along the flow."""
    data, step = trained()
    p = step.start.p
    B = token_pulls(data, step.E, step.start.v, p)
    problem = Problem.vocabulary(step.E, data.counts, data.labels, step.start.v)
    (down,) = problem.descent(problem.read((p,)), (p,))
    assert_allclose(step.E @ (p + 1e-3 * down.plain) - step.E @ p, 1e-3 * (step.E @ step.E.T) @ B, atol=1e-15)


# Stage 2 -------------------------------------------------------------------------------------------------------------


def test_the_row_space_is_enough():
    """The same path as in all 40 dimensions, where the rest of p never moves."""
    data, step = trained()
    run = second_stage(step, [5.0, 50.0])
    problem = Problem.vocabulary(step.E, data.counts, data.labels, step.start.v)
    inside = run.basis.T @ (run.basis @ step.start.p)
    whole = flow(problem, step.start.p, float(np.hypot(50.0, np.linalg.norm(step.start.p - inside)))).state.p
    assert_allclose(run.basis.T @ (run.basis @ whole), run.p, atol=1e-5)
    assert_allclose(whole - run.basis.T @ (run.basis @ whole), step.start.p - inside, atol=1e-8)


def test_the_clock():
    """Norm and time of the flow in arc length, against the flow in time."""
    _, step = trained()
    run = second_stage(step, [0.5, 6.0], growth=0.05)
    problem = run.problem

    def down(t, p):
        return problem.descent(problem.read((p,)), (p,))[0].plain

    end = np.exp(run.path["log_time"][-1])
    there = solve_ivp(down, (0, end), run.basis @ step.start.p, method="LSODA", rtol=1e-9, atol=1e-12).y[:, -1]
    assert np.linalg.norm(there) == pytest.approx(6.0, rel=2e-4)
    assert_allclose(there, run.states[-1].p, rtol=0, atol=2e-3)
    assert (np.diff(run.path["log_time"]) > 0).all()
    assert (np.diff(run.path["loss"]) < 0).all()


@pytest.mark.parametrize("x, y", [(0.0, 0.0), (3.0, 3.0 + 1e-9), (-2.0, 5.0), (5.0, -2.0), (900.0, 950.0)])
def test_log_mean(x, y):
    grid = np.linspace(x, y, 20_001)
    top = grid.max()
    expected = top + np.log(np.trapezoid(np.exp(grid - top), np.linspace(0, 1, 20_001)))
    assert _log_mean(x, y) == pytest.approx(expected, abs=1e-6)


def test_what_a_run_reports():
    data, step = trained(2, eta=120.0)
    run = second_stage(step, [1e2, 1e3])
    assert run.status is Status.FAR_ENOUGH
    assert [state.norm for state in run.states] == pytest.approx([1e2, 1e3])
    a = step.E @ run.p
    margins, attention_on = [], []
    for row, selected, important in zip(data.tokens, run.sets, data.important, strict=True):
        assert selected == [int(np.unique(row)[np.argmax(a[np.unique(row)])])]
        losers = np.setdiff1d(row, selected)
        margins += [a[selected[0]] - a[loser] for loser in losers]
        weights = np.exp(a[row] - a[row].max())
        attention_on.append(weights[row == important].sum() / weights.sum())
    assert run.margin_ratio() == pytest.approx(min(margins) * run.solution.norm / 1e3)
    assert run.leading(data.important) == np.mean([x > 0.5 for x in attention_on])
    assert run.loss == pytest.approx(loss(data, step.E, run.p, step.start.v))
    assert run.misalignment(-1) < run.misalignment(-2)
    assert run.misalignment() == pytest.approx(misalignment(run.p, run.solution.p @ run.basis))
    assert run.separates(data.important)


def test_ties_are_seen_and_become_equalities():
    documents = Documents.of([[0, 1], [0, 1], [0, 2], [1, 2]], [1, -1, 1, -1], 3)
    E = np.eye(3, 4)
    run = follow(documents, E, np.array([1.0, -1.0, 0.0, 0.0]), np.zeros(4), [5.0, 8.0])
    assert run.sets == [[0, 1], [0, 1], [0], [1]]
    p = run.solution.p @ run.basis
    assert_allclose(p[:3], np.array([1, 1, -2]) / 3, atol=1e-9)
    assert run.misalignment() < 1e-3


def test_a_run_that_stops_early_says_so():
    documents = Documents.of([[0, 1], [0, 1]], [1, -1], 2)
    run = follow(documents, np.eye(2), np.array([2.0, -1.0]), np.array([3.0, 0.0]), [1e2, 1e3])
    assert not run.arrived
    assert run.norm < 10
    assert len(run.states) == 2
    assert run.misalignment() == np.inf
    assert run.margin_ratio() == -np.inf


def test_what_cannot_be_separated():
    """Two tokens that must beat each other."""
    documents = Documents.of([[0, 1], [0, 1]], [1, 1], 2)
    run = follow(documents, np.eye(2), np.array([1.0, 0.0]), np.zeros(2), [1e1, 1e2])
    assert run.separates(np.array([0, 0]))
    assert not run.separates(np.array([0, 1]))


@pytest.mark.parametrize("norms", [[1.0], [2.0, 1.0], 3.0])
def test_norms_must_increase(norms):
    documents = Documents.of([[0, 1]], [1], 2)
    with pytest.raises(InputError, match="follow: `norms` must be two or more increasing numbers"):
        follow(documents, np.eye(2), np.ones(2), np.zeros(2), norms)
