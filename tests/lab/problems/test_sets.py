"""Heads against differences and brute force; their loss far out against hundreds of digits."""

import re
from decimal import Context, Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from keytokens.base.errors import InputError
from keytokens.lab.descent import Descent, Normalised, Run, flow
from keytokens.lab.problems.heads import Linear, Quadratic, Tanh
from keytokens.lab.problems.losses import Correlation, Exponential, Logistic
from keytokens.lab.problems.problem import Problem
from keytokens.lab.problems.scores import scores_of
from keytokens.lab.problems.sets import Limit, optimal_sets
from keytokens.lab.svm import MarginProblem, solve
from keytokens.model.ragged import Bags, softmax

from .given import Given

V = np.array([0.7, -0.4, 1.1])
PRODUCT = Given(lambda z: z[:, 0] * z[:, 1] + z[:, 2], lambda z: np.stack([z[:, 1], z[:, 0], np.ones(len(z))], axis=1))
HEADS = [Linear(V), Tanh(V), Quadratic(V, 0.015625), Quadratic(V, -0.015625), PRODUCT]
# psi = z1 z2 + z3 is 1 all along the line between the first two tokens of either bag, and lower at the others
LINES = np.array(
    [
        [[0.0, 0.0, 1.0], [1.0, 0.0, 1.0], [-0.5, 0.3, 0.5], [0.4, -1.0, 0.0]],
        [[0.0, 0.0, 1.0], [0.0, 1.0, 1.0], [0.5, 0.2, 0.1], [0.5, -0.1, 0.0]],
    ]
)


def random_problem(seed: int, head, n: int = 3, T: int = 4, d: int = 12, loss=None) -> Problem:
    """Two tokens of each bag equal in value, and keys of their own."""
    rng = np.random.default_rng(seed)
    values, labels = rng.normal(size=(n, T, 3)), rng.choice([-1, 1], n)
    keys = rng.normal(size=(n, T, d))
    for i in range(n):
        best = int((labels[i] * head.value(values[i])).argmax())
        values[i, (best + 1) % T] = values[i, best]
    return Problem.with_sets(labels, values, head, keys, loss=loss)


def log_gap(problem: Problem, p: np.ndarray) -> float:
    return problem.gap(problem.read((p,))).log


def shared(problem: Problem) -> np.ndarray:
    """A direction in which the sets win and their tokens share the attention."""
    return solve(MarginProblem.from_sets(problem.keys, problem.sets)).p


def slope(problem: Problem, p: np.ndarray) -> np.ndarray:
    """The gradient of log(L - L*)."""
    reading = problem.read((p,))
    (down,), gap = problem.descent(reading, (p,)), problem.gap(reading)
    return -down.array * np.exp(down.log_scale - gap.log)


# Heads


@pytest.mark.parametrize("head", HEADS, ids=lambda head: head.name)
def test_gradients_are_derivatives(head):
    z = np.random.default_rng(0).normal(size=(6, 3))
    numeric = [(head.value(z + h) - head.value(z - h)) / 2e-6 for h in 1e-6 * np.eye(3)]
    assert_allclose(head.gradient(z), np.transpose(numeric), atol=1e-8)
    rows, inner = head.seen(z)
    assert_allclose(inner.value(rows), head.value(z), atol=1e-15)


def test_the_slope_of_tanh_keeps_its_digits():
    assert Tanh(np.ones(1)).gradient(np.array([[30.0]]))[0, 0] == pytest.approx(4 * np.exp(-60), rel=1e-12)


@given(st.integers(0, 2**32 - 1), st.sampled_from(HEADS[:4]), st.sampled_from([-1.0, 1.0]), st.floats(0.1, 3))
def test_no_attention_falls_by_more_or_less_than_the_bounds(seed, head, sign, size):
    rng = np.random.default_rng(seed)
    tokens = size * rng.normal(size=(4, 3))
    least, most = head.fall(sign, tokens[0], tokens[1:])
    q = np.concatenate([rng.random(200), [1e-6, 1.0, 1.0, 1.0]])[:, None]
    y = np.concatenate([rng.dirichlet(np.ones(3), 201), np.eye(3)]) @ tokens[1:]
    seen = sign * (head.value(tokens[:1]) - head.value((1 - q) * tokens[0] + q * y)) / q[:, 0]
    assert least - 1e-8 <= seen.min()
    assert seen.max() <= most + 1e-8
    if head.name == "linear":
        assert (seen[-3:].min(), seen[-3:].max()) == pytest.approx((least, most))


