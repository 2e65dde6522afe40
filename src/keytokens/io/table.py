"""A table's columns: which holds the text, which the label, and what they may hold."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from ..base.checks import Seen, is_whole
from ..base.errors import DataError, shorten

_TEXT_NAMES = ("text", "review", "sentence", "content", "body", "message", "comment", "document", "description")
_WHOLE = re.compile(r"(?:0|-?[1-9][0-9]{0,17})(?:\.0)?")  # as str() writes them, and no larger than machines count
_LABEL_NAMES = ("label", "class", "category", "target", "sentiment", "y", "tag", "topic", "intent", "rating", "stars")


@dataclass(frozen=True)
class Table:
    """Columns of equal length, and where each row stands in its file."""

    name: str
    columns: dict[str, list[Any]]
    place: Callable[[int], str]  # of row i, for messages: "line 7"
    headed: bool = False  # the names of the columns are the first row of a file

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), []))


@dataclass
class Wanted:
    """The columns that somebody reads: as named, or guessed from the first table that is asked about.

    In a folder, tables without them are skipped, and `tell` hears of each, once.
    """

    text: str | None
    label: str | None
    tell: Callable[[str], None]
    need_label: bool = True

    def __post_init__(self) -> None:
        self.tell = cache(self.tell)

    def of(self, table: Table) -> tuple[str, str | None]:
        guessed = table.headed and self.text is None and self.label is None
        self.text, self.label = guess_columns(table, self.text, self.label, self.need_label)
        if guessed and self.text.count(" ") >= 2 and not are_names([self.text]):
            lost = "if that is a text, it is lost: add a header line such as text,label"
            self.tell(f"{table.name}, line 1: took {shorten(self.text)} for the name of a column; {lost}.")
        return self.text, self.label


def guess_columns(table: Table, text: str | None, label: str | None, need_label: bool = True) -> tuple[str, str | None]:
    """The text and label columns: as named, else by their usual names, else by what they hold."""
    for option, wanted in (("--text", text), ("--label", label)):
        if wanted is not None and wanted not in table.columns:
            seen = f"saw {shorten(wanted)}, the columns are {_names(table)}"
            raise DataError(f"{table.name}: {option} must name a column; {seen}.")
    if text is None and label is None and table.headed:
        _check_header(table)
    text = text or _guess(table, _TEXT_NAMES, label, _looks_like_text)
    if text is None:
        raise DataError(f"{table.name}: which column holds the text? Name it with --text: {_names(table)}.")
    if not need_label:
        return text, label
    label = label or _guess(table, _LABEL_NAMES, text, _looks_like_label)
    if label is None:
        raise DataError(f"{table.name}: which column holds the label? Name it with --label: {_names(table)}.")
    return text, label


def are_names(row: Iterable[str]) -> bool:
    """Whether this is certainly a header: one of the usual names is in it."""
    return any(name.lower() in _TEXT_NAMES + _LABEL_NAMES for name in row)


def _check_header(table: Table) -> None:
    """Refuse a first row that looks like data: it would be lost, for the names of the columns are taken from it."""
    if are_names(table.columns):
        return
    cells = ((name, i) for name, values in table.columns.items() if name for i in range(len(values)))
    again = next(((name, i) for name, i in cells if str(table.columns[name][i]).strip() == name), None)
    (first, *others) = table.columns
    if again is not None:
        seen = f"{shorten(again[0])} is also in {table.place(again[1])}"
    elif not others and first.count(" ") >= 2:
        seen = f"saw {shorten(first)}"
    else:
        return
    advice = "Add a header line such as text,label; if these are the names, give them with --text and --label"
    raise DataError(f"{table.name}, line 1: looks like a row of data, not like names; {seen}. {advice}.")


def _names(table: Table) -> str:
    """The columns, some of them if there are many, in one line."""
    return shorten(Seen(", ".join(shorten(name) for name in list(table.columns)[:100])), 1000)


def _guess(table: Table, names: Sequence[str], taken: str | None, fits: Callable[[list[Any]], bool]) -> str | None:
    open_columns = [column for column in table.columns if column != taken]
    for name in names:
        for column in open_columns:
            if column.lower() == name:
                return column
    fitting = [column for column in open_columns if fits(table.columns[column])]
    return fitting[0] if len(fitting) == 1 else None


def _looks_like_text(values: list[Any]) -> bool:
    some = values[:1000]
    return all(isinstance(v, str) for v in some) and sum(v.count(" ") for v in some) >= 2 * len(some)


def _looks_like_label(values: list[Any]) -> bool:
    return all(isinstance(v, (str, int)) for v in values[:1000]) and len(set(map(str, values))) <= max(
        2, min(100, len(values) // 5)
    )


def texts_of(table: Table, column: str) -> list[str]:
    """A column of strings."""
    values = table.columns[column]
    for i, value in enumerate(values):
        if not isinstance(value, str):
            where = f"{table.name}, {table.place(i)}"
            rule = f"{shorten(column)} must be a string"
            advice = "Store the column as strings" if isinstance(value, bytes) else "Drop or mend the row"
            raise DataError(f"{where}: {rule}; saw {shorten(value)}. {advice}.")
    return values


def labels_of(table: Table, column: str) -> list[Any]:
    """A column of labels. From CSV all are strings: whole numbers, if all are such, are read as numbers."""
    return as_numbers(given_labels(table, column))


def given_labels(table: Table, column: str) -> list[Any]:
    """A column of labels as they stand there; for tables that come in batches, which may differ in their kind."""
    values = table.columns[column]
    for i, value in enumerate(values):
        if is_missing(value):
            where = f"{table.name}, {table.place(i)}"
            rule = f"{shorten(column)} must be a label"
            raise DataError(f"{where}: {rule}; saw {shorten(value)}. Drop the row or fill it in.")
    return values


def is_missing(label: Any) -> bool:
    """Whether a cell holds no label."""
    return bool(label is None or label == "" or label != label or isinstance(label, (list, dict)))


def label_by_name(table: Table, called: str | None = None) -> str | None:
    """The column of this name, or of one of the usual names; None if there is none."""
    return called if called in table.columns else _guess(table, _LABEL_NAMES, None, lambda values: False)


def as_numbers(labels: list[Any]) -> list[Any]:
    """Whole numbers, if all of these are strings that say one, or all are numbers; else the labels themselves.

    >>> as_numbers(["1", "-2.0"]), as_numbers([1.0, 0.0]), as_numbers(["1", "x"])
    ([1, -2], [1, 0], ['1', 'x'])
    """
    kinds = set(map(type, labels))
    if (kinds == {str} or kinds <= {int, float}) and all(type(_whole(label)) is int for label in labels):
        return [_whole(label) for label in labels]
    return labels


def as_classes(labels: list[Any], classes: list[Any]) -> list[Any]:
    """Labels to be compared with the classes of a model: whole numbers are such if the classes are.

    >>> as_classes(["1", "x"], [0, 1]), as_classes(["1.0"], ["1.0", "2.0"])
    ([1, 'x'], ['1.0'])
    """
    return [_whole(label) for label in labels] if all(type(label) is int for label in classes) else labels


def _whole(label: Any) -> Any:
    """The whole number that a string or a float says; anything else as it is."""
    if isinstance(label, str):
        return int(label.partition(".")[0]) if _WHOLE.fullmatch(label) else label
    return int(label) if is_whole(label) else label
