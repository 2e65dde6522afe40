"""The page in one string: hand-written modules joined into one script, and data as text beside it.

`write_report` puts a model and labelled texts into one file. Nothing is
loaded and nothing may be: the policy allows exactly this script and this style, by their hashes.

Where the data come from can be swapped. `static/source.js` asks for three containers, `model`, `overview` and
`documents`; each is what `pack.pack` returns. A report carries them inside itself, in base64. A server gives
`explorer_page(title, source="some/path/")` to the browser and answers `GET some/path/model`, `.../overview` and
`.../documents` with the same bytes as `application/octet-stream`; the policy then allows requests to the page's own
origin and to no other. Nothing else changes.
"""

from __future__ import annotations

import base64
import functools
import html
import posixpath
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...base.files import write_whole
from ...estimators.evaluation import evaluate, stored
from ...estimators.text import KeyTokenClassifier
from ...explain.html import shell, static_text
from .budget import MOST_BYTES, MOST_TEXTS, fit
from .overview import overview
from .pack import pack

PARTS = ("model", "overview", "documents")
_MAIN = "app.js"
_IMPORT = re.compile(r'^import \{[^}]*\} from "(\.\.?/[a-z/]+\.js)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export ", re.MULTILINE)


_read = functools.partial(static_text, __package__)


@functools.cache
def modules(*mains: str) -> tuple[str, ...]:
    """The modules of the page, or those that some of them need, each after those it imports."""
    order: list[str] = []

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, f"modules import each other: {path}"
        if name not in order:
            for other in _IMPORT.findall(_read(name)):
                visit(posixpath.normpath(posixpath.join(posixpath.dirname(name), other)), (*path, name))
            order.append(name)

    for main in mains or (_MAIN,):
        visit(main, ())
    return tuple(order)


@functools.cache
def script(*mains: str) -> str:
    """All modules as one: names are unique across them (a test says so), so imports and exports can go."""
    return "\n" + "\n".join(_EXPORT.sub("", _IMPORT.sub("", _read(name))) for name in modules(*mains))


@functools.cache
def style() -> str:
    return "\n" + _read("page.css")


def explorer_page(title: str, contents: Mapping[str, bytes] | None = None, source: str = "", home: str = "") -> str:
    """The page with its data inside (`contents`, containers by name), or with a place to ask for them.

    `home` is where a link on the page leads back to, for a server that has more than one page.
    """
    data = [
        f'<script type="text/plain" id="kt-{name}">{base64.b64encode((contents or {})[name]).decode()}</script>'
        for name in PARTS
        if contents and name in contents
    ]
    where = f'<meta name="keytokens-source" content="{html.escape(source)}">\n' if source else ""
    body = _read("body.html").strip()
    if home:
        body = body.replace("<nav ", f'<a class="small" href="{html.escape(home)}">All models</a>\n<nav ', 1)
    allow = "connect-src 'self'" if source else ""
    return shell(title, "\n".join([body, *data]), style(), script=script(), allow=allow, head=where)


def explorer_parts(
    clf: KeyTokenClassifier,
    title: str,
    texts: Sequence[str] = (),
    labels: Sequence[Any] = (),
    *,
    max_texts: int = MOST_TEXTS,
    max_tokens: int | None = None,
    max_bytes: int | None = MOST_BYTES,
) -> tuple[dict[str, bytes], dict[str, Any]]:
    """The containers of the page by name, and the numbers of its first view; see `budget` for what is left out.

    Without texts the score is the one that the model keeps, on the texts that it keeps, if any.
    """
    if not len(texts) and clf.unseen_ is not None and clf.unseen_.texts:
        texts, labels = clf.unseen_.texts, clf.classes_[clf.unseen_.given].tolist()
    found = evaluate(clf, texts, labels) if len(texts) else stored(clf)
    fitted = fit(clf, texts, found, max_texts=max_texts, max_tokens=max_tokens, max_bytes=max_bytes)
    facts = {
        **overview(found),
        "title": title,
        "note": "",
        "texts": len(texts),
        "shown": len(fitted.rows),
        "tokens": len(fitted.clf.vocabulary_),
        "tokens_of": len(clf.vocabulary_),
        "left_out": fitted.left_out,
        "about": {**(clf.about_ or {}), "calibrated": clf.calibrated_},
    }
    return {**fitted.parts, "overview": pack(facts)}, facts


def write_report(
    path: Path, clf: KeyTokenClassifier, texts: Sequence[str], labels: Sequence[Any], title: str, **limits: Any
) -> dict[str, Any]:
    """Write the page, whole or not at all; returns its numbers with `bytes`, the size of the file."""
    contents, facts = explorer_parts(clf, title, texts, labels, **limits)
    content = explorer_page(title, contents).encode("utf-8")
    write_whole(path, content)
    return {**facts, "page": str(path), "bytes": len(content)}
