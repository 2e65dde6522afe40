"""Every example of the gallery runs, has the form of one, and ends in the number that stands here."""

import ast
import re
import runpy
from pathlib import Path
from typing import NamedTuple

import pytest

FOLDER = Path(__file__).parent.parent / "examples"
SCRIPTS = sorted(FOLDER.glob("*.py"))


class Expected(NamedTuple):
    """A number, and how far an example may be from it: room for other versions of the libraries."""

    answer: float
    tolerance: float
    needs: str = ""  # a fixture without which the example cannot run


EXPECTED = {
    "bags_of_vectors": Expected(1.0, 0.03),
    "broken_theorem": Expected(1 + 10 / 10_100**0.5, 1e-3),  # the directions (-0.1, 1) and (1, 0)
    "comparing_models": Expected(4.0, 0.7, "imdb"),
    "distilling": Expected(0.33, 0.12),
    "formal_against_sampled": Expected(0.85, 0.15, "imdb"),
    "frequent_but_irrelevant": Expected(8, 0),
    "multiclass": Expected(32, 2),
    "plot_brevity": Expected(0.88, 0.06, "imdb"),
    "plot_figure_1": Expected(2.308, 0.01),
    "plot_regularisation_path": Expected(8.72e-6, 0.05e-6),
    "sentiment": Expected(0.040, 0.006, "imdb"),
    "spam": Expected(2.94, 0.15),
    "topics": Expected(0.482, 0.04, "data_folder"),
    "wrong_labels": Expected(0.76, 0.06, "imdb"),
}


@pytest.fixture
def no_window(monkeypatch):
    """Pictures are drawn and thrown away."""
    monkeypatch.setenv("MPLBACKEND", "Agg")
    yield
    from matplotlib import pyplot

    pyplot.close("all")


@pytest.mark.parametrize("name", EXPECTED)
def test_answer(name, request, capsys):
    expected = EXPECTED[name]
    if expected.needs:
        request.getfixturevalue(expected.needs)
    if name.startswith("plot_"):
        request.getfixturevalue("no_window")
    answer = runpy.run_path(str(FOLDER / f"{name}.py"))["answer"]
    assert answer == pytest.approx(expected.answer, rel=0, abs=expected.tolerance)
    said = [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?(?:e-?\d+)?", capsys.readouterr().out)]
    shown = [answer, 100 * answer]  # as it is, or in percent
    assert any(number == pytest.approx(x, rel=0.02) for number in said for x in shown), "the answer is printed"


def test_all_are_here():
    assert [path.stem for path in SCRIPTS] == sorted(EXPECTED)
    assert len(SCRIPTS) >= 12


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_form(path):
    """A title with its rule, then two sentences; cells; short; `plot_` where it draws and nowhere else."""
    source = path.read_text("utf-8")
    assert len(source.splitlines()) < 90
    title, rule, blank, *story = (ast.get_docstring(ast.parse(source)) or "").splitlines()
    assert rule == "=" * len(title)
    assert blank == ""
    assert title.endswith("?")
    assert len(re.findall(r"[.?](?=\s|$)", "\n".join(story))) == 2
    assert source.count("\n# %%\n") >= 3
    assert ("matplotlib" in source) == path.stem.startswith("plot_")


def test_the_list_names_every_example():
    listed = re.findall(r"``(\w+)\.py``", (FOLDER / "README.rst").read_text("utf-8"))
    assert listed == [path.stem for path in SCRIPTS]
