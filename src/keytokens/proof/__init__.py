"""What can be proved of one prediction: sufficient sets, flips and ranges, of tokens, occurrences and words.

This is mathematics on the weights and values of one document, without strings. `Votes` holds a document, `Phrase` adds
where its n-grams stand, and a `ProvedSet` is an answer with what is proved of its size.
"""

from .occurrences import flip_occurrences, sufficient_occurrences
from .phrase import Phrase
from .ranges import probability_range, range_keeping, ranges_deleting
from .tokens import ProvedSet, flip, sufficient
from .votes import Votes, label_of
from .words import flip_words, sufficient_words

__all__ = [
    "Votes",
    "Phrase",
    "ProvedSet",
    "flip",
    "flip_occurrences",
    "flip_words",
    "label_of",
    "probability_range",
    "range_keeping",
    "ranges_deleting",
    "sufficient",
    "sufficient_occurrences",
    "sufficient_words",
]
