"""Along every run attention comes to rest on one token a bag, whatever is trained and by whatever method; p and W walk
together; labels, values and keys may be any triple."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse

from keytokens.lab.descent import Descent, Growing, Normalised, Plain, Polyak, flow, power, run
from keytokens.lab.problems.geometry import misalignment
from keytokens.lab.problems.heads import Tanh
from keytokens.lab.problems.losses import Correlation, Exponential, Logistic
from keytokens.lab.problems.problem import Problem
from keytokens.lab.problems.scores import scores_of
from keytokens.model.ragged import Bags, softmax

from .least_distance import max_margin


def bags(seed: int = 0) -> tuple[Bags, Bags, np.ndarray, np.ndarray]:
    """Values and keys of their own (dimensions 3 and 9), labels and a head."""
    rng = np.random.default_rng(seed)
    sizes = (4, 3, 5)
    values, keys = (Bags.of([rng.normal(size=(T, d)) for T in sizes]) for d in (3, 9))
    return values, keys, np.array([1.0, -1.0, 1.0]), rng.normal(size=3)


def on_p() -> tuple:
    values, keys, labels, v = bags()
    return Problem.of(keys, scores_of(labels, values, v)), np.zeros(9)


def on_W() -> tuple:
    values, keys, labels, v = bags()
    return Problem.cross(keys, [1.0, -2.0], scores_of(labels, values, v)), np.zeros((9, 2))


def on_both() -> tuple:
    values, keys, labels, v = bags()
    return Problem.joint(labels, values, keys), (v, np.zeros(9))


def on_vocabulary() -> tuple:
    rng = np.random.default_rng(3)
    counts = np.zeros((5, 8))  # no token occurs under both labels, which would want it both ways
    for i, row in enumerate(counts):
        row[rng.choice(4, 3, replace=False) + 4 * (i % 2)] = rng.integers(1, 4, 3)
    E, v = rng.normal(size=(8, 12)), rng.normal(size=12)
    return Problem.vocabulary(E, sparse.csr_matrix(counts), np.array([1, -1, 1, -1, 1]), v), np.zeros(12)


def under_a_head() -> tuple:
    values, keys, labels, v = bags()
    return Problem.with_sets(labels, values, Tanh(v), keys), np.zeros(9)


TRAINED = [on_p, on_W, on_both, on_vocabulary, under_a_head]
METHODS = {
    "plain": (Plain(2.0), (100, 500, 2500), 0.15),
    "normalised": (Normalised(0.2), (50, 150, 500), 1e-6),
    "decaying": (Normalised(power(1.0, 0.5)), (50, 150, 500), 1e-4),
    "growing": (Growing(0.1), (50, 150, 500), 1e-12),
    "polyak": (Polyak(cap=2.0), (20, 60, 200), 1e-3),
}


@pytest.mark.parametrize("make", TRAINED, ids=lambda make: make.__name__)
@pytest.mark.parametrize("method", METHODS)
def test_the_attention_outside_the_selection_goes_to_zero(make, method):
    problem, start = make()
    step, times, last = METHODS[method]
    seen = {}
    run(Descent(problem, step), start, times[-1], lambda state: seen.update({state.t: state}))
    selected = seen[times[-1]].reading.selected
    kept = [seen[t].reading.log_attention[selected].min() for t in times]
    assert kept[0] < kept[1] < kept[2] or (kept[1] > -1e-14 and kept[2] > -1e-14)
    assert kept[2] > -last


@pytest.mark.parametrize("make", TRAINED, ids=lambda make: make.__name__)
def test_along_the_flow_too(make):
    problem, start = make()
    states = []
    end = flow(problem, start, 60.0, states.append).state
    kept = [state.reading.log_attention[end.reading.selected].min() for state in states]
    assert kept[-1] > -5e-3
    assert kept[-1] > kept[len(kept) // 2] > kept[0]


@settings(max_examples=25)
@given(
    st.integers(0, 2**32 - 1),
    st.lists(st.floats(0.001, 30.0), min_size=5, max_size=40),
    st.sampled_from([Logistic(), Exponential(), Correlation()]),
    st.integers(1, 5),
)
def test_lemma_1_for_any_steps(seed, steps, loss, rows):
    """Gradient descent on W with steps eta_t / |u|^2 from p(0)u'/|u|^2 stays p(t)u'/|u|^2."""
    rng = np.random.default_rng(seed)
    values = Bags.of([rng.normal(size=(T, 3)) for T in rng.integers(1, 5, 4)])
    scores, u, p = rng.normal(size=len(values.rows)), rng.normal(size=rows), rng.normal(size=3)
    ps, Ws = [], []
    by_p = Descent(Problem.of(values, scores, loss), Plain(lambda t: steps[t - 1]))
    by_W = Descent(Problem.cross(values, u, scores, loss), Plain(lambda t: steps[t - 1] / (u @ u)))
    run(by_p, p, len(steps), lambda state: ps.append(state.p))
    run(by_W, np.outer(p, u) / (u @ u), len(steps), lambda state: Ws.append(state.p))
    assert len(ps) == len(Ws)
    for one, other in zip(ps, Ws, strict=True):
        size = 1 + np.linalg.norm(one)
        assert_allclose(other @ u, one, atol=1e-10 * size)
        assert_allclose(other, np.outer(one, u) / (u @ u), atol=1e-10 * size / np.linalg.norm(u))


@pytest.mark.parametrize("seed", range(4))
def test_any_labels_values_and_keys(seed):
    """f_i = v'X_i's_i by the definition, with keys that have nothing to do with the values; and the limit is theirs."""
    values, keys, labels, v = bags(seed)
    problem, p = Problem.of(keys, scores_of(labels, values, v)), np.random.default_rng(seed).normal(size=9)

    def loss(p: np.ndarray) -> float:
        s = softmax(keys, keys.rows @ p)
        f = [v @ values[i].T @ s[keys.starts[i] : keys.starts[i + 1]] for i in range(3)]
        return float(np.mean(np.log1p(np.exp(-labels * np.array(f)))))

    assert problem.read((p,)).value == pytest.approx(loss(p), rel=1e-13)
    (down,) = problem.descent(problem.read((p,)), (p,))
    numeric = [(loss(p + h) - loss(p - h)) / 2e-6 for h in 1e-6 * np.eye(9)]
    assert_allclose(down.plain, -np.array(numeric), atol=1e-8)
    end = flow(problem, 0.1 * p, 1e3).state
    assert misalignment(end.p, max_margin(keys, end.reading.selection)) < 1e-4
