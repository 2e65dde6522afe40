"""What every record is made of: the prediction, sets of items, sequences that are made when they are read; and what the
records of a text and of a bag have in common.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, cast, overload

from numpy.typing import NDArray

from .. import proof as proofs
from ..base.errors import MissingExtra, refusal
from ..base.files import write_whole
from ..model.losses import noisy
from ..proof.tokens import NOTHING, ProvedSet
from ..proof.votes import Votes

if TYPE_CHECKING:
    from .certificate import Proof
    from .pieces import Record

Item = TypeVar("Item")
Self = TypeVar("Self", bound="Explained")


def frame(found: Sequence[Mapping[str, Any]] | Mapping[str, Any]) -> Any:
    """A pandas data frame of some rows, or of columns by name."""
    try:
        import pandas as pd
    except ImportError as error:
        raise MissingExtra("to_frame needs pandas: pip install pandas") from error
    return pd.DataFrame(found)


class Later(Sequence[Item]):
    """Reads like the tuple of what `make` gives, which is called once, if at all.

    >>> squares = Later(3, lambda: [0, 1, 4])
    >>> len(squares), squares[1:], squares == (0, 1, 4)
    (3, (1, 4), True)
    """

    def __init__(self, size: int, make: Callable[[], Iterable[Item]]) -> None:
        self._size = size
        self._make = make

    @functools.cached_property
    def _made(self) -> tuple[Item, ...]:
        return tuple(self._make())

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Item, ...]: ...
    def __getitem__(self, index: int | slice) -> Item | tuple[Item, ...]:
        return self._made[index]

    def __iter__(self) -> Iterator[Item]:
        return iter(self._made)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Later):
            return self._made == other._made
        return self._made == other if isinstance(other, tuple) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._made)

    def __repr__(self) -> str:
        return repr(self._made)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copied and stored as the plain tuple."""
        return tuple, (self._made,)


@dataclass(frozen=True)
class ItemSet(Sequence[Item], Generic[Item]):
    """The items of a formal set, most decisive first (words: in text order), and what is proved of its size."""

    items: Sequence[Item]  # of a text: made when one is read
    unit: str  # "tokens", "words" or "instances"
    size: int
    lower: int  # no smaller set than this does the same
    status: str  # "minimum", "subset-minimal", "bounds" (between lower and size) or "none"
    tight: bool  # it holds to rounding
    label_after: Any = None  # flips: what `predict` says of the rest

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Item]: ...
    def __getitem__(self, index: int | slice) -> Item | Sequence[Item]:
        return self.items[index]

    def __len__(self) -> int:
        return len(self.items)

    def _facts(self) -> dict[str, Any]:
        names = ("size", "lower", "status", "unit", "tight", "label_after")
        return {name: getattr(self, name) for name in names}


class Prediction(NamedTuple):
    """Scores and probabilities of the classes."""

    scores: NDArray[Any]  # (K,) two classes: 0 and f
    probabilities: NDArray[Any]  # (K,)
    classes: Sequence[Any]
    winner: int  # index of the predicted class: the first of the largest probabilities
    explained: int  # the class whose score the contributions add up to: the second of two, the predicted one of more
    label: Any
    probability: float  # of the label
    logit: float  # the score of the class that is explained
    noise: float = 0.0  # the share of labels that the probabilities take for drawn by lot

    @classmethod
    def of(
        cls,
        scores: NDArray[Any],
        probabilities: NDArray[Any],
        classes: Sequence[Any],
        winner: int,
        noise: float = 0.0,
    ) -> Prediction:
        """Made from what the model computes; classes are plain data."""
        explained = 1 if len(classes) == 2 else winner
        numbers = float(probabilities[winner]), float(scores[explained])
        return cls(scores, probabilities, classes, winner, explained, classes[winner], *numbers, noise)

    def chance(self, p: float) -> float:
        """A probability of the label, from the scores of whatever is left of the input, as the model would say it."""
        return float(noisy(p, self.noise, len(self.classes)))

    def name(self, index: int | None) -> Any:
        """The label of a class; None for none."""
        return None if index is None else self.classes[index]


