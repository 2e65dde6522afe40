"""Every view in a real browser, used as a person would; texts that try to break out; exports; manners."""

from __future__ import annotations

import csv
import io
import re
import struct
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from keytokens import MASK, KeyTokenClassifier
from keytokens.app.explorer import explorer_page
from keytokens.app.explorer.model import packed_model
from keytokens.explain.format import clean
from keytokens.text import spans

from ...corpus import topics
from .browser import Visit, address_of
from .corpus import HOSTILE, HOSTILE_LABELS, hostile, many, variant

BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
VIEWS = ["summary", "errors", "words", "try"]
NAME_OF_FOCUS = """() => { const one = document.activeElement;
    return (one.getAttribute('aria-label') || one.textContent || one.labels?.[0]?.textContent || '').trim(); }"""
NAMELESS = """() => [...document.querySelectorAll(
    'button, a, input, select, textarea, canvas, [role=listbox], [role=group], [role=img]')].filter((one) =>
    !(one.getAttribute('aria-label') || one.textContent.trim() || one.labels?.length)).map((one) => one.className)"""
TITLE = '<script>window.owned=9</script> \'a "name" \u202e.csv'


def broken(text: str) -> str:
    return BREAK.sub("\n", text)


@pytest.fixture(scope="module")
def pages(tmp_path_factory) -> dict[str, Path]:
    """Reports by name."""
    folder = tmp_path_factory.mktemp("pages")
    clf, texts, labels = variant("two classes")
    clf.report(folder / "plain.html", texts, labels, title="plain")
    clf, texts, labels = hostile()
    clf.report(folder / "hostile.html", texts, labels, title=TITLE)
    clf, texts, labels = variant("four classes")
    clf.report(folder / "topics.html", texts, labels, title="topics")
    long = ["great " * 30_000 + "dull end", "x" * 1_000_000 + " great", "great dull " * 700]
    clf, _, _ = variant("two classes")
    clf.report(folder / "long.html", long, ["pos"] * 3, title="long")
    clf, texts, labels = many()
    clf.report(folder / "many.html", texts, labels, title="twenty classes", max_bytes=400_000)
    return {page.stem: page for page in folder.glob("*.html")}


@pytest.fixture
def visit(browser, pages):
    """Opens a report; when the test is over, nothing may have gone wrong in it."""
    opened: list[Visit] = []

    def go(name: str, at: str = "", **options) -> Visit:
        opened.append(Visit(browser, address_of(pages[name]) + at, **options))
        return opened[-1]

    yield go
    for one in opened:
        one.check()
        one.context.close()


# --- the four views


def test_summary(visit):
    clf, texts, labels = variant("two classes")
    one = visit("plain")
    assert one.text("#title") == "plain"
    predicted, truth = clf.predict(texts), np.array(labels)
    right = int(np.sum(predicted == truth))
    assert one.text("h1").startswith(f"Right on {right} of {len(texts)} texts")
    assert one.text(".badge") == "other texts than those of the training"
    cells = one.run("[...document.querySelectorAll('.matrix td')].slice(1).map((cell) => Number(cell.textContent))")
    counted = [sum((truth == t) & (predicted == p)) for t in clf.classes_ for p in clf.classes_]
    assert cells == counted
    titles = one.run("[...document.querySelectorAll('#view-summary h2')].map((title) => title.textContent)")
    assert titles == [
        *("Where it fails", "Given against said", "What it gets wrong", "What decides"),
        *("Can its probabilities be trusted?", "About this model"),
    ]
    # the classes, weakest first, each number a link to its texts
    recall = {label: np.mean(predicted[truth == label] == label) for label in clf.classes_}
    rows = one.page.locator(".classes-table tbody th").all_inner_texts()
    assert rows == sorted(recall, key=recall.__getitem__)
    # five surest mistakes, and what decides
    sure = clf.predict_proba(texts).max(axis=1)
    wrong = [row for row in np.argsort(-sure, kind="stable").tolist() if predicted[row] != truth[row]]
    assert len(one.page.locator(".mistakes li").all()) == min(5, len(wrong))
    assert one.page.get_attribute(".mistakes a >> nth=0", "href") == f"#errors?show=wrong&text={wrong[0] + 1}"
    strongest = one.page.locator(".multiples section").all()
    for section, found in zip(strongest, clf.key_tokens(8).values(), strict=True):
        assert section.locator("li").all_inner_texts() == [key.token for key in found]
    # what is folded away
    for summary in one.page.locator("#view-summary summary").all():
        summary.click()
    one.page.click("#view-summary summary:has-text('The numbers') >> nth=1")
    steps = one.run(
        "[...document.querySelectorAll('#view-summary figure:last-child tbody tr')].map((r) => r.innerText)"
    )
    one.page.wait_for_selector("#view-summary details details tbody")
    steps = one.page.locator("#view-summary details details tbody tr").all_inner_texts()
    assert [row.split("\t")[0] for row in steps] == [str(step) for step in range(len(clf.history_))]
    assert float(steps[-1].split("\t")[1]) == pytest.approx(clf.history_[-1], rel=1e-6)


