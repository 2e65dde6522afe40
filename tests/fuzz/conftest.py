"""These tests need the extras."""

from __future__ import annotations

from ..conftest import skip_or_fail

try:
    import fastapi  # noqa: F401
    import pyarrow  # noqa: F401
except ImportError:
    skip_or_fail("the extras `serve` and `parquet` are not installed")
