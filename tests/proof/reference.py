"""The truth by enumeration, in exact arithmetic: every sub-document, every mask. Knows nothing of sorting."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations, product

import numpy as np

from keytokens.proof import Phrase, Votes

INTERCEPTS = (Fraction(0), Fraction(1), Fraction(-1), Fraction(1, 2))


def argmax(scores: Sequence[Fraction]) -> int:
    """Largest score, lowest index among equals."""
    return max(range(len(scores)), key=lambda k: (scores[k], -k))


def mean(weights: Sequence[Fraction], rows: Sequence[Sequence[Fraction]]) -> list[Fraction]:
    total = sum(weights, Fraction(0))
    return [
        sum((w * row[k] for w, row in zip(weights, rows, strict=True)), Fraction(0)) / total
        for k in range(len(rows[0]))
    ]


@dataclass(frozen=True)
class Document:
    """Weights, class scores with the intercept in them, and perhaps a sink (weight 0: none)."""

    weights: tuple[Fraction, ...]
    values: tuple[tuple[Fraction, ...], ...]
    sink: Fraction
    intercepts: tuple[Fraction, ...]

    @property
    def tokens(self) -> int:
        return len(self.weights)

    def scores(self, weights: Sequence[Fraction]) -> list[Fraction] | None:
        """Scores with other weights in place of its own (0: deleted); None for an empty document without a sink."""
        items = [(w, row) for w, row in zip(weights, self.values, strict=True) if w > 0]
        if self.sink:
            items.append((self.sink, self.intercepts))
        return mean([w for w, _ in items], [row for _, row in items]) if items else None

    def scores_of(self, kept: int) -> list[Fraction] | None:
        return self.scores([w if kept >> s & 1 else Fraction(0) for s, w in enumerate(self.weights)])

    def label_of(self, kept: int) -> int | None:
        scores = self.scores_of(kept)
        return None if scores is None else argmax(scores)

    @cached_property
    def labels(self) -> list[int | None]:
        """Label of each sub-document, by the bits of what is kept."""
        return [self.label_of(kept) for kept in range(1 << self.tokens)]

    @cached_property
    def label(self) -> int:
        label = self.label_of((1 << self.tokens) - 1)
        assert label is not None
        return label

    def is_sufficient(self, held: int) -> bool:
        if held == 0 and not self.sink:
            return False
        return all(self.labels[kept] in (self.label, None) for kept in range(1 << self.tokens) if kept & held == held)

    def is_flip(self, gone: int) -> bool:
        return self.labels[(1 << self.tokens) - 1 - gone] not in (self.label, None)

    def fewest_sufficient(self) -> int:
        return min(bin(held).count("1") for held in range(1 << self.tokens) if self.is_sufficient(held))

    def fewest_flip(self) -> int | None:
        flips = [bin(gone).count("1") for gone in range(1, 1 << self.tokens) if self.is_flip(gone)]
        return min(flips) if flips else None

    def margins(self, kept: int) -> list[Fraction] | None:
        """Score of the label minus that of each rival."""
        scores = self.scores_of(kept)
        if scores is None:
            return None
        return [scores[self.label] - score for k, score in enumerate(scores) if k != self.label]

    @property
    def votes(self) -> Votes:
        return Votes.of(
            np.array([math.log(w) for w in self.weights]),
            np.array([[float(x) for x in row] for row in self.values]).reshape(self.tokens, -1),
            self.label,
            math.log(self.sink) if self.sink else -math.inf,
            [float(c) for c in self.intercepts],
        )


def bits(indices: Sequence[int]) -> int:
    return sum(1 << i for i in indices)


def document(weights: Sequence[int], b: Sequence[Sequence[int]], intercepts: Sequence[Fraction], sink: int) -> Document:
    return Document(
        tuple(map(Fraction, weights)),
        tuple(tuple(x + c for x, c in zip(row, intercepts, strict=True)) for row in b),
        Fraction(sink),
        tuple(intercepts),
    )


def random_document(rng: np.random.Generator, classes: int = 2, most: int = 6) -> Document:
    """Small integers, so that ties, f = 0 and zero votes occur often; every second one with a sink."""
    tokens = int(rng.integers(1, most + 1))
    sink = int(rng.integers(0, 2) * rng.integers(1, 4))
    weights = rng.integers(1, 4, tokens).tolist()
    if classes == 2:
        b = [[0, x] for x in rng.integers(-3, 4, tokens).tolist()]
        intercepts = [Fraction(0), INTERCEPTS[rng.integers(4)]]
    else:
        b = rng.integers(-2, 3, (tokens, classes)).tolist()
        intercepts = [Fraction(int(c)) for c in rng.integers(-1, 2, classes)]
    return document(weights, b, intercepts, sink)


def documents(seed: int, number: int, classes: int = 2, most: int = 6) -> Iterator[Document]:
    rng = np.random.default_rng(seed)
    for _ in range(number):
        yield random_document(rng, classes, most)


def weight_of(count: float, counts: str) -> Fraction:
    if count == 0 or counts == "raw":
        return Fraction(count)
    return Fraction(1) if counts == "binary" else Fraction(count if count < 1 else 1.0 + math.log(count))


Labels = dict[tuple[int, ...], int | None]


def labels_of_amounts(unit: Document, amounts: Sequence[int], counts: str) -> Labels:
    """The label for each number of occurrences that may be left of each token; `unit` has the weights of one."""
    found: Labels = {}
    for left in product(*(range(c + 1) for c in amounts)):
        scores = unit.scores([w * weight_of(c, counts) for w, c in zip(unit.weights, left, strict=True)])
        found[left] = None if scores is None else argmax(scores)
    return found


def occurrences_suffice(held: Sequence[int], labels: Labels, label: int, has_sink: bool) -> bool:
    """Whether no deletion of other occurrences changes the label."""
    if not any(held) and not has_sink:
        return False
    rest = (other for left, other in labels.items() if all(a >= b for a, b in zip(left, held, strict=True)))
    return all(other in (label, None) for other in rest)


@dataclass(frozen=True)
class Text:
    """Words, n-grams on them (first word, words, token), and a document whose weights are those of one occurrence."""

    length: int
    ngrams: tuple[tuple[int, int, int], ...]
    unit: Document
    counts: str

    def scores(self, kept: Sequence[int]) -> list[Fraction] | None:
        """Scores when the words with kept[i] = 0 are masked."""
        left = [0] * self.unit.tokens
        for first, size, token in self.ngrams:
            left[token] += all(kept[first : first + size])
        return self.unit.scores([w * weight_of(c, self.counts) for w, c in zip(self.unit.weights, left, strict=True)])

    @cached_property
    def labels(self) -> dict[tuple[int, ...], int | None]:
        """Label for each choice of kept words."""
        return {
            kept: None if (scores := self.scores(kept)) is None else argmax(scores)
            for kept in product((0, 1), repeat=self.length)
        }

    @cached_property
    def label(self) -> int:
        label = self.labels[(1,) * self.length]
        assert label is not None
        return label

    def is_flip(self, mask: Sequence[int]) -> bool:
        return self.labels[tuple(int(i not in mask) for i in range(self.length))] not in (self.label, None)

    def fewest_flip(self) -> int | None:
        sizes = [kept.count(0) for kept, label in self.labels.items() if label not in (self.label, None) and 0 in kept]
        return min(sizes) if sizes else None

    def is_sufficient(self, words: Sequence[int]) -> bool:
        alone = self.labels[tuple(int(i in words) for i in range(self.length))]
        if alone is None:
            return False  # the words spell nothing known by themselves
        return all(label in (self.label, None) for kept, label in self.labels.items() if all(kept[i] for i in words))

    def fewest_sufficient(self) -> int:
        for k in range(self.length + 1):
            if any(self.is_sufficient(words) for words in combinations(range(self.length), k)):
                return k
        raise AssertionError("all words together are sufficient")

    @property
    def phrase(self) -> Phrase:
        counts = [0] * self.unit.tokens
        for _, _, token in self.ngrams:
            counts[token] += 1
        weights = tuple(w * weight_of(c, self.counts) for w, c in zip(self.unit.weights, counts, strict=True))
        whole = Document(weights, self.unit.values, self.unit.sink, self.unit.intercepts)
        first, size, token = np.array(self.ngrams, dtype=np.intp).reshape(-1, 3).T
        return Phrase(self.length, first, size, token, whole.votes, self.counts)  # type: ignore[arg-type]


def random_text(rng: np.random.Generator, n: int, counts: str, classes: int = 2, most: int = 7, words: int = 3) -> Text:
    """A text over a few words in which most n-grams up to n words are known; never without a known one."""
    while True:
        length = int(rng.integers(1, most + 1))
        spelled = rng.integers(0, words, length).tolist()
        known: dict[tuple[int, ...], int] = {}
        ngrams, chance = [], rng.uniform(0.3, 1.0)
        unknown: set[tuple[int, ...]] = set()
        for size in range(1, min(n, length) + 1):
            for first in range(length - size + 1):
                gram = tuple(spelled[first : first + size])
                if gram not in known and gram not in unknown:
                    if rng.random() < chance:
                        known[gram] = len(known)
                    else:
                        unknown.add(gram)
                if gram in known:
                    ngrams.append((first, size, known[gram]))
        if ngrams:
            tokens = len(known)
            break
    base = random_document(rng, classes)
    sink, intercepts = base.sink, base.intercepts
    values = rng.integers(-3, 4, (tokens, classes))
    if classes == 2:
        values[:, 0] = 0
    unit = document(rng.integers(1, 3, tokens).tolist(), values.tolist(), intercepts, int(sink))
    return Text(length, tuple(ngrams), unit, counts)


def texts(seed: int, number: int, n: int, counts: str, classes: int = 2, most: int = 7) -> Iterator[Text]:
    rng = np.random.default_rng(seed)
    for _ in range(number):
        yield random_text(rng, n, counts, classes, most)
