"""One browser for all tests of the page."""

from __future__ import annotations

import pytest

from .browser import chromium


@pytest.fixture(scope="session")
def browser():
    with chromium() as found:
        yield found
