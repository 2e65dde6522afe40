"""Every view in a real browser, used as a person would; texts that try to break out; exports; manners."""

from __future__ import annotations

import csv
import io
import struct
import threading
from decimal import ROUND_HALF_UP, Decimal
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
from .corpus import HOSTILE, HOSTILE_LABELS, hostile, variant

VIEWS = ["overview", "vocabulary", "documents", "try"]
CHIPS = """() => [...document.querySelectorAll('#view-documents .set')].map((set) =>
    [...set.querySelectorAll('.chip bdi')].map((chip) => chip.textContent))"""
NAME_OF_FOCUS = """() => { const one = document.activeElement;
    return (one.getAttribute('aria-label') || one.textContent || one.labels?.[0]?.textContent || '').trim(); }"""
NAMELESS = """() => [...document.querySelectorAll(
    'button, a, input, select, textarea, canvas, [role=listbox], [role=group], [role=img]')].filter((one) =>
    !(one.getAttribute('aria-label') || one.textContent.trim() || one.labels?.length)).map((one) => one.className)"""
TITLE = '<script>window.owned=9</script> \'a "name" \u202e.csv'


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


def test_overview(visit):
    clf, texts, labels = variant("two classes")
    one = visit("plain")
    assert one.text("h1") == "plain"
    right = int(np.sum(clf.predict(texts) == np.array(labels)))
    shown = one.text("#view-overview .cards")
    percent = (Decimal(100 * right) / len(texts)).quantize(Decimal("0.01"), ROUND_HALF_UP)
    assert f"{percent} %" in shown
    assert f"{right} of {len(texts)} texts right" in shown
    cells = one.run("[...document.querySelectorAll('.matrix .cell')].map((cell) => Number(cell.textContent))")
    predicted = clf.predict(texts)
    counted = [sum((np.array(labels) == t) & (predicted == p)) for t in clf.classes_ for p in clf.classes_]
    assert cells == counted
    titles = one.run("[...document.querySelectorAll('#view-overview figure h3')].map((title) => title.textContent)")
    assert titles == ["Confusion matrix", "Calibration curve", "Probabilities", "Training curve"]
    assert one.run("document.querySelectorAll('#view-overview svg[role=img][aria-label]').length") == 3
    for summary in one.page.locator("#view-overview summary").all():
        summary.click()
    steps = one.run(
        "[...document.querySelectorAll('#view-overview figure:last-child tbody tr')].map((r) => r.innerText)"
    )
    assert [row.split("\t")[0] for row in steps] == [str(step) for step in range(len(clf.history_))]
    assert float(steps[-1].split("\t")[1]) == pytest.approx(clf.history_[-1], rel=1e-6)


