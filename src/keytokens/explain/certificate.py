"""What is proved of one prediction, in numbers and in a few sentences. Texts and bags differ in the words only."""

from __future__ import annotations

import functools
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import proof as proofs
from ..model.attention import shares
from ..proof import ranges
from ..proof.tokens import ProvedSet
from ..proof.votes import Votes
from .format import label_name, one_line
from .record import Prediction

NAMED = 4  # members of a set that a sentence names; of more than these one less
DELETIONS = (1, 2, 3, 5, 10)  # for how many deleted items the range of the probability is given


@functools.cache
def sentences() -> dict[str, Any]:
    """The templates of all sentences by name, which the page reads too."""
    found: dict[str, Any] = json.loads(files(__package__).joinpath("sentences.json").read_text("utf-8"))
    return found


def said(name: str, facts: Mapping[str, Any]) -> str:
    """The sentence of this name with its facts filled in."""
    return str(sentences()[name]).format_map(facts)


class Told(NamedTuple):
    """A set as the sentences tell it."""

    unit: str  # what its members are called, in the plural
    found: ProvedSet
    names: Sequence[str]


class Said(NamedTuple):
    """What is proved, in sentences; empty where there is nothing to say."""

    because: str  # the label, and what fixes it
    keep: str = ""  # what fixing means
    change: str = ""  # what changes the label
    limit: str = ""  # what the proof does not speak of

    def __str__(self) -> str:
        return " ".join(filter(None, self))


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
    def _least(self) -> NDArray[Any] | None:
        """(R,) least margin over each rival while the sufficient set stays."""
        if self.margins is not None:
            return np.array(self.margins[:1])
        return None if self._proved is None else ranges.least_keeping(self._proved, self.kept.indices)

    @functools.cached_property
    def at_least(self) -> float | None:
        """The least of these probabilities, and, since nothing may be deleted too, never above that of the whole."""
        if self._least is None:
            return None
        return min(self.prediction.chance(ranges.probability_of(self._least)), self.prediction.probability)

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
    def said(self) -> Said:
        """What is proved, as sentences."""
        return self.of_items

    @property
    def sentence(self) -> str:
        """What is proved, in one paragraph."""
        return str(self.said)

    @functools.cached_property
    def of_items(self) -> Said:
        """The same of items even where `said` speaks of words, whose sets take longest."""
        if self._least is None:
            return Said(self.silent)
        kept, gone = (Told(self.unit, found, self._names(found.indices)) for found in (self.kept, self.gone))
        return self._say(kept, gone, self._least)

    def _names(self, indices: Sequence[int]) -> list[str]:
        """What some items are called."""
        return [str(index) for index in indices]

    def _unknown(self) -> str:
        """How many words of the input the model does not know, where that is worth a sentence."""
        return ""

    def _say(self, kept: Told, gone: Told, least: NDArray[Any]) -> Said:
        """The sentences about these sets; `least`: the least margin over each rival while the first one stays."""
        facts = label_facts(self.prediction)
        stays = said(*_staying(self.prediction, least, facts))
        tight = said("tight", facts) if kept.found.tight or gone.found.tight else ""
        limit = f"{tight} {self.covers}".strip()
        if not kept.found.size:
            return Said(said("no need", {**facts, "stays": stays}), self._unknown(), "", limit)
        because = said("because", {**facts, "names": listed(kept)})
        how = {**facts, "stays": stays, "size": kept.found.size, "lower": kept.found.lower, "unit": kept.unit}
        name = "keep one" if kept.found.size == 1 else f"keep {kept.found.status}"
        keep = said(f"{name}, lower" if name == "keep subset-minimal" and kept.found.lower > 1 else name, how)
        return Said(because, keep, self._changing(gone), limit)

    def _changing(self, gone: Told) -> str:
        """What changes the label. The flip set is a minimum wherever it is shown."""
        found, classes = gone.found, self.prediction.classes
        if not found.size:
            return said("no change", {"rest": sentences()["units"][gone.unit]["rest"]})
        after = label_name(self.prediction.name(found.label_after))
        facts = {"size": found.size, "unit": gone.unit, "names": listed(gone), "after": after}
        if found.size == 1:
            return said("change one", facts)
        change = said("change minimum", facts)
        return f"{change} {said('change to', facts)}" if len(classes) > 2 else change

    def to_dict(self, words: bool = True) -> dict[str, Any]:
        """Plain data for JSON; without `words` the sentence speaks of tokens."""
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
            "sentence": str(self.said if words else self.of_items),
        }

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.sentence!r})"


def label_facts(prediction: Prediction) -> dict[str, Any]:
    """The label and its probability, as sentences name them."""
    return {"label": label_name(prediction.label), "chance": percent(prediction.probability)}


def percent(p: float) -> str:
    """A probability; what is neither 0 nor 1 does not look as if it were.

    >>> percent(0.98), percent(0.9999)
    ('98\xa0%', 'over 99\xa0%')
    """
    if 0.995 < p < 1:
        return said("percent, nearly all", {})
    return said("percent, nearly none" if 0 < p < 0.005 else "percent", {"number": f"{100 * p:.0f}"})


def _staying(prediction: Prediction, least: NDArray[Any], facts: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """How the label stays. A bound below one half says little by itself: it stays ahead, by least of this rival."""
    classes = len(prediction.classes)
    # the label has the largest of all probabilities as long as it stays
    bound = min(max(prediction.chance(ranges.probability_of(least)), 1 / classes), prediction.probability)
    down = math.floor(100 * bound)  # what is said must be true
    others = np.delete(np.arange(classes), prediction.winner)
    rival = label_name(prediction.name(int(others[least.argmin()])))
    name = "stays ahead" if classes > 2 and bound < 0.5 else "stays"
    return name, {**facts, "least": said("percent", {"number": down}), "rival": rival}


def listed(told: Told) -> str:
    """The first members of a set by name, each name once, and how many others there are."""
    quotes = told.unit != "instances"
    times = Counter(told.names)
    shown = list(times.items())[: NAMED if len(times) <= NAMED else NAMED - 1]
    more = told.found.size - sum(count for _, count in shown)
    kinds = {True: "name", False: "name again"}
    lines = [(one_line(name), n) for name, n in shown]
    names = [said(kinds[n == 1], {"name": name, "times": n}) if quotes else name for name, n in lines]
    if more:
        text = said("names and more", {"first": ", ".join(names), "more": more})
    elif len(names) > 1:
        text = said("names", {"first": ", ".join(names[:-1]), "last": names[-1]})
    else:
        text = names[0]
    unit = sentences()["units"][told.unit]
    return str(unit["names" if told.found.size == 1 else "names of many"]).format(names=text)
