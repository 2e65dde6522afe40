"""A fit to more texts than the memory holds: one pass over them, everything else from files in a folder.

    texts   -> words, n-grams, rows         in files without a name, gone when the process is
            -> indices, data, begins        the counts, mapped; training reads them block by block
    labels, vocabulary                      in memory, and in the folder for a run that goes on after an interruption

The vocabulary and the vectors of training have to be in memory, and so have some numbers for each text and class. The
budget says how many tokens that allows. Where a corpus has more, the most frequent ones are kept and the model says how
many were dropped; where the budget holds no useful number of them, the fit is refused before training.
"""

from __future__ import annotations

import hashlib
import heapq
import json
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import accumulate, chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load_file, save
from scipy import sparse

from ..base.checks import Seen, check_labels, check_texts, listed_labels
from ..base.errors import InputError, refusal
from ..base.files import write_whole
from ..base.memory import MappedArray
from ..model.blocks import Block, block_bounds, made_of
from ..model.weighting import WEIGHTINGS
from ..text.ngrams import ANYTHING, Allowance, Built, Limits, build
from ..text.spill import Threads
from ..text.vocabulary import Vocabulary
from ..training.lbfgs import LBFGSState
from .compression import pack_words, unpack_words
from .teachers import Teacher, Unlabeled

Batches = Iterable[tuple[Sequence[str], Sequence[Any]]]
Relabel = Callable[[list[Any]], list[Any]]

LEAST_MEMORY = 500_000_000
_LIBRARIES = 200_000_000  # bytes, with some pieces of text
_FIXED = 400_000_000  # bytes: the libraries and one block of counts
_LEAST_TOKENS = 1000  # a fit that cannot keep so many of those that it found is refused
_A_WORD = 200  # bytes: keys, and its spelling in two forms
_A_GRAM = 60  # bytes: keys and numbers of texts twice, column, place in a table
_A_CHARACTER = 18  # bytes, while a text is read: its line in the file, its words and their keys
_ANSWERED = 40  # bytes of a character, while a model answers: its n-grams too
_EVERY = 5.0  # seconds between two states on the disk
_COUNTS, _STATE = "counts.json", "state.safetensors"
_FILES, _KINDS = ("indices", "data", "begins"), (np.int32, np.float32, np.int32)  # of the counts, block by block
_LARGE = ("gathered.safetensors", *_FILES)  # what the counts are, beside their record


@dataclass(frozen=True, eq=False)
class Gathered:
    """What training needs of the texts."""

    vocabulary: Vocabulary
    counts: Filed
    classes: NDArray[Any]
    y: NDArray[np.intp]
    told: NDArray[Any]  # of the texts behind them, which have no label; see `Unlabeled.told`
    dropped: dict[str, Any] | None = None  # what a budget of memory has cost, see `Budget.keep`

    def blocks(self) -> tuple[list[Block], list[Block]]:
        """Of the texts with labels, and of those without."""
        blocks = self.counts.blocks()
        first = next((at for at, ends in enumerate(accumulate(map(len, blocks))) if ends > len(self.y)), len(blocks))
        return blocks[:first], blocks[first:]


