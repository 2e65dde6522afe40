"""How a browser and a terminal read what was rendered."""

import re
from html.parser import HTMLParser

from hypothesis import strategies as st

_TAGS = """
    html head meta title style body main article section div p h1 h2 b span mark bdi details summary
    table thead tbody tr th td svg rect
"""
_ATTRIBUTES = """
    lang charset http-equiv content name class role aria-level aria-hidden scope title dir viewbox
    preserveaspectratio width height x y
"""
TAGS, ATTRIBUTES = set(_TAGS.split()), set(_ATTRIBUTES.split())
VOID = {"meta"}

_KNOWN = "a great film dull good bad plot odd 好 看 weird acting and really , . !"
known = st.sampled_from([*_KNOWN.split(), "\n", "\r\n", "\t"])
hostile = st.sampled_from(
    [
        "<script>alert(1)</script>",
        "</div></main>",
        "<img src=x onerror=alert(1)>",
        "\" title='x'",
        "&lt;b&gt; & &amp;",
        "]]><!--",
        "-->",
        "</style>",
        "\x00\x07\x1b[2J\x1b]0;owned\x07",
        "\x9b31m",
        "\ud800",
        "\udc00\ud800",
        "\u202eabc\u202c",
        "שלום עולם",
        "👩‍👩‍👧 e\u0301",
        "\ufffe\uffff",
        "http://example.org/ javascript:alert(1)",
        "\x85\u2028\u2029",
        "great" * 50,
    ]
)
anything = st.text(st.characters(exclude_categories=()), max_size=8)
texts = st.lists(known | hostile | anything, max_size=12).map(" ".join)
sources = st.sampled_from(["two", "two, no sink", "three", "three, no sink", "integers", "booleans", "hostile labels"])


class Reader(HTMLParser):
    """Follows the tags; refuses what a page of ours never holds; keeps the visible text of each class."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[tuple[str, str]] = []
        self.text: dict[str, list[str]] = {}
        self.titles: list[str] = []
        self.everything = ""
        self.feed(page)
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        assert tag in TAGS, f"foreign tag {tag}"
        assert ATTRIBUTES.issuperset(given), f"foreign attribute in {given}"
        if tag not in VOID:
            self.open.append((tag, given.get("class", "")))
            self.text.setdefault(given.get("class", ""), []).append("")
        self.titles += [given["title"]] if "title" in given else []

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"{tag} was not open"
        opened, _ = self.open.pop()
        assert opened == tag, f"{opened} closed by {tag}"

    def handle_data(self, data: str) -> None:
        if any(tag == "style" for tag, _ in self.open):
            return
        self.everything += data
        for _, name in self.open:
            self.text[name][-1] += data

    def handle_decl(self, decl: str) -> None:
        assert decl == "DOCTYPE html"

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")

    def handle_pi(self, data: str) -> None:
        raise AssertionError(f"an instruction: {data}")

    def unknown_decl(self, data: str) -> None:
        raise AssertionError(f"a declaration: {data}")


def without_style(output: str) -> str:
    """What is left of coloured text once the colours are gone."""
    return re.sub(r"\x1b\[[0-9;]*m", "", output)


def without_brackets(output: str) -> str:
    """What is left of plain text once the brackets are gone."""
    return re.sub(r"(?:\[\{|\[|\{)[+-]|\}\]|\]|\}", "", output)


def blank(text: str) -> str:
    """Line ends and blanks alike: a terminal breaks lines where it must."""
    return re.sub(r"[ \t\n]", " ", text)
