"""What the certificate covers beside texts, and what it does not."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from keytokens.proof import Votes, flip, range_keeping, sufficient

from .reference import Document, bits


def two_heads(weights: np.ndarray, values: np.ndarray, kept: list[int]) -> float:
    w, v = weights[kept], values[kept]
    return float(((w * v).sum(axis=0) / w.sum(axis=0)).sum())


def test_two_heads_are_not_linear() -> None:
    """Two tokens that are positive each by itself and negative together: no sets are offered for several heads."""
    weights, values = np.array([[3.0, 2.0], [1.0, 4.0]]), np.array([[-3.0, 4.0], [4.0, -2.0]])
    assert two_heads(weights, values, [0]) == 1.0
    assert two_heads(weights, values, [1]) == 2.0
    assert two_heads(weights, values, [0, 1]) == -1.25


def test_subset_sum_decides_whether_one_token_suffices_with_two_heads() -> None:
    rng = np.random.default_rng(60)
    for _ in range(60):
        x = rng.integers(1, 8, 5)
        target = int(rng.integers(2, x.sum()))
        z = Fraction(4 + target, 1 + target) ** 2 / 4

        def score(total: int, z: Fraction = z) -> Fraction:
            return Fraction(1, 1 + total) + z * total / (4 + total)

        sums = {int(x[[s for s in range(5) if kept >> s & 1]].sum()) for kept in range(32)}
        least = score(target)
        assert all(score(total) > least for total in sums if total != target)
        assert (target in sums) == any(score(total) <= least for total in sums)


def test_ranges_added_over_heads_contain_the_truth() -> None:
    rng = np.random.default_rng(61)
    for _ in range(60):
        weights, values = np.exp(rng.normal(size=(5, 2))), rng.normal(size=(5, 2))
        kept = [0, 3]
        low, high = 0.0, 0.0
        for head in range(2):
            scores = np.stack([np.zeros(5), values[:, head]], axis=1)
            ends = range_keeping(Votes.of(np.log(weights[:, head]), scores, label=1), kept)[0]
            low, high = low + ends[0], high + ends[1]
        for rest in range(8):
            inside = kept + [s for i, s in enumerate((1, 2, 4)) if rest >> i & 1]
            assert low - 1e-12 <= two_heads(weights, values, inside) <= high + 1e-12


def test_bags_of_vectors() -> None:
    """f(X) = <X v, softmax(X q)> + c: an instance has a = x'q, b = x'v, count 1; equal instances are separate items."""
    rng = np.random.default_rng(62)
    v, c = np.array([1.0, -1.0, 0.5]), -0.25
    for _ in range(60):
        bag = rng.integers(-2, 3, (5, 3)).astype(float)
        bag[4] = bag[0]
        a, b = (bag @ np.array([1, 0, 1])) * math.log(2.0), bag @ v
        weights = tuple(Fraction(2) ** int(k) for k in (bag @ np.array([1, 0, 1])).tolist())
        doc = Document(
            weights,
            tuple((Fraction(0), Fraction(x) + Fraction(c)) for x in b.tolist()),
            Fraction(0),
            (Fraction(0),) * 2,
        )
        votes = Votes.of(a, np.stack([np.zeros(5), b + c], axis=1), doc.label)
        kept, gone = sufficient(votes), flip(votes)
        assert kept.size == doc.fewest_sufficient()
        assert doc.is_sufficient(bits(kept.indices))
        assert (gone.size if gone.status != "none" else None) == doc.fewest_flip()