@dataclass(frozen=True, eq=False)
class Filed:
    """Blocks of counts, one after the other, in three files: documents, amounts, and where each token begins."""

    files: tuple[MappedArray, ...]
    sizes: list[tuple[int, int]]  # of each block: documents, entries
    n_tokens: int

    @classmethod
    def of(cls, built: Built, counts: str, n_classes: int, n_labelled: int, folder: Path) -> Filed:
        """Write the counts of texts, weighed, to files in a folder."""
        pointer = np.concatenate([[0], *built.sizes]).cumsum(dtype=np.int64)
        spans, n_tokens = list(pairwise(block_bounds(pointer, n_classes, n_labelled))), len(built.vocabulary)
        lengths = int(pointer[-1]), int(pointer[-1]), len(spans) * (n_tokens + 1)
        filed = cls(tuple(map(MappedArray, lengths, _KINDS, [folder] * 3, _FILES)), [], n_tokens)
        for span in spans:
            made = Block.of(built.matrix(WEIGHTINGS[counts], *span))
            filed.sizes.append((len(made), len(made.tokens.indices)))
            own = filed.block(len(filed.sizes) - 1)
            own.tokens.indices[:] = made.tokens.indices
            own.tokens.data[:] = made.tokens.data
            own.tokens.indptr[:] = made.tokens.indptr
            own.let_go()
            del made  # before the next one is made
        return filed

    @classmethod
    def opened(cls, folder: Path, sizes: list[tuple[int, int]], n_tokens: int) -> Filed:
        """From files that are there; ValueError where they do not hold the counts of documents."""
        lengths = [sum(n for _, n in sizes)] * 2 + [len(sizes) * (n_tokens + 1)]
        filed = cls(
            tuple(map(MappedArray.opened, [folder / name for name in _FILES], _KINDS, lengths)), sizes, n_tokens
        )
        for block in filed.blocks():  # products do not look: a wrong number would read anything
            counts, (documents, entries) = block.tokens, (len(block), len(block.tokens.indices))
            if counts.indptr[0] != 0 or counts.indptr[-1] != entries or np.diff(counts.indptr).min(initial=0) < 0:
                raise ValueError("the tokens do not follow one another")
            if counts.indices.min() < 0 or counts.indices.max() >= documents:
                raise ValueError("a document is out of range")
            if not (counts.data.min() > 0 and counts.data.max() < np.inf):
                raise ValueError("an amount is out of range")
            block.let_go()
        return filed

    def blocks(self) -> list[Block]:
        return [self.block(at) for at in range(len(self.sizes))]

    def block(self, at: int) -> Block:
        first, width = sum(n for _, n in self.sizes[:at]), self.n_tokens + 1
        entries = slice(first, first + self.sizes[at][1])
        spans = (entries, entries, slice(at * width, (at + 1) * width))

        def let_go() -> None:
            for file, span in zip(self.files, spans, strict=True):
                file.let_go(span.start, span.stop)

        indices, data, pointer = (file.array[span] for file, span in zip(self.files, spans, strict=True))
        shape = (self.n_tokens, self.sizes[at][0])
        return Block(made_of(sparse.csr_matrix, data, indices, pointer, shape), let_go)


