"""HTML: the frame of every page of keytokens, and the printer of records for pages and notebooks.

A page of a record runs no script and asks no network, and all text in it is escaped.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import html
from collections.abc import Mapping, Sequence
from importlib.resources import files
from string import Template
from typing import Any

from .bag import BagExplanation
from .certificate import percent
from .format import broken, clean, figure, label_name, one_line, probability, signed
from .pieces import LONGEST_TEXT, Piece, Record, pieces, sides, text_of
from .sections import Bar, Section, classes, key_tokens, sections, strongest
from .text import KeyToken

LEVELS = 8  # shades of each side, as in style.css
MOST_ROWS = 1_000  # of a table
FAIL = '<span class="kt-fail">FAIL</span>'

# --- every page


def static_text(package: str, name: str) -> str:
    """A file in the folder `static` of a package, with plain line ends."""
    return files(package).joinpath("static", name).read_text("utf-8").replace("\r\n", "\n")


def shell(
    title: str, body: str, style: str, *, look: str = "", script: str = "", allow: str = "", head: str = ""
) -> str:
    """A whole document whose policy allows its own style, its own script, and nothing else.

    Parameters
    ----------
    title : str
        Plain text.
    body, head : str
        HTML of the body, and further metadata.
    style, script : str
        CSS, and one module of JavaScript; a browser allows them by their hashes.
    look : str
        Classes of the body.
    allow : str
        A further entry of the policy, such as "img-src data:".
    """
    policy = [
        "default-src 'none'",
        f"script-src 'sha256-{_digest(script)}'" if script else "",
        f"style-src 'sha256-{_digest(style)}'",
        allow,
        "base-uri 'none'",
        "form-action 'none'",
    ]
    return Template(static_text(__package__, "page.html")).substitute(
        policy="; ".join(filter(None, policy)),
        title=escaped(one_line(title)),
        head=head,
        style=style,
        look=f' class="{look}"' if look else "",
        body=body,
        script=f'<script type="module">{script}</script>\n' if script else "",
    )


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@functools.cache
def css() -> str:
    """The style of records and of pages without a script; all its rules stay inside `.keytokens`."""
    return "\n" + static_text(__package__, "style.css")


def plain_page(title: str, content: str, allow: str = "") -> str:
    """A page of headings, tables and pictures; the title is text, the content HTML."""
    return shell(title, content, css(), look="keytokens kt-page", allow=allow)


def escaped(text: str) -> str:
    """Text as it stands in HTML, without what has no glyph."""
    return html.escape(clean(text))


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of cells that are HTML: the first column is text, columns without a name hold bars, others numbers."""
    many = ' class="kt-many"' if len(head) > 4 else ""  # a narrow screen has no room for the bars of these
    kinds = ["", *(' class="kt-num"' if name else ' class="kt-wide"' for name in head[1:])]
    top = "".join(f'<th scope="col"{kind}>{escaped(name)}</th>' for kind, name in zip(kinds, head, strict=True))
    cells = ("".join(f"<td{kind}>{cell}</td>" for kind, cell in zip(kinds, row, strict=True)) for row in rows)
    body = "".join(f"<tr>{row}</tr>\n" for row in cells)
    return f"<table{many}><thead><tr>{top}</tr></thead>\n<tbody>\n{body}</tbody></table>"


# --- records


def explanation_page(e: Record) -> str:
    """A whole page for one explained text or bag."""
    e = e.told()
    subject = f"a bag of {e.certificate.items:,}" if isinstance(e, BagExplanation) else one_line(e.text)
    title = f"{label_name(e.label)} ({probability(e.probability)}): {subject}"
    return plain_page(title, f'<main class="kt-one">\n{_shown(e)}\n</main>')


def explanation_fragment(e: Record) -> str:
    """The same for a notebook, with styles of its own."""
    return _fragment(f'<div class="kt-one">\n{_shown(e.told())}\n</div>')


def key_tokens_fragment(found: Mapping[Any, Sequence[KeyToken]]) -> str:
    """The most decisive tokens of each class for a notebook."""
    return _fragment(_grid(key_tokens(found)))


def _fragment(content: str) -> str:
    return f'<div class="keytokens"><style>{css()}</style>\n{content}\n</div>\n'


def _shown(e: Record) -> str:
    """Label and proof, the text and what speaks for and against; the numbers are folded."""
    said = e.certificate.said
    head = f'{_name(label_name(e.label))} <span class="kt-chance">{escaped(percent(e.probability))}</span>'
    because = f"<b>{escaped(said.because)}</b> {escaped(said.keep)}".strip()
    change = f"<p>{escaped(said.change)}</p>" if said.change else ""
    limit = f'<p class="kt-limit kt-soft">{escaped(said.limit)}</p>' if said.limit else ""
    return f"""<div class="kt-parts">
<div>
<p class="kt-label" role="heading" aria-level="2">{head}</p>
<div class="kt-classes">{_rows(classes(e))}</div>
<div class="kt-proof"><p>{because}</p>{change}</div>
</div>
<div>
{_text(e)}
{_legend(e)}
{"".join(f"{_rows(section)}{_said(section)}" for section in strongest(e))}
</div>
</div>
<details><summary>In numbers</summary>
{_grid(sections(e))}
</details>
{limit}"""


