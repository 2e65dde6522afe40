"""Fig 3(a): head and attention trained together, every input a support vector."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..problems.geometry import angle
from .figure import CODE, OURS, Check, Figure, Tables
from .joint import draw_joint, tables_of
from .look import BLACK, Style
from .tables import cosine, value_at

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

THIRD = (0.5, 1.0)
TARGET = angle([4.0, 1.0])
CAPTION = """\
Three inputs, each with a zero token and the star shown; head v and attention p start at (−1, 0) and (0, −1) and are \
trained together with steps of length 0.1. All three label margins are equal, so every input is a support vector; \
the paper then predicts, for the minimum over growing balls, the max-margin directions of both: straight up for v, \
(4, 1) for p. Left: the first steps, a marker every ten. Right (ours): the angle of p creeps up to 14.04°, for \
descent as for the minimum over |v| ≤ R, |p| ≤ R (diamonds). With the floors of published code descent stops at |p| \
= 35."""
FLOOR = """\
13.5° at 1,000 steps is the value with the floors of published code (1e-9 for v, 1e-19 for p), which stop the run at \
|p| = 35; without a floor it is 13.84°. Both are on the way to 14.04°."""
BALLS = [(5.0, 5.0), (10.0, 10.0), (30.0, 30.0)]


def compute(small: bool) -> Tables:
    return tables_of(THIRD, BALLS, small)


def draw(tables: Tables) -> Drawing:
    drawing = draw_joint(tables, THIRD, [(TARGET, "max-margin direction of p", Style(BLACK, "--", ""))], (-14.0, 8.0))
    right = drawing.axes[1]
    right.set_ylim(6, 15)
    right.legend(loc="lower right")
    return drawing


def checks(tables: Tables) -> list[Check]:
    run, floor, path, answer = (tables[name] for name in ("run", "floor", "path", "answer"))
    p200 = np.array([value_at(floor, 200, "p1"), value_at(floor, 200, "p2")])
    return [
        Check("v_mm, second coordinate", answer["y"][0], 1, 1e-9, OURS),
        Check("label margins, largest − least", answer["y"][3] - answer["x"][3], 0, 1e-9, OURS),
        Check.printed("half of |p_mm|²", (answer["x"][1] ** 2 + answer["y"][1] ** 2) / 2, "0.94444", CODE),
        Check("p_relaxed − p_mm, first coordinate", answer["x"][2] - answer["x"][1], 0, 1e-9, OURS),
        Check.printed("angle of p_mm, degrees", angle([answer["x"][1], answer["y"][1]]), "14.04", OURS),
        Check.printed("cos(p, p_mm) after 200 steps", cosine(p200, [4.0, 1.0]), "0.9998", OURS),
        Check.printed("angle of p after 200 steps", value_at(run, 200, "degrees"), "13.0", OURS),
        Check.printed("angle of p after 1,000 steps", value_at(run, 1000, "degrees"), "13.84", OURS, FLOOR),
        Check.printed("... with the published floors", value_at(floor, 1000, "degrees"), "13.5", OURS, FLOOR),
        *(
            Check.printed(f"angle of the minimum over |v|, |p| ≤ {R:g}", measured, expected, OURS)
            for (_, R), measured, expected in zip(BALLS, path["degrees"], ("11.82", "12.45", "13.43"), strict=True)
        ),
    ]


FIGURE = Figure(
    name="3a",
    title="Head and attention together: both take their max-margin directions",
    caption=CAPTION,
    compute=compute,
    draw=draw,
    checks=checks,
)
