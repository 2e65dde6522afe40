"""A small made-up corpus for tests that need a fitted model, and what becomes of texts with less in them."""

from collections.abc import Container
from typing import Any

import numpy as np

from keytokens import MASK
from keytokens.model.weighting import weighting
from keytokens.text import count, spans

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


def masked(text: str, gone: Container[int]) -> str:
    """The text with the words of these numbers replaced by the mask."""
    out, at = [], 0
    for number, (start, end) in enumerate(spans(text).tolist()):
        out += [text[at:start], MASK if number in gone else text[start:end]]
        at = end
    return "".join([*out, text[at:]])


def label_without(clf: Any, text: str, gone: Container[str]) -> Any:
    """What the formula makes of a text once these tokens are deleted, with the arrays of the model."""
    w = weighting(clf.counts)(count([text], clf.vocabulary_).toarray()[0]) * np.exp(clf.attention_.astype(float))
    w[[name in gone for name in clf.vocabulary_.tokens]] = 0
    total = w.sum() + np.exp(clf.log_sink_)
    F = clf.values_.astype(float) @ w / total + clf.intercept_ if total else clf.empty_
    return clf.classes_[int(F[0] > 0) if len(F) == 1 else int(F.argmax())].tolist()