def test_vocabulary(visit):
    clf, texts, _ = variant("two classes")
    one = visit("plain")
    one.go("vocabulary")
    assert f"{len(clf.vocabulary_)} tokens" in one.text("#view-vocabulary .side p")
    listed = one.run("keytokens.views.vocabulary.current.slice(0, 30).map((s) => keytokens.model.tokens[s])")
    decisive = sorted((k for found in clf.key_tokens(40).values() for k in found), key=lambda k: -k.contribution)
    assert listed == [found.token for found in decisive[:30]]
    # search, and choose from the list with the keyboard
    one.page.fill("#view-vocabulary input", "great")
    shown = one.run("keytokens.views.vocabulary.current.map((s) => keytokens.model.tokens[s])")
    assert sorted(shown) == sorted(token for token in clf.vocabulary_.tokens if "great" in token)
    one.page.focus("#view-vocabulary [role=listbox]")
    one.page.keyboard.press("ArrowDown")
    column = clf.vocabulary_.tokens.index(shown[0])
    detail = one.text("#view-vocabulary .card")
    assert detail.startswith(("■", "▲"))
    for k, label in enumerate(clf.classes_):
        assert f"{label}\t" in detail
        assert f"\t{round(float(clf.class_counts_[k, column]))}" in detail
    with_it = [text for text in texts if shown[0] in [use.text for use in clf.explain(text).tokens]]
    assert one.run("document.querySelectorAll('#view-vocabulary .examples li').length") == min(4, len(with_it))
    # the map: point at a token, choose it, move on with the arrow keys, zoom
    one.page.fill("#view-vocabulary input", "")
    one.page.wait_for_timeout(100)
    token = "superb"
    s = clf.vocabulary_.tokens.index(token)
    place = one.run(
        """(s) => { const { map } = keytokens.views.vocabulary; const box = map.canvas.getBoundingClientRect();
        return [box.left + map.screenX(map.points.x[s]), box.top + map.screenY(map.points.y[s])]; }""",
        s,
    )
    one.page.mouse.move(*place)
    one.page.wait_for_selector(".tip:not([hidden])")
    assert token in one.text(".tip")
    one.page.mouse.click(*place)
    assert one.run("keytokens.views.vocabulary.picked") == s
    one.page.focus("canvas")
    one.page.keyboard.press("ArrowLeft")
    left = one.run("keytokens.views.vocabulary.picked")
    values = clf._theta.B[0] + clf._theta.c[0]
    assert left != s
    assert values[left] < values[s]
    before = one.run("keytokens.views.vocabulary.map.view")
    one.page.keyboard.press("+")
    after = one.run("keytokens.views.vocabulary.map.view")
    assert after["right"] - after["left"] == pytest.approx((before["right"] - before["left"]) / 1.5)
    one.page.keyboard.press("0")
    assert one.run("keytokens.views.vocabulary.map.view") == one.run("keytokens.views.vocabulary.map.whole")
    one.page.select_option("#view-vocabulary select >> nth=1", "root")
    assert one.run("(s) => keytokens.views.vocabulary.map.points.x[s]", s) == pytest.approx(np.sqrt(values[s]))
    # an example leads to its text
    one.page.fill("#view-vocabulary input", "great")
    one.page.focus("#view-vocabulary [role=listbox]")
    one.page.keyboard.press("ArrowDown")
    one.page.click("#view-vocabulary .examples button >> nth=0")
    assert one.page.is_visible("#view-documents .proof")


def test_documents(visit):
    clf, texts, labels = variant("two classes")
    one = visit("plain")
    one.go("documents")
    P = clf.predict_proba(texts)
    predicted, sure = clf.predict(texts), P.max(axis=1)
    truth = np.array(labels)

    def count() -> int:
        return int(one.text("#view-documents [role=status]").split()[0])

    def choose(label: str, value: str) -> None:
        one.page.select_option(f"#view-documents label:has-text('{label}') select", value)

    assert count() == len(texts)
    choose("Show", "wrong")
    assert count() == sum(predicted != truth)
    choose("Show", "unsure")
    assert count() == sum(sure < 0.75)
    choose("Show", "all")
    choose("Model says", "0")
    assert count() == sum(predicted == clf.classes_[0])
    choose("Given label", "1")
    assert count() == sum((predicted == clf.classes_[0]) & (truth == clf.classes_[1]))
    choose("Given label", "")
    choose("Model says", "")
    one.page.fill("#view-documents input", "superb")
    assert count() == sum("superb" in text.lower() for text in texts)
    one.page.fill("#view-documents input", "")
    choose("Sort", "least sure first")
    order = np.argsort(sure, kind="stable")
    one.page.focus("#view-documents [role=listbox]")
    for row in order[:6].tolist():
        one.page.keyboard.press("ArrowDown")
        e = clf.explain(texts[row])
        assert one.text("#view-documents .detail h3 >> nth=0") == f"Text {row + 1}"
        assert one.text("#view-documents .proof") == e.certificate.sentence
        assert one.text("#view-documents .label") == e.label
        assert f"{e.probability:.3f}" in one.text("#view-documents .verdict")
        chips = one.run(CHIPS)
        assert chips == [[item.text for item in found][:24] for found in (e.sufficient, e.flip)]
        shown = one.run("document.querySelector('#view-documents .text').textContent")
        assert len(shown) == len(texts[row].encode("utf-16-le", "surrogatepass")) // 2
    assert one.run("document.activeElement.getAttribute('aria-activedescendant')") == "document-5"
    assert one.page.get_attribute("#document-5", "aria-selected") == "true"
    one.page.keyboard.press("End")
    assert one.text("#view-documents .detail h3 >> nth=0") == f"Text {order[-1] + 1}"
    one.page.click("text=Open in Try it")
    assert one.page.input_value("textarea") == texts[order[-1]]


