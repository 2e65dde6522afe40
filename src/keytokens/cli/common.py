"""What the commands share: their options, and how they speak."""

from __future__ import annotations

import json
import shutil
import sys
from typing import Annotated, Any

import typer

__all__ = ["JsonOption", "TableFormat", "TextColumn", "ThreadsOption", "say", "show_json", "width"]

TextColumn = Annotated[str | None, typer.Option("--text", help="Column with the text; guessed if not given.")]
TableFormat = Annotated[
    str | None,
    typer.Option("--format", help="csv, tsv, jsonl or parquet; by default the ending of the file's name says it."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
ThreadsOption = Annotated[int | None, typer.Option("--threads", min=1, help="Threads; all cores by default.")]


def say(line: str = "", *, quiet: bool = False) -> None:
    """One line for a person; never where a JSON document is expected."""
    if not quiet:
        print(line.encode(sys.stdout.encoding or "utf-8", "replace").decode(sys.stdout.encoding or "utf-8"))


def show_json(record: dict[str, Any]) -> None:
    # plain ASCII: any terminal and any reader can take it, lone surrogates included
    print(json.dumps(record, allow_nan=False))


def width() -> int:
    return min(120, shutil.get_terminal_size((100, 24)).columns)
