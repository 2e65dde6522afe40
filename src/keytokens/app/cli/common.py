"""What the commands share: options, how they speak and save, and long JSON documents of tables of any size."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sys
import tempfile
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from ...base.checks import Seen
from ...base.errors import InputError, OutputError, refusal, shorten
from ...base.files import check_output
from ...base.progress import Bar
from ...estimators.tuning import LEAST_BYTES
from ...io.table import Table
from ..jobs import Watcher

TextColumn = Annotated[str | None, typer.Option("--text", help="Column with the text; guessed if not given.")]
TableFormat = Annotated[
    str | None,
    typer.Option("--format", help="csv, tsv, jsonl or parquet; by default the ending of the file's name says it."),
]
ForceOption = Annotated[bool, typer.Option("--force", help="Let the output replace its own input.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
ThreadsOption = Annotated[int | None, typer.Option("--threads", min=1, help="Threads; all cores by default.")]


def too_late_to_interrupt() -> None:
    """From here on Ctrl-C does nothing: what a command has saved is saved, and it must not say otherwise."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def check_target(who: str, option: str, target: str | Path, data: str, force: bool) -> None:
    """Refuse, before the work, a file that cannot be written, or that holds the data (or some of a folder of them)."""
    if target == "-":
        return
    check_output(Path(target))
    below = (os.path.join(at, name) for at, _, names in os.walk(data) for name in names)
    for source in () if force else (0 if data == "-" else data, *below):
        with suppress(OSError):  # one of the two is not there
            if os.path.samefile(source, target):
                advice = "give another name, or --force to replace the data"
                raise refusal(who, option, "be another file than the data", os.fspath(target), advice)


def save_model(model: Any, output: Path) -> None:
    """Save what was trained; where that fails, beside the output or in the system's temporary folder, and say where."""
    too_late_to_interrupt()
    try:
        model.save(output)
    except OutputError as error:
        for place in (output.absolute().parent, None):
            with suppress(OSError), ExitStack() as undo:
                rescue = tempfile.mkdtemp(prefix="keytokens-rescue-", dir=place)
                undo.callback(shutil.rmtree, rescue, ignore_errors=True)
                model.save(rescue)
                undo.pop_all()
                break
        else:
            raise OutputError(f"{error} The temporary folder cannot be written either: the model is lost.") from error
        raise OutputError(f"{error} The model was saved to {rescue!r} instead.") from error


def say(line: str = "", *, quiet: bool = False) -> None:
    """One line for a person; never where a JSON document is expected."""
    if not quiet:
        print(line.encode(sys.stdout.encoding or "utf-8", "replace").decode(sys.stdout.encoding or "utf-8"))


def warn(line: str) -> None:
    """One line on stderr about something that is no reason to stop."""
    print("keytokens: " + " ".join(line.split()), file=sys.stderr)


def show_json(record: dict[str, Any]) -> None:
    # plain ASCII: any terminal and any reader can take it, lone surrogates included
    print(json.dumps(record, allow_nan=False))


def width() -> int:
    return min(120, shutil.get_terminal_size((100, 24)).columns)


_UNITS = {"": 1, "k": 1_000, "m": 1_000_000, "g": 1_000_000_000}


def bytes_of(size: str, option: str = "--size", least: int = LEAST_BYTES) -> int:
    """A number of bytes as people write it.

    >>> bytes_of("500kB"), bytes_of("1.5 MB"), bytes_of("2G"), bytes_of("20000")
    (500000, 1500000, 2000000000, 20000)
    """
    found = re.fullmatch(r"(\d{1,12}(?:\.\d{1,12})?)\s*([kmg]?)b?", size.strip().lower(), re.ASCII)
    number = int(float(found[1]) * _UNITS[found[2]]) if found else 0
    if number < least:
        lowest = f"{least // 1_000_000}MB" if least >= 1_000_000 else f"{least // 1000}kB"
        raise InputError(f"{option} must be at least {lowest}, written like 500kB, 2MB or 1GB; saw {size!r}.")
    return number


_PATIENCE = 1.0  # seconds before a bar is shown
_CLASSES = 10  # that are listed


def counted(batches: Iterable[Table], doing: str) -> Iterator[Table]:
    """The batches, and on a terminal how many rows have come by, if it takes long."""
    with Bar(desc=doing, unit=" rows", unit_scale=True, disable=None, leave=False, delay=_PATIENCE) as bar:
        for batch in batches:
            yield batch
            bar.update(len(batch))


class Teller(Watcher):
    """Tells a person how a fit goes on; where a JSON document is expected, only the warnings."""

    def __init__(self, quiet: bool) -> None:
        self.quiet = quiet
        self.verbose = 0 if quiet else 1

    def say(self, line: str) -> None:
        say(line, quiet=self.quiet)

    def warn(self, line: str) -> None:
        warn(line)

    def classes(self, counts: Counter[Any]) -> None:
        """How many texts each class has, and a warning of labels that differ by case or spaces only."""
        shown = {label: f"{shorten(label, 40)} ({n:,})" for label, n in counts.most_common()}
        more = f" and {len(shown) - _CLASSES:,} more" if len(shown) > _CLASSES else ""
        listed = ", ".join(list(shown.values())[:_CLASSES])
        self.say(f"{len(shown):,} class{'es' * (len(shown) != 1)}: {listed}{more}")
        spelled = defaultdict(list)
        for label, one in shown.items():
            spelled["".join(str(label).split()).casefold()].append(one)
        alike = "; ".join(" and ".join(found) for found in spelled.values() if len(found) > 1)
        if alike:
            seen = shorten(Seen(alike), 500)
            self.warn(f"fit: labels {seen} differ only by case or spaces. Write them alike if they mean the same.")

    def counted(self, batches: Iterator[Table], doing: str) -> Iterator[Table]:
        return counted(batches, doing)

    @contextmanager
    def parts(self, of: int) -> Iterator[Callable[[int, int], None]]:
        """A bar that also counts the last fit, to all texts, so that the time left is that of the whole."""
        disable = True if self.quiet else None
        with Bar(desc="fits", total=of + 1, unit=" fits", disable=disable, leave=False, delay=_PATIENCE) as bar:
            yield lambda done, of: bar.update() and None


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
