"""Argument checks: what they accept, and every message in full."""

import re
from collections import OrderedDict
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

from keytokens.base.checks import check_choice, check_labels, check_number, check_range, check_seed, check_texts
from keytokens.base.errors import InputError, shorten


class Unknown:
    """Like pandas.NA: comparing it gives it again, and it is neither true nor false."""

    def __eq__(self, other: object) -> Any:  # type: ignore[override]
        return self

    __ne__ = __eq__  # type: ignore[assignment]
    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise TypeError("boolean value of NA is ambiguous")

    def __repr__(self) -> str:
        return "<NA>"


# Accepted ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [None, 0, 2**32 - 1, np.int64(7), np.random, np.random.RandomState(0)])
def test_seeds(value):
    check_seed("fit", "random_state", value)


@pytest.mark.parametrize("value", [0, 1, 0.5, np.float32(2), np.int64(3), np.uint8(4), Fraction(1, 3), 10**400, 1e308])
def test_numbers(value):
    check_number("fit", "x", value, 0)


@pytest.mark.parametrize("value", [1, 10**400, np.int32(2)])
def test_whole_numbers(value):
    check_number("fit", "x", value, 1, whole=True)


def test_numbers_above_a_bound_and_none():
    check_number("fit", "x", 1e-300, 0, above=True)
    check_number("fit", "x", None, 0, none=True)
    check_number("fit", "x", 0, 0, none=True)


def test_choices():
    check_choice("fit", "counts", "log", ["raw", "log"])
    check_choice("fit", "counts", "log", (name for name in ["raw", "log"]))
    check_choice("fit", "counts", np.str_("log"), {"raw": 1, "log": 2})


@pytest.mark.parametrize(
    "value, pair",
    [((1, 2), (1, 2)), ([2, 2], (2, 2)), (3, (1, 3)), (1, (1, 1)), (np.int64(2), (1, 2)), ((np.int32(1), 4), (1, 4))],
    ids=repr,
)
def test_ranges(value, pair):
    got = check_range("fit", "ngrams", value)
    assert got == pair
    assert all(type(n) is int for n in got)


@pytest.mark.parametrize(
    "texts",
    [["a", ""], ("a", ""), iter(["a", ""]), np.array(["a", ""]), np.array(["a", ""], object), {"a": 1, "": 2}.keys()],
    ids=lambda x: type(x).__name__,
)
def test_texts(texts):
    got = check_texts("fit", texts)
    assert got == ["a", ""]
    assert type(got) is list


def test_no_texts():
    assert check_texts("fit", []) == []


@pytest.mark.parametrize(
    "labels",
    [
        ["a", "b", "a"],
        (0, 1, 0),
        [True, False, True],
        iter(["x", "y", "z"]),
        np.array([3, -1, 3]),
        np.array([True, False, True]),
        np.array(["a", "b", "a"]),
        np.array(["a", "b", "a"], object),
        [np.int64(1), 2, np.uint8(1)],
        [np.str_("a"), "b", "a"],
    ],
    ids=lambda x: f"{type(x).__name__} {getattr(x, 'dtype', '')}",
)
def test_labels(labels):
    expected = list(labels) if not hasattr(labels, "__next__") else ["x", "y", "z"]
    labels = iter(expected) if hasattr(labels, "__next__") else labels
    got = check_labels("fit", labels, 3)
    assert isinstance(got, np.ndarray)
    assert got.tolist() == expected


def test_whole_floats_are_integers():
    """A column of integers becomes one of floats where one was missing."""
    for given in ([0.0, -1.0], np.array([0.0, -1.0], np.float32), [np.float64(0), -1], [-0.0, np.float32(-1)]):
        got = check_labels("fit", given, 2)
        assert got.dtype.kind == "i"
        assert got.tolist() == [0, -1]


# Refused -------------------------------------------------------------------------------------------------------------

Row = tuple[Callable[[], Any], str]  # a check and its arguments; what it says after the name of the caller
KINDS = "`labels` must be strings, integers or booleans, all of one kind; saw"
STR, LABEL = "Convert them all with str().", "Drop the rows without a label."
TEXT = "Drop or fill the missing texts first."


