"""A formal set as it is shown: its items, and what is proved of its size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, overload

__all__ = ["ProvedSet"]

Item = TypeVar("Item")


@dataclass(frozen=True)
class ProvedSet(Sequence[Item], Generic[Item]):
    """The items of a formal set, most decisive first (words: in text order), and what is proved of its size."""

    items: Sequence[Item]  # of a text: made when one is read
    size: int
    lower: int  # no smaller set than this does the same
    status: str  # "minimum", "subset-minimal", "bounds" (between lower and size) or "none"
    unit: str  # "tokens", "words" or "instances"
    tight: bool = False  # holds to rounding
    label_after: Any = None  # flips: what `predict` says of the rest

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Item]: ...
    def __getitem__(self, index: int | slice) -> Item | Sequence[Item]:
        return self.items[index]

    def __len__(self) -> int:
        return len(self.items)

    def _proved(self) -> dict[str, Any]:
        return {
            "size": self.size,
            "lower": self.lower,
            "status": self.status,
            "unit": self.unit,
            "tight": self.tight,
            "label_after": self.label_after,
        }