def test_try_it(visit):
    clf, _, _ = variant("two classes")
    one = visit("plain")
    one.go("try")
    text = "the plot was dull but the music superb"
    one.page.fill("textarea", "")
    one.page.type("textarea", text)
    one.page.wait_for_function("(text) => keytokens.views.try.e.text === text", arg=text)
    e = clf.explain(text)
    assert one.text("#view-try .proof") == e.certificate.sentence
    assert f"{e.probability:.3f}" in one.text("#view-try .verdict")
    assert "8 words" in one.text("#view-try [role=status]")
    # click a word: it is masked, as Python's MASK is
    one.page.click("#view-try .w >> text='superb'")
    masked = clf.explain(text.replace("superb", MASK))
    assert one.text("#view-try .proof") == masked.certificate.sentence
    assert "1 word masked" in one.text("#view-try [role=status]")
    assert one.run("document.activeElement.getAttribute('aria-pressed')") == "true"
    # the keyboard does the same: five words back, mask, and undo
    for _ in range(4):
        one.page.keyboard.press("ArrowLeft")
    assert one.run("document.activeElement.textContent") == "dull"
    assert "dull: attention" in one.text("#view-try .inspector")
    one.page.keyboard.press("Enter")
    both = clf.explain(text.replace("superb", MASK).replace("dull", MASK))
    assert one.text("#view-try .proof") == both.certificate.sentence
    one.page.keyboard.press("Enter")
    assert one.text("#view-try .proof") == masked.certificate.sentence
    # masks stay on their words when something is typed before them
    one.page.evaluate("document.querySelector('textarea').setSelectionRange(0, 0)")
    one.page.focus("textarea")
    one.page.keyboard.type("well ")
    longer = f"well {text}"
    one.page.wait_for_function("(text) => keytokens.views.try.e.text === text", arg=longer)
    assert one.text("#view-try .proof") == clf.explain(longer.replace("superb", MASK)).certificate.sentence
    one.page.click("text=Unmask all")
    assert one.text("#view-try .proof") == clf.explain(longer).certificate.sentence
    # the fewest words that change the label, and what happens when they are masked
    one.page.click("text=The same in words")
    one.page.click("text=/^Mask (it|them)$/")
    flipped = clf.explain(longer).flip_words
    assert f"{flipped.size} word{'s' * (flipped.size > 1)} masked" in one.text("#view-try [role=status]")
    assert one.text("#view-try .label") == flipped.label_after
    one.page.click("text=Unmask all")
    one.page.click("text=The same in words")
    # what unfolds is Python's too
    one.page.click("#view-try summary >> nth=2")
    rows = one.run(
        "[...document.querySelectorAll('#view-try details[open] tbody tr')].map((row) => row.innerText.split('\\t'))"
    )
    deleting = clf.explain(longer).certificate.deleting
    for (name, low, high), (m, (least, greatest)) in zip(rows, deleting.items(), strict=False):
        assert name == f"at most {m} token{'s' * (m > 1)}"
        assert float(low) == pytest.approx(least, abs=1.01e-3)
        assert float(high) == pytest.approx(greatest, abs=1.01e-3)


def test_four_classes(visit):
    clf, texts, _ = variant("four classes")
    one = visit("topics")
    for view in VIEWS:
        one.go(view)
    one.go("vocabulary")
    one.page.select_option("#view-vocabulary label:has-text('Value for') select", "2")
    s = clf.vocabulary_.tokens.index("vote")
    x = one.run("(s) => keytokens.views.vocabulary.map.points.x[s]", s)
    assert x == pytest.approx(clf._theta.B[2, s] + clf._theta.c[2])
    one.page.select_option("#view-vocabulary label:has-text('Speaks for') select", "2")
    best = (clf._theta.B + clf._theta.c[:, None]).argmax(axis=0) == 2
    assert one.run("keytokens.views.vocabulary.current.length") == best.sum()
    one.go("try")
    one.page.fill("textarea", texts[0])
    one.page.wait_for_function("(text) => keytokens.views.try.e.text === text", arg=texts[0])
    assert one.text("#view-try .proof") == clf.explain(texts[0]).certificate.sentence


# --- texts, labels and names that try to break out


