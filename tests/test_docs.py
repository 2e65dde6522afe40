"""The site: every page is reachable, and every claim, public name and letter has its place. `make docs` builds it."""

import doctest
import pkgutil
import re
from importlib import import_module
from pathlib import Path, PurePosixPath

import pytest

import keytokens
from keytokens.lab.claims import Claim, Counter, Hypothesis, Verdict, claims
from keytokens.lab.claims.claim import judge

from .conftest import script
from .test_layers import RANK

DOCS = Path(__file__).parent.parent / "docs"
generate = script(DOCS / "generate.py")
# Shelves for those who work on the package itself; the others have a page.
INNER = {"app", "base", "estimators", "model", "training"}
# Constants.
NEED_NO_EXAMPLE = {"MASK", "__version__"}
WITH_EXAMPLES = [
    "keytokens",
    "keytokens.lab",
    "keytokens.lab.svm",
    "keytokens.lab.claims",
    "keytokens.lab.descent",
    "keytokens.lab.paths",
    "keytokens.lab.selection",
]


def unjudged(claim: Claim) -> Verdict:
    return Verdict(claim.id, claim.says, claim.source, 3, 3, 0, 0.0, claim.tolerance, 0.0)


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    """The generated pages, without the work of judging each claim."""
    return {f"generated/{name}": text for name, text in generate.pages(unjudged).items()}


@pytest.fixture(scope="module")
def site(made) -> dict[str, str]:
    """Path from docs/ -> text of every Markdown page, written or generated."""
    written = {
        path.relative_to(DOCS).as_posix(): path.read_text("utf-8")
        for path in DOCS.rglob("*.md")
        if "generated" not in path.relative_to(DOCS).parts
    }
    return {**written, **made}


def listed(page: str, text: str, site: dict[str, str]) -> set[str]:
    """The pages that the toctrees of a page name."""
    found = set()
    for block in re.findall(r"^```\{toctree\}\n(.*?)^```", text, re.M | re.S):
        for line in block.splitlines():
            if line and not line.startswith(":"):
                found |= matching(page, line.strip(), site)
    return found


def matching(page: str, entry: str, site: dict[str, str]) -> set[str]:
    parts: list[str] = []
    for part in (*PurePosixPath(page).parent.parts, *PurePosixPath(entry).parts):
        if part == "..":
            parts.pop()
        else:
            parts.append(part)
    pattern = f"{'/'.join(parts)}.md"
    found = {name for name in site if PurePosixPath(name).match(pattern) and name.count("/") == pattern.count("/")}
    assert found or "*" in entry, f"{page} lists {entry}, which is not there"
    return found


def test_every_page_is_reachable_from_the_index(site):
    seen, next_ones = set(), {"index.md"}
    while next_ones:
        seen |= next_ones
        next_ones = {other for page in next_ones for other in listed(page, site[page], site)} - seen
    assert not set(site) - seen, "pages that no toctree names"


def test_every_page_has_one_title(site):
    for page, text in site.items():
        outside = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
        assert len(re.findall(r"^# ", outside, re.M)) == 1, f"{page} needs one title"


def test_the_first_page_shows_what_its_code_prints(capsys):
    text = (DOCS / "index.md").read_text("utf-8")
    exec(re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)[0], {})
    assert " ".join(re.findall(r"^> (.*)$", text, re.M)) == capsys.readouterr().out.strip()


def test_every_claim_has_a_page_with_its_code(made):
    index = made["generated/theory/index.md"]
    for claim in claims():
        page = made[f"generated/theory/{claim.id}.md"]
        assert generate.plain(claim.says) in page
        assert all(generate.plain(hypothesis.says) in page for hypothesis in claim.hypotheses)
        assert f"({claim.id}.md)" in index
        file, first, last = re.findall(r"{literalinclude} /\.\./(.*)\n:language: python\n:lines: (\d+)-(\d+)", page)[0]
        code = (DOCS.parent / file).read_text("utf-8").splitlines()[int(first) - 1 : int(last)]
        assert code[:2] == ["@claim(", f'    "{claim.id}",']
        assert any(line.startswith("def ") for line in code)


def test_what_is_derived_here_says_why_it_holds(made):
    for claim in claims():
        page = made[f"generated/theory/{claim.id}.md"]
        assert claim.source != "keytokens" or "## Why" in page or "## Notes" in page, claim.id
    known = {claim.id for claim in claims()}
    assert set(re.findall(r"^<!-- (\S+\.\S+) -->$", (DOCS / "proofs.md").read_text("utf-8"), re.M)) <= known


def test_a_page_shows_the_verdict_of_today():
    (claim,) = claims(["kt.flip"])
    page = generate.claim_page(claim, generate.quick(claim))
    assert "**holds**" in page
    broken = generate.claim_page(
        claim, Verdict("kt.flip", "", "", 3, 3, 0, 1.0, 0.0, 0.0, ("the excess 1 is above 0",))
    )
    assert "**fails: the excess 1 is above 0**" in broken


