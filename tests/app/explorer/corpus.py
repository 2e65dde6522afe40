"""Models and texts for the explorer's tests: every kind of model, and texts that try to break out of the page."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from keytokens import MASK, KeyTokenClassifier, Prior

from ...corpus import reviews, topics

HOSTILE = [
    "<script>window.owned = 1</script> a great film",
    '<img src=x onerror="window.owned=2"> dull & <b>superb</b>',
    "</script></style></textarea><svg onload=window.owned=3> great",
    "\"quotes' `ticks` ${window.owned=4} {{great}} dull",
    "line\u2028paragraph\u2029great\x85next\x00null\x1b[31m dull",
    "\u202egreat film\u202c and \u2066isolated\u2069 \u200fdull",
    "lone \ud800 surrogate \udc00 great",
    "emoji 👩‍👩‍👧 great 😀 dull é e\u0301 Å ŒΣΑΣ",
    "שלום עולם great dull",
    "很 好看 great",
    "javascript:alert(1) http://example.org/?great=dull",
    "great" * 300,
    f"great {MASK} dull {MASK}",
    "",
    "nothing here is known, xyzzy",
    "GREAT!!! dull??? <br /><br />plot, and great-great (superb)",
]
HOSTILE_LABELS = ["<img src=x onerror=window.owned=5>", "\"'</script>\u202e& ${owned}\u2028"]

VARIANTS: dict[str, dict[str, Any]] = {
    "two classes": {},
    "no sink": {"prior": Prior(sink=0)},
    "binary trigrams": {"counts": "binary", "ngrams": (1, 3)},
    "log counts, sharp": {"counts": "log", "prior": Prior(attention_penalty=0.01, sink=0)},
    "bigrams only": {"ngrams": (2, 2)},
    "four classes": {},
    "four classes, no sink": {"prior": Prior(attention_penalty=0.1, sink=0)},
    "four classes, log": {"counts": "log", "ngrams": (1, 3)},
}


@functools.cache
def variant(name: str) -> tuple[KeyTokenClassifier, list[str], list[Any]]:
    """A fitted model and labelled texts, the hostile ones last."""
    texts, labels = (topics if name.startswith("four") else reviews)(160, seed=3)
    clf = KeyTokenClassifier(threads=1, **{"ngrams": (1, 2), **VARIANTS[name]}).fit(texts, labels)
    more, more_labels = (topics if name.startswith("four") else reviews)(32, seed=4)
    joined = [f"{one} {other}" for one, other in zip(more[::2], more[1::2], strict=True)]
    return clf, [*more, *joined, *HOSTILE], [*more_labels, *more_labels[::2], *([labels[0]] * len(HOSTILE))]


@functools.cache
def hostile() -> tuple[KeyTokenClassifier, list[str], list[str]]:
    """A model whose labels and tokens are hostile too."""
    texts, labels = reviews(120, seed=5)
    named = dict(zip(("pos", "neg"), HOSTILE_LABELS, strict=True))
    clf = KeyTokenClassifier(threads=1).fit(
        [*texts, *HOSTILE], [*(named[y] for y in labels), *[HOSTILE_LABELS[0]] * len(HOSTILE)]
    )
    rng = np.random.RandomState(0)
    truth = [named[y] if rng.rand() < 0.8 else "<u>a label that the model does not know</u>" for y in labels]
    return clf, [*texts, *HOSTILE], [*truth, *[HOSTILE_LABELS[1]] * len(HOSTILE)]


@functools.cache
def many() -> tuple[KeyTokenClassifier, list[str], list[str]]:
    """Twenty classes, which the model has seen out of fold."""
    rng = np.random.RandomState(0)
    labels = [f"group {k % 20:02d}" for k in range(400)]
    words = [
        [*(f"{label[-2:]}word{w}" for w in rng.randint(6, size=3)), *rng.choice(HOSTILE[3].split(), 2)]
        for label in labels
    ]
    texts = [" ".join(rng.permutation([*own, *rng.choice(words[rng.randint(400)], 3)])) for own in words]
    return KeyTokenClassifier(threads=1, cross_fit=3).fit(texts, labels), texts, labels
