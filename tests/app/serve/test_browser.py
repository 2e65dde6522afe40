"""The server's pages in a real browser, used as a person would; names that try to break out."""

import csv
import io
import itertools
import os
from collections import Counter
from pathlib import Path

import pytest

from keytokens import load
from keytokens.app.serve import Limits
from keytokens.app.serve.models import take_in

from ...corpus import reviews
from ..explorer.browser import Visit
from ..explorer.test_numbers import python_answer, same
from .conftest import serving, table

TURN, LINE = "\u202e", "\u2028"
FILE = f"<img src=x onerror=window.owned=1> \"q\" 'a' {LINE}{TURN}.csv"
TEXT_COLUMN = '<img src=x onerror="window.owned=2">'
LABEL_COLUMN = f"'\"></option><script>window.owned=3</script>{LINE}{TURN}"
LABELS = {"pos": f"<b onclick=window.owned=4>good</b>{TURN}", "neg": f"\"bad'{LINE}<svg onload=window.owned=5>"}
FOCUSED = """() => { const one = document.activeElement;
    return one.getAttribute('aria-label') || (one.labels?.length ? one.id : one.textContent.trim()); }"""
NAMELESS = """() => [...document.querySelectorAll('button, a, input, select, progress, [role=region]')].filter((one) =>
    !(one.getAttribute('aria-label') || one.textContent.trim() || one.labels?.length)).map((one) => one.outerHTML)"""
FOREIGN_ELEMENTS = "document.querySelectorAll('img, iframe, object, embed, link, base, bdi *, option *').length"

ROWS = list(zip(*reviews(60), strict=True))


def hostile_table() -> bytes:
    lines = io.StringIO()
    writer = csv.writer(lines)
    writer.writerow([TEXT_COLUMN, LABEL_COLUMN])
    writer.writerows([f"{text} <script>window.owned=6</script>", LABELS[label]] for text, label in ROWS)
    return lines.getvalue().encode()


@pytest.fixture
def home(browser, tmp_path):
    """The first page of a fresh server, and the server; whatever was done, nothing may have gone wrong in the page."""
    with serving(tmp_path, limits=Limits(trainings=1)) as client:
        one = Visit(browser, f"http://127.0.0.1:{client.port}/")
        yield one, client
        assert one.complaints == []
        assert [url for url in one.requests if not url.startswith(one.address)] == []
        assert one.run("window.owned === undefined")
        one.context.close()


def choose_file(one: Visit, name: str, content: bytes) -> None:
    one.page.set_input_files("#file", {"name": name, "mimeType": "text/csv", "buffer": content})


def upload(one: Visit, name: str, content: bytes) -> None:
    choose_file(one, name, content)
    one.page.wait_for_selector("#text-column:focus")


def follow_to_the_end(one: Visit) -> None:
    """The page goes to the model when the training is done."""
    one.page.wait_for_url("**/models/*", timeout=60_000)
    one.page.wait_for_selector("html[data-ready]")


def test_from_a_file_to_an_explanation(home):
    one, client = home
    assert "None yet" in one.text("#model-list")
    upload(one, "reviews.csv", table(400))
    assert one.page.input_value("#text-column") == "text"
    assert one.page.input_value("#label-column") == "label"
    assert one.text("#uploaded") == "reviews.csv: 400 rows, 2 columns"
    counts = Counter(row.rsplit(",", 1)[1] for row in table(400).decode().split("\n")[1:])
    assert one.page.locator("#classes li").all_inner_texts() == [f"{name}\n{n}" for name, n in counts.most_common()]
    one.page.fill("#model-name", "Reviews, spring")
    one.page.click("summary:has-text('Options')")
    one.page.select_option("#ngrams", "1")
    one.page.click("#train-form button[type=submit]")
    follow_to_the_end(one)
    assert one.text("#title") == "Reviews, spring"
    [record] = client.get("/api/models").json["models"]
    clf = load(client.store.model_folder(record["id"]) / "model")
    assert clf.ngrams == (1, 1)
    texts = ["a great film, but a dull plot", "", "nothing known", "awful bad dull <b>lovely</b>"]
    found = one.run("(texts) => texts.map((text) => keytokens.explain(text).toJSON())", texts)
    for text, ours in zip(texts, found, strict=True):
        same(ours, python_answer(clf, text), text)
    for view in ("words", "errors", "try", "summary"):
        one.go(view)
    score = record["score"]
    assert one.text("h1").startswith(f"Right on {round(score['n'] * score['accuracy'])} of {score['n']} texts")
    one.check()
    one.page.click("text=All models")
    one.page.wait_for_selector("html[data-ready] #model-list table")
    assert "Reviews, spring" in one.text("#model-list")


def test_cancel_and_delete(home, model):
    one, client = home
    take_in(client.store, model)
    one.page.reload()
    one.page.wait_for_selector("#model-list table")
    upload(one, "many.csv", table(4000))
    one.page.click("#train-form button[type=submit]")
    one.page.click(".run >> text=Cancel")
    one.page.wait_for_selector(".run:not(:has(progress))")
    assert "cancelled: by request" in one.text(".run")
    assert [run["state"] for run in client.get("/api/runs").json["runs"]] == ["cancelled"]
    one.page.once("dialog", lambda dialog: dialog.accept())
    one.page.click("#model-list >> text=Delete")
    one.page.wait_for_selector("#model-list >> text=None yet")
    assert client.get("/api/models").json["models"] == []
    assert one.complaints == ['dialog: Delete the model "reviews"?']
    one.complaints.clear()


