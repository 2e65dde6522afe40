"""The page of an explanation in a real browser: it renders, it is allowed nothing, and a text cannot inject markup."""

from __future__ import annotations

import html
import re
import shutil
import subprocess

import pytest

import keytokens as kt

from ..conftest import skip_or_fail
from ..corpus import reviews


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        skip_or_fail("no Chromium: the browser tests need one (Debian: apt install chromium)")
    profile = tmp_path_factory.mktemp("profile")

    def dump(page) -> str:
        quiet = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
        quiet += "--disable-component-update --disable-sync --virtual-time-budget=2000"
        command = [found, *quiet.split(), f"--user-data-dir={profile}", "--dump-dom", page.as_uri()]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout

    return dump


def test_the_page_of_an_explanation(browser, tmp_path):
    clf = kt.KeyTokenClassifier().fit(*reviews())
    hostile = (
        'a great <img src=x onerror="document.title=1"> film & <script>document.title="owned"</script> dull “end” 我'
    )
    e = clf.explain(hostile)
    e.to_html(tmp_path / "why.html")
    dom = browser(tmp_path / "why.html")
    assert "owned</title>" not in dom
    assert "<img" not in dom
    assert "<script" not in dom
    assert "Content-Security-Policy" in dom
    shown = html.unescape(re.sub(r"<[^>]+>", "", dom))
    assert "onerror" in shown, "the text is shown as it is"
    assert e.certificate.sentence.split(".")[0][:40] in shown
