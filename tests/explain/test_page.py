"""Pages: nothing in a text can become markup, nothing is lost, nothing is fetched."""

import base64
import hashlib
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keytokens.explain import Explanation, KeyToken, pieces, sections
from keytokens.explain import format as wording
from keytokens.explain.html import LEVELS, css, explanation_fragment, explanation_page, key_tokens_fragment
from keytokens.explain.terminal import explanation_text

from .reading import Reader, hostile, sources, texts

EVIL = "<script>alert('x')</script>\x1b[31m\ud800\"&"


@given(source=sources, text=texts)
def test_visible_text_is_the_text(models, source, text):
    e = models[source].explain(text)
    for render in (explanation_page, explanation_fragment):
        page = Reader(render(e))
        assert page.text["kt-text"] == [wording.broken(wording.clean(text))]
        said = page.text["kt-proof"] + page.text.get("kt-limit kt-soft", [])
        assert "".join(said).replace(" ", "") == wording.clean(e.certificate.sentence).replace(" ", "")


@given(names=st.lists(hostile | st.just(EVIL), min_size=3, max_size=3))
def test_tokens_cannot_inject(models, names):
    e = models["two, no sink"].explain("dull film great")
    spelled = [f"{name}{i}" for i, name in enumerate((names * 9)[: len(e.names)])]
    page = Reader(explanation_page(Explanation(replace(e.documents, names=spelled))))
    shown = " ".join(page.titles)
    assert all(wording.one_line(name) in shown for name in spelled)


@given(tag=st.sampled_from(["<b>", "<img src=x onerror=alert(1)>", "<!-- x -->", "</div>", "&", '">']))
def test_markup_inside_a_token_is_text(models, tag):
    """Two words with a tag between them are one token: its stretch of text holds the tag."""
    text = f"a{tag}great {tag} film"
    e = models["two"].explain(text)
    assert any(tag in text[use.start : use.end] for use in e.tokens)
    assert Reader(explanation_page(e)).text["kt-text"] == [text]


@given(source=sources, text=texts)
def test_page_is_text_without_controls(models, source, text):
    page = explanation_page(models[source].explain(text))
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]", page)
    page.encode("utf-8")


def test_page_fetches_nothing_and_runs_nothing(models):
    page = explanation_page(models["three"].explain("a great film, dull plot"))
    for word in ("url(", "@import", "http:", "https:", "src=", "href=", "<script", "<link", "style=", "onload"):
        assert word not in page
    assert 'lang="en"' in page
    assert '<meta charset="utf-8">' in page


def test_policy_allows_the_style_and_nothing_else(models):
    page = explanation_page(models["two"].explain("great"))
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    style = re.search("<style>(.*?)</style>", page, re.DOTALL)
    assert policy is not None
    assert style is not None
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert policy[1] == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def test_styles_of_a_fragment_stay_inside():
    rules = re.sub(r"/\*.*?\*/|@media[^{]*\{", "", css(), flags=re.DOTALL)
    selectors = [part.strip() for rule in re.findall(r"([^{}]+)\{", rules) for part in rule.split(",")]
    assert selectors
    assert all(".keytokens" in selector for selector in selectors)
    shades = {f".kt-{side}{level}" for side in "pn" for level in range(1, LEVELS + 1)}
    assert shades == set(re.findall(r"\.kt-[pn]\d+", css()))


@pytest.mark.parametrize(
    ("source", "text", "shown"),
    [("integers", "weird", "7"), ("booleans", "great", "True"), ("two", "dull", "bad"), ("three", "odd", "odd")],
)
def test_label_stands_alone(models, source, text, shown):
    page = Reader(explanation_page(models[source].explain(text)))
    assert page.text["kt-label"] == [f"{shown} {page.text['kt-chance'][0]}"]
    assert all(wording.label_name(label) in page.text["kt-classes"][0] for label in models[source].classes_.tolist())


@pytest.mark.parametrize("source", ["two", "two, no sink", "three", "three, no sink"])
@pytest.mark.parametrize("text", ["great film, dull plot", "dull dull dull film", "odd and great"])
def test_sides_are_named_and_add_up_to_the_lead(models, source, text):
    e = models[source].explain(text)
    assert pieces.sides(e) == (e.label, e.rival)
    scores = dict(zip(e.prediction.classes, e.prediction.scores, strict=True))
    lead = scores[e.label] - scores[e.rival]
    assert sum(sections.totals(e).values()) + e.sink_against() == pytest.approx(lead)
    (shown,) = sections.strongest(e)
    assert f"They add up to {wording.signed(lead)}, the lead of {e.label}." in shown.sentences[0]
    page = Reader(explanation_page(e))
    assert f"blue speaks for {e.label}orange, slanted speaks for {e.rival}" in page.everything
    assert all(f"{use.text}: " in " ".join(page.titles) for use in e.tokens)


