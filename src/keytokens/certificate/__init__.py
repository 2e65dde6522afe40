"""What can be proved of one prediction: sufficient sets, flips and ranges, of tokens and of words.

Mathematics on the weights and values of one document; no strings. `Ballot` is the document before the certificate,
`Sentence` adds where its n-grams stand.
"""

from keytokens.certificate.occurrences import Counts, flip_occurrences, phi, sufficient_occurrences
from keytokens.certificate.ranges import (
    Drop,
    breach,
    drop,
    guarantee,
    least_keeping,
    probability_of,
    probability_range,
    probability_without,
    range_keeping,
    ranges_deleting,
)
from keytokens.certificate.tokens import Status, TokenSet, flip, sufficient
from keytokens.certificate.votes import Ballot, label_of
from keytokens.certificate.words import Sentence, WordSet, flip_words, sufficient_words

__all__ = [
    "Ballot",
    "Counts",
    "Drop",
    "Sentence",
    "Status",
    "TokenSet",
    "WordSet",
    "breach",
    "drop",
    "flip",
    "flip_occurrences",
    "flip_words",
    "guarantee",
    "label_of",
    "phi",
    "least_keeping",
    "probability_of",
    "probability_range",
    "probability_without",
    "range_keeping",
    "ranges_deleting",
    "sufficient",
    "sufficient_occurrences",
    "sufficient_words",
]
