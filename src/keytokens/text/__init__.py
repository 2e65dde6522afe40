"""Strings to counts: what a token is, which tokens are known, how often each occurs."""

from .building import Limits, build
from .counts import count
from .tokens import MASK, normalise, spans
from .vocabulary import Vocabulary
from .words import Words, read_words

__all__ = ["Limits", "MASK", "Vocabulary", "Words", "build", "count", "normalise", "read_words", "spans"]
