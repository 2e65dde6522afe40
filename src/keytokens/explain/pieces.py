"""A text cut into pieces, each with the tokens that cover it and what they say for the label against its rival."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .bag import BagExplanation
from .format import label_name
from .text import Explanation

Record = Explanation | BagExplanation  # what pages and terminal show

LONGEST_TEXT = 200_000  # characters that are highlighted


class Lead(NamedTuple):
    """What one occurrence, or one instance, adds to the lead of the label over its rival."""

    text: str
    start: int
    end: int
    attention: float
    difference: float  # of its values for the two
    lead: float  # attention times difference


class Piece(NamedTuple):
    """A stretch of text that the same occurrences cover from end to end."""

    start: int
    end: int
    uses: tuple[Lead, ...]
    ink: float  # lead per character, of an instance all of it, summed over the occurrences
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


def sides(e: Record) -> tuple[str, str]:
    """The classes that blue and orange speak for: the label and its rival."""
    return label_name(e.label), label_name(e.rival)


def leads(e: Record) -> list[Lead]:
    """What every occurrence adds to the lead, in text order; nothing where nothing is proved of instances."""
    found = e.contributions_against()
    names: list[str]
    if isinstance(e, BagExplanation):
        numbers = [str(t.index) for t in e.instances[: len(found)]]
        names, attention = list(map(instance_name, range(len(found)))), e.attention[: len(found)]
        size = np.array(list(map(len, numbers)), np.intp)
        end = (size + 1).cumsum() - 1
        start = end - size
    else:
        uses: Any = e.tokens
        names, start, end, attention = uses.text, uses.start, uses.end, uses.attention
    difference = np.divide(found, attention, out=np.zeros(len(found)), where=attention > 0)
    columns: list[NDArray[Any]] = [start, end, attention, difference, found]
    return list(map(Lead, names, *(column.tolist() for column in columns)))


def pieces(e: Record) -> list[Piece]:
    """The text up to `LONGEST_TEXT`, without a gap; marked are the sets that the sentence names."""
    stop, whole = min(len(text_of(e)), LONGEST_TEXT), leads(e)
    uses, bag = [use for use in whole if use.start < stop], isinstance(e, BagExplanation)
    if isinstance(e, BagExplanation):
        sets = [[(whole[t].start, whole[t].end) for t in one] for one in (e.sufficient, e.flip)]
    else:
        sets = [[span for item in one for span in item.spans] for one in e.named]
    spans = [*((use.start, use.end) for use in uses), *sets[0], *sets[1]]
    edges = sorted({0, stop, *(min(edge, stop) for span in spans for edge in span)})
    kept, gone = (_within(one, edges) for one in sets)
    found: list[Piece] = []
    over: list[Lead] = []
    coming = 0
    for i, (start, end) in enumerate(pairwise(edges)):
        over = [use for use in over if use.end > start]
        while coming < len(uses) and uses[coming].start == start:  # they are in order of their start
            over.append(uses[coming])
            coming += 1
        ink = sum(use.lead / (1 if bag else use.end - use.start) for use in over)
        found.append(Piece(start, end, tuple(over), ink, kept[i], gone[i]))
    return found


def _within(spans: list[tuple[int, int]], edges: list[int]) -> list[bool]:
    """Whether the stretch that begins at each edge lies inside a span, each of which begins and ends at edges."""
    depth = np.zeros(len(edges) + 1, np.intp)
    np.add.at(depth, np.searchsorted(edges, [start for start, _ in spans]), 1)
    np.add.at(depth, np.searchsorted(edges, [end for _, end in spans]), -1)
    inside: list[bool] = (depth.cumsum() > 0).tolist()
    return inside
