"""What holds of every figure, made in small: it passes, is a picture, and can fail."""

from __future__ import annotations

import io
from functools import cache
from xml.etree import ElementTree

import numpy as np

from keytokens.lab.figures import figures, make


@cache
def made(name):
    return make(figures([name])[0], small=True)


class FigureLaws:
    """Inherit, and parametrise `name`."""

    def test_every_check_passes(self, name):
        checks = made(name).checks
        assert checks
        assert [f"{check.name}: {check.seen}, expected {check.wanted}" for check in checks if not check.passed] == []

    def test_pictures(self, name):
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


class CanFail(FigureLaws):
    """... and a wrong number is noticed."""

    enough = staticmethod(any)  # of the ways to be wrong; some figures are about signs alone

    def test_wrong_tables_fail(self, name):
        """Numbers with the wrong sign, or half as large again; truths turned round."""
        figure, tables = made(name).figure, made(name).tables

        def noticed(wrong):
            spoilt = {key: {column: _spoilt(wrong, x) for column, x in one.items()} for key, one in tables.items()}
            with np.errstate(invalid="ignore"):  # shares above 1 have no spread
                return not all(check.passed for check in figure.checks(spoilt))

        assert self.enough(noticed(wrong) for wrong in (lambda x: -x, lambda x: 1.5 * x + 0.1))


def _spoilt(wrong, values):
    if values.dtype.kind == "f":
        return wrong(values)
    return ~values if values.dtype.kind == "b" else values
