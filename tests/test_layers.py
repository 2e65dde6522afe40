"""Imports point one way: a room imports itself and rooms below it. docs/architecture.md shows the arrow."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import keytokens

ROOT = Path(keytokens.__file__).parent
RANK = {"_version": 0, "base": 1, "io": 2, "text": 2, "model": 2, "training": 3, "proof": 3, "explain": 4}
RANK |= {"estimators": 5, "dask": 6, "app": 7, "lab": 8, "__init__": 9, "__main__": 9}
NOT_IN_THE_LAB = {"app", "dask"}
DOORS = {  # imports against the arrow, inside a function
    ("app/cli/figure.py", "lab"),
    ("app/cli/lab.py", "lab"),
    ("app/cli/verify.py", "lab"),
    ("estimators/text.py", "app"),
}


def rooms_of(file: Path) -> Iterator[str]:
    """The rooms that a file imports, its own among them."""
    package = ["keytokens", *file.relative_to(ROOT).parts[:-1]]
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            path = [*base, *(node.module.split(".") if node.module else [])]
            if path[0] == "keytokens":
                yield from path[1:2] or (alias.name for alias in node.names)


@pytest.mark.parametrize("file", sorted(ROOT.rglob("*.py")), ids=lambda file: str(file.relative_to(ROOT)))
def test_imports_point_one_way(file):
    name = file.relative_to(ROOT).as_posix()
    me = name.split("/")[0].removesuffix(".py")
    for other in set(rooms_of(file)) - {me}:
        allowed = RANK[other] < RANK[me] and not (me == "lab" and other in NOT_IN_THE_LAB)
        assert allowed or (name, other) in DOORS, f"{name} must not import the room {other}"


def test_every_door_is_used():
    assert all(room in set(rooms_of(ROOT / name)) for name, room in DOORS)
