"""Small models: which tokens stay, and how coarsely their numbers are kept.

The small model is a model of its own. Its logits and values are whole multiples of a power of two, so they are stored
as whole numbers and come back to the bit; what is predicted and proved is predicted and proved of these numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..model.attention import Parameters
from ..model.blocks import Float
from ..text.hashing import factorise
from ..text.vocabulary import Level, Vocabulary
from ..text.words import keys_of_slices

Whole = NDArray[np.int64]
Made = TypeVar("Made")

TOLERANCE = 0.02  # root mean square of the change of a score, a log-odds, that rounding may make
_DIGITS = 3  # binary digits of a mean attention after the first: within 6 %
_CUT = np.uint32(23 - _DIGITS)
_LARGEST = 2**23  # bounds all whole numbers, which are so exact in single precision
_LARGEST_EXPONENT = 100


@dataclass(frozen=True, eq=False)
class TokenModel:
    """A model of texts with what is known of its tokens, by column."""

    vocabulary: Vocabulary
    theta: Parameters
    mean_attention: Float  # (V,)
    class_counts: Float  # (K, V)


# ---- the choice


def most_decisive(model: TokenModel) -> NDArray[np.intp]:
    """All columns, the token with the largest mean contribution, of either sign, first."""
    said = model.mean_attention * np.abs(model.theta.B + model.theta.c[:, None]).max(axis=0)
    return np.argsort(-said, kind="stable")


def shrink(model: TokenModel, tokens: int) -> TokenModel:
    """At most so many of its tokens, those that say most, with numbers on a grid."""
    return _rounded(_restricted(model, most_decisive(model)[:tokens]))


def _restricted(model: TokenModel, kept: NDArray[np.intp]) -> TokenModel:
    """Some tokens, corrected so that a dropped token still counts, on average, as one that contributes nothing.

    Without it every document would lose weight in D = C w + w0, and all scores would grow. If the share of the dropped
    weight were r in all documents, D = (C w of the kept) / (1 - r) + w0, so that the same f = (C(w (b + c)) + w0 c) / D
    has contributing values (b + c) (1 - r) and a sink w0 (1 - r). A contribution that is 0 stays 0.
    """
    theta, attention = model.theta, model.mean_attention.astype(np.float64)
    vocabulary, columns = _select(model.vocabulary, kept)
    stays = float(attention[columns].sum())
    share = stays / float(attention.sum()) if stays > 0 else 1.0  # 1 - r
    c = theta.c[:, None]
    small = replace(
        theta,
        a=theta.a[columns],
        B=(theta.B[:, columns] + c) * share - c,
        log_sink=theta.log_sink + float(np.log(share)),
    )
    return TokenModel(vocabulary, small, attention[columns] / share, model.class_counts[:, columns])


def _select(vocabulary: Vocabulary, kept: NDArray[np.intp]) -> tuple[Vocabulary, NDArray[np.intp]]:
    """The vocabulary of some columns, and which old column each new one is: columns follow the nodes."""
    is_token = np.isin(vocabulary.column, kept)
    old, words, levels = vocabulary.leading_to(is_token, lambda needed: _word_order(vocabulary, needed))
    is_token = is_token[old]
    small = Vocabulary(words, vocabulary.word_keys[old[: len(words)]], levels, _columns(is_token))
    return small, vocabulary.column[old[is_token]].astype(np.intp)


def _word_order(vocabulary: Vocabulary, needed: NDArray[np.bool_]) -> NDArray[np.intp]:
    """The needed words, in an order that takes little room.

    Words that occur in more n-grams come first, so the gaps between the numbers of neighbours are small. Words that
    occur in about as many are in alphabetical order, so their spelling deflates well.
    """
    words = vocabulary.words
    uses = np.zeros(len(words), np.int64)
    for level in vocabulary.levels:
        keys = level.keys[needed[level.start : level.start + len(level.keys)]].astype(np.int64)
        prefix, last = np.divmod(keys, len(words))
        uses += np.bincount(last, minlength=len(words))
        if level.start == len(words):  # the prefix is a word
            uses += np.bincount(prefix, minlength=len(words))
    octave = np.frexp(uses)[1].tolist()
    order = sorted(np.flatnonzero(needed[: len(words)]).tolist(), key=lambda word: (-octave[word], words[word]))
    return np.array(order, np.intp)


def _columns(is_token: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Columns in the order of the nodes, -1 for a node that is no token."""
    return np.where(is_token, np.cumsum(is_token, dtype=np.int32) - np.int32(1), np.int32(-1))


