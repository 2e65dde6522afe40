"""keytokens: a text classifier that shows, and proves, which tokens decide.

The shelf is lazy: a name is imported when it is first asked for, so `import keytokens` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module

from ._version import __version__

TYPE_CHECKING = False  # that of `typing`, which takes longer to load than all that is needed here
if TYPE_CHECKING:
    from typing import Any

    from .base.errors import DataError, InputError, KeyTokensError, MissingExtra, ModelError, OutputError
    from .estimators.attention import AttentionClassifier
    from .estimators.bags import BagClassifier
    from .estimators.prior import Prior
    from .estimators.saving import load
    from .estimators.text import KeyTokenClassifier
    from .estimators.tuning import Tuned, autotune
    from .explain.text import Explanation
    from .text.words import MASK

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
    "AttentionClassifier": "estimators.attention",
    "BagClassifier": "estimators.bags",
    "DataError": "base.errors",
    "Explanation": "explain.text",
    "InputError": "base.errors",
    "KeyTokenClassifier": "estimators.text",
    "KeyTokensError": "base.errors",
    "MASK": "text.words",
    "MissingExtra": "base.errors",
    "ModelError": "base.errors",
    "OutputError": "base.errors",
    "Prior": "estimators.prior",
    "Tuned": "estimators.tuning",
    "autotune": "estimators.tuning",
    "load": "estimators.saving",
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
