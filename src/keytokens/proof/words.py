"""Fewest words to mask so that the label changes, fewest to keep so that it cannot.

Masking a word removes every n-gram that touches it and makes no new one. With an additive weighting, or single words
only (n = 1, where a word is an occurrence), the answers against one rival are exact. Otherwise, for n >= 2, the minimum
is NP-hard with binary counts, and even checking a set of kept words is coNP-complete. There the answer is a lower bound
and a verified set, "minimum" where they meet. Where no set is found in a short text, all masks are tried.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from .masking import Search, fewest_kept_words, fewest_masks, priced_masks
from .occurrences import flip_occurrences, sufficient_occurrences
from .phrase import Phrase, equal_shares, full_votes, moved_shares, occurrences_of, optimistic, pessimistic, protected
from .program import RunLengthProgram, flags, inside, over
from .tokens import NOTHING, ProvedSet, Status

STEPS = 1_000_000  # words read while a set is trimmed; beyond it a longer set is reported
WIDEST = 1_000_000  # words times kept words: above it a search for the fewest kept words is not begun
SHORT = 10  # words of a text all of whose masks can be tried
ROUNDS = 10  # how often shares are moved to raise the lower bound


def flip_words(phrase: Phrase) -> ProvedSet:
    """Find the fewest words to mask so that the label changes; without a sink a known n-gram must survive.

    Parameters
    ----------
    phrase : Phrase

    Returns
    -------
    ProvedSet
        The label changes iff some rival wins: this is the smallest answer over the rivals. Status "minimum", "bounds"
        (empty where no mask was found) or "none".
    """
    if phrase.order == 1:
        return _from_occurrences(phrase, flip_occurrences(phrase.votes, phrase.occurrences, phrase.counts))
    answers: list[Search] = []
    most = phrase.length
    for r in range(len(phrase.votes.rivals)):
        answer = _against_one(phrase, r, most)
        if answer.words is not None:
            most = min(most, len(answer.words) - 1)
        answers.append(answer)
    return _smallest_flip(phrase, answers)


def _smallest_flip(phrase: Phrase, answers: Sequence[Search]) -> ProvedSet:
    tight = any(one.tight for one in answers)
    found = [one.words for one in answers if one.words is not None]
    open_ = [one.lower for one in answers if one.words is not None or not one.complete]
    if not found:
        # nothing found: a proof that there is nothing, or no more than a bound
        return NOTHING if not open_ else ProvedSet((), min(open_), "bounds", tight)
    words = min(found, key=len)
    lower = min(*open_, len(words)) if open_ else len(words)
    status: Status = "minimum" if lower == len(words) else "bounds"
    return ProvedSet(words, lower, status, tight, phrase.label_after(words))


def _against_one(phrase: Phrase, rival: int, most: int) -> Search:
    """Fewest masks, at most `most`, that let this rival win; every mask that is returned has been evaluated."""
    if not phrase.is_local(rival):
        return _between(phrase, rival, most)
    found = _searched(pessimistic(phrase, rival, equal_shares(phrase)), most)
    if found.words is None or _changes(phrase, found.words):
        return found
    return Search(None, found.lower, False, True)  # rounding, or a price that emptied the text


def _searched(program: RunLengthProgram, most: int) -> Search:
    found = fewest_masks(program, most)
    if found.words is not None or found.complete:
        return found
    priced = priced_masks(program)
    return Search(priced.words, max(found.lower, priced.lower), priced.complete, found.tight)


def _between(phrase: Phrase, rival: int, most: int) -> Search:
    """Bounds: no mask below what the pessimistic program needs; the masks it finds are tried with the true counts.

    Moving the shares of each supporter from the occurrences that the mask hits to those it misses raises the lower
    bound. A mask that loses with full votes at each occurrence truly loses: the first candidate.
    """
    best = _trimmed(phrase, fewest_masks(full_votes(phrase, rival), most).words)
    shares, lower, tight = equal_shares(phrase), 1, False
    for turn in range(ROUNDS + 1):
        found = _searched(pessimistic(phrase, rival, shares), most)
        lower, tight = max(lower, found.lower), tight or found.tight
        if found.words is None:
            return Search(best, lower, found.complete and best is None, tight)
        other = _trimmed(phrase, found.words)
        if other is not None and (best is None or len(other) < len(best)):
            best = other
        if best is not None and lower >= len(best):
            break
        shares = moved_shares(phrase, shares, found.words, rate=1.0 / (turn + 2))
    if best is None and phrase.length <= SHORT:
        masks = (mask for size in range(1, most + 1) for mask in combinations(range(phrase.length), size))
        best = next((mask for mask in masks if _changes(phrase, mask)), None)  # a change to any other label
        return Search(best, lower if best is None else len(best), best is None, tight)
    return Search(best, lower, False, tight)


def _changes(phrase: Phrase, mask: tuple[int, ...]) -> bool:
    return phrase.label_after(mask) not in (None, phrase.votes.label)


def _trimmed(phrase: Phrase, mask: tuple[int, ...] | None) -> tuple[int, ...] | None:
    """The mask, if it truly changes the label, without the words that it does not need."""
    if mask is None or not _changes(phrase, mask):
        return None
    for word in mask:
        rest = tuple(w for w in mask if w != word)
        if rest and _changes(phrase, rest):
            mask = rest
    return mask


def sufficient_words(phrase: Phrase) -> ProvedSet:
    """Find the fewest words to keep so that no masking of the others changes the label.

    Parameters
    ----------
    phrase : Phrase

    Returns
    -------
    ProvedSet
        Without a sink the words spell a known n-gram by themselves. Status "minimum", "subset-minimal" or "bounds".

    Notes
    -----
    Words that spell a sufficient set of occurrences fix the label; those that are not needed are dropped. The lower
    bound is, over the rivals, the minimum against the optimistic program.
    """
    if not len(phrase.first) and not phrase.votes.has_sink:
        return NOTHING
    if phrase.order == 1:
        found = sufficient_occurrences(phrase.votes, phrase.occurrences, phrase.counts)
        return _from_occurrences(phrase, found)
    check = _Check.of(phrase)
    kept, trimmed = check.trimmed(_spelled(phrase))
    lower = 0 if phrase.votes.has_sink else 1
    for r in range(len(phrase.votes.rivals)):
        bound, words = _fewest_against(optimistic(phrase, r), len(kept))
        lower = max(lower, bound)
        if words is not None and len(words) < len(kept) and check.proves(words):
            kept = words
    lower = min(lower, len(kept))
    otherwise: Status = "subset-minimal" if trimmed and all(check.local) else "bounds"
    status: Status = "minimum" if lower == len(kept) else otherwise
    return ProvedSet(kept, lower, status, check.hangs(kept))


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


def _spelled(phrase: Phrase) -> tuple[int, ...]:
    """Words that spell the occurrences of a sufficient set: masking others only deletes occurrences outside it."""
    tokens = sufficient_occurrences(phrase.votes, phrase.occurrences, phrase.counts).indices
    words = np.zeros(phrase.length, dtype=bool)
    for o in occurrences_of(phrase, tokens):
        words[phrase.first[o] : phrase.first[o] + phrase.size[o]] = True
    return tuple(np.flatnonzero(words).tolist())


@dataclass(frozen=True, eq=False)
class _Check:
    """Proves that kept words fix the label: exact where occurrences count for themselves, sound everywhere."""

    phrase: Phrase
    programs: list[RunLengthProgram]
    local: list[bool]

    @classmethod
    def of(cls, phrase: Phrase) -> _Check:
        rivals, shares = range(len(phrase.votes.rivals)), equal_shares(phrase)
        return cls(phrase, [pessimistic(phrase, r, shares) for r in rivals], [phrase.is_local(r) for r in rivals])

    def least(self, words: tuple[int, ...]) -> list[float]:
        """Per rival, a sum that no masking of the other words undercuts."""
        kept = flags(words, self.phrase.length)
        change, sums = np.where(kept, math.inf, 0.0).tolist(), []
        for r, (one, local) in enumerate(zip(self.programs, self.local, strict=True)):
            program = one if local else protected(self.phrase, r, one, kept)
            sums.append(min(program.walked(change)[-1]))
        return sums

    def proves(self, words: tuple[int, ...]) -> bool:
        kept = flags(words, self.phrase.length)
        if not self.phrase.votes.has_sink and not inside(kept, self.phrase.first, self.phrase.size).any():
            return False
        return not any(map(RunLengthProgram.loses, self.programs, self.least(words)))

    def hangs(self, words: tuple[int, ...]) -> bool:
        """A sum around this set is a tie to rounding (in long texts only the set itself is looked at)."""
        around = [words]
        if len(words) * self.phrase.length <= STEPS // 10:
            around += [tuple(w for w in words if w != gone) for gone in words]
        return any(any(map(RunLengthProgram.near, self.programs, sums)) for sums in map(self.least, around))

    def trimmed(self, words: tuple[int, ...]) -> tuple[tuple[int, ...], bool]:
        """Without the words it does not need, those that carry least tried first; and whether all were tried."""
        supporting = np.sum([np.maximum(one.vote, 0.0) for one in self.programs], axis=0)
        carried = over(supporting, self.phrase.first, self.phrase.size, self.phrase.length)
        tried = sorted(words, key=lambda w: carried[w])[: max(1, STEPS // max(1, self.phrase.length))]
        complete = len(tried) == len(words)
        for word in tried:
            rest = tuple(w for w in words if w != word)
            if self.proves(rest):
                words = rest
        return words, complete


def _from_occurrences(phrase: Phrase, found: ProvedSet) -> ProvedSet:
    """Single words: an occurrence is a word."""
    chosen = occurrences_of(phrase, found.indices)
    words = tuple(sorted(int(phrase.first[o]) for o in chosen))
    return replace(found, indices=words)
