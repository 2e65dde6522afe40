"""Argument checks: every message in full."""

from __future__ import annotations

import re
from collections import OrderedDict
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from keytokens.base.checks import check_choice, check_labels, check_number, check_range, check_seed, check_texts
from keytokens.base.errors import InputError


class Unknown:
    """Like pandas.NA: comparing it gives it again, and it is neither true nor false."""

    def __eq__(self, other: object) -> Unknown:  # type: ignore[override]
        return self

    __ne__ = __eq__  # type: ignore[assignment]
    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise TypeError("boolean value of NA is ambiguous")

    def __repr__(self) -> str:
        return "<NA>"


def refuses(message: str, check, *args, **options) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        check("fit", *args, **options)


# check_seed


@pytest.mark.parametrize("value", [None, 0, 2**32 - 1, np.int64(7), np.random, np.random.RandomState(0)])
def test_seeds(value):
    check_seed("fit", "random_state", value)


@pytest.mark.parametrize("value", [-1, 2**32, 10**400, 1.0, "0", True, np.random.default_rng(0)])
def test_seeds_that_are_none(value):
    with pytest.raises(InputError, match=r"^fit: `random_state` must be None, a whole number from 0 to 4294967295, or"):
        check_seed("fit", "random_state", value)


# check_number


@pytest.mark.parametrize("value", [0, 1, 0.5, np.float32(2), np.int64(3), np.uint8(4), Fraction(1, 3), 10**400, 1e308])
def test_numbers(value):
    check_number("fit", "x", value, 0)


@pytest.mark.parametrize("value", [1, 10**400, np.int32(2)])
def test_whole_numbers(value):
    check_number("fit", "x", value, 1, whole=True)


BAD = [
    -1,
    -0.5,
    np.nan,
    np.inf,
    -np.inf,
    np.float32("nan"),
    "1",
    None,
    True,
    np.True_,
    [1],
    1j,
    Decimal(1),
    Fraction(-1, 9),
]


@pytest.mark.parametrize("value", BAD, ids=repr)
def test_not_a_number(value):
    refuses(f"fit: `x` must be a finite number of at least 0; saw {value!r}.", check_number, "x", value, 0)


@pytest.mark.parametrize("value", [0, 1.0, 1.5, True, "2", None, np.float64(3), np.nan], ids=repr)
def test_not_a_whole_number(value):
    refuses(f"fit: `x` must be a whole number of at least 1; saw {value!r}.", check_number, "x", value, 1, whole=True)


def test_above_and_none():
    check_number("fit", "x", 1e-300, 0, above=True)
    check_number("fit", "x", None, 0, none=True)
    check_number("fit", "x", 0, 0, none=True)
    refuses("fit: `x` must be a finite number above 0; saw 0.", check_number, "x", 0, 0, above=True)
    refuses("fit: `x` must be a finite number above 0 or None; saw 0.", check_number, "x", 0, 0, above=True, none=True)
    refuses(
        "fit: `x` must be a whole number of at least 2 or None; saw 1.", check_number, "x", 1, 2, whole=True, none=True
    )
    refuses("fit: `x` must be a finite number of at least 0.25; saw 0.", check_number, "x", 0, 0.25)


# check_choice


def test_choice():
    check_choice("fit", "counts", "log", ["raw", "log"])
    check_choice("fit", "counts", "log", (name for name in ["raw", "log"]))
    check_choice("fit", "counts", np.str_("log"), {"raw": 1, "log": 2})
    for value in ("Log", "", None, 1, ["log"], b"log"):
        message = f"fit: `counts` must be one of 'raw', 'log'; saw {value!r}."
        refuses(message, check_choice, "counts", value, ["raw", "log"])


# check_range


@pytest.mark.parametrize(
    "value, pair",
    [((1, 2), (1, 2)), ([2, 2], (2, 2)), (3, (1, 3)), (1, (1, 1)), (np.int64(2), (1, 2)), ((np.int32(1), 4), (1, 4))],
    ids=repr,
)
def test_range(value, pair):
    got = check_range("fit", "ngrams", value)
    assert got == pair
    assert all(type(n) is int for n in got)


