"""Logits of any size, against arithmetic with 80 digits."""

from decimal import Decimal, localcontext

import numpy as np
import pytest

from keytokens.proof import Votes, flip, label_of, range_keeping, ranges_deleting, sufficient

TOKENS = 6


def weights(a: np.ndarray) -> list[Decimal]:
    return [Decimal(float(x)).exp() for x in a]


def case(rng: np.random.Generator, spread: float, sink: bool) -> tuple[np.ndarray, np.ndarray, float, float]:
    a = rng.normal(size=TOKENS) * spread
    b = rng.normal(size=TOKENS) + 0.5 * rng.normal()
    return a, b, float(rng.normal() * spread) if sink else -np.inf, float(rng.normal())


@pytest.mark.parametrize("spread", [1.0, 40.0, 300.0, 3000.0])
def test_sets_with_logits_far_apart(spread: float) -> None:
    rng = np.random.default_rng(int(spread))
    with localcontext() as context:
        context.prec, context.Emax, context.Emin = 80, 10**9, -(10**9)
        for number in range(60):
            sink = number % 2 == 1
            a, b, a0, c0 = case(rng, spread, sink)
            votes = [w * Decimal(float(x)) for w, x in zip(weights(a), b + c0, strict=True)]
            fixed = Decimal(a0).exp() * Decimal(c0) if sink else Decimal(0)
            totals = [fixed + sum(v for s, v in enumerate(votes) if kept >> s & 1) for kept in range(1 << TOKENS)]
            y = int(totals[-1] > 0)
            same = [int(total > 0) == y or (kept == 0 and not sink) for kept, total in enumerate(totals)]
            votes = Votes.of(a, np.stack([np.zeros(TOKENS), b + c0], axis=1), y, a0, [0.0, c0])
            assert label_of(votes) == y
            check_sets(votes, same, sink)


def check_sets(votes: Votes, same: list[bool], sink: bool) -> None:
    full = len(same) - 1
    count = [bin(kept).count("1") for kept in range(full + 1)]
    holds = [all(same[s] for s in range(full + 1) if s & held == held) for held in range(full + 1)]
    fewest = min(count[held] for held in range(full + 1) if holds[held] and (held or sink))
    found = sufficient(votes)
    assert found.size == fewest
    assert holds[sum(1 << i for i in found.indices)]
    flips = [count[full - kept] for kept in range(full) if not same[kept]]
    gone = flip(votes)
    assert (gone.size if gone.status != "none" else None) == (min(flips) if flips else None)


@pytest.mark.parametrize("spread", [1.0, 40.0, 300.0, 3000.0])
def test_ranges_with_logits_far_apart(spread: float) -> None:
    rng = np.random.default_rng(int(spread) + 1)
    with localcontext() as context:
        context.prec, context.Emax, context.Emin = 80, 10**9, -(10**9)
        for number in range(25):
            sink = number % 2 == 1
            a, b, a0, c0 = case(rng, spread, sink)
            w, v = weights(a), [Decimal(float(x)) for x in b + c0]
            w0 = Decimal(a0).exp() if sink else Decimal(0)
            means = {}
            for kept in range(0 if sink else 1, 1 << TOKENS):
                inside = [s for s in range(TOKENS) if kept >> s & 1]
                total = w0 + sum(w[s] for s in inside)
                means[kept] = float((w0 * Decimal(c0) + sum(w[s] * v[s] for s in inside)) / total)
            votes = Votes.of(a, np.stack([np.zeros(TOKENS), b + c0], axis=1), 1, a0, [0.0, c0])
            around = [f for kept, f in means.items() if kept & 0b101 == 0b101]
            assert range_keeping(votes, [0, 2])[0] == pytest.approx([min(around), max(around)], abs=1e-9)
            for m in (1, 2, 4):
                left = [f for kept, f in means.items() if TOKENS - bin(kept).count("1") <= m]
                assert ranges_deleting(votes, [m])[0, 0] == pytest.approx([min(left), max(left)], abs=1e-9)


def test_a_vote_that_softmax_would_lose_decides_the_rest() -> None:
    votes = Votes.of([0.0, -800.0], [[0, 1.0], [0, -1.0]], label=1)
    assert flip(votes).indices == (0,)
    assert flip(votes).label_after == 0
    three = Votes.of([0.0, -800.0, -900.0], [[1.0, 0, 0], [0, 0, 1.0], [0, 1.0, 0]], label=0)
    assert flip(three).label_after == 2
    assert sufficient(three).indices == (0,)


def test_many_supporters_far_above_the_opposition_are_all_deleted() -> None:
    """Total minus prefix would leave noise of the size of the largest; suffix sums do not."""
    a = np.array([60.0, 60.1, 59.9, 1.0, 0.0])
    votes = Votes.of(a, [[0, 1.0], [0, 1.0], [0, 1.0], [0, -1.0], [0, 1.0]], label=1)
    assert flip(votes).size == 3
    assert not flip(votes).tight
