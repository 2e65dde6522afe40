"""Fig 8: two inputs, two limits: with more than one input descent may miss the global direction."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..claims.instances import LMM, two_limits
from ..descent.flow import flow
from ..descent.steps import Normalised
from ..problems.trials import Trials
from ..selection import local_optimum
from .figure import OURS, PAPER, Check, Figure, Tables, table
from .look import BLACK, BLUE, GREY, ORANGE, Style, plane, ray, sheet, tokens, walk
from .tables import cosine, rows_of, walks

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

CAPTION = """\
Two inputs in the plane, each with a best token (star) and a zero token, all other scores alike. The paper shows by \
such an example that its global theorem needs a single input; it prints no coordinates, these are ours. The first \
input's token alone has the max-margin direction (1, 0); there the zero token of the second input wins by 2, and the \
second input, far from its margin, has no say: a locally optimal direction that selects a worse token. Descent with \
steps of length 0.1 from eight starts ends in the global direction (1, 3) (circles, dashed) or in the local one \
(squares, dash-dotted). Hatched: all starts that end in the local one."""
GLOBAL = np.array([1.0, 3.0])
STARTS = ((0, 0), (0, 1), (0, 2), (0, 5), (-1, 0), (0, -1), (2, 0), (5, 0))
LOCAL = np.array([start in ((2, 0), (5, 0)) for start in STARTS])
LOW, HIGH = (-2.0, -2.0), (7.0, 7.0)


def compute(small: bool) -> Tables:
    problem, starts = two_limits(), [np.array(start, np.float64) for start in STARTS]
    best = local_optimum(problem.keys, problem.scores, [0, 0])
    local = local_optimum(problem.keys, problem.scores, [0, 1])
    ends = Trials.repeated(problem, len(starts)).descend(2000, 0.1, start=np.array(starts))
    flows = [flow(problem, start, 1000.0).state.p for start in starts]
    x, y = np.meshgrid(*(np.linspace(LOW[k], HIGH[k], 13 if small else 61) for k in (0, 1)))
    grid = np.stack([x.ravel(), y.ravel()], axis=1)
    runs = Trials.repeated(problem, len(grid))
    chosen = runs.logits(runs.descend(600, 0.1, start=grid)).argmax(axis=0)
    return {
        "paths": walks(problem, Normalised(0.1), starts, 200),
        "ends": table(
            start1=[start[0] for start in STARTS],
            start2=[start[1] for start in STARTS],
            cos_global=[cosine(p, GLOBAL) for p in ends],
            cos_local=[cosine(p, LMM) for p in ends],
            flow_cos_global=[cosine(p, GLOBAL) for p in flows],
            flow_cos_local=[cosine(p, LMM) for p in flows],
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


def draw(tables: Tables) -> Drawing:
    drawing, (axes,) = sheet(1, 5.0)
    basin = tables["basin"]
    side = int(np.sqrt(len(basin["p1"])))
    x, y, local = (basin[name].reshape(side, side) for name in ("p1", "p2", "local"))
    area = axes.contourf(x, y, local.astype(float), [0.5, 1.5], colors=["#ececec"], hatches=["////"])
    area.set(edgecolor="#9a9a9a", linewidth=0)
    ray(axes, GLOBAL, Style(BLACK, "--", ""), "global direction (1, 3)")
    ray(axes, LMM, Style(GREY, "-.", ""), "local direction (1, 0)")
    styles = {False: Style(BLUE, "-", "o"), True: Style(ORANGE, "-", "s")}
    for k, to_local in enumerate(LOCAL):
        path = rows_of(tables["paths"], k)
        walk(axes, path["p1"], path["p2"], styles[bool(to_local)])
    tokens(
        axes,
        np.array([[1.0, 0.0], [-2.0, 1.0], [0.0, 0.0]]),
        ["input 1", "input 2", "zero"],
        [(2, 9), (8, -3), (6, -13)],
    )
    plane(axes, (-2.4, -2.0), HIGH)
    axes.legend(loc="upper left")
    return drawing


def checks(tables: Tables) -> list[Check]:
    answer, ends = tables["answer"], tables["ends"]
    wrong = (ends["cos_local"] > ends["cos_global"]) != LOCAL
    wrong_flow = (ends["flow_cos_local"] > ends["flow_cos_global"]) != LOCAL
    reached = np.where(LOCAL, ends["cos_local"], ends["cos_global"])
    return [
        Check("limits of descent, number", len({bool(x) for x in ends["cos_local"] > ends["cos_global"]}), 2, 0, PAPER),
        Check("global direction, p₁", answer["p1"][0], 1, 1e-9, OURS),
        Check("global direction, p₂", answer["p2"][0], 3, 1e-9, OURS),
        Check("local direction, p₁", answer["p1"][1], 1, 1e-9, OURS),
        Check("local direction, p₂", answer["p2"][1], 0, 1e-9, OURS),
        Check("margin of input 2 in the local direction", answer["largest_margin"][1], 2, 1e-9, OURS),
        Check("locally optimal selections of the two", answer["is_local_optimum"].sum(), 2, 0, OURS),
        Check("starts that end elsewhere", wrong.sum(), 0, 0, OURS),
        Check("starts from which the gradient flow ends elsewhere", wrong_flow.sum(), 0, 0, OURS),
        Check("least cos to the limit after 2,000 steps", reached.min(), 1, 2e-4, OURS),
    ]


FIGURE = Figure(
    name="8",
    title="Two inputs, two limits",
    caption=CAPTION,
    compute=compute,
    draw=draw,
    checks=checks,
)
