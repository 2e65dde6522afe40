"""These tests need the extras."""

from __future__ import annotations

from ..conftest import library

for name in (
    "fastapi",
    "pyarrow",
):
    library(name)
