"""HTML: a fragment for notebooks and pages that stand alone. No script, no network, and all text is escaped.

A page of headings, tables and pictures in the look of the others: no script, no network.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .bag import BagExplanation
from .format import (
    LONGEST_TEXT,
    Piece,
    Record,
    ShownSet,
    TokenTotal,
    at_least,
    at_most,
    attended,
    clean,
    figure,
    formal_sets,
    label_name,
    notes,
    one_line,
    pieces,
    probability,
    quoted,
    sides,
    signed,
    strongest,
    text_of,
    totals,
)
from .style import CSS, DIGEST, LEVELS, digest
from .text import FormalItem, KeyToken, TokenUse

FIRST_ROWS = 10  # of a table; the others unfold
MOST_ROWS = 1_000
STRONGEST = 10  # tokens on each side
BARS = 12  # classes; the others unfold

Row = Sequence[str]  # cells that are HTML already


def explanation_page(e: Record) -> str:
    """A whole page for one explained text or bag."""
    title = f"{label_name(e.label)} ({probability(e.probability)}): {_subject(e)}"
    return _page(title, f'<main class="kt-one">\n{_summary(e)}\n{_tables(e)}\n</main>')


def _subject(e: Record) -> str:
    return f"a bag of {e.certificate.items:,}" if isinstance(e, BagExplanation) else one_line(e.text)


def explanation_fragment(e: Record) -> str:
    """The same for a notebook: styles of its own, the tables folded."""
    return f'<div class="keytokens"><style>{CSS}</style>\n<div class="kt-one">\n{_folded(e)}\n</div></div>\n'


def documents_page(
    title: str,
    intro: str,
    rows: Sequence[tuple[str, Record]],
    key_tokens: Mapping[Any, Sequence[KeyToken]] | None = None,
) -> str:
    """One page for several explained texts, each under its caption, and the key tokens of each class."""
    paragraphs = [f'<p class="kt-intro">{_escaped(part)}</p>' for part in intro.split("\n\n") if part.strip()]
    articles = [f"<article>\n<h2>{_escaped(caption)}</h2>\n{_folded(e)}\n</article>" for caption, e in rows]
    parts = [f"<h1>{_escaped(title)}</h1>", *paragraphs, _key_tokens(key_tokens or {}), *articles]
    return _page(title, "<main>\n" + "\n".join(parts) + "\n</main>")


def _page(title: str, body: str) -> str:
    policy = f"default-src 'none'; style-src 'sha256-{DIGEST}'; base-uri 'none'; form-action 'none'"
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{_escaped(one_line(title))}</title>
<style>{CSS}</style>
</head>
<body class="keytokens kt-page">
{body}
</body>
</html>
"""


def _folded(e: Record) -> str:
    more = "Sets, contributions and ranges"
    return f"{_summary(e)}\n<details><summary>{more}</summary>\n{_tables(e)}\n</details>"


def _summary(e: Record) -> str:
    return "\n".join([_head(e), f'<p class="kt-proof">{_escaped(e.certificate.sentence)}</p>', _legend(e), _text(e)])


def _tables(e: Record) -> str:
    parts = [*(_formal_set(shown) for shown in formal_sets(e)), *_contributions(e), _ranges(e)]
    parts.append(_section("What is covered", notes(e), ""))
    return f'<div class="kt-grid">\n{"".join(parts)}</div>'


# --- words and numbers


def _escaped(text: str) -> str:
    return html.escape(clean(text))


def _name(text: str) -> str:
    """A token or label in a table, whichever way it is written."""
    return f'<bdi lang="">{_escaped(one_line(text))}</bdi>'


def _side(x: float) -> str:
    return "p" if x >= 0 else "n"


# --- label, probability, classes


def _head(e: Record) -> str:
    return f"""<div class="kt-head">
<div>
<p class="kt-soft">Predicted label</p>
<p class="kt-label" role="heading" aria-level="2">{_name(label_name(e.label))}</p>
<p class="kt-figures">probability <b>{_escaped(probability(e.probability))}</b> · logit <b>{signed(e.logit)}</b></p>
</div>
<div class="kt-classes">{_classes(e)}</div>
</div>"""


