"""Refusals as a table: calls, one a line, and below them, indented, the message with which each of them is refused."""

import re
from typing import Any

import pytest

from keytokens import KeyTokensError

ROWS = re.compile(r"((?:^\S.*\n)+)((?:^ .*\n)+)", re.M)


def rows(table: str) -> list[Any]:
    """A parameter for each call of a table, with the call as its id: the call, and its message in one line."""
    assert not ROWS.sub("", table).strip(), "a call without a message, or a message without a call"
    return [
        pytest.param(call, " ".join(message.split()), id=call)
        for calls, message in ROWS.findall(table)
        for call in calls.splitlines()
    ]


def check_refused(call: str, names: dict[str, Any], message: str) -> None:
    """The call, made with these names, is refused as the table says."""
    with pytest.raises(KeyTokensError) as refused:
        eval(call, dict(names))
    check_same(str(refused.value), message)


def check_same(said: str, message: str) -> None:
    """What is said is one line, that of the table, where `...` stands for anything."""
    assert said.isprintable()
    if not re.fullmatch(re.escape(message).replace(r"\.\.\.", ".*"), said):
        assert said == message
