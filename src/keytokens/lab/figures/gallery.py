"""All figures by name, and how one is made."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from ...base.errors import refusal
from ...base.files import write_whole, writing
from .figure import Check, Figure, Tables, csv_bytes
from .look import Pictures, check_matplotlib, pictures

# in the order of the page
FILES = (
    "fig_1a",
    "fig_1b",
    "fig_1c",
    "cone",
    "fig_3a",
    "fig_3b",
    "fig_3c",
    "fig_4a",
    "fig_4b",
    "fig_5",
    "fig_8",
    "fig_9a",
    "fig_9b",
    "fig_10",
    "ma_paths",
    "ma_lines",
    "ma_local",
    "ma_rank",
    "ma_global",
    "ma_several",
    "mi_norms",
    "mi_joint",
    "rates",
    "te_step",
    "te_flow",
    "te_shape",
    "te_select",
    "te_reviews",
    "text_imdb",
    "text_yelp_reviews",
    "text_yelp_sentences",
    "text_training",
)


def figures(names: Sequence[str] = ()) -> list[Figure]:
    """The figures with these names, each once and in the order given; all of them without names."""
    every = {figure.name: figure for figure in (import_module(f".{file}", __package__).FIGURE for file in FILES)}
    for name in names:
        if name not in every:
            raise refusal("figure", "NAME", f"be one of {', '.join(every)}", name)
    return [every[name] for name in (dict.fromkeys(names) if names else every)]


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
    drawn = pictures(figure.draw, tables, figure.title)
    return Made(figure, tables, drawn, tuple(figure.checks(tables)), time.perf_counter() - begin)
