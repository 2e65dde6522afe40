"""What the server does in processes of their own, `python -m keytokens.app.serve.worker`: looks at uploads, trainings.

A table of a million rows takes gigabytes and many seconds of one lock, and a training takes more; the server has
neither. The first line on standard input is the task. The rest is never written, so its end means that the server is
gone, and the process ends too. On standard output is one JSON object a line: progress, and last "done" or "failed".
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from ...base.errors import DataError, InputError, KeyTokensError, MissingExtra
from ...io.reading import read_table
from ...io.sources import opened
from ...io.table import guess_columns
from .store import check_names, reason

ROWS = 5  # of an upload that are shown
_CELL = 200  # characters of a shown cell
_VALUE = 60  # characters of a common value
_COMMON = 12  # values of a column that are counted one by one
_COLUMNS = 1_000
_NAME = 1_000  # characters of a column's name
_LINE = 1 << 24  # bytes of one line of a process: a look with so many long names is the longest
_ENDS = ("done", "failed")
Say = Callable[[dict[str, Any]], None]


# ---- on the side of the server


async def run_task(task: dict[str, Any], hear: Say | None = None) -> dict[str, Any]:
    """Run a task in a process of its own and return the last thing that it says; `hear` gets what comes before."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", __name__),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        limit=_LINE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    last: dict[str, Any] = {}
    try:
        process.stdin.write(json.dumps(task).encode() + b"\n")
        await process.stdin.drain()
        async for line in process.stdout:
            last = json.loads(line)
            if hear is not None and last["stage"] not in _ENDS:
                hear(last)
        await process.wait()
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    if last.get("stage") in _ENDS:
        return last
    return {"stage": "failed", "message": f"the process ended with code {process.returncode}."}


async def look(file: Path, kind: str, name: str, seconds: float, most: int | None = None) -> dict[str, Any]:
    """The facts of an upload, unpacked of up to so many bytes; DataError says what is wrong with it."""
    task = {"do": "look", "file": str(file), "kind": kind, "name": name, "most": most}
    try:
        said = await asyncio.wait_for(run_task(task), seconds)
    except TimeoutError:
        raise DataError(f"{name}: the table took too long to read. Upload a part of it.") from None
    if said["stage"] == "done":
        return dict(said["facts"])
    error = said.get("error")
    if error == "MissingExtra":
        raise MissingExtra(said["message"])
    if error == "KeyTokensError":
        raise DataError(said["message"])
    raise DataError(f"{name}: the table needs more memory than there is. Upload a part of it.")


# ---- in the process: the first look at an upload


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
    return {
        "format": kind,
        "rows": len(table),
        "columns": columns,
        "text": text,
        "label": label,
        "preview": rows,
        "holds": [_holds(table.columns[column]) for column in columns],
    }


def _holds(values: list[Any]) -> dict[str, Any]:
    """What a column holds: how many different values, of what length, and the commonest ones, as they are shown."""
    times = Counter(map(str, values))
    return {
        "distinct": len(times),
        "length": sum(len(value) * n for value, n in times.items()) / max(1, len(values)),
        "common": [[_shown(value, _VALUE), n] for value, n in times.most_common(_COMMON)],
    }


def _check_size(file: str, name: str, most: int) -> None:
    """A table is read whole, and a small file may unpack to terabytes."""
    with opened(file, name) as content:
        left = most
        while left >= 0 and (piece := content.read(1 << 20)):
            left -= len(piece)
    if left < 0:
        raise DataError(f"{name}: a table may unpack to {most:,} bytes; saw more. Upload a part of it.")


def _shown(value: Any, most: int = _CELL) -> str:
    return str(value)[:most].encode("utf-8", "replace").decode("utf-8")


# ---- in the process: the way in


def _end_with_the_server() -> None:
    while sys.stdin.buffer.read(4096):
        pass
    os._exit(1)


def main() -> None:
    """Do the task on standard input, and say on standard output how it goes on and ends."""
    task = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with_the_server, daemon=True).start()

    def say(record: dict[str, Any]) -> None:
        sys.stdout.write(json.dumps(record) + "\n")
        sys.stdout.flush()

    def fail(message: str, error: str = "") -> None:
        say({"stage": "failed", "message": " ".join(message.split()), "error": error})

    try:
        if task.pop("do") == "look":
            say({"stage": "done", "facts": facts_of(**task)})
        else:
            from .training import build_model  # a look needs nothing of it, and it takes a second to load

            build_model(task, say)
            say({"stage": "done"})
    except MissingExtra as error:
        fail(str(error), "MissingExtra")
    except KeyTokensError as error:
        fail(str(error), "KeyTokensError")
    except OSError as error:
        fail(f"the store cannot be written: {reason(error)}.")
    except MemoryError:
        fail("not enough memory for this much data.")
    os._exit(0)  # the thread that waits for the server would hold the process


if __name__ == "__main__":
    main()