def _classes(e: Record) -> str:
    """A bar a class: two in their own order, more by probability."""
    found = list(e.probabilities.items())
    if len(found) > 2:
        found.sort(key=lambda pair: -pair[1])
    rows = [
        (_name(label_name(label)), _bar(p, 1.0, _class_bar(e, label)), _escaped(probability(p))) for label, p in found
    ]
    return _rows(("class", "", "probability"), rows, BARS)


def _class_bar(e: Record, label: Any) -> str:
    """Two classes have the colours of their tokens; of more, the label has the one that speaks for it."""
    labels = list(e.probabilities)
    if len(labels) == 2:
        return "p" if label == labels[1] else "n"
    return "p" if label == e.label else "k"


# --- the text


def _legend(e: Record) -> str:
    unknown = [] if isinstance(e, BagExplanation) else ['<b class="kt-u">grey</b> not known to the model']
    if e.certificate.silent:
        return _entries(unknown)
    positive, negative = map(_escaped, sides(e))
    entries = [
        f'<b class="kt-p{LEVELS // 2}">blue, upright</b> speaks {positive}',
        f'<b class="kt-n{LEVELS // 2}">orange, slanted</b> speaks {negative}',
        '<b class="kt-s">solid line</b> sufficient set',
        '<b class="kt-f">dotted line</b> flip set',
        *unknown,
        f"point at {'an instance' if isinstance(e, BagExplanation) else 'a word'}: attention × value = contribution",
    ]
    return _entries(entries)


def _entries(entries: Sequence[str]) -> str:
    return f'<p class="kt-legend">{"".join(f"<span>{entry}</span>" for entry in entries)}</p>' if entries else ""


def _text(e: Record) -> str:
    found = pieces(e)
    most = strongest(found)
    shown = clean(text_of(e))
    marked = "".join(_piece(shown[piece.start : piece.end], piece, most) for piece in found)
    rest = _rest(shown[LONGEST_TEXT:]) if len(shown) > LONGEST_TEXT else ""
    nothing = "" if shown else '<p class="kt-note">The text is empty.</p>'
    return f'<div class="kt-text" dir="auto" lang="">{marked}</div>{nothing}{rest}'


def _rest(text: str) -> str:
    return (
        f'<p class="kt-note">Only the first {LONGEST_TEXT:,} characters are highlighted. '
        f"The sentence, the tables and the probabilities cover the whole text.</p>"
        f"<details><summary>The other {len(text):,} characters</summary>"
        f'<div class="kt-text" dir="auto" lang="">{html.escape(text)}</div></details>'
    )


def _piece(text: str, piece: Piece, most: float) -> str:
    if not piece.uses:
        return html.escape(text)
    level = round(LEVELS * abs(piece.ink) / most) if most else 0
    classes = [f"kt-{_side(piece.ink)}{level}"] * (level > 0) + ["kt-s"] * piece.sufficient + ["kt-f"] * piece.flip
    tag = "mark" if piece.sufficient or piece.flip else "span"
    name = f' class="{" ".join(classes)}"' if classes else ""
    # what lies between two words needs no hint of its own: both have one
    hint = "" if text.isspace() else f' title="{"&#10;".join(map(_hint, piece.uses))}"'
    return f"<{tag}{name}{hint}>{html.escape(text)}</{tag}>"


def _hint(use: TokenUse) -> str:
    return f"{_escaped(one_line(use.text))}: {figure(use.attention)} × {signed(use.value)} = {signed(use.contribution)}"


# --- tables


def _section(title: str, says: Iterable[str], table: str) -> str:
    # a role, not a heading: notebooks would list a heading in their table of contents
    said = "".join(f'<p class="kt-size kt-soft">{_escaped(line)}</p>' for line in says if line)
    return f'<section><p class="kt-h" role="heading" aria-level="3">{_escaped(title)}</p>{said}{table}</section>\n'


