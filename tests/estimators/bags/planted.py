"""Bags with a known secret, and explanations of made-up instances."""

import numpy as np

from keytokens.explain import BagExplanation


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


def extreme(n=80, seed=0, d=12, classes=2):
    """A bag of class k > 0 reaches far in coordinates of its own, each in an instance of its own: maxima tell."""
    rng = np.random.RandomState(seed)
    y = np.arange(n) % classes
    bags = [rng.standard_normal((rng.randint(2, 7), d)) for _ in y]
    for k, bag in zip(y, bags, strict=True):
        if k:
            for j in range(4):
                bag[rng.randint(len(bag)), 4 * (k - 1) + j] += 2
    return bags, y


def record(log_weight, values, linear=True, names=None):
    """An explanation of made-up instances; values (T, K)."""
    w = np.exp(log_weight - log_weight.max())
    names = names or [f"class {k}" for k in range(values.shape[1])]
    return BagExplanation(log_weight, values if linear else None, w @ values / w.sum(), names)