def test_a_number_leads_to_its_texts(visit):
    clf, texts, labels = variant("two classes")
    one = visit("plain")
    first, second = clf.classes_
    mixed = int(np.sum((np.array(labels) == second) & (clf.predict(texts) == first)))
    one.page.click(f'.matrix a[aria-label^="given {second}, said {first}"]')
    assert int(one.text("#view-errors [role=status]").split()[0]) == mixed
    assert f"given={second}" in one.page.url
    assert f"said={first}" in one.page.url
    one.page.go_back()
    one.page.wait_for_selector("#view-summary h1", state="visible")
    one.page.click(".chart a >> nth=-1")
    sure = clf.predict_proba(texts).max(axis=1)
    assert int(one.text("#view-errors [role=status]").split()[0]) == np.sum(sure >= 0.9)


def test_what_a_score_is_of_is_said_first(visit):
    """The same page with other kinds of texts."""
    one = visit("plain")
    for kind, says, badge in (
        ("held-out", "Right on 9 of 10 texts it had never seen: 90", "held out"),
        ("out-of-fold", "Right on 9 of 10 texts unseen in training: 90", "out of fold"),
        ("not known", "Right on 9 of 10 texts: 90", "not known whether it was trained on them"),
        ("seen in training", "No score on texts it had never seen", "seen in training"),
        (None, "No score yet", None),
    ):
        one.run(
            """(kind) => { const { views, overview } = keytokens; const n = kind ? 10 : 0;
            Object.assign(overview, { kind, n, right: 9, accuracy: 0.9 });
            const room = document.getElementById("view-summary"); new views.summary.constructor(room, keytokens); }""",
            kind,
        )
        assert one.text("h1").replace("\n", " ").startswith(says)
        assert badge is None or badge in one.text(".badge")
        assert one.page.is_visible(".classes-table") == (kind not in (None, "seen in training"))


