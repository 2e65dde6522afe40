"""Bags with a known secret."""

from __future__ import annotations

import numpy as np


def planted(n=80, seed=0, d=4, classes=2):
    """Bags of noise; a bag of class k > 0 holds one or two instances near a centre of its own."""
    rng = np.random.RandomState(seed)
    centres = 4 * np.eye(d)
    y = np.arange(n) % classes
    bags = []
    for k in y:
        bag = rng.standard_normal((rng.randint(2, 9), d))
        if k:
            bag[: rng.randint(1, 3)] += centres[k]
        bags.append(rng.permutation(bag))
    return bags, y
