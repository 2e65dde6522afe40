"""The data of published notebooks, drawn as they draw it."""

from __future__ import annotations

import numpy as np

from ...model.ragged import Bags, Vector
from ..claims.normals import Normals
from ..problems.problem import Problem
from ..problems.scores import scores_of


def sphere_problem(seed: int, n: int, T: int, d: int) -> Problem:
    """Head, labels, tokens and queries of one problem of the repository on support vector machines."""
    draw = Normals(seed)
    v, labels = draw.units(d), np.where(draw(n) > 0, 1.0, -1.0)
    values, queries = Bags.of(draw.units(n, T, d).astype(np.float64)), draw.units(n, d).astype(np.float64)
    return Problem.cross(values, queries, scores_of(labels, values, v.astype(np.float64)))


def head_problem(seed: int, n: int, T: int, d: int) -> tuple[Vector, ...]:
    """V of a ReLU head, tokens, labels and queries of one problem with such a head."""
    draw = Normals(seed)
    V, x = draw(d, d), draw.units(n, T, d)
    labels, z = np.where(draw(n) > 0, 1.0, -1.0), draw.units(n, d)
    return tuple(np.asarray(part, np.float64) for part in (V / np.linalg.norm(V), x, labels, z))
