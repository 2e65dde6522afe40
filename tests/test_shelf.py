"""The public shelf: every name is there, is documented, and importing it is cheap in what it brings along."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys

import pytest

import keytokens

MODULES = [
    module.name
    for module in pkgutil.walk_packages(keytokens.__path__, "keytokens.")
    if not module.name.endswith("__main__")
]


@pytest.mark.parametrize("name", ["keytokens", *MODULES])
def test_all_names_are_bound(name):
    module = importlib.import_module(name)
    assert module.__doc__, f"{name} has no docstring"
    for public in getattr(module, "__all__", []):
        assert hasattr(module, public), f"{name}.__all__ names {public}, which is not there"


def test_the_shelf():
    assert keytokens.__all__ == sorted(keytokens.__all__, key=str.lower) or keytokens.__all__ == sorted(
        keytokens.__all__
    )
    assert set(keytokens.__all__) == set(dir(keytokens)) & set(keytokens.__all__)
    for name in keytokens.__all__:
        assert getattr(keytokens, name).__doc__ or name.startswith("__")


def test_import_brings_no_heavy_stack():
    heavy = ["matplotlib", "pandas", "pyarrow", "starlette", "dask", "torch", "typer"]
    code = f"import keytokens, sys; print([name for name in {heavy!r} if name in sys.modules])"
    seen = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert seen.stdout.strip() == "[]"
