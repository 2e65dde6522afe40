"""keytokens: a text classifier that shows, and proves, which tokens decide."""

from ._version import __version__
from .classifier import AttentionClassifier, KeyTokenClassifier
from .errors import DataError, InputError, KeyTokensError, MissingExtra, ModelError, OutputError
from .explanation import Explanation
from .persist import load
from .text import MASK

__all__ = [
    "AttentionClassifier",
    "DataError",
    "Explanation",
    "InputError",
    "KeyTokenClassifier",
    "KeyTokensError",
    "MASK",
    "MissingExtra",
    "ModelError",
    "OutputError",
    "__version__",
    "load",
]
