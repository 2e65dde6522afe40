"""Shared by all tests: derandomised property tests, and real data where it is at hand."""

import importlib.util
import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from keytokens.base.errors import MissingExtra
from keytokens.io.corpora import imdb_reviews

settings.register_profile(
    "house", derandomize=True, deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("house")


def skip_or_fail(reason: str) -> None:
    """Where CI runs nothing may be missing; elsewhere a test that cannot run says why."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def library(name: str) -> Any:
    """A library that users may have; where it is not installed, the test cannot run."""
    try:
        return importlib.import_module(name)
    except ImportError:
        skip_or_fail(f"{name} is not installed")


def script(path: Path) -> ModuleType:
    """A file that stands in no package, as a module, which others may import from then on."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    sys.modules[path.stem] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True)
def ctrl_c() -> Iterator[None]:
    """A command that has ended ignores Ctrl-C, for its process is about to end; that of the tests is not."""
    before = signal.getsignal(signal.SIGINT)
    yield
    if before is not None and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """One Chromium for all tests that drive one: a process may hold one driver only."""
    from .app.explorer.browser import chromium

    with chromium() as found:
        yield found


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real data sets, from KEYTOKENS_DATA."""
    folder = os.environ.get("KEYTOKENS_DATA")
    if not folder:
        skip_or_fail("KEYTOKENS_DATA is not set: real data sets are not at hand")
    return Path(str(folder))


@pytest.fixture(scope="session")
def imdb() -> tuple[list[str], list[str]]:
    """The reviews of the extra `demo`, and their labels."""
    try:
        return imdb_reviews()
    except MissingExtra as error:
        skip_or_fail(str(error))
        raise
