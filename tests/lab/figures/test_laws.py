"""What holds of every figure, made in small: it passes, is a picture, and can fail."""

import io
from xml.etree import ElementTree

import numpy as np
import pytest

from keytokens.lab.figures import figures, make
from keytokens.lab.figures.look import pictures

from .made import made

FAMILIES = {one.name: one.compute.__module__.rpartition(".")[2] for one in figures()}
NAMES = [name for name, family in FAMILIES.items() if family not in ("real_texts", "several_classes")]


@pytest.mark.parametrize("name", NAMES)
def test_every_check_passes(name):
    checks = made(name).checks
    assert checks
    assert [f"{check.name}: {check.seen}, expected {check.wanted}" for check in checks if not check.passed] == []


@pytest.mark.parametrize("name", NAMES)
def test_pictures(name):
    from matplotlib.image import imread

    drawn = made(name).pictures
    image = imread(io.BytesIO(drawn.png))
    assert image.shape[0] > 300
    assert image.shape[1] > 600
    assert 0.02 < (image[..., :3].min(axis=2) < 0.9).mean() < 0.8, "neither empty nor black"
    root = ElementTree.fromstring(drawn.svg)
    assert root.tag.endswith("svg")
    words = " ".join("".join(text.itertext()) for text in root.iter("{http://www.w3.org/2000/svg}text"))
    assert len(words) > 20, "axes have names, and text is text"


@pytest.mark.parametrize("name", [name for name in NAMES if FAMILIES[name] != "embeddings"])
def test_wrong_tables_fail(name):
    """Numbers with the wrong sign, or half as large again; truths turned round. Some figures are about signs alone."""
    figure, tables = made(name).figure, made(name).tables

    def noticed(wrong):
        spoilt = {key: {column: _spoilt(wrong, x) for column, x in one.items()} for key, one in tables.items()}
        with np.errstate(invalid="ignore"):  # shares above 1 have no spread
            return not all(check.passed for check in figure.checks(spoilt))

    enough = all if name.startswith("matrix") else any
    assert enough(noticed(wrong) for wrong in (lambda x: -x, lambda x: 1.5 * x + 0.1))


def _spoilt(wrong, values):
    if values.dtype.kind == "f":
        return wrong(values)
    return ~values if values.dtype.kind == "b" else values


@pytest.mark.parametrize("name", ["1c", "8", "9a"])
def test_pictures_are_the_same_bytes_each_time(name):
    """Hatches, clips and markers have names in an SVG; they must not be random."""
    figure, tables = made(name).figure, made(name).tables
    assert pictures(figure, tables) == made(name).pictures


def test_tables_are_the_same_bytes_each_time():
    again = make(figures(["4b"])[0], small=True)
    assert again.files == made("4b").files
