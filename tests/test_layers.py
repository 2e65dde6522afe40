"""Imports point one way: a module imports from its own row or from rows above it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import keytokens

ROOT = Path(keytokens.__file__).parent
ROWS = [
    "_version errors",
    "notation validate parallel files mapped bar",
    "text core tables corpora",
    "optim svm",
    "selection paths",
    "certificate",
    "explanation",
    "explain training fitting compression streaming",
    "classifier bags theory",
    "persist evaluation tuning",
    "report figures",
    "serve",
    "dask",
    "cli",
    "__init__ __main__",
]
RANK = {name: row for row, names in enumerate(ROWS) for name in names.split()}

# Doors: a method that must look upwards does so inside the function, and only these do.
DOORS = {
    ("explanation/record.py", "keytokens.report"),
    ("bags/estimator.py", "keytokens.persist"),
    ("classifier/text.py", "keytokens.persist"),
    ("classifier/text.py", "keytokens.report"),
}
# Maths and strings meet only in `explain` and `classifier`.
STRANGERS = [
    ("core", "text"),
    ("text", "core"),
    ("optim", "text"),
    ("certificate", "text"),
    ("report", "classifier"),
    ("report", "bags"),
    ("theory", "classifier"),
]


def imports(file: Path) -> Iterator[str]:
    """Full names of the package's own modules that a file imports."""
    package = ["keytokens", *file.relative_to(ROOT).parts[:-1]]
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            name = ".".join([*base, *([node.module] if node.module else [])])
            if name == "keytokens":
                yield from (f"keytokens.{alias.name}" for alias in node.names)
            elif name.startswith("keytokens."):
                yield name
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("keytokens."))


def top(file: Path) -> str:
    return file.relative_to(ROOT).parts[0].removesuffix(".py")


@pytest.mark.parametrize("file", sorted(ROOT.rglob("*.py")), ids=lambda file: str(file.relative_to(ROOT)))
def test_imports_point_one_way(file):
    me = top(file)
    assert me in RANK, f"{me} has no row: put it into ROWS"
    for name in imports(file):
        other = name.split(".")[1]
        door = (str(file.relative_to(ROOT)), ".".join(name.split(".")[:2]))
        assert other in RANK, f"{name} has no row"
        assert RANK[other] <= RANK[me] or door in DOORS, f"{file.name} imports {name}, which stands below it"
        assert (me, other) not in STRANGERS, f"{me} must not know {other}"


def test_every_door_is_used():
    used = {
        (str(file.relative_to(ROOT)), ".".join(name.split(".")[:2]))
        for file in ROOT.rglob("*.py")
        for name in imports(file)
        if RANK[name.split(".")[1]] > RANK[top(file)]
    }
    assert used == DOORS
