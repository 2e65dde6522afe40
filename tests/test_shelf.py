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
    assert len(set(keytokens.__all__)) == len(keytokens.__all__)
    assert set(keytokens.__all__) == {*keytokens._HOME, "__version__"}
    assert set(keytokens.__all__) <= set(dir(keytokens))
    for name in keytokens.__all__:
        value = getattr(keytokens, name)
        assert value.__doc__ or isinstance(value, str)
    with pytest.raises(AttributeError, match="module 'keytokens' has no attribute 'nothing'"):
        keytokens.nothing  # noqa: B018


def modules_after(code: str) -> list[str]:
    shown = subprocess.run(
        [sys.executable, "-c", f"{code}; import sys; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    return shown.stdout.split()


def test_import_is_cheap():
    loaded = modules_after("import keytokens")
    assert not {"numpy", "scipy", "sklearn", "typer"} & set(loaded)
    loaded = modules_after("import keytokens; keytokens.KeyTokenClassifier")
    assert not {"matplotlib", "starlette", "dask", "torch", "typer"} & set(loaded)
