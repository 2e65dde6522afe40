"""What the records of a text and of a bag have in common."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from .. import proof as proofs
from ..base.files import write_whole
from ..proof.tokens import NOTHING, ProvedSet
from ..proof.votes import Votes
from .certificate import Proof
from .prediction import Prediction

if TYPE_CHECKING:
    from .format import Record


class Explained(ABC):
    """Why one input got its label."""

    @property
    @abstractmethod
    def prediction(self) -> Prediction:
        """Scores and probabilities of all classes."""

    @property
    @abstractmethod
    def certificate(self) -> Proof:
        """What is proved of this prediction."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain data for JSON."""

    @property
    @abstractmethod
    def _votes(self) -> Sequence[Votes]:
        """How each item votes; one, or none where the score is no weighted mean."""

    @functools.cached_property
    def _sets(self) -> tuple[ProvedSet, ProvedSet]:
        """The sufficient set and the flip set, as indices."""
        if not len(self._votes) or not self._votes[0].tokens:
            return NOTHING, NOTHING
        return proofs.sufficient(self._votes[0]), proofs.flip(self._votes[0])

    @property
    def label(self) -> Any:
        return self.prediction.label

    @property
    def probability(self) -> float:
        """Of the label."""
        return self.prediction.probability

    @property
    def probabilities(self) -> dict[Any, float]:
        return {self.prediction.name(k): p for k, p in enumerate(self.prediction.probabilities.tolist())}

    @property
    def logit(self) -> float:
        """f: two classes, positive for the second one; more, the score of the label."""
        return self.prediction.logit

    def _verdict(self) -> dict[str, Any]:
        """The first entries of `to_dict`, of whatever the record is."""
        return {
            "label": self.label,
            "probability": self.probability,
            "probabilities": [{"label": k, "probability": p} for k, p in self.probabilities.items()],
            "logit": self.logit,
        }

    def to_html(self, path: str | Path | None = None) -> str:
        """A page that stands alone, as a string; written to `path` too, if there is one."""
        from .html import explanation_page  # a door: rendering lives above

        page = explanation_page(cast("Record", self))
        if path is not None:
            write_whole(Path(path), page.encode("utf-8", "xmlcharrefreplace"))
        return page

    def _repr_html_(self) -> str:
        from .html import explanation_fragment  # a door: rendering lives above

        return explanation_fragment(cast("Record", self))

    def __repr__(self) -> str:
        head = f"{type(self).__name__}({self.label!r}, probability {self.probability:.3f}, logit {self.logit:+.3f})"
        return f"{head}\n  {self.certificate.sentence}"