def test_words(visit):
    clf, texts, _ = variant("two classes")
    one = visit("plain")
    one.go("words")
    assert f"{len(clf.vocabulary_)} tokens" in one.text("#view-words .side p")
    listed = one.run("keytokens.views.words.current.slice(0, 30).map((s) => keytokens.model.tokens[s])")
    decisive = sorted((k for found in clf.key_tokens(40).values() for k in found), key=lambda k: -k.contribution)
    assert listed == [found.token for found in decisive[:30]]
    # search, and choose from the list with the keyboard
    one.page.fill("#view-words input", "great")
    shown = one.run("keytokens.views.words.current.map((s) => keytokens.model.tokens[s])")
    assert sorted(shown) == sorted(token for token in clf.vocabulary_.tokens if "great" in token)
    one.page.focus("#view-words [role=listbox]")
    one.page.keyboard.press("ArrowDown")
    column = clf.vocabulary_.tokens.index(shown[0])
    detail = one.text("#view-words .card")
    assert detail.startswith(("■", "▲"))
    for k, label in enumerate(clf.classes_):
        assert f"{label}\t" in detail
        assert f"\t{round(float(clf.class_counts_[k, column]))}" in detail
    with_it = [text for text in texts if shown[0] in [use.text for use in clf.explain(text).tokens]]
    assert one.run("document.querySelectorAll('#view-words .examples li').length") == min(4, len(with_it))
    # the map: point at a token, choose it, move on with the arrow keys, zoom
    one.page.fill("#view-words input", "")
    one.page.wait_for_timeout(100)
    token = "superb"
    s = clf.vocabulary_.tokens.index(token)
    place = one.run(
        """(s) => { const { map } = keytokens.views.words; const box = map.canvas.getBoundingClientRect();
        return [box.left + map.screenX(map.points.x[s]), box.top + map.screenY(map.points.y[s])]; }""",
        s,
    )
    one.page.mouse.move(*place)
    one.page.wait_for_selector(".tip:not([hidden])")
    assert token in one.text(".tip")
    one.page.mouse.click(*place)
    assert one.run("keytokens.views.words.picked") == s
    assert one.page.url.endswith("#words?token=superb")
    one.page.focus("canvas")
    one.page.keyboard.press("ArrowLeft")
    left = one.run("keytokens.views.words.picked")
    values = clf._theta.B[0] + clf._theta.c[0]
    assert left != s
    assert values[left] < values[s]
    before = one.run("keytokens.views.words.map.view")
    one.page.keyboard.press("+")
    after = one.run("keytokens.views.words.map.view")
    assert after["right"] - after["left"] == pytest.approx((before["right"] - before["left"]) / 1.5)
    one.page.keyboard.press("0")
    assert one.run("keytokens.views.words.map.view") == one.run("keytokens.views.words.map.whole")
    one.page.select_option("#view-words select >> nth=1", "root")
    assert one.run("(s) => keytokens.views.words.map.points.x[s]", s) == pytest.approx(np.sqrt(values[s]))
    # an example leads to its text
    one.page.fill("#view-words input", "great")
    one.page.focus("#view-words [role=listbox]")
    one.page.keyboard.press("ArrowDown")
    one.page.click("#view-words .examples a >> nth=0")
    one.page.wait_for_selector("#view-errors .proof", state="visible")


def test_errors(visit):
    clf, texts, labels = variant("two classes")
    one = visit("plain")
    one.go("errors")
    P = clf.predict_proba(texts)
    predicted, sure = clf.predict(texts), P.max(axis=1)
    truth = np.array(labels)

    def count() -> int:
        return int(one.text("#view-errors [role=status]").split()[0])

    def choose(label: str, value: str) -> None:
        one.page.select_option(f"#view-errors label:has-text('{label}') select", value)

    # it opens on the surest mistake
    assert count() == sum(predicted != truth)
    worst = max(np.flatnonzero(predicted != truth), key=lambda row: sure[row])
    assert one.text("#view-errors .detail-head b") == f"Text {worst + 1}"
    assert one.text("#view-errors .wrong >> nth=-1") == f"✗ wrong: given {truth[worst]}"
    choose("Show", "unsure")
    assert count() == sum(sure < 0.75)
    choose("Show", "all")
    assert count() == len(texts)
    choose("It said", clf.classes_[0])
    assert count() == sum(predicted == clf.classes_[0])
    choose("Given label", clf.classes_[1])
    assert count() == sum((predicted == clf.classes_[0]) & (truth == clf.classes_[1]))
    one.page.click("text=Clear the filters")
    one.page.fill("#view-errors input", "superb")
    assert count() == sum("superb" in text.lower() for text in texts)
    one.page.fill("#view-errors input", "not one text says this")
    assert "No text of this page fits" in one.text("#view-errors .note")
    one.page.fill("#view-errors input", "")
    choose("Sort", "least sure first")
    order = np.argsort(sure, kind="stable")
    one.page.focus("#view-errors [role=listbox]")
    one.page.keyboard.press("Home")
    for row in order[:6].tolist():
        e = clf.explain(texts[row])
        assert one.text("#view-errors .detail-head b") == f"Text {row + 1}"
        assert e.certificate.sentence in one.text("#view-errors .proof")
        assert one.text("#view-errors .label bdi") == e.label
        assert percent(e.probability) in one.text("#view-errors .classes")
        shown = one.run("document.querySelector('#view-errors .text').textContent")
        assert shown == broken(clean(texts[row]))
        one.page.keyboard.press("ArrowDown")
    assert one.run("document.activeElement.getAttribute('aria-activedescendant')") == "document-6"
    assert one.page.get_attribute("#document-6", "aria-selected") == "true"
    one.page.keyboard.press("End")
    assert one.text("#view-errors .detail-head b") == f"Text {order[-1] + 1}"
    # the address holds all of it
    address = one.page.url
    assert "sort=least+sure+first" in address
    again = visit("plain", at=address[address.index("#") :])
    assert again.text("#view-errors .detail-head b") == f"Text {order[-1] + 1}"
    one.page.click("text=Open in Try it")
    assert one.page.input_value("textarea") == texts[order[-1]]