def test_the_best_tokens_with_ties():
    values = Bags.of([[[1.0, 5.0], [0.0, 0.0], [1.0, 7.0]], [[1.0, 0.0], [2.0, 0.0]]])
    head = Linear(np.array([1.0, 0.0]))
    assert optimal_sets([1, -1], values, head) == [[0, 2], [0]]
    assert optimal_sets([-1, 1], values, Tanh(head.v)) == [[1], [1]]


# The loss


@pytest.mark.parametrize("loss", [Logistic(), Exponential(), Correlation()], ids=lambda loss: loss.name)
@pytest.mark.parametrize("size", [1.0, 10.0, 1e3, 1e5])
def test_a_linear_head_is_the_problem_of_its_scores(loss, size):
    rng = np.random.default_rng(1)
    values, keys = Bags.of(rng.normal(size=(4, 5, 3))), Bags.of(rng.normal(size=(4, 5, 6)))
    labels, p = [1, -1, -1, 1], size * rng.normal(size=6)
    head, plain = Problem.with_sets(labels, values, Linear(V), keys, loss=loss), scores_of(labels, values, V)
    one, two = head.read((p,)), (other := Problem.of(keys, plain, loss)).read((p,))
    assert one.value == pytest.approx(two.value, rel=1e-14)
    assert head.gap(one).log == pytest.approx(other.gap(two).log, rel=1e-13, abs=1e-13)
    assert one.excess(one.selected).log == pytest.approx(two.excess(two.selected).log, rel=1e-13, abs=1e-13)
    (down,), (same,) = head.descent(one, (p,)), other.descent(two, (p,))
    assert_allclose(down.unit, same.unit, atol=1e-13)
    assert down.log == pytest.approx(same.log, rel=1e-13, abs=1e-13)


@pytest.mark.parametrize("head", HEADS[1:3], ids=lambda head: head.name)
@pytest.mark.parametrize("seed", range(3))
def test_value_and_gradient_are_those_of_the_formula(head, seed):
    problem, p = random_problem(seed, head), np.random.default_rng(seed).normal(size=12)
    reading = problem.read((p,))
    s = softmax(problem.keys, problem.keys.rows @ p)
    f = problem.labels * problem.head.value(problem.values.sum(s[:, None] * problem.values.rows))
    assert_allclose(reading.margins, f, atol=1e-13)
    assert reading.value == pytest.approx(np.mean(np.log1p(np.exp(-f))), rel=1e-13)
    assert np.exp(reading.above_limit.log) == pytest.approx(
        reading.value - np.mean(np.log1p(np.exp(-problem.nu))), rel=1e-11
    )
    assert_allclose(np.exp(reading.log_outside), problem.keys.sum(np.where(problem.inside, 0.0, s)), atol=1e-15)
    (down,) = problem.descent(reading, (p,))
    values = [[problem.read((p + t * h,)).value for h in 1e-6 * np.eye(12)] for t in (1, -1)]
    assert_allclose(down.plain, -np.subtract(*values) / 2e-6, atol=1e-8)


def tanh_digits(z: list[Decimal]) -> Decimal:
    e = (2 * z[0]).exp()
    return (e - 1) / (e + 1)


def quadratic_digits(z: list[Decimal]) -> Decimal:
    linear = sum(x * Decimal(float(v)) for x, v in zip(z, V, strict=True))
    return linear - Decimal("0.015625") * sum(x * x for x in z)


def product_digits(z: list[Decimal]) -> Decimal:
    return z[0] * z[1] + z[2]


