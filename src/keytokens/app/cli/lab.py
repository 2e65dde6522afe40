"""`keytokens lab`: the laboratory's own tables."""

from __future__ import annotations

from typing import Annotated

import typer

from ...base.progress import Bar
from ...lab.figures.notebooks import Row, experiments, rerun, text
from .common import JsonOption, say, show_json

lab = typer.Typer(name="lab", help="Published experiments, run again.", rich_markup_mode=None)


@lab.callback()
def _lab() -> None:
    """Published experiments, run again."""


@lab.command()
def notebooks(
    name: Annotated[list[str] | None, typer.Argument(help="Names of experiments, as 3b; all by default.")] = None,
    json: JsonOption = False,
) -> None:
    """Every published experiment: the published value, as published in single and double precision, and exactly."""
    chosen, rows = experiments(name or ()), list[Row]()
    with Bar(chosen, unit="experiment", disable=None, leave=False) as bar:
        for one in bar:
            bar.set_description(one.name)
            rows += rerun(one)
    if json:
        show_json(
            {"rows": [row.to_dict() for row in rows], "notes": {one.name: one.note for one in experiments(name or ())}}
        )
    else:
        say(text(rows))