def test_an_address_that_fits_nothing_says_so(visit):
    one = visit("plain", at="#errors?given=nobody")
    assert "No text of this page fits given nobody" in one.text("#view-errors .note")


def test_on_a_narrow_screen_a_text_opens_over_all_of_it(visit):
    one = visit("plain", at="#errors", viewport={"width": 390, "height": 800})
    assert not one.page.is_visible("#view-errors .proof")
    one.page.click("#view-errors [role=option] >> nth=0")
    box = one.page.locator("#view-errors .detail").bounding_box()
    assert (box["x"], box["y"], box["width"], box["height"]) == (0, 0, 390, 800)
    one.page.keyboard.press("Escape")
    assert not one.page.is_visible("#view-errors .proof")
    assert one.run("document.activeElement.getAttribute('role')") == "listbox"


def test_try_it(visit):
    clf, _, _ = variant("two classes")
    one = visit("plain")
    one.go("try")
    text = "the plot was dull but the music superb"
    one.page.fill("textarea", "")
    one.page.type("textarea", text)
    one.page.wait_for_function("(text) => keytokens.views.try.e.text === text", arg=text)
    e = clf.explain(text)
    assert e.certificate.sentence in one.text("#view-try .proof")
    assert percent(e.probability) in one.text("#view-try .classes")
    assert "of 8 words known" in one.text("#view-try .foot")
    # click a word: it is masked, as Python's MASK is
    one.page.click("#view-try .w >> text='superb'")
    masked = clf.explain(text.replace("superb", MASK))
    assert masked.certificate.sentence in one.text("#view-try .proof")
    assert "1 masked" in one.text("#view-try .foot")
    assert f"it was {'' if masked.label == e.label else e.label + ' '}" in one.text("#view-try .answer")
    assert one.run("document.activeElement.getAttribute('aria-pressed')") == "true"
    # the bars: all but the masked token, on the scale of the text without masks
    leads = {name.strip(): figure for name, figure in BARS(one)}
    superb = next(use.contribution for use in e.tokens if use.text == "superb")
    sign = 1 if e.label == clf.classes_[1] else -1
    assert leads["superb"].split(" → ") == [two(sign * superb), "0.00"]
    # the keyboard does the same: five words back, mask, and undo
    for _ in range(4):
        one.page.keyboard.press("ArrowLeft")
    assert one.run("document.activeElement.textContent") == "dull"
    assert "dull" in one.text("#view-try .inspector")
    one.page.keyboard.press("Enter")
    both = clf.explain(text.replace("superb", MASK).replace("dull", MASK))
    assert both.certificate.sentence in one.text("#view-try .proof")
    one.page.click("text=Undo")
    assert masked.certificate.sentence in one.text("#view-try .proof")
    # masks stay on their words when something is typed before them
    one.page.evaluate("document.querySelector('textarea').setSelectionRange(0, 0)")
    one.page.focus("textarea")
    one.page.keyboard.type("well ")
    longer = f"well {text}"
    one.page.wait_for_function("(text) => keytokens.views.try.e.text === text", arg=longer)
    assert clf.explain(longer.replace("superb", MASK)).certificate.sentence in one.text("#view-try .proof")
    # text and masks are in the address
    again = visit("plain", at=one.page.url[one.page.url.index("#") :])
    assert again.page.input_value("textarea") == longer
    assert again.text("#view-try .proof") == one.text("#view-try .proof")
    one.page.click("text=Undo")
    assert clf.explain(longer).certificate.sentence in one.text("#view-try .proof")
    # the fewest words that change the label, and what happens when they are masked
    one.page.click("text=/^Mask th(is|ese)/")
    flipped = clf.explain(longer).flip_words
    assert f"{flipped.size} masked" in one.text("#view-try .foot")
    assert one.text("#view-try .label bdi") == flipped.label_after
    one.page.click("text=Undo")
    one.page.click("text=Mask all others")
    assert one.text("#view-try .label bdi") == clf.explain(longer).label
    one.page.click("text=Undo")
    # what unfolds is Python's too
    one.page.click("#view-try summary")
    rows = [row.split("\t") for row in one.page.locator("#view-try details table:last-child tr").all_inner_texts()]
    deleting = clf.explain(longer).certificate.deleting
    for (name, low, high), (m, (least, greatest)) in zip(rows[1:], deleting.items(), strict=False):
        assert name == f"at most {m} token{'s' * (m > 1)}"
        assert float(low) == pytest.approx(least, abs=1.01e-3)
        assert float(high) == pytest.approx(greatest, abs=1.01e-3)


