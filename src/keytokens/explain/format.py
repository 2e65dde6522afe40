"""How labels and numbers are written."""

from __future__ import annotations

import math
import re
from typing import Any

LONGEST_NAME = 60  # characters of a label or token in a table

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


def broken(text: str) -> str:
    """With line feeds for the raw `<br />` of web pages."""
    return re.sub(r"<br\s*/?>", "\n", text, flags=re.IGNORECASE)


def one_line(text: str) -> str:
    """Clean, on one line, and not too long."""
    line = re.sub(r"\s", " ", broken(clean(text)))
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
