"""keytokens: a text classifier that shows, and proves, which tokens decide.

The shelf is lazy: a name is imported when it is first asked for, so `import keytokens` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module

from ._version import __version__

TYPE_CHECKING = False  # that of `typing`, which takes longer to load than all that is needed here
if TYPE_CHECKING:
    from typing import Any

    from .bags import BagClassifier
    from .classifier import AttentionClassifier, KeyTokenClassifier, Prior
    from .errors import DataError, InputError, KeyTokensError, MissingExtra, ModelError, OutputError
    from .explanation import Explanation
    from .persist import load
    from .text import MASK
    from .tuning import Tuned, autotune

__all__ = [
    "MASK",
    "AttentionClassifier",
    "BagClassifier",
    "DataError",
    "Explanation",
    "InputError",
    "KeyTokenClassifier",
    "KeyTokensError",
    "MissingExtra",
    "ModelError",
    "OutputError",
    "Prior",
    "Tuned",
    "__version__",
    "autotune",
    "load",
]

_HOME = {
    "AttentionClassifier": "classifier",
    "BagClassifier": "bags",
    "DataError": "errors",
    "Explanation": "explanation",
    "InputError": "errors",
    "KeyTokenClassifier": "classifier",
    "KeyTokensError": "errors",
    "MASK": "text",
    "MissingExtra": "errors",
    "ModelError": "errors",
    "OutputError": "errors",
    "Prior": "classifier",
    "Tuned": "tuning",
    "autotune": "tuning",
    "load": "persist",
}


if not TYPE_CHECKING:  # a type checker has the names above, and shall refuse all others

    def __getattr__(name: str) -> Any:
        if name not in _HOME:
            raise AttributeError(f"module 'keytokens' has no attribute {name!r}")
        value = getattr(import_module(f".{_HOME[name]}", __name__), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
