"""Strings to counts: what a token is, which tokens are known, how often each occurs."""

from .counts import Limits, build, count
from .tokens import MASK, normalise, spans
from .vocabulary import Vocabulary
from .words import read_words

__all__ = ["Limits", "MASK", "Vocabulary", "build", "count", "normalise", "read_words", "spans"]