def numbers() -> Iterator[Row]:
    """Seeds, numbers, choices and ranges."""
    number = partial(check_number, "fit", "x")
    for value in (-1, 2**32, 10**400, 1.0, "0", True, np.random.default_rng(0)):
        rule = "`random_state` must be None, a whole number from 0 to 4294967295, or a RandomState"
        yield partial(check_seed, "fit", "random_state", value), f"{rule}; saw {shorten(value)}."
    not_numbers = [np.nan, np.inf, -np.inf, np.float32("nan"), "1", None, True, np.True_, [1], 1j, Decimal(1)]
    for value in (-1, -0.5, Fraction(-1, 9), *not_numbers):
        yield partial(number, value, 0), f"`x` must be a finite number of at least 0; saw {value!r}."
    for value in (0, 1.0, 1.5, True, "2", None, np.float64(3), np.nan):
        yield partial(number, value, 1, whole=True), f"`x` must be a whole number of at least 1; saw {value!r}."
    yield partial(number, 0, 0.25), "`x` must be a finite number of at least 0.25; saw 0."
    yield partial(number, 0, 0, above=True), "`x` must be a finite number above 0; saw 0."
    yield partial(number, 0, 0, above=True, none=True), "`x` must be a finite number above 0 or None; saw 0."
    yield partial(number, 1, 2, whole=True, none=True), "`x` must be a whole number of at least 2 or None; saw 1."
    for value in ("Log", "", None, 1, ["log"], b"log"):
        check = partial(check_choice, "fit", "counts", value, ["raw", "log"])
        yield check, f"`counts` must be one of 'raw', 'log'; saw {value!r}."
    not_ranges = [{1, 2}, (), (1,), (1, 2, 3), (1.0, 2), (True, 2), (1, None), np.array([1, 2])]
    for value in (0, -1, 1.5, "12", None, True, (2, 1), (0, 1), *not_ranges):
        rule = "`ngrams` must be two whole numbers, 1 <= least <= most"
        yield partial(check_range, "fit", "ngrams", value), f"{rule}; saw {value!r}. For example (1, 2)."


def columns() -> Iterator[Row]:
    """What gives something else when it is iterated, as texts and as labels."""
    for name, check in (("texts", check_texts), ("labels", partial(check_labels, n_texts=2))):
        rule = f"`{name}` must be a list or a column; saw a"
        for given in ({"a": 1, "b": 2}, OrderedDict(a=1, b=2)):
            yield partial(check, "fit", given), f"{rule} {type(given).__name__}. Give its values in a list."
        for given in ({"a", "b"}, frozenset("ab")):
            advice = "A set has no order: give a list."
            yield partial(check, "fit", given), f"{rule} {type(given).__name__}. {advice}"
        many = np.array([["a", "b"], ["c", "d"]])
        advice = f"Choose one, as in {name}[:, 0]."
        yield partial(check, "fit", many), f"`{name}` must be one column; saw shape (2, 2). {advice}"
        yield partial(check, "fit", many[None]), f"`{name}` must be one column; saw shape (1, 2, 2)."


def texts() -> Iterator[Row]:
    for one in ("a review", b"a review"):
        rule = f"`texts` must be a list of strings; saw {one!r}. Put the one text in a list: [text]."
        yield partial(check_texts, "fit", one), rule
    for value in (None, 1, 2.5, len):
        yield partial(check_texts, "fit", value), f"`texts` must be an iterable of strings; saw {value!r}."
    for missing in (None, np.nan, np.float32("nan"), np.datetime64("NaT", "s"), Unknown()):
        rule = f"`texts[1]` must be a string; saw {missing!r}. {TEXT}"
        for column in (["a", missing, "b"], np.array(["a", missing, "b"], dtype=object)):
            yield partial(check_texts, "fit", column), rule
    advices = {"Convert it with str()": [1, 1.5, True, Decimal(1)]}
    advices["Give the string itself"] = [["a"], ("a",), {"text": "a"}, np.arange(2)]
    advices['Decode it first: text.decode("utf-8")'] = [b"bytes", bytearray(b"bytes")]
    for advice, others in advices.items():
        for other in others:
            rule = f"`texts[2]` must be a string; saw {other!r}. {advice}."
            yield partial(check_texts, "fit", ["a", "b", other]), rule