def _rows(head: Row, rows: Sequence[Row], first: int = FIRST_ROWS) -> str:
    """A table; what exceeds `first` rows unfolds."""
    if not rows:
        return ""
    if len(rows) <= first + 2:
        return _table(head, rows)
    rest, beyond = rows[first:MOST_ROWS], len(rows) - max(MOST_ROWS, first)
    note = f'<p class="kt-note">And {beyond:,} more.</p>' if beyond > 0 else ""
    more = f"<details><summary>{len(rows) - first:,} more</summary>{_table(head, rest)}{note}</details>"
    return _table(head, rows[:first]) + more


def _table(head: Row, rows: Sequence[Row]) -> str:
    """The first column is text, columns without a name hold bars, the others hold numbers."""
    many = ' class="kt-many"' if len(head) > 4 else ""  # a narrow screen has no room for the bars of these
    kinds = ["", *("kt-num" if name else "kt-wide" for name in head[1:])]
    top = "".join(_cell("th", kind, _escaped(name), ' scope="col"') for kind, name in zip(kinds, head, strict=True))
    body = "".join(f"<tr>{''.join(map(_cell, ['td'] * len(row), kinds, row))}</tr>\n" for row in rows)
    return f"<table{many}><thead><tr>{top}</tr></thead>\n<tbody>\n{body}</tbody></table>"


def _cell(tag: str, kind: str, content: str, more: str = "") -> str:
    name = f' class="{kind}"' if kind else ""
    return f"<{tag}{more}{name}>{content}</{tag}>"


def _bar(x: float, most: float, colour: str) -> str:
    return _drawing(f'<rect class="kt-b{colour}" width="{100 * abs(x) / most if most else 0:.2f}" height="8"/>')


def _drawing(shapes: str) -> str:
    return f'<svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">{shapes}</svg>'


def _most(contributions: Iterable[float]) -> float:
    return max(map(abs, contributions), default=0.0)


def _formal_set(shown: ShownSet) -> str:
    most = _most(item.contribution for item in shown.items)
    where = {"tokens": ["times"], "words": ["at character"]}.get(shown.unit, [])

    def row(item: FormalItem) -> Row:
        place = len(item.spans) if shown.unit == "tokens" else item.start
        return (_name(item.text), *(f"{place:,}" for _ in where), *_contribution(item.contribution, most))

    rows = list(map(row, shown.items))
    return _section(shown.title, (shown.size, shown.says), _rows((shown.unit[:-1], *where, "contribution", ""), rows))


def _contribution(x: float, most: float) -> Row:
    return signed(x), _bar(x, most, _side(x))


def _contributions(e: Record) -> list[str]:
    """The strongest tokens or instances of each side, the label's first."""
    if e.certificate.silent:
        return _attended(e)
    found = totals(e)
    positive = [total for total in found if total.contribution > 0]
    negative = [total for total in reversed(found) if total.contribution < 0]
    tables = [_strongest(e.certificate.unit, *pair) for pair in zip(sides(e), (positive, negative), strict=True)]
    return tables[::-1] if len(e.probabilities) == 2 and e.label == next(iter(e.probabilities)) else tables


def _attended(e: Record) -> list[str]:
    """Where nothing is proved of single instances, their attention is all there is to show."""
    found = attended(e)
    if not found:
        return []
    rows = [(_name(name), figure(share), _bar(share, found[0][1], "k")) for name, share in found]
    says = "Attention on the instances, largest first; it adds up to 1."
    return [_section("Attention", (says,), _rows(("instance", "attention", ""), rows))]


def _strongest(unit: str, side: str, found: Sequence[TokenTotal]) -> str:
    top = found[:STRONGEST]
    most = _most(total.contribution for total in top)
    counted = unit == "tokens"  # an instance stands for itself alone
    rows = [
        (
            _name(total.text),
            *[f"{total.times:,}"] * counted,
            figure(total.attention),
            signed(total.value),
            *_contribution(total.contribution, most),
        )
        for total in top
    ]
    one = unit[:-1]
    says = f"{len(top)} of {len(found):,} {unit} that speak {side}." if found else f"No {one} speaks {side}."
    table = _rows((one, *["times"] * counted, "attention", "value", "contribution", ""), rows)
    return _section(f"Strongest {side}", (says,), table)


