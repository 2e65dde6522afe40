"""What the page needs of a model: two numbers a token and class, and how to read a text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._version import __version__
from ...explain.certificate import sentences
from ...explain.format import label_name
from ...model.weighting import weighting
from ...text.alphabet import IDEOGRAPHS, LETTERS, MARKS, SYMBOLS, Ranges
from .pack import narrowest, pack


@dataclass(frozen=True, eq=False)
class PageModel:
    """A fitted text classifier as plain data; whoever makes a page fills it in."""

    classes: Sequence[Any]
    tokens: Sequence[str]
    order: int  # the longest n-gram, in words
    counts: str  # the name of a weighting
    attention: NDArray[Any]  # (V,) as trained
    values: NDArray[Any]  # (1 or K, V) as trained
    intercept: NDArray[Any]  # (1 or K,) as every prediction uses it
    empty: NDArray[Any]  # (1 or K,) the score of a text without a known token, where there is no sink
    log_sink: float
    mean_attention: NDArray[Any]  # (V,) over the training documents
    class_counts: NDArray[Any]  # (K, V) training documents of each class that hold the token
    history: Sequence[float] = ()  # the objective after each step of training
    status: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    whole_size: int | None = None  # tokens before pruning; None: nothing was pruned

    def packed(self) -> bytes:
        """The container `model` of the page."""
        phi = weighting(self.counts)
        facts = {
            "version": __version__,
            "classes": [{"name": label_name(c), "repr": repr(c), "value": c} for c in self.classes],
            "order": self.order,
            "weighting": {**asdict(phi), "additive": phi.additive},
            "intercept": np.asarray(self.intercept, np.float64).tolist(),
            "empty": np.asarray(self.empty, np.float64).tolist(),
            "log_sink": None if self.log_sink == -np.inf else float(self.log_sink),
            "history": [float(value) for value in self.history],
            "status": self.status,
            "options": {name: value for name, value in self.options.items() if _is_plain(value)},
            "whole_size": self.whole_size,
            "alphabet": packed_alphabet(),
            "sentences": sentences(),
            "tokens": "\n".join(self.tokens),
        }
        arrays = {
            "attention": narrowest(self.attention),
            "values": narrowest(self.values),
            "mean_attention": np.asarray(self.mean_attention, np.float32),
            "class_counts": np.clip(np.rint(np.float64(self.class_counts)), 0, 2**32 - 1).astype(np.uint32),
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