def test_a_claim_that_few_instances_do_not_settle_gets_as_many_as_it_asks_for(monkeypatch):
    large = Hypothesis("x is above 0.3", lambda x: x > 0.3)
    usual = {"id": "x.least", "says": "", "source": "", "tolerance": 0, "seeds": 60, "draw": lambda rng: rng.random()}
    usual |= {"hypotheses": (large,), "counters": (Counter("a tenth", large.says, lambda: 0.1),)}
    usual |= {"constant": "0.3", "known": (lambda: 0.31,)}
    right = Claim(**usual, excess=lambda x, by=1.0: by * 0.3 - x)
    few = next(n for n in range(1, 60) if not judge(right, n).holds)
    monkeypatch.setattr(generate, "QUICK", few)
    assert generate.quick(right).instances == 61
    assert generate.quick(right).holds
    assert not generate.quick(Claim(**usual, excess=lambda x, by=1.0: x)).holds


def test_every_public_name_is_in_the_reference(made):
    shelves = {f"keytokens.{found.name}" for found in pkgutil.iter_modules(keytokens.__path__) if found.ispkg}
    assert shelves - set(generate.SHELVES) == {f"keytokens.{name}" for name in INNER}, "a package without a page"
    for shelf in generate.SHELVES:
        page = made[f"generated/reference/{shelf}.md"]
        for name in generate.public(shelf):
            assert re.search(rf"^\.\. (auto\w+|py:data):: {re.escape(name)}$", page, re.M), f"{shelf}.{name}"


@pytest.mark.parametrize("shelf", WITH_EXAMPLES)
def test_every_public_name_has_an_example(shelf):
    """In its docstring, or in that of one of its methods; the examples themselves run as doctests."""
    for name in set(generate.public(shelf)) - NEED_NO_EXAMPLE:
        thing = getattr(import_module(shelf), name)
        own = [thing, *vars(thing).values()] if isinstance(thing, type) else [thing]
        assert any(">>>" in (getattr(part, "__doc__", None) or "") for part in own), f"{shelf}.{name} has no example"


def test_the_other_public_names_are_in_the_example_of_their_shelf(made):
    """`test_readme` runs these examples."""
    written = (DOCS / "shelves.md").read_text("utf-8")
    for shelf in set(generate.SHELVES) - set(WITH_EXAMPLES):
        example = written.partition(f"<!-- {shelf} -->")[2].partition("<!-- end -->")[0]
        for name in generate.public(shelf):
            assert re.search(rf"\b{name}\b", example), f"{shelf}.{name} is in no example"
        assert f":start-after: <!-- {shelf} -->" in made[f"generated/reference/{shelf}.md"]


def test_the_architecture_page_has_the_rooms():
    table = (DOCS / "architecture.md").read_text("utf-8").partition("| room |")[2].partition("\n\n")[0]
    rooms = re.findall(r"^\| `(\w+)/` \|", table, re.M)
    assert rooms == sorted(rooms, key=RANK.__getitem__)
    assert set(rooms) == {name for name in RANK if not name.startswith("_")}


def test_the_glossary_has_one_meaning_a_word():
    rows = [line for line in (DOCS / "glossary.md").read_text("utf-8").splitlines() if line.startswith("| ")]
    assert all(len(re.findall(r"(?<!\\)\|", row)) == 3 for row in rows), "a bar in a meaning ends its cell"
    names = [row.split(" | ")[0] for row in rows]
    words, letters = names[1 : names.index("| letter")], names[names.index("| letter") + 1 :]
    assert words == sorted(set(words))
    assert len(letters) == len(set(letters)) > 20


def test_the_figures_of_the_pages_are_drawn(site):
    included = {name for text in site.values() for name in re.findall(r"generated/figures/([\w-]+)\.txt", text)}
    assert included == set(generate.FIGURES)


def test_the_configuration_reads_without_sphinx_and_fetches_nothing():
    conf = script(DOCS / "conf.py")
    assert conf.release == keytokens.__version__
    assert not any("intersphinx" in name or "mathjax" in name for name in conf.extensions)


def test_the_helpers_do_what_their_examples_say():
    found = doctest.testmod(generate)
    assert found.attempted
    assert not found.failed


def test_docstrings_become_plain_words():
    lines = ["|p|_q of `p_1`.", "", "a     b", "  c", ">>> 1", "1", ""]
    lines += ["Parameters", "----------", "x : int", "    |x|", ""]
    assert generate.restructured(lines) == [
        *(r"\|p\|\_q of ``p_1``.", ""),
        *("::", "", "   a     b", "     c", ""),
        *(">>> 1", "1", ""),
        *(".. rubric:: Parameters", "", "* **x**: int", r"  \|x\|", ""),
    ]


def test_an_example_gets_a_title():
    source = '"""\nWhy?\n====\n\nSo.\n"""\nprint(1)\n'
    assert generate.titled(source) == source
    assert generate.titled('"""Why?\n\nSo."""\nprint(1)\n') == 'r"""Why?\n====\n\nSo.\n"""\nprint(1)\n'
