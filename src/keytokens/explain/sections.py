"""What a page and a terminal show of a record: one list of sections, each with a title, sentences and rows.

A new kind of section is added to `sections`; both printers then show it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from .bag import BagExplanation, InstanceSet
from .certificate import said
from .format import Record, bounds, figure, instance_name, label_name, probability, quoted, sides, signed
from .text import FormalSet, KeyToken

STRONGEST = 10  # tokens on each side
MOST_WORDS = 5_000  # sets of words take a second per thousand words or so: longer texts are shown without them
_FEW, _MORE, _MANY = 10, 12, 20  # rows of a table that are shown at once
_THINNEST = 0.006  # of a range that is drawn


class Bar(NamedTuple):
    """A stretch of a line from 0 to 1."""

    start: float
    end: float
    kind: str  # "p" speaks for the positive side, "n" for the other one, "k" for neither; "r" is a range
    mark: float | None = None  # a place on the line


class Row(NamedTuple):
    """A name and its figures, of which the last one matters most."""

    name: str
    figures: tuple[str, ...]
    bar: Bar


class Section(NamedTuple):
    """Some sentences, and a table if there is one."""

    title: str
    sentences: tuple[str, ...] = ()
    head: tuple[str, ...] = ()  # what the names and each of the figures are
    rows: Sequence[Row] = ()
    first: int = _FEW  # rows that are shown at once; a page unfolds the others


def sections(e: Record, brief: bool = False) -> list[Section]:
    """All sections of a record but its classes; `brief`: only those for where there is little room."""
    if e.certificate.silent:
        shown = _attention(e)
    else:
        shown = [*formal_sets(e), *([] if brief else _contributions(e)), *_ranges(e)]
    return shown if brief else [*shown, _notes(e)]


def classes(e: Record) -> Section:
    """The probability of each class: two in their own order, more by probability."""
    found = list(e.probabilities.items())
    # two classes have the colours of their tokens; of more, the label has the one that speaks for it
    kinds = {label: "p" if label == e.label else "k" for label, _ in found}
    if len(found) == 2:
        kinds = {found[0][0]: "n", found[1][0]: "p"}
    else:
        found.sort(key=lambda pair: -pair[1])
    rows = [Row(label_name(label), (probability(p),), Bar(0.0, p, kinds[label])) for label, p in found]
    return Section("Classes", (), ("class", "probability"), rows, _MORE)


def key_tokens(found: Mapping[Any, Sequence[KeyToken]]) -> list[Section]:
    """The most decisive tokens of each class, over all the training documents."""
    first = next(iter(found), None)
    head = ("token", "texts in class", "other texts", "value", "contribution")
    shown = []
    for label, tokens in found.items():
        kind = "n" if len(found) == 2 and label == first else "p"  # two classes have the colours of their tokens
        rows = []
        for token, bar in zip(tokens, _bars((token.contribution for token in tokens), kind), strict=True):
            own = token.counts.get(label, 0)
            counts = f"{own:,}", f"{sum(token.counts.values()) - own:,}"
            rows.append(Row(token.token, (*counts, signed(token.value), signed(token.contribution)), bar))
        shown.append(Section(f"Key tokens for {quoted(label)}", (), head, rows, _MANY))
    return shown


def _bars(contributions: Iterable[float], kind: str = "") -> list[Bar]:
    """Bars as long as the contributions, the longest from end to end; coloured by sign unless a kind is given."""
    found = list(contributions)
    most = max(map(abs, found), default=0.0)
    return [Bar(0.0, abs(x) / most if most else 0.0, kind or ("p" if x >= 0 else "n")) for x in found]


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
    one = found.unit[:-1]
    items: list[tuple[str, tuple[str, ...], float]]
    if isinstance(found, InstanceSet):  # an instance has its number for a name, and no place in a text
        added = {total.text: total.contribution for total in totals(e)}
        head: tuple[str, ...] = (one, "contribution")
        items = [(text, (), added[text]) for text in map(instance_name, found)]
    elif found.unit == "words":
        head = (one, "at character", "contribution")
        items = [(item.text, (f"{item.start:,}",), item.contribution) for item in found.items]
    else:
        head = (one, "times", "contribution")
        items = [(item.text, (f"{len(item.spans):,}",), item.contribution) for item in found.items]
    bars = _bars(x for _, _, x in items)
    rows = [Row(text, (*place, signed(x)), bar) for (text, place, x), bar in zip(items, bars, strict=True)]
    return Section(f"{name} {found.unit}", _size_and_effect(e, name, found, total), head, rows)


def _size_and_effect(e: Record, name: str, found: FormalSet | InstanceSet, total: int) -> tuple[str, ...]:
    """How large a set is, with what is proved of that, and what it does."""
    words = found.unit == "words"
    if name == "Flip" and found.status == "none":
        facts = {"doing": "masking of words" if words else "deletion", "rest": e.certificate.leaves}
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


class Total(NamedTuple):
    """A token with all its occurrences, or an instance."""

    text: str
    times: int
    attention: float
    value: float
    contribution: float


def totals(e: Record) -> list[Total]:
    """Every known token of the text, or every instance of the bag, greatest contribution first."""
    if isinstance(e, BagExplanation):
        found = [
            Total(instance_name(t.index), 1, t.attention, t.value, t.contribution)
            for t in e.instances
            if t.value is not None and t.contribution is not None
        ]
    else:
        times = Counter(use.text for use in e.tokens)
        one = {use.text: use for use in e.tokens}  # all occurrences of a token have the same figures
        found = [
            Total(name, n, n * one[name].attention, one[name].value, n * one[name].contribution)
            for name, n in times.items()
        ]
    return sorted(found, key=lambda total: -total.contribution)


def _contributions(e: Record) -> list[Section]:
    """The strongest tokens or instances of each side, the label's first."""
    found = totals(e)
    positive, negative = sides(e)
    shown = [
        _strongest(e.certificate.unit, positive, [total for total in found if total.contribution > 0]),
        _strongest(e.certificate.unit, negative, [total for total in reversed(found) if total.contribution < 0]),
    ]
    return shown[::-1] if len(e.probabilities) == 2 and e.label == next(iter(e.probabilities)) else shown


