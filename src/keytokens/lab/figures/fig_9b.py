"""Fig 9(b): the least score gap to a neighbour, over the random problems of Fig 9(a)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .figure import OURS, PAPER, Check, Figure, Rule, Tables, table
from .look import BLACK, BLUE, ORANGE, sheet
from .spheres import DIMENSIONS, difference, outcomes, size

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

CAPTION = """\
The runs of Fig 9(a) that saturate, all dimensions together: how far the selected tokens outscore the tokens on \
their margin, at the least (bins of 0.01, counts on a logarithmic scale). Where it is positive the selection is \
locally optimal. The paper reports a negative value in fewer than 1% of the runs, near zero, and a correlation with \
the max-margin direction above 0.99 on average even there. Over all dimensions our runs agree; in the plane alone \
the share is some percent, and the values are not all small (ours)."""
PLANE = """\
Negative values in the plane belong to runs around a minimum of the loss that lies far out (Fig 9(a)); they need not \
be near zero and do not shrink with more steps."""
BIN = 0.01


def compute(small: bool) -> Tables:
    runs = outcomes(size(small))
    saturated = runs["saturated"]
    gap = runs["gap"][saturated]
    edges = BIN * np.arange(np.floor(gap.min() / BIN), np.ceil(gap.max() / BIN) + 1)
    counts, _ = np.histogram(gap, edges)
    return {
        "bins": table(low=edges[:-1], count=counts),
        "gaps": table(d=runs["d"][saturated], gap=gap, one_minus_cos=runs["one_minus_cos"][saturated]),
    }


def draw(tables: Tables) -> Drawing:
    drawing, (axes,) = sheet(1, 3.4)
    low, count = tables["bins"]["low"], tables["bins"]["count"]
    negative = low < -BIN / 2
    for part, colour, label in ((negative, ORANGE, "not locally optimal"), (~negative, BLUE, "locally optimal")):
        axes.bar(low[part], count[part], BIN, align="edge", color=colour, label=label)
    axes.axvline(0, color=BLACK, linewidth=1)
    axes.set_yscale("log")
    axes.set_xlabel("least score gap to a token on the margin")
    axes.set_ylabel("runs")
    axes.legend(loc="upper right")
    return drawing


def checks(tables: Tables) -> list[Check]:
    gaps = tables["gaps"]
    negative = gaps["gap"] < 0
    plane = gaps["d"] == DIMENSIONS[0]
    share, in_plane = float(negative.mean()), float(negative[plane].mean())
    return [
        Check("share of negative gaps", share, 0.01, 0, PAPER, rule=Rule.AT_MOST),
        Check(
            "mean cos of the runs with a negative gap",
            1 - gaps["one_minus_cos"][negative].mean(),
            0.99,
            0,
            PAPER,
            rule=Rule.AT_LEAST,
        ),
        Check("share of negative gaps", share, 0.004, difference(share, len(negative), 0.004, 5250), OURS),
        Check(
            "share of negative gaps at d = 2",
            in_plane,
            0.037,
            difference(in_plane, int(plane.sum()), 0.037, 301),
            OURS,
            PLANE,
        ),
        Check("runs counted in the bins", tables["bins"]["count"].sum(), len(negative), 0, OURS),
    ]


FIGURE = Figure(
    name="9b",
    title="Random problems: the score gap to the margin",
    caption=CAPTION,
    compute=compute,
    draw=draw,
    checks=checks,
)
