"""Problems of cross-attention with known answers: data of the published experiments, and random ones of the kind."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.bags import Bags, Vector
from ..core.cross_attention import CrossProblem
from ..core.selection_loss import scores_of

__all__ = ["cross_spheres", "few_tokens", "linear_start", "more_tokens", "on_sphere"]

# fmt: off
# torch.randn of (2), (2, 3, 2) and (2, 2) after torch.manual_seed(1), and of (2), (2, 5, 2) and (2, 2) after seed 3,
# in single precision, as the published notebooks draw them: the head, the tokens and the queries
SEED_1 = np.array([
    0.66135216, 0.2669241, 0.06167726, 0.6213173, -0.45190597, -0.16613023, -1.5227685, 0.38168392, -1.0276086,
    -0.5630528, -0.89229053, -0.058250178, -0.19550958, -0.96563596, 0.42241532, 0.267317, -0.42119515, -0.5107,
], np.float32)
SEED_3 = np.array([
    0.80327606, 0.17483339, 0.6648394, -0.2867803, 1.6205508, -1.596708, 0.40460718, 0.61129963, 0.76039034,
    -0.03364326, -0.34484532, 0.49365357, -0.07758075, -1.8053645, 0.48511407, 0.20523438, 0.33842817, 1.352754,
    0.37363538, 0.013416479, 0.7736732, -0.10924352, -0.6779622, -1.0591074, 0.74769664, 0.23891741,
], np.float32)
# fmt: on


def few_tokens() -> CrossProblem:
    """Two inputs of three tokens in the plane, about (-1, 0) and (1, 0), labels +1; seed 1, as published."""
    v, x, z = SEED_1[:2], np.float32(0.3) * SEED_1[2:14].reshape(2, 3, 2), SEED_1[14:].reshape(2, 2)
    x[:, :, 0] += np.array([[-1], [1]], np.float32)
    return _in_plane(v, x, z)


def more_tokens() -> CrossProblem:
    """Two inputs of five tokens, the first at (1, 0.5) or (1, -0.5), the others about (-1, 0); seed 3, as published."""
    v, x, z = SEED_3[:2], np.float32(0.5) * SEED_3[2:22].reshape(2, 5, 2), SEED_3[22:].reshape(2, 2)
    x[:, 0] = [[1, 0.5], [1, -0.5]]
    x[:, 1:, 0] -= np.float32(1)
    return _in_plane(v, x, z)


def _in_plane(v: NDArray[Any], x: NDArray[Any], z: NDArray[Any]) -> CrossProblem:
    values = Bags.of(x.astype(np.float64))
    units = z / np.linalg.norm(z, axis=1, keepdims=True)
    return CrossProblem(values, units.astype(np.float64), scores_of(np.ones(2), values, v / np.linalg.norm(v)))


def on_sphere(rng: np.random.Generator, *shape: int) -> Vector:
    """Vectors of length 1, uniform.

    >>> np.linalg.norm(on_sphere(np.random.default_rng(0), 2, 3, 4), axis=-1).round(12).tolist()
    [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]
    """
    x = rng.normal(size=shape)
    return np.asarray(x / np.linalg.norm(x, axis=-1, keepdims=True))


def cross_spheres(rng: np.random.Generator, n: int, T: int, d: int, self_attention: bool = False) -> CrossProblem:
    """Head, tokens and queries uniform on the sphere, labels +-1; or the first token of each input as its query."""
    v, x, z = on_sphere(rng, d), on_sphere(rng, n, T, d), on_sphere(rng, n, d)
    values = Bags.of(x)
    return CrossProblem(values, x[:, 0] if self_attention else z, scores_of(rng.choice([-1, 1], n), values, v))


def linear_start(rng: np.random.Generator, d: int, e: int) -> Vector:
    """Where a linear layer of e inputs begins by default: uniform between +-1/sqrt(e)."""
    return rng.uniform(-1, 1, (d, e)) / np.sqrt(e)
