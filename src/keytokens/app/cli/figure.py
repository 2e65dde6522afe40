"""`keytokens figure`: compute, draw and check the figures of the papers."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Annotated

import typer

from ...base.errors import DataError, MissingExtra, refusal
from ...base.files import check_output, write_whole
from ...lab.figures import Made, figures, index_page, make, summary
from ...lab.figures.figure import Figure, numbered_notes
from ...lab.figures.look import check_matplotlib
from .common import JsonOption, say, show_json, width


def figure(
    name: Annotated[list[str] | None, typer.Argument(help="Names of figures; --list shows them.")] = None,
    every: Annotated[bool, typer.Option("--all", help="All figures, and one page with all of them.")] = False,
    listed: Annotated[bool, typer.Option("--list", help="Show the names and titles, and do no more.")] = False,
    full: Annotated[bool, typer.Option("--full", help="As many runs as published, not a sample of them.")] = False,
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for the files.")] = Path("figures"),
    json: JsonOption = False,
) -> None:
    """Figures of the papers: compute the table, draw it, check its numbers. Exit code 1 if a check fails."""
    if listed:
        _show_list(figures(name or ()), json)
        return
    chosen = _chosen(name or [], every)
    check_output(output, "index.html")
    made, absent = [], {}
    for one in chosen:
        try:
            made.append(make(one, full=full))
        except (DataError, MissingExtra) as error:  # texts that are not at hand
            if not every:
                raise
            absent[one.name] = str(error)
            say(f"{one.name}: left out: {error}\n", quiet=json)
            continue
        made[-1].write(output)
        say(_text(made[-1], width()), quiet=json)
    page = output / "index.html" if every else None
    if page is not None:
        write_whole(page, index_page(made).encode("utf-8"))
    passed = all(one.passed for one in made)
    if json:
        found = [one.to_dict() for one in made]
        show_json(
            {"passed": passed, "folder": str(output), "page": page and str(page), "figures": found, "left_out": absent}
        )
    else:
        say(summary(made) + (f"\npage: {page}" if page else ""))
    if not passed:
        raise typer.Exit(1)


def _chosen(names: list[str], every: bool) -> list[Figure]:
    if every and names:
        raise refusal("figure", "NAME", "be left out where --all is given", names)
    if not every and not names:
        raise refusal("figure", "NAME", "be given", "none", "name figures, see --list, or give --all")
    chosen = figures(names)
    check_matplotlib()
    return chosen


def _show_list(found: list[Figure], json: bool) -> None:
    if json:
        show_json({"figures": [{"name": one.name, "title": one.title} for one in found]})
        return
    longest = max(len(one.name) for one in found)
    for one in found:
        say(f"{one.name:<{longest}}  {one.title}")


def _text(made: Made, columns: int) -> str:
    """Name, files, checks and notes of one figure."""
    notes = numbered_notes(made.checks)
    lines = [f"{made.figure.name}: {made.figure.title} ({made.seconds:.1f} s)"]
    for check in made.checks:
        mark = f" [{notes.index(check.note) + 1}]" if check.note else ""
        lines.append(f"  {check.verdict}  {check.name}: {check.seen}, expected {check.wanted} ({check.source}){mark}")
    for place, note in enumerate(notes, 1):
        lines += textwrap.wrap(f"[{place}] {note}", max(40, columns), initial_indent="  ", subsequent_indent="      ")
    return "\n".join(lines) + "\n"
