"""The two roads of docs/architecture.md: their calls exist, take and give what is said, and follow one another."""

import functools
import inspect
import re
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from keytokens.app.cli.app import run
from keytokens.io import write_table

from .corpus import reviews

PAGE = (Path(__file__).parent.parent / "docs" / "architecture.md").read_text("utf-8")


def rows_of(road: str) -> list[list[str]]:
    """The cells of the table below the name of a road, without its head."""
    table = PAGE.partition(f"**{road}**")[2].partition("\n\n|")[2].partition("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def function_of(call: str) -> Callable[..., Any]:
    """The function behind a name of a table: of a module or, as a method or a property, of a class."""
    parts = call.strip("`").split(".")
    at = next(k for k, part in enumerate(parts) if part[0].isupper() or k == len(parts) - 1)
    found: Any = import_module(".".join(["keytokens", *parts[:at]]))
    for name in parts[at:]:
        found = inspect.getattr_static(found, name)
    for kind, field in ((functools.cached_property, "func"), (property, "fget"), (classmethod, "__func__")):
        found = getattr(found, field) if isinstance(found, kind) else found
    return inspect.unwrap(found)


ROADS = {road: rows_of(road) for road in ("Fit", "Ask")}


@pytest.mark.parametrize("call, takes, gives", [row for rows in ROADS.values() for row in rows])
def test_a_call_takes_and_gives_what_is_said(call, takes, gives):
    annotations = dict(function_of(call).__annotations__)
    given = annotations.pop("return")
    assert all(name in given for name in re.findall(r"`(.*?)`", gives))
    for name in re.findall(r"`(.*?)`", takes):
        assert any(name in annotation for annotation in annotations.values()), name


@pytest.mark.parametrize("road", ROADS)
def test_a_command_follows_its_road(road, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    texts, labels = reviews(40)
    write_table("reviews.csv", {"text": texts, "label": labels})
    commands = {
        "Fit": ["fit", "reviews.csv", "-o", "model", "--holdout", "0"],
        "Ask": ["explain", "model", texts[0], "--html", "page.html"],
    }
    if road == "Ask":
        assert run(commands["Fit"]) == 0
    calls = {function_of(call).__code__: call for call, *_ in ROADS[road]}
    seen: list[str] = []

    def follow(frame: Any, event: str, _: Any) -> None:
        call = calls.get(frame.f_code)
        if event == "call" and call is not None and call not in seen:
            seen.append(call)

    before = sys.getprofile()
    sys.setprofile(follow)
    try:
        code = run(commands[road])
    finally:
        sys.setprofile(before)
    assert code == 0, capsys.readouterr().err
    assert seen == [call for call, *_ in ROADS[road]]
