"""keytokens: a text classifier that shows, and proves, which tokens decide."""

from ._version import __version__
from .classifier import AttentionClassifier, KeyTokenClassifier
from .errors import InputError, KeyTokensError
from .explanation import Explanation
from .text import MASK

__all__ = ["AttentionClassifier", "Explanation", "InputError", "KeyTokenClassifier", "KeyTokensError", "MASK", "__version__"]