def BARS(one: Visit) -> list[list[str]]:
    return [row.split("\n") for row in one.page.locator("#view-try .leads li").all_inner_texts()]


def percent(p: float) -> str:
    ends = {p > 0.999: "> 99.9", p < 0.001: "< 0.1"}
    return f"{ends.get(True, f'{100 * p:.{int(p > 0.99 or p < 0.01)}f}')}\u00a0%"


def two(x: float) -> str:
    return f"{x:+.2f}".replace("-", "\u2212")


def test_a_text_without_known_words_says_what_decides(visit):
    one = visit("plain", at="#try?text=xyzzy+quux")
    clf, _, _ = variant("two classes")
    said = clf.predict(["xyzzy quux"])[0]
    why = f"none of its 2 words is known, the model falls back on how common '{said}' is."
    assert f"Nothing in this text decides: {why}" in one.text("#view-try .proof")


def test_a_break_is_shown_as_one(visit):
    one = visit("plain", at="#try?text=great%3Cbr+%2F%3E%3Cbr%3Edull")
    assert one.run("document.querySelector('#view-try .text').textContent") == "great\n\ndull"


def test_four_classes(visit):
    clf, texts, _ = variant("four classes")
    one = visit("topics")
    for view in VIEWS:
        one.go(view)
    one.go("words")
    one.page.select_option("#view-words label:has-text('Value for') select", "2")
    s = clf.vocabulary_.tokens.index("vote")
    x = one.run("(s) => keytokens.views.words.map.points.x[s]", s)
    assert x == pytest.approx(clf._theta.B[2, s] + clf._theta.c[2])
    one.page.select_option("#view-words label:has-text('Speaks for') select", "2")
    best = (clf._theta.B + clf._theta.c[:, None]).argmax(axis=0) == 2
    assert one.run("keytokens.views.words.current.length") == best.sum()
    one.go("try")
    one.page.fill("textarea", texts[0])
    one.page.wait_for_function("(text) => keytokens.views.try.e.text === text", arg=texts[0])
    e = clf.explain(texts[0])
    assert e.certificate.sentence in one.text("#view-try .proof")
    # colour and bars are for the label against a rival, which can be chosen
    others = sorted((label for label in clf.classes_ if label != e.label), key=e.probabilities.get)
    rival = clf.classes_.tolist().index(others[0])
    one.page.select_option("#view-try .legend select", str(rival))
    assert f"rival={others[0]}" in one.page.url
    label = clf.classes_.tolist().index(e.label)
    sums = one.run(
        """([r, k]) => { const { e } = keytokens.views.try; const leads = e.against(r);
        return [leads.reduce((sum, x) => sum + x, e.lean(r)), e.scores[k] - e.scores[r]]; }""",
        [rival, label],
    )
    assert sums[0] == pytest.approx(sums[1], abs=1e-9)
    flipped = e.flip.label_after
    assert one.run("keytokens.model.classes[keytokens.views.try.e.rival].value") == flipped


