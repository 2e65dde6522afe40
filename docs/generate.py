"""The pages that are made, not written: one a claim, one a shelf of the package, figures, the gallery.

`conf.py` runs `write` before Sphinx reads anything. Everything lands in docs/generated and is made anew each time, so
a page says what the code says today: theorems are judged, figures computed and checked, while the site is built.
"""

from __future__ import annotations

import ast
import inspect
import os
import re
import shutil
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from keytokens.lab.claims import Claim, Verdict, claims
from keytokens.lab.claims.claim import judge

DOCS = Path(__file__).parent
ROOT = DOCS.parent
MADE = DOCS / "generated"

SHELVES = {
    "keytokens": "What most people need: the classifiers, loading, tuning, errors.",
    "keytokens.explain": "What an explanation holds.",
    "keytokens.proof": "The proofs themselves, on weights and values; no text.",
    "keytokens.text": "From strings to counts.",
    "keytokens.io": "Tables in and out.",
    "keytokens.dask": "The same fit on a cluster.",
    "keytokens.lab": "The front door of the laboratory: an own problem, and all that can be asked of it.",
    "keytokens.lab.selection": "Which tokens win.",
    "keytokens.lab.svm": "Max-margin problems of attention, with certificates.",
    "keytokens.lab.descent": "One loop, and the descents and flows that run in it.",
    "keytokens.lab.paths": "The best parameters within each ball.",
    "keytokens.lab.claims": "Theorems that run.",
    "keytokens.lab.figures": "Figures that check themselves.",
}
FAMILIES = {
    "mm": "Max-margin token selection",
    "te": "Trained embeddings",
    "fu": "Papers that follow these two",
    "kt": "What keytokens itself rests on",
}
LETTERS = {
    "mm": "An input is a bag of vectors with keys k and scores gamma. p is the query, s the attention that it gives to "
    "the tokens of an input, p_mm the max-margin direction: the shortest p that puts the selected token of each input "
    "at least 1 above the others. L is the loss or its Lipschitz constant, R the radius of a ball, cos that of the "
    "angle between p and its limit.",
    "te": "A token s has the embedding E_s, the logit a_s = E_s'p, the value b_s = E_s'v, and the average signed "
    "frequency alpha_s. Labels y are 1 and -1. Q_s is the attention on s, f the logit of a document, eta a step, p_0 "
    "and E_0 the start, p_* the max-margin direction.",
    "fu": "Attention by a matrix, with logits x'W z for a query z, and other norms than the Euclidean. |W|_* is the "
    "nuclear norm, |W|_q the norm with exponent q of the entries, D the Bregman divergence that belongs to it.",
    "kt": "The proofs that come with every prediction, and the identities that they rest on.",
}
FIGURES = ("step", "u-shape", "flow", "1a", "1b", "4a")  # those that the written pages show; seconds each
QUICK = 3  # random instances of a claim when the site is built, unless they are too few to judge it

INHERITED = "ClassifierMixin, BaseEstimator, Sequence, BaseException, Exception, Enum, Protocol, Generic, object"
HIDDEN = "set_fit_request, set_score_request, set_predict_request, get_metadata_routing"


def public(shelf: str) -> list[str]:
    """The names on a shelf, in its own order."""
    module = import_module(shelf)
    own = (name for name, value in vars(module).items() if getattr(value, "__module__", "") == shelf and name[0] != "_")
    return list(getattr(module, "__all__", None) or own)


def write(made: Path = MADE) -> list[str]:
    """All generated pages, figures and examples; nothing stays of the last time. Returns what failed, a line each."""
    shutil.rmtree(made, ignore_errors=True)
    verdicts = {claim.id: quick(claim) for claim in claims()}
    for name, text in pages(lambda claim: verdicts[claim.id]).items():
        _put(made / name, text)
    failed = [f"claim {verdict.id} {verdict.sentence}" for verdict in verdicts.values() if not verdict.holds]
    for name in FIGURES:
        failed += _draw(made / "figures", name)
    copy_examples(made)
    return failed


def pages(judged: Callable[[Claim[Any]], Verdict]) -> dict[str, str]:
    """Path -> text of every generated Markdown page."""
    every = claims()
    found = {f"theory/{claim.id}.md": claim_page(claim, judged(claim)) for claim in every}
    found["theory/index.md"] = theory_index(every)
    found.update({f"reference/{shelf}.md": shelf_page(shelf) for shelf in SHELVES})
    found["reference/index.md"] = reference_index()
    return found