def gap_digits(problem: Problem, psi, p: list[Decimal]) -> Decimal:
    """L - L* from the definition, logistic loss."""
    total = Decimal(0)
    for i in range(len(problem.keys)):
        at = slice(problem.keys.starts[i], problem.keys.starts[i + 1])
        logits = [sum(Decimal(float(k)) * x for k, x in zip(row, p, strict=True)) for row in problem.keys.rows[at]]
        weights = [(a - max(logits)).exp() for a in logits]
        inner = [w if into else Decimal(0) for w, into in zip(weights, problem.inside[at], strict=True)]
        values = [[Decimal(float(x)) for x in row] for row in problem.values.rows[at]]
        margins = []
        for share in (weights, inner):
            z = [
                sum(w * row[j] for w, row in zip(share, values, strict=True)) / sum(share)
                for j in range(len(values[0]))
            ]
            margins.append(Decimal(int(problem.labels[i])) * psi(z))
        total += (1 + (-margins[0]).exp()).ln() - (1 + (-margins[1]).exp()).ln()
    return total / len(problem.keys)


def lines(seed: int) -> Problem:
    return Problem.with_sets([1, 1], LINES, PRODUCT, np.random.default_rng(seed).normal(size=(2, 4, 12)), [[0, 1]] * 2)


DIGITS = [(Tanh(V), tanh_digits), (Quadratic(V, 0.015625), quadratic_digits), (PRODUCT, product_digits)]


@pytest.mark.parametrize("head, psi", DIGITS, ids=[head.name for head, _ in DIGITS])
@pytest.mark.parametrize("size", [1.0, 10.0, 200.0])
def test_far_out_gap_and_gradient_are_those_of_many_digits(head, psi, size):
    problem = lines(0) if head is PRODUCT else random_problem(2, head)
    p = shared(problem) if size > 1 else np.ones(12)
    p = size * p / np.linalg.norm(p) + 0.1 * np.random.default_rng(0).normal(size=12)
    with localcontext(Context(prec=400, Emin=-(10**9), Emax=10**9)):
        point, h = [Decimal(float(x)) for x in p], Decimal("1e-80")
        here = gap_digits(problem, psi, point)
        assert here > 0
        assert log_gap(problem, p) == pytest.approx(float(here.ln()), rel=1e-12, abs=1e-12 * size)
        slopes = [
            (gap_digits(problem, psi, [x + h * (k == j) for k, x in enumerate(point)]) - here) / h / here
            for j in range(12)
        ]
    exact = np.array([float(x) for x in slopes])
    tolerance = 1e-9 if problem.limit is Limit.TESTED else 1e-11 * size
    assert_allclose(slope(problem, p), exact, atol=tolerance * np.abs(exact).max())
    if size == 200:
        assert float(here.ln()) < -30


@pytest.mark.parametrize("size", [1e3, 1e5])
@pytest.mark.parametrize("make", [lambda: random_problem(2, Tanh(V)), lambda: lines(0)], ids=["tanh", "product"])
def test_farther_than_any_float_the_gradient_is_that_of_the_logarithm(make, size):
    problem = make()
    p = size * shared(problem) / np.linalg.norm(shared(problem)) + 0.1
    assert log_gap(problem, p) < -0.1 * size
    numeric = [(log_gap(problem, p + h) - log_gap(problem, p - h)) / 2e-3 for h in 1e-3 * np.eye(12)]
    assert_allclose(slope(problem, p), numeric, atol=1e-5)


def test_values_that_tie_up_to_rounding_tie():
    """Scores of tied tokens differ in the last bit; attention within the set must not follow that bit."""
    values, keys = [[[0.1 + 0.2], [0.3], [0.0]]], np.random.default_rng(0).normal(size=(1, 3, 4))
    assert values[0][0] != values[0][1]
    problem = Problem.with_sets([1], values, Linear(np.ones(1)), keys)
    assert problem.sets == ((0, 1),)
    assert problem.limit is Limit.EXACT
    for size in (1.0, 300.0, 1e4):
        p = size * shared(problem) / np.linalg.norm(shared(problem))
        numeric = [(log_gap(problem, p + h) - log_gap(problem, p - h)) / 2e-3 for h in 1e-3 * np.eye(4)]
        assert_allclose(slope(problem, p), numeric, atol=1e-6)
        reading = problem.read((p,))  # the limit is the loss on any one token of the set
        assert reading.excess(reading.selected).log == pytest.approx(log_gap(problem, p), rel=1e-12)