# --- texts, labels and names that try to break out


def test_hostile_texts_are_shown_and_never_executed(visit):
    clf, texts, _ = hostile()
    one = visit("hostile")
    assert one.run("document.querySelector('#title').textContent") == TITLE
    assert one.page.title().startswith("<script>")
    assert "<u>a label that the mo" in one.text("#view-summary")
    for name in HOSTILE_LABELS:
        assert name[:12] in one.run("document.querySelector('#view-summary').textContent")
    one.go("words")
    assert "<img src=x" in one.run("document.querySelector('#view-words .legend').textContent")
    one.go("errors")
    for row, text in enumerate(texts):
        if text not in HOSTILE:
            continue
        one.run("(row) => keytokens.views.errors.reveal(keytokens.documents.rows[row])", row)
        shown = one.run("document.querySelector('#view-errors .text').textContent")
        assert shown == broken(clean(text))
        proof = one.run("document.querySelector('#view-errors .proof').textContent")
        # of words that vote alike to the last bit each language may take another one
        assert clf.explain(text).certificate.said.because in proof
    one.go("try")
    for text in HOSTILE:
        one.run("(text) => keytokens.views.try.set(text)", text)
        assert one.run("document.querySelectorAll('#view-try .text *:not(div):not(span)').length") == 0
    one.run("(text) => keytokens.views.try.set(text)", HOSTILE[8])
    assert one.run("getComputedStyle(document.querySelector('#view-try .block')).direction") == "rtl"


def test_very_long_texts(visit):
    """Only what is looked at is marked; a word of a megabyte is cut for the eye, not for the model."""
    one = visit("long")
    one.go("errors")
    for row, words in ((0, 30_002), (1, 2), (2, 1_400)):
        one.run("(row) => keytokens.views.errors.reveal(keytokens.documents.rows[row])", row)
        one.page.wait_for_selector("#view-errors .w")
        assert one.run("keytokens.views.errors.panel.e.words.length") == words
        assert one.run("document.querySelectorAll('#view-errors .w').length") <= 4_000
    one.run("keytokens.views.errors.reveal(keytokens.documents.rows[0])")
    last = one.page.locator("#view-errors .block").last
    last.scroll_into_view_if_needed()
    one.page.wait_for_function("() => document.querySelector('#view-errors .block:last-child .w') !== null")
    assert one.run("document.querySelector('#view-errors .block:last-child').textContent.endsWith('dull end')")
    one.run("keytokens.views.errors.panel.view.focus(30001)")
    assert one.run("document.activeElement.textContent") == "end"
    assert one.run("document.querySelectorAll('#view-errors .w').length") <= 6_000


# --- exports


def saved(one: Visit, button: str) -> bytes:
    with one.page.expect_download() as found:
        one.page.click(button)
    return Path(found.value.path()).read_bytes()


