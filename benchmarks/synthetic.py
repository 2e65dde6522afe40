"""Texts made by lot, so that their number and their length can be chosen: `python -m benchmarks.synthetic short 3`.

short    two classes, 16 to 32 words a text
twenty   twenty classes, 50 to 1,000 words a text, 250 on average: the shape of the newsgroups
length   two classes, every text of the same length

A word is drawn from a Zipf law over 100,000 made-up words, or, with probability `TELLING`, from a Zipf law over 2,000
words that belong to the class of the text; these sets overlap between classes. Words are drawn independently: pairs of
words recur less often than in language, which is hard on whoever counts pairs.
"""

import argparse
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

VOCABULARY = 100_000
OWN = 2_000  # words that belong to a class
TELLING = 0.1
RESOLUTION = 1 << 22  # of the quantised law: one draw is one look into a table
CHUNK = 50_000  # texts spelled at a time
CONSONANTS, VOWELS = "bdfgklmnprstvzhj", "aeiou"

Corpus = tuple[list[str], list[int]]


def word(rank: int) -> str:
    """Syllables of two letters; frequent words are short, and no two ranks share a word.

    >>> [word(rank) for rank in (0, 1, 79, 80, 6_480)]
    ['ba', 'be', 'ju', 'baba', 'bababa']
    """
    spelled, left = "", rank + 1
    while left:
        left, syllable = divmod(left - 1, len(CONSONANTS) * len(VOWELS))
        consonant, vowel = divmod(syllable, len(VOWELS))
        spelled = CONSONANTS[consonant] + VOWELS[vowel] + spelled
    return spelled


def zipf(size: int) -> np.ndarray:
    """Ranks 0, 1, ... as often as 1/(rank + 2), each at least once: a uniform draw from this table is a Zipf draw."""
    share = 1 / np.arange(2, size + 2)
    times = np.rint(RESOLUTION * share / share.sum()).astype(int)
    return np.repeat(np.arange(size, dtype=np.int32), np.maximum(1, times))


def drawn(labels: np.ndarray, lengths: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The ranks of all words, text after text."""
    common, own = zipf(VOCABULARY), zipf(OWN)
    belongs = np.stack([rng.choice(VOCABULARY // 10, OWN, replace=False) for _ in range(int(labels.max()) + 1)])
    ranks = common[rng.integers(0, len(common), int(lengths.sum()))]
    tells = np.flatnonzero(rng.random(len(ranks)) < TELLING)
    whose = labels[np.searchsorted(np.cumsum(lengths), tells, side="right")]
    ranks[tells] = belongs[whose, own[rng.integers(0, len(own), len(tells))]]
    return ranks


def spelled(ranks: np.ndarray, lengths: np.ndarray) -> Iterator[str]:
    names = np.array([word(rank) for rank in range(VOCABULARY)], dtype=object)
    ends = np.concatenate([[0], np.cumsum(lengths)])
    for at in range(0, len(lengths), CHUNK):
        bounds = ends[at : at + CHUNK + 1]
        words = names[ranks[bounds[0] : bounds[-1]]].tolist()
        places = (bounds - bounds[0]).tolist()
        for first, last in pairwise(places):
            yield " ".join(words[first:last]).capitalize() + "."


def corpus(labels: np.ndarray, lengths: np.ndarray, rng: np.random.Generator) -> Corpus:
    return list(spelled(drawn(labels, lengths, rng), lengths)), labels.tolist()


def short(documents: int, seed: int = 0) -> Corpus:
    rng = np.random.default_rng(seed)
    return corpus(_classes(documents, 2, rng), rng.integers(16, 33, documents), rng)


def twenty(documents: int, seed: int = 0) -> Corpus:
    rng = np.random.default_rng(seed)
    lengths = np.clip(rng.lognormal(np.log(200), 0.7, documents), 50, 1_000).astype(int)
    return corpus(_classes(documents, 20, rng), lengths, rng)


def of_length(documents: int, words: int, seed: int = 0) -> Corpus:
    rng = np.random.default_rng(seed)
    return corpus(_classes(documents, 2, rng), np.full(documents, words), rng)


def _classes(documents: int, classes: int, rng: np.random.Generator) -> np.ndarray:
    """As many of each class as the number allows, in any order."""
    return rng.permutation(np.arange(documents) % classes)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set", choices=("short", "twenty"))
    parser.add_argument("documents", type=int)
    options = parser.parse_args(arguments)
    for text, label in zip(*{"short": short, "twenty": twenty}[options.set](options.documents), strict=True):
        print(label, text)


if __name__ == "__main__":
    main()
