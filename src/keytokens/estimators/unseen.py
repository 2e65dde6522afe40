"""The answers of models that had not seen the texts, as a model keeps them beside a salted hash of each text.

So a text of the training is recognised later, and its score stays honest. Who has the model can test whether a text was
in its training; the hashes can be left out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from ..model.losses import noisy
from .evaluation import HELD_OUT, OUT_OF_FOLD, Answers

TOP = 10  # classes of a text whose probabilities are stored
LEAST_LOG = -100.0  # of a probability that is stored
_WIDTH = 0.5  # of the prior on the logarithm of a scale
_NOISE = 0.02  # the mean of the prior on the noise
_LEAST_NOISE = 1e-4  # less is none
_MOST = 10_000  # answers that a scale is fitted to

Hashes = NDArray[np.uint64]
Array = NDArray[Any]


def salt_of(first: str) -> bytes:
    """The salt of a training is made of its first text: the same table has the same hashes, another one has others."""
    return hashlib.blake2b(_bytes(first), digest_size=16, person=b"keytokens salt").digest()


def hashes_of(texts: Sequence[str], salt: bytes) -> Hashes:
    """A number of 64 bits for each text."""
    digests = b"".join(hashlib.blake2b(_bytes(text), digest_size=8, salt=salt).digest() for text in texts)
    return np.frombuffer(digests, "<u8").astype(np.uint64)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


@dataclass(frozen=True, eq=False)
class Unseen:
    """The answers of models that had not seen the texts, one row a text, and how to find the row of a text.

    Attributes
    ----------
    kind : str
        Of the answers: held-out or out-of-fold.
    salt : bytes
    hashes : (n,) array
        Of the texts, as `hashes_of` makes them; empty if they were left out.
    given : (n,) array
        The number of the class that each text was given.
    top : (n, k) array
        The numbers of the most probable classes, most probable first.
    logs : (n, k) array
        The logarithms of their probabilities, before they were calibrated.
    given_log : (n,) array
        The same for the given class.
    others : (m,) array
        Sorted hashes of a `share` of all texts of the training; none if each of them has a row.
    share : float
    n_texts : int
        Texts of the training.
    n_classes : int
    scale : float
        By which all scores were multiplied to calibrate the probabilities.
    noise : float
        The share of labels that are taken for drawn by lot, from the same calibration.
    texts : tuple of str
        The texts of the rows, if they were kept.
    """

    kind: str
    salt: bytes
    hashes: Hashes
    given: Array
    top: Array
    logs: Array
    given_log: Array
    others: Hashes
    share: float
    n_texts: int
    n_classes: int
    scale: float = 1.0
    noise: float = 0.0
    texts: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.given)

    # ---- which text is which

    @property
    def recognises(self) -> bool:
        """Whether texts of the training are known again."""
        return len(self.hashes) + len(self.others) > 0

    @cached_property
    def _order(self) -> Array:
        return np.argsort(self.hashes, kind="stable")

    def find(self, texts: Sequence[str]) -> tuple[Array, Array]:
        """The row of each text, -1 for none; and whether a text without a row was in the training."""
        hashes = hashes_of(texts, self.salt)
        rows = np.full(len(hashes), -1, np.int64)
        if len(self.hashes):
            place = np.minimum(np.searchsorted(self.hashes, hashes, sorter=self._order), len(self.hashes) - 1)
            there = self._order[place]
            rows = np.where(self.hashes[there] == hashes, there, -1)
        seen = (rows < 0) & np.isin(hashes, self.others)
        if self.share < 1 and seen.sum() >= max(1.0, self.share * (rows < 0).sum() / 2):
            seen = rows < 0  # of the sample as many are there as if all were
        return rows, seen

    # ---- what was answered

    def answers(self, rows: Array, truth: Array) -> Answers:
        """What is stored of these rows, calibrated, beside the numbers of the true classes."""
        logs, rest, top = self.logs[rows] * self.scale, self._rest[rows] * self.scale, self.top[rows]
        total = self._total(logs, rest)
        P, p_rest, p_given = (
            noisy(np.exp(found), self.noise, self.n_classes)
            for found in (logs - total[:, None], rest - total, self.given_log[rows] * self.scale - total)
        )
        stored = truth[:, None] == top
        p_given = np.where(truth == self.given[rows], p_given, p_rest)
        p_given = np.where(stored.any(axis=1), (P * stored).sum(axis=1), p_given)
        p_given[(truth < 0) | (truth >= self.n_classes)] = np.nan
        squares = (P * P).sum(axis=1) + self._left * p_rest * p_rest
        second = (P * (top == 1)).sum(axis=1)
        return Answers(truth, top[:, 0].astype(np.int32), P[:, 0], p_given, squares, second)

    def _total(self, logs: Array, rest: Array) -> Array:
        """(n,) the logarithm of the sum over all classes."""
        top = logs.max(axis=1)
        return top + np.log(np.exp(logs - top[:, None]).sum(axis=1) + self._left * np.exp(rest - top))

    @property
    def _left(self) -> int:
        """How many classes of a text are not stored."""
        return self.n_classes - self.top.shape[1]

    @cached_property
    def _rest(self) -> Array:
        """(n,) the logarithm of the probability of each class that is not stored: all of them are taken to be equal."""
        left = -np.expm1(np.logaddexp.reduce(self.logs, axis=1)) / max(self._left, 1)
        return np.log(np.maximum(left, np.exp(LEAST_LOG)))

    def calibrated(self) -> Unseen:
        """With the scale and the noise of least log loss.

        A scale multiplies all scores, and noise pulls all probabilities towards their mean: both leave every label and
        every minimum set as they are. The priors say that a scale near 1 and little noise are likely; without them the
        loss would know no end where all answers are right.
        """
        if not len(self):
            return self
        some = slice(None, None, max(1, len(self) // _MOST))
        logs, rest, given = (found[some].astype(np.float64) for found in (self.logs, self._rest, self.given_log))

        def cost(x: Array) -> float:
            scale, noise = float(np.exp(x[0])), float(x[1])
            if not 0 <= noise < 1:
                return np.inf
            p = noisy(np.exp(scale * given - self._total(scale * logs, scale * rest)), noise, self.n_classes)
            return float(x[0] ** 2 / (2 * _WIDTH**2) + noise / _NOISE - np.log(np.maximum(p, 1e-300)).sum())

        start: Any = {"initial_simplex": [[0, 0.005], [0.3, 0.005], [0, 0.02]], "xatol": 1e-3, "fatol": 1e-2}
        best = minimize(cost, [0.0, 0.005], method="Nelder-Mead", options=start).x
        noise = float(best[1]) if best[1] > _LEAST_NOISE else 0.0
        return replace(self, scale=float(np.exp(best[0])), noise=noise)

    def without_hashes(self) -> Unseen:
        """So that nobody can test whether a text was in the training; the scores stay, texts are not recognised."""
        none = np.zeros(0, np.uint64)
        return replace(self, hashes=none, others=none, texts=())

    def beside(self, whole: Unseen) -> Unseen:
        """With the hashes that another one remembers of the whole training, where some of its texts have no row."""
        if len(self.hashes) == whole.n_texts:
            return self
        return replace(self, others=whole.others, share=whole.share, n_texts=whole.n_texts)

    def at_most(self, n_bytes: int) -> Unseen:
        """With as many rows, evenly chosen, as take no more than so many bytes, a fifth of them for other hashes."""
        size = sum(array.nbytes for array in self.to_arrays().values())
        if size <= n_bytes:
            return self
        others = self.others if len(self.others) else np.sort(self.hashes)
        kept = others[: (n_bytes // 5 if len(self) else n_bytes) // 8]  # the least of a sample are a sample
        each = (size - self.others.nbytes) // max(1, len(self))
        most = min(len(self), (n_bytes - kept.nbytes) // max(1, each))
        rows = np.linspace(0, len(self) - 1, most, dtype=np.intp)
        return replace(
            self,
            **{name: getattr(self, name)[rows] for name in ("given", "top", "logs", "given_log")},
            hashes=self.hashes[rows] if len(self.hashes) else self.hashes,
            texts=tuple(self.texts[row] for row in rows.tolist()) if self.texts else (),
            others=kept,
            share=self.share * max(1, len(kept)) / max(1, len(others)),
        )

    # ---- on disk

    def to_arrays(self) -> dict[str, Array]:
        """The arrays that `from_arrays` takes; the facts are apart."""
        found = {name: getattr(self, name) for name in ("hashes", "given", "top", "logs", "given_log", "others")}
        if self.texts:
            spelled = [_bytes(text) for text in self.texts]
            found["texts"] = np.frombuffer(b"".join(spelled), np.uint8)
            found["text_ends"] = np.cumsum([len(text) for text in spelled], dtype=np.int64)
        return found

    def facts(self) -> dict[str, Any]:
        """What `from_arrays` takes beside the arrays."""
        return {
            "kind": self.kind,
            "salt": self.salt.hex(),
            "share": self.share,
            "texts": self.n_texts,
            "scale": self.scale,
            "noise": self.noise,
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, Array], facts: dict[str, Any], n_classes: int) -> Unseen:
        """The way back; arrays that do not fit together raise a ValueError."""
        given, top, logs = arrays["given"], arrays["top"], arrays["logs"]
        n, k = len(given), min(TOP, n_classes)
        fits = (
            facts["kind"] in (HELD_OUT, OUT_OF_FOLD)
            and top.shape == logs.shape == (n, k)
            and arrays["given_log"].shape == (n,)
            and len(arrays["hashes"]) in (0, n)
            and given.dtype.kind == top.dtype.kind == "u"
            and arrays["hashes"].dtype == arrays["others"].dtype == np.uint64
            and max(given.max(initial=0), top.max(initial=0)) < n_classes
            and all(np.isfinite(x).all() and x.max(initial=0) <= 1e-6 for x in (logs, arrays["given_log"]))
            and 0 < facts["share"] <= 1
            and 0 < facts["scale"] < np.inf
            and 0 <= facts["noise"] < 1
            and type(facts["texts"]) is int
            and len(facts["salt"]) == 32
        )
        if not fits:
            raise ValueError("the scores have the wrong shape, type or range")
        texts: tuple[str, ...] = ()
        if "texts" in arrays:
            whole, ends = arrays["texts"].tobytes(), arrays["text_ends"].tolist()
            if len(ends) != n or sorted(ends) != ends or ends[-1:] != [len(whole)]:
                raise ValueError("the texts of the scores have the wrong size")
            texts = tuple(whole[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise([0, *ends]))
        rows: dict[str, Any] = {name: array for name, array in arrays.items() if not name.startswith("text")}
        known = {"kind": facts["kind"], "salt": bytes.fromhex(facts["salt"]), "share": float(facts["share"])}
        rows |= {**known, "n_texts": facts["texts"], "scale": float(facts["scale"]), "noise": float(facts["noise"])}
        return cls(**rows, n_classes=n_classes, texts=texts)
