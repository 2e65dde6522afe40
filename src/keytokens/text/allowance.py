"""What a vocabulary may take of the memory."""

from __future__ import annotations


class Allowance:
    """Hears how much there is before memory is taken for it, and may refuse; this one allows anything."""

    def holds_words(self, n: int) -> bool:
        """Whether there may be so many different words."""
        return True

    def words(self, n: int) -> None:
        """There are so many different words."""

    def grams(self, n: int, longer: int) -> None:
        """There are so many different n-grams more, of one length; those of so many greater lengths come after."""

    def keep(self, n_tokens: int) -> int:
        """How many of the tokens to keep."""
        return n_tokens


ANYTHING = Allowance()
