"""The figures of attention by a matrix, and figures that are a sample of the published size."""

import numpy as np
import pytest

from keytokens.app.cli import figure as command
from keytokens.app.cli.app import run
from keytokens.lab.figures import Figure, figures, make, table
from keytokens.lab.figures.matrices import _near
from keytokens.lab.figures.tables import standard_error

from .made import made


def test_sampled_figures_have_a_published_size():
    sampled = ["matrix-rank", "matrix-global", "matrix-several", "mirror-norms"]
    assert [one.name for one in figures() if one.full is not None] == sampled


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
        draw=lambda tables, *panels: whole.draw(made("matrix-rank").tables, *panels),
        checks=lambda tables: [],
        full=lambda: sized(3),
        sheet=whole.sheet,
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
