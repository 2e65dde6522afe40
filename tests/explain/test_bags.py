"""Pages and terminal text of bags: every instance is there, with the marks of its sets and its figures."""

import io
import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keytokens import BagClassifier
from keytokens.explain import format as wording
from keytokens.explain import pieces, sections
from keytokens.explain.html import explanation_fragment, explanation_page
from keytokens.explain.terminal import explanation_text

from ..estimators.bags import planted
from .reading import Reader, blank, hostile, without_brackets, without_style

numbers = st.floats(-4, 4)
rows = st.lists(st.tuples(numbers, numbers, numbers, numbers), min_size=1, max_size=12)


def record(table, classes=2, linear=True, names=None):
    """Of rows of a log weight and values; of two classes the first one has none."""
    values = np.array(table)[:, 1 : 1 + classes] * ([0, 1] if classes == 2 else 1)
    return planted.record(np.array(table)[:, 0], values, linear, names)


@given(rows, st.sampled_from([2, 3]), st.booleans())
def test_page_shows_every_instance(table, classes, linear):
    e = record(table, classes, linear)
    for render in (explanation_page, explanation_fragment):
        page = Reader(render(e))
        assert page.text["kt-text"] == [" ".join(map(str, range(len(table))))]
        said = page.text["kt-proof"] + page.text.get("kt-limit kt-soft", [])
        assert "".join(said).replace(" ", "") == e.certificate.sentence.replace(" ", "")
        assert "token" not in page.everything
        assert "word" not in page.everything
        hints = [hint.split(":")[0] for hint in page.titles]
        assert hints == ([f"instance {t}" for t in range(len(table))] if linear else [])


@given(rows, st.sampled_from([2, 3]))
def test_pieces_carry_the_record(table, classes):
    e = record(table, classes)
    found = pieces.pieces(e)
    text = pieces.text_of(e)
    assert "".join(text[piece.start : piece.end] for piece in found) == text
    own = [piece for piece in found if piece.uses]
    assert [piece.ink for piece in own] == e.contributions_against().tolist()
    scores = dict(zip(e.classes, e.scores, strict=True))
    assert sum(piece.ink for piece in found) == pytest.approx(scores[e.label] - scores[e.rival], abs=1e-9)
    assert {int(text[p.start : p.end]) for p in own if p.sufficient} == set(e.sufficient)
    assert {int(text[p.start : p.end]) for p in own if p.flip} == set(e.flip)


@given(rows, st.sampled_from([2, 3]), st.booleans(), st.integers(50, 100))
def test_terminal_shows_every_instance(table, classes, linear, width):
    e = record(table, classes, linear)
    text = " ".join(map(str, range(len(table))))
    plain = explanation_text(e, colour=False, width=width)
    coloured = without_style(explanation_text(e, colour=True, width=width))
    assert blank(without_brackets(plain)).startswith(text)
    assert blank(coloured).startswith(text)
    for output in (plain, coloured):
        assert max(map(len, output.splitlines())) <= width
        assert "token" not in output


@given(st.lists(hostile, min_size=3, max_size=3, unique=True), st.booleans())
def test_labels_cannot_inject(names, colour):
    e = record([(0.0, 1.0, 2.0, 3.0), (1.0, 0.5, -1.0, 0.0)], 3, names=names)
    Reader(explanation_page(e))
    output = without_style(explanation_text(e, colour=colour, width=60))
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e]", output)


def test_page_and_terminal_in_words():
    e = record([(0.0, 0.0, 3.0, 0.0), (0.0, 0.0, 2.0, 0.0), (0.0, 0.0, 2.0, 0.0), (0.0, 0.0, -4.5, 0.0)])
    page = Reader(explanation_page(e))
    for words in (
        "Sufficient instances",
        "2 of 4 instances, proved to be the fewest.",
        "Deleting it makes the label 'class 0'.",
        "Contribution to class 1 less that to class 0. They add up to +0.625, the lead of class 1.",
        "at most 1 instance",
        "at most 2 instances",
        "after deleting whichever instances. Exact.",
        "the vectors of the bag, numbered from 0",
        "nothing is said of single coordinates",
        "blue speaks for class 1",
        "class 1 (65\xa0%), because of instances 0 and 1. Keep these 2 instances (fewer are not enough)",
        "Without instance 0 it is class 0.",
    ):
        assert words in page.everything, words
    assert "instance 0: 0.2500 × +3.000 = +0.750" in page.titles
    assert "<title>class 1 (0.651): a bag of 4</title>" in explanation_page(e)
    output = explanation_text(e, colour=False, width=90)
    assert output.startswith("[{+0}] [+1] 2 3\n")
    assert "Range of the probability. Probability of 'class 1' after deleting whichever instances." in output
    assert "  at most 1 instance 0." in output
    assert "  instance 0 +0.750  instance 1 +0.500\n" in output


def test_nothing_flips_in_words():
    shown = sections.formal_sets(record([(0.0, 0.0, 3.0, 0.0)]))[1]
    assert shown.sentences == ("There is none: no deletion that leaves an instance changes the label.",)


def test_a_head_that_is_not_linear_shows_attention():
    e = record([(float(t), 0.0, 1.0, 0.0) for t in range(15)], linear=False)
    page = Reader(explanation_page(e))
    assert "Nothing is proved of single instances" in page.text["kt-proof"][0]
    assert "On the instances, largest first; it adds up to 1." in page.everything
    assert "Sufficient" not in page.everything
    assert sections.formal_sets(e) == []
    assert sections.totals(e) == {}
    output = explanation_text(e, colour=True, width=200)
    first, *_ = e.instances[::-1]
    assert f"  instance 14 {wording.figure(first.attention)}  instance 13 " in output
    assert "... and 3 more" in output


@pytest.mark.parametrize("longest", range(1, 9))
def test_a_long_bag_is_cut_with_a_note(monkeypatch, longest):
    for place in ("pieces", "html", "terminal"):
        monkeypatch.setattr(f"keytokens.explain.{place}.LONGEST_TEXT", longest)
    e = record([(0.0, 0.0, 1.0, 0.0)] * 12)
    text = " ".join(map(str, range(12)))
    page = Reader(explanation_page(e))
    assert page.text["kt-text"] == [text[:longest], text[longest:]]
    output = without_brackets(explanation_text(e, colour=False, width=80))
    assert output.startswith(f"{text[:longest]}\n[... and {len(text) - longest} more characters")


def test_from_the_estimator_to_file_and_notebook(tmp_path):
    rng = np.random.RandomState(0)
    X, y = rng.standard_normal((20, 3, 2)), np.arange(20) % 2
    X[y == 1, 0] += 3
    e = BagClassifier().fit(X, y).explain(X[1])
    page = e.to_html(tmp_path / "bag.html")
    assert (tmp_path / "bag.html").read_text("utf-8") == page
    assert e._repr_html_() == explanation_fragment(e)
    assert e.certificate.said.keep in Reader(e._repr_html_()).everything
    stream = io.StringIO()
    json.dump(e.to_dict(), stream, allow_nan=False)
    assert json.loads(stream.getvalue()) == e.to_dict()
