"""How fast a descent turns: the course of a run, and exponents fitted to its tail with intervals.

x ~ c t^a          `fitted_power`: a is the slope of log x against log t, by least squares, over the tail of a run
x ~ b + c t^a      `fitted_growth`: the same for the differences of x per unit of log t, which do not see b; a = 0 is
                   the law b + c log t, since its differences are constant

A run is no sample: its points are not independent, and what is left of a fit is curvature, not noise. So the interval
is that of a jackknife over consecutive blocks of the tail (leave one block out, fit again) with Student's t: it is
narrow where all parts of the tail agree on the slope, and wide where the slope still changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from ...base.checks import check_number
from ...base.errors import refusal
from ...model.ragged import Vector
from ...training.loop import run
from ..descent.steps import Descent, Point, Step
from ..problems.geometry import misalignment
from ..problems.problem import Problem
from ..problems.reading import Reading
from .max_margin.assumptions import log_missed

BLOCKS = 8
LEVEL = 0.95


@dataclass(frozen=True)
class Power:
    """x in proportion to t^exponent; `low` and `high` are the ends of a 95% interval."""

    exponent: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.exponent:.3f} [{self.low:.3f}, {self.high:.3f}]"


def fitted_power(t: Any, x: Any, since: float = 0.0) -> Power:
    """The exponent of x against t over t >= since.

    >>> t = np.geomspace(100, 10_000, 40)
    >>> str(fitted_power(t, 3 * t**-0.5))
    '-0.500 [-0.500, -0.500]'
    """
    times, values = _series("fitted_power", t, x)
    late = (times >= since) & (times > 0)
    return _fit("fitted_power", times[late], values[late])


def fitted_growth(t: Any, x: Any, since: float = 0.0) -> Power:
    """The exponent a of x = b + c t^a, or 0 for x = b + c log t, over t >= since.

    >>> t = np.geomspace(100, 10_000, 40)
    >>> str(fitted_growth(t, 7 + 3 * t**0.25)), str(fitted_growth(t, 7 + 3 * np.log(t))).replace("-0.000", "0.000")
    ('0.250 [0.250, 0.250]', '0.000 [0.000, 0.000]')
    """
    times, values = _series("fitted_growth", t, x)
    late = (times >= since) & (times > 0)
    log_t = np.log(times[late])
    return _fit("fitted_growth", np.exp((log_t[1:] + log_t[:-1]) / 2), np.diff(values[late]) / np.diff(log_t))


def _series(owner: str, t: Any, x: Any) -> tuple[Vector, Vector]:
    times, values = np.asarray(t, np.float64), np.asarray(x, np.float64)
    if times.shape != values.shape or times.ndim != 1:
        raise refusal(owner, "x", "have one number for each step", f"shapes {times.shape}, {values.shape}")
    return times, values


def _fit(owner: str, times: Vector, values: Vector) -> Power:
    if len(times) < 2 * BLOCKS:
        rule = f"leave at least {2 * BLOCKS} points"
        raise refusal(owner, "since", rule, f"{len(times)} points", "record more steps")
    if not (values > 0).all():
        rule = "be above 0 on the tail" if owner == "fitted_power" else "rise on the tail"
        raise refusal(owner, "x", rule, float(values.min()))
    log_t, log_x = np.log(times), np.log(values)
    whole = _slope(log_t, log_x)
    block = np.arange(len(log_t)) * BLOCKS // len(log_t)
    without = np.array([_slope(log_t[block != k], log_x[block != k]) for k in range(BLOCKS)])
    error = np.sqrt((BLOCKS - 1) / BLOCKS * np.sum((without - without.mean()) ** 2))
    half = float(student.ppf((1 + LEVEL) / 2, BLOCKS - 1) * error)
    return Power(whole, whole - half, whole + half)


def _slope(x: Vector, y: Vector) -> float:
    away = x - x.mean()
    return float(away @ y / (away @ away))


def log_attention_gap(reading: Reading) -> float:
    """log of the largest 1 - s over the bags, s the attention on a bag's selected token; exact however small."""
    return float(log_missed(reading, reading.selected).max())


@dataclass(frozen=True, eq=False)
class Course:
    """A run at some of its steps."""

    t: NDArray[np.intp]
    norm: Vector  # |p|
    away: Vector  # 1 - cos to the target
    log_gap: Vector  # log(1 - s), s the least attention on a selected token

    @property
    def powers(self) -> dict[str, Power]:
        """Exponents of |p| and -log(1 - s), which grow, and of 1 - cos, over the last decade and a half of a run."""
        since = float(self.t.max()) / 10**1.5
        return {
            "norm": fitted_growth(self.t, self.norm, since),
            "attention": fitted_growth(self.t, -self.log_gap, since),
            "one_minus_cos": fitted_power(self.t, self.away, since),
        }


def followed(problem: Problem, rule: Step, start: Vector | Sequence[Vector], steps: int, target: Any) -> Course:
    """A descent beside a target direction of the attention's parameter, at the steps 10^(k/20) and the last."""
    check_number("followed", "steps", steps, 1, whole=True)
    count = int(20 * np.log10(steps)) + 1
    wanted = frozenset([*np.rint(10.0 ** (np.arange(count) / 20)).astype(int).tolist(), steps])
    rows: list[tuple[int, float, float, float]] = []

    def look(state: Point) -> None:
        if state.t in wanted:
            away = misalignment(state.p, target) if state.p.any() else np.nan
            rows.append((state.t, state.norm, away, log_attention_gap(state.reading)))

    run(Descent(problem, rule), start, steps, look)
    t, norm, away, log_gap = (np.array(column) for column in zip(*rows, strict=True))
    return Course(t, norm, away, log_gap)
