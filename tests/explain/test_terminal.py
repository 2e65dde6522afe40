"""The terminal: no text can drive it, nothing is lost, colour only where it is wanted."""

import io
import re
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from keytokens.explain import Explanation, KeyToken, terminal
from keytokens.explain.terminal import explanation_text, key_tokens_text, wants_colour

from .reading import blank, hostile, sources, texts, without_brackets, without_style

CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]")
widths = st.integers(1, 120)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@given(source=sources, text=texts, width=widths)
def test_plain_text_has_no_control_and_loses_nothing(models, source, text, width):
    output = explanation_text(models[source].explain(text), colour=False, width=width)
    assert not CONTROL.search(output)
    assume(not set("[]{}") & set(text))
    assert blank(without_brackets(output)).startswith(blank(terminal._safe(text)))


@given(source=sources, text=texts, width=widths)
def test_coloured_text_has_only_our_styles_and_loses_nothing(models, source, text, width):
    output = without_style(explanation_text(models[source].explain(text), colour=True, width=width))
    assert not CONTROL.search(output)
    assert blank(output).startswith(blank(terminal._safe(text)))


@given(names=st.lists(hostile, min_size=3, max_size=3), colour=st.booleans())
def test_tokens_cannot_drive_the_terminal(models, names, colour):
    e = models["two, no sink"].explain("dull film great")
    spelled = [f"{name}{i}" for i, name in enumerate((names * 9)[: len(e.names)])]
    record = Explanation(replace(e.documents, names=spelled))
    assert not CONTROL.search(without_style(explanation_text(record, colour=colour, width=60)))
    keys = {name: [KeyToken(name, 0.1, 0.1, 1.0, {name: 2})] for name in names}
    assert not CONTROL.search(without_style(key_tokens_text(keys, colour, 60)))


def test_brackets_tell_side_and_set(models):
    e = models["two, no sink"].explain("zzz great zzz")
    assert e.label == "good"
    output = explanation_text(e, colour=False, width=80)
    assert output.startswith("zzz [+great] zzz\n")
    assert "Key: + speaks for good, - for bad; [keeps the label], {changes it if deleted}." in output
    assert e.certificate.sentence.split(". ")[0].replace("\xa0", " ") in blank(output)
    assert "Sufficient tokens. 1 of 1 token, proved to be the fewest." in output


def test_lines_fit(models):
    e = models["two"].explain("a great film and a dull plot with really fine acting " * 5)
    for colour in (True, False):
        lines = without_style(explanation_text(e, colour=colour, width=50)).splitlines()
        assert max(map(len, lines)) <= 50


def test_wide_characters_take_two_columns():
    assert [terminal._cells(text) for text in ("ab", "好看", "e\u0301", "")] == [2, 4, 1, 0]


def test_long_text_is_cut_with_a_note(models, monkeypatch):
    monkeypatch.setattr("keytokens.explain.pieces.LONGEST_TEXT", 5)
    monkeypatch.setattr(terminal, "LONGEST_TEXT", 5)
    output = explanation_text(models["two"].explain("zzz xxx yyy"), colour=False, width=80)
    assert output.startswith("zzz x\n[... and 6 more characters]\n")


@pytest.mark.parametrize("source", ["two", "three", "integers", "booleans"])
@pytest.mark.parametrize("colour", [True, False])
def test_key_tokens(models, source, colour):
    found = models[source].key_tokens(3)
    output = key_tokens_text(found, colour, 80)
    assert ("\x1b" in output) is colour
    for label, tokens in found.items():
        assert f"Key tokens for {label!r}\n" in output
        assert all(token.token in output for token in tokens)
    assert key_tokens_text({}, colour, 80) == "\n"


@pytest.mark.parametrize(
    ("stream", "environment", "wanted"),
    [
        (Terminal(), {}, True),
        (Terminal(), {"TERM": "dumb"}, False),
        (Terminal(), {"NO_COLOR": "1"}, False),
        (Terminal(), {"NO_COLOR": ""}, True),
        (Terminal(), {"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
        (io.StringIO(), {}, False),
        (io.StringIO(), {"FORCE_COLOR": "1"}, True),
        (io.StringIO(), {"FORCE_COLOR": "1", "TERM": "dumb"}, True),
        (io.StringIO(), {"FORCE_COLOR": ""}, False),
    ],
)
def test_wants_colour(monkeypatch, stream, environment, wanted):
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert wants_colour(stream) is wanted
