"""The tables that figures draw, at a smaller size: what must come out of each of them."""

import numpy as np
from numpy.testing import assert_allclose

from keytokens.lab.figures.embeddings import token_table
from keytokens.lab.figures.real_texts import by_adam

from .made import made


def test_one_step():
    """In growing dimension every important token moves along v. The figures check the rest."""
    dimensions = made("step").tables["dimensions"]
    assert (np.diff(dimensions["least_cosine"]) > 0).all()
    assert dimensions["least_cosine"][-1] > 0.99


def test_tokens():
    """v'E_s follows the signed difference, p'E_s its size."""
    table = token_table()
    positive, negative, neutral = (table["kind"] == kind for kind in (1, -1, 0))
    assert_allclose(table["b1"] - table["b0"], 100 * table["alpha"], atol=0.3)
    assert table["b1"][positive].min() > table["b1"][neutral].max()
    assert table["b1"][negative].max() < table["b1"][neutral].min()
    assert table["E_p"][~neutral].min() > table["E_p"][neutral].max()
    assert_allclose(table["E_p"], table["form"], atol=0.05)
    assert_allclose(table["alpha"], table["frequency"] * table["delta"], atol=1e-15)


def test_basins():
    basin = made("selection").tables["basin"]
    assert basin["selected"][basin["eta"] == 100].tolist() == [1, 0.5]


def test_dimensions():
    dimensions = made("selection").tables["dimensions"]
    assert dimensions["selected"][0] < 0.9 < dimensions["selected"][1]
    assert dimensions["separable"].tolist() == [0, 1]


def test_adam():
    """The first step has the length of the rate in every coordinate; a bowl is descended, batch by batch."""
    start, rng = (np.array([[0.1]]), np.array([-0.2])), np.random.default_rng(0)
    bowl, seen = lambda batch, E, p: seen.append(len(batch)) or (E, p), []
    E, p = by_adam(rng, *start, 250, bowl, 1)
    assert_allclose([E[0, 0], p[0]], [0.097, -0.197], atol=1e-6)
    E, p = by_adam(rng, *start, 600, bowl, 200)
    assert max(abs(E[0, 0]), abs(p[0])) < 0.01
    assert seen == [250] + 200 * [250, 250, 100]
