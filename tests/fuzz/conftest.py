"""These tests need the extras."""

from ..conftest import library

for name in (
    "fastapi",
    "pyarrow",
):
    library(name)
