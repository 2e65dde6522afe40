"""Records of explained predictions and how they are shown: sentences, JSON, terminal, HTML.

`Explanation` is of a text, `BagExplanation` of a bag of vectors; both are `Explained`, with a `Proof` for certificate.
"""

from .bag import BagCertificate, BagExplanation, Instance, InstanceSet
from .certificate import Proof
from .documents import Documents
from .record import Explained
from .text import Certificate, Explanation, FormalItem, FormalSet, KeyToken, KeyTokens, TokenUse, TokenUses

__all__ = [
    "BagCertificate",
    "BagExplanation",
    "Certificate",
    "Documents",
    "Explained",
    "Explanation",
    "FormalItem",
    "FormalSet",
    "Instance",
    "InstanceSet",
    "KeyToken",
    "KeyTokens",
    "Proof",
    "TokenUse",
    "TokenUses",
]