def _put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


# Theory --------------------------------------------------------------------------------------------------------------


def quick(claim: Claim[Any]) -> Verdict:
    """A verdict on a few instances; on as many as the claim asks for where those few do not settle it."""
    verdict = judge(claim, QUICK)
    return verdict if verdict.holds else judge(claim)


def claim_page(claim: Claim[Any], verdict: Verdict) -> str:
    """Statement, hypotheses, a verdict, where a hypothesis is needed, and the code: included, not copied."""
    parts = [
        f"# {claim.id}",
        plain(claim.says),
        f"Source: {plain(claim.source)}.",
        "## Hypotheses",
        "\n".join(f"- {plain(hypothesis.says)}" for hypothesis in claim.hypotheses) or "None.",
        *(["## Why", why] if (why := _part_of("proofs", claim.id)) else []),
        "## Checked when this page was built",
        _verdict(claim, verdict),
    ]
    if claim.counters:
        parts += ["## Where a hypothesis is dropped, it fails", "\n".join(map(_counter, claim.counters))]
    if claim.notes:
        parts += ["## Notes", plain(claim.notes)]
    return "\n\n".join([*parts, "## The code", _code(claim)]) + "\n"


def _verdict(claim: Claim[Any], verdict: Verdict) -> str:
    worst = f"{verdict.worst_excess:.2g}" if verdict.hypotheses_met else "–"
    return (
        f"**{plain(verdict.sentence)}**\n\n| instances | that count | counter-instances | worst excess | allowed |\n"
        f"|---|---|---|---|---|\n| {verdict.instances} | {verdict.hypotheses_met} | {len(claim.counters)} | {worst} | "
        f"{verdict.tolerance:.2g} |\n\n{_stronger(claim, verdict)}"
        f"The excess is how far the conclusion was missed; [what these words mean](../../theory.md). More instances: "
        f"`keytokens verify {claim.id} --seeds 200`, or in Python `keytokens.lab.claims.verify({claim.id!r})`."
    )


def _stronger(claim: Claim[Any], verdict: Verdict) -> str:
    if not verdict.breaks_at:
        return ""
    place = f"instance {verdict.breaks_at} of those that count"
    return f"With *{plain(claim.constant)}* 10 % stronger than stated, the conclusion fails on {place}.\n\n"


def _counter(counter: Any) -> str:
    return f"- Without *{plain(counter.without)}*: {plain(counter.says)}."


def _code(claim: Claim[Any]) -> str:
    """The function that computes the excess, with the decorator that states the claim: included, not copied."""
    lines, start = inspect.getsourcelines(claim.excess)
    return _included(Path(inspect.getfile(claim.excess)), start, start + len(lines) - 1)


def _included(file: Path, first: int, last: int) -> str:
    where = file.resolve().relative_to(ROOT)
    options = f":language: python\n:lines: {first}-{last}\n:dedent:"
    return f"`{where}`, from line {first}:\n\n```{{literalinclude}} /../{where}\n{options}\n```"


def theory_index(every: list[Claim[Any]]) -> str:
    parts = [
        "# Theorems",
        "Each page holds one claim: what it says, what it supposes, the code that runs it, and a verdict on a few "
        "instances, made when the page was. `keytokens verify` runs them all, on more instances. What a verdict means, "
        "and how a claim can fail, is in [theorems that run](../../theory.md); the story that they tell is in "
        "[from counts to margins](../../understand/from-counts-to-margins.md), all letters and words are in "
        "[the glossary](../../glossary.md).",
    ]
    for family, title in FAMILIES.items():
        mine = sorted((claim for claim in every if claim.id.startswith(f"{family}.")), key=_numbered)
        rows = [f"| [{claim.id}]({claim.id}.md) | {plain(claim.says)} |" for claim in mine]
        table = "\n".join(["| claim | says |", "|---|---|", *rows])
        parts += [f"## {title}", plain(LETTERS[family]), table, _toctree([claim.id for claim in mine])]
    return "\n\n".join(parts) + "\n"


