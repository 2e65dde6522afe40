"""The README's Python runs as it stands, its commands exist, and its links lead somewhere."""

import re
import shlex
from pathlib import Path

import pytest

from keytokens.app.cli.app import run
from keytokens.io import write_table

from .corpus import reviews

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
WRITTEN = sorted(page for page in DOCS.rglob("*.md") if DOCS / "generated" not in page.parents)
PAGES = [ROOT / "README.md", *WRITTEN]
OTHERS = [ROOT / name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "changes/README.md")]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text("utf-8"), re.M | re.S)


@pytest.fixture
def registered():
    """What a page registers, a claim or a figure, is forgotten again."""
    from keytokens.lab.claims import claim, claims
    from keytokens.lab.figures import figure, figures

    known = [(claim.__globals__["REGISTRY"], len(claims())), (figure.__globals__["REGISTRY"], len(figures()))]
    yield
    for registry, size in known:
        del registry[size:]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
@pytest.mark.usefixtures("registered")
def test_python_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for block in blocks(page, "python"):
        exec(compile(block, page.name, "exec"), {})


def test_the_readme_has_python_and_commands():
    assert blocks(ROOT / "README.md", "python")
    assert "make test" in (ROOT / ".ci" / "run").read_text("utf-8")


def test_the_readme_commands_run(tmp_path, monkeypatch, capsys):
    """Commands as printed, on a table of one's own; those that take longer have tests of their own."""
    monkeypatch.chdir(tmp_path)
    texts, labels = reviews(100)
    write_table("reviews.csv", {"text": texts, "label": labels})
    write_table("new.csv", {"text": texts[:10], "label": labels[:10]})
    lines = [line for block in blocks(ROOT / "README.md", "sh") for line in block.splitlines()]
    commands = [shlex.split(line, comments=True) for line in lines if line.startswith("keytokens ")]
    own = ["fit", "evaluate", "predict", "explain", "report"]
    assert [words[1] for words in commands] == [*own, "serve", "verify", "figure"]
    for words in commands[: len(own)]:
        assert run(words[1:]) == 0, capsys.readouterr().err


@pytest.mark.parametrize("page", [*PAGES, *OTHERS], ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_and_targets_are_there(page):
    text = page.read_text("utf-8")
    for link in re.findall(r"\]\(([^)#]+)", text):
        assert link.startswith("http") or (page.parent / link).exists(), f"{page.name} links to {link}"
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for target in re.findall(r"\bmake ([a-z-]+)", " ".join(re.findall(r"`[^`\n]+`|^make .*", text, re.M))):
        assert re.search(rf"^{target}:", makefile, re.M), f"{page.name}: the Makefile has no target {target}"
