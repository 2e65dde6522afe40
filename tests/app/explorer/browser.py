"""A real Chromium, driven by Playwright: the system's own browser, by its path."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ...conftest import library, skip_or_fail

QUIET = """
    --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
    --disable-component-update --disable-sync
"""


@contextmanager
def chromium() -> Iterator[Any]:
    """The browser, for as long as it is needed."""
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        skip_or_fail("no Chromium: the browser tests need one (Debian: apt install chromium)")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        skip_or_fail("no Playwright: the browser tests need it (pip install playwright)")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=QUIET.split())
        try:
            yield browser
        finally:
            browser.close()


AXE = """async (only) => (await axe.run(document, { resultTypes: ["violations"], runOnly: only })).violations
    .filter(({ impact }) => ["serious", "critical"].includes(impact))
    .map(({ id, nodes }) => id + ": " + nodes.slice(0, 3).map(({ html, any }) =>
        html.slice(0, 120) + " " + (any[0]?.message ?? "")).join(" | "))"""


class Visit:
    """One page, watched: what it says on the console, what it asks for, what goes wrong in it."""

    def __init__(self, browser: Any, address: str, **options: Any) -> None:
        self.context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        self.page = self.context.new_page()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        self.page.on("dialog", lambda dialog: self.complaints.append(f"dialog: {dialog.message}"))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.address = address
        self.page.set_default_timeout(8_000)
        self.page.goto(address)
        self.page.wait_for_selector("html[data-ready]", timeout=30_000)

    def go(self, view: str) -> None:
        self.page.click(f'nav a[data-view="{view}"]')
        self.page.wait_for_selector(f"#view-{view} h1", state="visible")

    def run(self, code: str, argument: Any = None) -> Any:
        return self.page.evaluate(code, argument)

    def text(self, selector: str) -> str:
        return str(self.page.inner_text(selector))

    def barriers(self, *rules: str) -> list[str]:
        """What axe finds that is serious or critical: by these rules, or by all of them."""
        if self.run("typeof axe === 'undefined'"):
            self.run((Path(library("axe_playwright_python").__file__).parent / "axe.min.js").read_text("utf-8"))
        return list(self.run(AXE, list(rules) or ["wcag2a", "wcag2aa", "best-practice"]))

    def check(self) -> None:
        """Nothing was said, nothing was asked for but the page itself, nothing foreign ran or became an element."""
        assert self.complaints == []
        assert [url for url in self.requests if not url.startswith(self.address.split("#")[0])] == []
        assert self.run("window.owned === undefined")
        assert self.run("document.querySelectorAll('img, iframe, object, embed, link, base, form').length") == 0
        assert self.run("[...document.scripts].every((s) => s.type === 'module' || s.type === 'text/plain')")
        assert self.run("document.scripts.length") <= 4


def address_of(path: Path) -> str:
    return path.resolve().as_uri()