@pytest.mark.parametrize(
    "value",
    [
        0,
        -1,
        (2, 1),
        (0, 1),
        (1,),
        (1, 2, 3),
        (1.0, 2),
        "12",
        None,
        True,
        (True, 2),
        (1, None),
        {1, 2},
        1.5,
        (),
        np.array([1, 2]),
    ],
    ids=repr,
)
def test_not_a_range(value):
    message = f"fit: `ngrams` must be two whole numbers, 1 <= least <= most; saw {value!r}. Cure: for example (1, 2)."
    refuses(message, check_range, "ngrams", value)


# check_texts


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


@pytest.mark.parametrize("one", ["a review", b"a review"])
def test_one_text_is_no_list(one):
    message = f"fit: `texts` must be a list of strings; saw {one!r}. Cure: put the one text in a list: [text]."
    refuses(message, check_texts, one)


@pytest.mark.parametrize("name, check", [("texts", check_texts), ("labels", check_labels)])
def test_what_gives_something_else_when_iterated(name, check):
    n = [2] * (check is check_labels)
    for given in ({"a": 1, "b": 2}, OrderedDict(a=1, b=2)):
        seen = f"a {type(given).__name__}. Cure: give its values in a list."
        refuses(f"fit: `{name}` must be a list or a column; saw {seen}", check, given, *n)
    for given in ({"a", "b"}, frozenset("ab")):
        seen = f"a {type(given).__name__}. Cure: a set has no order: give a list."
        refuses(f"fit: `{name}` must be a list or a column; saw {seen}", check, given, *n)
    many = np.array([["a", "b"], ["c", "d"]])
    refuses(
        f"fit: `{name}` must be one column; saw shape (2, 2). Cure: choose one, as in {name}[:, 0].", check, many, *n
    )
    refuses(f"fit: `{name}` must be one column; saw shape (1, 2, 2).", check, many[None], *n)


@pytest.mark.parametrize("value", [None, 1, 2.5, len])
def test_texts_must_be_iterable(value):
    refuses(f"fit: `texts` must be an iterable of strings; saw {value!r}.", check_texts, value)


@pytest.mark.parametrize(
    "missing", [None, float("nan"), np.float32("nan"), np.datetime64("NaT", "s"), Unknown()], ids=repr
)
def test_a_missing_text(missing):
    message = f"fit: `texts[1]` must be a string; saw {missing!r}. Cure: drop or fill the missing texts first."
    refuses(message, check_texts, ["a", missing, "b"])
    refuses(message, check_texts, np.array(["a", missing, "b"], dtype=object))


def test_pandas():
    pd = pytest.importorskip("pandas")
    assert check_texts("fit", pd.Series(["a", ""])) == ["a", ""]
    assert check_labels("fit", pd.Series(["a", "b"], dtype="category"), 2).tolist() == ["a", "b"]
    for missing in (pd.NA, pd.NaT, None):
        texts = pd.Series(["a", missing], dtype=object)
        message = f"fit: `texts[1]` must be a string; saw {missing!r}. Cure: drop or fill the missing texts first."
        refuses(message, check_texts, texts)
        with pytest.raises(InputError, match=r"missing values \(labels\[1\] = .*Cure: drop the rows without a label"):
            check_labels("fit", texts, 2)


@pytest.mark.parametrize(
    "other, cure",
    [
        *((number, "convert it with str()") for number in (1, 1.5, True, Decimal(1))),
        *((holder, "give the string itself") for holder in (["a"], ("a",), {"text": "a"}, np.arange(2))),
        *((raw, 'decode it first: text.decode("utf-8")') for raw in (b"bytes", bytearray(b"bytes"))),
    ],
    ids=repr,
)
def test_a_text_of_another_kind(other, cure):
    refuses(f"fit: `texts[2]` must be a string; saw {other!r}. Cure: {cure}.", check_texts, ["a", "b", other])


