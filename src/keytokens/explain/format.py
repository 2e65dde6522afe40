"""The text cut into pieces, each with the tokens that cover it.

What page and terminal say alike: labels, numbers, and what is proved of a set, in words.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from .bag import BagExplanation, Instance, InstanceSet
from .text import Explanation, FormalItem, FormalSet, TokenUse

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


Record = Explanation | BagExplanation  # what pages and terminal show

AnySet = FormalSet | InstanceSet
LONGEST_NAME = 60  # characters of a label or token in a table
MOST_WORDS = 5_000  # sets of words take a second per thousand words or so: longer texts are shown without them

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


def at_least(p: float) -> str:
    """Three decimals, rounded down: a lower bound stays true."""
    return f"{math.floor(p * 1000) / 1000:.3f}"


def at_most(p: float) -> str:
    """Three decimals, rounded up: an upper bound stays true."""
    return f"{math.ceil(p * 1000) / 1000:.3f}"


def sides(e: Record) -> tuple[str, str]:
    """What a positive and what a negative contribution speak for."""
    labels = list(e.probabilities)
    if len(labels) == 2:
        return f"for {quoted(labels[1])}", f"for {quoted(labels[0])}"
    return f"for {quoted(e.label)}", f"against {quoted(e.label)}"


class TokenTotal(NamedTuple):
    """A token with all its occurrences, or an instance."""

    text: str
    times: int
    attention: float
    value: float
    contribution: float


def totals(e: Record) -> list[TokenTotal]:
    """Every known token of the text, or every instance of the bag, greatest contribution first."""
    found = _instance_totals(e) if isinstance(e, BagExplanation) else _token_totals(e)
    return sorted(found, key=lambda total: -total.contribution)


def _instance_totals(e: BagExplanation) -> list[TokenTotal]:
    return [
        TokenTotal(instance_name(t.index), 1, t.attention, t.value, t.contribution)
        for t in e.instances
        if t.value is not None and t.contribution is not None
    ]


def _token_totals(e: Explanation) -> list[TokenTotal]:
    times = Counter(use.text for use in e.tokens)
    one = {use.text: use for use in e.tokens}  # all occurrences of a token have the same figures
    return [
        TokenTotal(name, n, n * one[name].attention, one[name].value, n * one[name].contribution)
        for name, n in times.items()
    ]


def attended(e: Record) -> list[tuple[str, float]]:
    """The instances of a bag of which nothing is proved, by attention; else nothing."""
    if not isinstance(e, BagExplanation) or e.formal:
        return []
    return sorted(((instance_name(t.index), t.attention) for t in e.instances), key=lambda pair: -pair[1])


class ShownSet(NamedTuple):
    """A formal set and the sentences that belong to it."""

    title: str
    says: str  # what the set does
    size: str  # how large it is, and what is proved of that
    items: Sequence[FormalItem]
    unit: str


def formal_sets(e: Record) -> list[ShownSet]:
    """Sufficient and flip sets, of instances or of tokens and words; none if nothing is proved."""
    c = e.certificate
    if c.silent:
        return []
    says = f"Whatever other {c.unit} are deleted, the label stays."
    items = [
        _shown(e, f"Sufficient {c.unit}", says, e.sufficient, c.items),
        _shown(e, f"Flip {c.unit}", _after("Deleting", e.flip), e.flip, c.items),
    ]
    return items if isinstance(e, BagExplanation) else [*items, *_sets_of_words(e)]


def _sets_of_words(e: Explanation) -> list[ShownSet]:
    words = len(e.document.words)
    if words > MOST_WORDS:
        return [_not_computed("Sufficient words", "sufficient_words"), _not_computed("Flip words", "flip_words")]
    says = "Whatever other words are masked, the label stays."
    return [
        _shown(e, "Sufficient words", says, e.sufficient_words, words),
        _shown(e, "Flip words", _after("Masking", e.flip_words), e.flip_words, words),
    ]


def _not_computed(title: str, name: str) -> ShownSet:
    why = f"Left out, because the text has more than {MOST_WORDS:,} words. In Python, explanation.{name} computes it."
    return ShownSet(title, "", why, (), "words")


def _after(doing: str, found: AnySet) -> str:
    if not found.items:
        return ""
    return f"{doing} {'it' if found.size == 1 else 'them'} makes the label {quoted(found.label_after)}."


def _shown(e: Record, title: str, says: str, found: AnySet, total: int) -> ShownSet:
    size = _nothing_flips(e, found.unit) if found.status == "none" else _size(found, total)
    return ShownSet(title, says if found.items else "", size, _items(e, found), found.unit)


def _items(e: Record, found: AnySet) -> Sequence[FormalItem]:
    """An instance has its number for a name and no place in a text."""
    if isinstance(found, FormalSet):
        return found.items
    added = {total.text: total.contribution for total in totals(e)}
    return [FormalItem(name, 0, 0, (), added[name]) for name in map(instance_name, found)]


def _nothing_flips(e: Record, unit: str) -> str:
    doing = "masking of words" if unit == "words" else "deletion"
    ballot = e.certificate.ballot
    where = "" if ballot is None or ballot.has_sink else f" that leaves {e.certificate.leaves}"
    return f"There is none: no {doing}{where} changes the label."


def _size(found: AnySet, total: int) -> str:
    rounding = " To rounding: a comparison hangs on a relative difference below 1e-12." if found.tight else ""
    return _proved(found, total) + rounding


def _proved(found: AnySet, total: int) -> str:
    one = found.unit[:-1]
    if not found.items and found.status == "bounds":
        return f"None was found; if there is one, it has at least {found.lower:,} {found.unit}."
    if not found.items:
        return f"Empty: the label is fixed without any {one}."
    many = f"{found.size:,} of {total:,} {found.unit if total != 1 else one}"
    return many + {
        "minimum": ", proved to be the fewest.",
        "subset-minimal": f"; none can be left out, and fewer than {found.lower:,} never do.",
        "bounds": f", verified; the fewest are at least {found.lower:,}.",
    }.get(found.status, ".")


def notes(e: Record) -> list[str]:
    """What the numbers mean, and what is not covered."""
    c = e.certificate
    if isinstance(e, BagExplanation) and not e.formal:
        return ["Attention is how much of an instance enters the pooled numbers, not what it does to the score."]
    said = [f"{c.covers} The sentence above counts {c.unit}: {_meant(e)}."]
    if c.silent:
        return said
    own = 0.0 if isinstance(e, BagExplanation) else e.sink
    sink = f", with the sink's own {signed(own)}," if own else ""
    said.append(f"A contribution is attention times value. All of them{sink} add up to the logit {signed(e.logit)}.")
    if len(e.probabilities) == 2:
        said.append(
            f"{_one(c.unit)} can speak for the label and still lower its probability: when its value is nearer to zero "
            "than the logit, the others weigh more without it."
        )
    return [*said, _limit(e)]


def _one(unit: str) -> str:
    return "An instance" if unit == "instances" else "A token"


def _meant(e: Record) -> str:
    if isinstance(e, BagExplanation):
        return "the vectors of the bag, numbered from 0"
    return "words, or runs of neighbouring words, that the model knows"


def _limit(e: Record) -> str:
    """What deleting means."""
    if isinstance(e, BagExplanation):
        return (
            "Deleting an instance leaves its vector out: nothing is said of single coordinates, and an encoder that "
            "made the vectors is not asked again."
        )
    return "Masking a word removes every token that touches it and makes no new one."
