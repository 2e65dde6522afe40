"""Fig 3(b): head and attention trained together, one input no support vector: the relaxed direction."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..problems.geometry import angle
from .figure import OURS, Check, Figure, Table, Tables
from .joint import draw_joint, tables_of
from .look import BLACK, GREY, Style
from .tables import cosine, value_at

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

THIRD = (0.5, 1.5)
RELAXED, TIGHT = np.array([1.0, 0.0]), np.array([1.25, 0.25])
CAPTION = """\
As Fig 3(a), with the third star farther up: its label margin is 1.5, it is no support vector, and the paper's \
relaxed problem asks of it only to win, by any margin. Descent turns p to that relaxed direction (1, 0), not to the \
max-margin direction of all three inputs (grey). Right (ours): the limit depends on how the bounds grow. With |v| \
and |p| bounded alike it is the relaxed direction; where |v| is bounded by a third of |p| it lies between the two \
(cross at R = 30, 8.0°; the leading exponents predict cos θ − 5 sin θ = 1/3, that is 7.6°, in the limit)."""
FLOOR = """\
0.9992 at 1,000 steps is the value with the floors of published code (1e-9 for v, 1e-19 for p): they stop v before \
p, the ratio |v|/|p| falls below 1, and p turns back. Without a floor it is 0.999995."""
BALLS = [(5.0, 5.0), (10.0, 10.0), (30.0, 30.0), (10.0, 30.0), (100.0, 30.0)]
ANGLES = ("5.54", "2.76", "0.94", "8.0", "0.00")


def compute(small: bool) -> Tables:
    return tables_of(THIRD, BALLS, small)


def draw(tables: Tables) -> Drawing:
    lines = [
        (0.0, "relaxed direction of p", Style(BLACK, "--", "")),
        (angle(TIGHT), "max-margin direction of p", Style(GREY, (0, (1, 1)), "")),
    ]
    drawing = draw_joint(tables, THIRD, lines, (6.0, -13.0))
    right = drawing.axes[1]
    right.set_ylim(-1.5, 20)
    right.legend(loc="upper right")
    return drawing


def _cos(run: Table, t: int, target: np.ndarray) -> float:
    return cosine(np.array([value_at(run, t, "p1"), value_at(run, t, "p2")]), target)


def checks(tables: Tables) -> list[Check]:
    run, floor, path, answer = (tables[name] for name in ("run", "floor", "path", "answer"))
    rho = np.degrees(np.arctan2(*_solved(1 / 3)))
    bounds = [f"|v| ≤ {r:g}, |p| ≤ {R:g}" for r, R in BALLS]
    return [
        Check("largest label margin", answer["y"][3], 1.5, 1e-9, OURS),
        Check("relaxed p, first coordinate", answer["x"][2], 1, 1e-9, OURS),
        Check("relaxed p, second coordinate", answer["y"][2], 0, 1e-9, OURS),
        Check("p_mm, first coordinate", answer["x"][1], 1.25, 1e-9, OURS),
        Check("p_mm, second coordinate", answer["y"][1], 0.25, 1e-9, OURS),
        Check.printed("cos(p, relaxed) after 1,000 steps", _cos(run, 1000, RELAXED), "0.999995", OURS, FLOOR),
        Check.printed("cos(p, relaxed), floors, 200 steps", _cos(floor, 200, RELAXED), "0.9998", OURS),
        Check.printed("cos(p, relaxed), floors, 1,000 steps", _cos(floor, 1000, RELAXED), "0.9992", OURS, FLOOR),
        Check.printed("cos(p, p_mm), floors, 200 steps", _cos(floor, 200, TIGHT), "0.984", OURS),
        Check.printed("cos(p, p_mm), floors, 1,000 steps", _cos(floor, 1000, TIGHT), "0.988", OURS, FLOOR),
        *(
            Check.printed(f"angle of the minimum over {names}", measured, expected, OURS)
            for names, measured, expected in zip(bounds, path["degrees"], ANGLES, strict=True)
        ),
        Check.printed("predicted limit for |v|/|p| = 1/3, degrees", rho, "7.6", OURS),
    ]


def _solved(ratio: float) -> tuple[float, float]:
    """sin and cos of the angle with cos - 5 sin = ratio."""
    turn = np.arccos(ratio / np.sqrt(26)) - np.arctan(5)
    return float(np.sin(turn)), float(np.cos(turn))


FIGURE = Figure(
    name="3b",
    title="An input that is no support vector: the relaxed direction",
    caption=CAPTION,
    compute=compute,
    draw=draw,
    checks=checks,
)