def _numbered(claim: Claim[Any]) -> tuple[int, int]:
    """Theorems by their numbers, lemmas by theirs, then the rest as it comes."""
    found = re.search(r"\.(thm|lemma)(\d+)$", claim.id)
    return (["thm", "lemma"].index(found[1]), int(found[2])) if found else (2, 0)


# Reference -----------------------------------------------------------------------------------------------------------


def reference_index() -> str:
    rows = [f"| [{shelf}]({shelf}.md) | {plain(words)} |" for shelf, words in SHELVES.items()]
    head = "# Reference\n\nEvery public name, with its docstring. An example stands at the name, or at the top of the "
    head += "page ([all of these on one page](../../shelves.md)). All of them run in the tests.\n"
    toctree = _toctree([*SHELVES, "../../shelves"])
    return "\n".join([head, "| import from | what is there |", "|---|---|", *rows, "", toctree, ""])


def shelf_page(shelf: str) -> str:
    """A table of the names of a shelf, then each of them."""
    names = public(shelf)
    summary = [f".. currentmodule:: {shelf}", "", ".. autosummary::", "   :nosignatures:", ""]
    summary += [f"   {name}" for name in names if not _is_data(shelf, name)]
    entries = [line for name in names for line in _entry(shelf, name)]
    body = "\n".join([*summary, "", *entries])
    parts = [f"# {shelf}", plain(SHELVES[shelf]), _part_of("shelves", shelf), f"```{{eval-rst}}\n{body}\n```"]
    return "\n\n".join(parts) + "\n"


def _part_of(page: str, name: str) -> str:
    """What a written page says under the mark of a name, included; nothing if it has no such mark."""
    mark = f"<!-- {name} -->"
    if mark not in (DOCS / f"{page}.md").read_text("utf-8"):
        return ""
    return f"```{{include}} ../../{page}.md\n:start-after: {mark}\n:end-before: <!-- end -->\n```"


def _is_data(shelf: str, name: str) -> bool:
    value = getattr(import_module(shelf), name)
    return not inspect.isclass(value) and not inspect.isroutine(value)


def _entry(shelf: str, name: str) -> list[str]:
    if _is_data(shelf, name):
        return [f".. py:data:: {name}", "", *_value(getattr(import_module(shelf), name))]
    once = [] if _first_shelf(shelf, name) == shelf else ["   :no-index:"]
    if inspect.isclass(getattr(import_module(shelf), name)):
        options = ["   :members:", f"   :inherited-members: {INHERITED}", f"   :exclude-members: {HIDDEN}"]
        return [f".. autoclass:: {name}", *options, *once, ""]
    return [f".. autofunction:: {name}", *once, ""]


def _first_shelf(shelf: str, name: str) -> str:
    """Where the index leads if a name lies on several shelves."""
    thing = getattr(import_module(shelf), name)
    return next(other for other in SHELVES if any(getattr(import_module(other), n) is thing for n in public(other)))


def _value(value: Any) -> list[str]:
    shown = ascii(value)
    return ["   ::", "", f"      {shown if len(shown) < 200 else type(value).__name__}", ""]


# Figures and examples ------------------------------------------------------------------------------------------------


def _draw(folder: Path, name: str) -> list[str]:
    """A figure as SVG, and a piece of Markdown that shows it with what was checked. Returns the checks that fail."""
    from keytokens.lab.figures import figures, make

    made = make(figures([name])[0])
    made.write(folder)
    passed = f"{sum(check.passed for check in made.checks)} of {len(made.checks)}"
    checked = f"{passed} numbers checked when this page was built pass. Again: `keytokens figure {name}`."
    caption = f"{plain(made.figure.title)}. {checked}"
    image = f"```{{figure}} /generated/figures/{name}.svg\n:alt: {made.figure.title}\n:target: ../_images/{name}.svg"
    _put(folder / f"{name}.txt", f"{image}\n\n{caption}\n```\n")
    return [f"figure {name}: {check.name} is {check.seen}" for check in made.checks if not check.passed]


def examples() -> list[Path]:
    return sorted(path for path in (ROOT / "examples").glob("*.py") if not path.name.startswith("_"))


def runnable() -> str:
    """A pattern of the examples to run: all but those whose texts are not at hand, which are shown only."""
    data = "KEYTOKENS_DATA"
    kept = [path.stem for path in examples() if data in os.environ or data not in path.read_text("utf-8")]
    return rf"/({'|'.join(kept)})\.py$"


