"""The page of verdicts."""

from dataclasses import replace

from keytokens.app.cli.app import run
from keytokens.lab.claims import Verdicts, verify
from keytokens.lab.claims.claim import verdicts_page


def test_the_command_writes_it(tmp_path, capsys):
    page = tmp_path / "verify.html"
    assert run(["verify", "kt.flip", "kt.sufficient", "--seeds", "3", "--html", str(page)]) == 0
    assert "2 of 2 claims hold" in capsys.readouterr().out
    text = page.read_text("utf-8")
    assert "kt.flip" in text
    assert "default-src 'none'" in text
    assert "<script" not in text


def test_what_fails_is_said_and_escaped():
    found = verify("kt.flip", seeds=2)
    broken = Verdicts((replace(found[0], failures=("<b>the excess 1 is above 0</b>",)),))
    text = verdicts_page(broken)
    assert 'class="kt-fail">FAIL' in text
    assert "&lt;b&gt;the excess" in text
