"""Numbers of the figures of mirror descent, by another road."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from keytokens.lab.claims.instances import cross_spheres, two_inputs
from keytokens.lab.descent.stack import Stack
from keytokens.lab.figures import figures
from keytokens.lab.figures.mirrors import STEPS, divergences, targets_of
from keytokens.lab.problems.geometry import divergence

from .made import made


def test_joint_training_in_plain_numbers():
    """v and W by the textbook gradients, as long as these are numbers: 100 steps, q = 3."""
    data = two_inputs()
    X, Z, y = data.values.rows.reshape(2, 3, 2), data.queries, data.labels
    v, W = np.zeros(2), np.zeros((2, 2))

    def attend(v, W):
        a = np.einsum("itj,jk,ik->it", X, W, Z)
        s = np.exp(a - a.max(axis=1, keepdims=True))
        s /= s.sum(axis=1, keepdims=True)
        gamma = y[:, None] * (X @ v)
        return s, gamma, (s * gamma).sum(axis=1)

    def moved(x, down):
        size = np.sum(np.abs(down) ** 1.5) ** (2 / 3)
        mirrored = np.sign(x) * x**2 + (0.1 * down / size if size else 0.0)
        return np.sign(mirrored) * np.sqrt(np.abs(mirrored))

    for _ in range(100):
        s, gamma, margin = attend(v, W)
        pull = 1 / (1 + np.exp(margin)) / 2
        down_v = np.einsum("i,i,it,itj->j", pull, y, s, X)
        down_W = np.einsum("i,it,itj,ik->jk", pull, s * (gamma - margin[:, None]), X, Z)
        v, W = moved(v, down_v), moved(W, down_W)
    s, _, margin = attend(v, W)
    runs = made("mirror-joint").tables["runs"]
    at = (runs["q"] == "3") & (runs["t"] == 100)
    assert_allclose(runs["attention"][at], s.max(axis=1).mean(), rtol=1e-9)
    assert_allclose(runs["probability"][at], np.mean(1 / (1 + np.exp(-margin))), rtol=1e-9)


def test_targets_are_of_what_a_run_selects():
    problems = [cross_spheres(np.random.default_rng(seed), 3, 4, 3) for seed in range(3)]
    trials = Stack.of(problems)
    (W,) = trials.mirror_path(2.0, [300], np.zeros((3, 9)), 0.1)
    targets = targets_of(trials, W)
    for k, row in enumerate(targets):
        assert [found.measure.q for found in row] == list(STEPS)
        keys = problems[k].keys
        assert keys.argmax(keys.rows @ row[1].p).tolist() == keys.argmax(keys.rows @ W[k]).tolist()
    away = divergences(targets, W, 2.0)
    assert away.shape == (3, 3)
    assert away[1, 2] == pytest.approx(divergence(targets[1][2].p, W[1], 2.0))


def test_the_published_size_is_offered_where_a_sample_is_drawn(monkeypatch):
    figure = figures(["mirror-norms"])[0]
    asked = []
    monkeypatch.setattr("keytokens.lab.figures.mirrors._tables", lambda *sizes: asked.append(sizes))
    figure.compute(False)
    figure.full()
    assert [sum(runs.values()) for runs, _ in asked] == [100, 300]
    assert asked[1][1] == {1.75: 1500, 2.0: 2000, 3.0: 20_000}
