"""One page with all figures: pictures, captions, numbers, verdicts. No script, no network; the pictures are inside."""

from __future__ import annotations

import base64
from collections.abc import Sequence

from ...explain.html import FAIL, escaped, plain_page, table
from . import Made
from .figure import Check, numbered_notes
from .look import DPI

TITLE = "keytokens: figures that check themselves"
INTRO = """\
Every figure here was computed, drawn and checked by one command. A check compares a number of the figure with what \
is known: from the paper, from its published code, or found by us before, by another road. Where two of them \
differ, a note says which is right."""


def index_page(made: Sequence[Made]) -> str:
    """The figures one below the other, with a list of contents."""
    contents = "".join(
        f'<li><a href="#{_name(one)}">{_name(one)}</a> {escaped(one.figure.title)}{_mark(one.passed)}</li>\n'
        for one in made
    )
    parts = [
        f"<h1>{escaped(TITLE)}</h1>",
        f'<p class="kt-intro">{escaped(INTRO)}</p>',
        f'<p class="kt-proof">{escaped(summary(made))}</p>',
        f'<ul class="kt-list">\n{contents}</ul>',
        *map(_article, made),
    ]
    return plain_page(TITLE, "<main>\n" + "\n".join(parts) + "\n</main>", allow="img-src data:")


def summary(made: Sequence[Made]) -> str:
    """All verdicts in a sentence."""
    checks = sum(len(one.checks) for one in made)
    failed = [one.figure.name for one in made if not one.passed]
    counted = f"{_counted(len(made), 'figure')}, {_counted(checks, 'check')}"
    if not failed:
        return f"{counted}: all pass."
    wrong = sum(not check.passed for one in made for check in one.checks)
    return f"{counted}: {wrong} fail, in {', '.join(failed)}."


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" + ("" if count == 1 else "s")


def _article(made: Made) -> str:
    name, title = _name(made), escaped(made.figure.title)
    files = ", ".join(f'<a href="{escaped(file)}">{escaped(file)}</a>' for file in made.files)
    return f"""<article id="{name}">
<h2>{name}. {title}</h2>
{_picture(made)}
<p class="kt-intro">{escaped(made.figure.caption)}</p>
<p class="kt-soft">{files}</p>
<details open><summary>{escaped(summary([made]).partition(", ")[2])}</summary>
{_checks(made.checks)}
</details>
</article>"""


def _picture(made: Made) -> str:
    png = made.pictures.png
    # the first chunk of a PNG holds width and height; on the screen an inch has 96 dots
    width, height = (round(int.from_bytes(png[at : at + 4], "big") * 96 / DPI) for at in (16, 20))
    data = base64.b64encode(png).decode("ascii")
    alt = escaped(f"{made.figure.title}. {made.figure.caption}")
    return f'<img src="data:image/png;base64,{data}" width="{width}" height="{height}" alt="{alt}">'


def _checks(checks: Sequence[Check]) -> str:
    notes = numbered_notes(checks)
    rows = [
        (
            escaped(check.name) + (f" [{notes.index(check.note) + 1}]" if check.note else ""),
            *map(escaped, (check.seen, check.wanted, check.source)),
            "pass" if check.passed else FAIL,
        )
        for check in checks
    ]
    said = "".join(f"<li>{escaped(note)}</li>\n" for note in notes)
    below = f'<ol class="kt-notes kt-soft">\n{said}</ol>' if notes else ""
    head = ("check", "measured", "expected", "source", "verdict")
    return f'<div class="kt-scroll">{table(head, rows)}</div>{below}'


def _mark(passed: bool) -> str:
    return "" if passed else f" {FAIL}"


def _name(made: Made) -> str:
    return escaped(made.figure.name)
