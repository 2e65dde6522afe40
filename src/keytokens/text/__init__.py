"""Strings to counts: what a token is, which tokens are known, how often each occurs."""

from .matrix import count
from .ngrams import Limits, build
from .vocabulary import Vocabulary
from .words import MASK, spans

__all__ = [
    "Limits",
    "MASK",
    "Vocabulary",
    "build",
    "count",
    "spans",
]
