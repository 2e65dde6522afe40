"""The package's own exceptions, and the one wording of a refusal.

KeyTokensError
 |- InputError      something the caller gave is wrong (also a ValueError)
 |   |- DataError   ... in a file: the message names the file and, where there is one, the line
 |- ModelError      a model directory cannot be read: missing, damaged, or of an unknown format
 |- OutputError     something cannot be written; what was there before is still there (also an OSError)
 |- MissingExtra    an optional package is needed (also an ImportError)
 |- NotSeparable    no direction lets the chosen tokens win; `.witness` proves it
"""

from __future__ import annotations

from typing import Any


class KeyTokensError(Exception):
    """Base of everything that keytokens raises on purpose.

    >>> issubclass(DataError, KeyTokensError), issubclass(NotSeparable, KeyTokensError)
    (True, True)
    """


class InputError(KeyTokensError, ValueError):
    """An argument breaks a rule; the message says which, what was seen and what to do.

    >>> import keytokens as kt
    >>> kt.KeyTokenClassifier(brevity=2).check_options()
    Traceback (most recent call last):
        ...
    keytokens.base.errors.InputError: KeyTokenClassifier: `brevity` must be a number from 0 to 1; saw 2.
    """


class DataError(InputError):
    """A data file breaks a rule; the message names the file and, where there is one, the line.

    >>> from keytokens.io import read_table
    >>> read_table("no-such-table.csv")
    Traceback (most recent call last):
        ...
    keytokens.base.errors.DataError: no-such-table.csv: cannot be read: no such file or directory.
    """


class ModelError(KeyTokensError):
    """A model directory cannot be read.

    >>> import keytokens as kt
    >>> kt.load("no-such-model")
    Traceback (most recent call last):
        ...
    keytokens.base.errors.ModelError: load: there is no model at 'no-such-model': no such directory.
    """


class OutputError(KeyTokensError, OSError):
    """A file cannot be written; what was there before is still there.

    >>> issubclass(OutputError, OSError)
    True
    """


class MissingExtra(KeyTokensError, ImportError):
    """A command or function needs an optional package that is not installed.

    >>> issubclass(MissingExtra, ImportError)
    True
    """


class NotSeparable(KeyTokensError):
    """No direction satisfies the constraints; `witness` is a Farkas vector that anybody can check.

    >>> from keytokens.lab.svm import MarginProblem, solve
    >>> try:
    ...     solve(MarginProblem.from_rows([[1.0], [-1.0]]))  # p >= 1 and -p >= 1
    ... except NotSeparable as error:
    ...     print(error.witness.is_proof())
    True
    """

    def __init__(self, message: str, witness: Any) -> None:
        super().__init__(message)
        self.witness = witness


def shorten(seen: object, limit: int = 80) -> str:
    """The repr of what was seen, cut so that a message stays one line.

    >>> shorten("x" * 200)[:12], len(shorten("x" * 200))
    ("'xxxxxxxxxxx", 80)
    """
    text = repr(seen).replace("\n", " ")
    return text if len(text) <= limit else text[: limit - 3] + "..."


def refusal(owner: str, name: str, rule: str, seen: object, advice: str = "") -> InputError:
    """The one wording: who, which argument, the rule, what was seen, what to do.

    >>> str(refusal("fit", "labels", "have at least two classes", ["a"], "add texts of another class"))
    "fit: `labels` must have at least two classes; saw ['a']. Add texts of another class."
    """
    return InputError(
        f"{owner}: `{name}` must {rule}; saw {shorten(seen)}."
        + (f" {advice[0].upper()}{advice[1:]}." if advice else "")
    )