def copy_examples(made: Path) -> None:
    """The examples as sphinx-gallery wants them: under a heading, each with a title."""
    if examples():
        head = ROOT / "examples" / "README.rst"
        _put(made / "examples" / head.name, linked(head.read_text("utf-8")))
    for path in examples():
        _put(made / "examples" / path.name, worded(titled(path.read_text("utf-8"))))


def linked(head: str) -> str:
    """The table of the examples, narrow enough for a phone: a question leads to its page, names of files are gone.

    >>> print(linked("All.\\n\\n=====  =====\\n``spam.py``  What?  demo\\n").splitlines()[-2])
       * - :doc:`What? <spam>`
    """
    rows = re.findall(r"^``(\w+)\.py`` +(.+?)(?:  +(.*?))?$", head, re.MULTILINE)
    table = [".. list-table::", "   :header-rows: 1", "   :widths: 70 30", "", "   * - question", "     - needs"]
    table += [line for stem, asked, needs in rows for line in (f"   * - :doc:`{asked} <{stem}>`", f"     - {needs}")]
    return "\n".join([re.split(r"^=+ +=", head, maxsplit=1, flags=re.MULTILINE)[0], *table, ""])


def titled(source: str) -> str:
    """An example whose docstring begins with an underlined title, as reStructuredText has it.

    >>> print(titled('\"\"\"A question?\\n\\nAn answer.\"\"\"\\nprint(1)').splitlines()[1])
    ===========
    """
    docstring = ast.get_docstring(ast.parse(source), clean=True) or "Example"
    title, _, rest = docstring.partition("\n")
    if rest.startswith("="):
        return source
    body = ast.parse(source).body
    after = source.splitlines()[body[0].end_lineno if ast.get_docstring(ast.parse(source)) else 0 :]
    title = title.rstrip(".")
    return "\n".join([f'r"""{title}', "=" * len(title), rest.rstrip(), '"""', *after]) + "\n"


def worded(source: str) -> str:
    """An example whose text, the comments that follow a cell's mark, holds no bars that reStructuredText would read.

    >>> print(worded("# %%\\n# like 1/|p|\\nx = 1  # |x|"))
    # %%
    # like 1/\\|p\\|
    x = 1  # |x|
    <BLANKLINE>
    """
    found, text = [], False
    for line in source.splitlines():
        text = line.startswith("# %%") or (text and line.startswith("#"))
        found.append(line.replace("|", "\\|") if text else line)
    return "\n".join(found) + "\n"


# Words ---------------------------------------------------------------------------------------------------------------


def plain(words: str) -> str:
    r"""Text that Markdown shows as it is, in one line; what stands between backticks stays code.

    >>> plain("|p|_q <= `a_b`")
    '\\|p\\|\\_q \\<= `a_b`'
    """
    return _coded(" ".join(words.split()), "\\*_<>[]#$~|", "`")


def _coded(words: str, special: str, fence: str) -> str:
    """Words whose special letters are escaped, except between backticks, which become `fence`."""
    pieces = words.split("`")
    whole = len(pieces) % 2 == 1  # otherwise code goes on in the next line: nothing is code, then
    if not whole:
        pieces, special = [words], f"{special}`"
    shown = [piece.translate({ord(letter): f"\\{letter}" for letter in special}) for piece in pieces[::2]]
    glue = ["\\ " if fence == "``" and piece[:1].isalnum() else "" for piece in shown[1:]]
    code = [f"{fence}{piece}{fence}{after}" for piece, after in zip(pieces[1::2], glue, strict=True)]
    return "".join(piece for pair in zip(shown, [*code, ""], strict=True) for piece in pair)


