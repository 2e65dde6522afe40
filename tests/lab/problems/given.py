"""A head given by two functions, to have one that the laboratory does not know."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from keytokens.lab.problems.heads import Head


@dataclass(frozen=True, eq=False)
class Given(Head):
    """psi as two functions of points (n, m): values (n,) and gradients (n, m)."""

    psi: Callable
    slope: Callable
    name: str = "given"

    def value(self, z):
        return np.asarray(self.psi(z), np.float64)

    def gradient(self, z):
        return np.asarray(self.slope(z), np.float64)