def _strongest(unit: str, side: str, found: Sequence[Total]) -> Section:
    one, top = unit[:-1], found[:STRONGEST]
    counted = unit == "tokens"  # an instance stands for itself alone
    rows = []
    for t, bar in zip(top, _bars(total.contribution for total in top), strict=True):
        times = (f"{t.times:,}",) if counted else ()
        rows.append(Row(t.text, (*times, figure(t.attention), signed(t.value), signed(t.contribution)), bar))
    says = f"{len(top)} of {len(found):,} {unit} that speak {side}." if found else f"No {one} speaks {side}."
    head = (one, *(("times",) if counted else ()), "attention", "value", "contribution")
    return Section(f"Strongest {side}", (says,), head, rows)


def _attention(e: Record) -> list[Section]:
    """Where nothing is proved of single instances, their attention is all there is to show."""
    if not isinstance(e, BagExplanation):
        return []
    found = sorted(e.instances, key=lambda instance: -instance.attention)
    bars = _bars((instance.attention for instance in found), "k")
    rows = [Row(instance_name(t.index), (figure(t.attention),), bar) for t, bar in zip(found, bars, strict=True)]
    return [
        Section("Attention", ("On the instances, largest first; it adds up to 1.",), ("instance", "attention"), rows)
    ]


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
        bar = Bar(least, max(greatest, least + _THINNEST), "r", e.probability)
        rows.append(Row(what, (bounds(least, greatest),), bar))
    exact = "Exact." if c.exact else "Bounds: the truth lies between them."
    says = f"Probability of {quoted(e.label)} after deleting whichever {c.unit}. {exact}"
    return [Section("Range of the probability", (says,), ("deleted", "probability"), rows)]


def _notes(e: Record) -> Section:
    """What the numbers mean, and what is not covered."""
    title, c, bag = "What is covered", e.certificate, isinstance(e, BagExplanation)
    if isinstance(e, BagExplanation) and not e.formal:
        says = "Attention is how much of an instance enters the pooled numbers, not what it does to the score."
        return Section(title, (says,))
    meant = (
        "the vectors of the bag, numbered from 0"
        if bag
        else "words, or runs of neighbouring words, that the model knows"
    )
    said = [f"{c.covers} The sentence above counts {c.unit}: {meant}."]
    if c.silent:
        return Section(title, tuple(said))
    own = 0.0 if isinstance(e, BagExplanation) else e.sink
    sink = f", with the sink's own {signed(own)}," if own else ""
    said.append(f"A contribution is attention times value. All of them{sink} add up to the logit {signed(e.logit)}.")
    if len(e.probabilities) == 2:
        said.append(
            f"{'An instance' if bag else 'A token'} can speak for the label and still lower its probability: when its "
            "value is nearer to zero than the logit, the others weigh more without it."
        )
    said.append(
        "Deleting an instance leaves its vector out: nothing is said of single coordinates, and an encoder that made "
        "the vectors is not asked again."
        if bag
        else "Masking a word removes every token that touches it and makes no new one."
    )
    return Section(title, tuple(said))
