"""The cone of Theorem 3 with its constants, beside the basin that is measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...model.ragged import Vector
from ..claims.instances import one_bag
from ..problems.trials import Flags, Trials
from ..selection import cone, local_optimum
from .figure import OURS, Check, Figure, Rule, Tables, table
from .look import BLACK, BLUE, GREEN, ORANGE, RED, sheet

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

CAPTION = """\
Data of Fig 1(b). The paper proves that descent from inside a cone around a locally optimal direction, far enough \
out, keeps to it, and gives the width μ and the radius R of the cone by the data. Here they are 1.4° and 107 (ours, \
from the paper's formulas; the narrow hatched strip). The grey area is the measured basin (ours): the starts, at \
distance R from the origin and at an angle to (1, 0), from which descent with steps of length 0.1 really ends in (1, \
0). Its upper edge tends to arctan 0.1 = 5.71°, where the two losing tokens tie. So the cone is safe and far smaller \
than the basin; but a radius is needed, because close to the origin the direction (1, 0) itself leads elsewhere."""
EDGES = """\
Far out the edge is the line p₂ = p₁/10 + log(30/37), where the pulls of the two losing tokens add up to its own \
direction; so 4.515° at R = 10 and 5.599° at R = 107, and bisection finds the same with steps of 0.05, 0.1, 0.3 and \
1. An earlier table had 4.50° and 5.58°, which is 0.015° and 0.02° too low; we do not know why."""
NAMED = (5.0, 10.0, 50.0, 107.0)
LARGEST = 200.0


def edge_line(radius: Vector) -> Vector:
    """Degrees of the point at a distance R on the line p2 = p1/10 + log(30/37)."""
    offset, slope = np.log(30 / 37), np.array(0.1)
    p1 = (-slope * offset + np.sqrt((1 + slope**2) * radius**2 - offset**2)) / (1 + slope**2)
    return np.degrees(np.arctan2(slope * p1 + offset, p1))


def ends_locally(radius: Vector, degrees: Vector) -> Flags:
    """Whether descent from these points selects the second token in the end; longer steps where all is larger."""
    inside = np.empty(len(radius), np.bool_)
    for far, eta, steps in ((False, 0.1, 1600), (True, 0.5, 900)):
        here = (radius >= 10) == far
        turn = np.radians(degrees[here])
        runs = Trials.repeated(one_bag(0.0), len(turn))
        p = runs.descend(steps, eta, start=radius[here, None] * np.stack([np.cos(turn), np.sin(turn)], axis=1))
        inside[here] = runs.logits(p)[:, :, 0].argmax(axis=0) == 1
    return inside


def edge(radius: Vector, inside: Vector, outside: Vector, bisections: int) -> Vector:
    """Where the basin ends between an angle inside and one outside, for each radius, by bisection."""
    inside, outside = inside.copy(), outside.copy()
    for _ in range(bisections):
        middle = (inside + outside) / 2
        within = ends_locally(radius, middle)
        inside, outside = np.where(within, middle, inside), np.where(within, outside, middle)
    return (inside + outside) / 2


def compute(small: bool) -> Tables:
    problem = one_bag(0.0)
    constants = cone(problem.keys, problem.scores, local_optimum(problem.keys, problem.scores, [1]))
    radius = np.unique(np.concatenate([NAMED, [] if small else np.geomspace(1.0, LARGEST, 25)]))
    size = len(radius)
    # angles that are surely inside and outside, of the upper edge and of the lower one
    inside, outside = np.full(2 * size, -60.0), np.repeat([90.0, -200.0], size)
    if small:
        middle = np.concatenate([edge_line(radius), np.full(size, -132.0)])
        inside, outside = middle - np.repeat([0.15, -1.2], size), middle + np.repeat([0.15, -1.2], size)
    both = edge(np.tile(radius, 2), inside, outside, 8 if small else 20)
    near = np.array([0.5, 1.0, 1.5, 2.0, 5.0])
    return {
        "edges": table(radius=radius, upper=both[:size], lower=both[size:], line=edge_line(radius)),
        "axis": table(radius=near, ends_locally=ends_locally(near, np.zeros(5))),
        "cone": table(
            mu=[constants.mu],
            degrees=[np.degrees(np.arccos(1 - constants.mu))],
            radius=[constants.radius],
            margin=[constants.margin],
            delta=[constants.delta],
            size=[constants.size],
        ),
    }


def draw(tables: Tables) -> Drawing:
    drawing, (left, right) = sheet(2, 3.8)
    edges, (width, radius) = tables["edges"], (tables["cone"]["degrees"][0], tables["cone"]["radius"][0])
    for axes in (left, right):
        axes.fill_between(edges["radius"], edges["lower"], edges["upper"], color="#d9d9d9", label="measured basin")
        axes.plot(edges["radius"], edges["upper"], color=BLUE, marker="o", markersize=3, label="its upper edge")
        axes.plot(edges["radius"], edges["line"], color=GREEN, linestyle=":", label="p₂ = p₁/10 + log(30/37)")
        axes.axhline(float(np.degrees(np.arctan(0.1))), color=BLACK, linestyle="--", linewidth=1, label="arctan 0.1")
        axes.fill_between(
            [radius, LARGEST], -width, width, facecolor=ORANGE, edgecolor=BLACK, hatch="////", label="cone of the paper"
        )
        axes.set_xscale("log")
        axes.set_xlim(1, LARGEST)
        axes.set_xlabel("distance R of the start")
    left.plot(
        edges["radius"], edges["lower"], color=RED, linestyle="-.", marker="s", markersize=3, label="its lower edge"
    )
    left.set_ylim(-185, 60)
    left.set_yticks(range(-180, 61, 30))
    left.set_ylabel("angle of the start to (1, 0), degrees")
    left.legend(loc="upper right", ncols=2)
    right.set_ylim(-4, 8)
    right.set_title("enlarged")
    return drawing


def checks(tables: Tables) -> list[Check]:
    constants, edges, axis = tables["cone"], tables["edges"], tables["axis"]
    at = [int(np.abs(edges["radius"] - R).argmin()) for R in NAMED]
    upper, line, lower = (edges[name][at] for name in ("upper", "line", "lower"))
    stays = axis["ends_locally"] & (axis["radius"] <= 2)
    return [
        Check("Θ = 1/|p_mm|", constants["margin"][0], 1, 1e-9, OURS),
        Check("δ", constants["delta"][0], 0.05, 1e-9, OURS),
        Check.printed("A", constants["size"][0], "1.00499", OURS),
        Check("μ", constants["mu"][0], 3.094e-4, 5e-8, OURS),
        Check.printed("half width of the cone, degrees", constants["degrees"][0], "1.425", OURS),
        Check.printed("radius of the cone", constants["radius"][0], "107.36", OURS),
        Check.printed("upper edge of the basin at R = 5, degrees", upper[0], "3.25", OURS),
        *(
            Check(f"upper edge of the basin at R = {R:g}, degrees", measured, expected, 2e-3, OURS, EDGES)
            for R, measured, expected in zip(NAMED[1:], upper[1:], line[1:], strict=True)
        ),
        Check("lower edge at R = 107, degrees", lower[-1], -132, 1, OURS),
        Check(
            "upper edge at R ≥ 50, least, above the cone's",
            upper[2:].min(),
            constants["degrees"][0],
            0,
            OURS,
            rule=Rule.AT_LEAST,
        ),
        Check("starts on (1, 0) with R ≤ 2 that stay", stays.sum(), 0, 0, OURS),
    ]


FIGURE = Figure(
    name="cone",
    title="The cone of Theorem 3 and the basin it lies in",
    caption=CAPTION,
    compute=compute,
    draw=draw,
    checks=checks,
)