def test_hostile_texts_are_shown_and_never_executed(visit):
    clf, texts, _ = hostile()
    one = visit("hostile")
    assert one.run("document.querySelector('h1').textContent") == TITLE
    assert one.page.title().startswith("<script>")
    assert "<u>a label that the mo" in one.text("#view-overview")
    for name in HOSTILE_LABELS:
        assert name[:12] in one.run("document.querySelector('.matrix').textContent")
    one.go("vocabulary")
    assert "<img src=x" in one.run("document.querySelector('#view-vocabulary .legend').textContent")
    one.go("documents")
    for row, text in enumerate(texts):
        if text not in HOSTILE:
            continue
        one.run("(row) => keytokens.views.documents.reveal(keytokens.documents.rows[row])", row)
        shown = one.run("document.querySelector('#view-documents .text').textContent")
        assert shown == clean(text)
        assert (
            one.run("document.querySelector('#view-documents .proof').textContent")
            == clf.explain(text).certificate.sentence
        )
    one.go("try")
    for text in HOSTILE:
        one.run("(text) => keytokens.views.try.set(text)", text)
        assert one.run("document.querySelectorAll('#view-try .text *:not(div):not(span)').length") == 0
    one.run("(text) => keytokens.views.try.set(text)", HOSTILE[8])
    assert one.run("getComputedStyle(document.querySelector('#view-try .block')).direction") == "rtl"


def test_very_long_texts(visit):
    """Only what is looked at is marked; a word of a megabyte is cut for the eye, not for the model."""
    one = visit("long")
    one.go("documents")
    for row, words in ((0, 30_002), (1, 2), (2, 1_400)):
        one.run("(row) => keytokens.views.documents.reveal(keytokens.documents.rows[row])", row)
        one.page.wait_for_selector("#view-documents .w")
        assert one.run("keytokens.views.documents.panel.e.words.length") == words
        assert one.run("document.querySelectorAll('#view-documents .w').length") <= 4_000
    one.run("keytokens.views.documents.reveal(keytokens.documents.rows[0])")
    last = one.page.locator("#view-documents .block").last
    last.scroll_into_view_if_needed()
    one.page.wait_for_function("() => document.querySelector('#view-documents .block:last-child .w') !== null")
    assert one.run("document.querySelector('#view-documents .block:last-child').textContent.endsWith('dull end')")
    one.run("keytokens.views.documents.panel.view.focus(30001)")
    assert one.run("document.activeElement.textContent") == "end"
    assert one.run("document.querySelectorAll('#view-documents .w').length") <= 6_000


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
    assert alone.evaluate("getComputedStyle(document.querySelector('.proof')).borderInlineStartWidth") == "4px", (
        "styled"
    )

    one.go("vocabulary")
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


@pytest.mark.parametrize("width", [360, 768, 1920])
def test_no_view_is_wider_than_the_screen(visit, width):
    one = visit("hostile", viewport={"width": width, "height": 740})
    for view in VIEWS:
        one.go(view)
        if view in ("documents", "vocabulary"):
            one.page.click(f"#view-{view} [role=option] >> nth=0")
        assert one.run("document.documentElement.scrollWidth") <= width, view


def test_light_and_dark(visit):
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    light, dark = visit("plain", color_scheme="light"), visit("plain", color_scheme="dark")
    assert light.run(ground) == "rgb(255, 255, 255)"
    assert dark.run(ground) == "rgb(20, 23, 28)"
    for _ in range(2):  # as the system, light, dark
        light.page.click("#theme")
    assert light.text("#theme") == "Theme: dark"
    assert light.run(ground) == "rgb(20, 23, 28)"


def test_the_keyboard_reaches_everything_in_order(visit):
    one = visit("plain", at="#documents")
    one.run("keytokens.views.documents.list.pick(0)")
    reached = []
    for _ in range(24):
        one.page.keyboard.press("Tab")
        reached.append(one.run(NAME_OF_FOCUS))
    named = ["Skip to the content", "Overview", "Vocabulary", "Documents", "Try it", "Theme: as the system"]
    places = [
        reached.index(name) for name in [*named, "Texts", "Open in Try it", "Contributions", "HTML", "SVG", "PNG"]
    ]
    assert places == sorted(places)
    assert one.run("document.querySelectorAll('#view-documents .w[tabindex=\"0\"]').length") == 1, (
        "one stop in the text"
    )


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
        assert one.text("#view-try .proof") == clf.explain(texts[0]).certificate.sentence
        assert "no score" in one.text("body") or "No labelled texts" in one.run(
            "document.querySelector('#view-overview').textContent"
        )
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