def _rounded(model: TokenModel) -> TokenModel:
    """The numbers on their grids: coarse, but the scores change by about `TOLERANCE` only.

    If a value is off by an error of variance s^2 / 12, as rounding to multiples of s makes it, the score of document i
    is off by one of variance sum_t Q_it^2 s^2 / 12. An error of the logit acts like one of the value b times as large.
    """
    theta = model.theta
    df = model.class_counts.sum(axis=0).astype(np.float64)
    # mean over the documents of Q^2, as if Q were the same wherever the token occurs, and some token were everywhere
    square = np.divide(model.mean_attention**2, df, out=np.zeros_like(df), where=df > 0) * df.max(initial=0)
    a = _to_grid(theta.a, float(square @ (theta.B**2).max(axis=0)))
    c = _to_grid(theta.c, 1.0)
    B = _to_grid(theta.B + theta.c[:, None], float(square.sum())) - c[:, None]  # a contribution that is 0 stays 0
    return TokenModel(
        model.vocabulary,
        replace(theta, a=a, B=B, c=c.astype(np.float64)),
        _cut(model.mean_attention),
        np.rint(model.class_counts).astype(np.float32),
    )


def _to_grid(x: Float, influence: float) -> Float:
    """x in multiples of the largest power of two that keeps sqrt(influence * step^2 / 12) within the tolerance."""
    largest = int(np.frexp(_LARGEST / max(float(np.abs(x).max(initial=0)), 1e-30))[1]) - 2
    wanted = np.sqrt(influence / 12) / TOLERANCE
    exponent = int(np.ceil(np.log2(wanted))) if wanted > 0 else 0
    exponent = min(max(exponent, -_LARGEST_EXPONENT), largest, _LARGEST_EXPONENT)
    return np.ldexp(np.rint(np.ldexp(x.astype(np.float64), exponent)), -exponent).astype(np.float32, order="C")


def _cut(x: Float) -> Float:
    """Numbers >= 0 with only a few binary digits, rounded."""
    bits = x.astype(np.float32).view(np.uint32)
    return (((bits + (np.uint32(1) << (_CUT - np.uint32(1)))) >> _CUT) << _CUT).view(np.float32)


def largest_within(
    make: Callable[[int], Made], size: Callable[[Made], int], budget: int, most: int
) -> tuple[Made, int]:
    """make(n) of nearly the largest n in 1 .. most with size(make(n)) <= budget, and its size; else make(1) and its.

    Sizes grow about in proportion to n, so the next n is read off a straight line; every third one halves the range.
    """
    best = make(most)
    high, over = most, size(best)
    if over <= budget or most == 1:
        return best, over
    best = make(1)
    low, under = 1, size(best)
    turn = 0
    while under <= budget and high - low > 1 and under < 0.997 * budget:
        turn += 1
        share = 0.5 if turn % 3 == 0 else 0.999 * (budget - under) / (over - under)
        n = min(max(low + int(share * (high - low)), low + 1), high - 1)
        made = make(n)
        found = size(made)
        if found <= budget:
            best, low, under = made, n, found
        else:
            high, over = n, found
    return best, under


# ---- whole numbers for the disk


