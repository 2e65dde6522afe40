"""`keytokens explain`: one text or one bag, why it gets its label, and what is proved of it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ..bags import BagClassifier
from ..errors import DataError
from ..persist import load
from ..report.terminal import explanation_text, wants_colour
from ..tables import read_table
from .common import JsonOption, say, show_json, width

__all__ = ["explain"]


def explain(
    model: Annotated[Path, typer.Argument(help="Directory of a model.")],
    text: Annotated[
        str, typer.Argument(help="The text; for a model of bags a table, one instance a row. - reads standard input.")
    ],
    html: Annotated[Path | None, typer.Option("--html", help="Write a page that stands alone.")] = None,
    json: JsonOption = False,
) -> None:
    """Show which tokens decide the label of a text, with the proof."""
    clf = load(model)
    explanation = clf.explain(_bag(text) if isinstance(clf, BagClassifier) else _text(text))
    if html is not None:
        explanation.to_html(html)
    if json:
        show_json(explanation.to_dict())
        return
    say(explanation_text(explanation, colour=wants_colour(sys.stdout), width=width()))
    if html is not None:
        say(f"\npage: {html}")


def _text(given: str) -> str:
    return sys.stdin.buffer.read().decode("utf-8", "replace") if given == "-" else given


def _bag(source: str) -> Any:
    table = read_table(source)
    try:
        return np.array(list(table.columns.values()), np.float64).T
    except (TypeError, ValueError) as error:
        why = str(error).split(";")[0]
        raise DataError(f"{table.name}: every column must hold numbers; saw otherwise ({why}).") from None
