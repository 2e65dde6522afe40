"""The first look at an upload, in a process of its own: `python -m keytokens.app.serve.preview`.

A table of a million rows is read whole, which takes gigabytes and many seconds of one lock; the server has neither.
The task is one JSON object on standard input, the answer one on standard output: {"facts": ...} or {"error": "..."}.
"""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from ...base.errors import DataError, InputError, KeyTokensError, MissingExtra
from ...io.reading import read_table
from ...io.sources import opened
from ...io.table import guess_columns
from .store import check_names

ROWS = 5  # that are shown
_CELL = 200  # characters of a shown cell
_COLUMNS = 1_000
_NAME = 1_000  # characters of a column's name


async def look(file: Path, kind: str, name: str, seconds: float, most: int | None = None) -> dict[str, Any]:
    """The facts of an upload, unpacked of up to so many bytes; DataError says what is wrong with it."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "keytokens.app.serve.preview"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    task = json.dumps({"file": str(file), "kind": kind, "name": name, "most": most}).encode()
    try:
        said, _ = await asyncio.wait_for(process.communicate(task), seconds)
    except TimeoutError:
        raise DataError(f"{name}: the table took too long to read. Cure: upload a part of it.") from None
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    if process.returncode:
        raise DataError(f"{name}: the table needs more memory than there is. Cure: upload a part of it.")
    answer = json.loads(said)
    if "extra" in answer:
        raise MissingExtra(answer["extra"])
    if "error" in answer:
        raise DataError(answer["error"])
    return dict(answer["facts"])


def facts_of(file: str, kind: str, name: str, most: int | None = None) -> dict[str, Any]:
    """What a person needs to choose columns: their names, guesses, and the first rows."""
    if most is not None:
        _check_size(file, name, most)
    table = read_table(file, kind, called=name)
    columns = list(table.columns)
    longest = max(map(len, columns))
    if len(columns) > _COLUMNS:
        raise DataError(f"{name}: a table may have {_COLUMNS:,} columns; saw {len(columns):,}.")
    if longest > _NAME:
        raise DataError(f"{name}: a column's name may have {_NAME:,} characters; saw {longest:,}.")
    check_names("column names", columns)
    rows = [[_shown(table.columns[column][i]) for column in columns] for i in range(min(ROWS, len(table)))]
    try:
        text, label = guess_columns(table, None, None)
    except InputError:
        text, label = None, None
    return {"format": kind, "rows": len(table), "columns": columns, "text": text, "label": label, "preview": rows}


def _check_size(file: str, name: str, most: int) -> None:
    """A table is read whole, and a small file may unpack to terabytes."""
    with opened(file, name) as content:
        left = most
        while left >= 0 and (piece := content.read(1 << 20)):
            left -= len(piece)
    if left < 0:
        raise DataError(f"{name}: a table may unpack to {most:,} bytes; saw more. Cure: upload a part of it.")


def _shown(value: Any) -> str:
    return str(value)[:_CELL].encode("utf-8", "replace").decode("utf-8")


def main() -> None:
    task = json.loads(sys.stdin.buffer.read())
    try:
        answer: dict[str, Any] = {"facts": facts_of(**task)}
    except MissingExtra as error:
        answer = {"extra": str(error)}
    except KeyTokensError as error:
        answer = {"error": str(error)}
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main()
