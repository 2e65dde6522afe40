"""`keytokens explain`: one text, why it gets its label, and what is proved of it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ..persist import load
from ..report.terminal import explanation_text, wants_colour
from .common import JsonOption, say, show_json, width

__all__ = ["explain"]


def explain(
    model: Annotated[Path, typer.Argument(help="Directory of a model.")],
    text: Annotated[str, typer.Argument(help="The text; - to read it from standard input.")],
    html: Annotated[Path | None, typer.Option("--html", help="Write a page that stands alone.")] = None,
    json: JsonOption = False,
) -> None:
    """Show which tokens decide the label of a text, with the proof."""
    clf = load(model)
    if text == "-":
        text = sys.stdin.buffer.read().decode("utf-8", "replace")
    explanation = clf.explain(text)
    if html is not None:
        explanation.to_html(html)
    if json:
        show_json(explanation.to_dict())
        return
    say(explanation_text(explanation, colour=wants_colour(sys.stdout), width=width()))
    if html is not None:
        say(f"\npage: {html}")
