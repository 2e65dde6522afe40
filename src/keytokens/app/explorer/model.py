"""What the page needs of a model: two numbers a token and class, and how to read a text."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from ..._version import __version__
from ...estimators.text import KeyTokenClassifier
from ...explain.certificate import sentences
from ...explain.format import label_name
from ...model.weighting import weighting
from ...text.alphabet import IDEOGRAPHS, LETTERS, MARKS, SYMBOLS, Ranges
from .pack import narrowest, pack


def packed_model(clf: KeyTokenClassifier) -> bytes:
    """The container `model` of the page."""
    phi, theta, log_sink = weighting(clf.counts), clf._theta, float(clf.log_sink_)  # as every prediction uses them
    facts = {
        "version": __version__,
        "classes": [{"name": label_name(c), "repr": repr(c), "value": c} for c in clf.classes_.tolist()],
        "order": clf.vocabulary_.order,
        "weighting": {**asdict(phi), "additive": phi.additive},
        "intercept": np.asarray(theta.c, np.float64).tolist(),
        "empty": np.asarray(theta.empty, np.float64).tolist(),
        "log_sink": None if log_sink == -np.inf else log_sink,
        "noise": clf.label_noise_,
        "history": [float(value) for value in clf.history_],
        "status": clf.status_,
        "options": {name: value for name, value in clf.flat_params().items() if _is_plain(value)},
        "alphabet": packed_alphabet(),
        "sentences": sentences(),
        "tokens": "\n".join(clf.vocabulary_.tokens),
    }
    arrays = {
        "attention": narrowest(clf.attention_),
        "values": narrowest(clf.values_),
        "mean_attention": np.asarray(clf.mean_attention_, np.float32),
        "class_counts": np.clip(np.rint(np.float64(clf.class_counts_)), 0, 2**32 - 1).astype(np.uint32),
    }
    return pack(facts, arrays)


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, (str, int, float, bool, list, tuple))


def packed_alphabet() -> dict[str, str]:
    """The classes of characters, as `text.alphabet` writes them: browsers know other versions of Unicode."""
    classes = {"letters": LETTERS, "ideographs": IDEOGRAPHS, "marks": MARKS, "symbols": SYMBOLS}
    return {name: _packed_ranges(ranges) for name, ranges in classes.items()}


def _packed_ranges(ranges: Ranges) -> str:
    """ "gap.more" pairs in base 36.

    >>> _packed_ranges(((49, 50), (55, 55)))
    '1d.1 5'
    """
    items, end = [], 0
    for first, last in ranges:
        items.append(
            np.base_repr(first - end, 36).lower() + (f".{np.base_repr(last - first, 36).lower()}" * (last > first))
        )
        end = last
    return " ".join(items)
