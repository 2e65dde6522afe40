"""The two estimators: `AttentionClassifier` on a matrix of counts, and `KeyTokenClassifier`, its front for text."""

from .matrix import AttentionClassifier
from .prior import Prior
from .shared import Exact
from .text import KeyTokenClassifier

__all__ = ["AttentionClassifier", "Exact", "KeyTokenClassifier", "Prior"]
