"""One list of sections, two printers: what is in the list is on the page, and what is brief in the terminal too."""

import pytest
from hypothesis import given

from keytokens.explain import format as wording
from keytokens.explain.html import explanation_page
from keytokens.explain.sections import Bar, Row, Section, classes, sections, strongest
from keytokens.explain.terminal import explanation_text

from .reading import Reader, blank, sources, texts


@given(source=sources, text=texts)
def test_bars_lie_on_their_line_and_figures_below_their_heads(models, source, text):
    e = models[source].explain(text)
    for section in [classes(e), *strongest(e), *sections(e)]:
        for row in section.rows:
            assert len(row.figures) == len(section.head) - 1
            if row.bar is not None:
                assert 0 <= row.bar.start <= row.bar.end <= 1.01
                assert row.bar.kind in "pnk"


@pytest.mark.parametrize("source", ["two", "three", "two, no sink"])
def test_both_printers_show_the_same_sections(models, source):
    e = models[source].explain("a great film and a dull plot")
    page, output = Reader(explanation_page(e)), blank(explanation_text(e, colour=False, width=100))
    every, brief = sections(e), sections(e, brief=True)
    assert [section for section in every if section in brief] == brief
    for section in every:
        assert section.title in page.everything
        assert (f" {section.title}. " in output) is (section in brief)
        for line in section.sentences:
            assert line in page.everything
            assert line in output or section not in brief
        for row in section.rows:
            assert all(figure in page.everything for figure in row.figures)
            assert f"{row.name} {row.figures[-1].replace('−', '-')}" in output or section not in brief


def test_a_new_section_is_shown_by_both(models, monkeypatch):
    new = Section("News", ("Something new.",), ("what", "how much"), [Row("a <b>", ("7",), Bar(0, 1, "k"))])
    for printer in ("html", "terminal"):
        monkeypatch.setattr(f"keytokens.explain.{printer}.sections", lambda e, brief=False: [new])
    e = models["two"].explain("great")
    assert "NewsSomething new.whathow mucha <b>7" in Reader(explanation_page(e)).everything.replace("\n", "")
    assert "News. Something new.\n  a <b> 7\n" in explanation_text(e, colour=False, width=wording.LONGEST_NAME)
