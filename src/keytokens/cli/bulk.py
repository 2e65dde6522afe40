"""What the commands share that go through a table of any size: progress, and one JSON document that is long."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ..bar import Bar
from ..tables import Table

__all__ = ["counted", "free_name", "long_document"]

_PATIENCE = 1.0  # seconds before a bar is shown


def counted(batches: Iterable[Table], doing: str) -> Iterator[Table]:
    """The batches, and on a terminal how many rows have come by, if it takes long."""
    with Bar(desc=doing, unit=" rows", unit_scale=True, disable=None, leave=False, delay=_PATIENCE) as bar:
        for batch in batches:
            yield batch
            bar.update(len(batch))


def free_name(taken: Iterable[str], name: str) -> str:
    """A column name that is not taken yet."""
    others, found, number = set(taken), name, 2
    while found in others:
        found, number = f"{name}_{number}", number + 1
    return found


@contextmanager
def long_document(name: str, head: dict[str, Any]) -> Iterator[Callable[[Any], None]]:
    """Print {**head, name: [...]} when all is well, and nothing at all otherwise.

    The function that is given adds one entry to the list. Entries lie on the disk until the last one is known, and with
    it what `head` says of all of them.
    """
    with tempfile.TemporaryFile("w+", encoding="ascii") as spool:
        between = ""

        def add(entry: Any) -> None:
            nonlocal between
            spool.write(between + json.dumps(entry, allow_nan=False))
            between = ", "

        yield add
        spool.seek(0)
        before = json.dumps(head, allow_nan=False).removesuffix("}")
        sys.stdout.write(f'{before}{", " if head else ""}"{name}": [')
        shutil.copyfileobj(spool, sys.stdout)
        sys.stdout.write("]}\n")
