"""Argument checks, in one wording."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from numbers import Integral, Number, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import refusal

LARGEST = 1e150  # of an entry, so that squares and sums of squares stay finite
LARGEST_SEED = 2**32 - 1  # of numpy's RandomState
_EXACT = 2**53  # up to here every whole number is a float


def check_number(
    owner: str, name: str, value: Any, low: float, *, whole: bool = False, above: bool = False, none: bool = False
) -> None:
    """A number (`whole`: an integer) of at least `low`, or more than it (`above`); or None, where that is allowed."""
    if none and value is None:
        return
    kind = Integral if whole else Real
    is_number = isinstance(value, kind) and not isinstance(value, (bool, np.bool_))
    if is_number and -math.inf < value < math.inf and (value > low if above else value >= low):
        return
    noun = "a whole number" if whole else "a finite number"
    size = f"above {low:g}" if above else f"of at least {low:g}"
    raise refusal(owner, name, f"be {noun} {size}" + (" or None" if none else ""), value)


def floats(given: Any) -> NDArray[np.float64] | None:
    """An array of real numbers; None for anything else, strings of digits included.

    >>> floats([[1, 2], [3, 4]]).shape, floats([[1, 2], [3]]), floats(["1"])
    ((2, 2), None, None)
    """
    try:
        raw = np.asarray(given)
        return raw.astype(np.float64, copy=False) if raw.dtype.kind in "biufO" else None
    except (TypeError, ValueError, OverflowError):
        return None


def array_of(owner: str, name: str, given: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Finite numbers of a shape, -1 where any length will do; arrays and lists are both read.

    >>> array_of("solve", "p", [1, 2], (2,)).tolist()
    [1.0, 2.0]
    """
    x = floats(given)
    if x is None or x.ndim != len(shape) or any(n not in (-1, m) for n, m in zip(shape, x.shape, strict=True)):
        size = " by ".join("any number" if n < 0 else str(n) for n in shape)
        rule = f"be a vector of {size} numbers" if len(shape) == 1 else f"be a matrix of numbers, {size}"
        raise refusal(owner, name, rule, given if x is None else Seen(f"shape {x.shape}"))
    if not (np.abs(x) <= LARGEST).all():  # also nan
        raise refusal(owner, name, f"have finite entries up to {LARGEST:g}", given)
    return x


def check_seed(owner: str, name: str, value: Any) -> None:
    """What scikit-learn takes for a source of random numbers."""
    if value is None or value is np.random or isinstance(value, np.random.RandomState):
        return
    if isinstance(value, Integral) and not isinstance(value, (bool, np.bool_)) and 0 <= int(value) <= LARGEST_SEED:
        return
    raise refusal(owner, name, f"be None, a whole number from 0 to {LARGEST_SEED}, or a RandomState", value)


def check_choice(owner: str, name: str, value: Any, choices: Iterable[str]) -> None:
    choices = list(choices)
    if not isinstance(value, str) or value not in choices:
        raise refusal(owner, name, "be one of " + ", ".join(map(repr, choices)), value)


def check_range(owner: str, name: str, value: Any) -> tuple[int, int]:
    """A pair (least, most) of n-gram lengths; one number n stands for (1, n)."""
    pair = (1, value) if isinstance(value, Integral) and not isinstance(value, bool) else value
    if (
        not isinstance(pair, (tuple, list))
        or len(pair) != 2
        or not all(isinstance(n, Integral) and not isinstance(n, bool) for n in pair)
        or not 1 <= int(pair[0]) <= int(pair[1])
    ):
        raise refusal(owner, name, "be two whole numbers, 1 <= least <= most", value, "for example (1, 2)")
    return int(pair[0]), int(pair[1])


def _missing(value: Any) -> bool:
    """None, nan, NaT, or pandas' NA, which refuses to be true or false."""
    try:
        return value is None or bool(value != value)
    except TypeError:
        return True
    except ValueError:  # an array: several truths, but not missing
        return False


def one_column(owner: str, name: str, given: Any) -> Any:
    """An iterable of values: a column as a list; of a frame, table or array with one column, that column.

    Iterated, a frame gives the names of its columns, a table of Arrow its columns, a column of Arrow no plain values.
    """
    if isinstance(given, (Mapping, set, frozenset)):
        advice = "give its values in a list" if isinstance(given, Mapping) else "a set has no order: give a list"
        raise refusal(owner, name, "be a list or a column", Seen(f"a {type(given).__name__}"), advice)
    shape = getattr(given, "shape", None)
    if isinstance(shape, tuple) and len(shape) > 1:
        names = list(getattr(given, "column_names" if hasattr(type(given), "column_names") else "columns", ()))
        if len(shape) > 2 or shape[1] != 1:
            seen = "the columns " + ", ".join(map(repr, names)) if names else f"shape {shape}"
            advice = "choose one by its name" if names else f"choose one, as in {name}[:, 0]" * (len(shape) == 2)
            raise refusal(owner, name, "be one column", Seen(seen), advice)
        given = given[names[0]] if names else given[:, 0]
    listing = getattr(given, "to_pylist", None) or getattr(given, "tolist", None)
    return given if listing is None else listing()


