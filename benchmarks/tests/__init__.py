"""The scripts of benchmarks/."""

import csv
from pathlib import Path

ROOT = Path(__file__).parents[2]


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))