@dataclass
class Budget(Allowance):
    """How a fit from files spends so many bytes of memory, as estimated."""

    memory: int
    threads: int
    share: float = 1.0  # of the texts of the fit for which the budget must do
    n_texts: int = 0
    n_classes: int = 2
    n_grams: int = 0  # different ones, words among them
    longest: list[tuple[int, int]] = field(default_factory=list)  # texts that are read at a time: bytes, characters
    dropped: dict[str, Any] | None = None

    def read(self, texts: Iterable[str], held_out: bool = False) -> None:
        """Refuse texts that cannot be read, or answered by a model, within the budget."""
        each = _ANSWERED if held_out else _A_CHARACTER
        sizes = ((each * len(text), len(text)) for text in texts)
        self.longest = heapq.nlargest(self.threads + 1, chain(self.longest, sizes))
        rule = f"be enough to read a text of {max(self.longest, default=(0, 0))[1]:,} characters"
        self._check(rule, sum(size for size, _ in self.longest))

    def holds_words(self, n: int) -> bool:
        return _LIBRARIES + self._in_all(_A_WORD * n) <= self.memory

    def words(self, n: int) -> None:
        """Refuse so many different words if they cannot be held within the budget."""
        self._check(f"hold {n:,} different words", self._in_all(_A_WORD * n))

    def grams(self, n: int, longer: int) -> None:
        """Refuse these n-grams if they cannot be counted within the budget together with the shorter ones.

        Longer ones will be counted too: who follows the advice has room for as many of each length.
        """
        self.n_grams += n
        rule = f"hold {self.n_grams:,} different n-grams while they are counted"
        self._check(rule, self._in_all(_A_GRAM * self.n_grams), self._in_all(_A_GRAM * n * longer))

    def _in_all(self, size: int) -> int:
        """What takes so much in these texts takes no more than this in those of the fit."""
        return math.ceil(size / self.share)

    def _check(self, rule: str, size: int, later: int = 0) -> None:
        if _LIBRARIES + size > self.memory:
            advice = f"give {size_of(_LIBRARIES + size + later)} or more"
            raise refusal("fit_batches", "memory", rule, Seen(size_of(self.memory)), advice)

    def keep(self, n_tokens: int) -> int:
        """How many of the tokens to train, the others being `dropped`; refuse where that leaves next to none.

        Training holds ten vectors over all parameters, some over the values or over the tokens, and the vocabulary,
        which is spelled when the model is saved; for each text its class, weight and place, and its scores twice.
        """
        seen = self.n_classes if self.share == 1 else self.n_classes + self.n_classes // 20  # others have more classes
        rows = 1 if seen == 2 else seen
        n_texts = math.ceil(self.n_texts / self.share)
        base = _FIXED + n_texts * (40 + 8 * (rows + 1))
        a_token = 4 * (10 * (rows + 1) + 5 * rows + 10) + 250
        kept = min(n_tokens, (self.memory - base) // a_token)
        if kept < min(n_tokens, _LEAST_TOKENS):
            least = size_of(base + a_token * min(n_tokens, _LEAST_TOKENS))
            rule = f"hold {n_texts:,} texts of {self.n_classes:,} classes with {_LEAST_TOKENS:,} tokens at least"
            advice = f"give {least} or more; all {n_tokens:,} tokens take about {size_of(base + a_token * n_tokens)}"
            raise refusal("fit_batches", "memory", rule, Seen(size_of(self.memory)), advice)
        if kept < n_tokens:
            why = f"a memory of {size_of(self.memory)}; all tokens take about {size_of(base + a_token * n_tokens)}"
            self.dropped = {"tokens": n_tokens - kept, "of": n_tokens, "why": why}
        return kept


def size_of(n_bytes: int) -> str:
    """A number of bytes, rounded up, as people write it and as `--memory` takes it.

    >>> size_of(500_000_000), size_of(2_101_000_000)
    ('500MB', '2.2GB')
    """
    if n_bytes < 1_000_000_000:
        return f"{-(-n_bytes // 1_000_000)}MB"
    tenths = -(-n_bytes // 100_000_000)
    return f"{tenths / 10:g}GB"


@dataclass(frozen=True, eq=False)
class Coded:
    """Labels in numbers: those that occur, and which of them each text has."""

    distinct: list[Any]
    codes: NDArray[np.unsignedinteger[Any]]


def code(owner: str, labels: list[Any]) -> Coded:
    """
    >>> found = code("fit", ["b", "a", "b"])
    >>> found.distinct, found.codes.tolist()
    (['b', 'a'], [0, 1, 0])
    >>> code("fit", [1, True]).distinct
    [1, True]
    """
    try:
        if len(set(map(type, labels))) <= 1:
            known, keys = dict.fromkeys(labels), labels
        else:  # 1 and True are equal, but not the same
            keys = [(type(label), label) for label in labels]
            known = dict.fromkeys(keys)
    except TypeError:  # unhashable
        raise refusal(owner, "labels", "be strings, integers or booleans, all of one kind", labels) from None
    number = {key: at for at, key in enumerate(known)}
    codes = np.fromiter(map(number.__getitem__, keys), np.min_scalar_type(len(known)), len(keys))
    return Coded([key if keys is labels else key[1] for key in known], codes)


def codes_of(owner: str, coded: list[Coded], relabel: Relabel | None = None) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """The classes, sorted, and the class of every text; `relabel` turns the distinct labels into those of the model."""
    distinct = [label for part in coded for label in part.distinct]
    if relabel is not None:
        numbers = {key: at for at, key in enumerate(dict.fromkeys((type(label), label) for label in distinct))}
        named = relabel([label for _, label in numbers])
        distinct = [named[numbers[type(label), label]] for label in distinct]
    classes, place = np.unique(check_labels(owner, distinct, len(distinct)), return_inverse=True)
    ends = np.cumsum([len(part.distinct) for part in coded])[:-1]
    codes = [own[part.codes] for part, own in zip(coded, np.split(place, ends), strict=True)]
    return classes, np.concatenate(codes).astype(np.intp)


def gather(
    batches: Batches,
    limits: Limits,
    counts: str,
    threads: int,
    budget: Budget | None,
    place: Workplace,
    relabel: Relabel | None = None,
    others: Unlabeled | None = None,
) -> Gathered:
    """One pass over the batches; what it finds lies in the folder of the workplace."""
    coded: list[Coded] = []
    known: set[Any] = set()
    others = others or Unlabeled((), Teacher())

    def texts() -> Iterator[str]:
        for some, labels in batches:
            listed = check_texts("fit_batches", some)
            coded.append(code("fit_batches", listed_labels("fit_batches", labels, len(listed))))
            known.update((type(label), label) for label in coded[-1].distinct)
            others.labelled(listed)
            if budget is not None:
                budget.n_texts, budget.n_classes = budget.n_texts + len(listed), max(2, len(known))
                budget.read(listed)
            yield from listed
        for listed in others.texts(lambda: codes_of("fit_batches", coded, relabel)[0]):
            if budget is not None:
                budget.n_texts += len(listed)
                budget.read(listed)
            yield from listed

    built = build(texts(), limits, Threads(threads, place.folder), budget or ANYTHING)
    if not len(built.vocabulary):
        advice = "lower min_df, raise max_df, or look at the texts"
        raise refusal("fit_batches", "batches", "hold at least one token within the limits", "none", advice)
    classes, y = codes_of("fit_batches", coded, relabel)
    filed = Filed.of(built, counts, len(classes), len(y), place.folder)
    return Gathered(built.vocabulary, filed, classes, y, others.told, None if budget is None else budget.dropped)


def sealed(record: dict[str, Any]) -> bytes:
    """A record as JSON, with a checksum of itself."""
    return json.dumps(record | {"sha256": _seal(record)}).encode("utf-8")


def unsealed(content: bytes | str) -> dict[str, Any]:
    """The record that was sealed; ValueError where a number or a letter of it is another one."""
    try:
        record = json.loads(content)
    except RecursionError as error:
        raise ValueError("nested without end") from error
    if not isinstance(record, dict) or record.pop("sha256", None) != _seal(record):
        raise ValueError("the checksum is of another record")
    return record


def _seal(record: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode("utf-8")).hexdigest()


def _plain(path: Path) -> Path:
    """A pipe in the place of a file would hold the reader for ever."""
    if not path.is_file():
        raise ValueError("no plain file")
    return path


def _digest_of_file(path: Path) -> str:
    with open(_plain(path), "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _digest_of_arrays(arrays: dict[str, NDArray[Any]]) -> str:
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.data)
    return digest.hexdigest()


class Workplace:
    """The folder of one long fit. What is finished there stays, and a run that goes on begins with it.

    All that is read again has a checksum: damage that leaves numbers which are as good as others would end in another
    model. It is a guard against broken disks, not against a forger, who can write a checksum too.
    """

    def __init__(self, folder: Path, key: dict[str, Any], resume: bool) -> None:
        """`key` says what is being fitted to what: a run goes on only where all of it is the same."""
        self.folder = folder
        self.key = key
        self._counts = ""  # the seal of the counts: a state belongs to them
        self._saved = time.monotonic()
        folder.mkdir(parents=True, exist_ok=True)
        if not resume:
            self.clear()

    def clear(self) -> None:
        """Forget what was done here; a file of somebody else is left alone."""
        for name in (_STATE, _COUNTS, *_LARGE):
            (self.folder / name).unlink(missing_ok=True)

    def leave(self) -> None:
        """Nothing was finished here: remove it all, and the folder if nobody else uses it."""
        self.clear()
        with suppress(OSError):
            self.folder.rmdir()

    # ---- the counts

    def keep(self, found: Gathered) -> None:
        for file in found.counts.files:
            file.sync()
        arrays = {"sizes": np.array(found.counts.sizes, np.int64), "y": found.y.astype(np.int64), "told": found.told}
        arrays |= pack_words(found.vocabulary)
        write_whole(self.folder / "gathered.safetensors", save(arrays))
        record = {
            "key": self.key,
            "classes": found.classes.tolist(),
            "tokens": len(found.vocabulary),
            "dropped": found.dropped,
            "files": {name: _digest_of_file(self.folder / name) for name in _LARGE},
        }
        self._counts = _seal(record)
        write_whole(self.folder / _COUNTS, sealed(record))

    def kept(self) -> Gathered | None:
        """What an earlier run has gathered, if it finished that."""
        if not (self.folder / _COUNTS).exists():
            return None
        with self._intact():
            record = unsealed(_plain(self.folder / _COUNTS).read_bytes())
            self._check(record["key"])
            if record["files"] != {name: _digest_of_file(self.folder / name) for name in _LARGE}:
                raise ValueError("the checksums are of other files")
            self._counts = _seal(record)
            return self._gathered(record, load_file(self.folder / "gathered.safetensors"))

    def _check(self, key: dict[str, Any]) -> None:
        differ = sorted(name for name in {*key, *self.key} if key.get(name) != self.key.get(name))
        if differ:
            where, names = os.fspath(self.folder), ", ".join(differ)
            advice = "Give the same ones, or begin anew without --resume"
            raise InputError(f"cannot go on in {where!r}: the run there differs in {names}. {advice}.")

    def _gathered(self, record: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Gathered:
        sizes, y, classes = arrays.pop("sizes").tolist(), arrays.pop("y"), np.array(record["classes"])
        told, vocabulary = arrays.pop("told"), unpack_words(arrays)
        if len(y) + len(told) != sum(n for n, _ in sizes) or len(vocabulary) != record["tokens"]:
            raise ValueError("the arrays do not fit together")
        if y.min() < 0 or y.max() >= len(classes):
            raise ValueError("the numbers are out of range")
        filed = Filed.opened(self.folder, sizes, record["tokens"])
        return Gathered(vocabulary, filed, classes, y, told, record["dropped"])

    # ---- the state of training

    def tick(self, state: LBFGSState, history: list[float]) -> None:
        """Now and then, what training needs to go on from here with the same bits."""
        if time.monotonic() - self._saved < _EVERY:
            return
        self.save_state(state, history)
        self._saved = time.monotonic()

    def save_state(self, state: LBFGSState, history: list[float]) -> None:
        arrays = {"theta": state.theta, "gradient": state.gradient}
        for n, (s, y, _) in enumerate(state.pairs):
            arrays |= {f"s_{n}": s, f"y_{n}": y}
        numbers = {
            "key": self.key,
            "value": state.value,
            "rho": [rho for _, _, rho in state.pairs],
            "evaluations": state.evaluations,
            "first": state.first,
            "small_steps": state.small_steps,
            "stalled": state.stalled,
            "history": history,
            "counts": self._counts,
            "arrays": _digest_of_arrays(arrays),
        }
        write_whole(self.folder / _STATE, save(arrays, {"numbers": sealed(numbers).decode("utf-8")}))

    def history(self) -> list[float]:
        """The objective at each step up to the state that was saved last; empty if none was."""
        return self._read_state()[1] if (self.folder / _STATE).exists() else []

    def state(self) -> LBFGSState:
        """The state that was saved last."""
        return self._read_state()[0]

    def _read_state(self) -> tuple[LBFGSState, list[float]]:
        with self._intact(), safe_open(_plain(self.folder / _STATE), "numpy") as file:
            numbers = unsealed(file.metadata()["numbers"])
            self._check(numbers["key"])
            vectors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            if (numbers["counts"], numbers["arrays"]) != (self._counts, _digest_of_arrays(vectors)):
                raise ValueError("the checksums are of other counts or other vectors")
            pairs = [(vectors[f"s_{n}"], vectors[f"y_{n}"], rho) for n, rho in enumerate(numbers["rho"])]
            rest = (numbers[name] for name in ("evaluations", "first", "small_steps", "stalled"))
            state = LBFGSState(vectors["theta"], numbers["value"], vectors["gradient"], pairs, *rest)
            return state, numbers["history"]

    @contextmanager
    def _intact(self) -> Iterator[None]:
        """One clear line for files that are not what this class has written."""
        try:
            yield
        except InputError:
            raise
        except (OSError, ValueError, KeyError, TypeError, SafetensorError):
            where = os.fspath(self.folder)
            raise InputError(f"cannot go on in {where!r}: it is damaged. Begin anew without --resume.") from None
