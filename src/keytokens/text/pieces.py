"""Texts in pieces, which are independent of one another and run in threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ..base.threads import ordered_map
from .spill import ShelfMaker

ROW_BITS = 14  # of a row's number within its piece
_CHARACTERS = 5 << 18  # of a piece: as many as a thousand long texts have, or ten thousand short ones
_TEXTS = 1 << ROW_BITS  # the most of a piece


def grouped(texts: Iterable[str]) -> Iterator[list[str]]:
    """Texts in pieces of about the same number of characters."""
    piece: list[str] = []
    characters = 0
    for text in texts:
        piece.append(text)
        characters += len(text)
        if characters >= _CHARACTERS or len(piece) >= _TEXTS:
            yield piece
            piece, characters = [], 0
    if piece:
        yield piece


def slices(texts: Sequence[str]) -> list[slice]:
    """Consecutive pieces with about the same number of characters, and no more texts than row numbers."""
    if len(texts) == 1:
        return [slice(0, 1)]
    ends = np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)))
    bounds = [0]
    while bounds[-1] < len(texts):
        at = bounds[-1]
        full = int(np.searchsorted(ends, (ends[at - 1] if at else 0) + _CHARACTERS)) + 1
        bounds.append(min(full, at + _TEXTS, len(texts)))
    return [slice(first, last) for first, last in pairwise(bounds)]


def made(shelves: ShelfMaker, kind: type[Any], count: int, threads: int, make: Callable[[int], Any]) -> Any:
    """A shelf with what `make` makes of every piece."""
    shelf = shelves(kind, count)

    def one(at: int) -> None:
        shelf.put(at, make(at))

    ordered_map(one, range(count), threads)
    return shelf