def _name(text: str) -> str:
    """A token or label in a table, whichever way it is written."""
    return f'<bdi lang="">{escaped(one_line(text))}</bdi>'


# --- the text


def _legend(e: Record) -> str:
    if e.certificate.silent:
        return ""
    label, rival = map(escaped, sides(e))
    entries = [
        f'<b class="kt-p{LEVELS // 2}">blue</b> speaks for {label}',
        f'<b class="kt-n{LEVELS // 2}">orange, slanted</b> speaks for {rival}',
        '<b class="kt-s">solid line</b> keeps the label',
        '<b class="kt-f">dotted line</b> changes it if deleted',
        *([] if isinstance(e, BagExplanation) else ["grey is not known to the model"]),
    ]
    return f'<p class="kt-legend">{"".join(f"<span>{entry}</span>" for entry in entries)}</p>'


def _text(e: Record) -> str:
    found = pieces(e)
    most = max((abs(piece.ink) for piece in found), default=0.0)
    shown = clean(text_of(e))
    marked = "".join(_piece(shown[piece.start : piece.end], piece, most) for piece in found)
    text = f'<div class="kt-text" dir="auto" lang="">{marked}</div>'
    if not shown:
        return text + '<p class="kt-note">The text is empty.</p>'
    if len(shown) <= LONGEST_TEXT:
        return text
    return (
        f'{text}<p class="kt-note">Only the first {LONGEST_TEXT:,} characters are highlighted. '
        f"The sentence, the tables and the probabilities cover the whole text.</p>"
        f"<details><summary>The other {len(shown) - LONGEST_TEXT:,} characters</summary>"
        f'<div class="kt-text" dir="auto" lang="">{html.escape(broken(shown[LONGEST_TEXT:]))}</div></details>'
    )


def _piece(text: str, piece: Piece, most: float) -> str:
    if not piece.uses:
        return html.escape(broken(text))
    level = round(LEVELS * abs(piece.ink) / most) if most else 0
    side = "p" if piece.ink >= 0 else "n"
    looks = [f"kt-{side}{level}"] * (level > 0) + ["kt-s"] * piece.sufficient + ["kt-f"] * piece.flip
    tag = "mark" if piece.sufficient or piece.flip else "span"
    name = f' class="{" ".join(looks)}"' if looks else ""
    hints = [
        f"{escaped(one_line(use.text))}: {figure(use.attention)} × {signed(use.difference)} = {signed(use.lead)}"
        for use in piece.uses
    ]
    # what lies between two words needs no hint of its own: both have one
    hint = "" if text.isspace() else f' title="{"&#10;".join(hints)}"'
    return f"<{tag}{name}{hint}>{html.escape(broken(text))}</{tag}>"


# --- sections


def _grid(found: Sequence[Section]) -> str:
    shown = []
    for section in found:
        # a role, not a heading: notebooks would list a heading in their table of contents
        title = f'<p class="kt-h" role="heading" aria-level="3">{escaped(section.title)}</p>'
        shown.append(f"<section>{title}{_said(section)}{_rows(section)}</section>\n")
    return f'<div class="kt-grid">\n{"".join(shown)}</div>'


def _said(section: Section) -> str:
    return "".join(f'<p class="kt-size kt-soft">{escaped(line)}</p>' for line in section.sentences)


def _rows(section: Section) -> str:
    """The table of a section; what exceeds its first rows unfolds."""
    has_bars = any(row.bar for row in section.rows)
    head, first = (*section.head, *([""] * has_bars)), section.first
    rows = [
        (_name(row.name), *map(escaped, row.figures), *[_bar(row.bar)] * has_bars) for row in section.rows[:MOST_ROWS]
    ]
    beyond = len(section.rows) - len(rows)
    if not rows:
        return ""
    if len(section.rows) <= first + 2:
        return table(head, rows)
    note = f'<p class="kt-note">And {beyond:,} more.</p>' if beyond else ""
    more = f"<summary>{len(section.rows) - first:,} more</summary>{table(head, rows[first:])}{note}"
    return f"{table(head, rows[:first])}<details>{more}</details>"


def _bar(bar: Bar | None) -> str:
    if bar is None:
        return ""
    x, width = f"{100 * bar.start:.2f}", f"{100 * (bar.end - bar.start):.2f}"
    shapes = f'<rect class="kt-b{bar.kind}" x="{x}" width="{width}" height="8"/>'
    if bar.mark is not None:
        place = f"{min(max(100 * bar.mark - 0.25, 0), 99.5):.2f}"
        shapes += f'<rect class="kt-here" x="{place}" y="-2" width="0.5" height="12"/>'
    return f'<svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">{shapes}</svg>'
