"""Figures 5 and 8 of the max-margin paper, and its cone: descent on p alone, on a few inputs."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...model.ragged import Vector
from ..claims.instances import LMM, one_bag, two_limits, two_scores
from ..descent.flow import flow
from ..descent.stack import Flags, Stack
from ..descent.steps import Normalised
from ..problems.losses import Correlation, Exponential, Logistic, MarginLoss
from ..selection import cone, local_optimum
from .figure import OURS, PAPER, Check, Sheet, Tables, figure, table
from .look import BLACK, BLUE, GREEN, GREY, ORANGE, RED, STYLES, Axes, Style, fading, plane, ray, several_walks, tokens
from .notebooks import published_checks, published_table
from .tables import cosine, is_direction, last, records, states, walks, where

EDGES = """\
Far out the edge is the line p₂ = p₁/10 + log(30/37), where the pulls of the two losing tokens add up to its own \
direction; so 4.515° at R = 10 and 5.599° at R = 107, and bisection finds the same with steps of 0.05 to 1."""
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
        runs = Stack.repeated(one_bag(0.0), len(turn))
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


def compute_cone(small: bool) -> Tables:
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
    return {
        "edges": table(radius=radius, upper=both[:size], lower=both[size:], line=edge_line(radius)),
        "cone": table(
            **{name: getattr(constants, name) for name in ("mu", "radius", "margin", "delta", "size")},
            degrees=np.degrees(np.arccos(1 - constants.mu)),
            stay_near=ends_locally(np.array([0.5, 1.0, 1.5, 2.0]), np.zeros(4)).sum(),
        ),
    }


def checks_cone(tables: Tables) -> list[Check]:
    constants, edges = tables["cone"], tables["edges"]
    at = [int(np.abs(edges["radius"] - R).argmin()) for R in NAMED]
    upper, line, lower = (edges[name][at] for name in ("upper", "line", "lower"))
    return [
        Check("Θ = 1/|p_mm|", constants["margin"][0], 1, 1e-9, OURS),
        Check("δ", constants["delta"][0], 0.05, 1e-9, OURS),
        Check.printed("A", constants["size"][0], "1.00499", OURS),
        Check("μ", constants["mu"][0], 3.094e-4, 5e-8, OURS),
        Check.printed("radius of the cone", constants["radius"][0], "107.36", OURS),
        Check.printed("upper edge of the basin at R = 5, degrees", upper[0], "3.25", OURS),
        *(
            Check(f"upper edge of the basin at R = {R:g}, degrees", measured, expected, 2e-3, OURS, EDGES)
            for R, measured, expected in zip(NAMED[1:], upper[1:], line[1:], strict=True)
        ),
        Check("lower edge at R = 107, degrees", lower[-1], -132, 1, OURS),
        Check.at_least("upper edge at R ≥ 50, least, above the cone's", upper[2:].min(), constants["degrees"][0], OURS),
        Check("starts on (1, 0) with R ≤ 2 that stay", constants["stay_near"][0], 0, 0, OURS),
    ]


@figure("cone", "The cone of Theorem 3 and the basin it lies in", compute_cone, checks_cone, sheet=Sheet(2, 3.8))
def draw_cone(tables: Tables, left: Axes, right: Axes) -> None:
    """Data of Fig 1(b). The paper proves that descent from inside a cone around a locally optimal direction, far enough
    out, keeps to it, and gives the width μ and the radius R of the cone by the data. Here they are 1.4° and 107 (ours,
    from the paper's formulas; the narrow hatched strip). The grey area is the measured basin (ours): the starts, at
    distance R from the origin and at an angle to (1, 0), from which descent with steps of length 0.1 really ends in (1,
    0). Its upper edge tends to arctan 0.1 = 5.71°, where the two losing tokens tie. So the cone is safe and far smaller
    than the basin; but a radius is needed, because close to the origin the direction (1, 0) itself leads elsewhere.
    """
    edges, (width, radius) = tables["edges"], (tables["cone"]["degrees"][0], tables["cone"]["radius"][0])
    for axes in (left, right):
        axes.fill_between(edges["radius"], edges["lower"], edges["upper"], color="#d9d9d9", label="measured basin")
        axes.plot(edges["radius"], edges["upper"], color=BLUE, marker="o", markersize=3, label="its upper edge")
        axes.plot(edges["radius"], edges["line"], color=GREEN, linestyle=":", label="p₂ = p₁/10 + log(30/37)")
        axes.axhline(float(np.degrees(np.arctan(0.1))), color=BLACK, linestyle="--", linewidth=1, label="arctan 0.1")
        axes.fill_between(
            [radius, LARGEST], -width, width, facecolor=ORANGE, edgecolor=BLACK, hatch="////", label="cone of the paper"
        )
        axes.set(xscale="log", xlim=(1, LARGEST), xlabel="distance R of the start")
    lower: Any = {"color": RED, "linestyle": "-.", "marker": "s", "markersize": 3}
    left.plot(edges["radius"], edges["lower"], **lower, label="its lower edge")
    left.set_ylim(-185, 60)
    left.set_yticks(range(-180, 61, 30))
    left.set_ylabel("angle of the start to (1, 0), degrees")
    left.legend(loc="upper right", ncols=2)
    right.set(ylim=(-4, 8), title="enlarged")


FAR_5 = "Exact descent has left the ray (1, −1) at p₂ = −47.04 and turned to (1, 0)."
LOSSES: tuple[MarginLoss, ...] = (Correlation(), Logistic(), Exponential())
DRAWN = (*range(1, 11), 100)
ENDS = (1, 2, 5, 10, 100)
LENGTH = 10.0  # of the paths that are drawn
CHECKED = {
    "correlation": {1: "0.000", 2: "0.3466", 5: "0.805", 10: "1.151", 100: "2.303"},
    "logistic": {2: "-0.060", 5: "-1.042", 10: "-3.192", 100: "-47.0"},
    "exponential": {2: "-0.153", 5: "-1.195", 10: "-3.349"},
}


def offset(loss: MarginLoss, C: Vector) -> Vector:
    """½ log(C |loss'(C)| / |loss'(1)|)."""
    return (np.log(C) + loss.log_abs_slope(C) - loss.log_abs_slope(np.ones_like(C))) / 2


def compute_5(small: bool) -> Tables:
    paths = [
        {"loss": loss.name, "C": C, "t": t, "p1": state.p[0], "p2": state.p[1]}
        for loss in LOSSES[:2]
        for C in DRAWN
        for t, state in states(two_scores(float(C), loss), Normalised(0.1), np.zeros(2), 200).items()
        if t % 2 == 0
    ]
    ends = [
        {"loss": loss.name, "C": C, "p1": p[0], "p2": p[1]}
        for loss in LOSSES
        for C, p in zip(ENDS, Stack.of(two_scores(float(C), loss) for C in ENDS).descend(1000, 0.1), strict=True)
    ]
    curve = np.geomspace(1, 100, 41)
    return {
        "paths": records(paths),
        "ends": records(ends),
        "formula": table(C=curve, **{loss.name: offset(loss, curve) for loss in LOSSES}),
        "published": published_table("5"),
    }


def _paths(axes: Axes, tables: Tables, loss: str, limits: tuple[float, float], labelled: tuple[int, ...]) -> None:
    axes.axhline(0, color="k", linestyle="--", linewidth=1.2)
    for C, colour in zip(DRAWN, fading(len(DRAWN)), strict=True):
        path = where(tables["paths"], loss=loss, C=C)
        axes.plot(path["p1"], path["p2"], color=colour, linewidth=1.3, linestyle="--" if C == 100 else "-")
        if C in labelled:
            seen = (path["p1"] <= LENGTH) & (path["p2"] >= limits[0])
            x, y = path["p1"][seen][-1], path["p2"][seen][-1]  # where it leaves the panel
            axes.annotate(f"C = {C}", (x, y), (3, 0), textcoords="offset points", fontsize=7.5, va="center")
    axes.set(xlim=(0, LENGTH), ylim=limits, xlabel="p₁", ylabel="p₂", title=f"{loss} loss")


def checks_5(tables: Tables) -> list[Check]:
    lean = {loss.name: where(tables["ends"], loss=loss.name)["p2"] for loss in LOSSES}  # one for each of ENDS
    law = {loss.name: offset(loss, np.array(ENDS, np.float64)) for loss in LOSSES}
    far = last(where(tables["ends"], loss="logistic"))
    found, known = (cosine(np.array(p), LMM) for p in ((far["p1"], far["p2"]), (81.90, -47.04)))
    return [
        *(
            Check.printed(f"p₂, {loss}, C = {C}", lean[loss][ENDS.index(C)], value, OURS)
            for loss, values in CHECKED.items()
            for C, value in values.items()
        ),
        *(Check(f"p₂ − formula, {loss}, largest", np.abs(lean[loss] - law[loss]).max(), 0, 1e-6, OURS) for loss in law),
        Check("cos to (1, 0), logistic, C = 100", found, known, 1e-3, OURS, FAR_5),
        *published_checks("5", tables),
    ]


@figure("5", "The loss decides the lean, not the direction", compute_5, checks_5, sheet=Sheet(3, 3.9))
def draw_5(tables: Tables, left: Axes, middle: Axes, right: Axes) -> None:
    """Two inputs, each a zero token and one better token: (1, 1) with score C and (1, −1) with score 1. The max-margin
    direction is (1, 0) whatever C is. The paper draws descent on such data for two losses; on the way it leans (ours)
    to the high score under the correlation loss −x, in the end to the low one under the logistic loss. Left and middle:
    paths for C = 1, …, 10 and, dashed, C = 100, steps of length 0.1. Right: p₂ tends to ½ log(C |ℓ′(C)| / |ℓ′(1)|), the
    lines, for every loss; markers are runs of 1,000 steps. With C = 100 and the logistic loss the lean is 47 units
    long.
    """
    _paths(left, tables, "correlation", (-0.3, 2.8), (1, 2, 3, 5, 10, 100))
    _paths(middle, tables, "logistic", (-6.0, 0.5), (1, 3, 5, 7, 10, 100))
    formula = tables["formula"]
    for loss, style in zip(LOSSES, STYLES, strict=False):
        end = where(tables["ends"], loss=loss.name)
        right.plot(formula["C"], formula[loss.name], **style.line, label=loss.name)
        right.plot(end["C"], end["p2"], style.marker, color=style.color, fillstyle="none", markersize=7)
    right.set_xscale("log")
    right.set_yscale("symlog", linthresh=1)
    right.set_ylim(-90, 5)
    right.set_yticks([-30, -10, -3, -1, 0, 1, 3], ["−30", "−10", "−3", "−1", "0", "1", "3"])
    right.set(xlabel="score C of the first input", ylabel="p₂ after 1,000 steps")
    right.legend(loc="lower left")


GLOBAL = np.array([1.0, 3.0])
STARTS_8 = ((0, 0), (0, 1), (0, 2), (0, 5), (-1, 0), (0, -1), (2, 0), (5, 0))
LOCAL_8 = np.array([start in ((2, 0), (5, 0)) for start in STARTS_8])
LOW, HIGH = (-2.0, -2.0), (7.0, 7.0)


def compute_8(small: bool) -> Tables:
    problem, starts = two_limits(), [np.array(start, np.float64) for start in STARTS_8]
    best = local_optimum(problem.keys, problem.scores, [0, 0])
    local = local_optimum(problem.keys, problem.scores, [0, 1])
    ends = Stack.repeated(problem, len(starts)).descend(2000, 0.1, start=np.array(starts))
    flows = [flow(problem, start, 1000.0).state.p for start in starts]
    x, y = np.meshgrid(*(np.linspace(LOW[k], HIGH[k], 13 if small else 61) for k in (0, 1)))
    grid = np.stack([x.ravel(), y.ravel()], axis=1)
    runs = Stack.repeated(problem, len(grid))
    chosen = runs.logits(runs.descend(600, 0.1, start=grid)).argmax(axis=0)
    return {
        "paths": walks(problem, Normalised(0.1), starts, 200),
        "ends": table(
            cos_global=[cosine(p, GLOBAL) for p in (*ends, *flows)],
            cos_local=[cosine(p, LMM) for p in (*ends, *flows)],
        ),
        "basin": table(p1=grid[:, 0], p2=grid[:, 1], local=(chosen == [0, 1]).all(axis=1)),
        "answer": table(
            name=["global", "local"],
            p1=[one.solution.p[0] for one in (best, local)],
            p2=[one.solution.p[1] for one in (best, local)],
            largest_margin=[float(one.solution.slack.max()) + 1 for one in (best, local)],
            is_local_optimum=[one.holds for one in (best, local)],
        ),
    }


def checks_8(tables: Tables) -> list[Check]:
    answer, ends = tables["answer"], tables["ends"]
    wrong = (ends["cos_local"] > ends["cos_global"]) != np.tile(LOCAL_8, 2)  # of descent, then of the flow
    reached = np.where(LOCAL_8, ends["cos_local"][:8], ends["cos_global"][:8])
    return [
        Check("limits of descent, number", len({bool(x) for x in ends["cos_local"] > ends["cos_global"]}), 2, 0, PAPER),
        *is_direction("global direction", (answer["p1"][0], answer["p2"][0]), 1, 3),
        *is_direction("local direction", (answer["p1"][1], answer["p2"][1]), 1, 0),
        Check("margin of input 2 in the local direction", answer["largest_margin"][1], 2, 1e-9, OURS),
        Check("locally optimal selections of the two", answer["is_local_optimum"].sum(), 2, 0, OURS),
        Check("starts that end elsewhere, by descent or by the flow", wrong.sum(), 0, 0, OURS),
        Check("least cos to the limit after 2,000 steps", reached.min(), 1, 2e-4, OURS),
    ]


@figure("8", "Two inputs, two limits", compute_8, checks_8, sheet=Sheet(height=5.0))
def draw_8(tables: Tables, axes: Axes) -> None:
    """Two inputs in the plane, each with a best token (star) and a zero token, all other scores alike. The paper shows
    by such an example that its global theorem needs a single input; it prints no coordinates, these are ours. The first
    input's token alone has the max-margin direction (1, 0); there the zero token of the second input wins by 2, and the
    second input, far from its margin, has no say: a locally optimal direction that selects a worse token. Descent with
    steps of length 0.1 from eight starts ends in the global direction (1, 3) (circles, dashed) or in the local one
    (squares, dash-dotted). Hatched: all starts that end in the local one.
    """
    basin = tables["basin"]
    side = int(np.sqrt(len(basin["p1"])))
    x, y, local = (basin[name].reshape(side, side) for name in ("p1", "p2", "local"))
    area = axes.contourf(x, y, local.astype(float), [0.5, 1.5], colors=["#ececec"], hatches=["////"])
    area.set(edgecolor="#9a9a9a", linewidth=0)
    ray(axes, GLOBAL, Style(BLACK, "--", ""), "global direction (1, 3)")
    ray(axes, LMM, Style(GREY, "-.", ""), "local direction (1, 0)")
    styles = {False: Style(BLUE, "-", "o"), True: Style(ORANGE, "-", "s")}
    several_walks(axes, tables["paths"], [styles[bool(to_local)] for to_local in LOCAL_8])
    keys = np.array([[1.0, 0.0], [-2.0, 1.0], [0.0, 0.0]])
    tokens(axes, keys, ["input 1", "input 2", "zero"], [(2, 9), (8, -3), (6, -13)])
    plane(axes, (-2.4, -2.0), HIGH)
    axes.legend(loc="upper left")
