"""Figures made in small, each once for all tests."""

from functools import cache

from keytokens.lab.figures import Made, figures, make


@cache
def made(name: str) -> Made:
    return make(figures([name])[0], small=True)
