"""Pictures of every view of the page, to look at: `make screenshots`, into build/screenshots.

Three reports, of 2, 6 and 20 classes, each view at 1440, 820 and 390 pixels, light and dark. The first two need
KEYTOKENS_DATA; the third is made by lot. `--only 6 --width 390` takes a part; `--keep` takes the data of last time;
`--docs` makes the pictures of the documentation instead, of the film reviews of the extra `demo`.
"""

import argparse
import base64
import itertools
import os
import re
import shutil
from pathlib import Path
from urllib.parse import quote_plus

from benchmarks.synthetic import twenty
from playwright.sync_api import Browser, sync_playwright

from keytokens import KeyTokenClassifier
from keytokens.app.explorer import explorer_page
from keytokens.io.corpora import imdb_reviews
from keytokens.io.reading import read_table

FOLDER = Path("build/screenshots")
TABLES = {"2": "messages_train.parquet", "6": "questions_train.parquet"}
VIEWS = ("summary", "errors", "words", "try")
HELD_OUT = 500
REVIEW = (
    "I expected little and got a surprise: the plot is thin and at times predictable, but the acting is wonderful, "
    "the music superb and the ending moving. Not a great film, yet one of the most charming I have seen this year."
)
WIDTHS, SCHEMES = (1440, 820, 390), ("light", "dark")


def corpus(name: str) -> tuple[list[str], list[str]]:
    """Texts and labels of a set with so many classes."""
    if name == "20":
        texts, classes = twenty(11_000)
        return texts, [f"group {label:02d}" for label in classes]
    table = read_table(str(Path(os.environ["KEYTOKENS_DATA"]) / TABLES[name]))
    text, label = (list(table.columns[column]) for column in ("text", "label"))
    names = {"0": "ham", "1": "spam"}
    return [str(one) for one in text], [names.get(str(one), str(one)) for one in label]


def report(name: str) -> Path:
    """The page of a model: of 6 classes on texts of its own, of 2 and 20 on those of the training, out of fold."""
    texts, labels = corpus(name)
    page = FOLDER / f"report-{name}.html"
    if name == "6":
        clf = KeyTokenClassifier().fit(texts[:-HELD_OUT], labels[:-HELD_OUT])
        texts, labels = texts[-HELD_OUT:], labels[-HELD_OUT:]
    else:
        clf = KeyTokenClassifier(cross_fit=5).fit(texts, labels)
    facts = clf.report(page, texts, labels, title=f"{name} classes")
    print(f"{page}: {facts['bytes'] / 1e6:.1f} MB, {facts['tokens']:,} tokens, {facts['shown']:,} texts")
    return page


def rewritten(page: Path) -> Path:
    """The page of last time, with its data as they were and today's script and style."""
    found = re.findall(
        r'<script type="text/plain" id="kt-(model|overview|documents)">([^<]*)<', page.read_text("utf-8")
    )
    contents = {name: base64.b64decode(content) for name, content in found}
    page.write_text(explorer_page(page.stem, contents), "utf-8")
    return page


def shoot(browser: Browser, page: Path, width: int, scheme: str) -> None:
    """Every view as it opens, the whole of it, and on a narrow screen a text that is opened."""
    height = 844 if width < 600 else 1000
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    tab = context.new_page()
    tab.on("console", lambda message: print(f"{page.name}: {message.text}"))
    tab.on("pageerror", lambda error: print(f"{page.name}: {error}"))
    tab.goto(page.resolve().as_uri())
    tab.wait_for_selector("html[data-ready]", timeout=15_000)
    for view in VIEWS:
        tab.click(f'nav a[data-view="{view}"]')
        tab.wait_for_timeout(400)
        name = f"{page.stem.removeprefix('report-')}-{view}-{width}-{scheme}"
        tab.screenshot(path=FOLDER / f"{name}.png", full_page=True)
        if view == "errors" and width < 600:
            tab.click("[role=option] >> nth=0")
            tab.screenshot(path=FOLDER / f"{name}-open.png")
            tab.keyboard.press("Escape")
    context.close()


def documentation(browser: Browser) -> None:
    """The pictures of the documentation: film reviews, scored out of fold."""
    texts, labels = imdb_reviews()
    page = FOLDER / "report-films.html"
    clf = KeyTokenClassifier(cross_fit=5).fit(texts, labels)
    clf.report(page, texts, labels, title="Film reviews")
    shots = {
        "summary-light": "#summary",
        "errors-light": "#errors?show=wrong&given=negative",
        "words-dark": "#words",
        "try-light": f"#try?text={quote_plus(REVIEW)}",
        "try-dark": f"#try?text={quote_plus(REVIEW)}&mask=19.22",
    }
    for name, address in shots.items():
        tab = browser.new_page(
            viewport={"width": 1280, "height": 1000 if "summary" in name else 780}, color_scheme=name.rsplit("-")[-1]
        )
        tab.goto(page.resolve().as_uri() + address)
        tab.wait_for_selector("html[data-ready]")
        tab.wait_for_timeout(500)
        tab.screenshot(path=f"docs/pictures/explorer-{name}.png")
        tab.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=["2", "6", "20"])
    parser.add_argument("--width", nargs="*", type=int, default=WIDTHS)
    parser.add_argument("--scheme", nargs="*", default=SCHEMES)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--docs", action="store_true", help="only the pictures of the documentation")
    options = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    names = [] if options.docs else options.only
    pages = [
        rewritten(last) if options.keep and (last := FOLDER / f"report-{name}.html").exists() else report(name)
        for name in names
    ]
    with sync_playwright() as driver:
        found = shutil.which("chromium") or shutil.which("google-chrome")
        browser = driver.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
        for page, width, scheme in itertools.product(pages, options.width, options.scheme):
            shoot(browser, page, width, scheme)
        if options.docs:
            documentation(browser)
        browser.close()


if __name__ == "__main__":
    main()
