"""How labels and numbers are written, and a text cut into pieces, each with the tokens that cover it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

from .bag import BagExplanation
from .text import Explanation, TokenUse

Record = Explanation | BagExplanation  # what pages and terminal show

LONGEST_TEXT = 200_000  # characters that are highlighted
LONGEST_NAME = 60  # characters of a label or token in a table


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
        uses: tuple[TokenUse, ...] = ()
        if t.value is not None and t.contribution is not None:
            name = instance_name(t.index)
            uses = (TokenUse(name, start, end, t.attention, t.value, t.contribution, t.selected),)
        yield Piece(start, end, uses, t.contribution or 0.0, t.index in kept, t.index in gone)


def pieces(e: Record) -> list[Piece]:
    """The text up to `LONGEST_TEXT`, without a gap."""
    if isinstance(e, BagExplanation):
        return list(_instances(e))
    stop = min(len(e.text), LONGEST_TEXT)
    uses = [use for use in e.tokens if use.start < stop]
    edges = sorted({0, stop, *(use.start for use in uses), *(min(use.end, stop) for use in uses)})
    kept, gone = ({span for item in one.items for span in item.spans} for one in (e.sufficient, e.flip))
    found: list[Piece] = []
    over: list[TokenUse] = []
    coming = 0
    for start, end in pairwise(edges):
        over = [use for use in over if use.end > start]
        while coming < len(uses) and uses[coming].start == start:  # they are in order of their start
            over.append(uses[coming])
            coming += 1
        ink = sum(use.contribution / (use.end - use.start) for use in over)
        spans = {(use.start, use.end) for use in over}
        found.append(Piece(start, end, tuple(over), ink, not kept.isdisjoint(spans), not gone.isdisjoint(spans)))
    return found


# Control characters but tab and line ends, lone surrogates, and code points that are no characters.
_NO_GLYPH = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef"
    + "".join(chr(plane + last) for plane in range(0, 0x110000, 0x10000) for last in (0xFFFE, 0xFFFF))
    + "]"
)


def clean(text: str) -> str:
    """The same text, as long as before, with U+FFFD for what has no glyph and a line feed for each line end.

    >>> clean("a\\x1b[1m\\r\\nb")
    'a\ufffd[1m \\nb'
    """
    return _NO_GLYPH.sub("\ufffd", text).replace("\r\n", " \n").replace("\r", "\n")


def one_line(text: str) -> str:
    """Clean, on one line, and not too long."""
    line = re.sub(r"\s", " ", clean(text))
    return line if len(line) <= LONGEST_NAME else line[: LONGEST_NAME - 1] + "…"


def quoted(label: Any) -> str:
    """A label within a sentence: `'spam'`, `3`, `True`."""
    return one_line(repr(label))


def label_name(label: Any) -> str:
    """A label that stands alone: `spam`, `3`, `True`."""
    if not isinstance(label, str):
        return one_line(str(label))
    return one_line(label) if label.strip() else quoted(label)


def figure(x: float) -> str:
    """A number that is not negative: four decimals, more for what is small.

    >>> figure(0.25), figure(0.00012)
    ('0.2500', '0.00012')
    """
    return f"{x:.4f}" if x >= 0.00095 or x == 0 else f"{x:.2g}"


def signed(x: float) -> str:
    """Three decimals, more for what is small and fewer for what is large, with a sign that aligns.

    >>> signed(-0.25), signed(0.0), signed(0.00012), signed(-123.45)
    ('−0.250', '0.000', '+0.00012', '−123.5')
    """
    if x == 0:
        return "0.000"
    if abs(x) < 0.0095:
        number = f"{x:+.2g}"
    else:
        number = f"{x:+.1f}" if abs(x) >= 10 else f"{x:+.3f}"
    return number.replace("-", "−")


def probability(p: float) -> str:
    """Three decimals; what is neither 0 nor 1 does not look as if it were.

    >>> probability(0.25), probability(1 - 1e-9), probability(1e-9), probability(1.0)
    ('0.250', '> 0.999', '< 0.001', '1.000')
    """
    if 0 < p < 0.001:
        return "< 0.001"
    return "> 0.999" if 0.999 < p < 1 else f"{p:.3f}"


def bounds(least: float, greatest: float) -> str:
    """A range of probabilities: three decimals, rounded outwards, so that bounds stay true.

    >>> bounds(0.49999, 0.50001)
    '0.499 to 0.501'
    """
    return f"{math.floor(least * 1000) / 1000:.3f} to {math.ceil(greatest * 1000) / 1000:.3f}"


def sides(e: Record) -> tuple[str, str]:
    """What a positive and what a negative contribution speak for."""
    labels = list(e.probabilities)
    if len(labels) == 2:
        return f"for {quoted(labels[1])}", f"for {quoted(labels[0])}"
    return f"for {quoted(e.label)}", f"against {quoted(e.label)}"
