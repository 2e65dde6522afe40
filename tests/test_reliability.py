"""The page of promises: every test that it names is there."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "reliability.md").read_text("utf-8")
ROWS = [line for line in PAGE.split("### What threads share")[0].splitlines() if line.startswith("| ")][1:]


def test_every_promise_has_a_test():
    assert len(ROWS) >= 20
    for row in ROWS:
        named = re.findall(r"`(tests/[a-z_/]+\.py)::(\w+)`", row)
        assert named, row
        for file, name in named:
            there = {getattr(node, "name", "") for node in ast.parse((ROOT / file).read_text("utf-8")).body}
            assert name in there, f"{file} has no {name}"
