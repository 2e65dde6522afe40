"""The same record for a terminal: colours where they are wanted, brackets where they are not."""

from __future__ import annotations

import os
import re
import textwrap
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple, TextIO

from .format import clean, one_line
from .pieces import LONGEST_TEXT, Piece, Record, pieces, sides, text_of
from .sections import Row, Section, classes, key_tokens, sections, strongest
from .text import KeyToken

NARROWEST = 20
MOST_ROWS = 12  # of a section
FAINT = 0.08  # of the strongest ink: weaker tokens stay plain

# 256 colours: middle tones that can be read on black and on white
_POSITIVE, _NEGATIVE, _BOLD, _UNDERLINE, _REVERSE = "38;5;32", "38;5;166", "1", "4", "7"
_TURNS = re.compile("[\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]")  # they would turn the lines around the text


def wants_colour(stream: TextIO) -> bool:
    """Colour for a terminal that can show it; `NO_COLOR` forbids it, `FORCE_COLOR` asks for it."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return os.environ.get("TERM") != "dumb" and stream.isatty()


def explanation_text(e: Record, *, colour: bool, width: int) -> str:
    """The text with its key tokens, the label and what is proved, and the sections."""
    e, width = e.told(), max(width, NARROWEST)
    said = [_wrapped(part, width) for part in e.certificate.said if part]
    if colour:
        said[0] = "\n".join(_styled(line, (_BOLD,)) for line in said[0].split("\n"))
    listed = [classes(e), *strongest(e), *sections(e, brief=True)]
    shown = [_section(section, colour, width) for section in listed]
    parts = [_marked(e, colour, width), _key(e, colour, width), "\n".join(said), *shown]
    return "\n\n".join(part for part in parts if part) + "\n"


def key_tokens_text(found: Mapping[Any, Sequence[KeyToken]], colour: bool, width: int) -> str:
    """The most decisive tokens of each class."""
    width = max(width, NARROWEST)
    return "\n\n".join(_table(section, colour, width) for section in key_tokens(found)) + "\n"


# --- characters


def _safe(text: str) -> str:
    """Nothing that drives a terminal; as long as before."""
    return _TURNS.sub("\ufffd", clean(text)).replace("\t", " ")


def _cells(text: str) -> int:
    """How many columns a text takes."""
    if text.isascii():
        return len(text)
    shown = (c for c in text if not unicodedata.combining(c) and unicodedata.category(c) not in ("Mn", "Me", "Cf"))
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in shown)


def _wrapped(text: str, width: int) -> str:
    return textwrap.fill(_safe(text), width, break_on_hyphens=False).replace("\xa0", " ")


def _styled(text: str, codes: Sequence[str]) -> str:
    return f"\x1b[{';'.join(codes)}m{text}\x1b[0m" if codes and text else text


# --- the text


class Run(NamedTuple):
    """Neighbouring pieces that look the same."""

    start: int
    end: int
    before: str = ""  # brackets, in plain text
    after: str = ""
    codes: tuple[str, ...] = ()  # the style, in colour


def _marked(e: Record, colour: bool, width: int) -> str:
    found = pieces(e)
    whole = text_of(e)
    # a raw <br /> is shown as the break that it means; blanks before it keep every place
    text = re.sub(
        r"<br\s*/?>", lambda tag: " " * (len(tag[0]) - 1) + "\n", _safe(whole[:LONGEST_TEXT]), flags=re.IGNORECASE
    )
    runs = list(_coloured_runs(found) if colour else _bracketed_runs(text, found))
    text = _broken(text, runs, width)
    painted = []
    for run in runs:  # a style ends with its line, so that no terminal fills the rest of it
        lines = text[run.start : run.end].split("\n")
        painted += [run.before, "\n".join(_styled(line, run.codes) for line in lines), run.after]
    beyond = len(whole) - LONGEST_TEXT
    rest = f"\n[... and {beyond:,} more characters]" if beyond > 0 else ""
    return "".join(painted) + rest


def _bracketed_runs(text: str, found: Sequence[Piece]) -> Iterator[Run]:
    """Square brackets for the sufficient set, curly ones for the flip set; blanks at their ends stay outside."""
    for (kept, gone), group in groupby(found, key=lambda piece: (piece.sufficient, piece.flip)):
        run = list(group)
        ink = sum(piece.ink * (piece.end - piece.start) for piece in run)
        start, end = run[0].start, run[-1].end
        inner = text[start:end]
        first, last = start + len(inner) - len(inner.lstrip()), end - len(inner) + len(inner.rstrip())
        if (kept or gone) and first < last:
            yield Run(start, first)
            before = "[" * kept + "{" * gone + ("+" if ink >= 0 else "-")
            yield Run(first, last, before, "}" * gone + "]" * kept)
            yield Run(last, end)
        else:
            yield Run(start, end)


def _coloured_runs(found: Sequence[Piece]) -> Iterator[Run]:
    most = max((abs(piece.ink) for piece in found), default=0.0)
    for codes, group in groupby(found, key=lambda piece: _codes(piece, most)):
        run = list(group)
        yield Run(run[0].start, run[-1].end, codes=codes)


def _codes(piece: Piece, most: float) -> tuple[str, ...]:
    """Colour for the side, bold for the strong, a line for the sufficient set, reverse for the flip set."""
    strength = abs(piece.ink) / most if most else 0.0
    if not (piece.sufficient or piece.flip) and strength < FAINT:
        return ()
    side = _POSITIVE if piece.ink >= 0 else _NEGATIVE
    return (side,) + (_BOLD,) * (strength >= 0.5) + (_UNDERLINE,) * piece.sufficient + (_REVERSE,) * piece.flip


def _broken(text: str, runs: Sequence[Run], width: int) -> str:
    """The text, as long as before, with a line end for the blank before each word that does not fit."""
    extra: Counter[int] = Counter()
    for run in runs:
        extra[run.start] += len(run.before)
        extra[run.end - 1] += len(run.after)
    letters = list(text)
    column = last = 0
    for word in re.finditer(r"[^ \n]+", text):
        start, end = word.span()
        if "\n" in text[last:start]:
            column, last = 0, text.rindex("\n", last, start) + 1
        cells = _cells(word[0]) + sum(extra[i] for i in range(start, end))
        column += start - last + cells
        if column > width and start > last and column > cells:
            letters[start - 1] = "\n"
            column = cells
        last = end
    return "".join(letters)


def _key(e: Record, colour: bool, width: int) -> str:
    if e.certificate.silent:
        return ""
    label, rival = sides(e)
    if not colour:
        return _wrapped(
            f"Key: + speaks for {label}, - for {rival}; [keeps the label], {{changes it if deleted}}.", width
        )
    entries = [
        ("blue", f" speaks for {_safe(label)}", _POSITIVE),
        ("orange", f" for {_safe(rival)}", _NEGATIVE),
        ("keeps the label", "", _UNDERLINE),
        ("changes it if deleted", "", _REVERSE),
    ]
    styled = [(_cells(name + says), _styled(name, (code,)) + says) for name, says, code in entries]
    return "\n".join(_packed(styled, width))


# --- what is said of it


def _section(section: Section, colour: bool, width: int) -> str:
    """Title and sentences, and each name with its last figure."""
    head = _wrapped(" ".join([f"{section.title}.", *section.sentences]), width)
    entries = []
    for row in section.rows[:MOST_ROWS]:
        name, last = _safe(one_line(row.name)), _ascii(row.figures[-1])
        entries.append((_cells(name) + 1 + len(last), f"{_styled(name, _hue(row, colour))} {last}"))
    more = len(section.rows) - MOST_ROWS
    lines = [f"  {line}" for line in _packed(entries, width - 2)]
    return "\n".join([head, *lines, *([f"  ... and {more:,} more"] if more > 0 else [])])


def _packed(entries: Sequence[tuple[int, str]], width: int) -> list[str]:
    """Entries of so many columns one after the other, as many to a line as fit."""
    lines: list[list[str]] = []
    used = width
    for cells, entry in entries:
        if used + 2 + cells > width:
            lines.append([])
            used = -2
        lines[-1].append(entry)
        used += 2 + cells
    return ["  ".join(line) for line in lines]


def _table(section: Section, colour: bool, width: int) -> str:
    """All figures, in columns: names to the left, numbers to the right."""
    names = [_safe(one_line(row.name)) for row in section.rows]
    room = max(map(_cells, [section.head[0], *names]))
    columns = list(zip(section.head[1:], *(row.figures for row in section.rows), strict=True))
    widths = [max(map(len, column)) for column in columns]

    def line(cells: int, name: str, figures: Sequence[str]) -> str:
        aligned = [f"{_ascii(figure):>{size}}" for figure, size in zip(figures, widths, strict=True)]
        return "  ".join([f"  {name}{' ' * (room - cells)}", *aligned])

    head = [_wrapped(section.title, width), line(len(section.head[0]), section.head[0], section.head[1:])]
    rows = zip(names, section.rows, strict=True)
    return "\n".join([*head, *(line(_cells(n), _styled(n, _hue(row, colour)), row.figures) for n, row in rows)])


def _hue(row: Row, colour: bool) -> tuple[str, ...]:
    side = {"p": _POSITIVE, "n": _NEGATIVE}.get(row.bar.kind if row.bar else "")
    return (side,) if colour and side else ()


def _ascii(number: str) -> str:
    return number.replace("−", "-")
