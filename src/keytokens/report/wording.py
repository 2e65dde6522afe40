"""What page and terminal say alike: labels, numbers, and what is proved of a set, in words."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..explanation import Explanation, FormalItem, FormalSet

__all__ = [
    "ShownSet",
    "TokenTotal",
    "at_least",
    "at_most",
    "clean",
    "figure",
    "formal_sets",
    "label_name",
    "notes",
    "one_line",
    "probability",
    "quoted",
    "sides",
    "signed",
    "totals",
]

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


def sides(e: Explanation) -> tuple[str, str]:
    """What a positive and what a negative contribution speak for."""
    labels = list(e.probabilities)
    if len(labels) == 2:
        return f"for {quoted(labels[1])}", f"for {quoted(labels[0])}"
    return f"for {quoted(e.label)}", f"against {quoted(e.label)}"


class TokenTotal(NamedTuple):
    """A token with all its occurrences."""

    text: str
    times: int
    attention: float
    value: float
    contribution: float


def totals(e: Explanation) -> list[TokenTotal]:
    """Every known token of the text, greatest contribution first."""
    times = Counter(use.text for use in e.tokens)
    one = {use.text: use for use in e.tokens}  # all occurrences of a token have the same figures
    found = [
        TokenTotal(name, n, n * one[name].attention, one[name].value, n * one[name].contribution)
        for name, n in times.items()
    ]
    return sorted(found, key=lambda total: -total.contribution)


class ShownSet(NamedTuple):
    """A formal set and the sentences that belong to it."""

    title: str
    says: str  # what the set does
    size: str  # how large it is, and what is proved of that
    items: Sequence[FormalItem]
    unit: str


def formal_sets(e: Explanation) -> list[ShownSet]:
    """Sufficient and flip sets, of tokens and of words; none if no token is known."""
    if not e.certificate.tokens:
        return []
    tokens = [
        _shown(e, "Sufficient tokens", "Whatever other tokens are deleted, the label stays.", e.sufficient),
        _shown(e, "Flip tokens", _after("Deleting", e.flip), e.flip),
    ]
    if len(e.document.words) > MOST_WORDS:
        return [
            *tokens,
            _not_computed("Sufficient words", "sufficient_words"),
            _not_computed("Flip words", "flip_words"),
        ]
    return [
        *tokens,
        _shown(e, "Sufficient words", "Whatever other words are masked, the label stays.", e.sufficient_words),
        _shown(e, "Flip words", _after("Masking", e.flip_words), e.flip_words),
    ]


def _not_computed(title: str, name: str) -> ShownSet:
    why = f"Left out, because the text has more than {MOST_WORDS:,} words. In Python, explanation.{name} computes it."
    return ShownSet(title, "", why, (), "words")


def _after(doing: str, found: FormalSet) -> str:
    if not found.items:
        return ""
    return f"{doing} {'it' if found.size == 1 else 'them'} makes the label {quoted(found.label_after)}."


def _shown(e: Explanation, title: str, says: str, found: FormalSet) -> ShownSet:
    total = e.certificate.tokens if found.unit == "tokens" else len(e.document.words)
    size = _nothing_flips(e, found.unit) if found.status == "none" else _size(found, total)
    return ShownSet(title, says if found.items else "", size, found.items, found.unit)


def _nothing_flips(e: Explanation, unit: str) -> str:
    doing = "deletion" if unit == "tokens" else "masking of words"
    where = " that leaves a known token" if e.document.sink_log_weight == -math.inf else ""
    return f"There is none: no {doing}{where} changes the label."


def _size(found: FormalSet, total: int) -> str:
    rounding = " To rounding: a comparison hangs on a relative difference below 1e-12." if found.tight else ""
    return _proved(found, total) + rounding


def _proved(found: FormalSet, total: int) -> str:
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


def notes(e: Explanation) -> list[str]:
    """What the numbers mean, and what is not covered."""
    c = e.certificate
    tokens = "words, or runs of neighbouring words, that the model knows"
    said = [f"{c.covers} The sentence above counts {c.unit}: {tokens}."]
    if not c.tokens:
        return said
    sink = f", with the sink's own {signed(e.sink)}," if e.sink else ""
    said.append(f"A contribution is attention times value. All of them{sink} add up to the logit {signed(e.logit)}.")
    if len(e.probabilities) == 2:
        said.append(
            "A token can speak for the label and still lower its probability: when its value is nearer to zero than "
            "the logit, the others weigh more without it."
        )
    said.append("Masking a word removes every token that touches it and makes no new one.")
    return said
