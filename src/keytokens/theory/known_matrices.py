"""Problems of cross-attention with known answers: data of the published experiments, and random ones of the kind."""

from __future__ import annotations

import numpy as np

from ..core.bags import Bags, Vector
from ..core.cross_attention import CrossProblem
from ..core.selection_loss import scores_of
from .torch_randn import torch_normals

__all__ = ["cross_spheres", "few_tokens", "linear_start", "more_tokens", "on_sphere"]


def few_tokens() -> CrossProblem:
    """Two inputs of three tokens in the plane, about (-1, 0) and (1, 0), labels +1; seed 1, as published."""
    draw = torch_normals(1)
    v, x, z = draw(2), 0.3 * draw(2, 3, 2), draw(2, 2)
    x[:, :, 0] += np.array([[-1], [1]], np.float32)
    return _in_plane(v, x, z)


def more_tokens() -> CrossProblem:
    """Two inputs of five tokens, the first at (1, 0.5) or (1, -0.5), the others about (-1, 0); seed 3, as published."""
    draw = torch_normals(3)
    v, x, z = draw(2), 0.5 * draw(2, 5, 2), draw(2, 2)
    x[:, 0] = [[1, 0.5], [1, -0.5]]
    x[:, 1:, 0] -= np.float32(1)
    return _in_plane(v, x, z)


def _in_plane(v: Vector, x: Vector, z: Vector) -> CrossProblem:
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