def _ranges(e: Record) -> str:
    c = e.certificate
    if not c.deleting:
        return ""

    def row(what: str, least: float, greatest: float) -> Row:
        return _escaped(what), at_least(least), at_most(greatest), _range(least, greatest, e.probability)

    rows = [row(f"at most {m} {c.unit if m > 1 else c.unit[:-1]}", *ends) for m, ends in c.deleting.items()]
    if c.keeping:
        rows.append(row("all or any outside the sufficient set", *c.keeping))
    exact = "Exact." if c.exact else "Bounds: the truth lies between them."
    says = f"Probability of {quoted(e.label)} after deleting whichever {c.unit}. {exact}"
    return _section("Range of the probability", (says,), _rows(("deleted", "least", "greatest", ""), rows))


def _range(least: float, greatest: float, here: float) -> str:
    return _drawing(
        '<rect class="kt-track" y="3" width="100" height="2"/>'
        f'<rect class="kt-bp" x="{100 * least:.2f}" width="{max(100 * (greatest - least), 0.6):.2f}" height="8"/>'
        f'<rect class="kt-here" x="{min(max(100 * here - 0.5, 0), 99):.2f}" y="-2" width="1" height="12"/>'
    )


def _key_tokens(found: Mapping[Any, Sequence[KeyToken]]) -> str:
    """The most decisive tokens of each class, over all the training documents."""
    if not found:
        return ""
    two = len(found) == 2  # then each class has the colour of its tokens in the texts
    colours = ["n", "p"] if two else ["p"] * len(found)
    sections = [_key_tokens_of(*entry, colour) for entry, colour in zip(found.items(), colours, strict=True)]
    return f'<div class="kt-grid">\n{"".join(sections)}</div>'


def _key_tokens_of(label: Any, tokens: Sequence[KeyToken], colour: str) -> str:
    most = _most(token.contribution for token in tokens)
    rows = [
        (
            _name(token.token),
            f"{token.counts.get(label, 0):,}",
            f"{sum(token.counts.values()) - token.counts.get(label, 0):,}",
            signed(token.value),
            signed(token.contribution),
            _bar(token.contribution, most, colour),
        )
        for token in tokens
    ]
    head = ("token", "texts in class", "other texts", "value", "contribution", "")
    return _section(f"Key tokens for {quoted(label)}", (), _rows(head, rows, 2 * FIRST_ROWS))


FAIL = '<span class="kt-fail">FAIL</span>'

_MORE = """
.keytokens.keytokens .kt-list{margin:0 0 1rem;padding:0;list-style:none;columns:22rem;column-gap:2.6rem}
.keytokens.keytokens .kt-list li{padding:.1rem 0;break-inside:avoid}
.keytokens.keytokens img{display:block;max-width:100%;height:auto;background:#fff;padding:.6rem;border-radius:6px;
 border:1px solid var(--kt-line);margin:.4rem 0 .8rem}
.keytokens.keytokens .kt-fail{color:var(--kt-n-solid);font-weight:650;font-style:italic}
.keytokens.keytokens ol.kt-notes{margin:.5rem 0 0;padding-left:1.3rem;max-width:50rem}
.keytokens.keytokens article table td{white-space:nowrap}
.keytokens.keytokens article table td:first-child{white-space:normal}
.keytokens.keytokens .kt-scroll{overflow-x:auto}
"""


def plain_page(title: str, content: str) -> str:
    """A whole page; the title is text, the content markup."""
    styles = f"style-src 'sha256-{DIGEST}' 'sha256-{digest(_MORE)}'"
    policy = f"default-src 'none'; {styles}; img-src data:; base-uri 'none'; form-action 'none'"
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{html.escape(title)}</title>
<style>{CSS}</style>
<style>{_MORE}</style>
</head>
<body class="keytokens kt-page">
<main>
{content}
</main>
</body>
</html>
"""
