"""What a head loses with the attention outside the optimal sets: the bounds behind the path theorem for sets.

q_i is the attention of bag i outside its set and nu_i = f_i at q_i = 0. Where for every attention

least_i q_i <= nu_i - f_i <= most_i q_i        (`Falls`)

the loss is squeezed, C_minus q_max <= L - L* <= C_plus q_max, so L is small where q_max is, and only there. The same in
the form of the published lemma, for nu_i > 0: f_i = nu_i (1 - q_i) + Z_i with bounds on Z_i (`Decomposition`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.bags import Vector
from ..core.heads import HeadProblem, Limit
from ..core.margin_losses import MarginLoss, check_loss
from ..errors import refusal
from ..validate import check_number, floats

__all__ = ["Decomposition", "Falls", "decomposition", "falls"]

ROUNDING = 1e-12  # taken off every bound


@dataclass(frozen=True, eq=False)
class Falls:
    """least_i q_i <= nu_i - f_i <= most_i q_i for every attention; only bags with a token outside their set.

    >>> from keytokens.core.heads import HeadProblem, Tanh
    >>> found = falls(HeadProblem.of([1], [[[1.0], [0.0]]], Tanh(np.ones(1)), [[[1.0], [0.0]]]))
    >>> found.nu.round(6).tolist()
    [0.761594]
    """

    bags: int  # n, all of them
    nu: Vector
    least: Vector
    most: Vector

    def log_constants(self, loss: MarginLoss) -> tuple[float, float]:
        """log C_minus and log C_plus of C_minus q_max <= L - L* <= C_plus q_max.

        For a convex loss |loss'(nu)| d <= loss(nu - d) - loss(nu) <= |loss'(nu - d)| d.
        """
        low = loss.log_abs_slope(self.nu) + np.log(self.least)
        high = loss.log_abs_slope(self.nu - self.most) + np.log(self.most)
        return float(low.min()) - math.log(self.bags), float(np.logaddexp.reduce(high)) - math.log(self.bags)


@dataclass(frozen=True, eq=False)
class Decomposition:
    """f_i = nu_i (1 - q_i) + Z_i with nu_i > 0 and -C q_max <= Z_i <= (1 - eps) nu_i q_i.

    >>> from keytokens.core.margin_losses import Correlation
    >>> round(Decomposition(np.array([1.0, 2.0]), C=0.0, eps=0.5).rho(1.0, Correlation()), 6)  # -4 log(2 / (0.5 / 2))
    -8.317766
    """

    nu: Vector
    C: float
    eps: float

    def __post_init__(self) -> None:
        nu = floats(self.nu)
        if nu is None or nu.ndim != 1 or not len(nu) or not (np.isfinite(nu) & (nu > 0)).all():
            raise refusal("Decomposition", "nu", "be finite numbers above 0, one a bag", self.nu)
        check_number("Decomposition", "C", self.C, 0.0)
        check_number("Decomposition", "eps", self.eps, 0.0, above=True)
        object.__setattr__(self, "nu", nu)

    def log_constants(self, loss: MarginLoss) -> tuple[float, float]:
        """log C_minus and log C_plus of C_minus q_max <= L - L* <= C_plus q_max, for a convex loss.

        C_plus = B (C + max nu), C_minus = A eps min nu / n, A and B the least and the largest |loss'| on [-C, max nu],
        where every f_i lies.
        """
        log_A, log_B = loss.log_abs_slope(np.array([self.nu.max(), -self.C])).tolist()
        low = log_A + math.log(self.eps * float(self.nu.min()) / len(self.nu))
        return low, log_B + math.log(self.C + float(self.nu.max()))

    def rho(self, delta: float, loss: MarginLoss) -> float:
        """rho < 0 such that log q_max(p) <= min((1 + delta) log q_max(p'), rho) implies L(p) < L(p').

        rho = -2 (1 + 1/delta) log(C_plus / C_minus).
        """
        check_number("Decomposition.rho", "delta", delta, 0.0, above=True)
        check_loss("Decomposition.rho", loss)
        low, high = self.log_constants(loss)
        return -2 * (1 + 1 / delta) * max(high - low, 1e-300)  # below 0 also where both constants are one


def _check_problem(owner: str, problem: Any) -> None:
    if not isinstance(problem, HeadProblem):
        raise refusal(owner, "problem", "be a HeadProblem", problem, "HeadProblem.of makes one")


def falls(problem: HeadProblem) -> Falls | None:
    """The bounds that the head knows; None where it knows none, or where the limit itself is not proved.

    >>> from keytokens.core.heads import HeadProblem, Tanh
    >>> found = falls(HeadProblem.of([1], [[[1.0], [1.0], [0.0]]], Tanh(np.ones(1)), [[[1.0], [-1.0], [0.0]]]))
    >>> bool((found.least <= found.most).all())
    True
    """
    _check_problem("falls", problem)
    if problem.limit is not Limit.EXACT:
        return None
    found, nu = [], []
    for i, (y, value) in enumerate(zip(problem.labels, problem.nu, strict=True)):
        begin, end = problem.values.starts[i : i + 2]
        others = problem.values.rows[begin:end][~problem.inside[begin:end]]
        if not len(others):
            continue
        bounds = problem.head.fall(float(y), problem.values.rows[problem.firsts[i]], others)
        if bounds is None or bounds[0] <= 0:
            return None
        found.append(bounds)
        nu.append(value)
    least, most = np.array(found).T
    return Falls(len(problem.labels), np.array(nu), least * (1 - ROUNDING), most * (1 + ROUNDING))


def decomposition(problem: HeadProblem) -> Decomposition:
    """The lemma's constants, established from the head's bounds: Z_i = nu_i q_i - (nu_i - f_i).

    So (nu_i - most_i) q_i <= Z_i <= (nu_i - least_i) q_i: eps = min least_i / nu_i, C = max(most_i - nu_i, 0). Of a
    linear head whose sets tie at the top these are the lowest score, its sign turned, and 1 - (second best)/(best).

    >>> from keytokens.core.heads import HeadProblem, Tanh
    >>> found = decomposition(HeadProblem.of([1], [[[1.0], [1.0], [0.0]]], Tanh(np.ones(1)), [[[1.0], [-1.0], [0.0]]]))
    >>> found.nu.round(6).tolist(), bool(found.eps > 0)
    ([0.761594], True)
    """
    _check_problem("decomposition", problem)
    known = falls(problem)
    if known is None:
        seen = f"head {problem.head.name!r}, limit {problem.limit.name}"
        raise refusal("decomposition", "problem", "have a head with bounds, and equal tokens in each set", seen)
    if not (problem.nu > 0).all():
        rule = "have f_i > 0 with all attention on the sets, as the lemma presumes"
        raise refusal("decomposition", "problem", rule, problem.nu.tolist(), "use `falls`, which needs no sign")
    eps = float((known.least / known.nu).min())
    return Decomposition(problem.nu, max(float((known.most - known.nu).max()), 0.0), eps)
