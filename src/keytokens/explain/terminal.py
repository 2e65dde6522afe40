"""The same record for a terminal: colours where they are wanted, brackets where they are not."""

from __future__ import annotations

import os
import re
import textwrap
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple, Protocol

from .format import (
    LONGEST_TEXT,
    Piece,
    Record,
    ShownSet,
    at_least,
    at_most,
    attended,
    clean,
    figure,
    formal_sets,
    label_name,
    one_line,
    pieces,
    probability,
    quoted,
    sides,
    signed,
    strongest,
    text_of,
)
from .text import KeyToken

NARROWEST = 20
MOST_ITEMS = 12  # of a set
MOST_CLASSES = 6
FAINT = 0.08  # of the strongest ink: weaker tokens stay plain

# 256 colours: middle tones that can be read on black and on white
_POSITIVE, _NEGATIVE, _BOLD, _UNDERLINE, _REVERSE = "38;5;32", "38;5;166", "1", "4", "7"
_TURNS = re.compile("[\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]")  # they would turn the lines around the text


class Stream(Protocol):
    def isatty(self) -> bool: ...


def wants_colour(stream: Stream) -> bool:
    """Colour for a terminal that can show it; `NO_COLOR` forbids it, `FORCE_COLOR` asks for it."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return os.environ.get("TERM") != "dumb" and stream.isatty()


def explanation_text(e: Record, *, colour: bool, width: int) -> str:
    """The text with its key tokens, the label, what is proved, and the sets."""
    width = max(width, NARROWEST)
    parts = [_marked(e, colour, width), _key(e, colour, width), _verdict(e, colour, width), _ranges(e, width)]
    parts += [_formal_set(shown, colour, width) for shown in formal_sets(e)]
    parts.append(_attended(e, width))
    return "\n\n".join(part for part in parts if part) + "\n"


def key_tokens_text(found: Mapping[Any, Sequence[KeyToken]], colour: bool, width: int) -> str:
    """The most decisive tokens of each class."""
    width = max(width, NARROWEST)
    first = next(iter(found), None)

    def hue(label: Any) -> tuple[str, ...]:  # two classes have the colours of their tokens in the texts
        return _hue(-1.0 if len(found) == 2 and label == first else 1.0, colour)

    return "\n\n".join(_key_tokens_of(label, tokens, hue(label), width) for label, tokens in found.items()) + "\n"


# --- characters


def _safe(text: str) -> str:
    """Nothing that drives a terminal; as long as before."""
    return _TURNS.sub("\ufffd", clean(text)).replace("\t", " ")


def _cells(text: str) -> int:
    """How many columns a text takes."""
    if text.isascii():
        return len(text)
    return sum(_cell(character) for character in text)


def _cell(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _wrapped(text: str, width: int) -> str:
    return textwrap.fill(_safe(text), width, break_on_hyphens=False)


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
    text = _safe(whole[:LONGEST_TEXT])
    runs = list(_coloured_runs(found) if colour else _bracketed_runs(text, found))
    text = _broken(text, runs, width)
    beyond = len(whole) - LONGEST_TEXT
    rest = f"\n[... and {beyond:,} more characters]" if beyond > 0 else ""
    return "".join(_painted(text, run) for run in runs) + rest


def _painted(text: str, run: Run) -> str:
    """A style ends with its line, so that no terminal fills the rest of it."""
    lines = text[run.start : run.end].split("\n")
    return run.before + "\n".join(_styled(line, run.codes) for line in lines) + run.after


def _bracketed_runs(text: str, found: Sequence[Piece]) -> Iterator[Run]:
    """Brackets hug the words: blanks at the ends stay outside."""
    for (kept, gone), group in groupby(found, key=lambda piece: (piece.sufficient, piece.flip)):
        run = list(group)
        ink = sum(piece.ink * (piece.end - piece.start) for piece in run)
        start, end = run[0].start, run[-1].end
        inner = text[start:end]
        first, last = start + len(inner) - len(inner.lstrip()), end - len(inner) + len(inner.rstrip())
        if (kept or gone) and first < last:
            yield Run(start, first)
            yield Run(first, last, *_brackets(kept, gone, "+" if ink >= 0 else "-"))
            yield Run(last, end)
        else:
            yield Run(start, end)


def _brackets(kept: bool, gone: bool, sign: str) -> tuple[str, str]:
    """Square for the sufficient set, curly for the flip set."""
    return "[" * kept + "{" * gone + sign, "}" * gone + "]" * kept


def _coloured_runs(found: Sequence[Piece]) -> Iterator[Run]:
    most = strongest(found)
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
    positive, negative = sides(e)
    if not colour:
        key = f"Key: + speaks {positive}, - {negative}; [sufficient set], {{flip set}}."
        return _wrapped(key, width)
    entries = [
        ("blue", f" speaks {_safe(positive)}", _POSITIVE),
        ("orange", f" speaks {_safe(negative)}", _NEGATIVE),
        ("sufficient set", "", _UNDERLINE),
        ("flip set", "", _REVERSE),
    ]
    styled = [(_cells(name + says), _styled(name, (code,)) + says) for name, says, code in entries]
    return "\n".join(_packed(styled, width))


# --- what is said of it


def _verdict(e: Record, colour: bool, width: int) -> str:
    label = _styled(_safe(label_name(e.label)), (_BOLD,) if colour else ())
    head = f"{label}  probability {probability(e.probability)}, logit {_ascii(signed(e.logit))}"
    return f"{head}\n{_wrapped(_classes(e), width)}\n\n{_wrapped(e.certificate.sentence, width)}"


def _classes(e: Record) -> str:
    found = sorted(e.probabilities.items(), key=lambda pair: -pair[1])
    shown = [f"{label_name(label)} {probability(p)}" for label, p in found[:MOST_CLASSES]]
    rest = [f"{len(found) - MOST_CLASSES} more"] if len(found) > MOST_CLASSES else []
    return "Classes: " + ", ".join(shown + rest)


def _ranges(e: Record, width: int) -> str:
    ends = [f"{m}: {at_least(low)} to {at_most(high)}" for m, (low, high) in e.certificate.deleting.items()]
    if not ends:
        return ""
    exact = "" if e.certificate.exact else " (bounds)"
    head = f"Range of its probability{exact}, by how many {e.certificate.unit} are deleted at most: "
    return _wrapped(head + ", ".join(ends) + ".", width)


def _formal_set(shown: ShownSet, colour: bool, width: int) -> str:
    head = _wrapped(" ".join(part for part in (f"{shown.title}.", shown.size, shown.says) if part), width)
    rows = [(item.text, item.contribution) for item in shown.items[:MOST_ITEMS]]
    more = [f"  ... and {len(shown.items) - MOST_ITEMS:,} more"] if len(shown.items) > MOST_ITEMS else []
    return "\n".join([head, *_listed(rows, colour, width), *more])


def _attended(e: Record, width: int) -> str:
    found = attended(e)
    if not found:
        return ""
    entries = [(len(name) + 1 + len(figure(share)), f"{name} {figure(share)}") for name, share in found[:MOST_ITEMS]]
    more = [f"  ... and {len(found) - MOST_ITEMS:,} more"] if len(found) > MOST_ITEMS else []
    lines = [f"  {line}" for line in _packed(entries, width - 2)]
    return "\n".join([_wrapped("Attention on the instances, largest first:", width), *lines, *more])


def _listed(rows: Sequence[tuple[str, float]], colour: bool, width: int) -> list[str]:
    """Names and contributions."""
    named = [(_safe(one_line(name)), _ascii(signed(x)), _hue(x, colour)) for name, x in rows]
    entries = [(_cells(name) + 1 + len(number), f"{_styled(name, hue)} {number}") for name, number, hue in named]
    return [f"  {line}" for line in _packed(entries, width - 2)]


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


def _hue(x: float, colour: bool) -> tuple[str, ...]:
    if not colour:
        return ()
    return (_POSITIVE,) if x >= 0 else (_NEGATIVE,)


def _ascii(number: str) -> str:
    return number.replace("−", "-")


def _key_tokens_of(label: Any, tokens: Sequence[KeyToken], hue: tuple[str, ...], width: int) -> str:
    """Names to the left, figures beside the longest of them."""
    names = [_safe(one_line(token.token)) for token in tokens]
    room = max(map(_cells, names), default=0)
    rows = [
        f"  {_styled(name, hue)}{' ' * (room - _cells(name))}  {_figures(label, token)}"
        for name, token in zip(names, tokens, strict=True)
    ]
    return "\n".join([_wrapped(f"Key tokens for {quoted(label)}", width), *rows])


def _figures(label: Any, token: KeyToken) -> str:
    own = token.counts.get(label, 0)
    others = sum(token.counts.values()) - own
    return f"{_ascii(signed(token.contribution)):>9}  in {own:,} texts of the class, {others:,} others"
