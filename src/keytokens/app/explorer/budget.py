"""What fits into a page of so many bytes: fewer texts first, then coarser numbers and fewer tokens of the model.

A page whose model is cut gives other answers than the whole model. So the change of every shown text is measured, and
the page says how large it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...estimators.evaluation import Evaluation
from ...estimators.text import KeyTokenClassifier
from .documents import Chosen, choose, packed_documents
from .model import packed_model

MOST_TEXTS = 2_000
MOST_BYTES = 5_000_000
_FRAME = 250_000  # bytes of script, style and numbers, with a reserve
_BASE64 = 4 / 3
_OF_TEXTS = 0.25  # share of the page that texts may take where the model needs the rest
_NO_TEXTS = (
    "No texts are in this page: the model keeps its score, not the texts. `keytokens report` takes them from a table, "
    "and `keytokens fit --keep-texts` keeps them in the model."
)
_SPARE = 0.97  # of the room is aimed at: sizes are known only when everything is packed


@dataclass(frozen=True)
class Fitted:
    """What goes into the page: the model, perhaps a smaller one, texts by their rows, and what was left out."""

    clf: KeyTokenClassifier
    rows: list[int]
    parts: dict[str, bytes]
    left_out: list[str]


def fit(
    clf: KeyTokenClassifier,
    texts: Sequence[str],
    found: Evaluation | None,
    *,
    max_texts: int = MOST_TEXTS,
    max_tokens: int | None = None,
    max_bytes: int | None = MOST_BYTES,
) -> Fitted:
    """Model and texts within the budget."""
    small = clf if max_tokens is None or max_tokens >= len(clf.vocabulary_) else clf.pruned(max_tokens)
    room = np.inf if max_bytes is None else max(0, max_bytes - _FRAME) / _BASE64
    model = _packed_within(small, (1 - _OF_TEXTS) * room)
    if model is None:
        small, model = _shrunk(small, (1 - _OF_TEXTS) * room)
    parts, rows, left_out = {"model": model}, [], []
    if found is not None and not len(texts):
        left_out.append(_NO_TEXTS)
    elif found is not None:
        chosen, parts["documents"] = _texts_within(texts, found, max_texts, room - len(model))
        rows = chosen.rows.tolist()
        if len(rows) < len(texts):
            left_out.append(chosen.why)
    if small is not clf:
        left_out.append(_difference(clf, small, [texts[row] for row in rows]))
    return Fitted(small, rows, parts, left_out)


def _texts_within(texts: Sequence[str], found: Evaluation, most: int, room: float) -> tuple[Chosen, bytes]:
    while True:
        chosen = choose(texts, found, most)
        packed = packed_documents(texts, found, chosen)
        if len(packed) <= room or len(chosen.rows) <= 1:
            return chosen, packed
        most = max(1, int(_SPARE * len(chosen.rows) * room / len(packed)))


def _packed_within(clf: KeyTokenClassifier, room: float) -> bytes | None:
    """The model's container if it is no larger; one that clearly is is not even made."""
    if clf.attention_.nbytes + clf.values_.nbytes > 2 * room:
        return None
    model = packed_model(clf)
    return model if len(model) <= room else None


def _shrunk(clf: KeyTokenClassifier, room: float) -> tuple[KeyTokenClassifier, bytes]:
    """Numbers on a grid and, if need be, fewer tokens."""
    tokens = min(len(clf.vocabulary_), max(1, int(room / (8 + len(clf.classes_) / 2))))
    while True:
        small = clf.shrunk(tokens)
        model = packed_model(small)
        if len(model) <= room or tokens == 1:
            return small, model
        tokens = max(1, int(_SPARE * tokens * room / len(model)))


def _difference(clf: KeyTokenClassifier, small: KeyTokenClassifier, shown: Sequence[str]) -> str:
    """How the answers of the page's model differ from those of the whole one."""
    kept, whole = len(small.vocabulary_), len(clf.vocabulary_)
    held = f"{kept:,} of the {whole:,} tokens" if kept < whole else f"all {whole:,} tokens, with rounded numbers"
    says = f"The model in this page is a smaller one: it holds {held}, so its answers differ a little from the model's"
    asks = "The score is the whole model's. For a larger page: keytokens report --max-bytes."
    if not shown:
        return f"{says}. {asks}"
    P, Q = clf.predict_proba(shown), small.predict_proba(shown)
    change, others = _rounded_up(np.abs(P - Q).max()), int((P.argmax(axis=1) != Q.argmax(axis=1)).sum())
    labels = "none gets another label" if not others else f"{others:,} of {len(shown):,} get another label"
    return f"{says}: of the texts shown no probability by more than {change}, and {labels}. {asks}"


def _rounded_up(x: float) -> str:
    return f"{np.ceil(1000 * x) / 1000:.3f}"
