"""The public shelf: every name is there and is documented."""

import importlib
import pkgutil

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
