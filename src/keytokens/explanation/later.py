"""A sequence whose length is known and whose items are made when somebody looks at one."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar, overload

__all__ = ["Later"]

Item = TypeVar("Item")


class Later(Sequence[Item]):
    """Reads like the tuple of what `make` gives, which is called once, if at all.

    >>> squares = Later(3, lambda: [0, 1, 4])
    >>> len(squares), squares[1:], squares == (0, 1, 4)
    (3, (1, 4), True)
    """

    def __init__(self, size: int, make: Callable[[], Iterable[Item]]) -> None:
        self._size = size
        self._make = make

    @functools.cached_property
    def _made(self) -> tuple[Item, ...]:
        return tuple(self._make())

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Item, ...]: ...
    def __getitem__(self, index: int | slice) -> Item | tuple[Item, ...]:
        return self._made[index]

    def __iter__(self) -> Iterator[Item]:
        return iter(self._made)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Later):
            return self._made == other._made
        return self._made == other if isinstance(other, tuple) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._made)

    def __repr__(self) -> str:
        return repr(self._made)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copied and stored as the plain tuple."""
        return tuple, (self._made,)