def test_text_without_a_known_token(models):
    for source in ("two", "two, no sink"):
        e = models[source].explain("zzz")
        page = Reader(explanation_page(e))
        assert page.text["kt-text"] == ["zzz"]
        assert "Nothing in this text decides" in page.text["kt-proof"][0]


@pytest.mark.parametrize("tag", ["<br />", "<br>", "<BR/>"])
def test_raw_breaks_are_breaks(models, tag):
    e = models["two"].explain(f"a great{tag}film")
    assert Reader(explanation_page(e)).text["kt-text"] == ["a great\nfilm"]
    shown = explanation_text(e, colour=False, width=80)
    assert tag not in shown
    assert e.text == f"a great{tag}film"


def test_empty_text_says_so(models):
    assert "The text is empty." in Reader(explanation_page(models["two"].explain(""))).everything


def test_long_text_is_cut_with_a_note(models, monkeypatch):
    monkeypatch.setattr("keytokens.explain.pieces.LONGEST_TEXT", 10)
    monkeypatch.setattr("keytokens.explain.html.LONGEST_TEXT", 10)
    page = Reader(explanation_page(models["two"].explain("great film and a dull plot")))
    assert page.text["kt-text"] == ["great film", " and a dull plot"]
    assert "Only the first 10 characters are highlighted." in page.everything
    assert "The other 16 characters" in page.everything


def test_sets_of_words_are_left_out_of_long_texts(models, monkeypatch):
    monkeypatch.setattr(sections, "MOST_WORDS", 3)
    shown = sections.formal_sets(models["two"].explain("great film and a dull plot"))
    assert [one.title for one in shown] == ["Sufficient tokens", "Flip tokens", "Sufficient words", "Flip words"]
    assert "more than 3 words" in shown[2].sentences[0]
    assert not shown[2].rows


@given(source=sources, text=texts)
def test_pieces_tile_the_text(models, source, text):
    e = models[source].explain(text)
    found = pieces.pieces(e)
    assert "".join(text[piece.start : piece.end] for piece in found) == text
    ink = sum(piece.ink * (piece.end - piece.start) for piece in found)
    assert ink == pytest.approx(e.contributions_against().sum(), abs=1e-9)
    kept = {i for item in e.named[0] for start, end in item.spans for i in range(start, end)}
    assert kept == {i for piece in found if piece.sufficient for i in range(piece.start, piece.end)}
    gone = {i for item in e.named[1] for start, end in item.spans for i in range(start, end)}
    assert gone == {i for piece in found if piece.flip for i in range(piece.start, piece.end)}


@pytest.mark.parametrize(
    ("status", "size", "lower", "items", "says"),
    [
        ("minimum", 2, 2, 2, "2 of 9 words, proved to be the fewest."),
        ("minimum", 0, 0, 0, "Empty: the label is fixed without any word."),
        ("subset-minimal", 2, 1, 2, "2 of 9 words; none can be left out, and fewer than 1 never do."),
        ("bounds", 2, 1, 2, "2 of 9 words, verified; the fewest are at least 1."),
        ("bounds", 0, 4, 0, "None was found; if there is one, it has at least 4 words."),
    ],
)
def test_status_in_words(models, status, size, lower, items, says):
    # the classes are balanced, so that rounding decides which of the two is the label of no words at all
    e = next(e for e in map(models["two"].explain, ("dull film", "great film")) if e.sufficient.size)
    facts = {"size": size, "lower": lower, "status": status}
    found = replace(e.sufficient, items=tuple(e.sufficient) * items, unit="words", **facts)
    assert sections.size_of(found, 9) == says
    tight = replace(found, tight=True)
    assert sections.size_of(tight, 9).startswith(says + " To rounding")


@pytest.mark.parametrize("sink", [True, False])
def test_no_flip_is_said(models, sink):
    model = models["two" if sink else "two, no sink"]
    texts = ["great great great", "great"]
    none = next((e for e in map(model.explain, texts) if e.flip.status == "none"), None)
    if none is None:
        assert sink  # the intercept alone may flip it
        return
    shown = sections.formal_sets(none)[1]
    (says,) = shown.sentences
    assert says.startswith("There is none: no deletion")
    assert ("leaves a known token" in says) is not sink


def test_bounds_are_rounded_outwards():
    assert wording.bounds(0.49999, 0.50001) == "0.499 to 0.501"


def test_long_tables_unfold_and_end(models, monkeypatch):
    monkeypatch.setattr("keytokens.explain.sections._MANY", 4)
    monkeypatch.setattr("keytokens.explain.html.MOST_ROWS", 6)
    keys = {"good": [KeyToken(f"token{i}", 1.0 / (i + 1), 0.1, 2.0, {"good": 3}) for i in range(12)]}
    page = Reader(key_tokens_fragment(keys))
    assert "8 more" in page.everything
    assert [f"token{i}" in page.everything for i in (0, 5, 6)] == [True, True, False]
    assert "And 6 more." in page.everything
