"""The figures of attention by a matrix, in small: they pass, can fail, and are pictures."""

from __future__ import annotations

import io
from functools import cache
from xml.etree import ElementTree

import numpy as np
import pytest

from keytokens.cli import figure as command
from keytokens.cli.app import run
from keytokens.figures import Figure, figures, make, table
from keytokens.figures.cross_runs import standard_error
from keytokens.figures.plane_walks import _near

NAMES = ("matrix-paths", "matrix-lines", "matrix-local", "matrix-rank", "matrix-global", "matrix-several")


@cache
def made(name):
    return make(figures([name])[0], small=True)


@pytest.mark.parametrize("name", NAMES)
def test_every_check_passes(name):
    checks = made(name).checks
    assert checks
    assert [f"{check.name}: {check.seen}, expected {check.wanted}" for check in checks if not check.passed] == []


@pytest.mark.parametrize("name", NAMES)
def test_wrong_tables_fail(name):
    """Numbers with the wrong sign, or half as large again."""
    figure, tables = made(name).figure, made(name).tables
    for wrong in (lambda x: -x, lambda x: 1.5 * x + 0.1):
        spoilt = {
            key: {column: wrong(x) if x.dtype.kind == "f" else x for column, x in one.items()}
            for key, one in tables.items()
        }
        with np.errstate(invalid="ignore"):  # shares above 1 have no spread
            assert not all(check.passed for check in figure.checks(spoilt))


@pytest.mark.parametrize("name", NAMES)
def test_pictures(name):
    from matplotlib.image import imread

    drawn = made(name).pictures
    image = imread(io.BytesIO(drawn.png))
    assert image.shape[0] > 300
    assert image.shape[1] > 600
    assert 0.02 < (image[..., :3].min(axis=2) < 0.9).mean() < 0.8, "neither empty nor black"
    root = ElementTree.fromstring(drawn.svg)
    words = " ".join("".join(text.itertext()) for text in root.iter("{http://www.w3.org/2000/svg}text"))
    assert len(words) > 20, "axes have names, and text is text"


def test_sampled_figures_have_a_published_size():
    assert [one.name for one in figures(NAMES) if one.full is not None] == [
        "matrix-rank",
        "matrix-global",
        "matrix-several",
    ]


def test_full_is_made_on_demand():
    """A figure with and one without a larger version."""
    whole = made("matrix-rank").figure

    def sized(size):
        return {"runs": table(size=np.array([size]))}

    sample = Figure(
        name="sample",
        title="A sample",
        caption="",
        compute=lambda small: sized(1 if small else 2),
        draw=lambda tables: whole.draw(made("matrix-rank").tables),
        checks=lambda tables: [],
        full=lambda: sized(3),
    )
    sizes = [make(sample, small, full).tables["runs"]["size"][0] for small, full in ((1, 0), (0, 0), (0, 1), (1, 1))]
    assert sizes == [1, 2, 3, 3]


def test_the_command_asks_for_the_published_size(monkeypatch, tmp_path, capsys):
    asked = []

    def spy(figure, small=False, full=False):
        asked.append(full)
        return made("matrix-rank")

    monkeypatch.setattr(command, "make", spy)
    for extra in ([], ["--full"]):
        assert run(["figure", "matrix-rank", *extra, "-o", str(tmp_path)]) == 0
    assert asked == [False, True]
    assert "matrix-rank" in capsys.readouterr().out


def test_radius_is_a_logarithm_and_directions_are_kept():
    points = np.array([[3.0, 4.0], [0.0, 0.0], [-1e4, 0.0]])
    drawn = _near(points)
    np.testing.assert_allclose(np.linalg.norm(drawn, axis=1), np.log1p([5.0, 0.0, 1e4]))
    np.testing.assert_allclose(drawn[0] / np.linalg.norm(drawn[0]), [0.6, 0.8])


def test_the_error_of_a_difference_of_means():
    rng = np.random.default_rng(0)
    samples = rng.normal(size=(2000, 30))
    apart = samples[:1000].mean(axis=1) - samples[1000:, :10].mean(axis=1)
    assert standard_error(samples[0], 10) == pytest.approx(apart.std(), rel=0.4)
    assert standard_error(samples[0]) == pytest.approx(1 / np.sqrt(30), rel=0.4)