def test_a_limit_that_is_tested_not_proved():
    assert lines(0).limit is Limit.TESTED
    assert Limit.TESTED.value.startswith("tested, not proved")


# Descents under a head


@pytest.mark.parametrize("head", [Tanh(V), Quadratic(V, 0.015625)], ids=lambda head: head.name)
def test_flow_and_descent_come_to_the_max_margin_direction(head):
    rng = np.random.default_rng(4)
    labels, values, keys = rng.choice([-1, 1], 3), rng.normal(size=(3, 4, 3)), rng.normal(size=(3, 4, 8))
    problem = Problem.with_sets(labels, values, head, keys)
    target = solve(MarginProblem.from_selection(keys, [tokens[0] for tokens in problem.sets]))
    begin = target.p / target.norm
    record = Run.of(Descent(problem, Normalised(0.5)), begin, 600)
    for end in (flow(problem, begin, 1e3).state, record.end):
        assert target.distance(end.p) < 1e-4
        assert end.reading.attention[end.reading.selected].min() > 1 - 1e-9
    assert record["log_excess"][-1] < -100
    assert record["excess_sign"][-1] == 1


# Refusals

VALUES, KEYS = [[[1.0], [1.0], [0.0]]], [[[1.0], [-1.0], [0.0]]]
ONE = Linear(np.ones(1))
REFUSED = [
    (
        lambda: Problem.with_sets([1], VALUES, ONE, [[[1.0]]]),
        "`keys` must have as many tokens in each bag as the values",
    ),
    (
        lambda: Problem.with_sets([2], VALUES, ONE),
        "Problem.with_sets: `labels` must be -1 or +1 for each of the 1 bags",
    ),
    (lambda: Problem.with_sets([1], VALUES, ONE, sets=[{0, 1, 2}]), "`sets` must leave a token outside in some bag"),
    (lambda: Problem.with_sets([1], VALUES, ONE, sets=[{3}]), "`sets[0]` must hold indices below 3"),
    (
        lambda: Problem.with_sets([1], VALUES, ONE, sets=[{0, 2}]),
        "`sets[0]` must hold tokens that the head does not tell apart: else L* depends on how they share attention; "
        "saw 'psi from 0 to 1 between them'. Give smaller sets.",
    ),
    (
        lambda: Problem.with_sets(
            [1], [[[0.0], [1.0], [-2.0]]], Given(lambda z: (z * (1 - z))[:, 0], lambda z: 1 - 2 * z), sets=[{0, 1}]
        ),
        "psi from 0 to 0.2",  # equal at both tokens, higher between them
    ),
    (
        lambda: Problem.with_sets([1], VALUES, ONE, sets=[{2}]),
        "`sets[0]` must hold the tokens that are best under the head: attention outside of it must lose to first order"
        "; saw 'a slope of 1 towards token 0'. Add the token, or give other sets.",
    ),
    (
        lambda: Problem.with_sets([1], VALUES, Given(lambda z: z[:, 0], lambda z: 2 * np.ones_like(z))),
        "`head` must have a gradient that is the derivative of its values; saw '[2.0] beside differences [1.0]'.",
    ),
    (
        lambda: Problem.with_sets([1], VALUES, Given(lambda z: z[:, 0], lambda z: np.ones(3))),
        "`head` must give values (n,) and gradients (n, 1) of points (n, 1); saw 'gradients of shape (3,), differ",
    ),
    (
        lambda: Problem.with_sets([1], VALUES, Linear(np.ones(2))),
        "`head` must give values (n,) and gradients (n, 1) of points (n, 1); saw",
    ),
]


@pytest.mark.parametrize("make, message", REFUSED, ids=[message[:40] for _, message in REFUSED])
def test_refusals(make, message):
    with pytest.raises(InputError, match=re.escape(message)):
        make()