SIGNS = {"alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "eta": "η", "theta": "θ", "lambda": "λ", "mu": "μ"}
SIGNS |= {"nu": "ν", "pi": "π", "rho": "ρ", "sigma": "σ", "phi": "φ", "<=": "≤", ">=": "≥"}
SIGNS |= {name.capitalize(): letter.upper() for name, letter in SIGNS.items() if name.isalpha()}
GREEK = "|".join(name for name in SIGNS if name.isalpha())
MARKS = re.compile(
    r"(?<=[|)])_(?P<norm>op|[A-Za-z*])(?![A-Za-z])"
    rf"|(?<![\w.])(?<![A-Za-z]/)(?P<letter>[A-Za-z]|{GREEK})_(?P<index>\*|[A-Za-z0-9]{{1,5}})(?!\w)"
    r"|(?<![\w.])(?P<word>sum|max|min|freq|value)_(?P<short>[a-z])(?!\w)"
    r"|(?<=[\w|)])\^(?:\((?P<long>[^()]+)\)|\{(?P<braced>[^{}]+)\}|(?P<power>-?[\d.]*\d|[A-Za-z+](?!\w)))"
    rf"|(?<![\w.-])(?P<sign>{GREEK})(?![\w-])|(?P<order><=|>=)"
)
KINDS = {"letter": "", "word": "", "sign": "", "order": "", "norm": "sub", "index": "sub", "short": "sub"}
KINDS |= {"long": "sup", "braced": "sup", "power": "sup"}


def formula(words: str, names: bool = False) -> list[tuple[str, str]]:
    """Words as pieces of kind "", "sub" or "sup": indices go down, powers go up, and where they are not `names` of
    arguments, the names of Greek letters become letters.

    >>> formula("alpha_s |p|_q^2 <= 1/L_p, max_df")
    [('', 'α'), ('sub', 's'), ('', ' |p|'), ('sub', 'q'), ('sup', '2'), ('', ' ≤ 1/L'), ('sub', 'p'), ('', ', max_df')]
    """
    found, at = [], 0
    for match in MARKS.finditer(words):
        found.append(("", words[at : match.start()]))
        parts = [(KINDS[kind], part) for kind, part in match.groupdict().items() if part]
        found += [(kind, part if names and part.isalpha() else SIGNS.get(part, part)) for kind, part in parts]
        at = match.end()
    found.append(("", words[at:]))
    runs = [(kind, "".join(text for _, text in run)) for kind, run in groupby(found, key=itemgetter(0))]
    return [(kind, text) for kind, text in runs if text]


def _toctree(names: list[str]) -> str:
    return "\n".join(["```{toctree}", ":hidden:", "", *names, "```"])


def restructured(lines: list[str]) -> list[str]:
    """A docstring of this package as reStructuredText: examples and formulas as they stand, sections, plain words."""
    found: list[str] = []
    for block in _blocks(lines):
        found += [*_shown(block), ""]
    return found


def _blocks(lines: list[str]) -> Iterator[list[str]]:
    """Runs of lines without a blank one; an example begins a run of its own."""
    block: list[str] = []
    for line in [*lines, ""]:
        begins = line.lstrip().startswith(">>>") and block and not block[0].lstrip().startswith(">>>")
        if block and (not line.strip() or begins):
            yield block
            block = []
        if line.strip():
            block.append(line)


def _shown(block: list[str]) -> list[str]:
    if block[0].lstrip().startswith(">>>"):
        return [line[len(block[0]) - len(block[0].lstrip()) :] for line in block]
    if len(block) > 1 and set(block[1].strip()) == {"-"}:
        return [f".. rubric:: {block[0].strip()}", "", *(_items(block[2:]) if len(block) > 2 else [])]
    if any(line.startswith("  ") or "   " in line.strip() for line in block):
        return ["::", "", *(f"   {line}" for line in block)]
    return [escaped(line) for line in block]


def _items(lines: list[str]) -> list[str]:
    """`name : kind` and what is indented below it, as a list; lines that say no kind stay a paragraph."""
    if not any(" : " in line or line.rstrip().endswith(" :") for line in lines):
        return [escaped(line.strip()) for line in lines]
    found: list[str] = []
    for line in lines:
        if line.startswith(" "):
            found.append(f"  {escaped(line.strip())}")
        else:
            name, _, kind = line.partition(" :")
            found.append(f"* **{escaped(name)}**{':' + escaped(kind) if kind.strip() else ''}")
    return found


def escaped(words: str) -> str:
    r"""Plain words for reStructuredText; what stands between backticks becomes code, *what stands out* still does.

    >>> escaped("`p` and |q|_2, to *add* 2*p*q")
    '``p`` and \\|q\\|\\_2, to *add* 2\\*p\\*q'
    """
    return re.sub(r"(?<![\w*])\\\*([a-zA-Z][a-zA-Z ]*)\\\*(?![\w*])", r"*\1*", _coded(words, "\\*_|", "``"))
