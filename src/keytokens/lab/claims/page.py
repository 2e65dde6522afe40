"""The verdicts of all claims as a page."""

from __future__ import annotations

from ...explain.html import FAIL, escaped, plain_page, table
from .claim import Verdict, Verdicts

TITLE = "keytokens: theorems that run"
INTRO = """\
Each claim was run on instances: its hypotheses are tested first, and only where they hold does the conclusion count. \
The excess is how far an instance is from breaking the conclusion; it must not be above what is allowed. Sources name \
a paper, or keytokens for what is derived here."""
HEAD = ("claim", "instances", "counted", "worst excess", "allowed", "seconds", "verdict")


def verdicts_page(verdicts: Verdicts) -> str:
    """A page with a row for each claim."""
    parts = [
        f"<h1>{TITLE}</h1>",
        f'<p class="kt-intro">{INTRO}</p>',
        f'<p class="kt-proof">{escaped(verdicts.summary)}.</p>',
        f'<article><div class="kt-scroll">{table(HEAD, list(map(_row, verdicts)))}</div></article>',
    ]
    return plain_page(TITLE, "<main>\n" + "\n".join(parts) + "\n</main>")


def _row(v: Verdict) -> tuple[str, ...]:
    worst = f"{v.worst_excess:.2e}" if v.hypotheses_met else "–"
    numbers = (str(v.instances), str(v.hypotheses_met), worst, f"{v.tolerance:.1e}", f"{v.seconds:.2f}")
    said = "holds" if v.sentence == "holds" else escaped(v.sentence)
    name = f'<b>{escaped(v.id)}</b> {escaped(v.says)} <span class="kt-soft">{escaped(v.source)}</span>'
    return name, *numbers, said if v.holds else f"{FAIL} {said}"
