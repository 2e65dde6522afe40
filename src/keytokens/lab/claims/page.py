"""The verdicts of all claims as a page."""

from __future__ import annotations

import html

from ...explain.html import FAIL, plain_page
from .claim import Verdict, Verdicts

TITLE = "keytokens: theorems that run"
INTRO = """\
Each claim was run on instances: its hypotheses are tested first, and only where they hold does the conclusion count. \
The excess is how far an instance is from breaking the conclusion; it must not be above what is allowed. Sources name \
a paper, or keytokens for what is derived here."""
HEAD = ("claim", "instances", "counted", "worst excess", "allowed", "seconds", "verdict")


def verdicts_page(verdicts: Verdicts) -> str:
    head = "".join(f'<th scope="col"{_number(k)}>{name}</th>' for k, name in enumerate(HEAD))
    rows = "".join(map(_row, verdicts))
    table = f"<table><thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody></table>"
    parts = [
        f"<h1>{TITLE}</h1>",
        f'<p class="kt-intro">{INTRO}</p>',
        f'<p class="kt-proof">{html.escape(verdicts.summary)}.</p>',
        f'<article><div class="kt-scroll">{table}</div></article>',
    ]
    return plain_page(TITLE, "\n".join(parts))


def _number(column: int) -> str:
    return ' class="kt-num"' if column else ""


def _row(v: Verdict) -> str:
    worst = f"{v.worst_excess:.2e}" if v.hypotheses_met else "–"
    numbers = (str(v.instances), str(v.hypotheses_met), worst, f"{v.tolerance:.1e}", f"{v.seconds:.2f}")
    said = "holds" if v.sentence == "holds" else html.escape(v.sentence)
    cells = [*numbers, said if v.holds else f"{FAIL} {said}"]
    name = f'<b>{html.escape(v.id)}</b> {html.escape(v.says)} <span class="kt-soft">{html.escape(v.source)}</span>'
    return f"<tr><td>{name}</td>" + "".join(f'<td class="kt-num">{cell}</td>' for cell in cells) + "</tr>\n"
