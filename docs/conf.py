"""Sphinx: the pages in this folder, and those that `generate` makes. Nothing is fetched, at build time or by a page."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import generate

from keytokens import __version__

project = "keytokens"
author = "the keytokens developers"
project_copyright = "the keytokens developers"
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary"]
if generate.examples():
    extensions.append("sphinx_gallery.gen_gallery")
exclude_patterns = ["generated/examples"]
nitpicky = True
nitpick_ignore_regex = [("py:.*", ".*")]  # types in signatures: numpy's and our own inner ones have no page here
suppress_warnings = ["toc.empty_glob", "config.cache"]  # pages that are not written yet; functions in the configuration

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
highlight_language = "none"  # a block that names no language is a picture or a formula
autosummary_generate = False
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
maximum_signature_line_length = 100
toc_object_entries_show_parents = "hide"
smartquotes = False  # W' is a transposed matrix
python_use_unqualified_type_names = True

sphinx_gallery_conf = {
    "examples_dirs": "generated/examples",
    "gallery_dirs": "generated/gallery",
    "filename_pattern": generate.runnable(),
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "abort_on_example_error": False,
    "min_reported_time": 1,
    "remove_config_comments": True,
}

html_theme = "pydata_sphinx_theme"
html_title = "keytokens"
html_theme_options = {
    "logo": {"text": "keytokens"},
    "navbar_align": "left",
    "show_prev_next": True,
    "show_toc_level": 1,
    "header_links_before_dropdown": 8,
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}
html_static_path = ["static"]
html_css_files = ["site.css"]
html_sidebars = {"start": []}
html_show_sourcelink = False
html_copy_source = False


def setup(app: Any) -> None:
    app.connect("autodoc-process-docstring", _docstring)
    app.connect("builder-inited", _generate, priority=1)  # before the gallery looks for its examples
    app.connect("doctree-read", _formulas)


def _generate(app: Any) -> None:
    """Make the generated pages; a claim or a figure that fails is a warning, and warnings are errors."""
    from sphinx.util.logging import getLogger

    for line in generate.write():
        getLogger(__name__).warning(line)


def _docstring(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    lines[:] = generate.restructured(lines)


def _formulas(app: Any, document: Any) -> None:
    """Indices below and powers above the line, wherever words are not code, a heading or a signature."""
    from docutils import nodes

    if app.env.docname.startswith("generated/gallery/"):  # a block without a language is what a script has printed
        return
    names = app.env.docname.startswith("generated/reference/")
    for text in list(document.findall(nodes.Text)):
        pieces = generate.formula(text.astext(), names)
        if pieces != [("", text.astext())] and _is_prose(text.parent):
            text.parent.rawsource = ""  # of a block: it is not to be coloured as code
            text.parent.replace(text, [_piece(kind, words) for kind, words in pieces])


def _is_prose(node: Any) -> bool:
    from docutils import nodes
    from sphinx import addnodes

    code = (nodes.literal, nodes.literal_block, nodes.doctest_block, nodes.raw, addnodes.desc_signature)
    apart = (*code, nodes.title, nodes.reference)
    while node is not None and not isinstance(node, apart):
        node = node.parent
    return node is None or (isinstance(node, nodes.literal_block) and node.get("language", "none") == "none")


def _piece(kind: str, words: str) -> Any:
    from docutils import nodes

    if not kind:
        return nodes.Text(words)
    made = nodes.subscript() if kind == "sub" else nodes.superscript()
    return made.__class__("", "", *[_piece(*part) for part in generate.formula(words)])
