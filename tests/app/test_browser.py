"""The page of an explanation in a real browser: it renders, it is allowed nothing, and a text cannot inject markup."""

import keytokens as kt

from ..corpus import reviews


def test_the_page_of_an_explanation(browser, tmp_path):
    clf = kt.KeyTokenClassifier().fit(*reviews())
    hostile = '<img src=x onerror="document.title=1"> film & <script>document.title="owned"</script> dull “end” 我'
    e = clf.explain(f"a great {hostile}")
    e.to_html(tmp_path / "why.html")
    page = browser.new_page()
    page.goto((tmp_path / "why.html").as_uri())
    assert page.title() not in ("1", "owned")
    assert page.locator("img, script").count() == 0
    assert "Content-Security-Policy" in page.content()
    shown = page.inner_text("body")
    assert "onerror" in shown, "the text is shown as it is"
    assert e.certificate.sentence.split(".")[0][:40] in shown
    page.close()