# check_labels


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


@pytest.mark.parametrize("value", ["ab", b"ab", None, 3, np.array(1), np.array("ab")], ids=repr)
def test_labels_must_be_a_list(value):
    refuses(f"fit: `labels` must be a list, one label a text; saw {value!r}.", check_labels, value, 2)


@pytest.mark.parametrize("n", [0, 1, 3])
def test_one_label_a_text(n):
    refuses(f"fit: `labels` must have one entry for each of the {n} texts; saw 2 labels.", check_labels, ["a", "b"], n)


RULE = "fit: `labels` must be strings, integers or booleans, all of one kind; saw "


@pytest.mark.parametrize(
    "labels, seen",
    [
        (["a", 1], "strings (labels[0] = 'a'), integers (labels[1] = 1). Cure: convert them all with str()."),
        ([0, 1, True], "integers (labels[0] = 0), booleans (labels[2] = True). Cure: convert them all with str()."),
        (np.array([0.5, 1.5]), "floats (labels[0] = 0.5). Cure: convert them all with str()."),
        ([np.inf, -np.inf], "floats (labels[0] = inf). Cure: convert them all with str()."),
        ([1e300, 2.0], "floats (labels[0] = 1e+300), integers (labels[1] = 2.0). Cure: convert them all with str()."),
        ([True, 0.0], "booleans (labels[0] = True), integers (labels[1] = 0.0). Cure: convert them all with str()."),
        ([("a",), ("b",)], "tuples (labels[0] = ('a',)). Cure: convert them all with str()."),
        ([np.arange(2), np.arange(2)], "ndarrays (labels[0] = array([0, 1])). Cure: convert them all with str()."),
        (
            ["a", None],
            "strings (labels[0] = 'a'), missing values (labels[1] = None). Cure: drop the rows without a label.",
        ),
        (
            [np.nan, "b"],
            "missing values (labels[0] = nan), strings (labels[1] = 'b'). Cure: drop the rows without a label.",
        ),
        (
            ["a", Unknown()],
            "strings (labels[0] = 'a'), missing values (labels[1] = <NA>). Cure: drop the rows without a label.",
        ),
        ([None, None], "missing values (labels[0] = None). Cure: drop the rows without a label."),
        ([b"a", b"b"], "bytes (labels[0] = b'a'). Cure: decode them: label.decode(\"utf-8\")."),
    ],
    ids=repr,
)
def test_labels_of_the_wrong_kind(labels, seen):
    with pytest.raises(InputError) as caught:
        check_labels("fit", labels, len(labels))
    text = str(caught.value)
    shown, _, cure = seen.partition(". Cure")
    shown = shown if len(shown) <= 80 else shown[:77] + "..."
    assert text == f"{RULE}{shown}. Cure{cure}"


@pytest.mark.parametrize("labels, seen", [(["a", "a"], "only 'a'"), ([1], "only 1"), ([], "no label at all")])
def test_two_classes_at_least(labels, seen):
    message = f"fit: `labels` must have at least two classes; saw {seen}. Cure: add texts of another class."
    refuses(message, check_labels, labels, len(labels))


@pytest.mark.parametrize("labels", [[1, 2**63 + 9], [-1, 2**63], [np.int64(1), 2**64 - 1]])
def test_integers_of_which_numpy_would_make_floats(labels):
    """Rounded, or equal by luck: neither are the classes that were given."""
    rule = f"fit: `labels` must be integers of 64 bits with a sign; saw {labels[1]}."
    refuses(f"{rule} Cure: convert them all with str().", check_labels, labels, 2)


def test_a_label_that_numpy_would_change_is_refused():
    with pytest.raises(InputError, match=r"fit: `labels` must not end in a NUL character; saw 'a\\x00'\."):
        check_labels("fit", ["a", "a\0"], 2)
