"""What a page and a terminal show of a record: one list of sections, each with a title, sentences and rows.

A new kind of section is added to `sections`; both printers then show it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from .bag import BagExplanation, InstanceSet
from .certificate import said, sentences
from .format import bounds, figure, label_name, probability, quoted, signed
from .pieces import Record, instance_name, leads, sides
from .text import MOST_WORDS, FormalSet, KeyToken

STRONGEST = 10  # tokens that have a bar of their own
_FEWEST, _FEW, _MORE, _MANY = 6, 10, 12, 20  # rows of a table that are shown at once
_THINNEST = 0.006  # of a range that is drawn


class Bar(NamedTuple):
    """A stretch of a line from 0 to 1."""

    start: float
    end: float
    kind: str  # "p" speaks for the label, "n" for its rival, "k" for neither
    mark: float | None = None  # a place on the line: zero, or the whole input


class Row(NamedTuple):
    """A name and its figures, of which the last one matters most."""

    name: str
    figures: tuple[str, ...]
    bar: Bar | None = None


class Section(NamedTuple):
    """Some sentences, and a table if there is one."""

    title: str
    sentences: tuple[str, ...] = ()
    head: tuple[str, ...] = ()  # what the names and each of the figures are
    rows: Sequence[Row] = ()
    first: int = _FEW  # rows that are shown at once; a page unfolds the others


def sections(e: Record, brief: bool = False) -> list[Section]:
    """All sections of a record but its classes; `brief`: only those for where there is little room."""
    shown = [*formal_sets(e), *_ranges(e)]
    return shown if brief else [*shown, _notes(e)]


def strongest(e: Record) -> list[Section]:
    """What speaks for the label and what for its rival, on one scale, the strongest first."""
    if isinstance(e, BagExplanation) and e.values is None:
        return _attention(e)
    if e.certificate.silent and not isinstance(e, BagExplanation):
        return []
    label, rival = sides(e)
    found = sorted(totals(e).items(), key=lambda pair: -abs(pair[1]))
    shown, others = found[:STRONGEST], found[STRONGEST:]
    rest = f"{len(others):,} other {e.certificate.unit if len(others) > 1 else e.certificate.unit[:-1]}"
    if others:
        shown.append((rest, sum(lead for _, lead in others)))
    if e.sink_against():
        shown.append(("without any word", e.sink_against()))
    drawn = [lead for name, lead in shown if name != rest]
    low, high = min(drawn, default=0.0), max(drawn, default=0.0)
    low, high = min(low, 0.0), max(high, 0.0)
    scale = high - low or 1.0
    rows = []
    for name, lead in shown:
        start, end = ((x - low) / scale for x in sorted((0.0, lead)))
        bar = Bar(start, end, "p" if lead >= 0 else "n", -low / scale)
        rows.append(Row(name, (signed(lead),), None if name == rest else bar))
    whole = sum(lead for _, lead in shown)
    says = f"Contribution to {label} less that to {rival}. They add up to {signed(whole)}, the lead of {label}."
    return [Section(f"For {label}, and for {rival}", (says,), (e.certificate.unit[:-1], "difference"), rows, _MORE)]


def classes(e: Record) -> Section:
    """The probability of each class, the largest first; the label and its rival have the colours of their tokens."""
    kinds = {e.label: "p", e.rival: "n"}
    found = sorted(e.probabilities.items(), key=lambda pair: -pair[1])
    rows = [Row(label_name(k), (probability(p),), Bar(0.0, p, kinds.get(k, "k"))) for k, p in found]
    return Section("Classes", (), ("class", "probability"), rows, _FEWEST)


def key_tokens(found: Mapping[Any, Sequence[KeyToken]]) -> list[Section]:
    """The most decisive tokens of each class, over all the training documents, on one scale."""
    head = ("token", "texts in class", "other texts", "value", "contribution")
    most = max((abs(token.contribution) for tokens in found.values() for token in tokens), default=0.0) or 1.0
    shown = []
    for label, tokens in found.items():
        rows = []
        for token in tokens:
            own = token.counts.get(label, 0)
            counts = f"{own:,}", f"{sum(token.counts.values()) - own:,}"
            bar = Bar(0.0, abs(token.contribution) / most, "p")
            rows.append(Row(token.token, (*counts, signed(token.value), signed(token.contribution)), bar))
        shown.append(Section(f"Key tokens for {quoted(label)}", (), head, rows, _MANY))
    return shown


# --- formal sets


def formal_sets(e: Record) -> list[Section]:
    """Sufficient and flip sets, of instances or of tokens and words; none if nothing is proved."""
    c = e.certificate
    if c.silent:
        return []
    found = [_formal_set(e, "Sufficient", e.sufficient, c.items), _formal_set(e, "Flip", e.flip, c.items)]
    if isinstance(e, BagExplanation):
        return found
    words = len(e.words)
    if words > MOST_WORDS:
        why = f"Left out, because the text has more than {MOST_WORDS:,} words. In Python, explanation."
        names = "Sufficient", "Flip"
        return [*found, *(Section(f"{name} words", (f"{why}{name.lower()}_words computes it.",)) for name in names)]
    return [
        *found,
        _formal_set(e, "Sufficient", e.sufficient_words, words),
        _formal_set(e, "Flip", e.flip_words, words),
    ]


def _formal_set(e: Record, name: str, found: FormalSet | InstanceSet, total: int) -> Section:
    """A sufficient or a flip set of so many items."""
    added = totals(e)
    head, rows = (found.unit[:-1], "difference"), []
    if isinstance(found, InstanceSet):  # an instance has its number for a name, and no place in a text
        rows = [Row(name, (signed(added[name]),)) for name in map(instance_name, found)]
    elif found.unit == "words":
        head = (found.unit[:-1], "at character")
        rows = [Row(item.text, (f"{item.start:,}",)) for item in found]
    else:
        rows = [Row(item.text, (signed(added[item.text]),)) for item in found]
    return Section(f"{name} {found.unit}", _size_and_effect(e, name, found, total), head, rows)


def _size_and_effect(e: Record, name: str, found: FormalSet | InstanceSet, total: int) -> tuple[str, ...]:
    """How large a set is, with what is proved of that, and what it does."""
    words = found.unit == "words"
    if name == "Flip" and found.status == "none":
        facts = {"doing": "masking of words" if words else "deletion", "rest": sentences()["units"][found.unit]["rest"]}
        return (said("set none, sink" if e.certificate.has_sink else "set none", facts),)
    size = size_of(found, total)
    if not found.items:
        return (size,)
    if name == "Sufficient":
        return size, f"Whatever other {found.unit} are {'masked' if words else 'deleted'}, the label stays."
    these = f"{'Masking' if words else 'Deleting'} {'it' if found.size == 1 else 'them'}"
    return size, f"{these} makes the label {quoted(found.label_after)}."


def size_of(found: FormalSet | InstanceSet, total: int) -> str:
    """How large a set is, and what is proved of that."""
    unit = found.unit[:-1]
    items = f"{total:,} {found.unit if total != 1 else unit}"
    lower = f"{found.lower:,}" + ("" if found.items else f" {found.unit}")
    missing = "not found" if found.status == "bounds" else "empty"
    facts = {"unit": unit, "size": f"{found.size:,}", "items": items, "lower": lower}
    says = said(f"set {found.status if found.items else missing}", facts)
    return f"{says} {said('tight', {})}" if found.tight else says


# --- contributions


def totals(e: Record) -> dict[str, float]:
    """What every known token, or every instance, adds to the lead of the label over its rival."""
    found: dict[str, float] = {}
    for use in leads(e):
        found[use.text] = found.get(use.text, 0.0) + use.lead
    return found


def _attention(e: BagExplanation) -> list[Section]:
    """Where nothing is proved of single instances, their attention is all there is to show."""
    found = sorted(e.instances, key=lambda instance: -instance.attention)
    most = found[0].attention
    rows = [Row(instance_name(t.index), (figure(t.attention),), Bar(0.0, t.attention / most, "k")) for t in found]
    says = "On the instances, largest first; it adds up to 1."
    return [Section("Attention", (says,), ("instance", "attention"), rows)]


# --- ranges, and what is covered


def _ranges(e: Record) -> list[Section]:
    c = e.certificate
    if not c.deleting:
        return []

    ends = {f"at most {m} {c.unit if m > 1 else c.unit[:-1]}": both for m, both in c.deleting.items()}
    if c.keeping:
        ends["any outside the sufficient set"] = c.keeping
    rows = []
    for what, (least, greatest) in ends.items():
        bar = Bar(least, max(greatest, least + _THINNEST), "k", e.probability)
        rows.append(Row(what, (bounds(least, greatest),), bar))
    exact = "Exact." if c.exact else "Bounds: the truth lies between them."
    says = f"Probability of {quoted(e.label)} after deleting whichever {c.unit}. {exact}"
    return [Section("Range of the probability", (says,), ("deleted", "probability"), rows)]


def _notes(e: Record) -> Section:
    """What the numbers mean, and what is not covered."""
    title, c, bag = "What the numbers mean", e.certificate, isinstance(e, BagExplanation)
    if isinstance(e, BagExplanation) and e.values is None:
        return Section(
            title, ("Attention is how much of an instance enters the pooled numbers, not what it does to the score.",)
        )
    says = ["Tokens are words, or runs of neighbouring words, that the model knows."]
    if bag:
        says = ["Instances are the vectors of the bag, numbered from 0."]
    if c.silent and not bag:
        return Section(title, tuple(says))
    one = "An instance" if bag else "A token"
    says += [
        "A contribution is attention times value; the bars show the difference of two classes."
        if not isinstance(e, BagExplanation) or e.beside is None
        else "A contribution is attention times value, a share of the mean of each coordinate, and all of each maximum "
        "that the instance holds; the bars show the difference of two classes.",
        f"{one} can speak for the label and still lower its probability: the others weigh more without it.",
        "Deleting an instance leaves its vector out: nothing is said of single coordinates, and an encoder that made "
        "the vectors is not asked again."
        if bag
        else "Deleting a word removes every token that touches it and makes no new one.",
    ]
    return Section(title, tuple(says))
