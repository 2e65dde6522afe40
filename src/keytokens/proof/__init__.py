"""What can be proved of one prediction: sufficient sets, flips and ranges, of tokens and of words.

Mathematics on the weights and values of one document; no strings. `Ballot` is the document before the certificate,
`Sentence` adds where its n-grams stand.
"""

from .occurrences import flip_occurrences, sufficient_occurrences
from .phrase import Sentence
from .ranges import probability_range, range_keeping, ranges_deleting
from .tokens import TokenSet, flip, sufficient
from .votes import Ballot, label_of
from .words import WordSet, flip_words, sufficient_words

__all__ = [
    "Ballot",
    "Sentence",
    "TokenSet",
    "WordSet",
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
