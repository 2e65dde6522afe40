"""Checks, files, pictures, the page and the command: what every figure rests on."""

import base64
import csv
import hashlib
import io
import json
import re
import subprocess
import sys
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser

import numpy as np
import pytest

from keytokens.app.cli import figure as command
from keytokens.app.cli.app import run
from keytokens.base.errors import InputError, MissingExtra
from keytokens.lab.figures import Check, Figure, Made, figures, index_page, make, summary, table
from keytokens.lab.figures.figure import OURS, Rule, csv_bytes, numbered_notes
from keytokens.lab.figures.look import STYLES

EVIL = "<script>alert('x')</script>\"&"


@cache
def drawn(measured: float = 1.0, name: str = "toy", text: str = "a line") -> Made:
    return make(toy(measured, name, text))


def toy(measured: float = 1.0, name: str = "toy", text: str = "a line") -> Figure:
    def draw(tables, axes):
        axes.plot(tables["line"]["x"], tables["line"]["y"], **STYLES[0].all, label="line")
        axes.set_xlabel("x axis")
        axes.legend()

    return Figure(
        name=name,
        title=text,
        caption=f"{text}.",
        compute=lambda small: {"line": table(x=[0, 1], y=[0.0, measured])},
        draw=draw,
        checks=lambda tables: [Check("end", tables["line"]["y"][-1], 1.0, 0.1, OURS, text)],
    )


# Checks


@pytest.mark.parametrize(
    "rule, measured, passed",
    [
        (Rule.EQUAL, 1.09, True),
        (Rule.EQUAL, 0.91, True),
        (Rule.EQUAL, 1.11, False),
        (Rule.EQUAL, 0.89, False),
        (Rule.AT_LEAST, 0.91, True),
        (Rule.AT_LEAST, 9.0, True),
        (Rule.AT_LEAST, 0.89, False),
        (Rule.AT_MOST, 1.09, True),
        (Rule.AT_MOST, -9.0, True),
        (Rule.AT_MOST, 1.11, False),
        *((rule, np.nan, False) for rule in Rule),
    ],
)
def test_a_check_passes_on_one_side_only(rule, measured, passed):
    check = Check("x", measured, 1.0, 0.1, OURS, rule=rule)
    assert check.passed is passed
    assert check.verdict == ("pass" if passed else "FAIL")
    assert json.dumps(check.to_dict(), allow_nan=False)


def test_a_printed_number_has_the_tolerance_of_its_last_digit():
    assert Check.printed("x", 19.7559, "19.75", OURS).passed
    assert not Check.printed("x", 19.7561, "19.75", OURS).passed
    assert Check.printed("x", -47.05, "-47.0", OURS).passed
    assert Check.printed("x", 7.5, "7", OURS).tolerance == 0.6


def test_notes_are_numbered_once():
    checks = [Check("a", 1, 1, 0, OURS, "one"), Check("b", 1, 1, 0, OURS), Check("c", 1, 1, 0, OURS, "two")]
    assert numbered_notes([*checks, *checks]) == ["one", "two"]


def test_tables_are_columns_of_one_length():
    with pytest.raises(ValueError, match="columns of different shapes"):
        table(a=[1, 2], b=[1])
    content = csv_bytes(table(n=[1, 2], x=[0.1, np.nan], ok=[True, False], name=["a,b", "c"])).decode()
    rows = list(csv.reader(io.StringIO(content)))
    assert rows == [["n", "x", "ok", "name"], ["1", "0.1", "True", "a,b"], ["2", "nan", "False", "c"]]


# Pictures and files


def test_files_are_the_same_bytes_each_time(tmp_path):
    first, second = drawn(), make(toy())
    assert first.files == second.files
    assert set(first.files) == {"toy.csv", "toy.png", "toy.svg"}
    assert first.files["toy.png"].startswith(b"\x89PNG\r\n\x1a\n")
    svg = first.files["toy.svg"].decode()
    assert "x axis</text>" in svg, "text stays text"
    assert not re.search(r"dc:date|\d{4}-\d\d-\d\dT", svg)
    written = first.write(tmp_path / "deep" / "folder")
    assert {path.name: path.read_bytes() for path in written} == first.files
    assert len(list((tmp_path / "deep" / "folder").iterdir())) == 3, "nothing else is left behind"


