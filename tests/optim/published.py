"""The data of the published experiments, and the max-margin direction by a road of its own."""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

from keytokens.core.bags import Bags
from keytokens.core.selection_loss import JointProblem, Logistic, SelectionProblem, scores_of

from .torch_randn import torch_randn

GMM = np.array([-10.0, 100.0]) / 101
LMM = np.array([1.0, 0.0])
STARTS = (1.0, 0.5, 0.0, -0.5, -1.0, -1.5)


def one_bag(third: float) -> SelectionProblem:
    """One input, three tokens: Fig 1(a) with third = 0.9, Fig 1(b) with third = 0."""
    return SelectionProblem(Bags.of([[[-0.1, 1], [1, 0], [0, 0]]]), np.array([1.0, 0.9, third]))


def three_bags() -> SelectionProblem:
    """Fig 1(c): three inputs with seven tokens, the first of each the best."""
    x = 0.2 * torch_randn(0, 3, 7, 3).astype(np.float64)
    x[:, 0, :2] += [1, 0]
    x[:, 1:4, :2] += [-1, 1]
    x[:, 4:, :2] += [-0.5, -0.5]
    scores = np.full((3, 7), 0.5)
    scores[:, 0] = 1
    return SelectionProblem(Bags.of(x[:, :, :2]), scores.ravel())


def two_scores(C: float, loss=None) -> SelectionProblem:
    """Fig 5: two inputs whose good tokens have scores C and 1."""
    keys = Bags.of([[[0, 0], [1, 1]], [[0, 0], [1, -1]]])
    return SelectionProblem(keys, np.array([0.0, C, 0.0, 1.0]), loss or Logistic())


def two_limits() -> SelectionProblem:
    """Fig 8 in spirit: two inputs, two limits (1, 3) and (1, 0)."""
    return SelectionProblem(Bags.of([[[1, 0], [0, 0]], [[-2, 1], [0, 0]]]), np.array([1.0, 0.0, 1.0, 0.0]))


def joint(third: tuple[float, float]) -> JointProblem:
    """Fig 3: three inputs, each with a zero token and one other."""
    x = Bags.of([[[0, 0], [1, 1]], [[0, 0], [1, -1]], [[0, 0], third]])
    return JointProblem([1, -1, 1], x, x)


def tied(seed: int, n: int = 4, T: int = 5, d: int = 20) -> SelectionProblem:
    """Random keys; in each input one best token, all others with one score."""
    rng = np.random.default_rng(seed)
    keys = rng.normal(size=(n, T, d)) / np.sqrt(d)
    scores = np.where(np.arange(T) == 0, 1.0, 0.0) * np.ones((n, 1))
    return SelectionProblem(Bags.of(keys), scores.ravel())


def spheres(seed: int, d: int) -> SelectionProblem:
    """Fig 9: four inputs, six tokens, values (which are the keys) and head uniform on the sphere, random labels."""
    rng = np.random.default_rng(seed)
    x, v = rng.normal(size=(4, 6, d)), rng.normal(size=d)
    bags = Bags.of(x / np.linalg.norm(x, axis=-1, keepdims=True))
    return SelectionProblem(bags, scores_of(rng.choice([-1, 1], 4), bags, v / np.linalg.norm(v)))


def max_margin(keys: Bags, selection: np.ndarray) -> np.ndarray:
    """argmin |p| with p'(k_i,selected - k_it) >= 1, by Lawson and Hanson's least distance programme."""
    chosen = keys.chosen(selection)
    others = np.setdiff1d(np.arange(len(keys.rows)), chosen)
    A = keys.rows[chosen[keys.bag[others]]] - keys.rows[others]
    system, target = np.vstack([A.T, np.ones(len(A))]), np.append(np.zeros(keys.dim), 1.0)
    u, _ = nnls(system, target)
    # once the support is known the least norm point on it has all digits
    support = A[u > 1e-12 * u.max()]
    return np.linalg.pinv(support) @ np.ones(len(support))


def distance(p: np.ndarray, q: np.ndarray) -> float:
    """1 - cos, as half the squared distance of the unit vectors."""
    away = np.ravel(p) / np.linalg.norm(p) - np.ravel(q) / np.linalg.norm(q)
    return float(away @ away / 2)


def angle(p: np.ndarray) -> float:
    return float(np.degrees(np.arctan2(p[1], p[0])))