def pack_numbers(arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]] | None:
    """The numbers of a model with whole ones in place of those on a grid; None if they lie on none.

    `unpack_numbers` gives them back, to the bit.
    """
    (a_exponent, a), (b_exponent, B) = _on_grid(arrays["attention"]), _on_grid(arrays["values"])
    attention, counts = np.asarray(arrays["mean_attention"], np.float32), arrays["class_counts"]
    cut = attention.view(np.uint32) >> _CUT
    exact = np.array_equal(_cut(attention), arrays["mean_attention"])
    if not exact or not np.array_equal(np.rint(counts), counts) or not 0 <= counts.min() <= counts.max() < _LARGEST:
        return None
    if max(abs(a_exponent), abs(b_exponent)) > _LARGEST_EXPONENT or max(np.abs(a).max(), np.abs(B).max()) >= _LARGEST:
        return None
    base = int(cut.min())
    return {
        **arrays,
        "attention": _planes(_folded(a)),
        "values": _planes(_folded(B)),
        "mean_attention": _planes(cut.astype(np.int64) - base),
        "class_counts": _planes(counts.astype(np.int64)),
        "grid": np.array([a_exponent, b_exponent, base], np.int32),
    }


def unpack_numbers(arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The way back; a ValueError or KeyError if the arrays do not fit together, as from `unpack_words`."""
    grid = arrays["grid"]
    if grid.dtype != np.int32 or grid.shape != (3,):
        raise ValueError("grid has the wrong shape or type")
    a_exponent, b_exponent, base = grid.tolist()
    if max(abs(a_exponent), abs(b_exponent)) > _LARGEST_EXPONENT or base < 0:
        raise ValueError("the grid is out of range")
    cut = _whole(arrays["mean_attention"]) + np.int32(base)
    if not 0 <= cut.min(initial=0) <= cut.max(initial=0) < 1 << 31 - int(_CUT):
        raise ValueError("mean_attention is out of range")
    return {
        **{name: array for name, array in arrays.items() if name != "grid"},
        "attention": _off_grid(_whole(arrays["attention"]), a_exponent),
        "values": _off_grid(_whole(arrays["values"]), b_exponent),
        "mean_attention": (cut << int(_CUT)).view(np.float32),
        "class_counts": _whole(arrays["class_counts"]).astype(np.float32),
    }


def _on_grid(x: Float) -> tuple[int, Whole]:
    """(k, x 2^k) with the least k for which these are whole numbers."""
    x = np.asarray(x, np.float64)
    mantissa, exponent = np.frexp(x[x != 0])
    if not len(mantissa):
        return 0, np.zeros(x.shape, np.int64)
    digits = np.ldexp(mantissa, 53).astype(np.int64)
    lowest = np.frexp((digits & -digits).astype(np.float64))[1] - 1
    k = int((53 - exponent - lowest).max())
    top = int(exponent.max()) + k  # 2^top bounds them all
    return k, np.ldexp(x, k).astype(np.int64) if top < 63 else np.full(x.shape, _LARGEST)


def _folded(x: Whole) -> Whole:
    """0, -1, 1, -2, 2, ... as 0, 1, 2, 3, 4, ..."""
    return np.where(x < 0, -2 * x - 1, 2 * x)


def _off_grid(folded: NDArray[np.int32], exponent: int) -> Float:
    """The numbers that stand as `_folded` x 2^exponent; exact, because the scale is a power of two."""
    return ((folded >> 1) ^ -(folded & 1)).astype(np.float32) * np.float32(2.0**-exponent)


def _planes(x: Whole) -> NDArray[np.uint8]:
    """Whole numbers >= 0 by bytes, all lowest bytes first: the high ones are mostly 0 and deflate to nothing."""
    depth = max(1, (int(x.max(initial=0)).bit_length() + 7) // 8)
    return np.ascontiguousarray([(x >> 8 * byte & 255).astype(np.uint8) for byte in range(depth)])


def _whole(planes: NDArray[Any]) -> NDArray[np.int32]:
    if planes.dtype != np.uint8 or planes.ndim < 2 or not 1 <= len(planes) <= 4:
        raise ValueError("whole numbers must be one to four planes of bytes")
    x = planes[0].astype(np.int32)
    for byte, plane in enumerate(planes[1:], 1):
        x |= plane.astype(np.int32) << 8 * byte
    if len(planes) == 4 and x.min(initial=0) < 0:
        raise ValueError("a whole number is too large")
    return x


def pack_words(vocabulary: Vocabulary) -> dict[str, NDArray[Any]]:
    """The spelling of the words; for each node how many longer ones it begins, and the gaps of their last words.

    Columns that are not in the order of the nodes are an array of their own.
    """
    n_words = len(vocabulary.words)
    text = np.frombuffer("\n".join(vocabulary.words).encode("utf-8"), np.uint8)
    is_token = vocabulary.column >= 0
    packed: dict[str, NDArray[Any]] = {"words": text, "is_token": np.packbits(is_token)}
    if not np.array_equal(_columns(is_token), vocabulary.column):
        packed["columns"] = vocabulary.column[is_token]
    start, size = 0, n_words
    for order, level in enumerate(vocabulary.levels, 2):
        prefix, last = np.divmod(level.keys.astype(np.int64), n_words)
        is_first = np.diff(prefix, prepend=-1) > 0
        packed[f"children_{order}"] = _planes(np.bincount(prefix - start, minlength=size))
        packed[f"gaps_{order}"] = _planes(np.where(is_first, last, np.diff(last, prepend=0) - 1))
        start, size = level.start, len(level.keys)
    return packed


def unpack_words(arrays: Mapping[str, NDArray[Any]]) -> Vocabulary:
    """The way back."""
    words, word_keys = _words_of(arrays["words"])
    levels: list[Level] = []
    start, size = 0, len(words)
    while f"children_{len(levels) + 2}" in arrays:
        order = len(levels) + 2
        children, gaps = (_whole(arrays[f"{name}_{order}"]) for name in ("children", "gaps"))
        if children.shape != (size,) or gaps.shape != (children.sum(),):
            raise ValueError("the n-grams do not fit together")
        # last words rise by gap + 1 and begin again at each prefix
        rising = np.zeros(len(gaps) + 1, np.int64)
        np.cumsum(gaps, out=rising[1:])
        rising += np.arange(len(gaps) + 1)
        ends = np.cumsum(children)
        before = rising[ends - children]
        if (rising[ends] - before).max(initial=0) > len(words):
            raise ValueError("an n-gram names an unknown word")
        keys = rising[1:] + np.repeat(np.arange(start, start + size) * len(words) - before - 1, children)
        start, size = start + size, len(gaps)
        levels.append(Level(start, keys.view(np.uint64)))
    known = {f"{name}_{order}" for name in ("children", "gaps") for order in range(2, len(levels) + 2)}
    if set(arrays) - {"columns"} != known | {"words", "is_token"}:
        raise ValueError("arrays are missing, or there are too many")
    marks = arrays["is_token"]
    if marks.dtype != np.uint8 or marks.shape != ((start + size + 7) // 8,):
        raise ValueError("is_token has the wrong shape or type")
    is_token = np.unpackbits(marks, count=start + size).astype(np.bool_)
    column = _columns(is_token)
    if "columns" in arrays:
        if arrays["columns"].dtype != np.int32 or not np.array_equal(np.sort(arrays["columns"]), column[is_token]):
            raise ValueError("columns are not those of the tokens, each once")
        column[is_token] = arrays["columns"]
    return Vocabulary(words, word_keys, tuple(levels), column)


def _words_of(text: NDArray[Any]) -> tuple[tuple[str, ...], NDArray[np.uint64]]:
    if text.dtype != np.uint8 or text.ndim != 1:
        raise ValueError("words are not a text")
    spelled = text.tobytes()
    breaks = np.flatnonzero(text == ord("\n"))
    starts = np.concatenate([[0], breaks + 1])
    sizes = np.append(breaks, len(text)) - starts
    keys = keys_of_slices(spelled, starts, sizes)
    if sizes.min() == 0 or b" " in spelled or len(factorise(keys)[0]) != len(keys):
        raise ValueError("the words must be distinct, without spaces")
    return tuple(spelled.decode("utf-8").split("\n")), keys