def test_several_tables_have_names_of_their_own():
    two = replace(toy(), compute=lambda small: {"line": table(x=[0], y=[1.0]), "more": table(z=[1])})
    assert [name for name in make(two).files if name.endswith("csv")] == ["toy-line.csv", "toy-more.csv"]


def test_the_reader_s_settings_neither_matter_nor_change():
    import matplotlib

    expected = drawn().files
    with matplotlib.rc_context({"lines.linewidth": 9.0, "font.size": 30.0, "svg.hashsalt": "other"}):
        assert make(toy()).files == expected
        assert matplotlib.rcParams["lines.linewidth"] == 9.0
        assert matplotlib.rcParams["svg.hashsalt"] == "other"


def test_no_state_of_pyplot_and_no_matplotlib_before_it_is_needed():
    code = (
        "import sys; from keytokens.lab.figures import figures, make; found = figures(); "
        "assert not any(m.startswith('matplotlib') for m in sys.modules), 'too early'; "
        "make(found[[f.name for f in found].index('4b')], small=True); "
        "assert 'matplotlib.figure' in sys.modules; assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_styles_differ_without_colour():
    assert len({str(style.linestyle) for style in STYLES}) == len({style.marker for style in STYLES}) == len(STYLES)


# The gallery


def test_names_and_captions():
    found = figures()
    assert len({figure.name for figure in found}) == len(found)
    for figure in found:
        assert re.fullmatch(r"[a-z0-9-]+", figure.name), "it begins the names of files"
        assert figure.title
        assert len(figure.caption) > 80
        assert "  " not in figure.caption, "a line of the caption was joined without care"
    assert [figure.name for figure in figures(["3c", "1a", "3c"])] == ["3c", "1a"]


def test_the_order_does_not_depend_on_what_is_imported_first():
    order = "; print(*(one.name for one in figures()))"
    last = "from keytokens.lab.figures import figures, real_texts, mirrors, joint" + order
    told = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        for code in ("from keytokens.lab.figures import figures" + order, last)
    ]
    assert told[0] == told[1]
    assert told[0].startswith("1a 1b 1c")


def test_an_unknown_name_is_refused_with_the_known_ones():
    with pytest.raises(InputError, match=r"figure: `NAME` must be one of 1a, 1b, .*; saw '2z'"):
        figures(["1a", "2z"])


# The page


class _Reader(HTMLParser):
    VOID = ("meta", "img")

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.text = ""
        self.feed(page)
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.text += data


def test_the_page_shows_everything_and_fetches_nothing():
    good, bad = drawn(name="good"), drawn(2.0, "bad", EVIL)
    page = index_page([good, bad])
    assert page == index_page([replace(good, seconds=99.0), bad]), "the same bytes, however long it took"
    read = _Reader(page)
    assert EVIL in read.text, "shown as it is"
    assert "<script" not in page
    for word in ("url(", "@import", "http:", "https:", "<link", "style=", "onload"):
        assert word not in page
    assert "2 figures, 2 checks: 1 fail, in bad." in read.text
    assert "FAIL" in read.text
    assert "1 ± 0.1" in read.text
    images = [attrs for tag, attrs in read.tags if tag == "img"]
    assert [base64.b64decode(image["src"].partition(",")[2]) for image in images] == [
        good.pictures.png,
        bad.pictures.png,
    ]
    assert all(image["alt"] and int(image["width"]) > 300 for image in images)
    links = {attrs["href"] for tag, attrs in read.tags if tag == "a"}
    assert {"#good", "#bad", "good.csv", "bad.svg"} <= links
    assert {"good", "bad"} <= {attrs.get("id") for _, attrs in read.tags}


