"""Problems with known answers: the data of the published experiments, and random ones of the same kind."""

from __future__ import annotations

import numpy as np

from ..core.bags import Bags
from ..core.margin_losses import Logistic, MarginLoss
from ..core.selection_loss import JointProblem, SelectionProblem, scores_of

__all__ = ["GMM", "LMM", "STARTS", "joint", "one_bag", "spheres", "three_bags", "tied", "two_limits", "two_scores"]

# of one_bag: the globally and, with third = 0, the locally optimal max-margin direction; starts (0, y) of both
GMM = np.array([-10.0, 100.0]) / 101
LMM = np.array([1.0, 0.0])
STARTS = (1.0, 0.5, 0.0, -0.5, -1.0, -1.5)
# fmt: off
# torch.randn(3, 7, 3)[:, :, :2] after torch.manual_seed(0), in single precision, as the published notebook draws it
NORMALS = np.array([
    -1.1258398, -1.1523602, -0.43387884, 0.8487103, -0.31601277, -2.1152194, -1.2633348, 0.3499832, 0.1198415,
    1.237658, -0.24727815, -1.3526537, 0.5666506, 0.79350835, -1.5550951, -0.3413604, 0.7501895, -0.58549756,
    0.18347794, 1.3893661, 0.94629836, -0.84367675, 0.03159274, -0.49267697, 0.43969584, 0.112411186,
    0.44115627, -0.10230965, -0.2896677, 0.052507486, 2.3022053, -1.4688939, -0.5692481, 0.9199714, 1.2898741,
    -1.4781742, -0.4731198, 1.3252748, -0.54974365, -0.47983426, -1.0669804, 1.1149396,
], np.float32).reshape(3, 7, 2)
# fmt: on


def one_bag(third: float) -> SelectionProblem:
    """One input, three tokens: Fig 1(a) with third = 0.9, Fig 1(b) with third = 0."""
    return SelectionProblem(Bags.of([[[-0.1, 1], [1, 0], [0, 0]]]), np.array([1.0, 0.9, third]))


def three_bags() -> SelectionProblem:
    """Fig 1(c): three inputs with seven tokens, the first of each the best."""
    x = 0.2 * NORMALS.astype(np.float64)
    x[:, 0] += [1, 0]
    x[:, 1:4] += [-1, 1]
    x[:, 4:] += [-0.5, -0.5]
    scores = np.full((3, 7), 0.5)
    scores[:, 0] = 1
    return SelectionProblem(Bags.of(x), scores.ravel())


def two_scores(C: float, loss: MarginLoss | None = None) -> SelectionProblem:
    """Fig 5: two inputs whose good tokens have scores C and 1."""
    keys = Bags.of([[[0, 0], [1, 1]], [[0, 0], [1, -1]]])
    return SelectionProblem(keys, np.array([0.0, C, 0.0, 1.0]), loss or Logistic())


def two_limits() -> SelectionProblem:
    """Fig 8 in spirit: two inputs, two limits (1, 3) and (1, 0)."""
    return SelectionProblem(Bags.of([[[1, 0], [0, 0]], [[-2, 1], [0, 0]]]), np.array([1.0, 0.0, 1.0, 0.0]))


def joint(third: tuple[float, float]) -> JointProblem:
    """Fig 3: three inputs, each with a zero token and one other."""
    x = Bags.of([[[0, 0], [1, 1]], [[0, 0], [1, -1]], [[0, 0], third]])
    return JointProblem(np.array([1.0, -1.0, 1.0]), x, x)


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
