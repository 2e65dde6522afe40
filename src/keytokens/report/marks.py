"""The text cut into pieces, each with the tokens that cover it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from ..explanation import BagExplanation, Explanation, FormalSet, Instance, Record, TokenUse

__all__ = ["LONGEST_TEXT", "Piece", "instance_name", "pieces", "strongest", "text_of"]

LONGEST_TEXT = 200_000  # characters that are highlighted


class Piece(NamedTuple):
    """A stretch of text that the same occurrences cover from end to end."""

    start: int
    end: int
    uses: tuple[TokenUse, ...]
    ink: float  # contribution per character, summed over the occurrences
    sufficient: bool
    flip: bool


def text_of(e: Record) -> str:
    """What is highlighted: the text itself; of a bag, the numbers of its instances."""
    if isinstance(e, BagExplanation):
        return " ".join(str(instance.index) for instance in e.instances)
    return e.text


def instance_name(index: int) -> str:
    """What an instance is called where it stands alone.

    >>> instance_name(3)
    'instance 3'
    """
    return f"instance {index}"


def pieces(e: Record) -> list[Piece]:
    """The text up to `LONGEST_TEXT`, without a gap."""
    if isinstance(e, BagExplanation):
        return list(_instances(e))
    return _tokens(e)


def _instances(e: BagExplanation) -> Iterator[Piece]:
    """An instance has all its ink on its number; where nothing is proved of instances there is none."""
    kept, gone = set(e.sufficient), set(e.flip)
    end = 0
    for t in e.instances:
        start = end + (t.index > 0)
        if end < start <= LONGEST_TEXT:
            yield Piece(end, start, (), 0.0, False, False)
        if start >= LONGEST_TEXT:
            break
        end = min(start + len(str(t.index)), LONGEST_TEXT)
        yield Piece(start, end, _use(t, start, end), t.contribution or 0.0, t.index in kept, t.index in gone)


def _use(t: Instance, start: int, end: int) -> tuple[TokenUse, ...]:
    if t.value is None or t.contribution is None:
        return ()
    return (TokenUse(instance_name(t.index), start, end, t.attention, t.value, t.contribution, t.selected),)


def _tokens(e: Explanation) -> list[Piece]:
    stop = min(len(e.text), LONGEST_TEXT)
    uses = [use for use in e.tokens if use.start < stop]
    edges = sorted({0, stop, *(use.start for use in uses), *(min(use.end, stop) for use in uses)})
    kept, gone = _places(e.sufficient), _places(e.flip)
    found = []
    for start, end, over in _sweep(edges, uses):
        ink = sum(use.contribution / (use.end - use.start) for use in over)
        spans = {(use.start, use.end) for use in over}
        found.append(Piece(start, end, over, ink, not kept.isdisjoint(spans), not gone.isdisjoint(spans)))
    return found


def _places(found: FormalSet) -> set[tuple[int, int]]:
    return {span for item in found for span in item.spans}


def _sweep(edges: list[int], uses: list[TokenUse]) -> Iterator[tuple[int, int, tuple[TokenUse, ...]]]:
    """Each stretch between two edges with the occurrences over it; `uses` are in order of their start."""
    over: list[TokenUse] = []
    coming = 0
    for start, end in pairwise(edges):
        over = [use for use in over if use.end > start]
        while coming < len(uses) and uses[coming].start == start:
            over.append(uses[coming])
            coming += 1
        yield start, end, tuple(over)


def strongest(found: Sequence[Piece]) -> float:
    """The most ink on a character, either sign."""
    return max((abs(piece.ink) for piece in found), default=0.0)
