"""Fig 10: the distribution of the score gap, dimension by dimension."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .figure import OURS, PAPER, Check, Figure, Rule, Table, Tables, table
from .look import BLACK, STYLES, sheet
from .spheres import DIMENSIONS, difference, outcomes, size

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

CAPTION = """\
The numbers of Fig 9(b) as distribution functions, one for each dimension (ours): the share of the saturated runs \
whose least score gap is at most x. At 0 the curves are the share of the selections that are not locally optimal; \
only the plane is visibly above zero there. The scale of x is linear between −0.01 and 0.01 and logarithmic outside. \
In high dimension the scores of unit vectors are small, and so are the gaps."""

# share of the saturated runs, and how many they are, in an independent run of ours with other seeds
KNOWN = {2: (11 / 301, 301), 5: (7 / 950, 950), 10: (2 / 999, 999), 100: (1 / 1000, 1000), 300: (0.0, 1000)}


def compute(small: bool) -> Tables:
    runs = outcomes(size(small))
    parts = []
    for d in DIMENSIONS:
        gap = np.sort(runs["gap"][(runs["d"] == d) & runs["saturated"]])
        parts.append(table(d=np.full(len(gap), d), gap=gap, share=np.arange(1, len(gap) + 1) / len(gap)))
    return {"curves": {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}}


def _curve(tables: Tables, d: int) -> Table:
    curves = tables["curves"]
    return {name: column[curves["d"] == d] for name, column in curves.items()}


def draw(tables: Tables) -> Drawing:
    drawing, (axes,) = sheet(1, 3.6)
    for d, style in zip(DIMENSIONS, STYLES, strict=True):
        curve = _curve(tables, d)
        every = max(1, len(curve["gap"]) // 6)
        axes.step(curve["gap"], curve["share"], where="post", **style.all, markevery=every, label=f"d = {d}")
    axes.axvline(0, color=BLACK, linewidth=1)
    axes.set_xscale("symlog", linthresh=0.01)
    axes.set_xlim(-1, 2)
    axes.set_xticks([-1, -0.1, -0.01, 0, 0.01, 0.1, 1], ["−1", "−0.1", "−0.01", "0", "0.01", "0.1", "1"])
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("least score gap to a token on the margin, x")
    axes.set_ylabel("share of the saturated runs with a gap ≤ x")
    axes.legend(loc="upper left")
    return drawing


def checks(tables: Tables) -> list[Check]:
    below = {d: float((_curve(tables, d)["gap"] < 0).mean()) for d in DIMENSIONS}
    median = [float(np.median(_curve(tables, d)["gap"])) for d in DIMENSIONS]
    every = tables["curves"]["gap"]
    runs = {d: len(_curve(tables, d)["gap"]) for d in DIMENSIONS}
    return [
        Check("share below zero, all dimensions", (every < 0).mean(), 0.01, 0, PAPER, rule=Rule.AT_MOST),
        *(
            Check(f"share below zero, d = {d}", below[d], share, difference(below[d], runs[d], share, saturated), OURS)
            for d, (share, saturated) in KNOWN.items()
        ),
        Check("steps of d ≥ 5 at which the median gap grows", (np.diff(median[1:]) > 0).sum(), 0, 0, OURS),
    ]


FIGURE = Figure(
    name="10",
    title="Random problems: score gaps by dimension",
    caption=CAPTION,
    compute=compute,
    draw=draw,
    checks=checks,
)