def labels() -> Iterator[Row]:
    for value in ("ab", b"ab", None, 3, np.array(1), np.array("ab")):
        yield partial(check_labels, "fit", value, 2), f"`labels` must be a list, one label a text; saw {value!r}."
    for n in (0, 1, 3):
        rule = f"`labels` must have one entry for each of the {n} texts; saw 2 labels."
        yield partial(check_labels, "fit", ["a", "b"], n), rule
    for given, seen in (
        (["a", 1], f"strings (labels[0] = 'a'), integers (labels[1] = 1). {STR}"),
        ([0, 1, True], f"integers (labels[0] = 0), booleans (labels[2] = True). {STR}"),
        (np.array([0.5, 1.5]), f"floats (labels[0] = 0.5). {STR}"),
        ([np.inf, -np.inf], f"floats (labels[0] = inf). {STR}"),
        ([1e300, 2.0], f"floats (labels[0] = 1e+300), integers (labels[1] = 2.0). {STR}"),
        ([True, 0.0], f"booleans (labels[0] = True), integers (labels[1] = 0.0). {STR}"),
        ([("a",), ("b",)], f"tuples (labels[0] = ('a',)). {STR}"),
        ([np.arange(2), np.arange(2)], f"ndarrays (labels[0] = array([0, 1])). {STR}"),
        (["a", None], f"strings (labels[0] = 'a'), missing values (labels[1] = None). {LABEL}"),
        ([np.nan, "b"], f"missing values (labels[0] = nan), strings (labels[1] = 'b'). {LABEL}"),
        (["a", Unknown()], f"strings (labels[0] = 'a'), missing values (labels[1] = <NA>). {LABEL}"),
        ([None, None], f"missing values (labels[0] = None). {LABEL}"),
        ([b"a", b"b"], "bytes (labels[0] = b'a'). Decode them: label.decode(\"utf-8\")."),
    ):
        yield partial(check_labels, "fit", given, len(given)), f"{KINDS} {seen}"
    for given, seen in ((["a", "a"], "only 'a'"), ([1], "only 1"), ([], "no label at all")):
        rule = f"`labels` must have at least two classes; saw {seen}. Add texts of another class."
        yield partial(check_labels, "fit", given, len(given)), rule
    for given in ([1, 2**63 + 9], [-1, 2**63], [np.int64(1), 2**64 - 1]):  # numpy would make floats of them, rounded
        rule = f"`labels` must be integers of 64 bits with a sign; saw {given[1]}. {STR}"
        yield partial(check_labels, "fit", given, 2), rule
    rule = r"`labels` must not end in a NUL character; saw 'a\x00'."
    yield partial(check_labels, "fit", ["a", "a\0"], 2), rule


ROWS = [*numbers(), *columns(), *texts(), *labels()]


def check_message(check: Callable[[], Any], message: str) -> None:
    with pytest.raises(InputError) as refused:
        check()
    assert str(refused.value) == f"fit: {message}"


@pytest.mark.parametrize("check, message", ROWS, ids=[re.sub(" at 0x.*", "", message) for _, message in ROWS])
def test_messages(check, message):
    check_message(check, message)


def test_pandas():
    pd = pytest.importorskip("pandas")
    assert check_texts("fit", pd.Series(["a", ""])) == ["a", ""]
    assert check_labels("fit", pd.Series(["a", "b"], dtype="category"), 2).tolist() == ["a", "b"]
    for missing in (pd.NA, pd.NaT, None):
        column = pd.Series(["a", missing], dtype=object)
        check_message(partial(check_texts, "fit", column), f"`texts[1]` must be a string; saw {missing!r}. {TEXT}")
        seen = f"strings (labels[0] = 'a'), missing values (labels[1] = {missing!r}). {LABEL}"
        check_message(partial(check_labels, "fit", column, 2), f"{KINDS} {seen}")
