"""What is proved of one prediction, in numbers and in one paragraph. Texts and bags differ in the words only."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .. import proof as proofs
from ..model.attention import shares
from ..proof import ranges
from ..proof.tokens import ProvedSet
from ..proof.votes import Votes
from .record import Prediction

_FEWER = {1: "fewer than 1", 2: "fewer than 2", 3: "fewer than many"}  # by the size of the set, up to 3
DELETIONS = (1, 2, 3, 5, 10)  # for how many deleted items the range of the probability is given


@functools.cache
def sentences() -> dict[str, Any]:
    """The templates of all sentences by name, which the page reads too."""
    found: dict[str, Any] = json.loads(files(__package__).joinpath("sentences.json").read_text("utf-8"))
    return found


def said(name: str, facts: Mapping[str, Any]) -> str:
    """The sentence of this name with its facts filled in."""
    return str(sentences()[name]).format_map(facts)


@dataclass(frozen=True, eq=False)
class Proof:
    """What is proved of one prediction; each number is computed when it is first asked for, None where it has no sense.

    Items are tokens or instances: whatever the input is made of and can be deleted.
    """

    prediction: Prediction
    _votes: Sequence[Votes]  # one; none: the score is no weighted mean, so items have no votes
    kept: ProvedSet  # the sufficient set
    gone: ProvedSet  # the flip set
    margins: tuple[float, float] | None  # see `Proved`
    items: int  # how many there are
    has_sink: bool  # something votes that cannot be deleted
    silent: str = ""  # why nothing is proved, if so

    unit: ClassVar[str]  # what items are called, in the plural

    @property
    def leaves(self) -> str:
        """What a deletion must leave where there is no sink."""
        return str(sentences()["units"][self.unit]["rest"])

    @property
    def covers(self) -> str:
        """What the proof does not speak of."""
        return str(sentences()["units"][self.unit]["covers"])

    @property
    def exact(self) -> bool:
        """Whether the ranges are exact (two classes) or bounds that contain the truth (more)."""
        return len(self.prediction.classes) == 2

    @property
    def votes(self) -> Votes | None:
        """How each item votes; None where the score is no weighted mean."""
        return self._votes[0] if len(self._votes) else None

    @property
    def _proved(self) -> Votes | None:
        """The votes, where something is proved of them."""
        return None if self.silent else self.votes

    @functools.cached_property
    def _added(self) -> NDArray[Any]:
        """(T + 1, R) what each item, and last the sink, adds to the margin over each rival."""
        if self.votes is None:
            return np.zeros((0, 0))
        Q = shares(np.append(self.votes.log_weight, self.votes.sink_log_weight))
        return Q[:, None] * np.vstack([self.votes.margin, self.votes.sink_margin])

    def _by_rival(self, added: NDArray[Any]) -> dict[Any, float]:
        rivals = [] if self.votes is None else self.votes.rivals.tolist()
        return dict(zip(map(self.prediction.name, rivals), added.sum(axis=0).tolist(), strict=True))

    @property
    def support(self) -> dict[Any, float]:
        """Against each rival, what the items (and the sink) for the label add to its margin."""
        return self._by_rival(np.maximum(self._added, 0))

    @property
    def opposition(self) -> dict[Any, float]:
        """Against each rival, what those against the label take from its margin: less than the support."""
        return self._by_rival(np.maximum(-self._added, 0))

    @functools.cached_property
    def keeping(self) -> tuple[float, float] | None:
        """Least and greatest probability of the label, whatever is deleted outside the sufficient set."""
        if self._proved is None:
            return None
        return self._chances(proofs.range_keeping(self._proved, self.kept.indices))

    def _chances(self, margins: Any) -> tuple[float, float]:
        """The range of the probability, from ranges of margins."""
        low, high = map(self.prediction.chance, proofs.probability_range(margins))
        return low, high

    @functools.cached_property
    def at_least(self) -> float | None:
        """The least of these probabilities, and, since nothing may be deleted too, never above that of the whole."""
        if self.margins is not None:
            margins: Any = self.margins[:1]
        elif self._proved is not None:
            margins = ranges.least_keeping(self._proved, self.kept.indices)
        else:
            return None
        return min(self.prediction.chance(ranges.probability_of(margins)), self.prediction.probability)

    @functools.cached_property
    def deleting(self) -> dict[int, tuple[float, float]]:
        """The same when at most m items are deleted, whichever they are."""
        if self._proved is None:
            return {}
        ends = proofs.ranges_deleting(self._proved, DELETIONS)
        return {m: self._chances(both) for m, both in zip(DELETIONS, ends, strict=True)}

    @functools.cached_property
    def _drop(self) -> ranges.Drop | None:
        if self._proved is None or not (self.kept.indices or self._proved.has_sink):
            return None
        return ranges.drop(self._proved, self.kept.indices)

    @property
    def attention_outside(self) -> float | None:
        """delta, the attention outside the sufficient set."""
        return None if self._drop is None else float(self._drop.delta)

    @property
    def drop(self) -> float | None:
        """How far f moves when everything outside the sufficient set goes: delta (f_rest - f_kept).

        Two classes: of the logit; more: of the margin over the first rival.
        """
        if self._drop is None:
            return None
        fall = float(self._drop.whole[0] - self._drop.kept[0])
        # margins speak for the label, the logit for the second of two classes
        return -fall if self.exact and self.prediction.winner == 0 else fall

    @functools.cached_property
    def probability_after_flip(self) -> float | None:
        """Of the label, once the flip set is deleted."""
        if self.gone.status == "none":
            return None
        if self.margins is not None:
            return self.prediction.chance(ranges.probability_of(self.margins[1:]))
        if self._proved is None:
            return None
        return self.prediction.chance(ranges.probability_without(self._proved, self.gone.indices))

    @property
    def tight(self) -> bool:
        """A comparison hangs on a relative difference below 1e-12."""
        return self.kept.tight or self.gone.tight

    @functools.cached_property
    def sentence(self) -> str:
        if self.silent:
            return self.silent
        own = sentences()["units"][self.unit]
        items = f"{self.items} {self.unit if self.items != 1 else own['unit']}"
        facts = {**own, "units": self.unit, "items": items, "label": repr(self.prediction.label)}
        facts["rivals"] = len(self.prediction.classes) - 1
        tight = [said("tight", facts)] if self.tight else []
        return " ".join([*_kept_sentences(self, facts), *_gone_sentences(self, facts), *tight, self.covers])

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "label": self.prediction.label,
            "logit": self.prediction.logit,
            "probability": self.prediction.probability,
            self.unit: self.items,
            "support": [{"rival": k, "value": v} for k, v in self.support.items()],
            "opposition": [{"rival": k, "value": v} for k, v in self.opposition.items()],
            "keeping": None if self.keeping is None else list(self.keeping),
            "deleting": {str(m): list(both) for m, both in self.deleting.items()},
            "exact": self.exact,
            "attention_outside": self.attention_outside,
            "drop": self.drop,
            "probability_after_flip": self.probability_after_flip,
            "label_after_flip": self.prediction.name(self.gone.label_after),
            "tight": self.tight,
            "unit": self.unit,
            "covers": self.covers,
            "sentence": self.sentence,
        }

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.sentence!r})"


def _kept_sentences(c: Proof, facts: dict[str, Any]) -> list[str]:
    """What the sufficient set does, and that no smaller one does."""
    kept = c.kept
    at_least = f"{math.floor((c.at_least or 0.0) * 100) / 100:.2f}"  # rounded down: what is said must be true
    facts = {**facts, "size": kept.size, "lower": kept.lower, "fewer": kept.size - 1, "probability": at_least}
    if kept.size == 0:
        return [said("kept none", facts)]
    if kept.status != "minimum":
        return [said("kept subset", facts)]
    does = said("kept one" if kept.size == 1 else "kept many", facts)
    return [does, said(_FEWER[min(kept.size, 3)], facts)] if kept.size > 1 or c.has_sink else [does]


def _gone_sentences(c: Proof, facts: dict[str, Any]) -> list[str]:
    """What the flip set does, and that no smaller one does."""
    gone = c.gone
    if gone.status == "none":
        return [said("gone none, sink" if c.has_sink else "gone none", facts)]
    facts = {**facts, "size": gone.size, "fewer": gone.size - 1, "after": repr(c.prediction.name(gone.label_after))}
    facts["probability"] = f"{c.probability_after_flip:.2f}"
    does = said("gone one" if gone.size == 1 else "gone many", facts)
    return [does, said(_FEWER[min(gone.size, 3)], facts)] if gone.size > 1 else [does]