def test_the_policy_allows_the_styles_and_the_pictures_and_nothing_else():
    page = index_page([drawn()])
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    styles = re.findall("<style>(.*?)</style>", page, re.DOTALL)
    hashes = [f"'sha256-{base64.b64encode(hashlib.sha256(one.encode()).digest()).decode()}'" for one in styles]
    expected = f"default-src 'none'; style-src {' '.join(hashes)}; img-src data:; base-uri 'none'; form-action 'none'"
    assert policy is not None
    assert policy.group(1) == expected


def test_the_summary_counts():
    good, bad = drawn(name="good"), drawn(2.0, "bad")
    assert summary([good]) == "1 figure, 1 check: all pass."
    assert summary([good, bad, bad]) == "3 figures, 3 checks: 2 fail, in bad, bad."


# The command


@pytest.fixture
def gallery(monkeypatch, tmp_path):
    """Two toy figures instead of the real ones, in a folder of their own."""
    known = {"good": toy(name="good"), "bad": toy(measured=2.0, name="bad")}
    monkeypatch.setattr(command, "figures", lambda names=(): [known[name] for name in names or ["good"]])
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_figure_that_passes(gallery, capsys):
    assert run(["figure", "good"]) == 0
    out = capsys.readouterr().out
    assert "pass  end: 1, expected 1 ± 0.1 (ours) [1]" in out
    assert "[1] a line" in out
    assert "1 figure, 1 check: all pass." in out
    assert sorted(path.name for path in (gallery / "figures").iterdir()) == ["good.csv", "good.png", "good.svg"]


def test_a_figure_that_fails(gallery, capsys):
    assert run(["figure", "good", "bad", "-o", "here"]) == 1
    out = capsys.readouterr().out
    assert "FAIL  end: 2, expected 1 ± 0.1" in out
    assert "2 figures, 2 checks: 1 fail, in bad." in out
    assert (gallery / "here" / "bad.png").exists(), "what fails is shown too"
    assert not (gallery / "here" / "index.html").exists()


def test_all_writes_the_page(gallery, capsys):
    assert run(["figure", "--all", "-o", "here"]) == 0
    assert "page: here/index.html" in capsys.readouterr().out
    assert "good" in _Reader((gallery / "here" / "index.html").read_text("utf-8")).text


def test_json_is_one_document_and_nothing_else(gallery, capsys):
    assert run(["figure", "bad", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["passed"] is False
    assert found["page"] is None
    (one,) = found["figures"]
    assert one["name"] == "bad"
    assert one["files"] == ["bad.csv", "bad.png", "bad.svg"]
    assert one["checks"][0]["measured"] == 2.0
    assert one["checks"][0]["passed"] is False


def refused(capsys, *arguments):
    assert run(["figure", *arguments]) == 2
    seen = capsys.readouterr()
    assert seen.out == ""
    assert seen.err.count("\n") == 1, "one line, no more"
    return seen.err


def test_refusals(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert "figure: `NAME` must be one of 1a, 1b" in refused(capsys, "2z")
    assert "`NAME` must be given" in refused(capsys)
    assert "left out where --all is given" in refused(capsys, "1a", "--all")
    assert list(tmp_path.iterdir()) == []


def test_output_that_cannot_be_written(gallery, capsys):
    (gallery / "file").write_text("a file, not a folder")
    assert "cannot write 'file': not a directory" in refused(capsys, "good", "-o", "file")
    assert (gallery / "file").read_text() == "a file, not a folder"


def test_the_list(capsys):
    assert run(["figure", "--list"]) == 0
    out = capsys.readouterr().out
    assert all(f"{figure.name} " in out and figure.title in out for figure in figures())
    assert run(["figure", "--list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["figures"][0]["name"] == "1a"


def test_without_matplotlib_the_extra_is_named_before_any_work(gallery, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.backends", None)
    monkeypatch.setitem(sys.modules, "matplotlib.backends.backend_agg", None)
    assert "pip install 'keytokens[plot]'" in refused(capsys, "good")
    assert not (gallery / "figures").exists()
    with pytest.raises(MissingExtra):
        make(toy())
