"""Many problems at once give what each gives by itself, and the verdicts are what independent solvers say."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from keytokens.base.errors import InputError
from keytokens.lab.claims.instances import one_bag, spheres, three_bags, tied, two_limits, two_scores
from keytokens.lab.descent import Descent, Normalised, Plain, run
from keytokens.lab.descent.stack import Stack, on_span
from keytokens.lab.problems.losses import Correlation, Exponential, Logistic
from keytokens.lab.problems.problem import Problem
from keytokens.model.ragged import Bags

KNOWN = [
    (one_bag(0.9), [0.0, 1.0]),
    (one_bag(0.9), [3.0, 0.0]),
    (one_bag(0.9), [3000.0, 0.0]),  # the selected token ties with its neighbour, the third has underflowed
    (one_bag(0.0), [0.0, -1.0]),
    (three_bags(), [0.0, 0.0]),
    (two_limits(), [2.0, 0.0]),
    (two_scores(100.0), [0.0, 0.0]),
    (two_scores(5.0, Correlation()), [0.0, 0.0]),
    (two_scores(3.0, Exponential()), [1.0, 1.0]),
    (tied(0), np.zeros(20)),
]


def alone(problem, step, start, steps):
    return run(Descent(problem, step), np.array(start, float), steps).state.p


@pytest.mark.parametrize("problem, start", KNOWN)
def test_known_problems_as_by_themselves(problem, start):
    starts = np.array([start, np.array(start) + 0.5], float)
    found = Stack.repeated(problem, 2).descend(600, 0.1, start=starts)
    assert_allclose(found, [alone(problem, Normalised(0.1), one, 600) for one in starts], rtol=0, atol=1e-9)


@pytest.mark.parametrize("d", [2, 5, 10, 30])
def test_random_problems_as_by_themselves(d):
    problems = [on_span(spheres(seed, d)) for seed in range(4)]
    found = Stack.of(problems).descend(1000)
    expected = [alone(problem, Normalised(1.0), np.zeros(problem.keys.dim), 1000) for problem in problems]
    assert_allclose(found, expected, rtol=0, atol=1e-9)


def test_floors_and_plain_steps_as_by_themselves():
    problem, starts = three_bags(), np.array([[1.0, 0.0], [-1.5, 0.0]])
    trials = Stack.repeated(problem, 2)
    floored = [alone(problem, Normalised(0.1, floor=1e-12), start, 600) for start in starts]
    assert_allclose(trials.descend(600, 0.1, start=starts, floor=1e-12), floored, rtol=0, atol=1e-9)
    plain = [alone(problem, Plain(1.0), start, 600) for start in starts]
    assert_allclose(trials.descend(600, 1.0, start=starts, plain=True), plain, rtol=0, atol=1e-9)


def test_the_span_keeps_norms_and_angles():
    whole, part = spheres(3, 60), on_span(spheres(3, 60))
    assert part.keys.dim == 20
    p, q = (alone(one, Normalised(1.0), np.zeros(one.keys.dim), 300) for one in (whole, part))
    assert_allclose(p @ whole.span.T, q, atol=1e-9)
    assert np.linalg.norm(p) == pytest.approx(np.linalg.norm(q), abs=1e-9)
    small = spheres(3, 5)
    assert on_span(small) is small


@given(st.integers(0, 10**6), st.sampled_from([0.0, 1.0, 30.0, 1e3, 1e5]), st.booleans())
def test_gradients_as_by_themselves(seed, size, with_ties):
    """Directions and logarithms of lengths, near and far, with scores that tie and without."""
    rng = np.random.default_rng(seed)
    m, n, T, d = 3, 2, 4, 3
    scores = rng.integers(0, 3, (m, n * T)).astype(float) if with_ties else rng.normal(size=(m, n * T))
    loss = [Logistic(), Exponential(), Correlation()][seed % 3]
    problems = [Problem.of(Bags.of(rng.normal(size=(n, T, d))), scores[k], loss) for k in range(m)]
    p = size * rng.normal(size=(m, d))
    unit, log_length = Stack.of(problems).descents(p)
    for k, problem in enumerate(problems):
        (down,) = problem.descent(problem.read((p[k],)), (p[k],))
        if not np.isfinite(down.log):
            assert log_length[k] == -np.inf
            assert not unit[k].any()
            continue
        assert_allclose(unit[k], down.unit, atol=1e-9)
        assert log_length[k] == pytest.approx(down.log, abs=1e-8)


def test_a_flat_loss_does_not_move():
    flat = Problem.of(Bags.of([[[1.0], [2.0]]]), np.ones(2))
    assert Stack.of([flat, flat]).descend(5).tolist() == [[0.0], [0.0]]


def test_a_flat_bag_does_not_silence_the_others():
    """One bag has a single score, in the other everything happens at exp(-900)."""
    keys = Bags.of([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 0.0]]])
    problem = Problem.of(keys, np.array([2.0, 2.0, 1.0, 0.0]))
    unit, log_length = Stack.of([problem]).descents(np.array([[900.0, 0.0]]))
    assert_allclose(unit, [[1.0, 0.0]])
    assert log_length[0] == pytest.approx(-900 - np.log(2) - np.logaddexp(0, 1))


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: Stack.of([one_bag(0.0), three_bags()]), "Stack.of: `problems` must be problems of one loss"),
        (
            lambda: Stack.of([Problem.of(Bags.of([[[1.0]], [[1.0], [2.0]]]), np.zeros(3))]),
            "all bags with as many tokens",
        ),
        (lambda: Stack.of([one_bag(0.0)]).descend(-1), "`steps` must be a whole number of at least 0"),
        (lambda: Stack.of([one_bag(0.0)]).descend(1, 0.0), "`eta` must be a finite number above 0"),
        (lambda: Stack.of([one_bag(0.0)]).descend(1, floor=-1.0), "`floor` must be a finite number of at least 0"),
        (lambda: Stack.of([one_bag(0.0)]).descend(1, start=np.zeros(2)), r"one vector a problem; saw 'shape \(2,\)'"),
    ],
)
def test_refusals(make, message):
    with pytest.raises(InputError, match=message):
        make()
