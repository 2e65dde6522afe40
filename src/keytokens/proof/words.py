"""Fewest words to mask so that the label changes, fewest to keep so that it cannot.

Masking a word removes every n-gram that touches it and makes no new one. Raw counts: exact, by the programs. Log
and binary counts: exact for single words (n = 1), where a word is an occurrence; for n >= 2 the minimum is NP-hard
with binary counts, and even checking a set of kept words is coNP-complete, so a lower bound and a verified set,
"minimum" where they meet. Where no set is found in a short text, all masks are tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from .masking import Search, fewest_kept_words, fewest_masks, least_sum, priced_masks
from .occurrences import flip_occurrences, sufficient_occurrences
from .phrase import Sentence, equal_shares, full_votes, moved_shares, occurrences_of, optimistic, pessimistic, protected
from .program import RunLengthProgram
from .tokens import Status, TokenSet
from .votes import BoolArray

STEPS = 1_000_000  # words read while a set is trimmed; beyond it a longer set is reported
WIDEST = 1_000_000  # words times kept words: above it a search for the fewest kept words is not begun
SHORT = 10  # words of a text all of whose masks can be tried
ROUNDS = 10  # how often shares are moved to raise the lower bound


@dataclass(frozen=True)
class WordSet:
    """A set of words with what is proved of its size: no set of fewer than `lower` words does the same."""

    positions: tuple[int, ...]  # in text order
    size: int
    lower: int
    status: Status
    tight: bool  # holds to rounding
    label_after: int | None = None  # flips: the class of what is left


NO_WORDS = WordSet((), 0, 0, "none", False)


def flip_words(sentence: Sentence) -> WordSet:
    """Fewest words to mask so that the label changes; without a sink a known n-gram must survive.

    The label changes iff some rival wins: the smallest answer over the rivals, each exact or between bounds.
    """
    if sentence.order == 1:
        return _from_occurrences(sentence, flip_occurrences(sentence.ballot, sentence.occurrences, sentence.counts))
    answers: list[Search] = []
    most = sentence.length
    for r in range(len(sentence.ballot.rivals)):
        answer = _against_one(sentence, r, most)
        if answer.words is not None:
            most = min(most, len(answer.words) - 1)
        answers.append(answer)
    return _smallest_flip(sentence, answers)


def _smallest_flip(sentence: Sentence, answers: Sequence[Search]) -> WordSet:
    tight = any(one.tight for one in answers)
    found = [one.words for one in answers if one.words is not None]
    open_ = [one.lower for one in answers if one.words is not None or not one.complete]
    if not found:
        # nothing found: a proof that there is nothing, or no more than a bound
        return NO_WORDS if not open_ else WordSet((), 0, min(open_), "bounds", tight)
    words = min(found, key=len)
    lower = min(*open_, len(words)) if open_ else len(words)
    status: Status = "minimum" if lower == len(words) else "bounds"
    return WordSet(words, len(words), lower, status, tight, sentence.label_after(words))


def _against_one(sentence: Sentence, rival: int, most: int) -> Search:
    """Fewest masks, at most `most`, that let this rival win; every mask that is returned has been evaluated."""
    if not sentence.is_local(rival):
        return _between(sentence, rival, most)
    found = _searched(pessimistic(sentence, rival, equal_shares(sentence)), most)
    if found.words is None or _changes(sentence, found.words):
        return found
    return Search(None, found.lower, False, True)  # rounding, or a price that emptied the text


def _searched(program: RunLengthProgram, most: int) -> Search:
    found = fewest_masks(program, most)
    if found.words is not None or found.complete:
        return found
    priced = priced_masks(program)
    return Search(priced.words, max(found.lower, priced.lower), priced.complete, found.tight)


def _between(sentence: Sentence, rival: int, most: int) -> Search:
    """Bounds: no mask below what the pessimistic program needs; the masks it finds are tried with the true counts.

    Moving the shares of each supporter from the occurrences that the mask hits to those it misses raises the lower
    bound. A mask that loses with full votes at each occurrence truly loses: the first candidate.
    """
    best = _trimmed(sentence, fewest_masks(full_votes(sentence, rival), most).words)
    shares, lower, tight = equal_shares(sentence), 1, False
    for turn in range(ROUNDS + 1):
        found = _searched(pessimistic(sentence, rival, shares), most)
        lower, tight = max(lower, found.lower), tight or found.tight
        if found.words is None:
            return Search(best, lower, found.complete and best is None, tight)
        best = _shorter(best, _trimmed(sentence, found.words))
        if best is not None and lower >= len(best):
            break
        shares = moved_shares(sentence, shares, found.words, rate=1.0 / (turn + 2))
    if best is None and sentence.length <= SHORT:
        best = _first_of_all(sentence, most)
        return Search(best, lower if best is None else len(best), best is None, tight)
    return Search(best, lower, False, tight)


def _first_of_all(sentence: Sentence, most: int) -> tuple[int, ...] | None:
    """The fewest words, at most `most`, whose masking changes the label to any other, by trying all masks."""
    masks = (mask for size in range(1, most + 1) for mask in combinations(range(sentence.length), size))
    return next((mask for mask in masks if _changes(sentence, mask)), None)


def _changes(sentence: Sentence, mask: tuple[int, ...]) -> bool:
    return sentence.label_after(mask) not in (None, sentence.ballot.label)


def _trimmed(sentence: Sentence, mask: tuple[int, ...] | None) -> tuple[int, ...] | None:
    """The mask, if it truly changes the label, without the words that it does not need."""
    if mask is None or not _changes(sentence, mask):
        return None
    for word in mask:
        rest = tuple(w for w in mask if w != word)
        if rest and _changes(sentence, rest):
            mask = rest
    return mask


def _shorter(one: tuple[int, ...] | None, other: tuple[int, ...] | None) -> tuple[int, ...] | None:
    found = [mask for mask in (one, other) if mask is not None]
    return min(found, key=len) if found else None


def sufficient_words(sentence: Sentence) -> WordSet:
    """Fewest words to keep so that no masking of the others changes the label.

    Without a sink they must spell a known n-gram by themselves. Words that spell a sufficient set of occurrences do;
    from these drop what is not needed. Below: for each rival the minimum against the optimistic program.
    """
    if not len(sentence.first) and not sentence.ballot.has_sink:
        return NO_WORDS
    if sentence.order == 1:
        found = sufficient_occurrences(sentence.ballot, sentence.occurrences, sentence.counts)
        return _from_occurrences(sentence, found)
    check = _Check.of(sentence)
    kept, trimmed = check.trimmed(_spelled(sentence))
    lower = 0 if sentence.ballot.has_sink else 1
    for r in range(len(sentence.ballot.rivals)):
        bound, words = _fewest_against(optimistic(sentence, r), len(kept))
        lower = max(lower, bound)
        if words is not None and len(words) < len(kept) and check.proves(words):
            kept = words
    lower = min(lower, len(kept))
    status: Status = "minimum" if lower == len(kept) else ("subset-minimal" if check.exact and trimmed else "bounds")
    return WordSet(kept, len(kept), lower, status, check.hangs(kept))


def _fewest_against(program: RunLengthProgram, size: int) -> tuple[int, tuple[int, ...] | None]:
    """Lower bound for one rival, and the set behind it if the search found one smaller than `size`."""
    for most in dict.fromkeys((size - 1, size // 4, 2)):  # too much work: a weaker bound
        if (most + 1) * program.length > WIDEST:
            continue
        found = fewest_kept_words(program, min(most, size - 1)) if size else Search(None, 0, True)
        if found.words is not None:
            return len(found.words), found.words
        if found.complete:
            return min(most + 1, size), None
    return 0, None


def _spelled(sentence: Sentence) -> tuple[int, ...]:
    """Words that spell the occurrences of a sufficient set: masking others only deletes occurrences outside it."""
    tokens = sufficient_occurrences(sentence.ballot, sentence.occurrences, sentence.counts).indices
    words = np.zeros(sentence.length, dtype=bool)
    for o in occurrences_of(sentence, tokens):
        words[sentence.first[o] : sentence.first[o] + sentence.size[o]] = True
    return tuple(np.flatnonzero(words).tolist())


@dataclass(frozen=True, eq=False)
class _Check:
    """Proves that kept words fix the label: exact where occurrences count for themselves, sound everywhere."""

    sentence: Sentence
    programs: tuple[RunLengthProgram, ...]
    local: tuple[bool, ...]

    @classmethod
    def of(cls, sentence: Sentence) -> _Check:
        rivals = range(len(sentence.ballot.rivals))
        shares = equal_shares(sentence)
        return cls(
            sentence,
            tuple(pessimistic(sentence, r, shares) for r in rivals),
            tuple(sentence.is_local(r) for r in rivals),
        )

    @property
    def exact(self) -> bool:
        return all(self.local)

    def least(self, words: tuple[int, ...]) -> list[float]:
        """Per rival, a sum that no masking of the other words undercuts."""
        kept = self._mask(words)
        flags = kept.tolist()
        return [
            least_sum(one if local else protected(self.sentence, r, one, kept), flags)
            for r, (one, local) in enumerate(zip(self.programs, self.local, strict=True))
        ]

    def proves(self, words: tuple[int, ...]) -> bool:
        if not self.sentence.ballot.has_sink and not self.sentence.inside(self._mask(words)).any():
            return False
        return not any(one.loses(total) for one, total in zip(self.programs, self.least(words), strict=True))

    def hangs(self, words: tuple[int, ...]) -> bool:
        """A sum around this set is a tie to rounding (in long texts only the set itself is looked at)."""
        short = len(words) * self.sentence.length <= STEPS // 10
        around = [words, *(tuple(w for w in words if w != gone) for gone in words if short)]
        return any(
            one.near(total) for one_set in around for one, total in zip(self.programs, self.least(one_set), strict=True)
        )

    def trimmed(self, words: tuple[int, ...]) -> tuple[tuple[int, ...], bool]:
        """Without the words it does not need, those that carry least tried first; and whether all were tried."""
        carried = np.zeros(self.sentence.length)
        for one in self.programs:
            share = np.maximum(one.vote, 0.0)
            for offset in range(one.runs):
                inside = one.size > offset
                np.add.at(carried, one.first[inside] + offset, share[inside])
        tried = sorted(words, key=lambda w: carried[w])[: max(1, STEPS // max(1, self.sentence.length))]
        complete = len(tried) == len(words)
        for word in tried:
            rest = tuple(w for w in words if w != word)
            if self.proves(rest):
                words = rest
        return words, complete

    def _mask(self, words: tuple[int, ...]) -> BoolArray:
        kept = np.zeros(self.sentence.length, dtype=bool)
        kept[list(words)] = True
        return kept


def _from_occurrences(sentence: Sentence, found: TokenSet) -> WordSet:
    """Single words: an occurrence is a word."""
    chosen = occurrences_of(sentence, found.indices)
    words = tuple(sorted(int(sentence.first[o]) for o in chosen))
    return WordSet(words, found.size, found.lower, found.status, found.tight, found.label_after)
