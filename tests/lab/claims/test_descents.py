"""The helpers of the claims on descents by other roads; and a spoilt direction, without the hypotheses."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import brentq

from keytokens.lab.claims.claim import claims
from keytokens.lab.claims.instances import longest_difference, one_bag
from keytokens.lab.claims.max_margin import descents
from keytokens.lab.claims.max_margin.assumptions import best_solution, slopes
from keytokens.lab.descent import Descent, Normalised, run
from keytokens.lab.problems.problem import Problem
from keytokens.lab.problems.scores import scores_of
from keytokens.model.ragged import Bags

from .broken import fails

seeds = st.integers(0, 10_000)


# Lemma 1


def drawn_twins(seed: int, **changes) -> descents.Twins:
    return replace(descents._draw_twins(np.random.default_rng(seed)), **changes)


@given(seeds)
def test_the_gradients_are_those_of_the_problems(seed):
    """With a linear head, in p and in W."""
    v = np.random.default_rng(seed).normal(size=4)
    twins = drawn_twins(seed)
    v = v[: twins.X.shape[2]]
    linear = descents.Head(lambda r: r @ v, lambda r: np.broadcast_to(v, r.shape))
    twins = replace(twins, head=linear)
    bags = Bags.of(twins.X)
    scores = scores_of(twins.Y, bags, v)
    on_p, on_W = Problem.of(bags, scores, twins.loss), Problem.cross(bags, twins.u, scores, twins.loss)
    (down,) = on_p.descent(on_p.read((twins.p,)), (twins.p,))
    assert_allclose(twins.gradient_p(twins.p), -down.plain, rtol=1e-9, atol=1e-12)
    (down,) = on_W.descent(on_W.read((twins.W.T,)), (twins.W.T,))  # theirs is u p', ours p u'
    assert_allclose(twins.gradient_W(twins.W).T, -down.plain, rtol=1e-9, atol=1e-12)


@given(seeds)
def test_heads_have_their_gradients(seed):
    rng = np.random.default_rng(seed)
    head, r = descents._draw_head(rng, 3), rng.normal(size=(5, 3))
    steps = 1e-30j * np.eye(3)[:, None, :]
    assert_allclose(head.gradient(r), head.value(r + steps).imag.T / 1e-30, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("loss, analytic", descents.ANALYTIC, ids=lambda x: getattr(x, "name", ""))
def test_analytic_losses(loss, analytic):
    x = np.linspace(-5, 5, 21)
    assert_allclose(analytic(x), loss.value(x))
    assert_allclose(analytic(x + 1e-30j).imag / 1e-30, loss.slope(x))


# Theorem 2: the two bounds


@given(seeds)
@settings(max_examples=20)
def test_the_bound_on_the_norm(seed):
    """It solves its equation, and grows like log(steps) / D."""
    x = descents._draw_global(np.random.default_rng(seed))
    x = replace(x, start=0 * x.start)
    solution, keys = best_solution(x.problem), x.problem.keys
    longest, T = longest_difference(x.problem), keys.sizes.max()
    scores = x.problem.scores
    gaps = keys.spread(keys.max(scores)) - scores
    most = slopes(x.problem).least * gaps[gaps > 0].min() * x.eta / solution.norm

    def spare(R: float, steps: float) -> float:
        s = 1 / (1 + (T - 1) * np.exp(longest * R))
        return steps * most * s * (1 - s) - R

    found = [descents.norm_bound(x, solution, steps) for steps in (100, 10**20, 10**40)]
    exact = [brentq(lambda r, steps=steps: spare(r, steps), 0, 600 / longest) for steps in (100, 1e20)]
    assert_allclose(found[:2], exact, rtol=1e-9, atol=1e-9)
    assert found[2] - found[1] == pytest.approx(20 * np.log(10) / longest, rel=0.15)


@given(seeds, st.floats(0.01, 3.0))
@settings(max_examples=20)
def test_the_bound_on_the_direction_holds_along_normalised_descent(seed, size):
    """Nothing in it but the lengths of the steps is of gradient descent: here eta (L(0) - L*) bounds 1/2 sum |dp|^2."""
    rng = np.random.default_rng(seed)
    problem = descents.draw_equal_scores(rng, 1, int(rng.integers(2, 8)), 3)
    solution, eta, steps = best_solution(problem), 0.02, 300
    x = descents.GlobalRun(problem, size * rng.normal(size=3), eta, True)
    bound = descents.direction_bound(x, solution, steps * eta / 2)
    points = []
    run(Descent(problem, Normalised(eta)), x.start, steps, lambda state: points.append(state.p))
    norms = np.linalg.norm(points, axis=1)
    lost = norms - np.array(points) @ solution.p / solution.norm
    assert (lost <= bound(norms) + 1e-12).all()


def test_the_bounds_speak_of_the_limit():
    """In norms that plain descent would need exp(|p|) steps for, the direction is pinned down."""
    x = descents._global_run(one_bag(0.9), [0.0, -1.5])
    solution = best_solution(x.problem)
    bound = descents.direction_bound(x, solution, 0.1)
    assert bound(1e6) / 1e6 < 2e-5
    assert bound(1e9) / 1e9 < 1e-7


def test_spoilt_cone(monkeypatch):
    monkeypatch.setattr(descents.Local, "direction", property(lambda local: local.problem.keys.rows[0]))
    (claim,) = claims(["mm.thm3"])
    assert fails(replace(claim, hypotheses=claim.hypotheses[:1]), 6)