def test_hostile_names_are_shown_and_never_run(home):
    one, _ = home
    upload(one, FILE, hostile_table())
    shown = one.page.locator("#preview th bdi").all_text_contents()
    assert [name[:20] for name in shown] == [TEXT_COLUMN[:20], LABEL_COLUMN[:20]]
    assert one.page.locator("#text-column option").all_text_contents() == [TEXT_COLUMN, LABEL_COLUMN]
    assert one.run(FOREIGN_ELEMENTS) == 0
    one.page.select_option("#text-column", TEXT_COLUMN)
    one.page.select_option("#label-column", LABEL_COLUMN)
    one.page.fill("#model-name", "")
    one.page.click("#train-form button[type=submit]")
    follow_to_the_end(one)
    one.page.click("text=All models")
    one.page.wait_for_selector("html[data-ready] #model-list table")
    assert one.page.locator("#model-list th bdi").all_text_contents() == [FILE]
    shown = sorted(one.page.locator("#model-list td bdi").all_text_contents())
    assert shown == sorted(label.replace(LINE, " ") for label in LABELS.values())
    assert one.run(FOREIGN_ELEMENTS) == 0
    one.page.click("#model-list th a")
    one.page.wait_for_selector("html[data-ready]")
    assert "onerror" in one.text("#title")
    for view in ("words", "errors", "try", "summary"):
        one.go(view)
        one.check()


def test_what_is_wrong_is_said(home):
    one, _ = home
    choose_file(one, "<img src=x onerror=window.owned=7>.csv", b"a,a\n1,2\n")
    one.page.wait_for_selector("#problem:visible")
    assert one.text("#problem").startswith("<img src=x onerror=window.owned=7>.csv, line 1: column names must differ")
    assert one.run(FOREIGN_ELEMENTS) == 0
    [said] = one.complaints  # the browser's own note of the answer
    assert "400 (Bad Request)" in said
    one.complaints.clear()


def test_a_column_that_cannot_be_a_label_is_refused_before_the_training(home):
    one, client = home
    rows = "\n".join(f"{text},{i},same" for i, (text, _) in enumerate(ROWS))
    upload(one, "numbered.csv", f"text,number,constant\n{rows}\n".encode())
    for column, reason in (("number", "All labels are different"), ("constant", "All labels are the same")):
        one.page.select_option("#label-column", column)
        assert reason in one.text("#classes")
        assert one.page.is_disabled("#start")
    [given] = client.store.uploads()
    answer = client.ask("POST", "/api/runs", {"upload": given["id"], "text": "text", "label": "number"})
    assert answer.status == 400
    assert "all 60 of 'number' are different" in answer.json["error"]


def test_the_keyboard(home):
    """Everything by Tab and Enter, in the order of the page; every control has a name."""
    one, client = home
    names = []
    for _ in range(6):
        one.page.keyboard.press("Tab")
        names.append(one.run(FOCUSED))
    assert names == ["Skip to the content", "Train", "Models", "Theme: as the system", "file", "openapi.json"]
    choose_file(one, "r.csv", table(4000))
    one.page.wait_for_selector("#text-column:focus")
    names = []
    for _ in range(4):
        one.page.keyboard.press("Tab")
        names.append(one.run(FOCUSED))
    assert names == ["label-column", "model-name", "Options", "Train"]
    one.page.keyboard.press("Enter")
    one.page.wait_for_selector(".run progress")
    assert one.run(NAMELESS) == []
    one.page.keyboard.press("Tab")
    assert one.run(FOCUSED) == "Cancel"
    one.page.keyboard.press("Enter")
    one.page.wait_for_selector(".run:not(:has(progress))")
    assert [run["state"] for run in client.get("/api/runs").json["runs"]] == ["cancelled"]


def test_looks(browser, tmp_path, model):
    """No sideways scrolling from 360 px on; KEYTOKENS_PICTURES names a folder for the pictures of the documentation."""
    folder = os.environ.get("KEYTOKENS_PICTURES")
    with serving(tmp_path) as client:
        take_in(client.store, model)
        if folder:
            client.train(table(300), title="Reviews, spring")
        looks = itertools.product(("light", "dark"), (360, 1100)) if folder else (("light", 1100), ("dark", 360))
        for scheme, width in looks:
            one = Visit(
                browser,
                f"http://127.0.0.1:{client.port}/",
                color_scheme=scheme,
                viewport={"width": width, "height": 900},
            )
            upload(one, "reviews.csv", table(200))
            assert one.run("document.documentElement.scrollWidth") <= width
            assert one.complaints == []
            assert one.barriers() == []
            if folder:
                name = f"serve-{scheme}.png" if width > 1000 else f"narrow-{scheme}.png"
                one.page.screenshot(path=Path(folder) / name)
            one.context.close()