class Proved(NamedTuple):
    """The sets of one input, as indices of its own items."""

    kept: ProvedSet  # the sufficient set
    gone: ProvedSet  # the flip set
    # over the only rival, if they are known already: the least with the sufficient set, and that without the flip set
    margins: tuple[float, float] | None = None


class Explained(ABC):
    """Why one input got its label."""

    chosen: int | None  # index of the rival that was asked for

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
    def _sets(self) -> Proved:
        """The sufficient set and the flip set."""
        if not len(self._votes) or not self._votes[0].tokens:
            return Proved(NOTHING, NOTHING)
        return Proved(proofs.sufficient(self._votes[0]), proofs.flip(self._votes[0]))

    @property
    def label(self) -> Any:
        return self.prediction.label

    @property
    def probability(self) -> float:
        """Of the label."""
        return self.prediction.probability

    @property
    def probabilities(self) -> dict[Any, float]:
        return dict(zip(self.prediction.classes, self.prediction.probabilities.tolist(), strict=True))

    @property
    def logit(self) -> float:
        """f: two classes, positive for the second one; more, the score of the label."""
        return self.prediction.logit

    @functools.cached_property
    def _rival(self) -> int:
        """Its index."""
        if self.chosen is not None:
            return self.chosen
        after = self._sets.gone.label_after
        if after is not None:
            return after
        others = self.prediction.probabilities.copy()
        others[self.prediction.winner] = -1.0
        return int(others.argmax())

    @property
    def rival(self) -> Any:
        """The class that the label is set against: where the flip set leads, else the runner-up, or the chosen one.

        Every token of the flip set speaks for the label against the class that it leads to. That class would be ahead
        with any other token left in place too, and the set would not be a minimum.
        """
        return self.prediction.name(self._rival)

    def against(self: Self, rival: Any) -> Self:
        """The same with this class for a rival."""
        return replace(self, chosen=self._index_of(rival))  # type: ignore[type-var]

    def told(self: Self) -> Self:
        """The same with the class for a rival that the sentence leads to, as it is shown, unless one was chosen."""
        return self

    def _index_of(self, rival: Any = None) -> int:
        """The index of a rival, by default its own."""
        classes = list(self.prediction.classes)
        if rival is None:
            return self._rival
        if rival not in classes:
            raise refusal("explain", "rival", f"be a class of the model ({', '.join(map(repr, classes))})", rival)
        if rival == self.label:
            raise refusal("explain", "rival", "be another class than the one that is predicted", rival)
        return classes.index(rival)

    def contributions_against(self, rival: Any = None) -> NDArray[Any]:
        """For each of `tokens`, or instance, its contribution to the label less that to a rival (by default `rival`).

        With `sink_against` they add up to the score of the label less that of the rival.
        """
        return self._lead(self._index_of(rival))[0]

    def sink_against(self, rival: Any = None) -> float:
        """What the sink adds to the lead of the label over a rival: what no deletion takes away."""
        return self._lead(self._index_of(rival))[1]

    @abstractmethod
    def _lead(self, rival: int) -> tuple[NDArray[Any], float]:
        """What the items, and the sink, add to the lead of the label over a rival."""

    def to_frame(self) -> Any:
        """A pandas data frame with a row for each of `tokens`, or instance, and what it says against the rival."""
        return frame(self._rows())

    @abstractmethod
    def _rows(self) -> list[dict[str, Any]]:
        """The items as `to_dict` has them."""

    def _verdict(self) -> dict[str, Any]:
        """The first entries of `to_dict`, of whatever the record is."""
        return {
            "label": self.label,
            "probability": self.probability,
            "probabilities": [{"label": k, "probability": p} for k, p in self.probabilities.items()],
            "logit": self.logit,
            "rival": self.rival,
            "sink_difference": self.sink_against(),
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