def check_texts(owner: str, texts: Any, first: int = 0) -> list[str]:
    """An iterable of strings, as a list; `first` is the number of the first, if these are some of many."""
    values = one_column(owner, "texts", texts)
    if isinstance(values, (str, bytes)):
        raise refusal(owner, "texts", "be a list of strings", texts, "put the one text in a list: [text]")
    try:
        listed = list(values)
    except TypeError:
        raise refusal(owner, "texts", "be an iterable of strings", texts) from None
    for place, text in enumerate(listed, first):
        if not isinstance(text, str):
            raise refusal(owner, f"texts[{place}]", "be a string", text, text_advice(text))
    return listed


def text_advice(seen: Any) -> str:
    """What to do with what is no string."""
    if isinstance(seen, (bytes, bytearray)):
        return 'decode it first: text.decode("utf-8")'
    if _missing(seen):
        return "drop or fill the missing texts first"
    return "convert it with str()" if isinstance(seen, Number) else "give the string itself"


_KINDS = (("booleans", (bool, np.bool_)), ("integers", (int, np.integer)), ("strings", (str,)))


def _kind(label: Any) -> str:
    for name, types in _KINDS:
        if isinstance(label, types):
            return name
    if is_whole(label):
        return "integers"
    return "missing values" if _missing(label) else type(label).__name__.removesuffix("s") + "s"


def is_whole(label: Any) -> bool:
    """Whether this is a float that stands for an integer: so a column of integers becomes where one was missing."""
    return isinstance(label, (float, np.floating)) and abs(float(label)) <= _EXACT and float(label).is_integer()


def check_truth(owner: str, labels: Any, n_texts: int, classes: NDArray[Any]) -> list[Any]:
    """One label a text, none missing; of any kind, also one class only: they are compared with the classes."""
    listed = listed_labels(owner, labels, n_texts)
    if classes.dtype.kind in "iu":
        listed = [int(label) if is_whole(label) else label for label in listed]
    for place, label in enumerate(listed):
        if _missing(label):
            raise refusal(owner, f"labels[{place}]", "be a label", label, "drop the rows without a label")
    return listed


def listed_labels(owner: str, labels: Any, n_texts: int) -> list[Any]:
    """One label a text, whatever they are."""
    values = one_column(owner, "labels", labels)
    try:
        listed = None if isinstance(values, (str, bytes)) else list(values)
    except TypeError:
        listed = None
    if listed is None:
        raise refusal(owner, "labels", "be a list, one label a text", labels)
    if len(listed) != n_texts:
        raise refusal(owner, "labels", f"have one entry for each of the {n_texts} texts", Seen(f"{len(listed)} labels"))
    return listed


def check_labels(owner: str, labels: Any, n_texts: int) -> NDArray[Any]:
    """One label a text, all strings, integers or booleans, two classes or more; whole floats are read as integers."""
    listed = listed_labels(owner, labels, n_texts)
    first: dict[str, tuple[int, Any]] = {}
    for place, label in enumerate(listed):
        first.setdefault(_kind(label), (place, label))
    allowed = [name for name, _ in _KINDS]
    if len(first) > 1 or any(kind not in allowed for kind in first):
        seen = ", ".join(f"{kind} (labels[{place}] = {label!r})" for kind, (place, label) in first.items())
        advices = {"missing values": "drop the rows without a label", "bytes": 'decode them: label.decode("utf-8")'}
        advice = next((advices[kind] for kind in advices if kind in first), "convert them all with str()")
        raise refusal(owner, "labels", "be strings, integers or booleans, all of one kind", Seen(seen), advice)
    if any(issubclass(kind, (float, np.floating)) for kind in set(map(type, listed))):
        listed = list(map(int, listed))
    if len(set(listed)) < 2:
        seen_class = f"only {listed[0]!r}" if listed else "no label at all"
        raise refusal(owner, "labels", "have at least two classes", Seen(seen_class), "add texts of another class")
    array = np.array(listed)
    if array.dtype.kind == "f":  # of integers beyond 63 bits, beside others, numpy makes floats
        advice = "convert them all with str()"
        raise refusal(owner, "labels", "be integers of 64 bits with a sign", max(listed, key=abs), advice)
    if array.tolist() != listed:  # numpy drops NUL characters at the end of a string
        changed = next(label for label in listed if label.endswith("\0"))
        raise refusal(owner, "labels", "not end in a NUL character", changed)
    return array


class Seen(str):
    """Words that stand in a message as they are."""

    def __repr__(self) -> str:
        return str(self)