def test_exports(visit, browser, tmp_path):
    clf, _, _ = hostile()
    one = visit("hostile")
    one.go("try")
    text = f"{HOSTILE[0]} {HOSTILE[1]} dull\n{HOSTILE[4]} {HOSTILE[5]}"
    one.run("(text) => keytokens.views.try.set(text)", text)
    e = clf.explain(text)
    group = "#view-try .exports button:has-text"

    drawing = ElementTree.fromstring(saved(one, f"{group}('SVG')"))
    assert {part.tag.split("}")[1] for part in drawing.iter()} == {"svg", "title", "rect", "line", "text"}
    assert not [name for part in drawing.iter() for name in part.attrib if name.startswith("on") or "href" in name]
    written = "".join(part.text or "" for part in drawing.iter() if part.tag.endswith("text"))
    assert "<script>window.owned" in written
    assert "".join(e.certificate.sentence.split()[:12]) in written.replace(" ", "")

    picture = saved(one, f"{group}('PNG')")
    assert picture[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", picture[16:24])
    assert width == 2 * int(drawing.get("width"))
    assert height == 2 * int(drawing.get("height"))
    assert len(picture) > 10_000

    (tmp_path / "one.html").write_bytes(saved(one, f"{group}('HTML')"))
    alone = browser.new_context().new_page()
    said: list[str] = []
    alone.on("console", lambda message: said.append(message.text))
    alone.on("request", lambda request: said.append(request.url))
    alone.goto(address_of(tmp_path / "one.html"))
    assert said == [address_of(tmp_path / "one.html")]
    assert alone.inner_text(".proof") == one.text("#view-try .proof")
    assert alone.evaluate("document.scripts.length") == 0
    assert alone.evaluate("getComputedStyle(document.querySelector('.proof')).borderInlineStartWidth") == "3px", (
        "styled"
    )

    one.go("words")
    table = list(csv.DictReader(io.StringIO(saved(one, "text=Save as CSV").decode("utf-8"))))
    assert len(table) == len(clf.vocabulary_)
    ours = {row["token"].lstrip("'"): row for row in table}
    for label, found in clf.key_tokens(10).items():
        for token in found:
            row = ours[token.token]
            assert float(row["contribution"]) == pytest.approx(token.contribution, rel=1e-6)
            assert float(row["value"]) == pytest.approx(token.value, rel=1e-6)
            assert float(row["attention"]) == pytest.approx(token.attention, rel=1e-6)
            assert sum(int(v) for name, v in row.items() if name.startswith("texts_")) == sum(token.counts.values())
            assert row["speaks_for"][:4] == str(label)[:4]


# --- manners


def test_no_view_is_wider_than_the_screen(visit):
    width = 360
    one = visit("hostile", viewport={"width": width, "height": 740})
    for view in VIEWS:
        one.go(view)
        if view in ("errors", "words"):
            one.page.click(f"#view-{view} [role=option] >> nth=0")
        assert one.run("document.documentElement.scrollWidth") <= width, view
        one.page.keyboard.press("Escape")


def test_light_and_dark(visit):
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    light, dark = visit("plain", color_scheme="light"), visit("plain", color_scheme="dark")
    assert light.run(ground) == "rgb(255, 255, 255)"
    assert dark.run(ground) == "rgb(20, 23, 28)"
    for _ in range(2):  # as the system, light, dark
        light.page.click("#theme")
    assert light.page.get_attribute("#theme", "aria-label") == "Theme: dark"
    assert light.run(ground) == "rgb(20, 23, 28)"


def test_the_keyboard_reaches_everything_in_order(visit):
    one = visit("plain", at="#errors")
    reached = []
    for _ in range(30):
        one.page.keyboard.press("Tab")
        reached.append(one.run(NAME_OF_FOCUS))
    named = ["Skip to the content", "Summary", "Errors", "Words", "Try it", "Theme: as the system"]
    after = ["Texts", "Open in Try it", "Mask all others", "HTML", "SVG", "PNG", "In numbers"]
    places = [reached.index(name) for name in [*named, *after]]
    assert places == sorted(places)
    assert one.run("document.querySelectorAll('#view-errors .w[tabindex=\"0\"]').length") == 1, "one stop in the text"


def test_every_control_has_a_name(visit):
    one = visit("topics")
    for view in VIEWS:
        one.go(view)
    assert one.run(NAMELESS) == []
    assert one.run("document.documentElement.lang") == "en"
    ids = one.run("[...document.querySelectorAll('[id]')].map((one) => one.id)")
    assert len(ids) == len(set(ids))
    tree = one.page.locator("body").aria_snapshot()
    for role in ("banner", "navigation", "main", "heading", "link"):
        assert role in tree


SHRUNK = """() => [...document.querySelectorAll("main :not(bdi)")].filter((one) => {
    const look = getComputedStyle(one);
    if (one.closest("svg") || !one.checkVisibility()) return false;
    if (look.overflowX !== "visible" || look.position === "absolute") return false;
    return one.clientWidth > 0 && one.scrollWidth > one.clientWidth + 1; }).map((one) => one.outerHTML.slice(0, 120))"""
OVERLAPS = """() => { const found = [];
    const seen = [...document.querySelectorAll("button, select, input, textarea, a")]
    .filter((one) => one.checkVisibility() && !one.closest(".list, .skip, svg, .hidden-text"))
    .map((one) => [one, one.getBoundingClientRect()]);
    seen.forEach(([one, a], i) => seen.slice(i + 1).forEach(([other, b]) => {
        const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (wide > 1 && high > 1 && !one.contains(other)) found.push(one.outerHTML + other.outerHTML); }));
    return found; }"""


@pytest.mark.parametrize("name", ["plain", "topics", "many"])
def test_every_view_at_every_width_light_and_dark(visit, name):
    """Nothing sideways, nothing cut, no controls that overlap; axe finds nothing serious."""
    one = visit(name)
    for width in (1440, 820, 390):
        one.page.set_viewport_size({"width": width, "height": 900})
        for view in VIEWS:
            one.go(view)
            if view == "errors" and not one.page.is_visible(".detail"):
                one.page.click("[role=option] >> nth=0")
            assert one.run("document.documentElement.scrollWidth") <= width, view
            assert one.run(SHRUNK) == [], (view, width)
            assert one.run(OVERLAPS) == [] or view == "errors", (view, width)
            if (name, width) in (("plain", 1440), ("plain", 390), ("many", 1440)):
                assert one.barriers() == [], (view, width)
                one.page.emulate_media(color_scheme="dark")
                assert one.barriers("color-contrast") == [], (view, width, "dark")
                one.page.emulate_media(color_scheme="light")
            one.page.keyboard.press("Escape")


# --- another source of the same data


def test_the_same_page_from_a_server(browser):
    """What a server has to do: give the page, and the three containers beside it."""
    texts, labels = topics(60)
    clf = KeyTokenClassifier(threads=1).fit(texts, labels)
    answers = {"/": explorer_page("served", source="data/").encode(), "/data/model": packed_model(clf)}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = answers.get(self.path)
            self.send_response(200 if content else 404)
            self.send_header("Content-Type", "text/html" if self.path == "/" else "application/octet-stream")
            self.end_headers()
            self.wfile.write(content or b"")

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        one = Visit(browser, f"http://127.0.0.1:{server.server_port}/")
        for view in VIEWS:
            one.go(view)
        one.page.fill("textarea", texts[0])
        one.page.wait_for_function("(text) => keytokens.views.try.e.text === text", arg=texts[0])
        assert clf.explain(texts[0]).certificate.sentence in one.text("#view-try .proof")
        assert "No score yet" in one.run("document.querySelector('#view-summary h1').textContent")
        absent = [line for line in one.complaints if "404" not in line]
        assert absent == []
        assert {url.rsplit("/", 1)[1] for url in one.requests} <= {"", "model", "overview", "documents", "favicon.ico"}
        one.context.close()
        server.shutdown()


def test_spans_and_words_agree(visit):
    """The page counts UTF-16 units, Python code points: the same letters either way."""
    one = visit("plain")
    for text in HOSTILE:
        if any(0xD800 <= ord(letter) < 0xE000 for letter in text):
            continue
        ours = one.run("(text) => keytokens.explain(text).words.map(({ start, end }) => text.slice(start, end))", text)
        assert ours == [text[i:j] for i, j in spans(text).tolist()]
