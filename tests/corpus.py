"""A small made-up corpus for tests that need a fitted model: who wrote what is decided by a few words."""

from __future__ import annotations

import numpy as np

FILLER = "the a of film plot it was and this that time with scene actor music story end people".split()  # noqa: SIM905
POSITIVE = "great superb moving funny".split()  # noqa: SIM905
NEGATIVE = "dull awful boring weak".split()  # noqa: SIM905


def reviews(n: int = 200, seed: int = 0, words: int = 14) -> tuple[list[str], list[str]]:
    """Texts with filler, one or two deciding words, sometimes one of the other side, sometimes negated."""
    rng = np.random.RandomState(seed)
    texts, labels = [], []
    for _ in range(n):
        good = bool(rng.randint(2))
        text = rng.choice(FILLER, rng.randint(3, words)).tolist()
        own, other = (POSITIVE, NEGATIVE) if good else (NEGATIVE, POSITIVE)
        for word in rng.choice(own, rng.randint(1, 3)).tolist():
            text.insert(rng.randint(len(text)), word)
        if rng.rand() < 0.3:
            text.insert(rng.randint(len(text)), f"not {rng.choice(other)}")
        texts.append(" ".join(text))
        labels.append("pos" if good else "neg")
    return texts, labels


def topics(n: int = 200, seed: int = 0) -> tuple[list[str], list[int]]:
    """Texts of four classes."""
    rng = np.random.RandomState(seed)
    own = [["ball", "team", "goal"], ["market", "stock", "bank"], ["vote", "law", "minister"], ["atom", "code", "chip"]]
    labels = rng.randint(4, size=n).tolist()
    texts = [
        " ".join([*rng.choice(FILLER, 6), *rng.choice(own[y], 2), rng.choice(own[rng.randint(4)])]) for y in labels
    ]
    return texts, labels
