"""Figures that check themselves: tables are computed, drawn, and their numbers are compared with what is known.

A figure is three functions: one computes tables, one checks their numbers, and one draws them under the decorator
:func:`figure`. `keytokens figure NAME -o folder` writes NAME.csv (NAME-TABLE.csv if there are several tables), NAME.png
and NAME.svg, prints the checks and exits with 1 if one fails. docs/develop/add-a-figure.md says how to add one.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from ...base.errors import refusal
from ...base.files import write_whole, writing
from ...explain import html
from ...explain.html import FAIL, escaped, plain_page
from .figure import REGISTRY, Check, Figure, Tables, csv_bytes, figure, numbered_notes, table
from .look import DPI, Pictures, check_matplotlib, pictures

__all__ = ["Check", "Figure", "Made", "Tables", "figure", "figures", "make", "table"]

FAMILIES = (  # modules, in the order of the page
    "six_starts",
    "max_margin",
    "joint",
    "random_problems",
    "matrices",
    "matrix_runs",
    "mirrors",
    "embeddings",
    "real_texts",
    "several_classes",
)


def figures(names: Sequence[str] = ()) -> list[Figure]:
    """The figures with these names, each once and in the order given; all of them without names."""
    for family in FAMILIES:
        import_module(f".{family}", __package__)
    every = {one.name: one for one in sorted(REGISTRY, key=_family)}  # whichever was imported first
    for name in names:
        if name not in every:
            raise refusal("figure", "NAME", f"be one of {', '.join(every)}", name)
    return [every[name] for name in dict.fromkeys(names)] if names else list(every.values())


def _family(one: Figure) -> int:
    """The place of the module that draws it."""
    module = str(one.draw.__module__).rpartition(".")[2]
    return FAMILIES.index(module) if module in FAMILIES else len(FAMILIES)


@dataclass(frozen=True, eq=False)
class Made:
    """A figure that has been computed, drawn and checked."""

    figure: Figure
    tables: Tables
    pictures: Pictures
    checks: tuple[Check, ...]
    seconds: float

    @property
    def passed(self) -> bool:
        return all(check.passed for check in self.checks)

    @property
    def files(self) -> dict[str, bytes]:
        """Names and contents."""
        name, several = self.figure.name, len(self.tables) > 1
        return {
            **{f"{name}-{key}.csv" if several else f"{name}.csv": csv_bytes(t) for key, t in self.tables.items()},
            f"{name}.png": self.pictures.png,
            f"{name}.svg": self.pictures.svg,
        }

    def write(self, folder: Path) -> list[Path]:
        """Each file whole or not at all."""
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
        for name, content in self.files.items():
            write_whole(folder / name, content)
        return [folder / name for name in self.files]

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.figure.name,
            "title": self.figure.title,
            "caption": self.figure.caption,
            "passed": self.passed,
            "checks": [check.to_dict() for check in self.checks],
            "files": list(self.files),
            "seconds": round(self.seconds, 3),
        }


def make(figure: Figure, small: bool = False, full: bool = False) -> Made:
    """Compute, draw and check; nothing is written. `full`: as large as published, where the figure is a sample."""
    check_matplotlib()
    begin = time.perf_counter()
    tables = figure.full() if full and figure.full is not None else figure.compute(small)
    drawn = pictures(figure, tables)
    return Made(figure, tables, drawn, tuple(figure.checks(tables)), time.perf_counter() - begin)


# All of them on one page: no script, no network; the pictures are inside ----------------------------------------------

TITLE = "keytokens: figures that check themselves"
INTRO = """\
Every figure here was computed, drawn and checked by one command. A check compares a number of the figure with what \
is known: from the paper, from its published code, or found by us before, by another road. Where two of them \
differ, a note says which is right."""


def index_page(made: Sequence[Made]) -> str:
    """The figures one below the other, with a list of contents."""
    contents = "".join(
        f'<li><a href="#{_name(one)}">{_name(one)}</a> {escaped(one.figure.title)}{_mark(one.passed)}</li>\n'
        for one in made
    )
    parts = [
        f"<h1>{escaped(TITLE)}</h1>",
        f'<p class="kt-intro">{escaped(INTRO)}</p>',
        f'<p class="kt-proof">{escaped(summary(made))}</p>',
        f'<ul class="kt-list">\n{contents}</ul>',
        *map(_article, made),
    ]
    return plain_page(TITLE, "<main>\n" + "\n".join(parts) + "\n</main>", allow="img-src data:")


def summary(made: Sequence[Made]) -> str:
    """All verdicts in a sentence."""
    checks = sum(len(one.checks) for one in made)
    failed = [one.figure.name for one in made if not one.passed]
    counted = f"{_counted(len(made), 'figure')}, {_counted(checks, 'check')}"
    if not failed:
        return f"{counted}: all pass."
    wrong = sum(not check.passed for one in made for check in one.checks)
    return f"{counted}: {wrong} fail, in {', '.join(failed)}."


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" + ("" if count == 1 else "s")


def _article(made: Made) -> str:
    name, title = _name(made), escaped(made.figure.title)
    files = ", ".join(f'<a href="{escaped(file)}">{escaped(file)}</a>' for file in made.files)
    return f"""<article id="{name}">
<h2>{name}. {title}</h2>
{_picture(made)}
<p class="kt-intro">{escaped(made.figure.caption)}</p>
<p class="kt-soft">{files}</p>
<details open><summary>{escaped(summary([made]).partition(", ")[2])}</summary>
{_checks(made.checks)}
</details>
</article>"""


def _picture(made: Made) -> str:
    png = made.pictures.png
    # the first chunk of a PNG holds width and height; on the screen an inch has 96 dots
    width, height = (round(int.from_bytes(png[at : at + 4], "big") * 96 / DPI) for at in (16, 20))
    data = base64.b64encode(png).decode("ascii")
    alt = escaped(f"{made.figure.title}. {made.figure.caption}")
    return f'<img src="data:image/png;base64,{data}" width="{width}" height="{height}" alt="{alt}">'


def _checks(checks: Sequence[Check]) -> str:
    notes = numbered_notes(checks)
    rows = [
        (
            escaped(check.name) + (f" [{notes.index(check.note) + 1}]" if check.note else ""),
            *map(escaped, (check.seen, check.wanted, check.source)),
            "pass" if check.passed else FAIL,
        )
        for check in checks
    ]
    said = "".join(f"<li>{escaped(note)}</li>\n" for note in notes)
    below = f'<ol class="kt-notes kt-soft">\n{said}</ol>' if notes else ""
    head = ("check", "measured", "expected", "source", "verdict")
    return f'<div class="kt-scroll">{html.table(head, rows)}</div>{below}'


def _mark(passed: bool) -> str:
    return "" if passed else f" {FAIL}"


def _name(made: Made) -> str:
    return escaped(made.figure.name)
